package plot

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
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

// panels picks the series to draw: the main one first, then the others in order.
func panels(r *analyze.Stats) (out []panel, more int) {
	main, _ := r.Main()
	for pass := range 2 {
		for i := range r.Files {
			f := &r.Files[i]
			for _, j := range f.Series {
				if (j == main) != (pass == 0) {
					continue
				}
				if len(out) == maxPanels {
					more++
					continue
				}
				name := chart.DeviceName(j.Device)
				if j.Rank >= 0 {
					name += fmt.Sprintf(" of rank %d", j.Rank)
				}
				if len(r.Files) > 1 {
					name += ", " + chart.ClipLeft(chart.Plain(f.Info.Name), 50)
				}
				out = append(out, panel{j, name})
			}
		}
	}
	return out, more
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
	p.legend([]key{
		{"reserved", area(faded(chart.ColorReleasable, 120), chart.ColorMuted)},
		{"active", area(faded(chart.ColorLive, 150), chart.ColorLive)},
		{"allocated", line(chart.ColorAllocated)},
		{"trend of what is never freed", line(chart.ColorOOM)},
		{"cudaMalloc failed or out of memory", upright(chart.ColorSplit)},
	})
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
	g, grid := overTime(span, float64(top)*1.12, 6, [2]string{d.Unit(), "bytes"}, ticks)
	if named {
		g.Title.Text, g.Title.TextStyle = clean(n.name+": "+string(n.j.Status)), restyle(g.Title.TextStyle, textSize)
		g.Title.Padding = 4
	}
	g.Add(&curves{j: n.j, first: first, span: span, grid: grid})
	g.Draw(c)
}

// curves draws the counters of one series.
type curves struct {
	j           *verdict.Counters
	first, span int64
	grid        []chart.Tick
}

// Plot implements plot.Plotter.
func (v *curves) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	d := v.j.Series
	line := func(name string) (out []vg.Point) {
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
			for _, k := range []int{min(low, high), max(low, high)} {
				if col[k] >= 0 {
					out = append(out, vg.Point{X: x(float64(d.Place(k) - v.first)), Y: y(float64(col[k]))})
				}
				if low == high {
					break
				}
			}
		}
		return out
	}
	fill := func(ink color.Color, pts []vg.Point) {
		if len(pts) > 1 {
			c.FillPolygon(ink, append(append([]vg.Point{{X: pts[0].X, Y: y(0)}}, pts...), vg.Point{X: pts[len(pts)-1].X, Y: y(0)}))
		}
	}
	stroke := func(ink color.Color, width vg.Length, dashes []vg.Length, pts []vg.Point) {
		if len(pts) > 1 {
			c.StrokeLines(vgdraw.LineStyle{Color: ink, Width: width, Dashes: dashes}, pts)
		}
		if len(pts) < 40 {
			for _, pt := range pts {
				c.DrawGlyphNoClip(vgdraw.GlyphStyle{Color: ink, Radius: 2.5, Shape: vgdraw.CircleGlyph{}}, pt)
			}
		}
	}
	reserved, active, allocated := line(counters.Reserved), line(counters.Active), line(counters.Allocated)
	fill(faded(chart.ColorReleasable, 120), reserved)
	fill(faded(chart.ColorLive, 120), active)
	gridLines(c, v.grid, y, 0x30)
	stroke(chart.ColorMuted, 2, nil, reserved)
	stroke(chart.ColorLive, 1.5, nil, active)
	stroke(chart.ColorAllocated, 1.5, []vg.Length{6, 4}, allocated)
	v.marks(c, x, y)
}

// marks draws failures and the trend, with labels.
func (v *curves) marks(c vgdraw.Canvas, x, y func(float64) vg.Length) {
	d := v.j.Series
	for _, name := range []string{counters.Retries, counters.OOMs} {
		col := d.Column(name)
		for i := 1; i < len(col); i++ {
			if col[i] > col[i-1] && col[i-1] >= 0 {
				at := x(float64(d.Place(i) - v.first))
				c.StrokeLine2(vgdraw.LineStyle{Color: chart.ColorSplit, Width: 2}, at, c.Min.Y, at, c.Min.Y+(c.Max.Y-c.Min.Y)/8)
			}
		}
	}
	t := v.j.Trends.Of(v.j.Live)
	if t == nil {
		return
	}
	l := labels{c: c, style: bold(textSize)}
	end := vg.Point{X: c.Max.X, Y: y(float64(t.Last))}
	if t.Shape != counters.Growing || t.Unit == "epoch" {
		l.add(end, units.Bytes(t.Last), chart.ColorLive)
		return
	}
	// The line goes through the last value, so that it lies on what it is the trend of.
	from := float64(t.Last) - t.Slope*float64(v.first+v.span-t.From)
	a := vg.Point{X: x(float64(t.From - v.first)), Y: y(max(from, 0))}
	c.StrokeLine2(vgdraw.LineStyle{Color: chart.ColorOOM, Width: 2, Dashes: []vg.Length{2, 3}}, a.X, a.Y, end.X, end.Y)
	l.add(end, fmt.Sprintf("+%s per %s", units.Bytes(t.PerUnit()), t.Unit), chart.ColorOOM)
}
