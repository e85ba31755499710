package host

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Pinned is the history of a process's pinned host memory. All sizes are rounded bytes.
type Pinned struct {
	Trace snapshot.Trace // of length 0 when none was recorded
	// Stated says that the file has the state at the end. Else Final is that after the last event.
	Stated         bool
	Initial, Final Totals
	FinalBlocks    Counts
	Peaks          // without a trace there are none

	// Lives are all uses of blocks: first those from before the trace by address, then by event.
	// Requested is the rounded size as well.
	Lives []timeline.Life
	// Blocks are all blocks that the process ever had in the trace, in the same order.
	Blocks []Block

	// Curve has at most maxPoints points, evenly by event.
	Curve []Point

	Holders []attribution.Group // active bytes at the end by stack, most first
	AtPeak  []attribution.Group // active bytes at their peak, nil where that is the end or without a trace
	Cached  []Class             // reserved and free at the end, most bytes first
	// Growth is what loops add to and do not return. Its events are those of Trace.
	Growth []ghost.Growth
	// AtMostRounding bounds what rounding takes of the active bytes at the end: a power of two was
	// rounded from more than its half.
	AtMostRounding int64
	// Registered is the part of Final that other code pinned (cudaHostRegister) as far as the file shows it:
	// PyTorch's own counters leave it out. See Block.Registered.
	Registered int64
	// Unknown is what is reserved at the end in blocks of which neither the trace nor the state says
	// whether they are in use. It is neither in Holders nor in Cached.
	Unknown int64
	Checks  Checks

	GPU int // whose allocations told the laps of Growth, -1 none
}

// Peaks are highest values and the first events after which they held, -1 for the state before
// the trace.
type Peaks struct {
	PeakReserved  timeline.Peak `json:"reserved"`
	PeakActive    timeline.Peak `json:"active"`
	PeakAllocated timeline.Peak `json:"allocated"`
}

// Counts are numbers of blocks at one moment. A block is a segment: it is never split.
type Counts struct {
	Reserved  int64 `json:"reserved_blocks"`  // pinned
	Active    int64 `json:"active_blocks"`    // allocated, or waiting for streams
	Allocated int64 `json:"allocated_blocks"` // not yet freed by the program
}

// Residual is the rebuilt end minus the file's, by series.
type Residual struct {
	Totals
	Counts
}

