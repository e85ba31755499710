package plot

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"snapana/analyze"
	"snapana/report/internal/view"
)

// Sizes in pixels. Pages are drawn at 72 dots per inch, so that a pixel is a vg.Length of 1.
const (
	pageWidth  = 1600
	pageHeight = 900
	margin     = 28

	titleSize = 26
	textSize  = 17
	smallSize = 15
)

// page is a picture in the making. Places are in pixels from the upper left corner.
type page struct {
	img    *image.RGBA
	canvas vgdraw.Canvas
	vector *vgsvg.Canvas // in place of img, for SVG
	top    int           // first row below the header
}

// newPage begins a page with a title and a line about what is shown.
func newPage(title, about string) *page {
	c := vgimg.NewWith(vgimg.UseWH(pageWidth, pageHeight), vgimg.UseDPI(72))
	p := &page{img: c.Image().(*image.RGBA), canvas: vgdraw.NewCanvas(c, pageWidth, pageHeight)}
	p.header(title, about)
	return p
}

func (p *page) header(title, about string) {
	p.text(bold(titleSize), margin, 44, fit(bold(titleSize), title, pageWidth-2*margin))
	p.text(style(textSize, view.ColourMuted), margin, 74, fit(style(textSize, view.ColourMuted), about, pageWidth-2*margin))
	p.top = 92
}

// pageTitle names the file and the device.
func pageTitle(r *analyze.Result, d *analyze.Device, what string) string {
	return what + " of " + view.DeviceName(d.Timeline.Device) + ", " + view.ClipLeft(view.Plain(r.Snapshot.Name), 70)
}

func (p *page) encode(w io.Writer) error {
	if p.vector != nil {
		return p.encodeVector(w)
	}
	return png.Encode(w, p.img)
}

func style(size vg.Length, ink color.Color) vgdraw.TextStyle {
	return vgdraw.TextStyle{
		Color: ink, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: text.Plain{Fonts: font.DefaultCache},
	}
}

func bold(size vg.Length) vgdraw.TextStyle {
	s := style(size, view.ColourInk)
	s.Font.Weight = 3 // WeightBold of golang.org/x/image/font
	return s
}

// clean drops what the font has no glyph for.
func clean(s string) string { return strings.ReplaceAll(view.Plain(s), "\u202f", " ") }

// text writes s with its baseline at row y.
func (p *page) text(s vgdraw.TextStyle, x, y int, txt string) {
	p.canvas.FillText(s, vg.Point{X: vg.Length(x), Y: vg.Length(pageHeight - y)}, clean(txt))
}

// textRight writes s so that it ends at column x.
func (p *page) textRight(s vgdraw.TextStyle, x, y int, txt string) {
	p.text(s, x-textWidth(s, txt), y, txt)
}

func textWidth(s vgdraw.TextStyle, txt string) int { return int(s.Width(clean(txt)) + 0.5) }

// fit cuts a text at its end until it is at most width pixels wide.
func fit(s vgdraw.TextStyle, txt string, width int) string { return cut(s, txt, width, view.Clip) }

// fitLeft cuts a text at its start, for paths.
func fitLeft(s vgdraw.TextStyle, txt string, width int) string {
	return cut(s, txt, width, view.ClipLeft)
}

func cut(s vgdraw.TextStyle, txt string, width int, clip func(string, int) string) string {
	txt = clip(clean(txt), 400)
	for n := len([]rune(txt)) - 1; n > 1 && textWidth(s, txt) > width; n-- {
		txt = clip(txt, n)
	}
	return txt
}

// fill paints a rectangle.
func (p *page) fill(r image.Rectangle, c color.RGBA) {
	if p.vector != nil {
		x, y := func(v int) vg.Length { return vg.Length(v) }, func(v int) vg.Length { return vg.Length(pageHeight - v) }
		p.canvas.FillPolygon(c, []vg.Point{{X: x(r.Min.X), Y: y(r.Min.Y)}, {X: x(r.Max.X), Y: y(r.Min.Y)}, {X: x(r.Max.X), Y: y(r.Max.Y)}, {X: x(r.Min.X), Y: y(r.Max.Y)}})
		return
	}
	draw.Draw(p.img, r, image.NewUniform(c), image.Point{}, draw.Over)
}

// frame draws the outline of a rectangle, inside it.
func (p *page) frame(r image.Rectangle, c color.RGBA) {
	p.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+1), c)
	p.fill(image.Rect(r.Min.X, r.Max.Y-1, r.Max.X, r.Max.Y), c)
	p.fill(image.Rect(r.Min.X, r.Min.Y, r.Min.X+1, r.Max.Y), c)
	p.fill(image.Rect(r.Max.X-1, r.Min.Y, r.Max.X, r.Max.Y), c)
}

// key is one entry of a legend.
type key struct {
	name string
	draw func(p *page, r image.Rectangle)
}

func solid(c color.RGBA) func(*page, image.Rectangle) {
	return func(p *page, r image.Rectangle) { p.fill(r, c) }
}

// legend writes the keys in a row below the header and makes room for it.
func (p *page) legend(keys []key) {
	x, y := margin, p.top+6
	s := style(textSize, view.ColourInk)
	for _, k := range keys {
		k.draw(p, image.Rect(x, y, x+26, y+16))
		x += 34
		p.text(s, x, y+14, k.name)
		x += textWidth(s, k.name) + 30
	}
	p.top += 34
}

// axes gives a gonum plot without a title, in the fonts of the page.
func axes() *plot.Plot {
	p := plot.New()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle = restyle(a.Label.TextStyle, textSize)
		a.Tick.Label = restyle(a.Tick.Label, smallSize)
		a.Label.Padding = 6
		a.LineStyle.Color, a.Tick.LineStyle.Color = view.ColourMuted, view.ColourMuted
		a.LineStyle.Width, a.Tick.LineStyle.Width = 1, 1
		a.Tick.Length = 5
		a.Padding = 0
	}
	return p
}

// restyle changes the font and keeps alignment and rotation.
func restyle(s vgdraw.TextStyle, size vg.Length) vgdraw.TextStyle {
	n := style(size, view.ColourInk)
	s.Font, s.Color, s.Handler = n.Font, n.Color, n.Handler
	return s
}

// marks turns ticks into those of a gonum axis.
func marks(ticks []view.Tick) plot.ConstantTicks {
	out := make(plot.ConstantTicks, len(ticks))
	for i, t := range ticks {
		out[i] = plot.Tick{Value: float64(t.Value), Label: clean(t.Label)}
	}
	return out
}

// body is the canvas below the header, less right pixels at its right side.
func (p *page) body(right int) vgdraw.Canvas {
	return vgdraw.Crop(p.canvas, margin-8, -vg.Length(margin+right), 16, -vg.Length(p.top))
}
