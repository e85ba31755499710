package plot

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// noteColor is that of annotations, --odd of the page.
var noteColor = color.RGBA{0x7a, 0x3f, 0xa0, 0xff}

// maxPoints of a curve are drawn, about one per column of pixels.
const maxPoints = 1400

// faded gives a color for areas under a line of that color.
func faded(c color.RGBA, alpha uint16) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((uint16(v)*alpha + 255*(255-alpha)) / 255) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 0xff}
}

func timelinePage(m Medium, s subject) *page {
	t := s.d.Timeline
	told := t.Recording.Told().Peak
	about := fmt.Sprintf("%s events. Peak: %s reserved, %s active.", units.Count(int64(t.Trace.Len())),
		told.Reserved.Of(t.PeakReserved.Bytes), told.Active.Of(t.PeakActive.Bytes))
	if n := len(t.OOMs); n > 0 {
		about += fmt.Sprintf(" Out of memory: %s; the last request was for %s.", units.Times(n),
			units.Bytes(t.OOMs[n-1].Requested))
	}
	p := newPage(m, s.title("Memory of"), about)

	keys := append(slices.Clone(curveKeys), key{"peak", dot})
	keys = append(keys, failureKeys(t)...)
	if len(t.Retries) > 0 {
		keys = append(keys, key{"device refused memory, cache released", upright(chart.ColorSplit)})
	}
	axis := s.axis()
	notes := axis.Annotations(s.r.Snapshot, t, maxPoints)
	if len(notes) > 0 {
		keys = append(keys, key{"annotation of a tensor", upright(noteColor)})
	}
	p.legend(keys)

	spans := axis.Spans(t.Curve, maxPoints)
	limit := float64(max(chart.Top(t), 1)) * 1.12 // leaves place for the labels of peaks
	p.overTime(axis, limit, func(f *frame) {
		steps := func(s chart.Series, of func(*timeline.Point) timeline.Totals) (out []vg.Point) {
			s.Steps(spans, t.Initial, of, func(x float64, bytes int64) {
				out = append(out, f.at(x*float64(axis.Span), bytes))
			})
			return out
		}
		reserved, active := steps(chart.Reserved, chart.Highest), steps(chart.Active, chart.Highest)
		f.under(faded(chart.ColorReleasable, 120), reserved)
		f.under(faded(chart.ColorLive, 90), active)
		// Between the highest and the lowest values, memory comes and goes.
		f.under(faded(chart.ColorLive, 150), steps(chart.Active, chart.Lowest))
		f.gridLines(0x30)
		for i, pts := range [][]vg.Point{reserved, active, steps(chart.Allocated, chart.Highest)} {
			f.StrokeLines(curveLines[i], pts)
		}
		for _, m := range axis.Retries(t, maxPoints) {
			f.upright(m.X*float64(axis.Span), f.Min.Y+(f.Max.Y-f.Min.Y)/12, chart.ColorSplit)
		}
		for _, m := range notes {
			f.upright(m.X*float64(axis.Span), f.Min.Y+(f.Max.Y-f.Min.Y)/24, noteColor)
		}
		f.failures(t, axis)
		f.peak("reserved", axis.Event(t.PeakReserved.Event), t.PeakReserved.Bytes, chart.ColorMuted)
		f.peak("active", axis.Event(t.PeakActive.Event), t.PeakActive.Bytes, chart.ColorLive)
	})
	return p
}

// curveKeys and curveLines are how reserved, active and allocated memory look.
var (
	curveKeys = []key{
		{"reserved", area(faded(chart.ColorReleasable, 120), chart.ColorMuted)},
		{"active", area(faded(chart.ColorLive, 150), chart.ColorLive)},
		{"allocated", line(chart.ColorAllocated)},
	}
	curveLines = [...]vgdraw.LineStyle{
		{Color: chart.ColorMuted, Width: 2},
		{Color: chart.ColorLive, Width: 1.5},
		{Color: chart.ColorAllocated, Width: 1.5, Dashes: []vg.Length{6, 4}},
	}
)

