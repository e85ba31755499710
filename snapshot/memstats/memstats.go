// Package memstats reads what programs save of PyTorch's memory counters and of the driver's: dumps
// of torch.cuda.memory_stats and host_memory_stats as JSON, JSON lines, pickle, MessagePack, CSV
// or printed by Python; memory_summary tables; the text of list_gpu_processes; tables and queries
// of nvidia-smi. The counters are those of snapshot/SPEC.md 6.1 to 6.5.
//
// A file is read once and handed on sample by sample, so that its size does not matter (only a
// pickle must fit into memory). Nothing in it is trusted. A figure that a file does not give, or
// that cannot be, is left out: it is unknown, never zero. What cannot be read is counted, with the
// place of the first of it.
package memstats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Figure is a counter's value as far as it is known: the true one differs from Value by less
// than Step. Step is 1 for an exact figure, more for one that was printed in larger units, and 0
// for one that the file does not give.
type Figure struct {
	Value int64 `json:"value"`
	Step  int64 `json:"step"`
}

// Known reports whether the file gives the figure.
func (f Figure) Known() bool { return f.Step > 0 }

// Stat is a figure with the name that it has in the flat form of memory_stats (snapshot/SPEC.md 6.1), for example
// "allocated_bytes.all.current". Those of host_memory_stats (snapshot/SPEC.md 6.2) begin with "host." and have the
// names of torch 2.10 in samples of older releases too; what
// mem_get_info says (snapshot/SPEC.md 6.5) is "device.free" and "device.total". Bytes, counts and, in the times of
// the host, microseconds.
type Stat struct {
	Name string `json:"name"`
	Figure
}

// Number is a number that a sample may lack.
type Number struct {
	N     int64
	Known bool
}

// Sample is what the counters of one device said at one moment.
type Sample struct {
	Device      int // ordinal, -1 unknown
	Rank        int // of the process, -1 unknown
	Step, Epoch Number
	Time        int64  // microseconds, since 1970 unless the file's clock began elsewhere; 0 unknown
	Label       string // what the program calls the moment, such as "validation"
	Stats       []Stat // by name, each once
	Cut         bool   // a table that ends early
	Async       bool   // of the cudaMallocAsync backend, which counts little
	Line        int64  // where it stands in the file, from 1 on; 0 where lines do not apply
}

// Get is the figure of that name, the zero Figure where the sample lacks it.
func (s *Sample) Get(name string) Figure {
	i, ok := slices.BinarySearchFunc(s.Stats, name, func(a Stat, b string) int { return strings.Compare(a.Name, b) })
	if !ok {
		return Figure{}
	}
	return s.Stats[i].Figure
}

// Set adds an exact figure. Complete ends a sample that was made in this way.
func (s *Sample) Set(name string, value int64) {
	s.Stats = append(s.Stats, Stat{name, Figure{Value: value, Step: 1}})
}

// Complete brings the stats into the order and the form of those that were read from a file:
// sorted, with the last of each name.
func (s *Sample) Complete() {
	byName := func(a, b Stat) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(s.Stats, byName) {
		sorting.Stable(s.Stats, byName)
	}
	out := s.Stats[:0]
	for i, st := range s.Stats {
		if i+1 == len(s.Stats) || s.Stats[i+1].Name != st.Name {
			out = append(out, st)
		}
	}
	s.Stats = out
	s.untracked()
	s.pinned()
}

// oldPinned are the counters of pinned memory in torch 2.7 to 2.9, with the names that they have since 2.10
// (snapshot/SPEC.md 6.2).
var oldPinned = map[string]string{"host.reserved_bytes.": "host.allocated_bytes.",
	"host.allocated_bytes.": "host.active_bytes.", "host.segment.": "host.allocations.",
	"host.allocation.": "host.active_requests."}

// pinned gives all releases the names of 2.10, and takes out the bytes in use that 2.7 to 2.11 count wrong, as far as
// it shows: they never take off a block that a stream has used.
func (s *Sample) pinned() {
	if s.Get("host.reserved_bytes.current").Known() && s.Get("host.segment.current").Known() {
		for i := range s.Stats {
			st := &s.Stats[i]
			at := strings.LastIndexByte(st.Name, '.') + 1
			if name, ok := oldPinned[st.Name[:at]]; ok {
				st.Name = name + st.Name[at:]
			}
		}
		sorting.By(s.Stats, func(a, b Stat) int { return cmp.Compare(a.Name, b.Name) })
	} else if used, all := s.Get("host.active_bytes.current"), s.Get("host.allocated_bytes.current"); !used.Known() ||
		!all.Known() || used.Value <= all.Value {
		return
	}
	s.Stats = slices.DeleteFunc(s.Stats, func(st Stat) bool {
		return strings.HasPrefix(st.Name, "host.active_bytes.") && st.Name != "host.active_bytes.allocated"
	})
}

