package html

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// stackTable says whose memory is live at one moment. Its rows sum to the total.
type stackTable struct {
	Title, When string
	Rows        []stackRow
	Total       stackRow
}

type stackRow struct {
	Slot   chart.Slot
	Bytes  string
	Share  string
	Width  string // percent of the largest row
	Blocks string
	Note   string // "from before the trace", "12.0 KiB lost to rounding"
	Site   string
	Frames []string
	Rest   bool // a sum of several stacks
}

// palette has the colors of stacks, the same in tables and maps of a device.
type palette map[snapshot.StackID]chart.Slot

func newStackTable(ph phase, colors palette, deep depth) stackTable {
	total := ph.Frag.Active
	v := stackTable{Title: ph.Title, When: ph.When}
	top, other, more := chart.Largest(ph.Live, deep.stacks)
	var most, sum, blocks int64
	for i := range ph.Live {
		most = max(most, ph.Live[i].Rounded)
		sum += ph.Live[i].Rounded
		blocks += ph.Live[i].Count
	}
	most = max(most, other.Rounded)
	row := func(g *attribution.Group) stackRow {
		return stackRow{
			Bytes: units.Bytes(g.Rounded), Share: units.Percent(g.Rounded, total), Width: percent(chart.Share(g.Rounded, most)),
			Blocks: units.Count(g.Count),
		}
	}
	for i := range top {
		g := &top[i]
		r := row(g)
		r.Slot = colors[g.Stack]
		r.Site = site(g.Name())
		r.Frames = frames(g.Frames, deep.frames)
		r.Note = groupNote(g)
		if via := different(top, i); via != "" {
			if r.Note != "" {
				r.Note = ", " + r.Note
			}
			r.Note = "via " + site(via) + r.Note
		}
		v.Rows = append(v.Rows, r)
	}
	if more > 0 {
		r := row(&other)
		r.Rest, r.Site, r.Note = true, fmt.Sprintf("%s more stacks", units.Count(int64(more))), groupNote(&other)
		v.Rows = append(v.Rows, r)
	}
	if sum != total { // never happens when the analysis keeps its promise; shown rather than hidden
		v.Rows = append(v.Rows, stackRow{
			Bytes: units.Bytes(total - sum), Share: units.Percent(total-sum, total), Width: "0", Rest: true, Site: "not attributed",
		})
	}
	v.Total = stackRow{Bytes: units.Bytes(total), Share: units.Percent(total, total), Blocks: units.Count(blocks), Site: "Active"}
	return v
}

// different is the innermost frame of group i that sets it apart from a group above or below
// it that has the same site, "" when there is none.
func different(groups []attribution.Group, i int) string {
	a := &groups[i]
	at := -1
	for k := range groups {
		b := &groups[k]
		if k == i || a.Name() != b.Name() {
			continue
		}
		n := 0
		for n < len(a.Frames) && n < len(b.Frames) && a.Frames[n] == b.Frames[n] {
			n++
		}
		at = max(at, n)
	}
	if at < 0 || at >= len(a.Frames) {
		return ""
	}
	return a.Frames[at]
}

// groupNote tells what the bytes of a group hide.
func groupNote(g *attribution.Group) string {
	s := ""
	switch {
	case g.PreTrace > 0 && g.PreTrace == g.Rounded:
		if g.Site != "" || g.Stack == snapshot.EmptyStack { // else its line says so
			s = "from before the trace"
		}
	case g.PreTrace > 0:
		s = units.Bytes(g.PreTrace) + " from before the trace"
	}
	if lost := g.Rounded - g.Requested; lost*20 > g.Rounded && g.Requested > 0 {
		if s != "" {
			s += ", "
		}
		s += units.Bytes(lost) + " lost to rounding"
	}
	return s
}

// frames cuts a stack and its frames to what a page can show.
func frames(list []string, n int) []string {
	var out []string
	for i, f := range list {
		if i == n {
			return append(out, fmt.Sprintf("… %s more frames", units.Count(int64(len(list)-n))))
		}
		out = append(out, site(f))
	}
	return out
}
