package plot

import (
	"image/color"
	"math"

	"golang.org/x/image/math/f64"
	"gonum.org/v1/plot/vg"
)

// pen is how a canvas draws: what Push saves.
type pen struct {
	to     f64.Aff3 // from the current coordinates to those of the file, where y points down
	color  color.NRGBA
	width  vg.Length
	dashes []vg.Length
	offset vg.Length
}

// pens are the part of a vg.Canvas that only remembers.
type pens struct {
	pen   pen
	saved []pen
}

func (c *pens) SetLineWidth(w vg.Length)                { c.pen.width = w }
func (c *pens) SetLineDash(d []vg.Length, at vg.Length) { c.pen.dashes, c.pen.offset = d, at }
func (c *pens) Push()                                   { c.saved = append(c.saved, c.pen) }
func (c *pens) Rotate(a float64)                        { s, k := math.Sincos(a); c.apply(f64.Aff3{k, -s, 0, s, k, 0}) }
func (c *pens) Translate(p vg.Point)                    { c.apply(f64.Aff3{1, 0, float64(p.X), 0, 1, float64(p.Y)}) }
func (c *pens) Scale(x, y float64)                      { c.apply(f64.Aff3{x, 0, 0, 0, y, 0}) }

func (c *pens) Pop() {
	last := len(c.saved) - 1
	c.pen, c.saved = c.saved[last], c.saved[:last]
}

func (c *pens) SetColor(ink color.Color) {
	if ink == nil {
		ink = color.Black
	}
	c.pen.color = color.NRGBAModel.Convert(ink).(color.NRGBA)
}

// apply puts a transformation before the current one.
func (c *pens) apply(b f64.Aff3) {
	a := c.pen.to
	c.pen.to = f64.Aff3{
		a[0]*b[0] + a[1]*b[3], a[0]*b[1] + a[1]*b[4], a[0]*b[2] + a[1]*b[5] + a[2],
		a[3]*b[0] + a[4]*b[3], a[3]*b[1] + a[4]*b[4], a[3]*b[2] + a[4]*b[5] + a[5],
	}
}

// at gives the place of a point in the file.
func (c *pens) at(p vg.Point) (x, y float64) {
	m := &c.pen.to
	return m[0]*float64(p.X) + m[1]*float64(p.Y) + m[2], m[3]*float64(p.X) + m[4]*float64(p.Y) + m[5]
}
