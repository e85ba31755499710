package plot

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// polyline is a part of a path without gaps, in pixels.
type polyline struct {
	spots  []spot
	closed bool
}

// lines gives the parts of a path, with straight pieces for what is round.
func (c *raster) lines(p vg.Path) []polyline {
	var out []polyline
	var last vg.Point
	to := func(p vg.Point) {
		if len(out) == 0 {
			out = append(out, polyline{})
		}
		x, y := c.at(p)
		line := &out[len(out)-1]
		line.spots = append(line.spots, spot{x, y})
		last = p
	}
	for _, comp := range p {
		switch comp.Type {
		case vg.MoveComp:
			out = append(out, polyline{})
			to(comp.Pos)
		case vg.LineComp:
			to(comp.Pos)
		case vg.ArcComp:
			n := pieces(float64(comp.Radius)*c.scale(), comp.Angle)
			for i := range n + 1 {
				sin, cos := math.Sincos(comp.Start + comp.Angle*float64(i)/float64(n))
				to(vg.Point{X: comp.Pos.X + comp.Radius*vg.Length(cos), Y: comp.Pos.Y + comp.Radius*vg.Length(sin)})
			}
		case vg.CurveComp:
			from := append(append([]vg.Point{last}, comp.Control...), comp.Pos)
			const n = 32
			for i := range n {
				to(bezier(from, vg.Length(i+1)/n))
			}
		case vg.CloseComp:
			if len(out) > 0 {
				out[len(out)-1].closed = true
			}
		}
	}
	return out
}

// pieces is how many straight ones differ from an arc by less than a tenth of a pixel.
func pieces(radius, angle float64) int {
	step := math.Pi / 4
	if radius > 0.4 {
		step = 2 * math.Acos(1-0.1/radius)
	}
	return max(int(math.Ceil(math.Abs(angle)/step)), 1)
}

// bezier is the point of a curve at t from 0 to 1, after de Casteljau.
func bezier(control []vg.Point, t vg.Length) vg.Point {
	p := append([]vg.Point(nil), control...)
	for n := len(p) - 1; n > 0; n-- {
		for i := range n {
			p[i] = p[i].Scale(1 - t).Add(p[i+1].Scale(t))
		}
	}
	return p[0]
}

// dashed cuts a line into the dashes of the pen.
func (c *raster) dashed(line polyline) []polyline {
	var around float64
	for _, d := range c.pen.dashes {
		around += float64(d)
	}
	if around <= 0 {
		return []polyline{line}
	}
	if line.closed && len(line.spots) > 0 {
		line.spots = append(line.spots, line.spots[0])
	}
	scale := c.scale()
	k, left := 0, 0.0 // the dash or gap that is drawn now, and how much of it
	next := func() { left, k = float64(c.pen.dashes[k%len(c.pen.dashes)])*scale, k+1 }
	next()
	for skip := math.Mod(float64(c.pen.offset), 2*around) * scale; skip > 0; {
		if part := min(skip, left); part < left {
			left -= part
			break
		}
		skip -= left
		next()
	}
	var out []polyline
	var dash []spot
	for i := 1; i < len(line.spots); i++ {
		a, b := line.spots[i-1], line.spots[i]
		far := math.Hypot(b.x-a.x, b.y-a.y)
		for done := 0.0; done < far; {
			part := min(left, far-done)
			along := func(v float64) spot { return spot{a.x + (b.x-a.x)*v/far, a.y + (b.y-a.y)*v/far} }
			if k%2 == 1 {
				if len(dash) == 0 {
					dash = append(dash, along(done))
				}
				dash = append(dash, along(done+part))
			}
			done += part
			if left -= part; left <= 0 {
				if len(dash) > 0 {
					out, dash = append(out, polyline{spots: dash}), nil
				}
				next()
			}
		}
	}
	if len(dash) > 0 {
		out = append(out, polyline{spots: dash})
	}
	return out
}

// wide adds the outlines of a line that reaches half pixels to both of its sides, all turning the same way.
func (l polyline) wide(half float64, outlines [][]spot) [][]spot {
	spots := l.spots
	if l.closed && len(spots) > 0 {
		spots = append(spots, spots[0])
	}
	corners := pieces(half, 2*math.Pi)
	drawn := false
	for i := 1; i < len(spots); i++ {
		a, b := spots[i-1], spots[i]
		far := math.Hypot(b.x-a.x, b.y-a.y)
		if far == 0 {
			continue
		}
		dx, dy := (b.x-a.x)*half/far, (b.y-a.y)*half/far
		outlines = append(outlines, []spot{
			{a.x - dy, a.y + dx}, {b.x - dy, b.y + dx}, {b.x + dy, b.y - dx}, {a.x + dy, a.y - dx},
		})
		if drawn || l.closed {
			disc := make([]spot, corners)
			for k := range disc {
				sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(corners))
				disc[k] = spot{a.x + half*cos, a.y + half*sin}
			}
			outlines = append(outlines, disc)
		}
		drawn = true
	}
	return outlines
}
