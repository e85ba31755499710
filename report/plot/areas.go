package plot

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// layer is one layer of a stack of areas: its height in each column.
type layer struct {
	name  string
	color color.RGBA
	bytes []int64
}

func categoriesPage(m Medium, s subject) *page {
	uses, axis := s.d.Uses.Get(), s.axis()
	layers := make([]layer, len(chart.UseOrder))
	for k, c := range chart.UseOrder {
		layers[k] = layer{name: c.String(), color: chart.UseSlot(c).Color()}
	}
	a, peak := newAreas(layers, len(uses), func(i, k int) int64 { return uses[i].Bytes[chart.UseOrder[k]] },
		func(i int) int64 { return axis.Event(uses[i].Last) })
	a.peak.name, a.peak.at = "active", axis.Event(uses[peak].Event)
	p := newPage(m, s.title("Memory by category on"), fmt.Sprintf(
		"Active bytes by category over %s; each column shows its fullest moment. In parentheses: at the peak of %s.",
		units.Plural(s.d.Timeline.Trace.Len(), "event"), units.Bytes(a.peak.bytes)))
	var keys []key
	for _, l := range a.layers {
		keys = append(keys, key{l.name + " (" + units.Bytes(l.bytes[peak]) + ")", solid(l.color)})
	}
	p.stack(s, keys, a)
	return p
}

func fragmentationPage(m Medium, s subject) *page {
	free, axis := s.d.Free.Get(), s.axis()
	layers := make([]layer, len(chart.FreeKinds))
	for k, kind := range chart.FreeKinds {
		layers[k] = layer{name: kind.Name, color: kind.Color}
	}
	a, most := newAreas(layers, len(free), func(i, k int) int64 { return chart.FreeKinds[k].Bytes(&free[i].Classes) },
		func(i int) int64 { return axis.Event(free[i].Event) })
	a.peak.name, a.peak.at = "free", a.ends[most]
	a.over = &layer{name: "largest request that fits", color: chart.ColorInk}
	for i := range free {
		a.over.bytes = append(a.over.bytes, free[i].LargestUsable)
	}
	about := "No reserved memory was free at any measured moment."
	if f := &free[most]; a.peak.bytes > 0 {
		about = fmt.Sprintf("Bytes that are reserved but not allocated, by what keeps them from use: at most %s of "+
			"%s reserved, when the largest request that fits is %s.", units.Bytes(a.peak.bytes),
			units.Bytes(f.Reserved), units.Bytes(f.LargestUsable))
	}
	p := newPage(m, s.title("Reserved but unused memory of"), about)
	var keys []key
	for _, l := range a.layers {
		keys = append(keys, key{l.name, solid(l.color)})
	}
	p.stack(s, append(keys, key{a.over.name, line(a.over.color)}), a)
	return p
}

// axis is that of pictures over time.
func (s subject) axis() chart.Axis { return chart.TellingAxis(s.d.Timeline, s.r.Snapshot.HasTimes) }

// newAreas fills layers with n columns, of which each has the bytes and the end that the functions say.
// Layers without any byte are left out. full is the column with the most bytes.
func newAreas(layers []layer, n int, bytes func(column, layer int) int64,
	end func(column int) int64) (a *areas, full int) {
	a = &areas{ends: make([]int64, n)}
	sums := make([]int64, n)
	for k, l := range layers {
		for i := range n {
			l.bytes = append(l.bytes, bytes(i, k))
			sums[i] += l.bytes[i]
		}
		if slices.Max(l.bytes) > 0 {
			a.layers = append(a.layers, l)
		}
	}
	for i := range n {
		a.ends[i] = end(i)
		if sums[i] > a.peak.bytes {
			a.peak.bytes, full = sums[i], i
		}
	}
	return a, full
}

// stack draws layers on each other over time, below their legend.
func (p *page) stack(s subject, keys []key, a *areas) {
	t, axis := s.d.Timeline, s.axis()
	p.legend(append(keys, failureKeys(t)...))
	most := max(a.peak.bytes, 1)
	if a.over != nil {
		most = max(most, slices.Max(a.over.bytes))
	}
	a.reduce(axis.Span)
	p.overTime(axis, float64(most)*1.12, func(f *frame) { // leaves place for the labels
		p.layers(f, a, axis.Span)
		f.failures(t, axis)
		if a.peak.bytes > 0 {
			f.peak(a.peak.name, a.peak.at, a.peak.bytes, chart.ColorInk)
		}
	})
}

// areas are layers over time.
type areas struct {
	ends   []int64 // where each column ends on the axis
	layers []layer
	over   *layer // drawn as a line, nil for none
	peak   mark
}

// mark is a place with a name.
type mark struct {
	at, bytes int64
	name      string
}

// reduce keeps the fullest of the columns that would be drawn on the same pixels.
func (a *areas) reduce(span int64) {
	kept := 0
	last, most := int64(-1), int64(0)
	for i, end := range a.ends {
		var sum int64
		for k := range a.layers {
			sum += a.layers[k].bytes[i]
		}
		px := int64(float64(end) / float64(span) * maxPoints)
		if px != last {
			kept++
		} else if a.ends[kept-1] = end; sum <= most {
			continue
		}
		last, most = px, sum
		a.ends[kept-1] = end
		for k := range a.layers {
			a.layers[k].bytes[kept-1] = a.layers[k].bytes[i]
		}
		if a.over != nil {
			a.over.bytes[kept-1] = a.over.bytes[i]
		}
	}
	a.ends = a.ends[:kept]
}

// paint fills what lies between two edges. On pixels it goes column by column: filling a
// polygon takes most of a second when memory comes and goes with every step of a long trace.
func (p *page) paint(f *frame, floor, roof []vg.Point, ink color.RGBA) {
	if p.raster != nil {
		px := func(v vg.Length) int { return int(math.Round(float64(v) * p.scale)) }
		bottom := p.raster.Rect.Dy()
		for i := 0; i+1 < len(roof); i += 2 {
			r := image.Rect(px(roof[i].X), bottom-px(roof[i].Y), px(roof[i+1].X), bottom-px(floor[i].Y))
			draw.Draw(p.raster, r, image.NewUniform(ink), image.Point{}, draw.Src)
		}
		return
	}
	shape := slices.Clone(roof)
	for _, pt := range slices.Backward(floor) {
		shape = append(shape, pt)
	}
	f.FillPolygon(ink, shape)
}

// layers draws the layers, and the line over them.
func (p *page) layers(f *frame, a *areas, span int64) {
	edge := func(height []int64) []vg.Point {
		var out []vg.Point
		var prev int64
		for i, end := range a.ends {
			out = append(out, f.at(float64(prev), height[i]), f.at(float64(end), height[i]))
			prev = end
		}
		if n := len(a.ends); n > 0 {
			out = append(out, f.at(float64(prev), height[n-1]), f.at(float64(span), height[n-1]))
		}
		return out
	}
	sums := make([]int64, len(a.ends))
	floor := edge(sums)
	for k := range a.layers {
		b := &a.layers[k]
		for i := range sums {
			sums[i] += b.bytes[i]
		}
		roof := edge(sums)
		p.paint(f, floor, roof, b.color)
		floor = roof
	}
	f.gridLines(0x38)
	if a.over != nil {
		f.StrokeLines(vgdraw.LineStyle{Color: a.over.color, Width: 2, Dashes: []vg.Length{6, 4}}, edge(a.over.bytes))
	}
}
