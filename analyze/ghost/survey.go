package ghost

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// census is what one look at all lives up to a horizon tells of each stack.
type census struct {
	t         *timeline.Timeline
	horizon   int32
	stacks    []stackCount // by stack
	survivors []int32      // rows of Lives that the program has at the horizon
}

type stackCount struct {
	born, live int32 // allocations of the trace, and the survivors among them
	last       int64 // requested bytes of the last one, -1 when each was not larger than the one before
}

// survey counts up to a horizon.
func survey(s *snapshot.Snapshot, t *timeline.Timeline, horizon int32) *census {
	m := &census{t: t, horizon: horizon, stacks: make([]stackCount, s.Stacks.Len()+1)}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born > horizon {
			break
		}
		survives := end(l, horizon) == none
		if survives {
			m.survivors = append(m.survivors, int32(i))
		}
		if l.Born < 0 {
			continue
		}
		n := &m.stacks[l.Stack]
		n.born++
		if survives {
			n.live++
		}
		switch {
		case n.last < 0:
		case l.Requested > n.last:
			n.last = l.Requested
		default:
			n.last = -1
		}
	}
	return m
}

// births are the stacks that may grow, of those for which of holds where it is not nil: those with enough survivors.
func (m *census) births(c *code, of func(snapshot.StackID) bool) map[snapshot.StackID][]int32 {
	survive := make([]int32, len(m.stacks))
	counts := m.counts()
	for _, row := range m.survivors {
		if l := &m.t.Lives[row]; l.Stack > 0 && counts(l) {
			survive[l.Stack]++
		}
	}
	out := map[snapshot.StackID][]int32{}
	for i, n := range survive {
		stack := snapshot.StackID(i)
		if n >= MinLaps && (of == nil || of(stack) && c.sort(stack)&ofModel == 0) {
			out[stack] = make([]int32, 0, m.stacks[i].born)
		}
	}
	return out
}

// counts tells the allocations by which stacks grow.
func (m *census) counts() func(*timeline.Life) bool {
	private := privatePools(m.t)
	return func(l *timeline.Life) bool {
		if l.Born < 0 || l.Requested == frames.WorkspaceSize {
			return false
		}
		for i := range private {
			if l.Addr-private[i].Addr < uint64(private[i].Size) {
				return false
			}
		}
		return true
	}
}

// rising are the stacks that may rebuild a tensor: those of which each block is larger than the one before.
func (m *census) rising(c *code, of func(snapshot.StackID) bool) map[snapshot.StackID][]int32 {
	trains, _ := c.trains()
	out := map[snapshot.StackID][]int32{}
	for i := range m.stacks {
		n, stack := &m.stacks[i], snapshot.StackID(i)
		if n.last < 0 || stack <= snapshot.EmptyStack || n.born <= MinLaps || n.live == 0 || n.live > maxSurvivors ||
			of != nil && !of(stack) || c.sort(stack)&(ofModel|nameless) != 0 || !trains && c.sort(stack)&inModule != 0 {
			continue
		}
		out[stack] = make([]int32, 0, n.born)
	}
	return out
}

// collect fills in the rows of Lives of stacks: all that count of those with births, all of those that rise.
func (m *census) collect(births, rising map[snapshot.StackID][]int32) {
	lists := make([]struct{ grows, rises []int32 }, len(m.stacks))
	for stack, rows := range births {
		lists[stack].grows = rows
	}
	for stack, rows := range rising {
		lists[stack].rises = rows
	}
	counts := m.counts()
	for i := range m.t.Lives {
		l := &m.t.Lives[i]
		if l.Born > m.horizon {
			break
		}
		to := &lists[l.Stack]
		if to.grows != nil && counts(l) {
			to.grows = append(to.grows, int32(i))
		}
		if to.rises != nil && l.Born >= 0 {
			to.rises = append(to.rises, int32(i))
		}
	}
	for stack := range births {
		births[stack] = lists[stack].grows
	}
	for stack := range rising {
		rising[stack] = lists[stack].rises
	}
}

// privatePools are the ranges of addresses that were ever reserved for a private pool, in no order.
func privatePools(t *timeline.Timeline) []timeline.Range {
	all := slices.Clone(t.Initially)
	for i := range t.Changes {
		if t.Changes[i].Add {
			all = append(all, t.Changes[i].Range)
		}
	}
	return slices.DeleteFunc(all, func(r timeline.Range) bool { return r.Pool == (snapshot.PoolID{}) })
}

// liveSizes counts the blocks at the horizon that may be parameters, by rounded size: those that have Python frames and
// are no activations, or are from before the trace.
func (m *census) liveSizes(c *code) map[int64]int {
	out := map[int64]int{}
	for _, row := range m.survivors {
		if l := &m.t.Lives[row]; l.Born < 0 ||
			c.sort(l.Stack)&nameless == 0 && c.sort(l.Stack)&(inModule|ofModel) != inModule {
			out[l.Rounded]++
		}
	}
	return out
}
