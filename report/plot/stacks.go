package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"slices"

	"snapana/analyze"
	"snapana/analyze/attribution"
	"snapana/analyze/units"
	"snapana/report/internal/view"
	"snapana/snapshot"
)

// maxBars is the number of stacks with bars of their own; the others are summed.
const maxBars = 12

// bar is one stack at two moments.
type bar struct {
	site      string
	peak, end int64 // rounded bytes
	blocks    int64 // at whichever of the two it holds more
}

func stacksPage(r *analyze.Result, d *analyze.Device) *page {
	peak, end := view.Find(d, "peak"), view.Find(d, "end")
	bars, rest, more := stackBars(peak, end)
	peakSum, endSum := active(peak), active(end)
	p := newPage(pageTitle(r, d, "Holders"), fmt.Sprintf("Live bytes by the stack that allocated them: %s active at the peak, %s at the end", units.Bytes(peakSum), units.Bytes(endSum)))
	p.legend([]key{{"at the peak", solid(view.ColourLive)}, {"at the end", solid(view.ColourSplit)}})

	limit := int64(1)
	for _, b := range bars {
		limit = max(limit, b.peak, b.end)
	}
	area := image.Rect(margin, p.top+16, pageWidth-margin-250, pageHeight-72)
	x := func(bytes int64) int { return area.Min.X + int(float64(bytes)/float64(limit)*float64(area.Dx())) }
	p.byteAxis(area, limit, x)

	name, num := style(smallSize, view.ColourInk), style(smallSize-2, view.ColourMuted)
	if more > 0 {
		area.Max.Y -= 30
		p.text(name, area.Min.X+4, area.Max.Y+20, fmt.Sprintf("and %s other stacks with %s (%s) at the peak, %s (%s) at the end", units.Count(int64(more)),
			units.Bytes(rest.peak), units.Percent(rest.peak, peakSum), units.Bytes(rest.end), units.Percent(rest.end, endSum)))
	}
	pitch := min(area.Dy()/len(bars), 110)
	thick := max((pitch-25)/2, 6)
	for i, b := range bars {
		y := area.Min.Y + i*pitch
		blocks := " blocks"
		if b.blocks == 1 {
			blocks = " block"
		}
		p.text(name, area.Min.X+4, y+16, fitLeft(name, b.site+", "+units.Count(b.blocks)+blocks, pageWidth-2*margin))
		for k, v := range []struct {
			bytes, sum int64
			c          color.RGBA
		}{{b.peak, peakSum, view.ColourLive}, {b.end, endSum, view.ColourSplit}} {
			top := y + 21 + k*thick
			to := max(x(v.bytes), area.Min.X+1)
			p.fill(image.Rect(area.Min.X, top, to, top+thick-1), v.c)
			p.text(num, to+8, top+thick/2+4, units.Bytes(v.bytes)+"  "+units.Percent(v.bytes, v.sum))
		}
	}
	return p
}

func active(m *analyze.Moment) int64 {
	if m == nil {
		return 0
	}
	return view.Sum(m.Live)
}

// stackBars ranks stacks by the most that they hold at either moment. What gets no bar is
// summed in rest; more is the number of those.
func stackBars(peak, end *analyze.Moment) (bars []bar, rest bar, more int) {
	rows := map[snapshot.StackID]int{}
	add := func(m *analyze.Moment, note func(*bar, *attribution.Group)) {
		if m == nil {
			return
		}
		sites := view.Sites(m.Live)
		for i := range m.Live {
			g := &m.Live[i]
			row, ok := rows[g.Stack]
			if !ok {
				row = len(bars)
				rows[g.Stack] = row
				bars = append(bars, bar{site: sites[i]})
			}
			note(&bars[row], g)
		}
	}
	add(peak, func(b *bar, g *attribution.Group) { b.peak, b.blocks = b.peak+g.Rounded, g.Count })
	add(end, func(b *bar, g *attribution.Group) {
		if b.end += g.Rounded; b.end > b.peak {
			b.blocks = g.Count
		}
	})
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(max(b.peak, b.end), max(a.peak, a.end)) })
	if len(bars) <= maxBars {
		return bars, rest, 0
	}
	for _, b := range bars[maxBars:] {
		rest.peak, rest.end, rest.blocks = rest.peak+b.peak, rest.end+b.end, rest.blocks+b.blocks
		more++
	}
	return bars[:maxBars], rest, more
}

// byteAxis draws a horizontal axis of bytes below the area, with a grid.
func (p *page) byteAxis(area image.Rectangle, limit int64, x func(int64) int) {
	s := style(smallSize, view.ColourInk)
	for _, t := range view.ByteTicks(limit, 8) {
		at := x(t.Value)
		p.fill(image.Rect(at, area.Min.Y, at+1, area.Max.Y+6), view.ColourGrid)
		p.text(s, at-textWidth(s, t.Label)/2, area.Max.Y+23, t.Label)
	}
	p.fill(image.Rect(area.Min.X, area.Max.Y, area.Max.X, area.Max.Y+1), view.ColourMuted)
	s = style(smallSize, view.ColourMuted)
	txt := "live bytes, rounded as the allocator does"
	p.text(s, area.Min.X+(area.Dx()-textWidth(s, txt))/2, area.Max.Y+46, txt)
}
