package category

import (
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// ownStates finds the lines at which constructors of a program's own optimizers make states, by stack: several of one
// call that each make tensors of several sizes, and all of those are sizes of parameters that a module was moved with.
// One line that does so mostly makes copies of parameters, as averages of them begin.
func (f *finder) ownStates(s *snapshot.Snapshot) map[snapshot.StackID]bool {
	moved := map[int64]bool{}
	made := map[snapshot.StackID]map[int64]bool{} // sizes
	for i := range f.tl.Lives {
		l := &f.tl.Lives[i]
		switch f.origins[l.Stack] {
		case loading:
			moved[l.Requested] = true
		case building:
			if made[l.Stack] == nil {
				made[l.Stack] = map[int64]bool{}
			}
			made[l.Stack][l.Requested] = true
		}
	}
	lines := map[snapshot.FrameID][]snapshot.StackID{} // by what called the constructor
	for stack, sizes := range made {
		if call := constructed(s, stack); call != 0 && len(sizes) > 1 && all(sizes, moved) {
			lines[call] = append(lines[call], stack)
		}
	}
	out := map[snapshot.StackID]bool{}
	for _, stacks := range lines {
		for _, stack := range stacks {
			out[stack] = len(stacks) > 1
		}
	}
	return out
}

// all reports whether all of some sizes are among others.
func all(sizes, others map[int64]bool) bool {
	for n := range sizes {
		if !others[n] {
			return false
		}
	}
	return true
}

// constructed is the frame that called the constructor which allocates, if it is the program's own and no library does
// so for it; else 0.
func constructed(s *snapshot.Snapshot, stack snapshot.StackID) snapshot.FrameID {
	inside := false
	for _, id := range s.Stacks.Get(stack) {
		switch c := frames.Of(s, id); {
		case !c.Has(frames.Python):
		case inside:
			return id
		case c.Has(frames.Constructor):
			inside = true
		case c.IsLibrary():
			return 0
		}
	}
	return 0
}
