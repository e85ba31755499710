package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// GhostOptions choose what is printed of the holders of memory.
type GhostOptions struct {
	Options
	Min int64 // sum up holders that have less; ghosts are always printed
}

// Ghosts prints who keeps the memory at the end of a snapshot: the verdict, each ghost with its
// evidence and its fix, then what is held as expected and what could not be matched.
func Ghosts(w io.Writer, r *analyze.Result, o GhostOptions) error {
	p := newPrinter(w, o.Options)
	v := chart.NewHolders(r, o.Min)
	head := chart.ClipLeft(chart.Plain(r.Snapshot.Name), 60)
	if v.Source != "" {
		head += " with " + v.Source
	}
	p.line(p.paint(dim, chart.Clip(head, p.width)))
	badge := strings.ToUpper(string(v.Status))
	if v.Status == finding.Healthy {
		badge = "NO LEAK FOUND"
	}
	if v.Trust != "" {
		v.Headline += " (" + v.Trust + ")"
	}
	p.headline(badge, v.Status.Tone(), v.Headline, math.MaxInt)
	for i := range v.Proven {
		p.ghost(i+1, &v.Proven[i])
	}
	if len(v.Suspects) > 0 && len(v.Proven) > 0 {
		p.line("")
		p.line(p.paint(bold, chart.TitleSuspects))
	}
	for i := range v.Suspects {
		p.ghost(len(v.Proven)+i+1, &v.Suspects[i])
	}
	for _, l := range v.Lists() {
		p.holderRows(l)
	}
	if v.Closing != "" || len(v.Notes) > 0 {
		p.line("")
	}
	if v.Closing != "" {
		p.section("Sum", []string{v.Closing + "."}, 10)
	}
	p.section("Note", v.Notes, 20)
	return p.w.Flush()
}

func (p *printer) ghost(n int, g *chart.HolderGhost) {
	p.line("")
	for i, l := range wrap(g.Title, p.width-4) {
		head := pad("", 4)
		if i == 0 {
			head = pad(fmt.Sprintf("%d.", n), 4)
		}
		p.line(head + p.paint(bold, l))
	}
	p.indent = 4
	for _, f := range g.Facts {
		p.labeled(f.Label, wrap(f.Text, p.width-12))
	}
	var sites, fix []string
	for _, s := range g.Sites {
		sites = append(sites, right(units.Bytes(s.Bytes), 9)+"  "+pad(chart.ClipLeft(s.Text, 60), 60)+right(s.Note, 14))
	}
	for _, l := range g.Fix {
		fix = append(fix, p.paint(cyan, chart.Clip(l, p.width-12)))
	}
	p.labeled("Sites", sites)
	p.labeled("Fix", fix)
	p.indent = 0
}

func (p *printer) holderRows(list chart.HolderList) {
	p.line("")
	p.line(p.paint(bold, list.Title))
	for _, r := range list.Rows {
		lines := wrap(r.Text, p.width-26)
		for i, l := range lines {
			if i == 0 {
				p.line(right(units.Bytes(r.Bytes), 10) + "  " + pad(l, p.width-26) + right(r.Note, 14))
				continue
			}
			p.line(pad("", 12) + l)
		}
	}
}
