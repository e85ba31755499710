package plot

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// coloring gives live blocks their colors.
type coloring struct {
	title   string
	entries []entry // of the legend, largest first
	slot    func(row int32) chart.Slot
}

type entry struct {
	name  string
	bytes int64
	slot  chart.Slot
}

func (c *coloring) name(slot chart.Slot) string {
	if i := slices.IndexFunc(c.entries, func(e entry) bool { return e.slot == slot }); i >= 0 {
		return c.entries[i].name
	}
	return "other"
}

// byStack colors the stacks that allocated the most.
func byStack(t *timeline.Timeline, m *analyze.Moment) coloring {
	slots := chart.StackColors(m)
	c := coloring{title: "Live blocks by stack", slot: func(row int32) chart.Slot { return slots[t.Lives[row].Stack] }}
	top, other, more := chart.Largest(m.Live, chart.StackSlots)
	for i, site := range chart.Sites(top) {
		c.entries = append(c.entries, entry{site, top[i].Rounded, slots[top[i].Stack]})
	}
	if more > 0 {
		c.entries = append(c.entries, entry{units.Count(int64(more)) + " other stacks", other.Rounded, chart.SlotOther})
	}
	return c
}

// byCategory colors live blocks by what they are for, as all drawings do. Rows of which
// nothing is said are unknown.
func byCategory(t *timeline.Timeline, m *analyze.Moment, name func(row int32) string) coloring {
	slots := map[string]chart.Slot{}
	for _, use := range category.All() {
		slots[use.String()] = chart.UseSlot(use)
	}
	unknown := category.Unknown.String()
	return byName(t, m, "Live blocks by purpose", func(row int32) string { return cmp.Or(name(row), unknown) },
		func(_ int, name string) chart.Slot { return slots[name] }, unknown)
}

// byName colors live blocks by what a function says of them, those with the most bytes first
// but for the last name. The slot is that of a name, or of its place.
func byName(t *timeline.Timeline, m *analyze.Moment, title string, name func(row int32) string,
	slot func(place int, name string) chart.Slot, last string) coloring {
	c := coloring{title: title}
	bytes := map[string]int64{}
	for _, row := range m.State.Rows() {
		bytes[name(row)] += t.Lives[row].Rounded
	}
	for n, b := range bytes {
		c.entries = append(c.entries, entry{name: n, bytes: b})
	}
	slices.SortFunc(c.entries, func(a, b entry) int {
		ends := []string{last}
		return cmp.Or(cmp.Compare(slices.Index(ends, a.name), slices.Index(ends, b.name)),
			cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	slots := map[string]chart.Slot{}
	for i := range c.entries {
		e := &c.entries[i]
		e.slot = slot(i, e.name)
		slots[e.name] = e.slot
	}
	c.slot = func(row int32) chart.Slot { return slots[name(row)] }
	return c
}

// byState tells blocks in use from those that only wait for another stream.
func byState(t *timeline.Timeline, m *analyze.Moment) coloring {
	const waiting = "freed, waiting for another stream"
	return byName(t, m, "Live blocks by state", func(row int32) string {
		if t.Lives[row].Waits(m.State.Event) {
			return waiting
		}
		return "allocated"
	}, func(place int, _ string) chart.Slot { return chart.Slot(place + 1) }, waiting)
}
