package timeline

import (
	"cmp"
	"slices"
	"sort"
)

// checkpoint is the layout after an event, kept so that StateAt need not start at the
// beginning. Between two checkpoints lie at least as many events as either has entries, which
// bounds all of them to a few bytes per event.
type checkpoint struct {
	event   int32
	live    []int32 // rows of Lives, placed ones by address
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
	event = min(max(event, -1), t.Trace.Len()-1)
	st := &State{Event: event}
	if event >= 0 {
		st.Time = t.Trace.At(event).Time
	}
	from := sort.Search(len(t.checkpoints), func(i int) bool { return int(t.checkpoints[i].event) > event }) - 1
	rs := t.rangesAt(from, event)
	live := t.liveAt(from, event)
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
	seg, at := 0, uint64(0)
	for _, row := range live {
		l := &t.Lives[row]
		for seg < len(rs) && rs[seg].End() <= l.Addr {
			seg++
		}
		if seg == len(rs) || l.Addr < rs[seg].Addr || l.Addr < at || l.End() > rs[seg].End() {
			st.Outside = append(st.Outside, row)
			continue
		}
		at = l.End()
		st.Segments[seg].Live = append(st.Segments[seg].Live, row)
		st.Segments[seg].Active += l.Rounded
	}
	return st
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

// liveAt lists the rows that live after an event, by address: those of the checkpoint and
// those born since, as far as they are not freed.
func (t *Timeline) liveAt(from, event int) []int32 {
	c := &t.checkpoints[from]
	var old, young []int32
	for _, row := range c.live {
		if t.Lives[row].LiveAfter(event) {
			old = append(old, row)
		}
	}
	first := sort.Search(len(t.Lives), func(i int) bool { return t.Lives[i].Born > c.event })
	for i := first; i < len(t.Lives) && int(t.Lives[i].Born) <= event; i++ {
		if t.Lives[i].LiveAfter(event) {
			young = append(young, int32(i))
		}
	}
	live := append(old, young...)
	slices.SortFunc(live, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Lives[a].Addr, t.Lives[b].Addr), cmp.Compare(a, b))
	})
	return live
}
