package attribution

import "snapana/snapshot"

// visible lists the frames of a stack that are worth a line, innermost first. All are without
// the filter; with it, those of the interpreter and the dispatcher are left out, and C++
// frames too where there are Python frames: with stacks="all" dozens of them lie below each
// call of an operator. When the filter would leave nothing, nothing is left out.
func visible(s *snapshot.Snapshot, stack snapshot.StackID, internals bool) []snapshot.FrameID {
	ids := s.Stacks.Get(stack)
	if internals {
		return ids
	}
	var python, clean []snapshot.FrameID
	for _, id := range ids {
		f := s.Frames.Get(id)
		if originOf(s, f) == plumbing {
			continue
		}
		clean = append(clean, id)
		if IsPython(s.Strings.Get(f.File)) {
			python = append(python, id)
		}
	}
	switch {
	case len(python) > 0:
		return python
	case len(clean) > 0:
		return clean
	}
	return ids
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