// String names the series that are not zero, "" for none.
func (r Residual) String() string {
	var out []string
	for _, p := range []struct {
		bytes, blocks int64
		name          string
	}{{r.Totals.Reserved, r.Counts.Reserved, "reserved"}, {r.Totals.Active, r.Counts.Active, "active"},
		{r.Totals.Allocated, r.Counts.Allocated, "allocated"}} {
		if p.bytes != 0 || p.blocks != 0 {
			w := units.Bytes(p.bytes) + " " + p.name
			if p.blocks != 0 {
				w += " (" + units.Plural(p.blocks, "block") + ")"
			}
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

// Largest is the most by which a series of bytes is off, in bytes.
func (r *Residual) Largest() int64 {
	t := &r.Totals
	return max(t.Reserved, -t.Reserved, t.Active, -t.Active, t.Allocated, -t.Allocated)
}

// NotVerified says how a file whose books do not balance contradicts itself.
func NotVerified(c *Checks) string { return finding.NotVerified(c.Inconsistent(), c.Residual.String()) }

// Totals are the byte sums at one moment. Reserved less Active is what PyTorch caches.
type Totals struct {
	Reserved  int64 `json:"reserved"`  // pinned
	Active    int64 `json:"active"`    // allocated, or waiting for streams
	Allocated int64 `json:"allocated"` // not yet freed by the program
}

// Block is a piece of pinned memory from the call that pinned it to the one that released it.
type Block struct {
	Addr  uint64
	Size  int64
	Pool  snapshot.PoolID // other than zero for that of a graph capture
	Stack snapshot.StackID
	Made  int32 // the event that pinned it, -1 before the trace
	Gone  int32 // the event that released it, -1 while it is there
	// Registered says that other code pinned it: its segment_alloc has no stack where the alloc after it has
	// one (CachingHostAllocator.h of 2.14), or its size is no power of two although all of PyTorch's are.
	// Else it is not known to be so.
	Registered bool

	unsure bool // whether it is in use is not known
	bare   bool // the event that pinned it has no stack

	life  int32 // its last use: a row of lives in the making, none for no use yet
	first bool  // that use is the one for which it was made
}

// Point covers the events First to Last: Max has the highest values among them, At those after Last.
type Point struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Time  int64  `json:"time_us"` // of Last in microseconds since the Unix epoch, 0 unknown
	At    Totals `json:"at"`
	Max   Totals `json:"max"`
}

// Class is the blocks of one size that nobody uses at the end.
type Class struct {
	Size   int64 `json:"size"`
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
	// Spare is how much more of this size is reserved at the end than was ever in use at a time in
	// the second half of the trace; -1 without a trace.
	Spare int64 `json:"spare"`
}

// Checks counts what does not add up. All zero means that the books balance.
type Checks struct {
	Unmatched int64 `json:"unmatched"`        // events and final blocks that do not fit what was there
	Sizes     int64 `json:"wrong_sizes"`      // events and final blocks of another size than their block
	Bad       int64 `json:"bad_events"`       // events without address or size
	Unknown   int64 `json:"unknown_actions"`  // events whose action means nothing for host memory: no contradiction
	Stateless int64 `json:"stateless_blocks"` // final blocks, in use or not as the file does not say: the same
	Lists     int64 `json:"lists_left_out"`   // further lists of events, which were left out: the same
	Before    int64 `json:"pre_trace_blocks"` // uses whose begin the trace lacks: the same
	// Moved and Left are events that a ring whose size was changed had out of order: put back where they
	// belong, or left out since others between them and the rest are lost. No contradictions either.
	Moved int64 `json:"moved_events"`
	Left  int64 `json:"left_out_events"`

	// Residual is the rebuilt end minus the file's. What is rebuilt of the end is then the file's.
	Residual Residual `json:"residual"`
}

// Faults are the ways in which a file can contradict itself.
func (c *Checks) Faults() *finding.Faults {
	f := &finding.Faults{Residual: units.Size(c.Residual.Totals.Reserved)}
	f.Add("unmatched", "events that clash with the state before them, or blocks with the final state", c.Unmatched)
	f.Add("wrong_sizes", "events and final blocks of another size than their block", c.Sizes)
	f.Add("bad_events", "events that lack an address or a size", c.Bad)
	return f
}

// Inconsistent is the number of contradictions, 0 for a file that can be trusted.
func (c *Checks) Inconsistent() int64 { return c.Faults().Places }

// Balanced reports whether the rebuilt history and the file's state agree.
func (c *Checks) Balanced() bool { return c.Inconsistent() == 0 && c.Residual == (Residual{}) }

// At gives the sums right after an event; -1 is before the trace.
func (m *Pinned) At(event int) Totals {
	var sum Totals
	for i := range m.Blocks {
		if b := &m.Blocks[i]; int(b.Made) <= event && (b.Gone < 0 || int(b.Gone) > event) {
			sum.Reserved += b.Size
		}
	}
	for i := range m.Lives {
		if l := &m.Lives[i]; l.LiveAfter(event) {
			sum.Active += l.Rounded
			if !l.Waits(event) {
				sum.Allocated += l.Rounded
			}
		}
	}
	return sum
}

// Spare is what is reserved and was not in use in the second half of the trace, in bytes.
func (m *Pinned) Spare() int64 {
	var n int64
	for i := range m.Cached {
		n += max(m.Cached[i].Spare, 0)
	}
	return n
}

// LastUse is the row of Lives that used a block of a size last, none for no use.
func (m *Pinned) LastUse(size int64) int32 {
	last := int32(none)
	for i := range m.Lives {
		if l := &m.Lives[i]; l.Rounded == size && l.Freed >= 0 && (last < 0 || l.Freed > m.Lives[last].Freed) {
			last = int32(i)
		}
	}
	return last
}

// powersOnly reports whether the file says that PyTorch rounds every size up to a power of two.
func powersOnly(s *snapshot.Snapshot) bool {
	for _, v := range s.Settings.Values {
		if v.Key == "max_round_threshold" {
			return v.Value == "-1"
		}
	}
	return false
}

// BoundedRounding reports whether the settings bound the rounding to powers of two.
func BoundedRounding(s *snapshot.Snapshot) bool {
	return strings.Contains(s.Settings.Conf, "pinned_max_round_threshold_mb")
}

// hold says who holds what at the end, and what is cached.
func (m *Pinned) hold(s *snapshot.Snapshot) {
	last := m.Trace.Len() - 1
	st := m.state(last)
	used := map[uint64]bool{}
	for _, i := range st.Outside {
		l := &m.Lives[i]
		used[l.Addr] = true
		if bits.OnesCount64(uint64(l.Rounded)) == 1 {
			m.AtMostRounding += max(l.Rounded/2-1, 0)
		}
	}
	m.Holders = attribution.Live(s, &timeline.Timeline{Lives: m.Lives}, st)
	if peak := m.PeakActive; last >= 0 && peak.Event != last && peak.Bytes > m.At(last).Active {
		m.AtPeak = attribution.Live(s, &timeline.Timeline{Lives: m.Lives}, m.state(peak.Event))
	}

	classes := map[int64]*Class{}
	reserved := map[int64]int64{}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Gone >= 0 {
			continue
		}
		if b.Registered {
			m.Registered += b.Size
		}
		reserved[b.Size] += b.Size
		if used[b.Addr] {
			continue
		}
		if b.unsure {
			m.Unknown += b.Size
			continue
		}
		c := classes[b.Size]
		if c == nil {
			c = &Class{Size: b.Size, Spare: none}
			classes[b.Size] = c
		}
		c.Blocks++
		c.Bytes += b.Size
	}
	if last >= 0 {
		late := m.lateUse()
		for size, c := range classes {
			c.Spare = min(max(reserved[size]-late[size], 0), c.Bytes)
		}
	}
	for _, c := range classes {
		m.Cached = append(m.Cached, *c)
	}
	sorting.By(m.Cached, func(a, b Class) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes),
			cmp.Compare(b.Size, a.Size))
	})
}

// state is what is active right after an event.
func (m *Pinned) state(event int) *timeline.State {
	st := &timeline.State{Event: event}
	for i := range m.Lives {
		if m.Lives[i].LiveAfter(event) {
			st.Outside = append(st.Outside, int32(i))
		}
	}
	return st
}

// lateUse is the most of each size that was active at a time in the second half of the trace.
func (m *Pinned) lateUse() map[int64]int64 {
	from := int32(m.Trace.Len() / 2)
	type edge struct {
		at   int32
		size int64 // below zero for an end
	}
	var edges []edge
	for i := range m.Lives {
		l := &m.Lives[i]
		if l.Freed >= 0 && l.Freed <= from {
			continue
		}
		edges = append(edges, edge{max(l.Born, from), l.Rounded})
		if l.Freed >= 0 {
			edges = append(edges, edge{l.Freed, -l.Rounded})
		}
	}
	sorting.Stable(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	now, most := map[int64]int64{}, map[int64]int64{}
	for _, e := range edges {
		size := max(e.size, -e.size)
		now[size] += e.size
		most[size] = max(most[size], now[size])
	}
	return most
}
