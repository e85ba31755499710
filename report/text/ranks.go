package text

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

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
	p := newPrinter(w, o)
	failed := 0
	for i := range c.Ranks {
		if c.Ranks[i].Failure != nil {
			failed++
		}
	}
	head := units.Plural(len(c.Ranks), "snapshot")
	if n := len(c.Ranks) - c.Read; n > 0 {
		head += fmt.Sprintf(", %d of them unreadable", n)
	}
	if failed > 0 {
		head += fmt.Sprintf("; %s ran out of memory", units.Plural(failed, "rank"))
	}
	p.line(p.paint(dim, head))
	for i, g := range c.Groups {
		if i == 8 && len(c.Groups) > 9 {
			p.linef("... and %s", units.Plural(len(c.Groups)-i, "more verdict"))
			break
		}
		p.group(c, &g)
	}
	differ := rankDifferences(c, failed)
	bad := c.Read > 0 && c.Ranks[0].Status != finding.Healthy
	if len(differ) > 0 || bad {
		p.line("")
	}
	p.section("Differ", differ, 24)
	if bad {
		p.section("Next", []string{"snapana report " + chart.Plain(c.Ranks[0].File)}, 4)
	}
	p.line("")
	p.ranks(c, o.All)
	return p.w.Flush()
}

// group prints a verdict and the ranks that share it.
func (p *printer) group(c *ranks.Comparison, g *ranks.Group) {
	badge := strings.ToUpper(string(g.Status))
	text := chart.Plain(g.Headline)
	first := &c.Ranks[g.Ranks[0]]
	switch n := len(g.Ranks); n {
	case 1:
		text = rankName(first, "Rank") + ": " + text
	case c.Read:
		text = fmt.Sprintf("All %d ranks agree; %s: %s", n, rankName(first, "rank"), text)
	default:
		text = fmt.Sprintf("Ranks %s agree; %s: %s", rankList(c, g.Ranks), rankName(first, "rank"), text)
	}
	p.headline(badge, g.Status.Tone(), text, math.MaxInt)
}

// rankDifferences says who failed first and who has more than the others.
func rankDifferences(c *ranks.Comparison, failed int) []string {
	var out []string
	if k := &c.Ranks[0]; failed > 1 && k.Failure.Time != 0 {
		s := fmt.Sprintf("%s ran out of memory first, at %s UTC by its machine's clock", rankName(k, "Rank"), clock(k.Failure.Time))
		if next := &c.Ranks[1]; next.Failure.Time != 0 {
			s += fmt.Sprintf("; the next was %s, %s later", rankName(next, "rank"), units.Micros(next.Failure.Time-k.Failure.Time))
		}
		out = append(out, s+".")
	}
	for _, o := range c.Outliers {
		k := &c.Ranks[o.Rank]
		s := fmt.Sprintf("%s peaks at %s of active memory, %s above the median of the ranks", rankName(k, "Rank"), units.Bytes(k.Active),
			units.Bytes(k.Over))
		if c.MedianActive > 0 {
			s = fmt.Sprintf("%s uses %.3gx the median of the ranks at its peak (%s vs %s active)", rankName(k, "Rank"),
				float64(k.Active)/float64(c.MedianActive), units.Bytes(k.Active), units.Bytes(c.MedianActive))
		}
		for i, d := range o.Sites {
			s += fmt.Sprintf("%s %s has %s (median %s)", map[bool]string{true: ":", false: ","}[i == 0], chart.ClipLeft(chart.Plain(d.Site), 60), units.Bytes(d.Bytes), units.Bytes(d.Median))
		}
		out = append(out, s+".")
	}
	if len(out) == 0 && c.Read > 3 {
		out = append(out, fmt.Sprintf("No rank stands out: the median peak of active memory is %s.", units.Bytes(c.MedianActive)))
	}
	return out
}

func clock(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05.000000") }

func (p *printer) ranks(c *ranks.Comparison, all bool) {
	room := p.width - 74
	p.line(p.paint(bold, right("rank", 6)+right("reserved peak", 15)+right("active peak", 13)+right("vs median", 11)+right("end", 11)+"  "+pad("verdict", 16)+"file"))
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if i == maxRanks-1 && len(c.Ranks) > maxRanks && !all {
			p.line(p.paint(dim, fmt.Sprintf("... and %s; --all shows them", units.Plural(len(c.Ranks)-i, "more rank"))))
			return
		}
		number := "?"
		if k.Number >= 0 {
			number = fmt.Sprint(k.Number)
		}
		file := chart.ClipLeft(chart.Plain(k.File), max(room, 12))
		if k.Fault != "" {
			for j, l := range wrap(chart.Clip(chart.Plain(k.Fault), 400), p.width-8) {
				if j > 0 {
					number = ""
				}
				p.line(right(number, 6) + "  " + p.paint(red, l))
			}
			continue
		}
		of := "-"
		if c.MedianActive > 0 {
			of = fmt.Sprintf("%+.1f%%", 100*float64(k.Over)/float64(c.MedianActive))
		}
		p.line(right(number, 6) + right(units.Bytes(k.Reserved), 15) + right(units.Bytes(k.Active), 13) + right(of, 11) + right(units.Bytes(k.End), 11) + "  " +
			p.paint(tones[k.Status.Tone()], pad(string(k.Status), 16)) + file)
	}
}

// rankName names one rank by its number, behind the word for it, or by its file.
func rankName(k *ranks.Rank, word string) string {
	if k.Number >= 0 {
		return fmt.Sprintf("%s %d", word, k.Number)
	}
	return chart.ClipLeft(chart.Plain(k.File), 40)
}

// rankList names ranks by runs of numbers: "0 to 4, 6, 7".
func rankList(c *ranks.Comparison, rows []int) string {
	const most = 6
	var numbers []int
	var words []string
	for _, row := range rows {
		if k := &c.Ranks[row]; k.Number >= 0 {
			numbers = append(numbers, k.Number)
		} else {
			words = append(words, rankName(k, ""))
		}
	}
	slices.Sort(numbers)
	var runs []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		switch {
		case j > i+1:
			runs = append(runs, fmt.Sprintf("%d to %d", numbers[i], numbers[j]))
		default:
			j = i
			runs = append(runs, fmt.Sprint(numbers[i]))
		}
		i = j + 1
	}
	words = append(runs, words...)
	if len(words) > most {
		words = append(words[:most-1:most-1], fmt.Sprintf("... %d more", len(words)-most+1))
	}
	return strings.Join(words, ", ")
}
