package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"snapana/analyze"
	"snapana/analyze/timeline"
	"snapana/analyze/units"
	"snapana/report/internal/view"
	"snapana/snapshot"
)

// rankColours are the colours of those that hold the most, largest first: the palette of Okabe
// and Ito, and two more.
var rankColours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x8c, 0x6b, 0x2f, 0xff}, {0x5b, 0x4b, 0x9e, 0xff},
}

// rankOther is the rank of all others.
const rankOther = len(rankColours)

func rankColour(rank int) color.RGBA {
	if rank >= rankOther {
		return color.RGBA{0x8a, 0x94, 0x9e, 0xff}
	}
	return rankColours[rank]
}

// colouring gives live blocks their colours.
type colouring struct {
	title   string
	entries []entry // of the legend, largest first
	rank    func(row int32) int
}

type entry struct {
	name  string
	bytes int64
	rank  int
}

func (c *colouring) name(rank int) string {
	for i := range c.entries {
		if c.entries[i].rank == rank {
			return c.entries[i].name
		}
	}
	return "other"
}

// byStack colours the stacks that hold the most.
func byStack(t *timeline.Timeline, m *analyze.Moment) colouring {
	c := colouring{title: "Live blocks by stack"}
	top, other, more := view.Top(m.Live, rankOther)
	ranks := make(map[snapshot.StackID]int, len(top))
	for i, site := range view.Sites(top) {
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

// unknownName is the name of blocks of which nothing is known: they have no colour.
const unknownName = "unknown"

// byName colours live blocks by what a function says of them, those with the most bytes first
// unless they stand in last.
func byName(t *timeline.Timeline, m *analyze.Moment, title string, name func(row int32) string, last ...string) colouring {
	c := colouring{title: title}
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
	if more := len(c.entries) - rankOther; more > 0 {
		var rest int64
		for _, e := range c.entries[rankOther:] {
			rest += e.bytes
		}
		c.entries = append(c.entries[:rankOther], entry{name: fmt.Sprintf("%d others", more), bytes: rest})
	}
	ranks := map[string]int{}
	for i := range c.entries {
		rank := i
		if c.entries[i].name == unknownName {
			rank = rankOther
		}
		c.entries[i].rank = rank
		ranks[c.entries[i].name] = rank
	}
	c.rank = func(row int32) int {
		if rank, ok := ranks[name(row)]; ok {
			return rank
		}
		return rankOther
	}
	return c
}

const waiting = "freed, waits for another stream"

// byState tells blocks in use from those that only wait for another stream.
func byState(t *timeline.Timeline, m *analyze.Moment) colouring {
	return byName(t, m, "Live blocks by state", func(row int32) string {
		if t.Lives[row].Waits(m.State.Event) {
			return waiting
		}
		return "allocated"
	}, waiting)
}
