package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxRanks is how many ranks are listed unless all are asked for.
const maxRanks = 16

// Ranks prints the snapshots of a run side by side: the verdicts and who shares them, who differs,
// and a line for each rank.
func Ranks(w io.Writer, c *ranks.Comparison, o Options) error {
	d := newDoc(o)
	failed := 0
	for i := range c.Ranks {
		if c.Ranks[i].Failure != nil {
			failed++
		}
	}
	d.line(dim.of(units.Plural(len(c.Ranks), "snapshot") +
		when(c.Read < len(c.Ranks), ", %d of them unreadable", len(c.Ranks)-c.Read) +
		when(failed > 0, "; %s ran out of memory", units.Plural(failed, "rank"))))
	for i, g := range c.Groups {
		if i == 8 && len(c.Groups) > 9 {
			d.line(more(len(c.Groups)-i, "verdict"))
			break
		}
		whose := ""
		switch n := len(g.Ranks); n {
		case 1:
		case c.Read:
			whose = fmt.Sprintf("All %d ranks agree; ", n)
		default:
			whose = fmt.Sprintf("Ranks %s agree; ", rankList(c, g.Ranks))
		}
		noun := map[bool]string{true: "Rank", false: "rank"}[whose == ""]
		d.heading(g.Status.Word(), g.Status.Tone(),
			whose+rankName(&c.Ranks[g.Ranks[0]], noun)+": "+g.Headline, 0)
	}
	differ := rankDifferences(c, failed)
	d.apart("Differ", differ, 24)
	if c.Read > 0 && c.Ranks[0].Status != finding.Healthy {
		if len(differ) == 0 {
			d.gap()
		}
		d.list("Next", []string{"snapana report " + Arg(c.Ranks[0].File)}, 4)
	}
	d.gap()
	d.ranks(c, o.All)
	return d.print(w)
}

// rankDifferences says who failed first and who has more than the others.
func rankDifferences(c *ranks.Comparison, failed int) []string {
	var out []string
	if k := &c.Ranks[0]; failed > 1 && k.Failure.Time != 0 {
		next, at := &c.Ranks[1], time.UnixMicro(k.Failure.Time).UTC().Format("2006-01-02 15:04:05.000000")
		out = append(out, fmt.Sprintf("%s ran out of memory first, at %s UTC by its machine's clock%s.",
			rankName(k, "Rank"), at, when(next.Failure.Time != 0, "; the next was %s, %s later",
				rankName(next, "rank"), units.Micros(next.Failure.Time-k.Failure.Time))))
	}
	for _, o := range c.Outliers {
		k := &c.Ranks[o.Rank]
		s := fmt.Sprintf("%s peaks at %s of active memory, %s above the median of the ranks", rankName(k, "Rank"),
			units.Bytes(k.Active), units.Bytes(k.Over))
		if c.MedianActive > 0 {
			s = fmt.Sprintf("%s uses %.3gx the median of the ranks at its peak (%s vs %s active)", rankName(k, "Rank"),
				float64(k.Active)/float64(c.MedianActive), units.Bytes(k.Active), units.Bytes(c.MedianActive))
		}
		sep := ": "
		for _, d := range o.Sites {
			s += fmt.Sprintf("%s%s has %s (median %s)", sep, chart.ClipLeft(chart.Plain(d.Site), 60),
				units.Bytes(d.Bytes), units.Bytes(d.Median))
			sep = ", "
		}
		out = append(out, s+".")
	}
	if len(out) == 0 && c.Read > 3 {
		out = append(out, "No rank stands out: the median peak of active memory is "+units.Bytes(c.MedianActive)+".")
	}
	return out
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
		over := when(c.MedianActive > 0, "%+.1f%%", 100*float64(k.Over)/float64(c.MedianActive))
		t.row(number, units.Size(k.Reserved), units.Size(k.Active), cmp.Or(over, "-"), units.Size(k.End),
			tones[k.Status.Tone()].of(k.Status.Word()), k.File)
	}
}

// rankName names one rank by its number, behind the word for it, or by its file.
func rankName(k *ranks.Rank, word string) string {
	if k.Number >= 0 {
		return fmt.Sprintf("%s %d", word, k.Number)
	}
	return chart.ClipLeft(chart.Plain(k.File), 40)
}

// rankList names ranks by their numbers, and those without one by their files.
func rankList(c *ranks.Comparison, rows []int) string {
	var numbers []int
	var files []string
	for _, row := range rows {
		if k := &c.Ranks[row]; k.Number >= 0 {
			numbers = append(numbers, k.Number)
		} else {
			files = append(files, rankName(k, ""))
		}
	}
	slices.Sort(numbers)
	return ranges(numbers, files)
}

// ranges names numbers in rising order by their runs, then others: "0 to 4, 6, 7".
func ranges(numbers []int, others []string) string {
	const most = 8
	var parts []string
	for first := 0; first < len(numbers); {
		end := first + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		if end == first+2 {
			end--
		}
		parts = append(parts, fmt.Sprint(numbers[first])+when(end > first+1, " to %d", numbers[end-1]))
		first = end
	}
	if parts = append(parts, others...); len(parts) > most {
		parts = append(parts[:most-1:most-1], fmt.Sprintf("... %d more", len(parts)-most+1))
	}
	return strings.Join(parts, ", ")
}

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
