// Package host measures what a program does with the memory of its machine. Read tells it of each
// process from the recorder's samples: does the process grow, is it tensors, Python objects or native
// memory that grow, do its workers copy what they should share, or is the machine short of memory while
// the program is not at fault?
//
// The size of a process is its RSS with what was swapped out, so that swapping does not look like
// memory given back. Growth is what package counters calls growing: never given back, in each
// quarter of the run. Tensors and objects are counted by what Python's collector can see, in those
// samples in which the recorder had the time. What grows along with the process is not proven to
// be the cause: each finding of growth is a heuristic.
//
// BuildPinned rebuilds the pinned host memory of a process over time, exactly, from the
// host_traces and host_segments of a snapshot (torch 2.13 and later, recorded with
// record_pinned_host_memory=True), and says who holds it, what is cached and what grows.
//
// The host allocator is simpler than a device's (aten/src/ATen/core/CachingHostAllocator.h, note
// HostAllocator design): it never splits, so a block is a segment; sizes are rounded up to a power of
// two, unless a limit is set (PR 171662); a block that streams still use waits for their events after
// its free. All sizes in the file are rounded ones (snapshot/SPEC.md 2.8): what was asked for is unknown.
//
//  1. It goes forward over the events, a block by its address. What an event uses and none made
//     was there before the trace, and so was what only the final state has.
//  2. Sums at each event follow, and with them the peaks; the end must equal the recorded state.
//     Memory that other code registered (cudaHostRegister) is in the trace, but need not be in the
//     state: it is told apart and is no residual.
//  3. Growth asks package ghost, with the allocations of a GPU in between as the clock: a loop
//     that pins one batch in each iteration may allocate nothing else on the host.
package host

import (
	"maps"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Process is what the samples of one process say of its own memory.
type Process struct {
	File    string `json:"file"` // base name
	Rank    int    `json:"rank"` // -1 unknown
	Samples int    `json:"samples"`
	Counted int    `json:"counted"` // of them, those in which tensors were counted

	Trends   finding.Trends `json:"-"`
	Run      *sidecar.Run   `json:"-"`
	Last     *sidecar.Host  `json:"-"` // of its samples
	Children int            `json:"-"` // those that lived to the end
}

// The series that are judged. Bytes, and counts of tensors and objects.
const (
	Size        = "process" // RSS and swap of the process
	RSS         = "rss"
	Swap        = "swap"
	CPUTensors  = "cpu_tensors"
	CPUBytes    = "cpu_tensor_bytes"
	Objects     = "objects"
	PinnedBytes = "pinned"
	Workers     = "workers"     // PSS of the children that lived to the end: their own, and a part of what they share
	WorkersRSS  = "workers_rss" // RSS of the same, shared memory counted for each
	Available   = "available"   // of the machine
	Cgroup      = "cgroup"
)

// Read measures each process of a recording that has samples of the host.
func Read(f *sidecar.File) []*Process {
	var out []*Process
	for i := range f.Runs {
		if p := measure(&f.Runs[i]); p != nil {
			p.File = f.Name
			out = append(out, p)
		}
	}
	return out
}

// column is a series in the making.
type column struct{ x, y []int64 }

func (c *column) add(x int64, y *int64) {
	if y != nil && *y >= 0 && (len(c.x) == 0 || x > c.x[len(c.x)-1]) {
		c.x, c.y = append(c.x, x), append(c.y, *y)
	}
}

// grain is what pages and caches of libraries make memory of a process differ by without meaning.
const grain = 1 << 20

func measure(run *sidecar.Run) *Process {
	p := &Process{Rank: -1, Run: run, Trends: finding.Trends{}}
	if run.Rank != nil {
		p.Rank = int(*run.Rank)
	}
	columns := map[string]*column{}
	at := func(name string) *column {
		if columns[name] == nil {
			columns[name] = &column{}
		}
		return columns[name]
	}
	unit := "step"
	for i := range run.Samples {
		if s := run.Samples[i].Step; s == nil || i > 0 && *s <= *run.Samples[i-1].Step {
			unit = "sample"
			break
		}
	}
	for i := range run.Samples {
		s := &run.Samples[i]
		if s.Host == nil {
			continue
		}
		p.Samples++
		x, h := place(run, i, unit), s.Host
		p.Last = h
		at(RSS).add(x, h.RSS)
		at(Swap).add(x, h.Swap)
		if h.RSS != nil {
			size := *h.RSS
			if h.Swap != nil {
				size += *h.Swap
			}
			at(Size).add(x, &size)
		}
		at(PinnedBytes).add(x, h.Pinned)
		at(Available).add(x, h.Available)
		at(Cgroup).add(x, h.Cgroup)
		if t := s.Tensors; t != nil {
			p.Counted++
			at(CPUTensors).add(x, t.CPUCount)
			at(CPUBytes).add(x, t.CPUBytes)
			at(Objects).add(x, t.Objects)
		}
	}
	if p.Last == nil {
		return nil
	}
	p.Children = workers(run, unit, at(Workers), at(WorkersRSS))
	for _, name := range []string{Size, RSS, Swap, CPUBytes, CPUTensors, Objects, PinnedBytes, Workers, WorkersRSS,
		Cgroup, Available} {
		precision := int64(grain)
		if name == CPUTensors || name == Objects || name == CPUBytes {
			precision = 1
		}
		if c := at(name); len(c.y) > 0 {
			p.Trends = append(p.Trends, counters.Of(name, unit, c.x, c.y, precision))
		}
	}
	return p
}

// place is where a sample lies along a unit.
func place(run *sidecar.Run, i int, unit string) int64 {
	if unit == "step" {
		return *run.Samples[i].Step
	}
	return int64(i)
}

// workers sums the children that are there at the end over the samples in which all of them are:
// while others come and go, what each has of shared memory changes without any of them growing.
func workers(run *sidecar.Run, unit string, pss, rss *column) int {
	var want map[int64]bool
	for i := len(run.Samples) - 1; i >= 0 && want == nil; i-- {
		if len(run.Samples[i].Children) > 0 {
			want = pids(&run.Samples[i])
		}
	}
	for i := range run.Samples {
		s := &run.Samples[i]
		if len(want) == 0 || !maps.Equal(pids(s), want) {
			continue
		}
		add := func(to *column, value func(*sidecar.Child) *int64) {
			var sum int64
			for k := range s.Children {
				v := value(&s.Children[k])
				if v == nil {
					return
				}
				sum += *v
			}
			to.add(place(run, i, unit), &sum)
		}
		add(pss, func(c *sidecar.Child) *int64 { return c.PSS })
		add(rss, func(c *sidecar.Child) *int64 { return c.RSS })
	}
	return len(want)
}

func pids(s *sidecar.Sample) map[int64]bool {
	out := map[int64]bool{}
	for _, c := range s.Children {
		if c.PID != nil {
			out[*c.PID] = true
		}
	}
	return out
}
