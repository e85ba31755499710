package plot

import (
	"image"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/f64"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
	vgfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// raster is a canvas of pixels.
//
// Tried: gonum's vgimg. Its gg brings TIFF, JPEG and every way to turn a picture: 0.7 MB of the program, and a quarter more time.
type raster struct {
	pens
	image *image.RGBA
	area  vector.Rasterizer
	buf   sfnt.Buffer
}

var _ vg.Canvas = (*raster)(nil)

// spot is a place in pixels from the upper left corner.
type spot struct{ x, y float64 }

// newRaster draws on an image with scale pixels for each unit. What was there is painted white.
func newRaster(m *image.RGBA, scale float64) *raster {
	draw.Draw(m, m.Rect, image.White, image.Point{}, draw.Src)
	c := &raster{image: m}
	c.pen.to = f64.Aff3{scale, 0, 0, 0, -scale, float64(m.Rect.Dy())}
	vg.Initialize(c)
	return c
}

// scale is the number of pixels for each unit.
func (c *raster) scale() float64 {
	m := &c.pen.to
	return math.Sqrt(math.Abs(m[0]*m[4] - m[1]*m[3]))
}

// Fill implements vg.Canvas.
func (c *raster) Fill(p vg.Path) {
	var areas [][]spot
	for _, line := range c.lines(p) {
		areas = append(areas, line.spots)
	}
	c.paint(areas)
}

// Stroke implements vg.Canvas: ends are cut off square, and corners are round.
func (c *raster) Stroke(p vg.Path) {
	if c.pen.width <= 0 {
		return
	}
	half := float64(c.pen.width) * c.scale() / 2
	var areas [][]spot
	for _, line := range c.lines(p) {
		for _, dash := range c.dashed(line) {
			areas = dash.wide(half, areas)
		}
	}
	c.paint(areas)
}

// FillString implements vg.Canvas.
func (c *raster) FillString(f vgfont.Face, at vg.Point, text string) {
	em := fixed.Int26_6(f.Face.UnitsPerEm()) // a glyph of this size has the coordinates of its file
	m, unit := c.pen.to, float64(f.Font.Size)/float64(em)
	place := func(p fixed.Point26_6) spot {
		x, y := float64(at.X)+float64(p.X)*unit, float64(at.Y)-float64(p.Y)*unit
		return spot{m[0]*x + m[1]*y + m[2], m[3]*x + m[4]*y + m[5]}
	}
	var pen fixed.Point26_6
	var before sfnt.GlyphIndex
	for i, r := range text {
		glyph, err := f.Face.GlyphIndex(&c.buf, r)
		if err != nil {
			continue // the fonts are part of the program, and whole
		}
		if i > 0 {
			if kern, err := f.Face.Kern(&c.buf, before, glyph, em, font.HintingNone); err == nil {
				pen.X += kern
			}
		}
		outline, err := f.Face.LoadGlyph(&c.buf, glyph, em, nil)
		if err != nil {
			continue
		}
		c.letter(outline, func(p fixed.Point26_6) spot { return place(p.Add(pen)) })
		if wide, err := f.Face.GlyphAdvance(&c.buf, glyph, em, font.HintingNone); err == nil {
			pen.X += wide
		}
		before = glyph
	}
}

// DrawImage implements vg.Canvas: no plot has images.
func (c *raster) DrawImage(vg.Rectangle, image.Image) {}

// letter paints the outline of a glyph.
func (c *raster) letter(outline sfnt.Segments, place func(fixed.Point26_6) spot) {
	var at [][3]spot
	var all bounds
	for _, s := range outline {
		var p [3]spot
		for i := range points(s.Op) {
			p[i] = place(s.Args[i])
			all.add(p[i])
		}
		at = append(at, p)
	}
	r, ok := c.begin(all)
	if !ok {
		return
	}
	xy := func(p spot) (float32, float32) {
		return float32(p.x - float64(r.Min.X)), float32(p.y - float64(r.Min.Y))
	}
	for i, p := range at {
		ax, ay := xy(p[0])
		bx, by := xy(p[1])
		cx, cy := xy(p[2])
		switch outline[i].Op {
		case sfnt.SegmentOpMoveTo:
			c.area.ClosePath()
			c.area.MoveTo(ax, ay)
		case sfnt.SegmentOpLineTo:
			c.area.LineTo(ax, ay)
		case sfnt.SegmentOpQuadTo:
			c.area.QuadTo(ax, ay, bx, by)
		case sfnt.SegmentOpCubeTo:
			c.area.CubeTo(ax, ay, bx, by, cx, cy)
		}
	}
	c.area.ClosePath()
	c.end(r)
}

// points is how many a segment of a glyph has.
func points(op sfnt.SegmentOp) int {
	switch op {
	case sfnt.SegmentOpQuadTo:
		return 2
	case sfnt.SegmentOpCubeTo:
		return 3
	}
	return 1
}

// paint fills closed outlines; where several that turn the same way lie over each other, once.
func (c *raster) paint(outlines [][]spot) {
	var all bounds
	for _, line := range outlines {
		for _, p := range line {
			all.add(p)
		}
	}
	r, ok := c.begin(all)
	if !ok {
		return
	}
	for _, line := range outlines {
		for i, p := range line {
			x, y := float32(p.x-float64(r.Min.X)), float32(p.y-float64(r.Min.Y))
			if i == 0 {
				c.area.MoveTo(x, y)
			} else {
				c.area.LineTo(x, y)
			}
		}
		c.area.ClosePath()
	}
	c.end(r)
}

// begin makes room for an area, and tells the pixels on which it lies, if any.
func (c *raster) begin(b bounds) (image.Rectangle, bool) {
	r := b.pixels().Intersect(c.image.Rect)
	if r.Empty() {
		return r, false
	}
	c.area.Reset(r.Dx(), r.Dy())
	c.area.DrawOp = draw.Over
	return r, true
}

func (c *raster) end(r image.Rectangle) {
	c.area.Draw(c.image, r, image.NewUniform(c.pen.color), image.Point{})
}

// bounds are those of spots.
type bounds struct {
	any      bool
	min, max spot
}

func (b *bounds) add(p spot) {
	if !b.any {
		*b = bounds{true, p, p}
		return
	}
	b.min = spot{min(b.min.x, p.x), min(b.min.y, p.y)}
	b.max = spot{max(b.max.x, p.x), max(b.max.y, p.y)}
}

func (b *bounds) pixels() image.Rectangle {
	const far = 1 << 20 // pixels that no picture has
	px := func(v float64) int { return int(max(min(v, far), -far)) }
	return image.Rect(px(math.Floor(b.min.x)), px(math.Floor(b.min.y)), px(math.Ceil(b.max.x)), px(math.Ceil(b.max.y)))
}
