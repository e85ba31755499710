package timeline

import (
	"iter"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Timeline is the exact history of one device's memory.
type Timeline struct {
	Device int
	Trace  snapshot.Trace
	Conf   allocator.Conf // the run's settings as far as the file tells

	// Initial is the state before the first kept event, Final the one of the dump itself.
	Initial, Final Totals
	Peaks

	// Curve samples the series at most a few thousand times, evenly by event index; each
	// point also keeps the extremes of its span, so that no peak is lost.
	Curve []Point

	// Lives lists every allocation that the file knows, in order of birth: first those from
	// before the trace by address, then by event.
	Lives []Life
	// Initially are the segments before the first event, Changes every later change.
	Initially []Range
	Changes   []Change

	OOMs    []OOMEvent
	Retries []Retry
	Checks  Checks
	// Recording says which kinds of events the trace lacks, and what that makes of the figures.
	Recording Recording

	unsure      []int32 // releases that may have been of a retry, by their last event
	poolsFail   bool    // requests in private pools may fail without a retry
	cut         bool    // the trace ends before the dump's state
	unused      bool
	window      *snapshot.WindowTrace
	active      *levels
	allocated   *levels
	doubts      doubts
	checkpoints []checkpoint // the first is at event -1
}

// few is how many allocations and frees tell of a program's life by themselves.
const few = 16

// HasHistory reports whether the trace tells a stretch of the program's life, so that peaks and growth are
// known. A trace may hold the dump alone, or the one event that the ring of a legacy call has room for: a few
// events beside memory that is mostly from before them are no history, nor is one whose blocks are unknown.
func (t *Timeline) HasHistory() bool {
	if r := &t.Recording; r.Peak.Active == Unknown && (!r.Resized || r.Unseen.Has(alloc)) && t.Checks.Inconsistent() == 0 {
		return false
	}
	if t.window != nil {
		return t.Trace.Len() > 0 // what comes before it is known
	}
	n := 0
	for e := 0; e < t.Trace.Len() && n < few; e++ {
		switch t.Trace.Action(e) {
		case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
			n++
		}
	}
	return n == few || n > 0 && t.Initial.Active <= t.PeakActive.Bytes/2
}

// Unused reports whether nothing was in the memory of the device while the program was recorded, so that its peaks are
// known to be zero.
func (t *Timeline) Unused() bool { return t.unused }

// Totals are the byte sums of one device at one moment.
type Totals struct {
	Reserved  int64 `json:"reserved"`  // segments and mapped ranges
	Active    int64 `json:"active"`    // rounded, allocated plus pending free
	Allocated int64 `json:"allocated"` // rounded, not yet freed by the program
	Requested int64 `json:"requested"` // requested bytes of active blocks
}

// Peaks are the highest value of each series over the trace, the initial state included.
type Peaks struct {
	PeakReserved  Peak `json:"reserved"`
	PeakActive    Peak `json:"active"`
	PeakAllocated Peak `json:"allocated"`
	PeakRequested Peak `json:"requested"`
	// PeakInactiveSplit is that of inactive_split_bytes: free blocks that have neighbors in
	// their segment, expandable ones left out (analyze/allocator/SPEC.md 5.11).
	PeakInactiveSplit Peak `json:"inactive_split"`
}

// Peak is a highest value and the first event after which it held; Event is -1 for the
// state before the trace.
type Peak struct {
	Bytes int64 `json:"bytes"`
	Event int   `json:"event"`
}

// Point covers the events First..Last of a curve: Max and Min are the extremes in the span
// and At the values after Last.
type Point struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Time  int64  `json:"time_us"` // of Last in microseconds since the Unix epoch, 0 unknown
	At    Totals `json:"at"`
	Min   Totals `json:"min"`
	Max   Totals `json:"max"`
}

// Life is one allocation from birth to death, in 40 bytes: traces have millions. Its stream and
// pool are its segment's.
type Life struct {
	Addr      uint64
	Requested int64 // as asked; rounded bytes when the file does not say
	Rounded   int64 // bytes taken in the segment
	// Born is the alloc event, -1 for a pre-trace block. FreeRequested and Freed are the
	// events of its end, -1 while it lives (a block that waits for another stream has only
	// the first). FreeRequested is PendingBefore when the block waited from the start.
	Born, FreeRequested, Freed int32
	Stack                      snapshot.StackID
}

// PendingBefore as a Life's FreeRequested says that the program had freed the block before
// the first kept event.
const PendingBefore = -2

// End is the address behind its block.
func (l *Life) End() uint64 { return l.Addr + uint64(l.Rounded) }

// GivenUp is the event at which the program freed the block, whether it went at once or waited for another stream: -1
// where it did not, PendingBefore where it had before the first kept event.
func (l *Life) GivenUp() int32 {
	if l.FreeRequested == -1 {
		return l.Freed
	}
	return l.FreeRequested
}

// Passing reports whether it is given up before anything else happens, as what one call works in.
func (l *Life) Passing() bool { return l.Born >= 0 && l.GivenUp() == l.Born+1 }

// LiveAfter reports whether the block was active right after event e (-1: at the start).
func (l *Life) LiveAfter(e int) bool {
	return int(l.Born) <= e && (l.Freed < 0 || int(l.Freed) > e)
}

// Waits reports whether a block that is active right after event e was freed by the program by
// then, and only waits for another stream (record_stream).
func (l *Life) Waits(e int) bool {
	return l.FreeRequested == PendingBefore || l.FreeRequested >= 0 && int(l.FreeRequested) <= e
}

