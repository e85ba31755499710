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
	Stack     snapshot.StackID // 0 when none was recorded
	Count     int64
	Rounded   int64  // bytes taken in segments
	Requested int64  // bytes asked for
	PreTrace  int64  // rounded bytes of pre-trace blocks
	Site      string // "model.py:26 forward", empty without frames
	// Frames is the stack for people, innermost first and without plumbing: "file:line
	// function". Only the MaxFrames largest groups have it.
	Frames []string
}

// MaxFrames is how many groups of a state carry their frames as text.
const MaxFrames = 256

// Live groups the live blocks of a state by stack, most rounded bytes first. The groups sum
// up to the state's active bytes.
func Live(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State) []Group {
	rows := make([]int32, s.Stacks.Len()+1)
	var groups []Group
	add := func(row int32) {
		l := &t.Lives[row]
		g := rows[l.Stack]
		if g == 0 {
			groups = append(groups, Group{Stack: l.Stack})
			g = int32(len(groups))
			rows[l.Stack] = g
		}
		p := &groups[g-1]
		p.Count++
		p.Rounded += l.Rounded
		p.Requested += l.Requested
		if l.Born < 0 {
			p.PreTrace += l.Rounded
		}
	}
	for i := range st.Segments {
		for _, row := range st.Segments[i].Live {
			add(row)
		}
	}
	for _, row := range st.Outside {
		add(row)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Rounded, a.Rounded), cmp.Compare(a.Stack, b.Stack))
	})
	for i := range groups {
		g := &groups[i]
		g.Site = Site(s, g.Stack)
		if i < MaxFrames {
			g.Frames = Frames(s, g.Stack)
		}
	}
	return groups
}
