package plot

import (
	"slices"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	predicted "github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// Fit is a picture of the predicted peaks by the first of the values, those of another second value than the last left
// out: with their bounds, the recorded peaks, and what the device has.
func Fit(r *predicted.Result) Plot {
	return Plot{"fit", func(to Medium) *page { return fitPage(to, r) }}
}

func fitPage(to Medium, r *predicted.Result) *page {
	peaks := chart.NewFitPeaks(r)
	list, top, span := peaks.List, peaks.Top, peaks.Span
	p := newPage(to, "Peak memory by "+r.Names[0], verdict.Fit(r))
	keys := []key{{"reserved, predicted", line(chart.ColorLive)}, {"its bounds", solid(chart.ColorReleasable)},
		{"allocated", line(chart.ColorAllocated)}, {"recorded", dot}}
	if r.Capacity.Reservable > 0 {
		keys = append(keys, key{chart.FitLimit, line(chart.ColorOOM)})
	}
	p.legend(keys)
	var ticks []chart.Tick
	for _, t := range chart.CountTicks(span, 12) {
		ticks = append(ticks, chart.Tick{Value: t.Value, Label: units.Count(t.Value)})
	}
	a := axes{span: span, limit: float64(top) * 1.12, below: scale{r.Names[0], ticks}}
	a.left = ofBytes("bytes", a.limit, 6)
	a.draw(p.body(12), func(f *frame) {
		var lows, highs, reserved, allocated []vg.Point
		for _, x := range list {
			at := func(bytes int64) vg.Point { return f.at(float64(x.At), bytes) }
			lows, highs = append(lows, at(x.ReservedLow)), append(highs, at(x.ReservedHigh))
			reserved, allocated = append(reserved, at(x.ReservedPeak)), append(allocated, at(x.AllocatedPeak))
		}
		f.FillPolygon(faded(chart.ColorReleasable, 160), slices.Concat(lows, reversed(highs)))
		f.gridLines(0x30)
		f.StrokeLines(vgdraw.LineStyle{Color: chart.ColorAllocated, Width: 2}, allocated)
		f.StrokeLines(vgdraw.LineStyle{Color: chart.ColorLive, Width: 2.5}, reserved)
		for i, pt := range reserved {
			f.StrokeLine2(vgdraw.LineStyle{Color: chart.ColorReleasable, Width: 3}, pt.X, lows[i].Y, pt.X, highs[i].Y)
			f.DrawGlyphNoClip(vgdraw.GlyphStyle{Color: chart.ColorAllocated, Radius: 2.5, Shape: vgdraw.CircleGlyph{}}, allocated[i])
			f.DrawGlyphNoClip(vgdraw.GlyphStyle{Color: chart.ColorLive, Radius: 3, Shape: vgdraw.CircleGlyph{}}, pt)
		}
		for _, rec := range peaks.Recorded {
			f.DrawGlyphNoClip(peakGlyph(chart.ColorInk), f.at(float64(rec.At), rec.ReservedPeak))
		}
		if n := r.Capacity.Reservable; n > 0 {
			y := f.y(float64(n))
			f.StrokeLine2(vgdraw.LineStyle{Color: chart.ColorOOM, Width: 2, Dashes: []vg.Length{6, 4}}, f.Min.X, y, f.Max.X, y)
			f.labels.add(vg.Point{X: f.Min.X + 40, Y: y}, units.Bytes(n), chart.ColorOOM)
		}
		if end := len(reserved) - 1; end >= 0 {
			f.labels.add(reserved[end], units.Bytes(list[end].ReservedPeak), chart.ColorLive)
		}
	})
	return p
}

func reversed(pts []vg.Point) []vg.Point {
	out := slices.Clone(pts)
	slices.Reverse(out)
	return out
}
