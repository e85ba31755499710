package lever

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// mostGroups bounds the stacks that are told apart, and mostHeld those that are tried.
const (
	mostGroups = 32
	mostHeld   = 4
)

// held weighs memory of the program's own code that stands at the peak, was made long before the phase of the peak
// began, and is freed long after it ended. What is used in a phase is as a rule made right before it, and freed right
// after it. A phase is one line of the function in which the stacks of both part.
func (f *finder) held() {
	type group struct {
		finding.Lever
		stack snapshot.StackID
	}
	now := f.peakStack()
	if now == nil {
		return
	}
	var groups []group
	for _, row := range f.rows {
		l := &f.t.Lives[row]
		c, _ := f.uses.Of(row)
		if l.Born < 0 || l.Freed < 0 || f.kind(l.Stack) != other || c != category.Other && c != category.Input {
			continue
		}
		g := slices.IndexFunc(groups, func(g group) bool { return g.stack == l.Stack })
		if g < 0 {
			if len(groups) == mostGroups {
				continue
			}
			g, groups = len(groups), append(groups, group{stack: l.Stack})
		}
		count(&groups[g].Lever, l)
	}
	sorting.Stable(groups, func(a, b group) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range groups[:min(len(groups), mostHeld)] {
		g := &groups[i]
		if int64(g.Bytes) < f.least || !f.isUsers(g.stack) {
			return
		}
		frames := f.s.Stacks.Get(g.stack)
		depth, same := f.fork(frames, now)
		during, ok := f.line(now, depth)
		if !same || !ok {
			continue
		}
		f.cutIdle(&g.Lever, g.stack, depth, now)
		g.Kind, g.Site, g.During = finding.Held, f.site(g.stack), during
		g.Confidence, g.Inferred, g.AtMost = finding.Low, true, true
		f.weigh(g.Lever)
	}
}

// peakStack is that of the last allocation up to the peak that has frames.
func (f *finder) peakStack() []snapshot.FrameID {
	at, _ := slices.BinarySearchFunc(f.lives(), int32(f.event+1), compareBirth)
	for row := f.warm + at - 1; row >= f.warm; row-- {
		if st := f.t.Lives[row].Stack; st > snapshot.EmptyStack {
			return f.s.Stacks.Get(st)
		}
	}
	return nil
}

// How many events are long: a share of the trace, and so many at least.
const (
	apartShare = 20
	apartLeast = 50
)

// phase is the time of one line of a function, from its first allocation to its last; -1 and -1 is none.
type phase struct{ first, last int32 }

func (p *phase) add(event int32) {
	if p.first < 0 {
		p.first = event
	}
	p.last = event
}

// cutIdle cuts the blocks of a stack from the end of their own phase on, as long as that is apart from the phase of
// the peak.
func (f *finder) cutIdle(v *finding.Lever, stack snapshot.StackID, depth int, now []snapshot.FrameID) {
	own, peak := phase{-1, -1}, phase{-1, -1}
	frames := f.s.Stacks.Get(stack)
	in := make([]int8, f.s.Stacks.Len()+1)
	for i := range in {
		st := f.s.Stacks.Get(snapshot.StackID(i))
		if n, _ := f.fork(frames, st); n > depth {
			in[i] = 1
		} else if n, _ := f.fork(now, st); n > depth {
			in[i] = 2
		}
	}
	lives := f.lives()
	for i := range lives {
		switch in[lives[i].Stack] {
		case 1:
			own.add(lives[i].Born)
		case 2:
			peak.add(lives[i].Born)
		}
	}
	// What runs between the first and the last time is in a loop with it: the phase begins and ends with that.
	for i := range lives {
		if l := &lives[i]; l.Born > peak.first && l.Born < peak.last && in[l.Stack] == 0 {
			in[l.Stack] = 3
		}
	}
	for i := range lives {
		if in[lives[i].Stack] == 3 && lives[i].Stack > snapshot.EmptyStack {
			peak.first, peak.last = min(peak.first, lives[i].Born), max(peak.last, lives[i].Born)
		}
	}
	*v = finding.Lever{}
	apart := max(int32(f.t.Trace.Len()/apartShare), apartLeast)
	if peak.first-own.last < apart {
		return
	}
	for i := range lives {
		if l := &lives[i]; l.Stack == stack && l.Freed-peak.last >= apart && l.Born <= own.last {
			f.cut(l, own.last+1, l.Freed)
			if f.atPeak(l) {
				count(v, l)
			}
		}
	}
}
