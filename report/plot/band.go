package plot

import (
	"image"
	"image/color"
	"math"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Sizes of what a band shows of pieces, in pixels.
const (
	noteWidth = 5 // of the narrowest block that tells what it is
	edgeWidth = 6 // of the narrowest block or segment whose start is marked
	snapWidth = 3 // from here on pieces begin and end with whole pixels
)

// Kinds of the cells of a band, which are its pixels: free classes, then the colors of live blocks.
const (
	numClasses = int(fragmentation.Stream) + 1
	numKinds   = numClasses + len(chart.Slots)
)

// band paints a row of a map, and reports whether it marks where segments begin. Columns that look the
// same are one rectangle.
func (v *mapPainter) band(box image.Rectangle, row *chart.Row) (marked bool) {
	width := box.Dx()
	cells, edges := chart.NewCells(width, numKinds), make([]color.RGBA, width)
	at := func(x0, x1 float64) image.Rectangle {
		return image.Rect(box.Min.X+int(x0), box.Min.Y, box.Min.X+max(int(x1), int(x0)+1), box.Max.Y)
	}
	var notes []func()
	for _, s := range row.Parts {
		x0, x1 := row.Place(s.At, s.At+s.Size, float64(width))
		notes = append(notes, func() { v.note(at(x0, x1), s.Title()) })
		if s.At > 0 && x1-x0 >= edgeWidth {
			edges[int(x0)], marked = white, true
		}
	}
	row.Each(float64(width), func(s *chart.Segment, u *chart.Piece, x0, x1 float64) {
		from, to := x0, x1
		if x1-x0 >= snapWidth {
			from, to = math.Round(x0), math.Round(x1)
		}
		if u.Life < 0 {
			cells.Add(from, to, int(u.Class))
			return
		}
		slot := v.paint.slot(u.Life)
		cells.Add(from, to, numClasses+int(slot))
		if u.At > 0 && x0 > 0 && to-from >= edgeWidth {
			edges[int(from)] = lighter(slot.Color())
		}
		if x1-x0 >= noteWidth {
			notes = append(notes, func() {
				v.note(at(x0, x1), units.Bytes(v.t.Lives[u.Life].Rounded)+", "+v.paint.name(slot))
			})
		}
	})
	runs(box, func(x int) (kind, height int) {
		class, sum := cells.Most(x, 0, numClasses)
		if sum > 0 {
			height = box.Dy()
		}
		return class, height
	}, func(box image.Rectangle, class int) { v.free(box, fragmentation.Class(class)) })
	runs(box, func(x int) (kind, height int) {
		_, free := cells.Most(x, 0, numClasses)
		kind, live := cells.Most(x, numClasses, numKinds)
		return kind, liveHeight(live, free, box.Dy())
	}, func(box image.Rectangle, kind int) { v.fill(box, chart.Slot(kind-numClasses).Color()) })
	for x, c := range edges {
		if c.A > 0 {
			v.fill(image.Rect(box.Min.X+x, box.Min.Y, box.Min.X+x+1, box.Max.Y), c)
		}
	}
	for _, f := range notes {
		f()
	}
	return marked
}

// runs paints, from below, the columns of a box that have a height. Those that look the same are one
// rectangle.
func runs(box image.Rectangle, look func(x int) (kind, height int), paint func(box image.Rectangle, kind int)) {
	for x := 0; x < box.Dx(); {
		kind, height := look(x)
		end := x + 1
		for ; end < box.Dx(); end++ {
			if k, h := look(end); k != kind || h != height {
				break
			}
		}
		if height > 0 {
			paint(image.Rect(box.Min.X+x, box.Max.Y-height, box.Min.X+end, box.Max.Y), kind)
		}
		x = end
	}
}

// liveHeight is how much of a column is live, from below: its share, and at least a bit where any
// byte is.
func liveHeight(live, free float64, of int) int {
	switch {
	case live <= 0:
		return 0
	case free <= 0.01: // full but for rounding
		return of
	}
	return min(max(int(live*float64(of)+0.5), max(of/4, 1)), of)
}

// lighter is half way to white.
func lighter(c color.RGBA) color.RGBA {
	return color.RGBA{c.R/2 + 0x80, c.G/2 + 0x80, c.B/2 + 0x80, 0xff}
}

var white = color.RGBA{0xff, 0xff, 0xff, 0xff}
