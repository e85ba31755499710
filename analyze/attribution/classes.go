package attribution

import (
	"regexp"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// class is all blocks with one stack and one forward traceback: what is worked out from
// frames is worked out once for each.
type class struct {
	classKey
	forward []frame
	kept    bool

	row   int32    // of Holders, -1 before its first block
	path  []string // in the tree, nil before its first block
	known bool     // path is not only what stands for an unknown one
}

type classKey struct {
	stack   snapshot.StackID // 0 without frames
	noStack string           // why there are no frames, empty when there are
	text    snapshot.StringID
}

// alone is the class without its forward traceback.
func (c *class) alone() *class { return &class{classKey: classKey{stack: c.stack, noStack: c.noStack}} }

// portion is the live blocks of a class that were born with one label and lie in one segment.
type portion struct {
	*class
	label    snapshot.LabelID
	segment  int    // its place in State.Segments, -1 for none
	category string // only of ByCategory
}

// portions groups the live blocks that a query is about; leftOut are those that its Match and
// Exclude take away.
func portions(
	s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State, q *Query,
) (kept []Keyed[portion], leftOut Sum) {
	c := &classes{
		s: s, q: q, traced: t.Trace.Len() > 0, all: map[classKey]*class{},
		matched: make([]int8, s.Frames.Len()+1), unmatched: make([]int8, s.Frames.Len()+1),
	}
	all := GroupBy(t, st, func(segment int, row int32) portion {
		l := &t.Lives[row]
		p := portion{segment: segment}
		if l.Born >= 0 && s.Labels.Len() > 0 { // nothing is known of pre-trace blocks
			p.label = t.Trace.At(int(l.Born)).Label
		}
		p.class = c.of(l, p.label)
		if q.By == ByCategory && p.kept {
			p.category = q.Category(row)
		}
		return p
	})
	kept = slices.DeleteFunc(all, func(p Keyed[portion]) bool {
		if !p.Key.kept {
			leftOut.Add(p.Sum)
		}
		return !p.Key.kept
	})
	return kept, leftOut
}

type classes struct {
	s         *snapshot.Snapshot
	q         *Query
	traced    bool
	matched   []int8 // by frame, for Match: 0 not yet known, 1 no, 2 yes
	unmatched []int8 // the same for Exclude
	all       map[classKey]*class
}

// of gives the class of a block that was born with a label.
func (c *classes) of(l *timeline.Life, label snapshot.LabelID) *class {
	k := classKey{stack: l.Stack}
	if len(c.s.Stacks.Get(l.Stack)) == 0 {
		k.stack, k.noStack = 0, c.noStack(l)
	}
	if label != 0 {
		k.text = c.s.Labels.Get(label).ForwardFrames
	}
	if v := c.all[k]; v != nil {
		return v
	}
	v := &class{classKey: k, row: -1}
	if k.text != 0 {
		v.forward = forwardFrames(c.s.Strings.Get(k.text))
	}
	v.kept = (c.q.Match == nil || c.any(c.q.Match, c.matched, v)) &&
		(c.q.Exclude == nil || !c.any(c.q.Exclude, c.unmatched, v))
	c.all[k] = v
	return v
}

// any reports whether a frame of a class matches.
func (c *classes) any(re *regexp.Regexp, known []int8, v *class) bool {
	for _, id := range c.s.Stacks.Get(v.stack) {
		if known[id] == 0 {
			known[id] = 1
			if f := frameOf(c.s, id); (c.q.Internals || f.class.Origin() != frames.Plumbing) && f.matches(re) {
				known[id] = 2
			}
		}
		if known[id] == 2 {
			return true
		}
	}
	return slices.ContainsFunc(v.forward, func(f frame) bool { return f.matches(re) })
}

// Lines that stand for a stack without frames.
const (
	NoFrames      = "(recorded without frames)"
	NoStackBefore = "(before the trace, no recorded stack)"
	NoStack       = "(no recorded stack)"
)

// noStack says why a block has no frames. Blocks of a dump have a list of frames even when
// nothing was recorded, which for events is told apart (snapshot/SPEC.md 2.3, 2.4).
func (c *classes) noStack(l *timeline.Life) string {
	switch {
	case l.Born < 0 && c.traced:
		return NoStackBefore
	case l.Born >= 0 && l.Stack == snapshot.EmptyStack:
		return NoFrames
	}
	return NoStack
}
