package sidecar

import "fmt"

// The fixed values of a Header.
const (
	Format  = "snapana"
	Version = 1

	ProducerRecorder = "recorder"
	ProducerNVML     = "nvml"
)

// Header is the first record of a run.
type Header struct {
	Format          string `msgpack:"format"`
	Version         int64  `msgpack:"version"`
	Producer        string `msgpack:"producer,omitempty"`
	ProducerVersion string `msgpack:"producer_version,omitempty"`
	Run             string `msgpack:"run,omitempty"`
	PID             *int64 `msgpack:"pid,omitempty"`
	HostPID         *int64 `msgpack:"host_pid,omitempty"` // in the outermost namespace, where it differs
	Started         *int64 `msgpack:"started,omitempty"`  // clock ticks since boot
	Boot            string `msgpack:"boot,omitempty"`
	Rank            *int64 `msgpack:"rank,omitempty"`
	WorldSize       *int64 `msgpack:"world_size,omitempty"`
	LocalRank       *int64 `msgpack:"local_rank,omitempty"`
	Program         string `msgpack:"program,omitempty"` // base name
}

// wrong says why what follows a header cannot be read.
func (h *Header) wrong() string {
	switch {
	case h.Format != Format:
		return fmt.Sprintf("the header names the format %.40q, not %q", h.Format, Format)
	case h.Version < 1:
		return "the header has no version"
	case h.Version > Version:
		return fmt.Sprintf("has version %d of the format, and this snapana reads version %d; use a newer snapana",
			h.Version, Version)
	}
	return ""
}
