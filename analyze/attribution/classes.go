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
	stack   snapshot.StackID
	noStack string // why there are no frames, empty when there are
	forward []frame
	kept    bool
	row     int32 // of Holders, -1 before its first block
}

// alone is the class without its forward traceback.
func (c *class) alone() *class { return &class{stack: c.stack, noStack: c.noStack} }

type classes struct {
	s         *snapshot.Snapshot
	q         *Query
	traced    bool
	matched   []int8   // by frame, for Match: 0 not yet known, 1 no, 2 yes
	unmatched []int8   // the same for Exclude
	byStack   []*class // of blocks without a forward traceback
	others    map[classKey]*class
}

type classKey struct {
	stack   snapshot.StackID // 0 without frames
	noStack string
	forward snapshot.StringID
}

func newClasses(s *snapshot.Snapshot, t *timeline.Timeline, q *Query) *classes {
	return &classes{
		s: s, q: q, traced: t.Trace.Len() > 0,
		matched: make([]int8, s.Frames.Len()+1), unmatched: make([]int8, s.Frames.Len()+1),
		byStack: make([]*class, s.Stacks.Len()+1), others: map[classKey]*class{},
	}
}

// of gives the class of a block that was born with a label.
func (c *classes) of(l *timeline.Life, label snapshot.LabelID) *class {
	k := classKey{stack: l.Stack}
	if len(c.s.Stacks.Get(l.Stack)) == 0 {
		k.stack, k.noStack = 0, c.noStack(l)
	}
	if label != 0 {
		k.forward = c.s.Labels.Get(label).ForwardFrames
	}
	common := k.forward == 0 && k.noStack == ""
	v := c.byStack[k.stack]
	if !common {
		v = c.others[k]
	}
	if v != nil {
		return v
	}
	v = &class{stack: k.stack, noStack: k.noStack, row: -1}
	if k.forward != 0 {
		v.forward = forwardFrames(c.s.Strings.Get(k.forward))
	}
	v.kept = (c.q.Match == nil || c.any(c.q.Match, c.matched, v)) &&
		(c.q.Exclude == nil || !c.any(c.q.Exclude, c.unmatched, v))
	if common {
		c.byStack[k.stack] = v
	} else {
		c.others[k] = v
	}
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
