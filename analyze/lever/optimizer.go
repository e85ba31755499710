package lever

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// optimizers weighs the temporaries of optimizers: memory that is freed before anything but the optimizer allocates.
func (f *finder) optimizers() {
	var steps [handmade + 1]struct {
		finding.Lever
		most  int64
		stack snapshot.StackID
	}
	next := f.warm // the first row behind it that other code allocated
	for _, row := range f.rows {
		l := &f.t.Lives[row]
		if k := f.kind(l.Stack); l.Born >= 0 && k.optimizes() && l.Freed >= 0 {
			next = max(next, int(row)+1)
			for next < len(f.t.Lives) && f.optimizes(next) {
				next++
			}
			if next < len(f.t.Lives) && f.t.Lives[next].Born < l.Freed {
				continue
			}
			v := &steps[k]
			count(&v.Lever, l)
			if l.Rounded > v.most {
				v.most, v.stack = l.Rounded, l.Stack
			}
		}
	}
	if v := &steps[foreach]; v.Bytes >= leastBytes {
		v.Kind, v.Confidence = finding.ForeachStep, finding.High
		v.Site = f.site(v.stack)
		for _, id := range f.s.Stacks.Get(v.stack) {
			if name := f.name(id); strings.HasPrefix(name, foreachFunction) {
				v.Function = name
			}
		}
		f.cutTemporaries(foreach, v.Function)
		f.weigh(v.Lever)
	}
	if v := &steps[handmade]; v.Bytes >= leastBytes && f.isOwn(v.stack) {
		v.Kind, v.Confidence, v.AtMost = finding.OptimizerStep, finding.Medium, true
		v.Site = f.site(v.stack)
		f.cutTemporaries(handmade, "")
		f.weigh(v.Lever)
	}
}

func (f *finder) optimizes(row int) bool { return f.kind(f.t.Lives[row].Stack).optimizes() }

// cutTemporaries takes those of one kind of optimizer out of the whole trace. For those of a foreach function it
// puts what the same update takes for one parameter at a time.
func (f *finder) cutTemporaries(of kind, function string) {
	lives := f.t.Lives
	var call []int32 // rows of one call of the optimizer, latest first
	next := int32(f.t.Trace.Len())
	for row := len(lives) - 1; row >= f.warm; row-- {
		l := &lives[row]
		k := f.kind(l.Stack)
		switch {
		case !k.optimizes():
			next = l.Born
			f.oneByOne(call, function)
			call = call[:0]
		case k == of && l.Freed >= 0 && l.Freed <= next:
			f.cut(l, l.Born, l.Freed)
			if of == foreach {
				call = append(call, int32(row))
			}
		}
	}
	f.oneByOne(call, function)
}

// oneByOne adds what the single-tensor form of an update takes at most, over the time that the temporaries of its
// foreach form lived. For each parameter Adam makes the square root of its second moment, then its quotient, while
// the quotient of the parameter before is still referred to (torch/optim/adam.py, _single_tensor_adam, as of 2.0 to
// 2.15; adamw.py until 2.6). For other optimizers this is a bound.
func (f *finder) oneByOne(call []int32, function string) {
	if len(call) == 0 {
		return
	}
	slices.Reverse(call)
	first, last := f.t.Lives[call[0]].Born, int32(0)
	lists := map[snapshot.StackID]bool{} // a foreach operation is one stack
	var most, bytes int64
	for i, row := range call {
		l := &f.t.Lives[row]
		last = max(last, l.Freed)
		lists[l.Stack] = true
		need := 2 * l.Rounded
		if i > 0 && f.t.Lives[call[i-1]].Stack == l.Stack {
			need += f.t.Lives[call[i-1]].Rounded
		}
		most, bytes = max(most, need), max(bytes, l.Rounded)
	}
	if more := int64(len(lists) - 1); more > 0 {
		most += more * bytes
	}
	if !isAdam(function) {
		most = max(most, int64(len(lists)+2)*bytes)
	}
	f.add(most, first, last)
}

// isAdam tells the optimizers of which oneByOne knows to the byte what they take.
func isAdam(function string) bool {
	return function == foreachFunction+"adam" || function == foreachFunction+"adamw"
}

// isOwn reports whether the program's own code makes an update, not that of an installed optimizer.
func (f *finder) isOwn(stack snapshot.StackID) bool {
	for _, id := range f.s.Stacks.Get(stack) {
		switch c := frames.Of(f.s, id); {
		case c.Origin() == frames.User:
			return true
		case c.Origin() == frames.Other, c.Part() == frames.Optimizer:
			return false
		}
	}
	return false
}

// isUsers reports whether code outside of installed packages allocated.
func (f *finder) isUsers(stack snapshot.StackID) bool {
	return slices.ContainsFunc(f.s.Stacks.Get(stack), func(id snapshot.FrameID) bool {
		return frames.Of(f.s, id).Origin() == frames.User
	})
}
