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
			Bytes: units.Bytes(g.Rounded), Share: units.Percent(g.Rounded, total),
			Width: width(g.Rounded, most), Blocks: units.Count(g.Count),
		}
	}
	names := chart.Sites(top)
	for i := range top {
		g := &top[i]
		r := row(g)
		r.Slot, r.Site, r.Frames, r.Note = colors[g.Stack], site(names[i]), frames(g.Frames, deep.frames), groupNote(g)
		v.Rows = append(v.Rows, r)
	}
	if more > 0 {
		r := row(&other)
		r.Rest, r.Site, r.Note = true, fmt.Sprintf("%s more stacks", units.Count(int64(more))), groupNote(&other)
		v.Rows = append(v.Rows, r)
	}
	if sum != total { // never happens when the analysis keeps its promise; shown rather than hidden
		v.Rows = append(v.Rows, stackRow{
			Bytes: units.Bytes(total - sum), Share: units.Percent(total-sum, total), Width: "0", Rest: true,
			Site: "not attributed",
		})
	}
	v.Total = stackRow{Bytes: units.Bytes(total), Share: units.Percent(total, total), Blocks: units.Count(blocks),
		Site: "Active"}
	return v
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
