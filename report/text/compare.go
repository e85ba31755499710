package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxRanks is how many ranks are listed unless all are asked for.
const maxRanks = 16

// Ranks prints the snapshots of a run side by side: the verdicts and who shares them, who differs,
// and a line for each rank.
func Ranks(w io.Writer, c *ranks.Comparison, o Options) error {
	if o.Brief {
		return briefRanks(c).doc(o).print(w)
	}
	d := newDoc(o)
	d.run(c, o.All)
	return d.print(w)
}

// RanksMarkdown prints what Ranks prints for an issue or a chat.
func RanksMarkdown(w io.Writer, c *ranks.Comparison) error {
	d := newDoc(Options{})
	d.markdown, d.heads, d.width = true, 2, 1<<20
	d.run(c, false)
	return d.print(w)
}

func (d *doc) run(c *ranks.Comparison, all bool) {
	for _, l := range wrap(chart.RankCounts(c), d.width) {
		d.line(dim.of(l))
	}
	for i, g := range c.Groups {
		if i == 8 && len(c.Groups) > 9 {
			d.line(more(len(c.Groups)-i, "verdict"))
			break
		}
		d.heading(g.Status.Word(), g.Status.Tone(), chart.RankGroup(c, &g), 0)
	}
	differ := chart.RankDifferences(c)
	d.apart("Differ", differ, 24)
	if worst := c.Worst(); worst != nil {
		if len(differ) == 0 {
			d.gap()
		}
		d.labeled("Next", cells(plain.code("snapana report "+Arg(worst.File))))
	}
	d.gap()
	d.ranks(c, all)
}

func (d *doc) ranks(c *ranks.Comparison, all bool) {
	t := d.table(bold, num("rank", 6), num("reserved peak", 15),
		num("active peak", 13), num("vs median", 11).spared(1), num("end", 11).spared(2),
		column{head: "verdict", sep: "  ", width: -16}, column{head: "file", cut: chart.ClipLeft})
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if i == maxRanks-1 && len(c.Ranks) > maxRanks && !all {
			t.line(dim.of(more(len(c.Ranks)-i, "rank") + "; --all shows them"))
			return
		}
		number := cmp.Or(when(k.Number >= 0, "%d", k.Number), "?")
		if k.Fault != "" {
			for _, l := range wrap(chart.Clip(chart.Plain(k.Fault), 400), d.width-8) {
				t.line(fmt.Sprintf("%6s  ", number), red.of(l))
				number = ""
			}
			continue
		}
		over := when(k.Active >= 0 && k.Active > k.Over, "%+.1f%%", 100*float64(k.Over)/float64(k.Active-k.Over))
		t.row(number, chart.RankFigure(k.Reserved), chart.RankFigure(k.Active), cmp.Or(over, "-"),
			chart.RankFigure(k.End),
			tones[k.Status.Tone()].of(k.Status.Word()), k.File)
	}
}

// Environments prints two environments side by side: what differs, or with All everything.
func Environments(w io.Writer, c *environment.Comparison, o Options) error {
	if o.Brief {
		return briefEnvironments(c).doc(o).print(w)
	}
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
			t.paragraph(dim.of(r.Why), 4, 0)
		}
	}
	if !o.All {
		d.gap()
		d.line(dim.of(units.Plural(len(c.Rows)-len(rows)-c.Single, "setting is the same", "settings are the same") +
			when(c.Single > 0, ", %d more were recorded in one run only", c.Single) + "; --all shows them."))
	}
	return d.print(w)
}

// RanksSaying is a comparison in sentences.
type RanksSaying struct {
	Verdict     string // on those that matter most
	Counts      string
	Differences []string
}

// RanksSaid says what Ranks prints above its table.
func RanksSaid(c *ranks.Comparison) RanksSaying {
	s := RanksSaying{Counts: chart.RankCounts(c), Differences: chart.RankDifferences(c)}
	if len(c.Groups) > 0 {
		s.Verdict = chart.RankGroup(c, &c.Groups[0])
	}
	return s
}
