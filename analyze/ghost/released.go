package ghost

import (
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// gone is the share of the most that a model took, with its optimizer's state, below which it counts as freed.
const gone = 0.5

// released is the last allocation before a trace's model was freed for good, 0 when it was not: what a run kept goes
// with its model when the function returns that has both. Only what was made in the trace is known to be of a model.
func released(t *timeline.Timeline, c *code, m *census) int32 {
	of := make([]bool, len(m.stacks))
	for i := range of {
		of[i] = i > int(snapshot.EmptyStack) && m.stacks[i].born > 0 && c.sort(snapshot.StackID(i))&ofModel != 0
	}
	if !slices.Contains(of, true) {
		return 0
	}
	last := t.Trace.Len() - 1
	model := t.LevelsOf(of)
	most, _ := model.Highest(-1, last)
	had, ok := model.LastReaching(int64(math.Ceil(gone * float64(most))))
	if !ok || had == last {
		return 0
	}
	for e := int32(had + 1); e > 0; e-- {
		if t.Trace.Action(int(e)) == snapshot.Alloc {
			return e
		}
	}
	return 0
}
