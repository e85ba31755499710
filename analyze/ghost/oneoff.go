package ghost

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// OneOff is memory of one stack that was allocated in the trace and lives at its end, and that
// does not grow. It is no accusation: inputs, caches and results are of this kind.
type OneOff struct {
	Stack snapshot.StackID `json:"-"`
	Site  string           `json:"site"` // of Stack, "" without frames
	Count int64            `json:"count"`
	Bytes int64            `json:"bytes"`       // rounded
	First int              `json:"first_event"` // of the first birth
}

// The limits of OneOffs: how many there are at most, and the least share of the active memory.
const (
	maxOneOffs  = 10
	oneOffShare = 0.05
)

// OneOffs lists large survivors that no growth has and that do not wait for Python's collector
// (late, nil for none), most bytes first. Parameters, optimizer state and what was allocated
// without Python frames are left out.
func OneOffs(s *snapshot.Snapshot, t *timeline.Timeline, growths []Growth, late *Late) []OneOff {
	c := newCode(s)
	horizon := int32(t.Trace.Len() - 1)
	var accused []snapshot.StackID
	for i := range growths {
		accused = append(accused, growths[i].Stacks...)
	}
	if late != nil {
		accused = append(accused, late.Stacks...)
	}
	byStack := map[snapshot.StackID]*OneOff{}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Stack <= snapshot.EmptyStack || end(l, horizon) != none ||
			l.Requested == frames.WorkspaceSize {
			continue
		}
		o := byStack[l.Stack]
		if o == nil {
			o = &OneOff{Stack: l.Stack, First: int(l.Born)}
			byStack[l.Stack] = o
		}
		o.Count++
		o.Bytes += l.Rounded
	}
	out := []OneOff{}
	for stack, o := range byStack {
		if float64(o.Bytes) >= oneOffShare*float64(t.Final.Active) && !slices.Contains(accused, stack) &&
			c.sort(stack)&(ofModel|nameless) == 0 {
			out = append(out, *o)
		}
	}
	slices.SortFunc(out, func(a, b OneOff) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.First, b.First))
	})
	out = out[:min(len(out), maxOneOffs)]
	for i := range out {
		out[i].Site = attribution.Site(s, out[i].Stack)
	}
	return out
}
