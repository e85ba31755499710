package plot

import (
	"image"
	"image/color"
	"math"
	"testing"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
)

// ink is how much black is in a part of a picture, in pixels.
func ink(m *image.RGBA, in image.Rectangle) float64 {
	sum := 0.0
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			sum += 1 - float64(m.RGBAAt(x, y).G)/0xff
		}
	}
	return sum
}

// TestRaster draws what plots draw, with two pixels for each unit, and counts the ink.
func TestRaster(t *testing.T) {
	line := func(pts ...vg.Point) (p vg.Path) {
		p.Move(pts[0])
		for _, pt := range pts[1:] {
			p.Line(pt)
		}
		return p
	}
	closed := func(p vg.Path) vg.Path { p.Close(); return p }
	var circle vg.Path
	circle.Move(vg.Point{X: 70, Y: 50})
	circle.Arc(vg.Point{X: 50, Y: 50}, 20, 0, 2*math.Pi)
	circle.Close()
	curve := line(vg.Point{X: 10, Y: 10})
	curve.CubeTo(vg.Point{X: 10, Y: 70}, vg.Point{X: 70, Y: 70}, vg.Point{X: 70, Y: 10})
	square := line(vg.Point{X: 20, Y: 20}, vg.Point{X: 60, Y: 20}, vg.Point{X: 60, Y: 60}, vg.Point{X: 20, Y: 60})
	for _, c := range []struct {
		name string
		draw func(c *raster)
		want float64 // units of area
	}{
		{"a triangle", func(c *raster) {
			c.Fill(closed(line(vg.Point{X: 10, Y: 10}, vg.Point{X: 90, Y: 10}, vg.Point{X: 10, Y: 90})))
		}, 3200},
		{"an area that is not closed", func(c *raster) { c.Fill(square) }, 1600},
		{"a circle", func(c *raster) { c.Fill(circle) }, math.Pi * 400},
		{"below a curve", func(c *raster) { c.Fill(closed(curve)) }, 0.6 * 60 * 60},
		{"a line", func(c *raster) { c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 90, Y: 20})) }, 80 * 3},
		{"a slanted line", func(c *raster) { c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 40, Y: 60})) }, 50 * 3},
		{"a line that goes back", func(c *raster) {
			c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 90, Y: 20}, vg.Point{X: 10, Y: 20}))
		}, 80*3 + math.Pi*1.5*1.5/2},
		{"a corner, round outside", func(c *raster) {
			c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 90, Y: 20}, vg.Point{X: 90, Y: 90}))
		}, 80*3 + 70*3 - 1.5*1.5 + math.Pi*1.5*1.5/4},
		{"a frame", func(c *raster) { c.Stroke(closed(square)) }, 4 * (40*3 - 1.5*1.5 + math.Pi*1.5*1.5/4)},
		{"dashes", func(c *raster) {
			c.SetLineDash([]vg.Length{6, 4}, 0)
			c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 90, Y: 20}))
		}, 48 * 3},
		{"dashes from the middle of a gap", func(c *raster) {
			c.SetLineDash([]vg.Length{6, 4}, 8)
			c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 22, Y: 20}))
		}, 6 * 3},
		{"no line", func(c *raster) { c.SetLineWidth(0); c.Stroke(square) }, 0},
		{"a spot", func(c *raster) { c.Stroke(line(vg.Point{X: 10, Y: 20}, vg.Point{X: 10, Y: 20})) }, 0},
		{"half opaque", func(c *raster) { c.SetColor(color.NRGBA{A: 0x80}); c.Fill(square) }, 1600 * 0x80 / 0xff},
		{"turned and moved", func(c *raster) {
			c.Push()
			c.Translate(vg.Point{X: 50, Y: 50})
			c.Rotate(math.Pi / 4)
			c.Fill(closed(line(vg.Point{}, vg.Point{X: 20}, vg.Point{X: 20, Y: 20}, vg.Point{Y: 20})))
			c.Pop()
		}, 400},
		{"partly outside", func(c *raster) {
			c.Fill(closed(line(vg.Point{X: -50, Y: -50}, vg.Point{X: 50, Y: -50}, vg.Point{X: 50, Y: 50}, vg.Point{X: -50, Y: 50})))
		}, 2500},
		{"far outside", func(c *raster) {
			c.Fill(closed(line(vg.Point{X: 1e12, Y: 1e12}, vg.Point{X: 2e12, Y: 1e12}, vg.Point{X: 2e12, Y: 2e12})))
		}, 0},
	} {
		m := image.NewRGBA(image.Rect(0, 0, 200, 200))
		canvas := newRaster(m, 2)
		canvas.SetLineWidth(3)
		c.draw(canvas)
		if got := ink(m, m.Rect) / 4; math.Abs(got-c.want) > 0.6+c.want/200 {
			t.Errorf("%s: %.1f units of ink, want %.1f", c.name, got, c.want)
		}
	}
}

// TestLetters checks that a text is as wide as it was laid out to be, whatever its direction.
func TestLetters(t *testing.T) {
	const txt = "AVAWA gpu 12 \u0416\u03a9"
	s := style(20, color.Black)
	wide := float64(s.Width(txt))
	for _, upright := range []bool{false, true} {
		m := image.NewRGBA(image.Rect(0, 0, 300, 300))
		c := vgdraw.NewCanvas(newRaster(m, 1), 300, 300)
		at := s
		if upright {
			at.Rotation = math.Pi / 2
		}
		c.FillText(at, vg.Point{X: map[bool]vg.Length{false: 20, true: 150}[upright], Y: 20}, txt)
		all := bounds{}
		for y := range 300 {
			for x := range 300 {
				if m.RGBAAt(x, y).G < 0x80 {
					all.add(spot{float64(x), float64(y)})
				}
			}
		}
		long, high := all.max.x-all.min.x, all.max.y-all.min.y
		if upright {
			long, high = high, long
		}
		if math.Abs(long-wide) > 4 || high < 12 || high > 22 {
			t.Errorf("upright %v: %g long and %g high, laid out %g", upright, long, high, wide)
		}
	}
}
