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

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// useOrder stacks what stays below what comes and goes.
var useOrder = []category.Category{
	category.Parameter, category.OptimizerState, category.Gradient, category.Workspace, category.Communication,
	category.Input, category.AutogradSaved, category.Activation, category.Temporary, category.Other, category.Unknown,
}

// layer is one layer of a stack of areas: its height in each column.
type layer struct {
	name   string
	colour color.RGBA
	bytes  []int64
}

func (b *layer) most() (bytes int64, column int) {
	for i, n := range b.bytes {
		if n > bytes {
			bytes, column = n, i
		}
	}
	return bytes, column
}

func categoriesPage(m Medium, r *analyze.Result, d *analyze.Device) *page {
	t, axis := d.Timeline, chart.TellingAxis(d.Timeline, r.Snapshot.HasTimes)
	ends := make([]int64, len(d.Uses))
	layers := make([]layer, len(useOrder))
	var top int64
	peak := 0 // the fullest sample
	for k, c := range useOrder {
		layers[k] = layer{name: c.String(), colour: chart.UseSlot(c).Color()}
	}
	for i := range d.Uses {
		s := &d.Uses[i]
		ends[i] = axis.Event(s.Last)
		var sum int64
		for k, c := range useOrder {
			layers[k].bytes = append(layers[k].bytes, s.Bytes[c])
			sum += s.Bytes[c]
		}
		if sum > top {
			top, peak = sum, i
		}
	}
	p := newPage(m, pageTitle(r, d, "Memory by category on"), fmt.Sprintf("Active bytes by category over %s; each column shows its fullest moment. In parentheses: at the peak of %s.",
		units.Plural(t.Trace.Len(), "event"), units.Bytes(top)))
	layers = shown(layers)
	keys := make([]key, len(layers))
	for k := range layers {
		keys[k] = key{layers[k].name + " (" + units.Bytes(layers[k].bytes[peak]) + ")", solid(layers[k].colour)}
	}
	p.legend(append(keys, failureKeys(t)...))
	p.stack(t, axis, &areas{ends: ends, layers: layers, peak: mark{axis.Event(d.Uses[peak].Event), top, "active"}})
	return p
}

func fragmentationPage(m Medium, r *analyze.Result, d *analyze.Device) *page {
	t, axis := d.Timeline, chart.TellingAxis(d.Timeline, r.Snapshot.HasTimes)
	layers := make([]layer, len(chart.FreeKinds))
	for k := range layers {
		layers[k] = layer{name: chart.FreeKinds[k].Name, colour: chart.FreeKinds[k].Color}
	}
	ends := make([]int64, len(d.Free))
	usable := layer{name: "largest request that fits", colour: chart.ColorInk}
	var top int64
	most := 0 // the sample with the most
	for i := range d.Free {
		s := &d.Free[i]
		ends[i] = axis.Event(s.Event)
		for k := range layers {
			layers[k].bytes = append(layers[k].bytes, chart.FreeKinds[k].Bytes(&s.Classes))
		}
		usable.bytes = append(usable.bytes, s.LargestUsable)
		if n := s.Classes.Sum(); n > top {
			top, most = n, i
		}
	}
	about := "No reserved memory was free at any measured moment."
	if top > 0 {
		s := &d.Free[most]
		about = fmt.Sprintf("Bytes that are reserved but not allocated, by what keeps them from use: at most %s of %s reserved, when the largest request that fits is %s.",
			units.Bytes(top), units.Bytes(s.Reserved), units.Bytes(s.LargestUsable))
	}
	p := newPage(m, pageTitle(r, d, "Reserved but unused memory of"), about)
	layers = shown(layers)
	var keys []key
	for k := range layers {
		keys = append(keys, key{layers[k].name, solid(layers[k].colour)})
	}
	keys = append(keys, key{usable.name, line(usable.colour)})
	p.legend(append(keys, failureKeys(t)...))
	p.stack(t, axis, &areas{ends: ends, layers: layers, over: &usable, peak: mark{ends[most], top, "free"}})
	return p
}

// shown leaves out layers without any byte.
func shown(layers []layer) []layer {
	var out []layer
	for i := range layers {
		if n, _ := layers[i].most(); n > 0 {
			out = append(out, layers[i])
		}
	}
	return out
}

// stack draws layers on each other over time.
func (p *page) stack(t *timeline.Timeline, axis chart.Axis, a *areas) {
	most := max(a.peak.bytes, 1)
	if a.over != nil {
		n, _ := a.over.most()
		most = max(most, n)
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
	if p.png != nil {
		px := func(v vg.Length) int { return int(math.Round(float64(v) * p.scale)) }
		img := p.png.Image()
		bottom := img.Bounds().Dy()
		for i := 0; i+1 < len(roof); i += 2 {
			r := image.Rect(px(roof[i].X), bottom-px(roof[i].Y), px(roof[i+1].X), bottom-px(floor[i].Y))
			draw.Draw(img, r, image.NewUniform(ink), image.Point{}, draw.Src)
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
		p.paint(f, floor, roof, b.colour)
		floor = roof
	}
	f.gridLines(0x38)
	if a.over != nil {
		f.StrokeLines(vgdraw.LineStyle{Color: a.over.colour, Width: 2, Dashes: []vg.Length{6, 4}}, edge(a.over.bytes))
	}
}
