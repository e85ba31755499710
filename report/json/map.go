package json

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

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
	Segment   int    `json:"segment"`
	Offset    int64  `json:"offset"`
	Size      int64  `json:"size"`
	Requested int64  `json:"requested"`
	State     string `json:"state"`
	Category  string `json:"category"`
	Site      int    `json:"site"`
	Born      int    `json:"born"`
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
			l := &t.Lives[row]
			site, ok := sites[l.Stack]
			if !ok {
				site = len(m.Sites)
				sites[l.Stack] = site
				g := attribution.Group{Stack: l.Stack, Site: attribution.Site(a.Snapshot, l.Stack)}
				m.Sites = append(m.Sites, g.Name())
			}
			b := mapBlock{
				i, int64(l.Addr - seg.Addr), l.Rounded, l.Requested, "allocated", "unknown", site, int(l.Born),
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
	f := frag.Measure(t, st)
	for _, h := range frag.FindHoles(t, st, f.Stream) {
		if m.HolesN++; m.HolesN <= maxMapBlocks {
			offset := int64(h.Addr - st.Segments[h.Segment].Addr)
			m.Holes = append(m.Holes, mapHole{h.Segment, offset, h.Size, h.Class.String()})
		}
	}
	return m
}
