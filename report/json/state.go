package json

import (
	"io"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
)

// StateSchema is the value of "schema" in what WriteState writes; see Schema.
const StateSchema = "snapana.state/1"

// maxTreeRows bounds a tree, which has a row per call path.
const maxTreeRows = 20_000

type stateDoc struct {
	Schema    string          `json:"schema"`
	File      string          `json:"file"`
	Partial   string          `json:"partial"`
	Device    int             `json:"device"`
	Moment    string          `json:"moment"`
	Event     int             `json:"event"`
	Events    int             `json:"events"`
	Time      int64           `json:"time_us"`
	FirstTime int64           `json:"first_time_us"`
	Totals    timeline.Totals `json:"totals"`
	Balanced  bool            `json:"balanced"`
	Checks    checks          `json:"checks"`
	By        string          `json:"by"`
	Groups    []stateGroup    `json:"groups"`
	GroupsN   int             `json:"groups_total"`
	Others    stateSum        `json:"others"`
	LeftOut   stateSum        `json:"left_out"`
	Tree      []stateNode     `json:"tree"`
	TreeN     int             `json:"tree_total"`
	Map       segmentMap      `json:"map"`
}

type stateSum struct {
	Count     int64 `json:"count"`
	Bytes     int64 `json:"bytes"`
	Requested int64 `json:"requested"`
	PreTrace  int64 `json:"pre_trace"`
}

type stateGroup struct {
	Name         string `json:"name"`
	Unattributed bool   `json:"unattributed"`
	stateSum
	Pinned int64       `json:"pinned"`
	Frames []string    `json:"frames"`
	Notes  []stateNote `json:"notes"`
}

type stateNote struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

type stateNode struct {
	Depth        int    `json:"depth"`
	Name         string `json:"name"`
	Unattributed bool   `json:"unattributed"`
	stateSum
	Self int64 `json:"self"`
}

func sumOf(s attribution.Sum) stateSum {
	return stateSum{Count: s.Count, Bytes: s.Rounded, Requested: s.Requested, PreTrace: s.PreTrace}
}

// WriteState writes what is live at one moment. Groups after the first top ones are summed;
// 0 keeps all. category names what a row of Timeline.Lives is for; nil leaves it unknown.
func WriteState(w io.Writer, a *attribution.Answer, top int, category func(row int32) string) error {
	doc := buildState(a, top)
	doc.Map = buildMap(a, category)
	return encode(w, doc)
}

func buildState(a *attribution.Answer, top int) *stateDoc {
	t, c := a.Timeline, &a.Timeline.Checks
	out := &stateDoc{
		Schema: StateSchema, File: a.Snapshot.Name, Device: t.Device,
		Moment: a.Moment.Name, Event: a.State.Event, Events: t.Trace.Len(), Time: a.State.Time,
		Totals: a.State.Totals, Balanced: c.Inconsistent() == 0 && c.Residual == 0, Checks: checks{c.Inconsistent(), *c},
		By: string(a.Holders.By), Groups: []stateGroup{}, GroupsN: len(a.Holders.Rows),
		LeftOut: sumOf(a.Holders.LeftOut), Tree: []stateNode{},
	}
	if a.Snapshot.Partial != nil {
		out.Partial = a.Snapshot.Partial.Error()
	}
	if t.Trace.Len() > 0 {
		out.FirstTime = t.Trace.At(0).Time
	}
	var others attribution.Sum
	for i := range a.Holders.Rows {
		r := &a.Holders.Rows[i]
		if top > 0 && i >= top {
			others.Add(r.Sum)
			continue
		}
		g := stateGroup{
			Name: r.Name, Unattributed: r.Unattributed, stateSum: sumOf(r.Sum), Pinned: r.Pinned,
			Frames: list(r.Frames[:min(len(r.Frames), maxFrames)]), Notes: []stateNote{},
		}
		for _, n := range r.Notes {
			g.Notes = append(g.Notes, stateNote(n))
		}
		out.Groups = append(out.Groups, g)
	}
	out.Others = sumOf(others)
	if a.Tree != nil {
		out.Tree, out.TreeN = flatten(a.Tree)
	}
	return out
}

// flatten lists a tree's nodes, each before what is below it, without recursion.
func flatten(root *attribution.Node) (rows []stateNode, total int) {
	type item struct {
		node  *attribution.Node
		depth int
	}
	todo := []item{{root, 0}}
	rows = []stateNode{}
	for len(todo) > 0 {
		it := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if total++; len(rows) < maxTreeRows {
			rows = append(rows, stateNode{
				Depth: it.depth, Name: it.node.Name, Unattributed: it.node.Unattributed,
				stateSum: sumOf(it.node.Sum), Self: it.node.Self().Rounded,
			})
		}
		for i := len(it.node.Children) - 1; i >= 0; i-- {
			todo = append(todo, item{&it.node.Children[i], it.depth + 1})
		}
	}
	return rows, total
}
