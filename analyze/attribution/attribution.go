// Package attribution says whose memory it is: live bytes grouped by the stack that
// allocated them, and the first frame of the user's own code in a stack.
package attribution

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Group is the live memory that one stack allocated.
type Group struct {
	Stack snapshot.StackID `json:"-"`    // 0 when none was recorded
	Site  string           `json:"site"` // "model.py:26 forward", empty without frames
	Sum
	// Frames is the stack for people, innermost first and without plumbing: "file:line
	// function". Only the MaxFrames largest groups have it.
	Frames []string `json:"frames"`
}

// Name is the line that stands for the group, never empty.
func (g *Group) Name() string {
	switch {
	case g.Site != "":
		return g.Site
	case len(g.Frames) > 0:
		return g.Frames[0]
	case g.Stack == snapshot.EmptyStack:
		return NoFrames
	case g.PreTrace > 0 && g.PreTrace == g.Rounded:
		return NoStackBefore
	}
	return NoStack
}

// Names gives the name of the group of a stack.
func Names(groups []Group) func(snapshot.StackID) string {
	rows := make(map[snapshot.StackID]int, len(groups))
	for i := range groups {
		rows[groups[i].Stack] = i
	}
	return func(id snapshot.StackID) string {
		if i, ok := rows[id]; ok {
			return groups[i].Name()
		}
		return (&Group{Stack: id}).Name()
	}
}

// MaxFrames is how many groups of a state carry their frames as text.
const MaxFrames = 256

// Live groups the live blocks of a state by stack, most rounded bytes first. The groups sum
// up to the state's active bytes.
func Live(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State) []Group {
	var groups []Group
	for _, g := range GroupBy(t, st, func(_ int, row int32) snapshot.StackID { return t.Lives[row].Stack }) {
		groups = append(groups, Group{Stack: g.Key, Sum: g.Sum, Site: Site(s, g.Key)})
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Rounded, a.Rounded), cmp.Compare(a.Stack, b.Stack))
	})
	for i := range groups[:min(len(groups), MaxFrames)] {
		groups[i].Frames = Frames(s, groups[i].Stack)
	}
	return groups
}
