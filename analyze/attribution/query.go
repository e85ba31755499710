package attribution

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
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

// KindWords lists them in words, for help.
func KindWords() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(Kinds()), " ", ", "), "[]")
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

// Answer is what is live at one moment of one device, and whose it is.
type Answer struct {
	Snapshot *snapshot.Snapshot
	Timeline *timeline.Timeline
	Why      string // why this device, empty when the file has no other
	Moment   Moment
	Query    Query
	State    *timeline.State
	Holders  *Holders
	Tree     *Node // nil when it was not asked for
}

// Ask answers a query about a moment.
func Ask(s *snapshot.Snapshot, t *timeline.Timeline, m Moment, q Query, tree bool) *Answer {
	a := &Answer{Snapshot: s, Timeline: t, Moment: m, Query: q, State: t.StateAt(m.Event)}
	a.Holders = Hold(s, t, a.State, q)
	if tree {
		root, _ := Tree(s, t, a.State, q)
		a.Tree = &root
	}
	return a
}
