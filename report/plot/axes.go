package plot

import (
	_ "embed"
	"math"
	"slices"
	"sync"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/carried"
)

// axes are two scales that begin at 0, one below what is drawn and one at its left. gonum's own plot.Plot would bring
// twelve fonts and five formats of files, 5 MB of a program that needs two and two.
type axes struct {
	title       string // above, "" for none
	span        int64  // where the lower scale ends
	limit       float64
	below, left scale
}

// scale is what is written at an axis.
type scale struct {
	name  string
	ticks []chart.Tick
}

// clean makes what is written fit to be drawn.
func (s scale) clean() scale {
	out := scale{clean(s.name), slices.Clone(s.ticks)}
	for i := range out.ticks {
		out.ticks[i].Label = clean(out.ticks[i].Label)
	}
	return out
}

// plotter is what draws inside of axes.
type plotter func(f *frame)

const (
	tickLength = 5
	namePad    = 6
)

// draw fills the canvas.
func (a *axes) draw(c vgdraw.Canvas, inside plotter) {
	name, label := style(textSize, chart.ColorInk), style(smallSize, chart.ColorInk)
	name.XAlign, name.YAlign = vgdraw.XCenter, vgdraw.YBottom
	descent := name.FontExtents().Descent
	below, left := a.below.clean(), a.left.clean()
	if title := clean(a.title); title != "" {
		head := name
		head.YAlign = vgdraw.YTop
		c.FillText(head, vg.Point{X: c.Center().X, Y: c.Max.Y + descent}, title)
		c.Max.Y -= head.Height(title) + 4
	}
	span, limit := float64(max(a.span, 1)), max(a.limit, 1)
	var wide, high vg.Length // of labels
	for _, t := range left.ticks {
		wide = max(wide, label.Width(t.Label))
	}
	for _, t := range below.ticks {
		high = max(high, label.Height(t.Label))
	}
	in := c
	in.Min.X += name.Height(left.name) + descent + namePad + wide + label.Width(" ") + tickLength
	in.Min.Y += name.Height(below.name) + namePad + high + tickLength
	// The last labels reach beyond their ticks: the scales end so early that these are on the canvas.
	for _, t := range below.ticks {
		if share := vg.Length(float64(t.Value) / span); share > 0 {
			in.Max.X = min(in.Max.X, in.Min.X+(c.Max.X-label.Width(t.Label)/2-in.Min.X)/share)
		}
	}
	for _, t := range left.ticks {
		if share := vg.Length(float64(t.Value) / limit); share > 0 {
			in.Max.Y = min(in.Max.Y, in.Min.Y+(c.Max.Y-label.Height(t.Label)/2-in.Min.Y)/share)
		}
	}
	f := &frame{Canvas: in, labels: labels{c: in, style: bold(textSize)}}
	f.x = func(v float64) vg.Length { return in.X(v / span) }
	f.y = func(v float64) vg.Length { return in.Y(v / limit) }

	line := vgdraw.LineStyle{Color: chart.ColorMuted, Width: 1}
	c.FillText(name, vg.Point{X: in.Center().X, Y: c.Min.Y + descent}, below.name)
	under := label
	under.XAlign, under.YAlign = vgdraw.XCenter, vgdraw.YTop
	for _, t := range below.ticks {
		if x := f.x(float64(t.Value)); in.ContainsX(x) {
			c.FillText(under, vg.Point{X: x, Y: in.Min.Y - tickLength + under.FontExtents().Descent}, t.Label)
			c.StrokeLine2(line, x, in.Min.Y-tickLength, x, in.Min.Y)
		}
	}
	c.StrokeLine2(line, in.Min.X, in.Min.Y, in.Max.X, in.Min.Y)

	upright := name
	upright.Rotation = math.Pi / 2
	c.FillText(upright, vg.Point{X: c.Min.X + name.Height(left.name) - descent, Y: in.Center().Y}, left.name)
	beside := label
	beside.XAlign, beside.YAlign = vgdraw.XRight, vgdraw.YCenter
	for _, t := range left.ticks {
		if y := f.y(float64(t.Value)); in.ContainsY(y) {
			f.grid = append(f.grid, float64(t.Value))
			at := vg.Point{X: in.Min.X - tickLength - label.Width(" "), Y: y + beside.FontExtents().Descent}
			c.FillText(beside, at, t.Label)
			c.StrokeLine2(line, in.Min.X-tickLength, y, in.Min.X, y)
		}
	}
	c.StrokeLine2(line, in.Min.X, in.Min.Y, in.Min.X, in.Max.Y)
	inside(f)
}

// The files of codeberg.org/go-fonts/liberation v0.5.0, packed by `zstd --ultra -22`.
//
//go:embed liberation/LiberationSans-Regular.ttf.zst
var regular string

//go:embed liberation/LiberationSans-Bold.ttf.zst
var heavy string

// fonts are the two that pages are written in, parsed once.
var fonts = sync.OnceValue(func() *font.Cache {
	var faces font.Collection
	for _, f := range []struct {
		weight xfont.Weight
		file   string
	}{{xfont.WeightNormal, regular}, {xfont.WeightBold, heavy}} {
		face, err := opentype.Parse(carried.Bytes(f.file))
		if err != nil {
			panic(err) // not of an input: the file is part of the program
		}
		faces = append(faces, font.Face{Font: font.Font{Typeface: typeface, Variant: variant, Weight: f.weight}, Face: face})
	}
	return font.NewCache(faces)
})
