package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/analyze/units"
)

func rankFailures(c *ranks.Comparison) (failed int) {
	for i := range c.Ranks {
		if c.Ranks[i].Failure != nil {
			failed++
		}
	}
	return failed
}

// RankCounts says how many snapshots of a run there are, and how many of them failed.
func RankCounts(c *ranks.Comparison) string {
	s := units.Plural(len(c.Ranks), "snapshot")
	if n := len(c.Ranks) - c.Read; n > 0 {
		s += fmt.Sprintf(", %d of them unreadable", n)
	}
	if n := rankFailures(c); n > 0 {
		s += fmt.Sprintf("; %s ran out of memory", units.Plural(n, "rank"))
	}
	return s
}

// RankGroup is the verdict that ranks share, with their names.
func RankGroup(c *ranks.Comparison, g *ranks.Group) string {
	whose, noun := "", "rank"
	switch n := len(g.Ranks); n {
	case 1:
		noun = "Rank"
	case c.Read:
		whose = fmt.Sprintf("All %d ranks agree; ", n)
	default:
		whose = fmt.Sprintf("Ranks %s agree; ", rankList(c, g.Ranks))
	}
	return whose + RankName(&c.Ranks[g.Ranks[0]], noun) + ": " + g.Headline
}

// RankDifferences says who failed first and who has more than the others.
func RankDifferences(c *ranks.Comparison) []string {
	var out []string
	if failed := c.Ranks[:rankFailures(c)]; firstKnown(failed) {
		k, next := &failed[0], &failed[1]
		among := ""
		if c.Read < len(c.Ranks) {
			among = " of those that could be read"
		}
		out = append(out, fmt.Sprintf("%s ran out of memory first%s, at %s UTC by its machine's clock; "+
			"the next was %s, %s later.", RankName(k, "Rank"), among,
			time.UnixMicro(k.Failure.First).UTC().Format("2006-01-02 15:04:05.000000"),
			RankName(next, "rank"), units.Micros(next.Failure.First-k.Failure.First)))
	}
	for _, o := range c.Outliers {
		k := &c.Ranks[o.Rank]
		s := fmt.Sprintf("%s peaks at %s of active memory, %s above the median of the ranks", RankName(k, "Rank"),
			units.Bytes(k.Active), units.Bytes(k.Over))
		if c.MedianActive > 0 {
			s = fmt.Sprintf("%s uses %.3gx the median of the ranks at its peak (%s vs %s active)", RankName(k, "Rank"),
				float64(k.Active)/float64(c.MedianActive), units.Bytes(k.Active), units.Bytes(c.MedianActive))
		}
		sep := ": "
		for _, d := range o.Sites {
			s += fmt.Sprintf("%s%s has %s (median %s)", sep, ClipLeft(Plain(d.Site), 60),
				units.Bytes(d.Bytes), units.Bytes(d.Median))
			sep = ", "
		}
		out = append(out, s+".")
	}
	if len(out) == 0 && c.Peaks > 3 {
		out = append(out, "No rank stands out: the median peak of active memory is "+units.Bytes(c.MedianActive)+".")
	}
	return out
}

// firstKnown reports whether one of the ranks that failed, which are in order, was the first for certain.
func firstKnown(failed []ranks.Rank) bool {
	return len(failed) > 1 && failed[0].Failure.First < failed[1].Failure.First &&
		!slices.ContainsFunc(failed, func(k ranks.Rank) bool { return k.Failure.First == 0 })
}

// RankFigure prints a figure of a rank in bytes, of which -1 is unknown.
func RankFigure(n int64) string {
	if n < 0 {
		return "unknown"
	}
	return units.Bytes(n)
}

// RankName names one rank by its number, behind the word for it, or by its file.
func RankName(k *ranks.Rank, word string) string {
	if k.Number >= 0 {
		return fmt.Sprintf("%s %d", word, k.Number)
	}
	return ClipLeft(Plain(k.File), 40)
}

// rankList names ranks by their numbers, and those without one by their files.
func rankList(c *ranks.Comparison, rows []int) string {
	var numbers []int
	var files []string
	for _, row := range rows {
		if k := &c.Ranks[row]; k.Number >= 0 {
			numbers = append(numbers, k.Number)
		} else {
			files = append(files, RankName(k, ""))
		}
	}
	slices.Sort(numbers)
	return Ranges(numbers, files)
}

// Ranges names numbers in rising order by their runs, then others: "0 to 4, 6, 7".
func Ranges(numbers []int, others []string) string {
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
		run := fmt.Sprint(numbers[first])
		if end > first+1 {
			run += fmt.Sprintf(" to %d", numbers[end-1])
		}
		parts = append(parts, run)
		first = end
	}
	if parts = append(parts, others...); len(parts) > most {
		parts = append(parts[:most-1:most-1], fmt.Sprintf("... %d more", len(parts)-most+1))
	}
	return strings.Join(parts, ", ")
}
