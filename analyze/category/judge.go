package category

import (
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// soon is how many allocations may pass before a temporary block is freed.
const soon = 16

// finder has what decides about single lives.
type finder struct {
	tl    *timeline.Timeline
	steps *steps.Result

	origins []origin  // by stack
	ruled   []verdict // by stack, what the user's rules say
	trains  bool      // some stack is of an optimizer or a backward pass

	allocs    []int32 // events of all allocations
	backwards []int32 // those of backward passes, by event
	forwards  []int32 // those in forward, by event
	failures  []int32 // out-of-memory events
	lastBack  []int32 // by step, the last of those in it, -1 for none
	firstFwd  []int32 // by step, its first allocation in forward, -1 for none
	sizes     map[int64]bool
	kept      map[kind]int // blocks that live at the end
	calls     int          // stacks that make scratch memory for single calls

	standing map[int32]bool            // workspaces that threads keep, by event of their allocation
	states   map[snapshot.StackID]bool // see ownStates
	batches  map[snapshot.StackID]bool // that made batches, see feeds

	now // lives are judged in order of birth, which spares three searches for each
}

// now is the birth of the life that is judged: the first of allocs, backwards and forwards behind it, and its step, -1
// for none.
type now struct {
	alloc, backward, forward, step int

	last int // the last step that began
}

// advance goes to a birth, no earlier than that before.
func (f *finder) advance(born int32) {
	for f.alloc < len(f.allocs) && f.allocs[f.alloc] <= born {
		f.alloc++
	}
	for f.backward < len(f.backwards) && f.backwards[f.backward] <= born {
		f.backward++
	}
	for f.forward < len(f.forwards) && f.forwards[f.forward] <= born {
		f.forward++
	}
	all := f.steps.Steps
	for f.last+1 < len(all) && all[f.last+1].First <= int(born) {
		f.last++
	}
	if f.step = f.last; f.step >= 0 && int(born) > all[f.step].Last {
		f.step = -1
	}
}

type kind struct {
	stack snapshot.StackID
	size  int64
}

func newFinder(s *snapshot.Snapshot, tl *timeline.Timeline, st *steps.Result, rules []Rule) *finder {
	f := &finder{
		now: now{last: -1}, tl: tl, steps: st, origins: make([]origin, s.Stacks.Len()+1),
		sizes: map[int64]bool{}, kept: map[kind]int{}, batches: map[snapshot.StackID]bool{},
		lastBack: slices.Repeat([]int32{-1}, len(st.Steps)), firstFwd: slices.Repeat([]int32{-1}, len(st.Steps)),
		allocs: make([]int32, 0, len(tl.Lives)), backwards: make([]int32, 0, len(tl.Lives)),
	}
	if len(rules) > 0 {
		f.ruled = applyRules(s, rules)
	}
	for _, e := range tl.OOMs {
		f.failures = append(f.failures, int32(e.Event))
	}
	running := frames.Running(s)
	for i := range f.origins {
		f.origins[i] = originOf(s, running, snapshot.StackID(i))
	}
	callers := map[snapshot.StackID]bool{}
	for i := range tl.Lives {
		l := &tl.Lives[i]
		if isPassing(l) {
			callers[l.Stack] = true
		}
		o := f.origins[l.Stack]
		f.trains = f.trains || o == optimizer || o == backward || o == own
		if l.Freed < 0 && (l.Requested == frames.WorkspaceSize || l.Requested == frames.HopperWorkspaceSize) {
			f.kept[kind{l.Stack, l.Requested}]++
		}
	}
	f.calls = len(callers)
	f.standing = standing(tl, f.origins)
	f.states = f.ownStates(s)
	at := 0
	for i := range tl.Lives {
		l := &tl.Lives[i]
		o := f.origins[l.Stack]
		if o == loading || o == building {
			f.sizes[l.Requested] = true
		}
		if l.Born < 0 {
			continue
		}
		f.allocs = append(f.allocs, l.Born)
		for at < len(st.Steps) && int(l.Born) > st.Steps[at].Last {
			at++
		}
		inStep := at < len(st.Steps) && int(l.Born) >= st.Steps[at].First
		switch {
		case f.isBackward(o):
			f.backwards = append(f.backwards, l.Born)
			if inStep {
				f.lastBack[at] = l.Born
			}
		case o == forward:
			f.forwards = append(f.forwards, l.Born)
			if inStep && f.firstFwd[at] < 0 {
				f.firstFwd[at] = l.Born
			}
		}
	}
	return f
}

// feeds reports whether what the program makes outside of steps is there when a forward pass begins, as a batch is: right
// behind a backward pass, before the first forward, or by code that made such before.
func (f *finder) feeds(l *timeline.Life) bool {
	if !f.trains || l.Freed < 0 || f.forward == len(f.forwards) || l.Freed < f.forwards[f.forward] {
		return false
	}
	return f.forward == 0 || f.batches[l.Stack] || f.backward > 0 && f.backwards[f.backward-1] > f.forwards[f.forward-1]
}

// isBackward takes threads without Python frames for autograd's where the program trains.
func (f *finder) isBackward(o origin) bool {
	return o == backward || o == own || o == frameless && f.trains
}

// end is the event that ends a life, or the trace's length.
func (f *finder) end(l *timeline.Life) int32 {
	if l.Freed >= 0 {
		return l.Freed
	}
	return int32(f.tl.Trace.Len())
}

// between counts the events of a sorted list in (from, to).
func between(events []int32, from, to int32) int {
	a := sort.Search(len(events), func(i int) bool { return events[i] > from })
	b := sort.Search(len(events), func(i int) bool { return events[i] >= to })
	return max(b-a, 0)
}

// before counts the events of a sorted list that come before another, which is most often near its beginning.
func before(events []int32, to int32) int {
	n := 1
	for n < len(events) && events[n-1] < to {
		n *= 2
	}
	events = events[:min(n, len(events))]
	return sort.Search(len(events), func(i int) bool { return events[i] >= to })
}

// atLeast reports whether at least n events of a sorted list, n > 0, come before another.
func atLeast(events []int32, to int32, n int) bool { return n <= len(events) && events[n-1] < to }

func (f *finder) judge(l *timeline.Life) verdict {
	if f.ruled != nil && f.ruled[l.Stack].confidence > None {
		return f.ruled[l.Stack]
	}
	o := f.origins[l.Stack]
	if f.isScratch(l, o) {
		return verdict{Workspace, Medium}
	}
	switch {
	case ofOrigin[o].confidence > None:
		return ofOrigin[o]
	case o == optimizer && !f.leaves(l):
		return verdict{Temporary, High}
	case o == optimizer:
		return verdict{OptimizerState, High}
	case o == caching && l.Born >= 0 && f.short(l):
		return verdict{Temporary, Medium} // the previous state of one that grows
	case o == caching:
		return verdict{KVCache, Medium}
	case o == loading:
		return f.fromModel(l, High)
	case f.states[l.Stack]:
		return verdict{OptimizerState, Medium}
	case o == building:
		return f.fromModel(l, Medium)
	case o == forward || o == recompute:
		return f.fromForward(l, o)
	case o == program:
		return f.fromProgram(l)
	case f.isBackward(o):
		v := f.fromBackward(l)
		if o == own && v == (verdict{Gradient, Low}) {
			return verdict{Temporary, Medium} // what its code works in
		}
		return v
	}
	return verdict{Unknown, None}
}

// ofOrigin are the categories that an origin alone tells.
var ofOrigin = [program + 1]verdict{
	scratch: {Workspace, High}, distributed: {Communication, Medium}, loader: {Input, Medium},
}

// isPassing tells the life of a workspace that is made for one call: with that of cuBLAS comes the result, that of cuBLASLt
// is given back before anything else happens.
func isPassing(l *timeline.Life) bool {
	const most = 4 // events that one of cuBLAS lives
	switch {
	case l.Born < 0 || l.Freed < 0:
		return false
	case l.Requested == frames.LtWorkspaceSize:
		return l.Passing()
	}
	return l.Requested == frames.WorkspaceSize && l.Freed-l.Born <= most
}

// isScratch recognizes a cuBLAS workspace without C++ frames by its size: allocated at the
// first matrix product of a thread and stream, and kept for good; or by every product and freed with it, which lines of
// different shapes do alike.
func (f *finder) isScratch(l *timeline.Life, o origin) bool {
	if f.calls > 1 && isPassing(l) || f.standing[l.Born] {
		return true
	}
	if l.Requested != frames.WorkspaceSize && l.Requested != frames.HopperWorkspaceSize || l.Freed >= 0 ||
		o < backward && o != frameless {
		return false
	}
	if f.kept[kind{l.Stack, l.Requested}] > 2 {
		return false // too many: a tensor of that size
	}
	return l.Requested == frames.WorkspaceSize || !f.sizes[l.Requested] && (o == frameless || o == backward)
}

// standing finds the workspaces that a thread keeps from its first product on and that are as large as many a tensor,
// by when they are asked for: cuBLAS's on Hopper, and cuBLASLt's where that is kept (torch 2.11). Where Python runs
// they come right behind the product's result, by a line that asks for so much once, though it runs again in the next
// pass: one in forward code, and one where autograd's thread runs that anew. Elsewhere in that thread they come in
// the first backward pass, where nothing else of that size stays.
func standing(tl *timeline.Timeline, origins []origin) map[int32]bool {
	found := map[int32]bool{} // by event of their allocation
	sizes := [...]int64{frames.HopperWorkspaceSize, frames.LtWorkspaceSize}
	asked, latest := map[kind]int{}, make([]int32, len(origins)) // by stack, its last birth
	// Where the first backward pass begins, and the forward code behind it.
	back, second := int32(-1), int32(-1)
	for i := range tl.Lives {
		l := &tl.Lives[i]
		if slices.Contains(sizes[:], l.Requested) {
			asked[kind{l.Stack, l.Requested}]++
		}
		if l.Born < 0 {
			continue
		}
		latest[l.Stack] = l.Born
		switch o := origins[l.Stack]; {
		case back < 0 && (o == frameless || o == backward):
			back = l.Born
		case back >= 0 && second < 0 && o == forward:
			second = l.Born
		}
	}
	if second < 0 {
		return found
	}
	behind := func(i int) bool {
		l := &tl.Lives[i]
		if asked[kind{l.Stack, l.Requested}] != 1 || l.Born >= second || latest[l.Stack] < second {
			return false
		}
		next := int32(tl.Trace.Len())
		if i+1 < len(tl.Lives) {
			next = tl.Lives[i+1].Born
		}
		for i--; i > 0 && found[tl.Lives[i].Born]; i-- {
		}
		return i >= 0 && tl.Lives[i].Stack == l.Stack && tl.Lives[i].LiveAfter(int(next)-1)
	}
	for _, size := range sizes {
		first, again := int32(-1), int32(-1)
		var stay []int32
		for i := range tl.Lives {
			l := &tl.Lives[i]
			if l.Requested != size || l.Born < 0 || l.Born >= second || l.Freed >= 0 {
				continue
			}
			switch o := origins[l.Stack]; {
			case first < 0 && l.Born < back && (o == forward || o == program) && behind(i):
				first = l.Born
				found[first] = true
			case first < 0:
			case o == recompute && again < 0 && behind(i):
				again = l.Born
				found[again] = true
			case o == frameless || o == backward:
				stay = append(stay, l.Born)
			}
		}
		if again < 0 && len(stay) == 1 { // where more stay, gradients do
			found[stay[0]] = true
		}
	}
	return found
}

// leaves reports whether a life outlasts the step that it began in; without steps, whether it
// lives at the end.
func (f *finder) leaves(l *timeline.Life) bool {
	if l.Born < 0 {
		return true
	}
	if at := f.step; at >= 0 {
		return int(f.end(l)) > f.steps.Steps[at].Last
	}
	return l.Freed < 0 || atLeast(f.allocs[f.alloc:], l.Freed, len(f.allocs)/4+1)
}

// short reports whether a life ended soon, and not because memory ran out in it: what unwinds then was in use.
func (f *finder) short(l *timeline.Life) bool {
	return l.Freed >= 0 && !atLeast(f.allocs[f.alloc:], l.Freed, soon) && between(f.failures, l.Born, l.Freed) == 0
}

func (f *finder) fromModel(l *timeline.Life, trust Confidence) verdict {
	switch {
	case l.Born >= 0 && f.short(l):
		return verdict{Temporary, Medium}
	case l.Freed >= 0 && trust == Medium && !f.leaves(l):
		return verdict{Temporary, Low}
	}
	return verdict{Parameter, trust}
}

func (f *finder) fromBackward(l *timeline.Life) verdict {
	if l.Born < 0 {
		return verdict{Unknown, None}
	}
	trust := Medium
	if f.sizes[l.Requested] {
		trust = High
	}
	if at := f.step; at >= 0 {
		if f.end(l) > f.lastBack[at] && l.Born <= f.lastBack[at] && !f.briefly(l, f.lastBack[at]) {
			return verdict{Gradient, trust}
		}
		if !f.sizes[l.Requested] {
			return verdict{Gradient, Low}
		}
	}
	// Without steps, or in a pass that is not the last of its step: what some other code's allocation finds alive has outlived the pass.
	if before(f.allocs[f.alloc:], f.end(l)) > before(f.backwards[f.backward:], f.end(l)) {
		return verdict{Gradient, min(trust, Medium)}
	}
	return verdict{Gradient, Low}
}

// briefly reports whether a block lives on past the last allocation of a backward pass only
// because it is an operand of the last operations.
func (f *finder) briefly(l *timeline.Life, last int32) bool {
	return !f.sizes[l.Requested] && l.Freed >= 0 && l.Freed-last < soon &&
		!atLeast(f.backwards[f.backward:], last, soon)
}

func (f *finder) fromForward(l *timeline.Life, o origin) verdict {
	if l.Born < 0 {
		return verdict{Activation, Low}
	}
	switch {
	case o == forward && atLeast(f.backwards[f.backward:], f.end(l), 1):
		return verdict{AutogradSaved, Medium}
	case f.short(l):
		return verdict{Temporary, Medium}
	}
	return verdict{Activation, Medium}
}

func (f *finder) fromProgram(l *timeline.Life) verdict {
	if l.Born < 0 {
		return verdict{Other, Low}
	}
	if at := f.step; at >= 0 && l.Born < f.firstFwd[at] {
		return verdict{Input, Medium}
	}
	if f.step < 0 && f.feeds(l) {
		f.batches[l.Stack] = true
		return verdict{Input, Low}
	}
	if f.short(l) {
		return verdict{Temporary, Medium}
	}
	return verdict{Other, Low}
}
