package timeline

import (
	"iter"
	"slices"
	"sort"
)

// checkpoint is the layout after an event, kept so that StateAt need not start at the
// beginning. Between two checkpoints lie at least as many events as either has entries, which
// bounds all of them to a few bytes per event.
type checkpoint struct {
	event   int32
	live    []int32 // rows of Lives, by address
	changes int32   // how many Changes came before
	ranges  []Range // as they were after them; nil where the checkpoint before has none newer
}

const (
	minEvents  = 4096 // between checkpoints
	minChanges = 256  // between checkpoints that keep ranges
)

// StateAt gives the layout right after an event; -1 is before the trace, and larger numbers
// than the trace has mean its end. It takes time in the number of blocks that are live then.
func (t *Timeline) StateAt(event int) *State {
	st, _ := t.stateAt(event, -1, nil)
	return st
}

// States gives the layouts right after events, which must rise: each is built from the one before.
func (t *Timeline) States(events iter.Seq[int]) iter.Seq[*State] {
	return func(yield func(*State) bool) {
		since, live := -1, []int32(nil)
		for event := range events {
			var st *State
			st, live = t.stateAt(event, since, live)
			since = st.Event
			if !yield(st) {
				return
			}
		}
	}
}

// stateAt is StateAt, given the rows that live after an earlier event, by address, nil where they are not known. It
// returns those of its own event.
func (t *Timeline) stateAt(event, since int, rows []int32) (*State, []int32) {
	event = min(max(event, -1), t.Trace.Len()-1)
	st := &State{Event: event}
	if event >= 0 {
		st.Time = t.Trace.Time(event)
	}
	from := sort.Search(len(t.checkpoints), func(i int) bool { return int(t.checkpoints[i].event) > event }) - 1
	rs := t.rangesAt(from, event)
	if c := &t.checkpoints[from]; rows == nil || since < int(c.event) {
		since, rows = int(c.event), c.live
	}
	live := t.liveAt(since, rows, event)
	for _, row := range live {
		l := &t.Lives[row]
		st.Totals.Active += l.Rounded
		st.Totals.Requested += l.Requested
		if l.FreeRequested == -1 || int(l.FreeRequested) > event {
			st.Totals.Allocated += l.Rounded
		}
	}
	st.Segments = make([]SegmentState, len(rs))
	for i := range rs {
		st.Segments[i].Range = rs[i]
		st.Totals.Reserved += rs[i].Size
	}
	// The blocks of a segment are neighbors in live, but for those outside: of these there are copies.
	inside := make([]int32, 0, len(live))
	seg, at := 0, uint64(0)
	for _, row := range live {
		l := &t.Lives[row]
		for seg < len(rs) && rs[seg].End() <= l.Addr {
			seg++
		}
		if seg == len(rs) || l.Addr < rs[seg].Addr || l.Addr < at ||
			uint64(l.Rounded) > rs[seg].End()-l.Addr {
			st.Outside = append(st.Outside, row)
			continue
		}
		at = l.End()
		s := &st.Segments[seg]
		inside = append(inside, row)
		first := len(inside) - 1 - len(s.Live)
		s.Live = inside[first:len(inside):len(inside)]
		s.Active += l.Rounded
	}
	return st, live
}

// rangesAt replays the changes since the last checkpoint that kept ranges.
func (t *Timeline) rangesAt(from, event int) Ranges {
	rs, done := Ranges(t.Initially), 0
	for ; from >= 0; from-- {
		if c := &t.checkpoints[from]; c.ranges != nil {
			rs, done = c.ranges, int(c.changes)
			break
		}
	}
	rs = slices.Clone(rs)
	for ; done < len(t.Changes) && t.Changes[done].Event <= event; done++ {
		rs.Apply(&t.Changes[done])
	}
	return rs
}

// liveAt lists the rows that live after an event, by address: of those that lived after an earlier one, by address,
// and of those born since, what is not freed.
func (t *Timeline) liveAt(since int, rows []int32, event int) []int32 {
	var young []int32
	first := sort.Search(len(t.Lives), func(i int) bool { return int(t.Lives[i].Born) > since })
	for i := first; i < len(t.Lives) && int(t.Lives[i].Born) <= event; i++ {
		if t.Lives[i].LiveAfter(event) {
			young = append(young, int32(i))
		}
	}
	slices.SortFunc(young, t.byAddress)
	live := make([]int32, 0, len(rows)+len(young))
	for _, row := range rows {
		if !t.Lives[row].LiveAfter(event) {
			continue
		}
		for len(young) > 0 && t.byAddress(young[0], row) < 0 {
			live, young = append(live, young[0]), young[1:]
		}
		live = append(live, row)
	}
	return append(live, young...)
}

// byAddress puts rows of Lives in the order of their addresses, and of equal ones by birth.
func (t *Timeline) byAddress(a, b int32) int {
	switch x, y := t.Lives[a].Addr, t.Lives[b].Addr; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return int(a - b)
}
