package attribution

import (
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Site is the frame that a stack stands for: the innermost one of the user's own code, or
// else of another library than torch, or else the innermost one at all: "model.py:26
// forward". A stack of C++ alone goes by the backward function or the operator that it is in:
// "AddmmBackward0 (backward)". It is empty when the stack has no frames.
func Site(s *snapshot.Snapshot, stack snapshot.StackID) string {
	f, rank, ok := siteFrame(s, stack)
	if !ok {
		return ""
	}
	if rank <= frames.Native {
		if name := nativeSite(s, stack); name != "" {
			return name
		}
	}
	return text(s, f, frames.Base(s.Strings.Get(f.File)))
}

// Place is Site in a sentence: a stack without frames is "a place that was not recorded".
func Place(s *snapshot.Snapshot, stack snapshot.StackID) string { return Placed(Site(s, stack)) }

// Placed puts a site in a sentence.
func Placed(site string) string {
	if site == "" {
		return "a place that was not recorded"
	}
	return site
}

// siteFrame is the frame of Site and where its code comes from, false without frames.
func siteFrame(s *snapshot.Snapshot, stack snapshot.StackID) (snapshot.Frame, frames.Origin, bool) {
	ids := s.Stacks.Get(stack)
	if len(ids) == 0 {
		return snapshot.Frame{}, frames.Plumbing, false
	}
	best, rank := ids[0], frames.Plumbing
	for _, id := range ids {
		if o := frames.Of(s, id).Origin(); o > rank {
			best, rank = id, o
		}
		if rank == frames.User {
			break
		}
	}
	return s.Frames.Get(best), rank, true
}

// nativeSite names a stack of nothing but C++, which threads of the backward pass have: by the
// backward function that it is in, else by the outermost operator. Symbols are those that the
// unwinder found, which without debug information may be of a neighbour. It is empty when
// neither is there.
func nativeSite(s *snapshot.Snapshot, stack snapshot.StackID) string {
	found := ""
	for _, id := range s.Stacks.Get(stack) {
		name, isBackward := frames.Operation(s.Strings.Get(s.Frames.Get(id).Name))
		if isBackward {
			return name
		}
		if name != "" {
			found = name
		}
	}
	return found
}

// Frames is a stack for people, innermost first: "file:line function". Frames that every
// stack has and that say nothing are left out (snapshot/SPEC.md 2.9), unless nothing else is
// there, and the folders above an installed package are cut off.
func Frames(s *snapshot.Snapshot, stack snapshot.StackID) []string {
	var out []string
	ids := s.Stacks.Get(stack)
	for _, all := range []bool{false, true} {
		for _, id := range ids {
			if f := s.Frames.Get(id); all || frames.Of(s, id).Origin() != frames.Plumbing {
				out = append(out, text(s, f, frames.Short(s.Strings.Get(f.File))))
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}