// untracked takes out the zeros of the cudaMallocAsync backend, which counts only current and
// peak bytes and leaves all else at 0: there is memory, and no allocation (c10/cuda/
// CUDAMallocAsyncAllocator.cpp, getDeviceStats).
func (s *Sample) untracked() {
	bytes, count := s.Get("allocated_bytes.all.current"), s.Get("allocation.all.peak")
	if !bytes.Known() || bytes.Value == 0 || !count.Known() || count.Value > 0 {
		return
	}
	s.Async = true
	s.Stats = slices.DeleteFunc(s.Stats, func(st Stat) bool {
		return st.Value == 0 && !strings.HasPrefix(st.Name, "num_") && !strings.HasPrefix(st.Name, "device.")
	})
}

// Reading is what nvidia-smi or list_gpu_processes printed at one moment.
type Reading struct {
	Driver    string     `json:"driver"` // version, "" unknown
	CUDA      string     `json:"cuda"`
	Time      string     `json:"time"` // as printed
	Devices   []Device   `json:"devices"`
	Instances []Instance `json:"instances"`
	Processes []Process  `json:"processes"`
	Line      int64      `json:"-"`
}

func newReading(line int64) *Reading {
	return &Reading{Line: line, Devices: []Device{}, Instances: []Instance{}, Processes: []Process{}}
}

func (r *Reading) rows() int { return len(r.Devices) + len(r.Instances) + len(r.Processes) }

// Device is one GPU. Names may be cut by the table. Bytes are nil where they are unknown.
type Device struct {
	Index int    `json:"index"` // -1 unknown
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	Bus   string `json:"bus"`
	Used  *int64 `json:"used,omitempty"`
	Total *int64 `json:"total,omitempty"`
	Free  *int64 `json:"free,omitempty"`
	// Idle says that the text lists no process on it, explicitly.
	Idle bool `json:"idle"`
}

// Instance is one MIG instance.
type Instance struct {
	GPU   int    `json:"device"`
	Index int    `json:"index"`
	GI    int    `json:"gpu_instance"`
	CI    int    `json:"compute_instance"`
	Used  *int64 `json:"used,omitempty"`
	Total *int64 `json:"total,omitempty"`
}

// Process is one process on a GPU.
type Process struct {
	GPU  int    `json:"device"` // -1 unknown
	UUID string `json:"uuid"`
	GI   int    `json:"gpu_instance"` // -1 none
	CI   int    `json:"compute_instance"`
	PID  int64  `json:"pid"`
	Type string `json:"type"` // C compute, G graphics
	Name string `json:"name"` // may be cut
	Used *int64 `json:"used,omitempty"`
}

// Handler takes what is read, in the order of the file. What it gets is only valid during the
// call.
type Handler struct {
	Sample  func(*Sample)
	Reading func(*Reading)
}

// Fault is a part of a file that could not be used.
type Fault struct {
	Line   int64 // 0 where lines do not apply
	Offset int64 // -1 unknown
	Msg    string
	Err    error `json:"-"` // the class where data was refused, nil where it only cannot be used
}

// Info says what a file was.
type Info struct {
	Name      string   `json:"name"`      // base name, or "stdin"
	Container []string `json:"container"` // how it was wrapped, outermost first, the format last
	Samples   int64    `json:"samples"`
	Readings  int64    `json:"readings"`
	Skipped   int64    `json:"skipped"` // records that could not be read
	Odd       int64    `json:"odd"`     // figures that cannot be: negative, infinite, no number
	Foreign   int64    `json:"foreign"` // records that were read and hold no counters
	// FirstSkipped and FirstOdd are the first of those, nil where there are none.
	FirstSkipped *Fault `json:"-"`
	FirstOdd     *Fault `json:"-"`
	Cut          *Fault `json:"-"` // why the file ends early, nil where it does not
}