// Range is a reserved range of addresses: a cudaMalloc segment or a mapped run.
type Range struct {
	Addr       uint64
	Size       int64
	Stream     snapshot.StreamID
	Kind       snapshot.SegmentKind
	Pool       snapshot.PoolID
	Expandable bool
	Stack      snapshot.StackID
}

// End is the address behind it.
func (r *Range) End() uint64 { return r.Addr + uint64(r.Size) }

// Change is one event that added a range to the reserved memory or took it away. Where the trace lacks such
// events it is put at the event of a block that shows it: an added range right before that event, one taken
// away right after it.
type Change struct {
	Event int
	Add   bool
	Range Range
}

// OOMEvent is one `oom` trace entry.
type OOMEvent struct {
	Event      int              `json:"event"`
	Requested  int64            `json:"requested"`   // rounded request
	DeviceFree int64            `json:"device_free"` // what cudaMemGetInfo said, -1 unknown
	Stack      snapshot.StackID `json:"-"`
	After      Totals           `json:"after"` // the state at that moment
}

// Retry is a request that cudaMalloc refused at first: segments were released inside it.
type Retry struct {
	FirstEvent int   `json:"first_event"` // the segment_free burst
	LastEvent  int   `json:"last_event"`
	Released   int64 `json:"released"` // bytes given back
	Whole      bool  `json:"whole"`    // all that was cached was given back, not just what suffices (max_split_size)
	Failed     bool  `json:"failed"`   // the request failed all the same
}

// Checks counts what does not add up. All zero means that the books balance.
type Checks struct {
	UntiledSegments    int64 `json:"untiled_segments"`     // blocks do not cover the segment exactly
	WrongSegmentTotals int64 `json:"wrong_segment_totals"` // its own sums differ from those of its blocks
	UnmatchedAllocs    int64 `json:"unmatched_allocs"`     // of an address that is live, or not at the end
	UnmatchedFrees     int64 `json:"unmatched_frees"`      // of an address that was never live
	Overlaps           int64 `json:"overlaps"`             // live blocks that overlap
	OutsideSegments    int64 `json:"outside_segments"`     // events on addresses in no known segment
	LiveOverReserved   int64 `json:"live_over_reserved"`   // events after which active bytes exceed reserved bytes
	MarkerMismatches   int64 `json:"marker_mismatches"`    // snapshot entries with other active bytes than rebuilt
	Markers            int64 `json:"markers"`              // snapshot entries that were compared
	BadEvents          int64 `json:"bad_events"`           // events without address or size where they need one
	UnknownActions     int64 `json:"unknown_actions"`
	PreTraceBlocks     int64 `json:"pre_trace_blocks"` // blocks that were there before the trace: not an error
	Explained          int64 `json:"explained"`        // contradictions that skipped kinds explain
	Residual           int64 `json:"residual"`         // rebuilt final active bytes minus the dump's, 0 when they balance
}

// Faults are the ways in which a file can contradict itself, in the order in which a reader would ask.
func (c *Checks) Faults() *finding.Faults {
	f := &finding.Faults{Residual: units.Size(c.Residual)}
	f.Add("untiled_segments", "segments whose blocks do not cover them exactly", c.UntiledSegments)
	f.Add("wrong_segment_totals", "segments whose totals differ from the sums of their blocks", c.WrongSegmentTotals)
	f.Add("unmatched_allocs", "allocations that clash with a live block at their address, or with the final state",
		c.UnmatchedAllocs)
	f.Add("unmatched_frees", "frees of addresses that were not live", c.UnmatchedFrees)
	f.Add("overlaps", "live blocks that overlap another", c.Overlaps)
	f.Add("outside_segments", "events at addresses outside all known segments", c.OutsideSegments)
	f.Add("live_over_reserved", "events after which live memory exceeds reserved memory", c.LiveOverReserved)
	f.Add("marker_mismatches", "earlier dumps whose totals differ from the rebuilt ones", c.MarkerMismatches)
	f.Add("bad_events", "events that lack an address or a size", c.BadEvents)
	return f
}

// Inconsistent is the number of contradictions, 0 for a file that can be trusted.
func (c *Checks) Inconsistent() int64 { return c.Faults().Places }

// State is the layout of a device's memory at one moment.
type State struct {
	Event    int            `json:"event"`   // the moment is right after this event; -1 is before the trace
	Time     int64          `json:"time_us"` // of the event in microseconds since the Unix epoch, 0 unknown
	Totals   Totals         `json:"totals"`
	Segments []SegmentState `json:"-"` // by address
	// Outside are live blocks in no known segment, rows of Timeline.Lives. Only files that
	// contradict themselves have any; Totals count them.
	Outside []int32 `json:"-"`
}

// Rows gives the live blocks, as rows of Timeline.Lives, each with the place of its segment in
// Segments; those Outside come last, with -1.
func (st *State) Rows() iter.Seq2[int, int32] {
	return func(yield func(int, int32) bool) {
		for i := range st.Segments {
			for _, row := range st.Segments[i].Live {
				if !yield(i, row) {
					return
				}
			}
		}
		for _, row := range st.Outside {
			if !yield(-1, row) {
				return
			}
		}
	}
}

// SegmentState is one reserved range with the blocks that live in it.
type SegmentState struct {
	Range
	Live   []int32 // rows of Timeline.Lives, by address
	Active int64   // rounded bytes of Live
}
