package plot

import (
	"image"
	"image/color"
	"math"

	"github.com/snapana/snapana/analyze/fragmentation"
)

// Sizes of what a band shows of pieces, in pixels.
const (
	noteWidth = 5 // of the narrowest block that tells what it is
	edgeWidth = 6 // of the narrowest block or segment whose start is marked
	snapWidth = 3 // from here on pieces begin and end with whole pixels
)

// band is a row of pixels onto which pieces are laid.
type band struct {
	box   image.Rectangle
	size  int64 // bytes of the whole width
	cols  []column
	notes []note
}

// column is one pixel of a band: how much of it is of what.
type column struct {
	live, free       float64
	topLive, topFree float64 // of the longest pieces
	rank, class      kind
	edge             edge
}

// edge is what begins in a column.
type edge uint8

const (
	blockEdge edge = 1 + iota
	segmentEdge
)

type note struct {
	box  image.Rectangle
	text string
}

func newBand(box image.Rectangle, size int64) *band {
	return &band{box: box, size: size, cols: make([]column, box.Dx())}
}

// segment lays a segment that begins at byte at of the band, which may be before its start.
func (b *band) segment(s *segment, at int64) {
	scale := float64(len(b.cols)) / float64(b.size)
	place := func(from, to int64) (float64, float64) {
		return float64(max(from, 0)) * scale, float64(min(to, b.size)) * scale
	}
	x0, x1 := place(at, at+s.size)
	b.notes = append(b.notes, note{b.rect(x0, x1), s.note})
	if at > 0 && x1-x0 >= edgeWidth {
		b.cols[int(x0)].edge = segmentEdge
	}
	for i := range s.pieces {
		u := &s.pieces[i]
		from, to := place(at+u.at, at+u.at+u.n)
		if to <= from {
			continue
		}
		if u.note != "" && to-from >= noteWidth {
			b.notes = append(b.notes, note{b.rect(from, to), u.note})
		}
		if to-from >= snapWidth {
			from, to = math.Round(from), math.Round(to)
		}
		if u.kind >= numClasses && u.at > 0 && at+u.at > 0 && to-from >= edgeWidth {
			b.cols[int(from)].edge = blockEdge
		}
		for x := int(from); x < len(b.cols) && float64(x) < to; x++ {
			c, part := &b.cols[x], min(to, float64(x+1))-max(from, float64(x))
			switch {
			case u.kind < numClasses:
				if c.free += part; part > c.topFree {
					c.topFree, c.class = part, u.kind
				}
			default:
				if c.live += part; part > c.topLive {
					c.topLive, c.rank = part, u.kind-numClasses
				}
			}
		}
	}
}

func (b *band) rect(x0, x1 float64) image.Rectangle {
	return image.Rect(b.box.Min.X+int(x0), b.box.Min.Y, b.box.Min.X+max(int(x1), int(x0)+1), b.box.Max.Y)
}

// height is how much of a column is live, from below: its share, and at least a bit where any
// byte is.
func (c *column) height(of int) int {
	if c.live <= 0 {
		return 0
	}
	if c.free <= 0.01 { // full but for rounding
		return of
	}
	return min(max(int(c.live*float64(of)+0.5), max(of/4, 1)), of)
}

// band paints a band; columns that look the same are one rectangle.
func (p *page) band(b *band) {
	height := b.box.Dy()
	runs := func(same func(a, c *column) bool, paint func(box image.Rectangle, c *column)) {
		for x := 0; x < len(b.cols); {
			end := x + 1
			for end < len(b.cols) && same(&b.cols[x], &b.cols[end]) {
				end++
			}
			paint(image.Rect(b.box.Min.X+x, b.box.Min.Y, b.box.Min.X+end, b.box.Max.Y), &b.cols[x])
			x = end
		}
	}
	runs(func(a, c *column) bool { return (a.free > 0) == (c.free > 0) && a.class == c.class },
		func(box image.Rectangle, c *column) {
			if c.free > 0 {
				p.free(box, fragmentation.Class(c.class))
			}
		})
	runs(func(a, c *column) bool { return a.height(height) == c.height(height) && a.rank == c.rank },
		func(box image.Rectangle, c *column) {
			if h := c.height(height); h > 0 {
				box.Min.Y = box.Max.Y - h
				p.fill(box, rankColor(int(c.rank)))
			}
		})
	for x := range b.cols {
		c, box := &b.cols[x], image.Rect(b.box.Min.X+x, b.box.Min.Y, b.box.Min.X+x+1, b.box.Max.Y)
		switch c.edge {
		case segmentEdge:
			p.fill(box, white)
		case blockEdge:
			p.fill(box, lighter(rankColor(int(c.rank))))
		}
	}
	for _, n := range b.notes {
		p.note(n.box, n.text)
	}
}

// lighter is half way to white.
func lighter(c color.RGBA) color.RGBA {
	return color.RGBA{c.R/2 + 0x80, c.G/2 + 0x80, c.B/2 + 0x80, 0xff}
}

var white = color.RGBA{0xff, 0xff, 0xff, 0xff}