// failureKeys are the legend of failures.
func failureKeys(t *timeline.Timeline) []key {
	if len(t.OOMs) == 0 {
		return nil
	}
	return []key{{"out of memory", upright(chart.ColorOOM)}}
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

// frame is the inside of a plot over time.
type frame struct {
	vgdraw.Canvas
	labels labels
	x, y   func(float64) vg.Length
	grid   []float64 // bytes
}

// at is a place on the canvas: a file that contradicts itself may have sums that lead far off it.
func (f *frame) at(x float64, bytes int64) vg.Point {
	return vg.Point{X: f.x(x), Y: min(max(f.y(float64(bytes)), f.Min.Y), f.Max.Y)}
}

// under fills the area below a line of steps.
func (f *frame) under(ink color.Color, pts []vg.Point) {
	if n := len(pts); n > 1 {
		f.FillPolygon(ink, slices.Concat([]vg.Point{{X: pts[0].X, Y: f.y(0)}}, pts, []vg.Point{{X: pts[n-1].X, Y: f.y(0)}}))
	}
}

// gridLines draws a line at each tick of the bytes, as opaque as alpha says.
func (f *frame) gridLines(alpha uint8) {
	for _, bytes := range f.grid {
		at := f.y(bytes)
		f.StrokeLine2(vgdraw.LineStyle{Color: color.NRGBA{0x5d, 0x67, 0x72, alpha}, Width: 1}, f.Min.X, at, f.Max.X, at)
	}
}

// upright draws the line of one event.
func (f *frame) upright(x float64, top vg.Length, ink color.Color) {
	f.StrokeLine2(vgdraw.LineStyle{Color: ink, Width: 2}, f.x(x), f.Min.Y, f.x(x), top)
}

// peak draws a peak with its label.
func (f *frame) peak(name string, x, bytes int64, ink color.Color) {
	pt := f.at(float64(x), bytes)
	f.DrawGlyphNoClip(peakGlyph(ink), pt)
	f.labels.add(pt, "peak "+name+" "+units.Bytes(bytes), ink)
}

// failures draws the out-of-memory events and names the last one.
func (f *frame) failures(t *timeline.Timeline, axis chart.Axis) {
	marks := axis.OOMs(t, maxPoints)
	for i, m := range marks {
		x := m.X * float64(axis.Span)
		f.upright(x, f.Max.Y, chart.ColorOOM)
		if i == len(marks)-1 {
			f.labels.taken = append(f.labels.taken, vg.Rectangle{
				Min: vg.Point{X: f.x(x) - 2, Y: f.Min.Y}, Max: vg.Point{X: f.x(x) + 2, Y: f.Max.Y},
			})
			f.labels.add(vg.Point{X: f.x(x), Y: f.Max.Y}, m.Text, chart.ColorOOM)
		}
	}
}

// labels places short texts beside points so that they stay on the canvas and off each other.
type labels struct {
	c     vgdraw.Canvas
	style vgdraw.TextStyle
	taken []vg.Rectangle
}

// add writes txt at the first free place around pt.
func (l *labels) add(pt vg.Point, txt string, ink color.Color) {
	txt = clean(txt)
	w, h := l.style.Width(txt)+12, l.style.Font.Size+10
	const gap = 9
	box := func(x, y vg.Length) vg.Rectangle {
		return vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + w, Y: y + h}}
	}
	places := []vg.Rectangle{
		box(pt.X+gap, pt.Y+gap/2), box(pt.X-gap-w, pt.Y+gap/2), // above
		box(pt.X+gap, pt.Y-gap/2-h), box(pt.X-gap-w, pt.Y-gap/2-h), // below
		box(pt.X+gap, pt.Y-gap-2*h), box(pt.X-gap-w, pt.Y-gap-2*h), // further below
		box(pt.X+gap, pt.Y-gap-3*h), box(pt.X-gap-w, pt.Y-gap-3*h),
	}
	best := places[0]
	for _, r := range places {
		if l.free(r) {
			best = r
			break
		}
	}
	if !l.inside(best) { // a canvas that is too small for any of them: pull it in
		dx := max(l.c.Min.X-best.Min.X, 0) + min(l.c.Max.X-best.Max.X, 0)
		dy := max(l.c.Min.Y-best.Min.Y, 0) + min(l.c.Max.Y-best.Max.Y, 0)
		best = box(best.Min.X+dx, best.Min.Y+dy)
	}
	l.taken = append(l.taken, best)
	l.c.FillPolygon(color.NRGBA{0xff, 0xff, 0xff, 0xd8}, []vg.Point{
		best.Min, {X: best.Max.X, Y: best.Min.Y}, best.Max, {X: best.Min.X, Y: best.Max.Y},
	})
	s := l.style
	s.Color = ink
	l.c.FillText(s, vg.Point{X: best.Min.X + 6, Y: best.Min.Y + 8}, txt)
}

func (l *labels) inside(r vg.Rectangle) bool {
	return r.Min.X >= l.c.Min.X && r.Max.X <= l.c.Max.X && r.Min.Y >= l.c.Min.Y && r.Max.Y <= l.c.Max.Y
}

func (l *labels) free(r vg.Rectangle) bool {
	for _, t := range l.taken {
		if r.Min.X < t.Max.X && t.Min.X < r.Max.X && r.Min.Y < t.Max.Y && t.Min.Y < r.Max.Y {
			return false
		}
	}
	return l.inside(r)
}

// clean makes a text fit to be drawn. The font has Latin, Greek and Cyrillic letters; letters
// of other scripts are written as in \u4e2d, since a picture that shows boxes, or letters in
// the wrong order, would name nothing.
func clean(s string) string {
	s = strings.ReplaceAll(chart.Plain(s), "\u202f", " ")
	var (
		b    strings.Builder
		face *sfnt.Font
		buf  sfnt.Buffer
	)
	for i, r := range s {
		if r < 0x7f {
			if face != nil {
				b.WriteRune(r)
			}
			continue
		}
		if face == nil { // the first letter that is not plain
			face = fonts().Lookup(style(textSize, nil).Font, textSize).Face
			b.WriteString(s[:i])
		}
		g, err := face.GlyphIndex(&buf, r)
		switch {
		case err == nil && g != 0 && !unicode.In(r, unicode.Hebrew, unicode.Mn, unicode.Cf):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if face == nil {
		return s
	}
	return b.String()
}
