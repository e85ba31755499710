package category

import (
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
)

// Sample is what the active memory is for right after Event, the one of the events First to
// Last after which most is active: peaks are never lost between samples.
type Sample struct {
	First, Last, Event int
	Bytes              [numCategories]int64 // rounded bytes by category; sums to the active bytes
}

// Over samples a device up to n times, evenly spread over its trace. It takes 8 bytes per
// event while it runs.
func (t *Table) Over(tl *timeline.Timeline, n int) []Sample {
	events := tl.Trace.Len()
	out := make([]Sample, min(n, events))
	if len(out) == 0 {
		return nil
	}
	change := make([]int64, events)
	for i := range tl.Lives {
		l := &tl.Lives[i]
		change[max(l.Born, 0)] += l.Rounded // those from before the trace too
		if l.Freed >= 0 {
			change[l.Freed] -= l.Rounded
		}
	}
	var active int64
	for k := range out {
		s := &out[k]
		s.First, s.Last = k*events/len(out), (k+1)*events/len(out)-1
		s.Event = s.First
		most := int64(-1 << 63)
		for e := s.First; e <= s.Last; e++ {
			if active += change[e]; active > most {
				most, s.Event = active, e
			}
		}
	}
	// A life takes part in a run of samples: add it to the first and take it off after the last.
	from := func(e int32) int { return sort.Search(len(out), func(k int) bool { return out[k].Event >= int(e) }) }
	for i := range tl.Lives {
		l := &tl.Lives[i]
		c := t.of[i].category
		if k := from(l.Born); k < len(out) {
			out[k].Bytes[c] += l.Rounded
		}
		if l.Freed >= 0 {
			if k := from(l.Freed); k < len(out) {
				out[k].Bytes[c] -= l.Rounded
			}
		}
	}
	for k := 1; k < len(out); k++ {
		for c := range out[k].Bytes {
			out[k].Bytes[c] += out[k-1].Bytes[c]
		}
	}
	return out
}
