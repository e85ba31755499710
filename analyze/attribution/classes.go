package attribution

import (
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
	s       *snapshot.Snapshot
	traced  bool
	filter  *filter
	byStack []*class // of blocks without a forward traceback
	others  map[classKey]*class
}

type classKey struct {
	stack   snapshot.StackID // 0 without frames
	noStack string
	forward snapshot.StringID
}

func newClasses(s *snapshot.Snapshot, t *timeline.Timeline, q *Query) *classes {
	return &classes{
		s: s, traced: t.Trace.Len() > 0, filter: newFilter(s, q),
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
	if k.forward == 0 && k.noStack == "" {
		if v := c.byStack[k.stack]; v != nil {
			return v
		}
		v := c.make(k)
		c.byStack[k.stack] = v
		return v
	}
	v := c.others[k]
	if v == nil {
		v = c.make(k)
		c.others[k] = v
	}
	return v
}

func (c *classes) make(k classKey) *class {
	v := &class{stack: k.stack, noStack: k.noStack, row: -1}
	if k.forward != 0 {
		v.forward = forwardFrames(c.s.Strings.Get(k.forward))
	}
	v.kept = c.filter.keeps(v.stack, v.forward)
	return v
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
