// Package sidecar reads and writes .snapana files: what the Python recorder saw of a program
// from outside a memory snapshot, and readings of the driver. FORMAT.md beside this file
// specifies the format.
//
// A file comes from a process that may have been killed at any byte, and may come from a
// stranger. Read takes the complete records in order and says where the file breaks. Each
// record is first walked without being interpreted, with its size and depth limited, so that
// nothing is allocated by a length that only the file claims; then its values are decoded by
// the tags of the structs they go to, and indexes are checked once, so that users of a File need not.
//
// What a file does not say is unknown, never zero: single numbers are pointers that are nil
// then, strings are "", lists are nil (an empty list was looked at and had nothing).
package sidecar

import (
	"errors"
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// File is what a .snapana file holds. It is immutable.
type File struct {
	Name  string // base name, for messages
	Bytes int64  // that were read, after decompression
	Runs  []Run  // in the order of their headers
	// Truncated says where and how the file breaks in the middle of its last record, as that
	// of a killed process may. Nil for a file that ends after a record, which need not have
	// an End: the process may still run.
	Truncated *FormatError
	// Gaps are torn records that a later run was appended to.
	Gaps []Gap
	// Partial is the fault after which nothing was read, with Options.Partial.
	Partial error
	Unknown []Unknown // by name
}

// Gap is a stretch of bytes that holds no complete record.
type Gap struct{ Offset, Bytes int64 }

// Unknown is a record type or a key that this version does not know, "sample.host.x" for
// example, and how often it came.
type Unknown struct {
	What  string
	Count int64
}

// Run is one header with the records behind it.
type Run struct {
	Time   int64 `msgpack:"time"` // of the header; like all times in nanoseconds since 1970, 0 unknown
	Header `msgpack:",inline"`
	// Env holds strings, int64s and bools by dotted name. Nil: not recorded.
	Env       map[string]any
	Samples   []Sample   `record:"sample"`
	Holders   []*Holders `record:"holders"`
	Uses      *Uses      `record:"uses"` // the last, nil for none
	Snapshots []Dump     `record:"snapshot"`
	OOMs      []OOM      `record:"oom"`
	Phases    []Phase    `record:"phase"`
	NVML      []Reading  `record:"nvml"`
	Faults    []Fault    `record:"fault"`
	End       *End       `record:"end"` // nil: the process was killed or still runs
}

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

// OOM is what torch told its out-of-memory observer. Bytes.
type OOM struct {
	Time      int64  `msgpack:"time"`
	Device    *int64 `msgpack:"device"`
	Requested *int64 `msgpack:"requested"` // size of the segment that was asked for
	Total     *int64 `msgpack:"total"`     // of the device, as Free
	Free      *int64 `msgpack:"free"`
	Step      *int64 `msgpack:"step"`
}

// Phase is the beginning or the end of one lap of a part of the program that it named.
type Phase struct {
	Time   int64  `msgpack:"time"`
	Stage  string `msgpack:"stage"`  // PhaseBegin or PhaseEnd
	ID     *int64 `msgpack:"id"`     // of the lap, which both have
	Name   string `msgpack:"name"`   // like Lap, Thread and Inside of a beginning only
	Lap    *int64 `msgpack:"lap"`    // how often the phase had begun before
	Step   *int64 `msgpack:"step"`   // of the program
	Thread *int64 `msgpack:"thread"` // where it ran
	Inside *int64 `msgpack:"inside"` // the ID of the lap around it; nil: none
	Error  string `msgpack:"error"`  // of an end, the class of the exception
	// Devices are those that PyTorch has memory of. Nil: not read.
	Devices []Level `msgpack:"devices"`
}

// The stages of a Phase.
const (
	PhaseBegin = "begin"
	PhaseEnd   = "end"
)

// Level is what torch.cuda.memory_stats says of one device at one moment, in bytes and calls.
type Level struct {
	Device       *int64 `msgpack:"device"`    // ordinal
	Allocated    *int64 `msgpack:"allocated"` // allocated_bytes.all.current
	Peak         *int64 `msgpack:"peak"`      // of Allocated, since the program last set it back
	Reserved     *int64 `msgpack:"reserved"`
	ReservedPeak *int64 `msgpack:"reserved_peak"`
	Allocs       *int64 `msgpack:"allocs"` // allocation.all.allocated
	Frees        *int64 `msgpack:"frees"`  // allocation.all.freed
}

// Dump says that a snapshot was written beside the file.
type Dump struct {
	Time    int64  `msgpack:"time"`
	File    string `msgpack:"file"`    // base name
	Bytes   *int64 `msgpack:"bytes"`   // of the pickle
	Holders *int64 `msgpack:"holders"` // ID of the Holders of the same moment
	// Devices are those that PyTorch has memory of, at that moment. Nil: not recorded.
	Devices []DeviceMemory `msgpack:"devices"`
	// Counters are of the very moment. Nil: not recorded, or another thread went on meanwhile.
	Counters []Level `msgpack:"counters"`
}

// Reading is one NVML record.
type Reading struct {
	Time int64 `msgpack:"time" json:"time_ns"`
	NVML `msgpack:",inline"`
}

// Fault is something that the recorder could not do.
type Fault struct {
	Time  int64  `msgpack:"time"`
	Where string `msgpack:"where"`
	What  string `msgpack:"what"`
	Count *int64 `msgpack:"count"`
}

// End says that the recorder was stopped in order.
type End struct {
	Time   int64  `msgpack:"time"`
	Steps  *int64 `msgpack:"steps,omitempty"`
	Reason string `msgpack:"reason,omitempty"`
}

// FormatError is a rejection of the input at one place.
type FormatError = snapshot.FormatError

// ErrNotSidecar is the class of errors for files of another kind. The other classes are those
// of package snapshot.
var ErrNotSidecar = errors.New("not a .snapana file")

// ErrForeign is the ErrNotSidecar of a file that does not begin as one, also a snapshot.ErrSnapshot
// where it begins as a snapshot does.
var ErrForeign = fmt.Errorf("%w from its first byte on", ErrNotSidecar)

// Snapshot finds the record that says that a snapshot was written, and its run, for one in a file of
// this base name and, unpacked, of so many bytes; one of another name but this size was renamed. Of
// several it is the newest, and nil when there is none.
func (f *File) Snapshot(name string, bytes int64) (*Run, *Dump) {
	for _, renamed := range []bool{false, true} {
		for i := len(f.Runs) - 1; i >= 0; i-- {
			r := &f.Runs[i]
			for j := len(r.Snapshots) - 1; j >= 0; j-- {
				d := &r.Snapshots[j]
				same := d.Bytes != nil && *d.Bytes == bytes
				if same && renamed || d.File == name && (same || d.Bytes == nil) {
					return r, d
				}
			}
		}
	}
	return nil, nil
}

// HoldersOf gives the holders that were taken with a snapshot of this run, nil if they are not
// in the file.
func (r *Run) HoldersOf(d *Dump) *Holders {
	if d.Holders == nil {
		return nil
	}
	for _, h := range r.Holders {
		if h.ID != nil && *h.ID == *d.Holders {
			return h
		}
	}
	return nil
}
