package lever

import (
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// kind is what the code of a stack does.
type kind uint8

const (
	unasked  kind = iota
	other         // the program's own code, or that of its packages
	forward       // an operator as forward code calls it
	backward      // autograd, with the threads that have no Python frames, and recomputation
	foreach       // a foreach optimizer of torch.optim
	handmade      // another optimizer
	unnamed       // no stack was recorded
)

func (k kind) optimizes() bool { return k == foreach || k == handmade }

// foreachFunction begins the names of torch's functions that update all parameters at once (torch/optim).
const foreachFunction = "_multi_tensor_"

// kind of a stack: the innermost telling frame decides, as a step may run the whole program in its closure.
func (f *finder) kind(stack snapshot.StackID) kind {
	if f.kinds == nil {
		f.kinds = make([]kind, f.s.Stacks.Len()+1)
		f.kinds[0] = unnamed
		f.kinds[snapshot.EmptyStack] = backward
	}
	k := &f.kinds[stack]
	if *k == unasked {
		*k = f.kindOf(stack)
	}
	return *k
}

func (f *finder) kindOf(stack snapshot.StackID) kind {
	k := other
	for _, id := range f.s.Stacks.Get(stack) {
		c := frames.Of(f.s, id)
		if c.Origin() < frames.Library && c.Part() == frames.Functional {
			k = forward // an operator in C++: who calls it, an optimizer perhaps, is further out
			continue
		}
		switch c.Part() {
		case frames.Optimizer:
			if strings.HasPrefix(f.name(id), foreachFunction) {
				return foreach
			}
			return handmade
		case frames.Backward, frames.Recompute:
			return backward
		case frames.ModuleCall, frames.Functional, frames.Loss:
			return forward
		}
		if c.Origin() >= frames.Other && f.name(id) == "step" && strings.Contains(f.file(id), "optim") {
			return handmade
		}
	}
	if k == other && frames.PhaseOf(f.s, stack) == frames.InBackward {
		return backward // called by the engine's thread, see frames.Walk
	}
	return k
}

func (f *finder) name(id snapshot.FrameID) string { return f.s.Strings.Get(f.s.Frames.Get(id).Name) }
func (f *finder) file(id snapshot.FrameID) string {
	return frames.Base(f.s.Strings.Get(f.s.Frames.Get(id).File))
}

// fork compares the Python frames of two stacks from the outermost on: it gives how many they share, and whether they
// part within one function, at two of its lines.
func (f *finder) fork(a, b []snapshot.FrameID) (shared int, sameFunction bool) {
	for {
		a, b = f.python(a), f.python(b)
		if len(a) == 0 || len(b) == 0 {
			return shared, false
		}
		if x, y := a[len(a)-1], b[len(b)-1]; x != y {
			p, q := f.s.Frames.Get(x), f.s.Frames.Get(y)
			return shared, p.File == q.File && p.Name == q.Name
		}
		a, b = a[:len(a)-1], b[:len(b)-1]
		shared++
	}
}

// python drops the outermost frames that are C++.
func (f *finder) python(stack []snapshot.FrameID) []snapshot.FrameID {
	for n := len(stack); n > 0; n-- {
		if frames.Of(f.s, stack[n-1]).Has(frames.Python) {
			return stack[:n]
		}
	}
	return nil
}

// line is the Python frame at a depth from outside, as "train.py:26 train"; false where the program's author cannot
// change it, or where it runs inside of a module.
func (f *finder) line(stack []snapshot.FrameID, depth int) (string, bool) {
	at, inModule := f.frameAt(stack, depth)
	if at == 0 {
		return "", false
	}
	return f.text(at), !inModule && frames.Of(f.s, at).Origin() == frames.User
}

// frameAt is the Python frame at a depth from outside, 0 for none, and whether it runs inside of a module.
func (f *finder) frameAt(stack []snapshot.FrameID, depth int) (at snapshot.FrameID, inModule bool) {
	stack = f.python(stack)
	for ; depth > 0 && len(stack) > 0; depth-- {
		inModule = inModule || frames.Of(f.s, stack[len(stack)-1]).IsModuleCall()
		stack = f.python(stack[:len(stack)-1])
	}
	if len(stack) == 0 {
		return 0, inModule
	}
	return stack[len(stack)-1], inModule
}

// text is a frame in words, "train.py:26 train".
func (f *finder) text(id snapshot.FrameID) string { return frames.Bare(attribution.FrameText(f.s, id)) }
