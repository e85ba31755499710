package text

import (
	"cmp"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Environments prints two environments side by side: what differs, or with All everything.
func Environments(w io.Writer, c *environment.Comparison, o Options) error {
	d := newDoc(o)
	rows := slices.Clone(c.Rows)
	if !o.All {
		rows = slices.DeleteFunc(rows, func(r environment.Row) bool { return !r.Differs })
	}
	matter := 0
	for _, r := range rows {
		if r.Differs && r.Why != "" {
			matter++
		}
	}
	if matter > 0 {
		d.line(bold.of(units.Plural(matter, "difference is", "differences are") + " known to matter for memory."))
	} else {
		d.line(bold.of("No difference is known to matter for memory: compare the programs and their data."))
	}
	d.gap()
	const name = 26
	value := (d.width - name - 4) / 2
	t := d.table(bold, column{width: -name, cut: chart.ClipLeft}, left("", 2),
		column{head: chart.ClipLeft(chart.Plain(c.A), value), width: -value, cut: chart.Clip},
		column{sep: "  ", head: chart.ClipLeft(chart.Plain(c.B), value), width: -value, cut: chart.Clip})
	for i, r := range rows {
		if i > 0 && r.Why == "" && rows[i-1].Why != "" {
			t.gap()
		}
		t.row(r.Name, yellow.of(when(r.Differs && o.All, "*")), cmp.Or(r.A, r.Absent), cmp.Or(r.B, r.Absent))
		if r.Differs && r.Why != "" && (i+1 == len(rows) || rows[i+1].Why != r.Why) {
			for _, l := range wrap(r.Why, d.width-4) {
				t.line("    ", dim.of(l))
			}
		}
	}
	if !o.All {
		d.gap()
		d.line(dim.of(units.Plural(len(c.Rows)-len(rows)-c.Single, "setting is the same", "settings are the same") +
			when(c.Single > 0, ", %d more were recorded in one run only", c.Single) + "; --all shows them."))
	}
	return d.print(w)
}
