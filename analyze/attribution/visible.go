package attribution

import (
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// visible lists the frames of a stack that are worth a line, innermost first. All are without
// the filter; with it, those of the interpreter and the dispatcher are left out, and C++
// frames too where there are Python frames: with stacks="all" dozens of them lie below each
// call of an operator. Of C++ alone, the core of torch is left out. When the filter would leave
// nothing, less is left out.
func visible(s *snapshot.Snapshot, stack snapshot.StackID, internals bool) []snapshot.FrameID {
	ids := s.Stacks.Get(stack)
	if internals {
		return ids
	}
	least := frames.Plumbing
	for _, id := range ids {
		least = max(least, frames.Of(s, id).Origin())
	}
	least = min(least, frames.Library)
	var out []snapshot.FrameID
	for _, id := range ids {
		if frames.Of(s, id).Origin() >= least {
			out = append(out, id)
		}
	}
	return out
}

// FrameText is a frame for people, "file:line function": without the folders above an
// installed package, and of C++ symbols only the name.
func FrameText(s *snapshot.Snapshot, id snapshot.FrameID) string {
	f := s.Frames.Get(id)
	file := s.Strings.Get(f.File)
	if name := s.Strings.Get(f.Name); !frames.IsPython(file) && name != "" {
		at := forwardFrame{name: frames.CppName(name), line: int(f.Line)}
		if file == "" || file == "??" {
			return at.name
		}
		return at.text(frames.Base(file))
	}
	return text(s, f, frames.Short(file))
}
