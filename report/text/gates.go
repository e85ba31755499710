package text

import (
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// Gates prints what came of limits, and of those on a baseline that were not kept what changed.
func Gates(w io.Writer, all []gate.Outcome, o Options) error {
	if o.Brief {
		return briefGates(all).doc(o).print(w)
	}
	d := newDoc(o)
	d.gates(all)
	return d.print(w)
}

// GatesMarkdown prints what Gates prints for a comment on a pull request.
func GatesMarkdown(w io.Writer, all []gate.Outcome) error {
	d := newDoc(Options{})
	d.markdown, d.heads, d.width = true, 2, 1<<20
	d.gates(all)
	return d.print(w)
}

func (d *doc) gates(all []gate.Outcome) {
	file := ""
	if n := gate.NotKept(all); n > 0 {
		d.heading("Failed", finding.Bad, fmt.Sprintf("%d of %s not kept.", n, units.Plural(len(all), "limit")), 0)
	} else {
		d.heading("Passed", finding.Good, fmt.Sprintf("%s kept.", units.Plural(len(all), "limit")), 0)
	}
	several := slices.ContainsFunc(all, func(o gate.Outcome) bool { return o.Device != all[0].Device })
	for i := range all {
		o := &all[i]
		if name := o.File + when(several, ", GPU %d", o.Device); name != file {
			file = name
			d.gap()
			d.line(bold.cutLeft(name))
		}
		word, color := "ok", green
		switch o.Status {
		case gate.Failed:
			word, color = "FAILED", red
		case gate.Unknown:
			word, color = "UNKNOWN", yellow
		}
		if d.markdown {
			d.lines = append(d.lines, "- "+markup(cells(bold.of(word), " "+verdict.GateOf(o))))
			continue
		}
		for _, l := range wrap(chart.Plain(verdict.GateOf(o)), d.width-10) {
			d.line("  ", color.of(pad(word, 8)), l)
			word = ""
		}
	}
	for i := range all {
		if o := &all[i]; o.Diff != nil && o.Status != gate.Passed {
			d.gap()
			d.diff(o.Diff, attribution.BySite, Options{Top: 10})
		}
	}
}
