// Package attribution says whose memory it is: live bytes grouped by the stack that
// allocated them, and the first frame of the user's own code in a stack.
package attribution

import (
	"cmp"
	"regexp"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Group is the live memory that one stack allocated.
type Group struct {
	Stack snapshot.StackID `json:"-"`    // 0 when none was recorded
	Site  string           `json:"site"` // "model.py:26 forward", empty without frames
	Sum
	// Frames is the stack for people, innermost first and without plumbing: "file:line
	// function". Only the MaxFrames largest groups have it.
	Frames []string `json:"frames"`
}

// Name is the line that stands for the group, never empty.
func (g *Group) Name() string {
	switch {
	case g.Site != "":
		return g.Site
	case len(g.Frames) > 0:
		return g.Frames[0]
	case g.Stack == snapshot.EmptyStack:
		return NoFrames
	case g.PreTrace > 0 && g.PreTrace == g.Rounded:
		return NoStackBefore
	}
	return NoStack
}

// Names gives the name of the group of a stack.
func Names(groups []Group) func(snapshot.StackID) string {
	rows := make(map[snapshot.StackID]int, len(groups))
	for i := range groups {
		rows[groups[i].Stack] = i
	}
	return func(id snapshot.StackID) string {
		if i, ok := rows[id]; ok {
			return groups[i].Name()
		}
		return (&Group{Stack: id}).Name()
	}
}

// MaxFrames is how many groups of a state carry their frames as text, as long as the texts of a state take no more than
// maxTexts bytes for all devices together.
const (
	MaxFrames = 256
	maxTexts  = 8 << 20
)

// Live groups the live blocks of a state by stack, most rounded bytes first. The groups sum
// up to the state's active bytes.
func Live(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State) []Group {
	var groups []Group
	for _, g := range GroupBy(t, st, func(_ int, row int32) snapshot.StackID { return t.Lives[row].Stack }) {
		groups = append(groups, Group{Stack: g.Key, Sum: g.Sum, Site: Site(s, g.Key)})
	}
	sorting.By(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Rounded, a.Rounded), cmp.Compare(a.Stack, b.Stack))
	})
	room := maxTexts / max(s.NumDevices(), 1)
	for i := range groups[:min(len(groups), MaxFrames)] {
		groups[i].Frames = Frames(s, groups[i].Stack)
		for _, f := range groups[i].Frames {
			room -= len(f)
		}
		if room < 0 {
			break
		}
	}
	return groups
}

// Sum is a number of live blocks.
type Sum struct {
	Count     int64 `json:"count"`
	Rounded   int64 `json:"bytes"`     // taken in segments
	Requested int64 `json:"requested"` // bytes asked for
	PreTrace  int64 `json:"pre_trace"` // rounded bytes of pre-trace blocks
}

func (s *Sum) add(l *timeline.Life) {
	s.Count++
	s.Rounded += l.Rounded
	s.Requested += l.Requested
	if l.Born < 0 {
		s.PreTrace += l.Rounded
	}
}

// Add adds another sum.
func (s *Sum) Add(o Sum) {
	s.Count += o.Count
	s.Rounded += o.Rounded
	s.Requested += o.Requested
	s.PreTrace += o.PreTrace
}

// compare puts most rounded bytes first, then most blocks.
func (s *Sum) compare(o *Sum) int {
	return cmp.Or(cmp.Compare(o.Rounded, s.Rounded), cmp.Compare(o.Count, s.Count))
}

// Keyed is the sum of the blocks with one key.
type Keyed[K comparable] struct {
	Key K
	Sum
	Largest int32 // row of Timeline.Lives of the first block with the most rounded bytes
}

// GroupBy sums the live blocks of a state by a key of their segment's place in State.Segments,
// -1 for none, and their row of Timeline.Lives. Groups are in the order of their first blocks,
// and sum up to the state's active bytes.
func GroupBy[K comparable](t *timeline.Timeline, st *timeline.State, key func(segment int, row int32) K) []Keyed[K] {
	var out []Keyed[K]
	index := map[K]int{}
	for segment, row := range st.Rows() {
		k := key(segment, row)
		g, ok := index[k]
		if !ok {
			g = len(out)
			index[k] = g
			out = append(out, Keyed[K]{Key: k, Largest: row})
		}
		out[g].add(&t.Lives[row])
		if t.Lives[row].Rounded > t.Lives[out[g].Largest].Rounded {
			out[g].Largest = row
		}
	}
	return out
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
