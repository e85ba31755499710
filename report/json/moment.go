package json

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

type moment struct {
	Name string `json:"name"`
	timeline.State
	Stacks        []stack       `json:"stacks"`
	StacksN       int           `json:"stacks_total"`
	Uses          []use         `json:"uses"`
	Fragmentation fragmentation `json:"fragmentation"`
}

type stack struct {
	Kind string `json:"kind"` // "stack" or "other"
	attribution.Group
}

type use struct {
	category.Sum
	High   int64 `json:"high"`
	Medium int64 `json:"medium"`
	Low    int64 `json:"low"`
}

type fragmentation struct {
	frag.Report
	Scatter float64      `json:"scatter"`
	Holes   []frag.Holes `json:"holes"`
	Pins    []pin        `json:"pins"`
	Without []without    `json:"without"`
}

type pin struct {
	Address    string `json:"address"`
	Size       int64  `json:"size"`
	Free       int64  `json:"free"`
	Live       int64  `json:"live"`
	Blocks     int    `json:"blocks"`
	Stream     int32  `json:"stream"`
	Pool       string `json:"pool"`
	Expandable bool   `json:"expandable"`
	Largest    int64  `json:"largest_block"`
	Block      string `json:"largest_name"`
	Site       string `json:"site"`

	Keepers []keeper `json:"keepers"`
}

// keeper is a block that keeps a segment.
type keeper struct {
	Name    string `json:"name"`
	Offset  int64  `json:"offset"`
	Bytes   int64  `json:"bytes"`
	Hostage int64  `json:"hostage"`
	Born    int    `json:"born"`
	Site    string `json:"site"`
}

// without is a stack that keeps segments.
type without struct {
	Site string `json:"site"`
	frag.Step
}

func buildMoment(t *timeline.Timeline, m *analyze.Moment) moment {
	f, site := &m.Frag, attribution.Names(m.Live)
	out := moment{
		Name: m.Name, State: *m.State, Stacks: stacks(m.Live), StacksN: len(m.Live),
		Fragmentation: fragmentation{
			Report: *f, Scatter: f.Scatter(),
			Holes: slices.DeleteFunc(slices.Clone(f.Holes[:]), func(h frag.Holes) bool { return h.Count == 0 }),
		},
	}
	in := &out.Fragmentation
	in.Groups = cut(f.Groups, maxGroups)
	for _, x := range frag.Rank(t, m.State, f, maxWithout) {
		in.Without = append(in.Without, without{site(x.Stack), x})
	}
	for _, x := range m.Uses {
		out.Uses = append(out.Uses, use{x, x.Trust[category.High], x.Trust[category.Medium], x.Trust[category.Low]})
	}
	pins, _ := chart.Pins(t, m, maxPins)
	for _, p := range pins {
		in.Pins = append(in.Pins, pin{
			Address: fmt.Sprintf("0x%x", p.Segment.Addr), Size: p.Segment.Size, Free: p.Free, Live: p.Live,
			Blocks: p.Blocks, Stream: int32(p.Segment.Stream), Expandable: p.Segment.Expandable,
			Pool:    chart.Pool(p.Segment.Kind, p.Segment.Pool, 0, false),
			Largest: p.Largest, Block: p.Block, Site: p.Site,
		})
	}
	addKeepers(t, m, pins, in.Pins, site)
	return out
}

// addKeepers lists the blocks that keep segments, by address.
func addKeepers(t *timeline.Timeline, m *analyze.Moment, pins []chart.Pin, out []pin,
	site func(snapshot.StackID) string) {
	var rows []int32
	for _, p := range pins {
		rows = append(rows, cut(m.State.Segments[p.Row].Live, maxKeepers)...)
	}
	names := t.Names(rows)
	for k, p := range pins {
		seg := &m.State.Segments[p.Row]
		for i, row := range cut(seg.Live, maxKeepers) {
			l := &t.Lives[row]
			out[k].Keepers = append(out[k].Keepers, keeper{
				names[0].String(), int64(l.Addr - seg.Addr), l.Rounded, frag.Hostage(t, seg, i), int(l.Born), site(l.Stack),
			})
			names = names[1:]
		}
	}
}

// stacks are the groups with most bytes, each by its name, and a row for all others.
func stacks(groups []attribution.Group) []stack {
	var out []stack
	top, other, more := chart.Largest(groups, maxStacks)
	for _, g := range top {
		g.Site, g.Frames = g.Name(), cut(g.Frames, maxFrames)
		out = append(out, stack{"stack", g})
	}
	if more > 0 {
		other.Site = fmt.Sprintf("%d other stacks", more)
		out = append(out, stack{"other", other})
	}
	return out
}
