package chart

import (
	"cmp"
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

// RankCounts says how many snapshots of a run there are, how many of them failed, and which are missing.
func RankCounts(c *ranks.Comparison) string {
	s := units.Plural(len(c.Ranks), "snapshot")
	if n := len(c.Ranks) - c.Read; n > 0 {
		s += fmt.Sprintf(", %d of them unreadable", n)
	}
	if c.Copies > 0 {
		s += ", " + units.Plural(c.Copies, "copy", "copies") + " left out"
	}
	if c.Older > 0 {
		s += ", " + units.Plural(c.Older, "older state") + " of the same paths left out"
	}
	if n := len(c.Missing); n > 0 {
		s += fmt.Sprintf("; %d of %s missing (%s)", n, units.Plural(c.Expected, "rank"), Ranges(c.Missing, nil))
	} else if n := c.Expected - len(c.Ranks); n > 0 {
		s += fmt.Sprintf("; %s missing, and not all files tell which they are", units.Plural(n, "rank"))
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
		if whose = rankList(c, g.Ranks); strings.Contains(whose, "...") && n > 64 {
			whose = units.Plural(n, "rank") + " agree; "
			break
		}
		whose = "Ranks " + whose + " agree; "
	}
	return whose + RankName(&c.Ranks[g.Ranks[0]], noun) + ": " + g.Headline
}

// RankDifferences says who failed first, who has more than the others or did less, and what else differs.
func RankDifferences(c *ranks.Comparison) []string {
	out := slices.Concat(rankFirst(c), rankHosts(c), rankOutliers(c))
	for _, x := range c.Extras {
		s := fmt.Sprintf("Only %s has memory of %s at its peak: %s", RankName(&c.Ranks[x.Rank], "rank"), rankSite(x.Site),
			units.Bytes(x.Bytes))
		if x.Most > 0 {
			s += ", and no other more than " + units.Bytes(x.Most)
		}
		out = append(out, s+".")
	}
	alike := len(out) == 0 && c.Peaks >= 4*places(c) // of fewer none could stand out
	for _, x := range c.Stragglers {
		s := fmt.Sprintf("%s did %s, the median rank %d", RankName(&c.Ranks[x.Rank], "Rank"),
			units.Plural(int(x.Steps), "step"), x.Median)
		if x.Late > 0 {
			s += fmt.Sprintf("; it began %s later", units.Micros(x.Late))
		}
		out = append(out, s+".")
	}
	out = append(out, rankUncounted(c)...)
	for i := range c.Odd {
		out = append(out, rankOdd(c, &c.Odd[i]))
	}
	out = append(out, rankMesh(c)...)
	if alike {
		out = append([]string{"No rank stands out: the median peak of active memory is " +
			units.Bytes(c.MedianActive) + "."}, out...)
	}
	return out
}

func rankSite(site string) string { return ClipLeft(Plain(site), 60) }

// rankFirst says who failed first, and how far that is certain.
func rankFirst(c *ranks.Comparison) []string {
	f := c.First
	if f == nil || f.Next < 0 {
		return nil
	}
	if f.Lost > 0 && f.Gap < 0 {
		return []string{fmt.Sprintf("Which rank ran out of memory first is not known: the traces of %d of %d have no "+
			"times, or may have lost an earlier failure.", f.Lost, rankFailures(c))}
	}
	k, next := &c.Ranks[f.Row], &c.Ranks[f.Next]
	among := ""
	if c.Read < len(c.Ranks) || len(c.Missing) > 0 {
		among = " of those that could be read"
	}
	at := time.UnixMicro(k.Failure.First).UTC().Format("2006-01-02 15:04:05.000000")
	if f.Certain {
		return []string{fmt.Sprintf("%s ran out of memory first%s, at %s UTC by its machine's clock; "+
			"the next was %s, %s later.", RankName(k, "Rank"), among, at, RankName(next, "rank"), units.Micros(f.Gap))}
	}
	if f.Gap == 0 {
		return []string{fmt.Sprintf("%s and %s ran out of memory at the same time%s, at %s UTC by the clocks of their "+
			"machines.", RankName(k, "Rank"), RankName(next, "rank"), among, at)}
	}
	s := fmt.Sprintf("%s may have run out of memory first%s, at %s UTC by its machine's clock; %s followed %s later",
		RankName(k, "Rank"), among, at, RankName(next, "rank"), units.Micros(f.Gap))
	if f.Gap < ranks.ClockError && !f.SameClock {
		s += ", and clocks of two machines may differ by more"
	}
	if f.Lost > 0 {
		s += fmt.Sprintf("; %s may have lost an earlier failure", units.Plural(f.Lost, "other trace",
			"other traces"))
	}
	return []string{s + "."}
}

func rankHosts(c *ranks.Comparison) (out []string) {
	for i := range c.Hosts {
		h := &c.Hosts[i]
		where := "on machine " + Clip(Plain(h.Name), 40)
		if h.Folder {
			where = "in folder " + Clip(Plain(h.Name), 40)
		}
		out = append(out, fmt.Sprintf("All %s %s (%s) stand out: each peaks at least %s above the median of those like it.",
			units.Plural(len(h.Ranks), "rank"), where, rankList(c, h.Ranks), units.Bytes(h.Least)))
	}
	return out
}

func rankOutliers(c *ranks.Comparison) (out []string) {
	for _, o := range c.Outliers {
		if slices.ContainsFunc(c.Hosts, func(h ranks.Host) bool { return slices.Contains(h.Ranks, o.Rank) }) {
			continue
		}
		k := &c.Ranks[o.Rank]
		s := fmt.Sprintf("%s peaks at %s of active memory, %s above the median of the ranks", RankName(k, "Rank"),
			units.Bytes(k.Active), units.Bytes(k.Over))
		if o.Median > 0 {
			s = fmt.Sprintf("%s uses %.3gx the median of the ranks%s at its peak (%s vs %s active)", RankName(k, "Rank"),
				float64(k.Active)/float64(o.Median), likeIt(c), units.Bytes(k.Active), units.Bytes(o.Median))
		}
		sep := ": "
		for _, d := range o.Sites {
			s += fmt.Sprintf("%s%s has %s (median %s)", sep, rankSite(d.Site), units.Bytes(d.Bytes), units.Bytes(d.Median))
			sep = ", "
		}
		out = append(out, s+".")
	}
	return out
}

// places is into how many kinds ranks are sorted by their places on axes.
func places(c *ranks.Comparison) int {
	n := 1
	if c.Mesh != nil {
		for _, a := range c.Mesh.Axes {
			if a.Explains {
				n *= a.Size
			}
		}
	}
	return n
}

// likeIt says that ranks are compared by their places on axes, where they are.
func likeIt(c *ranks.Comparison) string {
	if places(c) > 1 {
		return " like it"
	}
	return ""
}

// rankUncounted says of whom steps are not compared.
func rankUncounted(c *ranks.Comparison) []string {
	const most = 3
	var parts []string
	for i, u := range c.Uncounted {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(c.Uncounted)-most))
			break
		}
		who := RankName(&c.Ranks[u.Ranks[0]], "rank")
		if len(u.Ranks) > 1 {
			who = "ranks " + rankList(c, u.Ranks)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", Clip(Plain(cmp.Or(u.Unit, "unknown")), 60), who))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Too few ranks count steps by one unit to compare these: %s.", strings.Join(parts, ", "))}
}

