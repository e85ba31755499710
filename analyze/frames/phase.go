package frames

import (
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// Phase is what the program does at a frame, by the innermost call that decides it.
type Phase uint8

// The phases.
const (
	InProgram   Phase = iota // the program's own code, and what frameworks do around it
	InForward                // a module's call
	InRecompute              // a module's call in a backward pass: a checkpoint runs forward a second time
	InBackward               // a call of the autograd engine
	InOptimizer              // an optimizer's step, without what it calls to get a loss
)

// Walk follows a stack from its outermost frame on. A call of a module, of the autograd engine and of an optimizer
// begins a phase. Two of them may run any code of the program's, which ends theirs:
//
//   - an optimizer calls a closure, in which frameworks run the whole step (torch/optim/optimizer.py, Optimizer.step),
//   - torch.compile calls the function that it was given (torch/_dynamo/eval_frame.py), also from a module's call.
//
// The zero value is before the outermost frame.
type Walk struct {
	phase    Phase
	outside  Phase // before the module's call that was entered last
	again    bool  // an activation checkpoint runs its forward code a second time
	called   bool  // of the module's call nothing but wrappers was entered yet
	compiled bool  // torch.compile stands between it and what comes next
	foreign  bool  // the optimizer is not torch's own
	inside   bool  // of some frame of Python
}

// Phase is that of the frame that was entered last.
func (w *Walk) Phase() Phase { return w.phase }

// PhaseOf is the phase of a stack's innermost frame.
func PhaseOf(s *snapshot.Snapshot, stack snapshot.StackID) Phase {
	var w Walk
	for _, id := range slices.Backward(s.Stacks.Get(stack)) {
		w.Enter(Of(s, id))
	}
	return w.Phase()
}

// Enter goes on to the next inner frame, and reports whether a phase begins or ends with it.
func (w *Walk) Enter(c Class) bool {
	part := c.Part()
	outermost := !w.inside
	w.inside = w.inside || c.Has(Python)
	switch {
	case !c.Has(Python) && part == Backward, outermost && c.Has(CalledBack):
		w.phase = InBackward
		return true
	case !c.Has(Python), c.Has(CallsOn):
		return false
	case part == ModuleCall, part == ModuleWrapper:
		if !w.called {
			w.called, w.outside = true, w.phase
		}
		return w.forward()
	case part == Wrapper:
		if !w.called || !c.Has(Compiles) {
			return false
		}
		w.called, w.compiled, w.phase = false, true, w.outside
		return true
	}
	called, compiled := w.called, w.compiled
	w.called, w.compiled = false, false
	switch {
	case part == Backward:
		w.phase = InBackward
		return true
	case part == Recompute:
		w.again = true
		return true
	case part == Optimizer:
		w.phase, w.foreign = InOptimizer, false
		return true
	case c.Has(Called), compiled && c.Has(Forwards):
		w.outside = w.phase
		return w.forward()
	case w.phase != InOptimizer || called || c.Origin() < Other:
		return false
	}
	// Outside of torch, and called by an optimizer: a class of another package's or the user's, or a closure.
	w.foreign = w.foreign || c.Has(Steps)
	if w.foreign && !c.Has(Closes) {
		return false
	}
	w.phase = InProgram
	return true
}

func (w *Walk) forward() bool {
	w.phase = InForward
	if w.again || w.outside == InBackward || w.outside == InRecompute {
		w.phase = InRecompute
	}
	return true
}

// Running marks, by frame, the constructors and loaders in which a phase begins: not they make something there, but the
// program runs in them. It is for all frames of a snapshot.
func Running(s *snapshot.Snapshot) []bool {
	out := make([]bool, s.Frames.Len()+1)
	for stack := range s.Stacks.Len() {
		var walk Walk
		ids := s.Stacks.Get(snapshot.StackID(stack + 1))
		innermost := -1 // that began a phase
		for i, id := range slices.Backward(ids) {
			if walk.Enter(Of(s, id)) && walk.Phase() != InProgram {
				innermost = i
			}
		}
		if innermost < 0 {
			continue
		}
		for _, id := range ids[innermost:] {
			out[id] = out[id] || Of(s, id).Has(Constructor|LoadsModel|Initializes)
		}
	}
	return out
}
