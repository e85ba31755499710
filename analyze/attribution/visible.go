package attribution

import "github.com/snapana/snapana/snapshot"

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
	origins := make([]origin, len(ids))
	best := plumbing
	for i, id := range ids {
		origins[i] = originOf(s, s.Frames.Get(id))
		best = max(best, origins[i])
	}
	least := min(best, library)
	var out []snapshot.FrameID
	for i, id := range ids {
		if origins[i] >= least {
			out = append(out, id)
		}
	}
	return out
}

// IsPython tells the files of Python frames from those of C++ ones, which may be unknown.
func IsPython(file string) bool { return file != "" && !isNative(file) }

// FrameText is a frame for people, "file:line function": without the folders above an
// installed package, and of C++ symbols only the name.
func FrameText(s *snapshot.Snapshot, id snapshot.FrameID) string {
	f := s.Frames.Get(id)
	file := s.Strings.Get(f.File)
	if name := s.Strings.Get(f.Name); !IsPython(file) && name != "" {
		at := forwardFrame{name: cppName(name), line: int(f.Line)}
		if file == "" || file == "??" {
			return at.name
		}
		return at.text(Base(file))
	}
	return text(s, f, shorten(file))
}
