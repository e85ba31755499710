package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
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
	top, other, more := chart.LargestSources(chart.Sources(m.Live), chart.StackSlots)
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
	sorting.By(c.entries, func(a, b entry) int {
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

// hatch is how free memory of a class looks: a ground, and lines on it that rise (1), fall (-1) or
// are not there (0), every so many pixels.
type hatch struct {
	ground, line color.RGBA
	slope, every int
}

var hatches = [numClasses]hatch{
	fragmentation.Releasable: {ground: faded(chart.ColorReleasable, 110)},
	fragmentation.Hard:       {color.RGBA{0xf4, 0xf4, 0xf2, 0xff}, color.RGBA{0xb0, 0xa8, 0x98, 0xff}, 1, 7},
	fragmentation.Soft:       {color.RGBA{0xf4, 0xf4, 0xf2, 0xff}, color.RGBA{0x7d, 0xb8, 0xa4, 0xff}, -1, 7},
	fragmentation.Stream:     {color.RGBA{0xf3, 0xea, 0xf4, 0xff}, color.RGBA{0xb5, 0x93, 0xbd, 0xff}, -1, 4},
}

// free paints memory without live blocks.
func (p *page) free(box image.Rectangle, class fragmentation.Class) {
	h := &hatches[class]
	if h.slope == 0 {
		p.fill(box, h.ground)
		return
	}
	if p.svg != nil {
		p.svg.rect(box, fmt.Sprintf("url(#free-%s)", class))
		return
	}
	p.fill(box, h.ground)
	height := p.raster.Rect.Dy()
	px := p.pixelsOf(box).Intersect(p.raster.Rect)
	every, thick := max(int(float64(h.every)*p.scale+0.5), 2), max(int(p.scale+0.5), 1)
	for y := px.Min.Y; y < px.Max.Y; y++ {
		for x := px.Min.X; x < px.Max.X; x++ {
			if (x+h.slope*y+every*height)%every < thick {
				p.raster.SetRGBA(x, y, h.line)
			}
		}
	}
}

// patterns defines the hatches for a page of vectors.
func patterns() string {
	var b strings.Builder
	for class, h := range hatches {
		if h.slope == 0 {
			continue
		}
		from, to := h.every, 0
		if h.slope < 0 {
			from, to = 0, h.every
		}
		fmt.Fprintf(&b, `<pattern id="free-%s" width="%[2]d" height="%[2]d" patternUnits="userSpaceOnUse">`+
			`<rect width="%[2]d" height="%[2]d" fill="%[3]s"/>`+
			`<path d="M%[4]d 0L%[5]d %[2]d" stroke="%[6]s" shape-rendering="auto"/></pattern>`,
			fragmentation.Class(class), h.every, hex(color.NRGBA(h.ground)), from, to, hex(color.NRGBA(h.line)))
	}
	return b.String()
}
