package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxPanels is how many devices are drawn below each other in one picture.
const maxPanels = 4

// Series is a picture of memory counters over time. Of several series those that matter most
// come first; ok is false when there are none.
func Series(r *analyze.Stats) (p Plot, ok bool) {
	if main, _ := r.Main(); main == nil {
		return p, false
	}
	return Plot{"series", func(to Medium) *page { return seriesPage(to, r) }}, true
}

// panel is one series of a picture.
type panel struct {
	j    *verdict.Counters
	name string
}

// panels are the series to draw: the main one first, then the others in order.
func panels(r *analyze.Stats) (out []panel, more int) {
	main, _ := r.Main()
	for i := range r.Files {
		f := &r.Files[i]
		for _, j := range f.Series {
			name := chart.DeviceName(j.Device)
			if j.Rank >= 0 {
				name += fmt.Sprintf(" of rank %d", j.Rank)
			}
			if len(r.Files) > 1 {
				name += ", " + chart.ClipLeft(chart.Plain(f.Info.Name), 50)
			}
			out = append(out, panel{j, name})
			if j == main {
				copy(out[1:], out)
				out[0] = panel{j, name}
			}
		}
	}
	shown := min(len(out), maxPanels)
	return out[:shown], len(out) - shown
}

func seriesPage(to Medium, r *analyze.Stats) *page {
	main, from := r.Main()
	list, more := panels(r)
	title := "Memory over time, " + chart.ClipLeft(chart.Plain(from.Info.Name), 70)
	if len(r.Files) > 1 {
		title = fmt.Sprintf("Memory over time, %d files", len(r.Files))
	}
	about := main.Headline
	if more > 0 {
		about += fmt.Sprintf(" %d more series are not drawn.", more)
	}
	p := newPage(to, title, about)
	p.legend(append(slices.Clone(curveKeys),
		key{"trend of what is never freed", line(chart.ColorOOM)},
		key{"device refused memory, or out of memory", upright(chart.ColorSplit)}))
	body := p.body(12)
	height := (body.Max.Y - body.Min.Y) / vg.Length(len(list))
	for i := range list {
		part := body
		part.Max.Y = body.Max.Y - height*vg.Length(i)
		part.Min.Y = part.Max.Y - height
		list[i].draw(part, len(list) > 1)
	}
	return p
}

// draw draws one series with its axes.
func (n *panel) draw(c vgdraw.Canvas, named bool) {
	d := n.j.Series
	top, span := int64(1), int64(1)
	for _, name := range []string{counters.Reserved, counters.Active, counters.Allocated, counters.Requested} {
		for _, v := range d.Column(name) {
			top = max(top, v)
		}
	}
	first := int64(0)
	if len(d.Points) > 0 {
		first = d.Place(0)
		span = max(d.Place(len(d.Points)-1)-first, 1)
	}
	var ticks []chart.Tick
	for _, t := range chart.CountTicks(span, 12) {
		ticks = append(ticks, chart.Tick{Value: t.Value, Label: units.Count(first + t.Value)})
	}
	a := axes{span: span, limit: float64(top) * 1.12, below: scale{d.Unit(), ticks}}
	a.left = ofBytes("bytes", a.limit, 6)
	if named {
		a.title = n.name + ": " + string(n.j.Status)
	}
	a.draw(c, func(f *frame) { n.curves(f, first, span) })
}

// curves draws the counters of one series.
func (n *panel) curves(f *frame, first, span int64) {
	d := n.j.Series
	points := func(name string) (out []vg.Point) {
		col := d.Column(name)
		stride := max(len(col)/maxPoints, 1)
		for i := 0; i < len(col); i += stride {
			low, high := i, i
			for k := i; k < min(i+stride, len(col)); k++ {
				if col[k] >= 0 && (col[low] < 0 || col[k] < col[low]) {
					low = k
				}
				if col[k] > col[high] {
					high = k
				}
			}
			for _, k := range slices.Compact([]int{min(low, high), max(low, high)}) {
				if col[k] >= 0 {
					out = append(out, f.at(float64(d.Place(k)-first), col[k]))
				}
			}
		}
		return out
	}
	lines := [][]vg.Point{points(counters.Reserved), points(counters.Active), points(counters.Allocated)}
	f.under(faded(chart.ColorReleasable, 120), lines[0])
	f.under(faded(chart.ColorLive, 120), lines[1])
	f.gridLines(0x30)
	for i, pts := range lines {
		if len(pts) > 1 {
			f.StrokeLines(curveLines[i], pts)
		}
		if len(pts) < 40 {
			for _, pt := range pts {
				f.DrawGlyphNoClip(vgdraw.GlyphStyle{Color: curveLines[i].Color, Radius: 2.5,
					Shape: vgdraw.CircleGlyph{}}, pt)
			}
		}
	}
	for _, name := range []string{counters.Retries, counters.OOMs} {
		col := d.Column(name)
		for i := 1; i < len(col); i++ {
			if col[i] > col[i-1] && col[i-1] >= 0 {
				f.upright(float64(d.Place(i)-first), f.Min.Y+(f.Max.Y-f.Min.Y)/8, chart.ColorSplit)
			}
		}
	}
	n.trend(f, first, span)
}

// trend draws the trend of what is never freed, with its label.
func (n *panel) trend(f *frame, first, span int64) {
	t := n.j.Trends.Of(n.j.Live)
	if t == nil {
		return
	}
	end := vg.Point{X: f.Max.X, Y: f.y(float64(t.Last))}
	if t.Shape != counters.Growing || t.Unit == "epoch" {
		f.labels.add(end, units.Bytes(t.Last), chart.ColorLive)
		return
	}
	// The line goes through the last value, so that it lies on what it is the trend of.
	from := float64(t.Last) - t.Slope*float64(first+span-t.From)
	f.StrokeLine2(vgdraw.LineStyle{Color: chart.ColorOOM, Width: 2, Dashes: []vg.Length{2, 3}},
		f.x(float64(t.From-first)), f.y(max(from, 0)), end.X, end.Y)
	f.labels.add(end, fmt.Sprintf("+%s per %s", units.Bytes(t.PerUnit()), t.Unit), chart.ColorOOM)
}
