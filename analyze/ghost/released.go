package ghost

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// gone is the share of the most that a model took, with its optimizer's state, below which it counts as freed.
const gone = 0.5

// released is the last allocation before a trace's model was freed for good, 0 when it was not: what a run kept goes
// with its model when the function returns that has both. Only what was made in the trace is known to be of a model.
func released(t *timeline.Timeline, c *code) int32 {
	var change []int64 // by event; a list, since a map of millions of events takes ten times as long
	horizon := int32(t.Trace.Len() - 1)
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Stack <= snapshot.EmptyStack || c.sort(l.Stack)&ofModel == 0 {
			continue
		}
		if change == nil {
			change = make([]int64, t.Trace.Len())
		}
		change[l.Born] += l.Rounded
		if e := end(l, horizon); e != none {
			change[e] -= l.Rounded
		}
	}
	live, most := int64(0), int64(0)
	for _, n := range change {
		live += n
		most = max(most, live)
	}
	at, least := len(change), gone*float64(most) // at is the first event of the rest, in which the model is gone
	for at > 0 && float64(live) < least {
		at--
		live -= change[at]
	}
	if at == len(change) || at == 0 {
		return 0
	}
	for e := int32(at); e > 0; e-- {
		if t.Trace.Action(int(e)) == snapshot.Alloc {
			return e
		}
	}
	return 0
}
