package attribution

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

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
