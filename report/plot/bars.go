package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// maxBars is the number of stacks with bars of their own; the others are summed.
const maxBars = 12

// bar is one stack at up to two moments.
type bar struct {
	site   string
	bytes  [2]int64 // rounded
	blocks int64    // where it has the most
	stacks int
}

func (b *bar) most() int64 { return max(b.bytes[0], b.bytes[1]) }

// stacksPage shows the stacks that allocated the most at one or two moments.
func stacksPage(m Medium, s subject) *page {
	moments := slices.DeleteFunc(slices.Clone(s.moments), func(m *analyze.Moment) bool { return m == nil })
	if len(moments) == 2 && moments[0].State.Event == moments[1].State.Event {
		moments = moments[1:]
	}
	bars, rest, more := stackBars(moments)
	colors := []color.RGBA{chart.ColorLive, chart.ColorSplit}
	sums := make([]int64, len(moments))
	about, keys, tail := "Live bytes by the stack that allocated them: ", []key{}, ""
	for i, m := range moments {
		sums[i] = chart.Sum(m.Live)
		if i > 0 {
			about, tail = about+", ", tail+", "
		}
		about += units.Bytes(sums[i]) + " " + when(m)
		tail += fmt.Sprintf("%s (%s) %s", units.Bytes(rest.bytes[i]), units.Percent(rest.bytes[i], sums[i]), when(m))
		keys = append(keys, key{when(m), solid(colors[i])})
	}
	p := newPage(m, s.title("Live memory by stack on"), about)
	if len(keys) > 1 {
		p.legend(keys)
	}

	limit := int64(1)
	for _, b := range bars {
		limit = max(limit, b.most())
	}
	area, x := p.barArea(12, 310, limit, "live bytes, rounded by the allocator")

	name, num := style(smallSize, chart.ColorInk), style(smallSize, chart.ColorMuted)
	if more > 0 {
		area.Max.Y -= 30
		p.text(name, area.Min.X+4, area.Max.Y+18, "and "+units.Plural(more, "other stack")+" with "+tail)
	}
	pitch := min(area.Dy()/max(len(bars), 1), 110)
	thick := min(max((pitch-27)/len(moments), 6), 30)
	for i, b := range bars {
		y := area.Min.Y + i*pitch
		p.text(name, area.Min.X+4, y+17, fitLeft(name, b.site+", "+units.Plural(b.blocks, "block"), p.width-2*margin))
		label := units.Bytes(b.bytes[0]) + "  " + units.Percent(b.bytes[0], sums[0])
		for k, bytes := range b.bytes[:len(moments)] {
			if bytes > 0 {
				top := y + 23 + k*thick
				p.fill(image.Rect(area.Min.X, top, max(x(bytes), area.Min.X+1), top+thick-1), colors[k])
			}
			if k > 0 && bytes != b.bytes[0] {
				label += ", then " + units.Bytes(bytes) + "  " + units.Percent(bytes, sums[k])
			}
		}
		p.text(num, x(b.most())+10, y+23+len(moments)*thick/2+6, label)
	}
	return p
}

// when says at which moment a figure holds.
func when(m *analyze.Moment) string {
	switch m.Name {
	case "peak", "end":
		return "at the " + m.Name
	case "oom":
		return "when it ran out of memory"
	}
	return m.Name
}

// stackBars ranks stacks by the most that is live of them at any of the moments. What gets no bar is
// summed in rest; more is the number of those.
func stackBars(moments []*analyze.Moment) (bars []bar, rest bar, more int) {
	rows := map[snapshot.StackID]int{}
	for k, m := range moments {
		sources := chart.Sources(m.Live)
		sites := chart.Sites(sources)
		for i := range sources {
			g := &sources[i]
			row := len(bars)
			for _, stack := range g.Stacks { // one may be known from the other moment
				if known, ok := rows[stack]; ok {
					row = known
				}
			}
			if row == len(bars) {
				bars = append(bars, bar{site: sites[i]})
			}
			for _, stack := range g.Stacks {
				rows[stack] = row
			}
			bars[row].stacks = max(bars[row].stacks, len(g.Stacks))
			b := &bars[row]
			if b.bytes[k] += g.Rounded; b.bytes[k] == b.most() {
				b.blocks = max(b.blocks, g.Count)
			}
		}
	}
	sorting.Stable(bars, func(a, b bar) int { return cmp.Compare(b.most(), a.most()) })
	if len(bars) <= maxBars {
		return bars, rest, 0
	}
	for _, b := range bars[maxBars:] {
		for k := range b.bytes {
			rest.bytes[k] += b.bytes[k]
		}
		more += b.stacks
	}
	return bars[:maxBars], rest, more
}

