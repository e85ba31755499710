package ghost

import (
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// gone is the share of the most that a model took, with its optimizer's state, below which it counts as freed.
const gone = 0.5

// released is the last allocation before a trace's model was freed for good, 0 when it was not: what a run kept goes
// with its model when the function returns that has both. Only what was made in the trace is known to be of a model.
func released(t *timeline.Timeline, c *code) int32 {
	change := map[int32]int64{}
	live, most := int64(0), int64(0)
	horizon := int32(t.Trace.Len() - 1)
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Stack <= snapshot.EmptyStack || c.sort(l.Stack)&ofModel == 0 {
			continue
		}
		change[l.Born] += l.Rounded
		if e := end(l, horizon); e != none {
			change[e] -= l.Rounded
		}
	}
	if len(change) == 0 {
		return 0
	}
	levels := make([]int64, 0, len(change))
	events := slices.Sorted(maps.Keys(change))
	for _, e := range events {
		live += change[e]
		most = max(most, live)
		levels = append(levels, live)
	}
	at := len(events)
	for at > 0 && float64(levels[at-1]) < gone*float64(most) {
		at--
	}
	if at == len(events) || at == 0 {
		return 0
	}
	for e := events[at]; e > 0; e-- {
		if t.Trace.At(int(e)).Action == snapshot.Alloc {
			return e
		}
	}
	return 0
}
