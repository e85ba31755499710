package timeline

import (
	"cmp"
	"slices"
)

// StateAt gives the layout right after an event; -1 is before the trace, and larger numbers
// than the trace has mean its end. It takes time in the number of lives.
func (t *Timeline) StateAt(event int) *State {
	event = min(max(event, -1), t.Trace.Len()-1)
	st := &State{Event: event}
	if event >= 0 {
		st.Time = t.Trace.At(event).Time
	}
	rs := slices.Clone(ranges(t.Initially))
	for i := range t.Changes {
		if t.Changes[i].Event > event {
			break
		}
		rs.apply(&t.Changes[i])
	}
	var live []int32
	for i := range t.Lives {
		l := &t.Lives[i]
		if int(l.Born) > event {
			break // the rest is younger
		}
		if !l.LiveAfter(event) {
			continue
		}
		live = append(live, int32(i))
		st.Totals.Active += l.Rounded
		st.Totals.Requested += l.Requested
		if l.FreeRequested == -1 || int(l.FreeRequested) > event {
			st.Totals.Allocated += l.Rounded
		}
	}
	slices.SortFunc(live, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Lives[a].Addr, t.Lives[b].Addr), cmp.Compare(a, b))
	})
	st.Segments = make([]SegmentState, len(rs))
	for i := range rs {
		st.Segments[i].Range = rs[i]
		st.Totals.Reserved += rs[i].Size
	}
	seg, at := 0, uint64(0)
	for _, row := range live {
		l := &t.Lives[row]
		end := l.Addr + uint64(l.Rounded)
		for seg < len(rs) && rs[seg].end() <= l.Addr {
			seg++
		}
		if seg == len(rs) || l.Addr < rs[seg].Addr || l.Addr < at || end > rs[seg].end() {
			st.Outside = append(st.Outside, row)
			continue
		}
		at = end
		st.Segments[seg].Live = append(st.Segments[seg].Live, row)
		st.Segments[seg].Active += l.Rounded
	}
	return st
}
