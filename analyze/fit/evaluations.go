package fit

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Programs evaluate with batches of their own, which are as large whatever they train with, or with as many items as in training: a single
// recording tells by the sizes that both make.

// evaluation says of a stack whether an evaluation goes through it, and of what batches.
type evaluation uint8

const (
	noEvaluation evaluation = iota
	sameBatch               // most of what modules make is as large as in training
	ownBatch
)

// statement is what is known of a frame outside of all modules. Bytes are requested.
type statement struct {
	calls   bool // modules
	trained bool // a backward pass lets go of what these make
	times   int  // it runs, counting once what is between two backward passes
	last    int  // how many backward passes there are before it runs last, plus 1

	bytes, alike int64 // what modules make, and what of that has a size which training makes, too
}

// evaluations says by stack what is of evaluations: of a statement that calls modules which no backward pass goes back through, and that
// comes before few of these, as a teacher is called before most, or behind the last. It is nil where nothing is trained.
func (r *recording) evaluations() []evaluation {
	outside := make([][]snapshot.FrameID, r.Snapshot.Stacks.Len()+1)
	for i := range outside {
		outside[i] = outsideModules(r.Snapshot, snapshot.StackID(i))
	}
	all := make([]statement, r.Snapshot.Frames.Len()+1)
	passes := r.statements(outside, all)
	if !slices.ContainsFunc(all, func(s statement) bool { return s.trained }) {
		return nil
	}
	isApart := func(id snapshot.FrameID) bool {
		s := &all[id]
		return s.calls && !s.trained && (2*s.times <= passes || s.times == 1 && s.last == passes+1)
	}
	apart := make([]snapshot.FrameID, len(outside)) // by stack
	for i, ids := range outside {
		if at := slices.IndexFunc(ids, isApart); at >= 0 {
			apart[i] = ids[at]
		}
	}
	lives, sizes := r.Timeline.Lives[r.warm:], map[int64]bool{}
	for i := range lives {
		if l := &lives[i]; apart[l.Stack] == 0 && r.phase(l.Stack) == "forward" {
			sizes[l.Requested] = true
		}
	}
	for i := range lives {
		if l := &lives[i]; apart[l.Stack] != 0 && r.phase(l.Stack) == "forward" {
			s := &all[apart[l.Stack]]
			if s.bytes += l.Requested; sizes[l.Requested] {
				s.alike += l.Requested
			}
		}
	}
	out := make([]evaluation, len(outside))
	for i, id := range apart {
		switch {
		case id == 0:
		case 2*all[id].alike >= all[id].bytes:
			out[i] = sameBatch
		default:
			out[i] = ownBatch
		}
	}
	return out
}

// statements finds out what is known of each frame, and gives how many backward passes there are.
func (r *recording) statements(outside [][]snapshot.FrameID, all []statement) (passes int) {
	lives, backward, pass := r.Timeline.Lives, false, 0 // pass is the first row of the backward pass
	for row := r.warm; row < len(lives); row++ {
		l := &lives[row]
		phase := r.phase(l.Stack)
		if is := phase == "backward"; is != backward {
			if backward = is; is {
				passes++
				pass = row
			}
		}
		if phase == "forward" {
			for _, id := range outside[l.Stack] {
				s := &all[id]
				if s.calls = true; s.last != passes+1 {
					s.last = passes + 1
					s.times++
				}
			}
		}
		if !backward {
			continue
		}
		next := len(r.gives)
		if row+1 < len(lives) {
			next = int(lives[row+1].Born)
		}
		for _, gone := range r.gives[l.Born:next] {
			if gone < int32(r.warm) || int(gone) >= pass || r.phase(lives[gone].Stack) != "forward" {
				continue
			}
			for _, id := range outside[lives[gone].Stack] {
				all[id].trained = true
			}
		}
	}
	return passes
}

// outsideModules are the frames of Python of a stack outside of all modules, from the outermost on.
func outsideModules(s *snapshot.Snapshot, stack snapshot.StackID) (out []snapshot.FrameID) {
	for _, id := range slices.Backward(s.Stacks.Get(stack)) {
		switch class := frames.Of(s, id); {
		case class.Part() == frames.ModuleCall, class.Part() == frames.ModuleWrapper, class.Has(frames.Called):
			return out
		case class.Has(frames.Python):
			out = append(out, id)
		}
	}
	return out
}
