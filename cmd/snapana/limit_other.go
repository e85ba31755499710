//go:build !unix

package main

import "time"

// usage knows nothing of the process here.
type usage struct{}

func openUsage() *usage { return nil }

func (*usage) now() (memory int64, cpu time.Duration) { return 0, 0 }

func (*usage) close() {}
