package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Environments prints two environments side by side: what differs, or with All everything.
func Environments(w io.Writer, c *environment.Comparison, o Options) error {
	p := newPrinter(w, o)
	rows := slices.Clone(c.Rows)
	same := 0
	if !o.All {
		rows = slices.DeleteFunc(rows, func(r environment.Row) bool { return !r.Differs })
		same = len(c.Rows) - len(rows)
	}
	matter := 0
	for _, r := range rows {
		if r.Differs && r.Why != "" {
			matter++
		}
	}
	switch {
	case matter > 0:
		p.line(p.paint(bold, fmt.Sprintf("%s known to matter for memory.", units.Plural(matter, "difference is", "differences are"))))
	default:
		p.line(p.paint(bold, "No difference is known to matter for memory: compare the programs and their data."))
	}
	p.line("")
	const name = 26
	value := (p.width - name - 4) / 2
	clip := func(s, absent string) string { return chart.Clip(chart.Plain(cmp.Or(s, absent)), value) }
	p.line(p.paint(bold, pad("", name+2)+pad(chart.ClipLeft(chart.Plain(c.A), value), value+2)+chart.ClipLeft(chart.Plain(c.B), value)))
	for i, r := range rows {
		if i > 0 && r.Why == "" && rows[i-1].Why != "" {
			p.line("")
		}
		sign := "  "
		if r.Differs && o.All {
			sign = p.paint(yellow, "* ")
		}
		p.line(pad(chart.ClipLeft(chart.Plain(r.Name), name), name) + sign + pad(clip(r.A, r.Absent), value+2) + clip(r.B, r.Absent))
		if r.Differs && r.Why != "" && (i+1 == len(rows) || rows[i+1].Why != r.Why) {
			for _, l := range wrap(r.Why, p.width-4) {
				p.line("    " + p.paint(dim, l))
			}
		}
	}
	if !o.All {
		p.line("")
		more := units.Plural(same-c.Single, "setting is the same", "settings are the same")
		if c.Single > 0 {
			more += fmt.Sprintf(", %d more were recorded in one run only", c.Single)
		}
		p.line(p.paint(dim, more+"; --all shows them."))
	}
	return p.w.Flush()
}
