package plot

import (
	"fmt"
	"image"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxPoints of a curve are drawn, about one per column of pixels.
const maxPoints = 1400

// faded gives a color for areas under a line of that color.
func faded(c color.RGBA, alpha uint16) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((uint16(v)*alpha + 255*(255-alpha)) / 255) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

func timelinePage(m Medium, r *analyze.Result, d *analyze.Device) *page {
	t := d.Timeline
	about := fmt.Sprintf("%s events. Peak: %s reserved, %s active.", units.Count(int64(t.Trace.Len())),
		units.Bytes(t.PeakReserved.Bytes), units.Bytes(t.PeakActive.Bytes))
	if n := len(t.OOMs); n > 0 {
		about += fmt.Sprintf(" Out of memory: %s; the last request was for %s.", units.Times(n), units.Bytes(t.OOMs[n-1].Requested))
	}
	p := newPage(m, pageTitle(r, d, "Memory of"), about)

	keys := []key{
		{"reserved", area(faded(chart.ColorReleasable, 120), chart.ColorMuted)},
		{"active", area(faded(chart.ColorLive, 150), chart.ColorLive)},
		{"allocated", line(chart.ColorAllocated)},
		{"peak", dot},
	}
	if len(t.OOMs) > 0 {
		keys = append(keys, key{"out of memory", upright(chart.ColorOOM)})
	}
	if len(t.Retries) > 0 {
		keys = append(keys, key{"cudaMalloc failed, cache released", upright(chart.ColorSplit)})
	}
	p.legend(keys)

	axis := chart.TellingAxis(t, r.Snapshot.HasTimes)
	top := max(t.PeakReserved.Bytes, t.PeakActive.Bytes, 1)
	limit := float64(top) * 1.12 // leaves place for the labels of peaks
	g, grid := overTime(axis.Span, limit, 8, [2]string{axis.Label(), "bytes on the device"}, axis.Ticks(10))
	g.Add(&history{t: t, axis: axis, points: chart.Reduce(t.Curve, maxPoints), grid: grid})
	g.Draw(p.body(12))
	return p
}

func area(c, edge color.RGBA) func(*page, image.Rectangle) {
	return func(p *page, r image.Rectangle) {
		p.fill(r, c)
		p.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+2), edge)
	}
}

func line(c color.RGBA) func(*page, image.Rectangle) {
	return func(p *page, r image.Rectangle) {
		y := (r.Min.Y + r.Max.Y) / 2
		for x := r.Min.X; x < r.Max.X; x += 10 {
			p.fill(image.Rect(x, y-1, min(x+6, r.Max.X), y+1), c)
		}
	}
}

func upright(c color.RGBA) func(*page, image.Rectangle) {
	return func(p *page, r image.Rectangle) {
		x := (r.Min.X + r.Max.X) / 2
		p.fill(image.Rect(x-1, r.Min.Y-3, x+1, r.Max.Y+3), c)
	}
}

func dot(p *page, r image.Rectangle) {
	c := vg.Point{X: vg.Length(r.Min.X+r.Max.X) / 2, Y: vg.Length(p.height) - vg.Length(r.Min.Y+r.Max.Y)/2}
	p.canvas.DrawGlyphNoClip(peakGlyph(chart.ColorInk), c)
}

func peakGlyph(c color.Color) vgdraw.GlyphStyle {
	return vgdraw.GlyphStyle{Color: c, Radius: 5, Shape: vgdraw.CircleGlyph{}}
}

// history draws the curves of a timeline with its marks.
type history struct {
	t      *timeline.Timeline
	axis   chart.Axis
	points []timeline.Point
	grid   []chart.Tick
}

