//go:build !cgo || !linux

package device

import (
	"io/fs"
	"time"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// Reader is what this build reads the driver through.
const Reader = smiName

// Driver is the driver, read through nvidia-smi.
type Driver struct {
	program smi
	first   *smiLog // what was read to see whether it answers, until it is asked for
}

// Open asks nvidia-smi once. The error is ErrNoDriver, with the reason.
func Open() (*Driver, error) {
	program := smi{smiName, 30 * time.Second}
	first, err := program.read()
	if err != nil {
		return nil, err
	}
	return &Driver{program, first}, nil
}

// Close does nothing.
func (d *Driver) Close() {}

// Version is that of the driver.
func (d *Driver) Version() (string, error) { return d.first.Driver, nil }

// Read reads all devices. Names, users, parents and states of processes come from proc, which is /proc.
func (d *Driver) Read(proc fs.FS) *sidecar.Reading {
	log, err := d.first, error(nil)
	if d.first = nil; log == nil {
		log, err = d.program.read()
	}
	return log.reading(newProcTable(proc), err)
}
