package text

import (
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Ghosts prints who keeps the memory at the end of a snapshot: the verdict, each ghost with its
// evidence and its fix, then what is held as expected and what could not be matched.
func Ghosts(w io.Writer, r *analyze.Result, o Options) error {
	if o.Brief {
		return briefGhosts(r, o).doc(o).print(w)
	}
	d, v := newDoc(o), chart.NewHolders(r, o.Min)
	d.paragraph(dim.of(chart.ClipLeft(chart.Plain(r.Snapshot.Name), 60)+when(v.Source != "", " with %s", v.Source)), 0, 2)
	badge := v.Status.Word()
	if v.Status == finding.Healthy {
		badge = "no leak found"
	}
	d.heading(badge, v.Status.Tone(), v.Headline+when(v.Trust != "", " (%s)", v.Trust), 0)
	for i, g := range slices.Concat(v.Proven, v.Suspects) {
		if i > 0 && i == len(v.Proven) {
			d.gap()
			d.line(bold.of(chart.TitleSuspects))
		}
		d.ghost(i+1, &g)
	}
	for _, l := range v.Lists {
		d.gap()
		d.line(bold.of(l.Title))
		t := d.table(bold, num("", 10), column{sep: "  ", wrap: 1 << 10}, num("", 14))
		for _, r := range l.Rows {
			t.row(units.Size(r.Bytes), r.Text, r.Note)
		}
	}
	if v.Closing != "" || len(v.Notes) > 0 {
		d.gap()
	}
	d.list("Sum", []string{when(v.Closing != "", "%s.", v.Closing)}, 10)
	d.list("Note", v.Notes, 20)
	return d.print(w)
}

func (d *doc) ghost(n int, g *chart.HolderGhost) {
	d.gap()
	for i, l := range wrap(g.Title, d.width-4) {
		d.line(pad(when(i == 0, "%d.", n), 4), bold.of(l))
	}
	d.indent = 4
	for _, f := range g.Facts {
		d.labeled(f.Label, texts(plain, wrap(f.Text, d.width-12))...)
	}
	var sites []string
	room := min(60, d.width-40)
	for _, s := range g.Sites {
		site := pad(chart.ClipLeft(s.Text, room), room)
		sites = append(sites, fmt.Sprintf("%9s  %s%14s", units.Size(s.Bytes), site, s.Note))
	}
	d.labeled("Sites", texts(plain, sites)...)
	d.code("Fix", cyan, g.Fix)
	d.indent = 0
}
