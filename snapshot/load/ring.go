package load

import (
	"math"
	"slices"

	"github.com/snapana/snapana/snapshot"
)

const (
	// backward is by how many microseconds times go back where a ring was resized, at least: clocks of two
	// processors differ by less.
	backward = 1000
	// seams bounds how often they go back for that reason. Threads whose clocks differ do so all the time.
	seams = 8
	// mostCuts bounds how often one stretch follows another in the order of time: a ring's are side by side, those of
	// a clock that was set back alternate event by event.
	mostCuts = 4 * seams
)

// reorder puts the events of each device back in order where the ring was resized while it recorded
// (analyze/timeline/SPEC.md 3.4). Times show it, and what the events do to the addresses proves it.
func reorder(s *snapshot.Snapshot) {
	for device, t := range s.Traces {
		for _, least := range []int64{backward, 1} {
			stretches := ascending(t, least)
			if len(stretches) < 2 || len(stretches) > seams+1 {
				continue
			}
			if order, ok := inOrder(s, device, stretches, least == backward); ok {
				s.Traces[device] = arrange(t, order)
				s.Resized = append(s.Resized, snapshot.Resize{Device: device, Dropped: t.Len() - len(order)})
				break
			}
		}
	}
}

// stretch is a run of events first..end-1.
type stretch struct{ first, end int32 }

// ascending cuts a trace where times go back by at least so many microseconds; nil when that is more often
// than a ring explains, or when an event has no time.
func ascending(t snapshot.Trace, least int64) []stretch {
	var out []stretch
	first, newest := 0, int64(math.MinInt64)
	back := func(now int64) bool { return now < newest && uint64(newest)-uint64(now) >= uint64(least) }
	for at, span := range t.Spans() {
		if span.All&snapshot.EventHasTime == 0 {
			return nil
		}
		if span.Back < uint64(least) && !back(span.Oldest) {
			newest = max(newest, span.Newest)
			continue
		}
		for i := at; i < at+span.Events; i++ {
			now := t.Time(i)
			if back(now) {
				if out = append(out, stretch{int32(first), int32(i)}); len(out) > seams {
					return nil
				}
				first, newest = i, now
			}
			newest = max(newest, now)
		}
	}
	return append(out, stretch{int32(first), int32(t.Len())})
}

// inOrder gives the events in the order of their times, without those before a gap. It is false where the file's
// own order agrees better with what happened to the addresses, or as well when sure is not set.
func inOrder(s *snapshot.Snapshot, device int, stretches []stretch, sure bool) (order []int32, ok bool) {
	t := s.Traces[device]
	was := make([]int32, t.Len())
	for i := range was {
		was[i] = int32(i)
	}
	faults := contradictions(s, device, was)
	least := faults
	if sure {
		least++
	}
	// What is left out takes its contradictions with it: an order must be better for the events that it keeps.
	try := func(o []int32, sure bool) {
		n := contradictions(s, device, o)
		if n >= least {
			return
		}
		own := contradictions(s, device, slices.Sorted(slices.Values(o)))
		if n < own || sure && n == own {
			order, least = o, n
		}
	}
	for _, stick := range []bool{true, false} {
		merged, cuts := merge(t, stretches, stick)
		// The list begins with the oldest event of the ring. What is older than that was left behind when the ring
		// shrank, and is followed by a gap.
		start := slices.Index(merged, 0)
		try(merged[start:], sure)
		if len(cuts) > mostCuts {
			continue
		}
		for _, cut := range cuts {
			if cut > start && least > 0 && faults > 0 { // resized more than once
				try(merged[cut:], false)
			}
		}
	}
	return order, order != nil
}

// merge puts the stretches in the order of time. Of events of the same time those of one stretch stay together as they
// were recorded, if stick is set. cuts are the places where one stretch follows another.
func merge(t snapshot.Trace, stretches []stretch, stick bool) (order []int32, cuts []int) {
	rest := slices.Clone(stretches)
	order = make([]int32, 0, t.Len())
	time := func(i int) int64 { return t.Time(int(rest[i].first)) }
	for now := -1; len(rest) > 0; {
		oldest := 0
		for i := range rest {
			if time(i) < time(oldest) {
				oldest = i
			}
		}
		// The oldest event of the ring comes before what was recorded after a gap.
		if now < 0 || time(oldest) < time(now) || oldest != now && (!stick || rest[oldest].first == 0) {
			now = oldest
			cuts = append(cuts, len(order))
		}
		order = append(order, rest[now].first)
		if rest[now].first++; rest[now].first == rest[now].end {
			rest = slices.Delete(rest, now, now+1)
			now = -1
		}
	}
	return order, cuts
}

// contradictions counts what cannot have happened to a device's blocks and segments if its events came in that
// order and led to the final state.
func contradictions(s *snapshot.Snapshot, device int, order []int32) int {
	t := s.Traces[device]
	n := 0
	blocks, segments := make(map[uint64]bool), make(map[uint64]bool) // by address, whether it is live
	begin := func(live map[uint64]bool, at uint64) {
		if live[at] {
			n++
		}
		live[at] = true
	}
	end := func(live map[uint64]bool, at uint64) {
		if is, known := live[at]; known && !is {
			n++
		}
		live[at] = false
	}
	for _, i := range order {
		switch e := t.At(int(i)); e.Action {
		case snapshot.Alloc:
			begin(blocks, e.Addr)
		case snapshot.FreeCompleted:
			end(blocks, e.Addr)
		case snapshot.SegmentAlloc:
			begin(segments, e.Addr)
		case snapshot.SegmentFree:
			end(segments, e.Addr)
		}
	}
	if s.Partial != nil {
		return n
	}
	final := make(map[uint64]bool)
	for seg := range s.SegmentsOf(device) {
		final[seg.Address] = true
	}
	n += differ(segments, final)
	clear(final)
	for seg := range s.SegmentsOf(device) {
		for _, b := range blocksOf(s, seg) {
			if b.State.Active() {
				final[b.Address] = true
			}
		}
	}
	return n + differ(blocks, final)
}

// differ counts the addresses that are live at the end of the trace only, or in the final state only.
func differ(live, final map[uint64]bool) int {
	n := 0
	for at, is := range live {
		if is != final[at] {
			n++
		}
	}
	return n
}

// arrange makes a trace of some events of another.
func arrange(t snapshot.Trace, order []int32) snapshot.Trace {
	events := new(snapshot.Events)
	for _, i := range order {
		events.Add(t.At(int(i)))
	}
	return snapshot.NewTrace(events, 0, len(order))
}