// Plot implements plot.Plotter.
func (h *history) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	at := func(px, bytes int64) vg.Point { return vg.Point{X: x(float64(px)), Y: y(float64(bytes))} }
	steps := func(first int64, value func(*timeline.Point) int64) []vg.Point {
		out := []vg.Point{at(0, first)}
		var prev int64
		for i := range h.points {
			pt, v := &h.points[i], value(&h.points[i])
			end := h.axis.Point(pt, prev)
			out = append(out, at(prev, v), at(end, v))
			prev = end
		}
		return append(out, at(h.axis.Span, value(&h.points[len(h.points)-1])))
	}
	under := func(top []vg.Point) []vg.Point {
		out := append([]vg.Point{at(0, 0)}, top...)
		return append(out, at(h.axis.Span, 0))
	}

	init := &h.t.Initial
	reserved := steps(init.Reserved, func(p *timeline.Point) int64 { return p.Max.Reserved })
	active := steps(init.Active, func(p *timeline.Point) int64 { return p.Max.Active })
	floor := steps(init.Active, func(p *timeline.Point) int64 { return p.Min.Active })
	allocated := steps(init.Allocated, func(p *timeline.Point) int64 { return p.Max.Allocated })
	c.FillPolygon(faded(chart.ColorReleasable, 120), under(reserved))
	c.FillPolygon(faded(chart.ColorLive, 90), under(active))
	c.FillPolygon(faded(chart.ColorLive, 150), under(floor)) // between the two, memory comes and goes
	gridLines(c, h.grid, y, 0x30)
	c.StrokeLines(vgdraw.LineStyle{Color: chart.ColorMuted, Width: 2}, reserved)
	c.StrokeLines(vgdraw.LineStyle{Color: chart.ColorLive, Width: 1.5}, active)
	c.StrokeLines(vgdraw.LineStyle{Color: chart.ColorAllocated, Width: 1.5, Dashes: []vg.Length{6, 4}}, allocated)
	h.marks(c, at)
}

// marks draws failures and peaks with their labels.
func (h *history) marks(c vgdraw.Canvas, at func(px, bytes int64) vg.Point) {
	for _, i := range distinct(len(h.t.Retries), func(i int) int64 { return h.axis.Event(h.t.Retries[i].FirstEvent) }, h.axis.Span) {
		h.upright(c, at, h.t.Retries[i].FirstEvent, c.Min.Y+(c.Max.Y-c.Min.Y)/12, chart.ColorSplit)
	}
	l := h.failures(c, at)
	for _, k := range []struct {
		peak timeline.Peak
		name string
		ink  color.RGBA
	}{{h.t.PeakReserved, "reserved", chart.ColorMuted}, {h.t.PeakActive, "active", chart.ColorLive}} {
		pt := at(h.axis.Event(k.peak.Event), k.peak.Bytes)
		c.DrawGlyphNoClip(peakGlyph(k.ink), pt)
		l.add(pt, "peak "+k.name+" "+units.Bytes(k.peak.Bytes), k.ink)
	}
}

// upright draws the line of one event.
func (h *history) upright(c vgdraw.Canvas, at func(px, bytes int64) vg.Point, event int, top vg.Length, ink color.Color) {
	px := at(h.axis.Event(event), 0)
	c.StrokeLine2(vgdraw.LineStyle{Color: ink, Width: 2}, px.X, c.Min.Y, px.X, top)
}

// failures draws the out-of-memory events and names the last one.
func (h *history) failures(c vgdraw.Canvas, at func(px, bytes int64) vg.Point) *labels {
	for _, i := range distinct(len(h.t.OOMs), func(i int) int64 { return h.axis.Event(h.t.OOMs[i].Event) }, h.axis.Span) {
		h.upright(c, at, h.t.OOMs[i].Event, c.Max.Y, chart.ColorOOM)
	}
	l := &labels{c: c, style: bold(textSize)}
	if n := len(h.t.OOMs); n > 0 {
		o := &h.t.OOMs[n-1]
		x := at(h.axis.Event(o.Event), 0).X
		l.taken = append(l.taken, vg.Rectangle{Min: vg.Point{X: x - 2, Y: c.Min.Y}, Max: vg.Point{X: x + 2, Y: c.Max.Y}})
		l.add(vg.Point{X: x, Y: c.Max.Y}, "out of memory: "+units.Bytes(o.Requested)+" requested", chart.ColorOOM)
	}
	return l
}

// distinct lists the marks that fall on columns of their own, of n whose places on an axis of
// a span are given; a trace can hold thousands.
func distinct(n int, place func(int) int64, span int64) []int {
	var out []int
	last := int64(-1)
	for i := range n {
		if col := int64(float64(place(i)) / float64(max(span, 1)) * maxPoints); col != last {
			out, last = append(out, i), col
		}
	}
	return out
}
