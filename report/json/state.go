package json

import (
	"fmt"
	"io"

	"github.com/snapana/snapana/analyze/attribution"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// maxTreeRows bounds a tree, which has a row per call path.
const maxTreeRows = 20_000

type stateDoc struct {
	File      string                `json:"file"`
	Partial   string                `json:"partial"`
	Device    int                   `json:"device"`
	Moment    string                `json:"moment"`
	Event     int                   `json:"event"`
	Events    int                   `json:"events"`
	Window    *snapshot.WindowTrace `json:"window,omitempty"` // absent where the whole trace was read
	Time      int64                 `json:"time_us"`
	FirstTime int64                 `json:"first_time_us"`
	Totals    timeline.Totals       `json:"totals"`
	Bounds    timeline.Bounds       `json:"bounds"`
	Balanced  bool                  `json:"balanced"`
	Checks    checks                `json:"checks"`
	By        string                `json:"by"`
	Groups    []attribution.Row     `json:"groups"`
	GroupsN   int                   `json:"groups_total"`
	Others    attribution.Sum       `json:"others"`
	LeftOut   attribution.Sum       `json:"left_out"`
	Tree      []treeRow             `json:"tree"`
	TreeN     int                   `json:"tree_total"`
	Map       segmentMap            `json:"map"`
}

// treeRow is one call of a tree.
type treeRow struct {
	Depth int `json:"depth"`
	attribution.Node
	Self int64 `json:"self"` // rounded bytes that were allocated in the call itself
}

// WriteState writes what is live at one moment. Groups after the first top ones are summed;
// 0 keeps all.
func WriteState(w io.Writer, a *attribution.Answer, top int) error {
	doc := buildState(a, top)
	doc.Map = buildMap(a)
	return write(w, stateSchema, doc)
}

func buildState(a *attribution.Answer, top int) *stateDoc {
	t, c := a.Timeline, &a.Timeline.Checks
	out := &stateDoc{
		File: a.Snapshot.Name, Device: t.Device,
		Moment: a.Moment.Name, Event: a.State.Event, Events: t.Trace.Len(), Time: a.State.Time,
		Window: t.Window(),
		Totals: a.State.Totals, Bounds: t.Recording.At(a.State.Event),
		Balanced: c.Inconsistent() == 0 && c.Residual == 0 && t.Recording.Peak.Exact() && t.Recording.Start.Exact(),
		Checks:   checks{c.Inconsistent(), *c},
		By:       string(a.Holders.By), GroupsN: len(a.Holders.Rows), LeftOut: a.Holders.LeftOut,
	}
	if a.Snapshot.Partial != nil {
		out.Partial = a.Snapshot.Partial.Error()
	}
	if t.Trace.Len() > 0 {
		out.FirstTime = t.Trace.Time(0)
	}
	for i, g := range a.Holders.Rows {
		if top > 0 && i >= top {
			out.Others.Add(g.Sum)
			continue
		}
		g.Frames = cut(g.Frames, maxFrames)
		out.Groups = append(out.Groups, g)
	}
	if a.Tree != nil {
		out.Tree, out.TreeN = flatten(a.Tree)
	}
	return out
}

// flatten lists a tree's nodes, each before what is below it, without recursion.
func flatten(root *attribution.Node) (rows []treeRow, total int) {
	type item struct {
		node  *attribution.Node
		depth int
	}
	todo := []item{{root, 0}}
	for len(todo) > 0 {
		it := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if total++; len(rows) < maxTreeRows {
			rows = append(rows, treeRow{it.depth, *it.node, it.node.Self().Rounded})
		}
		for i := len(it.node.Children) - 1; i >= 0; i-- {
			todo = append(todo, item{&it.node.Children[i], it.depth + 1})
		}
	}
	return rows, total
}

// maxMapBlocks bounds the blocks and the holes of a map each.
const maxMapBlocks = 20_000

// segmentMap is the layout of a device's memory at one moment.
type segmentMap struct {
	Segments []mapSegment `json:"segments"`
	Blocks   []mapBlock   `json:"blocks"`
	BlocksN  int          `json:"blocks_total"`
	Holes    []mapHole    `json:"holes"`
	HolesN   int          `json:"holes_total"`
	Sites    []string     `json:"sites"`
}

type mapSegment struct {
	Address    string `json:"address"`
	Size       int64  `json:"size"`
	Active     int64  `json:"active"`
	Stream     int32  `json:"stream"`
	Pool       string `json:"pool"`
	Expandable bool   `json:"expandable"`
}

type mapBlock struct {
	Segment   int           `json:"segment"`
	Offset    int64         `json:"offset"`
	Name      timeline.Name `json:"name"`
	Size      int64         `json:"size"`
	Requested int64         `json:"requested"`
	State     string        `json:"state"`
	Category  string        `json:"category"`
	Site      int           `json:"site"`
	Born      int           `json:"born"`
}

type mapHole struct {
	Segment int    `json:"segment"`
	Offset  int64  `json:"offset"`
	Size    int64  `json:"size"`
	Class   string `json:"class"`
}

// buildMap lays out a state.
func buildMap(a *attribution.Answer) segmentMap {
	t, st := a.Timeline, a.State
	var m segmentMap
	sites := map[snapshot.StackID]int{}
	var rows []int32 // of the blocks
	for i := range st.Segments {
		seg := &st.Segments[i]
		m.Segments = append(m.Segments, mapSegment{
			fmt.Sprintf("0x%x", seg.Addr), seg.Size, seg.Active, int32(seg.Stream),
			chart.Pool(seg.Kind, seg.Pool, 0, false), seg.Expandable,
		})
		for _, row := range seg.Live {
			if m.BlocksN++; m.BlocksN > maxMapBlocks {
				continue
			}
			rows = append(rows, row)
			l := &t.Lives[row]
			site, ok := sites[l.Stack]
			if !ok {
				site = len(m.Sites)
				sites[l.Stack] = site
				g := attribution.Group{Stack: l.Stack, Site: attribution.Site(a.Snapshot, l.Stack)}
				m.Sites = append(m.Sites, g.Name())
			}
			b := mapBlock{
				Segment: i, Offset: int64(l.Addr - seg.Addr), Size: l.Rounded, Requested: l.Requested,
				State: "allocated", Category: "unknown", Site: site, Born: int(l.Born),
			}
			if l.Waits(st.Event) {
				b.State = "pending"
			}
			if a.Query.Category != nil {
				if name := a.Query.Category(row); name != "" {
					b.Category = name
				}
			}
			m.Blocks = append(m.Blocks, b)
		}
	}
	for i, name := range t.Names(rows) {
		m.Blocks[i].Name = name
	}
	f := frag.Measure(t, st)
	for _, hole := range frag.FindHoles(t, st, f.Stream) {
		for h := range hole.Cut() {
			if m.HolesN++; m.HolesN <= maxMapBlocks {
				offset := int64(h.Addr - st.Segments[h.Segment].Addr)
				m.Holes = append(m.Holes, mapHole{h.Segment, offset, h.Size, h.Class.String()})
			}
		}
	}
	return m
}