// barArea is a place for bars of up to limit bytes on the rest of the page, but for its top and right. It
// draws their axis, with a grid, and gives where bytes end.
func (p *page) barArea(top, right int, limit int64, txt string) (area image.Rectangle, x func(bytes int64) int) {
	area = image.Rect(margin, p.top+top, p.width-margin-right, p.height-72)
	x = func(bytes int64) int { return area.Min.X + int(float64(bytes)/float64(limit)*float64(area.Dx())) }
	s := style(smallSize, chart.ColorInk)
	for _, t := range chart.ByteTicks(limit, 8) {
		at := x(t.Value)
		p.fill(image.Rect(at, area.Min.Y, at+1, area.Max.Y+6), chart.ColorGrid)
		p.text(s, at-textWidth(s, t.Label)/2, area.Max.Y+23, t.Label)
	}
	p.fill(image.Rect(area.Min.X, area.Max.Y, area.Max.X, area.Max.Y+1), chart.ColorMuted)
	s = style(smallSize, chart.ColorMuted)
	p.text(s, area.Min.X+(area.Dx()-textWidth(s, txt))/2, area.Max.Y+46, txt)
	return area, x
}

// maxSettings is the number of settings with bars of their own.
const maxSettings = 14

func whatifPage(m Medium, s subject) *page {
	a := s.d.WhatIf
	accuracy := units.Percent(int64(a.Accuracy.SameRequests), int64(a.Accuracy.Requests)) + "."
	about := fmt.Sprintf("Peak reserved memory under other allocator settings, from a replay of %s requests. ",
		units.Count(int64(a.Accuracy.Requests)))
	if !a.Accuracy.Trusted {
		about += "Guesses only: the replay accuracy is " + accuracy
	} else {
		about += "Replay accuracy: " + accuracy
	}
	p := newPage(m, s.title("Other allocator settings on"), about)

	keys := []key{{"peak allocated", solid(chart.ColorLive)}, {"peak reserved", solid(chart.ColorReleasable)}}
	limit := int64(1)
	for i := range a.Rows {
		limit = max(limit, a.Rows[i].ReservedPeak)
	}
	if n := a.Capacity.Reservable; n > 0 && n < 2*limit {
		limit = max(limit, n)
		keys = append(keys, key{"most that can be reserved (" + units.Bytes(n) + ")", upright(chart.ColorOOM)})
	}
	p.legend(keys)

	right := 205 // for figures and, where there are any, failures
	if slices.ContainsFunc(a.Rows, func(r whatif.Row) bool { return r.Failures > 0 || r.Retries > 0 }) {
		right += 235
	}
	area, x := p.barArea(10, right, limit, "peak bytes in the replay")
	shown := settings(a)
	pitch := min(area.Dy()/len(shown), 90)
	thick := min(max(pitch-30, 8), 34)
	name, num := style(smallSize, chart.ColorInk), style(smallSize, chart.ColorMuted)
	for k, i := range shown {
		row := &a.Rows[i]
		y := area.Min.Y + k*pitch
		label, font := chart.Setting(row), name
		if i == a.Best {
			label, font = label+" (recommended)", bold(smallSize)
		}
		p.text(font, area.Min.X+4, y+18, fitLeft(font, label, p.width-2*margin))
		top := y + 25
		if row.StartFailed {
			p.text(num, area.Min.X+8, top+thick/2+6, "the memory from before the trace does not fit")
			continue
		}
		to := max(x(row.ReservedPeak), area.Min.X+1)
		p.fill(image.Rect(area.Min.X, top, to, top+thick), chart.ColorReleasable)
		p.fill(image.Rect(area.Min.X, top, min(x(row.AllocatedPeak), to), top+thick), chart.ColorLive)
		mid := top + thick/2 + 6
		p.textRight(name, area.Max.X+110, mid, units.Bytes(row.ReservedPeak))
		if base := a.Rows[0].ReservedPeak; row.ReservedPeak != base && base > 0 {
			p.textRight(num, area.Max.X+195, mid, fmt.Sprintf("%+.1f%%",
				100*float64(row.ReservedPeak-base)/float64(base)))
		}
		var bad []string
		ink := num
		if row.Failures > 0 {
			text := units.Plural(row.Failures, "request fails", "requests fail")
			if row.Assumed != nil {
				text = "~" + text
			}
			bad = append(bad, text)
			ink = bold(smallSize)
			ink.Color = color.RGBA{0xb0, 0x45, 0x00, 0xff}
		}
		if row.Retries > 0 {
			bad = append(bad, units.Plural(row.Retries, "retry"))
		}
		p.text(ink, area.Max.X+215, mid, strings.Join(bad, ", "))
	}
	if n := a.Capacity.Reservable; n > 0 && n <= limit {
		p.fill(image.Rect(x(n)-1, area.Min.Y-4, x(n)+1, area.Max.Y), chart.ColorOOM)
	}
	return p
}

// settings are the rows that are drawn: the first ones, and the recommended one in any case.
func settings(a *whatif.Answer) []int {
	var out []int
	for i := range a.Rows {
		if len(out) < maxSettings {
			out = append(out, i)
		} else if i == a.Best {
			out[maxSettings-1] = i
		}
	}
	return out
}
