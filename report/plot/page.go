package plot

import (
	"image"
	"image/color"
	"image/draw"
	"io"
	"math"
	"sync"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/report/internal/chart"
)

// A page is laid out 1600 units wide, whatever its width in pixels, and is meant to be read
// at 1200 pixels: texts are then 13 pixels high or more. Without another size, a unit is a pixel.
const (
	Width      = 1600 // of a page in units, and in pixels unless asked otherwise
	pageHeight = 900
	margin     = 28

	titleSize = 28
	textSize  = 19
	smallSize = 17.5

	typeface, variant = "Liberation", "Sans"
)

// page is a picture in the making. Places are in units from the upper left corner.
type page struct {
	canvas        vgdraw.Canvas
	raster        *image.RGBA // or svg
	svg           *svg
	scale         float64 // pixels per unit of a PNG
	width, height int     // in units
	pixels        image.Point
	title, about  string
	top           int // first row below the header
}

// newPage begins a page with a title and a line about what is shown.
func newPage(m Medium, title, about string) *page {
	w, h := m.size()
	p := &page{title: clean(title), about: clean(about), pixels: image.Pt(w, h), top: 98}
	p.scale = float64(w) / Width
	p.width, p.height = Width, int(float64(h)/p.scale)
	if m.SVG {
		p.svg = newSVG(p.width, p.height)
		p.canvas = vgdraw.NewCanvas(p.svg, vg.Length(p.width), vg.Length(p.height))
	} else {
		p.raster = rasterOf(w, h)
		p.canvas = vgdraw.NewCanvas(newRaster(p.raster, p.scale), vg.Length(p.width), vg.Length(p.height))
	}
	p.text(bold(titleSize), margin, 46, fit(bold(titleSize), p.title, p.width-2*margin))
	muted := style(textSize, chart.ColorMuted)
	p.text(muted, margin, 78, fit(muted, p.about, p.width-2*margin))
	return p
}

// title names the device and the file, as in "Memory of GPU 0, snapshot.pickle".
func (s subject) title(what string) string {
	file := chart.ClipLeft(chart.Plain(s.r.Snapshot.Name), 70)
	return what + " " + chart.DeviceName(s.d.Timeline.Device) + ", " + file
}

func (p *page) encode(w io.Writer) error {
	if p.svg != nil {
		return p.svg.write(w, p.pixels.X, p.pixels.Y, p.title, p.about)
	}
	return writePNG(w, p.raster)
}

// rasters are those of pages that were written: a picture takes 6 MB, and a report has seven.
var rasters sync.Pool

// rasterOf gives the pixels of a page, of whatever colors.
func rasterOf(w, h int) *image.RGBA {
	if m, ok := rasters.Get().(*image.RGBA); ok && m.Rect == image.Rect(0, 0, w, h) {
		return m
	}
	return image.NewRGBA(image.Rect(0, 0, w, h))
}

// close gives up the pixels of a page.
func (p *page) close() {
	if p.raster != nil {
		rasters.Put(p.raster)
		p.raster = nil
	}
}

func style(size vg.Length, ink color.Color) vgdraw.TextStyle {
	return vgdraw.TextStyle{
		Color: ink, Font: font.Font{Typeface: typeface, Variant: variant, Size: size},
		Handler: text.Plain{Fonts: fonts()},
	}
}

func bold(size vg.Length) vgdraw.TextStyle {
	s := style(size, chart.ColorInk)
	s.Font.Weight = xfont.WeightBold
	return s
}

// text writes s with its baseline at row y.
func (p *page) text(s vgdraw.TextStyle, x, y int, txt string) {
	p.canvas.FillText(s, vg.Point{X: vg.Length(x), Y: vg.Length(p.height - y)}, clean(txt))
}

// textRight writes s so that it ends at column x.
func (p *page) textRight(s vgdraw.TextStyle, x, y int, txt string) {
	p.text(s, x-textWidth(s, txt), y, txt)
}

func textWidth(s vgdraw.TextStyle, txt string) int { return int(s.Width(clean(txt)) + 0.5) }

// fit cuts a text at its end until it is at most width units wide.
func fit(s vgdraw.TextStyle, txt string, width int) string { return cut(s, txt, width, chart.Clip) }

// fitLeft cuts a text at its start, for paths.
func fitLeft(s vgdraw.TextStyle, txt string, width int) string {
	return cut(s, txt, width, chart.ClipLeft)
}

func cut(s vgdraw.TextStyle, txt string, width int, clip func(string, int) string) string {
	txt = clip(clean(txt), 400)
	for n := len([]rune(txt)) - 1; n > 1 && textWidth(s, txt) > width; n-- {
		txt = clip(txt, n)
	}
	return txt
}

// fill paints a rectangle, with its edges on whole pixels.
func (p *page) fill(r image.Rectangle, c color.RGBA) {
	if r = r.Intersect(image.Rect(0, 0, p.width, p.height)); r.Empty() {
		return
	}
	if p.svg != nil {
		p.svg.rect(r, hex(color.NRGBA(c)))
		return
	}
	draw.Draw(p.raster, p.pixelsOf(r), image.NewUniform(c), image.Point{}, draw.Over)
}

// pixelsOf gives the pixels of a rectangle in a PNG, at least one in each direction.
func (p *page) pixelsOf(r image.Rectangle) image.Rectangle {
	px := func(v int) int { return int(math.Round(float64(v) * p.scale)) }
	out := image.Rect(px(r.Min.X), px(r.Min.Y), px(r.Max.X), px(r.Max.Y))
	out.Max.X, out.Max.Y = max(out.Max.X, out.Min.X+1), max(out.Max.Y, out.Min.Y+1)
	return out
}

// note explains a rectangle to who points at it, in an SVG.
func (p *page) note(r image.Rectangle, txt string) {
	if p.svg != nil {
		p.svg.note(r, chart.Clip(clean(txt), 300))
	}
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
	s := style(textSize, chart.ColorInk)
	for _, k := range keys {
		w := textWidth(s, k.name)
		if x+34+w > p.width-margin && x > margin {
			x, y, p.top = margin, y+28, p.top+28
		}
		k.draw(p, image.Rect(x, y, x+26, y+17))
		x += 34
		p.text(s, x, y+15, k.name)
		x += w + 30
	}
	p.top += 36
}

// overTime draws on the rest of the page over the axis of a trace.
func (p *page) overTime(axis chart.Axis, limit float64, draw plotter) {
	a := axes{span: axis.Span, limit: limit, below: scale{axis.Label(), axis.Ticks(10)}, left: ofBytes("bytes on the device", limit, 8)}
	a.draw(p.body(12), draw)
}

// ofBytes is a scale up to limit bytes, with at most rows ticks.
func ofBytes(name string, limit float64, rows int) scale {
	return scale{name, chart.ByteTicks(int64(limit), rows)}
}

// body is the canvas below the header, less right units at its right side.
func (p *page) body(right int) vgdraw.Canvas {
	return vgdraw.Crop(p.canvas, margin-8, -vg.Length(margin+right), 16, -vg.Length(p.top))
}
