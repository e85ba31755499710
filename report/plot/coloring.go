package plot

import (
	"cmp"
	"image/color"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// numRanks is how many that hold the most have a color of their own. They have the rows of
// chart.Slots by rank, categories their own.
const numRanks = 8

// The ranks of all others, and of what is not known.
const (
	rankOther = len(chart.Slots) + iota
	rankUnknown
)

func rankColor(rank int) color.RGBA {
	switch {
	case rank < rankOther:
		return chart.Slots[rank].Light
	case rank == rankUnknown:
		return chart.SlotUnknown.Light
	}
	return chart.SlotOther.Light
}

// coloring gives live blocks their colors.
type coloring struct {
	title   string
	entries []entry // of the legend, largest first
	rank    func(row int32) int
}

type entry struct {
	name  string
	bytes int64
	rank  int
}

func (c *coloring) name(rank int) string {
	for i := range c.entries {
		if c.entries[i].rank == rank {
			return c.entries[i].name
		}
	}
	return "other"
}

// byStack colors the stacks that hold the most.
func byStack(t *timeline.Timeline, m *analyze.Moment) coloring {
	c := coloring{title: "Live blocks by stack"}
	top, other, more := chart.Top(m.Live, numRanks)
	ranks := make(map[snapshot.StackID]int, len(top))
	for i, site := range chart.Sites(top) {
		ranks[top[i].Stack] = i
		c.entries = append(c.entries, entry{site, top[i].Rounded, i})
	}
	if more > 0 {
		c.entries = append(c.entries, entry{units.Count(int64(more)) + " other stacks", other.Rounded, rankOther})
	}
	c.rank = func(row int32) int {
		if rank, ok := ranks[t.Lives[row].Stack]; ok {
			return rank
		}
		return rankOther
	}
	return c
}

// byCategory colors live blocks by what they are for, as all drawings do. Rows of which
// nothing is said are unknown.
func byCategory(t *timeline.Timeline, m *analyze.Moment, name func(row int32) string) coloring {
	unknown := category.Unknown.String()
	c := byName(t, m, "Live blocks by purpose", func(row int32) string { return cmp.Or(name(row), unknown) }, unknown)
	ranks := map[string]int{}
	for _, use := range category.All() {
		ranks[use.String()] = rankOther
		if slot, ok := chart.UseSlot(use); ok {
			ranks[use.String()] = slot
		}
	}
	ranks[unknown] = rankUnknown
	for i := range c.entries {
		c.entries[i].rank = ranks[c.entries[i].name]
	}
	c.rank = func(row int32) int { return ranks[cmp.Or(name(row), unknown)] }
	return c
}

// byName colors live blocks by what a function says of them, those with the most bytes first
// unless they stand in last.
func byName(t *timeline.Timeline, m *analyze.Moment, title string, name func(row int32) string, last ...string) coloring {
	c := coloring{title: title}
	bytes := map[string]int64{}
	for i := range m.State.Segments {
		for _, row := range m.State.Segments[i].Live {
			bytes[name(row)] += t.Lives[row].Rounded
		}
	}
	for n, b := range bytes {
		c.entries = append(c.entries, entry{name: n, bytes: b})
	}
	slices.SortFunc(c.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(slices.Index(last, a.name), slices.Index(last, b.name)), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	ranks := map[string]int{}
	for i := range c.entries {
		c.entries[i].rank = min(i, rankOther)
		ranks[c.entries[i].name] = c.entries[i].rank
	}
	c.rank = func(row int32) int { return ranks[name(row)] }
	return c
}

const waiting = "freed, waiting for another stream"

// byState tells blocks in use from those that only wait for another stream.
func byState(t *timeline.Timeline, m *analyze.Moment) coloring {
	return byName(t, m, "Live blocks by state", func(row int32) string {
		if t.Lives[row].Waits(m.State.Event) {
			return waiting
		}
		return "allocated"
	}, waiting)
}
