package attribution

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Kind is what live blocks are grouped by.
type Kind string

const (
	ByStack    Kind = "stack"    // the whole stack
	BySite     Kind = "site"     // the user's own frame in it, see Site
	ByFile     Kind = "file"     // the site's file
	ByFunction Kind = "function" // the site's file and function
	ByModule   Kind = "module"   // the nn.Module calls that the stack lies in
	ByCategory Kind = "category" // what the caller's function says
	ByStream   Kind = "stream"   // the segment's stream
	ByPool     Kind = "pool"     // the segment's memory pool, and whether it serves small requests
)

// Kinds lists them in the order of help texts.
func Kinds() []Kind {
	return []Kind{ByStack, BySite, ByFile, ByFunction, ByModule, ByCategory, ByStream, ByPool}
}

// Query chooses live blocks and how they are grouped.
type Query struct {
	By Kind // ByStack when empty
	// Match keeps blocks with a stack in which a frame matches, Exclude then leaves out those
	// in which one does. Frames are matched as "file:line function", with the file as recorded
	// and also as FrameText shortens it. nil is no filter.
	Match, Exclude *regexp.Regexp
	// Internals shows and matches the frames of the interpreter and the dispatcher too, and
	// C++ frames of stacks that have Python frames (snapshot/SPEC.md 2.9).
	Internals bool
	// Category names the category of a row of Timeline.Lives, empty when it is not known; nil
	// knows none. It must be set for ByCategory.
	Category func(row int32) string
}

// ParseKind finds the kind that a user typed.
func ParseKind(word string) (Kind, error) {
	if k := Kind(word); slices.Contains(Kinds(), k) {
		return k, nil
	}
	return "", fmt.Errorf("blocks cannot be grouped by %q; by %s they can", word, KindWords())
}

// KindWords lists what ParseKind takes, for help and errors.
func KindWords() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(Kinds()), " ", ", "), "[]")
}

// filter decides by stack.
type filter struct {
	s         *snapshot.Snapshot
	q         *Query
	matched   []int8 // by frame: 0 not yet known, 1 no, 2 yes
	unmatched []int8 // the same for Exclude
}

func newFilter(s *snapshot.Snapshot, q *Query) *filter {
	f := &filter{s: s, q: q}
	if q.Match != nil {
		f.matched = make([]int8, s.Frames.Len()+1)
	}
	if q.Exclude != nil {
		f.unmatched = make([]int8, s.Frames.Len()+1)
	}
	return f
}

// keeps decides whether blocks with this stack and this forward traceback are wanted.
func (f *filter) keeps(stack snapshot.StackID, forward []frame) bool {
	return (f.q.Match == nil || f.any(f.q.Match, f.matched, stack, forward)) &&
		(f.q.Exclude == nil || !f.any(f.q.Exclude, f.unmatched, stack, forward))
}

func (f *filter) any(re *regexp.Regexp, known []int8, stack snapshot.StackID, forward []frame) bool {
	for _, id := range f.s.Stacks.Get(stack) {
		if known[id] == 0 {
			known[id] = 1
			if fr := frameOf(f.s, id); (f.q.Internals || fr.class.Origin() != frames.Plumbing) && fr.matches(re) {
				known[id] = 2
			}
		}
		if known[id] == 2 {
			return true
		}
	}
	return slices.ContainsFunc(forward, func(fr frame) bool { return fr.matches(re) })
}

// least is the origin from which on frames are shown: without Internals none of the interpreter
// and the dispatcher, and no C++ frames either where there are Python frames: with stacks="all"
// dozens of them lie below each call of an operator.
func (q *Query) least() frames.Origin {
	if q.Internals {
		return frames.Plumbing
	}
	return frames.Library
}
