package plot

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"gonum.org/v1/plot/vg"
)

// raster is a part of a page that is painted pixel by pixel: maps have more parts than a
// drawing of lines can carry.
type raster struct {
	img *image.RGBA
	at  image.Rectangle // on the page
	k   float64         // pixels per unit
}

// raster begins a raster for a part of the page.
func (p *page) raster(at image.Rectangle) *raster {
	size := image.Pt(int(math.Round(float64(at.Dx())*p.scale)), int(math.Round(float64(at.Dy())*p.scale)))
	return &raster{image.NewRGBA(image.Rectangle{Max: size}), at, p.scale}
}

// box is a rectangle of the page in pixels of the raster.
func (r *raster) box(b image.Rectangle) image.Rectangle {
	px := func(v int) int { return int(math.Round(float64(v) * r.k)) }
	b = b.Sub(r.at.Min)
	return image.Rect(px(b.Min.X), px(b.Min.Y), px(b.Max.X), px(b.Max.Y))
}

// fill paints a rectangle of pixels.
func (r *raster) fill(b image.Rectangle, c color.RGBA) {
	draw.Draw(r.img, b, image.NewUniform(c), image.Point{}, draw.Over)
}

// place puts the raster onto its page.
func (p *page) place(r *raster) {
	if r.at.Empty() {
		return
	}
	min := p.snap(image.Pt(r.at.Min.X, r.at.Max.Y))
	size := r.img.Bounds().Size()
	if p.png != nil { // pixel on pixel
		at := image.Pt(int(math.Round(float64(min.X)*p.scale)), 0)
		at.Y = p.png.Image().Bounds().Dy() - int(math.Round(float64(min.Y)*p.scale)) - size.Y
		draw.Draw(p.png.Image(), image.Rectangle{at, at.Add(size)}, r.img, image.Point{}, draw.Over)
		return
	}
	p.canvas.DrawImage(vg.Rectangle{Min: min, Max: vg.Point{
		X: min.X + vg.Length(float64(size.X)/p.scale), Y: min.Y + vg.Length(float64(size.Y)/p.scale),
	}}, r.img)
}
