//go:build !cgo || !linux

package device

import (
	"io/fs"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// Driver cannot be had in this build.
type Driver struct{}

// Open always fails in this build.
func Open() (*Driver, error) { return nil, ErrBuiltWithout }

// Close does nothing.
func (d *Driver) Close() {}

// Version is never reached.
func (d *Driver) Version() (string, error) { return "", ErrBuiltWithout }

// Read is never reached.
func (d *Driver) Read(fs.FS) *sidecar.Reading { return nil }