func rankOdd(c *ranks.Comparison, o *ranks.Odd) string {
	value := func(s string) string {
		if s == "" {
			return "none"
		}
		return Clip(Plain(s), 60)
	}
	noun, verb := "Ranks "+rankList(c, o.Ranks), "have"
	if len(o.Ranks) == 1 {
		noun, verb = RankName(&c.Ranks[o.Ranks[0]], "Rank"), "has"
	}
	return fmt.Sprintf("%s %s another value of %s than the others: %s, they have %s.", noun, verb,
		Clip(Plain(o.Name), 40), value(o.Value), value(o.Usual))
}

// rankMesh says by which axes the peaks differ.
func rankMesh(c *ranks.Comparison) (out []string) {
	if c.Mesh == nil {
		return nil
	}
	var names []string
	longest := 0
	for i := range c.Mesh.Axes {
		a := &c.Mesh.Axes[i]
		longest = max(longest, a.Size)
		names = append(names, Plain(a.Name))
		if !a.Explains {
			continue
		}
		var parts []string
		for place, m := range a.Medians {
			if place == told && len(a.Medians) > told {
				parts = append(parts, fmt.Sprintf("... %d more", len(a.Medians)-told))
				break
			}
			parts = append(parts, RankFigure(m))
		}
		list := strings.Join(parts, ", ")
		if c.Mesh.Inferred {
			out = append(out, fmt.Sprintf("Peaks differ as if there were %d stages, of which %s: medians %s. That is inferred "+
				"from the peaks; ranks are compared within a stage.", a.Size, stages(a), list))
			continue
		}
		out = append(out, fmt.Sprintf("Peaks differ by %s: from 0 to %d the medians are %s. Ranks are compared with those "+
			"at the same place.", Plain(a.Name), a.Size-1, list))
	}
	if len(out) == 0 && c.Peaks > 3 && c.Peaks >= 2*longest {
		out = append(out, fmt.Sprintf("The peaks do not differ by %s.", strings.Join(names, " or ")))
	}
	return out
}

// told is how many places of an axis are told.
const told = 8

// stages says which ranks are of one stage.
func stages(a *ranks.Axis) string {
	if a.Stride == 1 {
		return fmt.Sprintf("each %d ranks in a row have one of each", a.Size)
	}
	return fmt.Sprintf("each has %d ranks in a row", a.Stride)
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
