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
	phase
	Rows              []stackRow
	All, Most, Blocks int64 // bytes and blocks of all, and bytes of the largest row
}

type stackRow struct {
	attribution.Group
	Slot   chart.Slot
	Site   string
	Frames []string
	Rest   bool // a sum of several stacks
}

// palette has the colors of stacks, the same in tables and maps of a device.
type palette map[snapshot.StackID]chart.Slot

func newStackTable(ph phase, colors palette, deep depth) stackTable {
	v := stackTable{phase: ph, All: ph.Frag.Active}
	top, other, more := chart.Largest(ph.Live, deep.stacks)
	rest := v.All
	for i := range ph.Live {
		v.Most = max(v.Most, ph.Live[i].Rounded)
		v.Blocks += ph.Live[i].Count
		rest -= ph.Live[i].Rounded
	}
	v.Most = max(v.Most, other.Rounded)
	for i, name := range chart.Sites(top) {
		g := &top[i]
		v.Rows = append(v.Rows, stackRow{Group: *g, Slot: colors[g.Stack], Site: site(name),
			Frames: frames(g.Frames, deep.frames)})
	}
	if more > 0 {
		v.Rows = append(v.Rows, stackRow{Group: other, Rest: true,
			Site: units.Count(int64(more)) + " more stacks"})
	}
	if rest != 0 { // never happens when the analysis keeps its promise; shown rather than hidden
		v.Rows = append(v.Rows, stackRow{Group: attribution.Group{Sum: attribution.Sum{Rounded: rest}}, Rest: true,
			Site: "not attributed"})
	}
	return v
}

// Note tells what the bytes of the row hide: "from before the trace", "12.0 KiB lost to rounding".
func (r *stackRow) Note() string {
	g := &r.Group
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
