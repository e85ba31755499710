package plot

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// Sizes of the map of segments, in pixels.
const (
	mapLeft    = 128 // for the sizes of the segments
	mapRight   = 470 // for the legend
	rowGap     = 1
	rowFloor   = 4  // lowest row, with its gap
	maxMapRows = 60 // more segments lie end to end instead
	maxWraps   = 36 // rows of those
)

// segmentsPage draws the segments of a moment: each as a row, or all end to end when they are
// many.
func segmentsPage(to Medium, s subject, paint coloring) *page {
	d, m := s.d, s.moment()
	f := &m.Frag
	p := newPage(to, s.title("Segments of")+", "+when(m),
		fmt.Sprintf("%s reserved = %s active + %s free in partly used segments (split) + %s in empty segments "+
			"(releasable)", units.Bytes(f.Reserved), units.Bytes(f.Active), units.Bytes(f.Split), units.Bytes(f.Releasable)))

	segs := chart.Segments(d.Timeline, m)
	v := mapPainter{page: p, t: d.Timeline, paint: &paint}
	area := image.Rect(mapLeft, p.top+22, p.width-mapRight, p.height-66)
	if len(segs) <= maxMapRows {
		v.rows(segs, area)
		p.share(area, "position in the segment; each row is one segment, by address; taller rows are larger segments")
	} else {
		v.wrapped(segs, area)
	}
	v.keys(m, area.Max.X+28, area.Min.Y+14)
	return p
}

// mapPainter draws segments with their live blocks in colors.
type mapPainter struct {
	*page
	t     *timeline.Timeline
	paint *coloring
	cells chart.Cells // of a row, used again
}

// rows paints a row for each segment. Every row has a lowest height; the rest of the room goes by
// size.
func (v *mapPainter) rows(segs []chart.Segment, area image.Rectangle) {
	var total, before int64 // bytes of all rows, and of those above
	for i := range segs {
		total += segs[i].Size
	}
	floor := max(min(area.Dy()/max(len(segs), 1), 12), rowFloor)
	spare := float64(area.Dy() - floor*len(segs))
	at := func(i int) int { return area.Min.Y + floor*i + int(spare*float64(before)/float64(total)) }
	label := v.rowLabels(area, "segment size")
	for i := range segs {
		s := &segs[i]
		y0 := at(i)
		before += s.Size
		y1 := at(i + 1)
		v.band(image.Rect(area.Min.X, y0, area.Max.X, y1-rowGap), &chart.Row{Bytes: s.Size,
			Parts: []chart.Part{{Segment: s}}})
		label((y0+y1)/2+5, s.Size)
	}
}

// wrapped paints all segments end to end, in rows of equally many bytes, with a mark where each
// begins.
func (v *mapPainter) wrapped(segs []chart.Segment, area image.Rectangle) {
	rows := chart.Wrap(segs, maxWraps)
	height := min(area.Dy()/len(rows), 40)
	label, marked := v.rowLabels(area, "bytes before"), false
	for i := range rows {
		y := area.Min.Y + i*height
		box := image.Rect(area.Min.X, y, area.Max.X, y+height-3)
		marked = v.band(box, &rows[i]) || marked
		label((box.Min.Y+box.Max.Y)/2+5, int64(i)*rows[i].Bytes)
	}
	txt := fmt.Sprintf("all %s segments end to end in address order; a full row is %s", units.Count(int64(len(segs))),
		units.Bytes(rows[0].Bytes))
	if marked {
		txt += "; a gap marks where one begins"
	}
	v.text(style(smallSize, chart.ColorMuted), area.Min.X, area.Min.Y+len(rows)*height+24, txt)
}

// rowLabels writes bytes at the left of rows, where there is room for them, below a head.
func (v *mapPainter) rowLabels(area image.Rectangle, head string) func(mid int, bytes int64) {
	v.text(style(smallSize-1, chart.ColorMuted), margin, area.Min.Y-10, head)
	last := area.Min.Y - 100
	return func(mid int, bytes int64) {
		if mid-last >= 16 {
			v.textRight(style(smallSize-1, chart.ColorInk), area.Min.X-8, mid, units.Bytes(bytes))
			last = mid
		}
	}
}

// share draws the horizontal axis: every row spans its whole segment.
func (p *page) share(area image.Rectangle, txt string) {
	s := style(smallSize, chart.ColorInk)
	for i := 0; i <= 4; i++ {
		x := area.Min.X + area.Dx()*i/4
		p.fill(image.Rect(x, area.Max.Y, x+1, area.Max.Y+6), chart.ColorMuted)
		txt := fmt.Sprintf("%d%%", 25*i)
		p.text(s, x-textWidth(s, txt)/2, area.Max.Y+23, txt)
	}
	s = style(smallSize, chart.ColorMuted)
	p.text(s, area.Min.X+(area.Dx()-textWidth(s, txt))/2, area.Max.Y+46, txt)
}

// keys is the legend at the right of the map.
func (v *mapPainter) keys(m *analyze.Moment, x, y int) {
	ink, muted := style(smallSize, chart.ColorInk), style(smallSize, chart.ColorMuted)
	add := func(fill func(box image.Rectangle), name string, bytes, all int64, of string) {
		fill(image.Rect(x, y+4, x+22, y+36))
		v.text(ink, x+32, y+17, fitLeft(ink, name, v.width-margin-x-32))
		v.text(muted, x+32, y+36, units.Bytes(bytes)+", "+units.Percent(bytes, all)+" of "+of)
		y += 48
	}
	v.text(bold(textSize), x, y, v.paint.title)
	y += 14
	for _, e := range v.paint.entries {
		add(func(box image.Rectangle) { v.fill(box, e.slot.Color()) }, e.name, e.bytes, m.State.Totals.Active, "active")
	}
	y += 26
	v.text(bold(textSize), x, y, "Free memory")
	y += 14
	none := true
	for class := range hatches {
		if n := chart.FreeKinds[class].Bytes(&m.Frag.Classes); n > 0 {
			none = false
			add(func(box image.Rectangle) {
				v.free(box, fragmentation.Class(class))
				v.frame(box, chart.ColorOther)
			}, chart.FreeKinds[class].Name, n, m.Frag.Reserved, "reserved")
		}
	}
	if none {
		v.text(muted, x, y+17, "none")
	}
}

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
	if len(v.cells) != width {
		v.cells = chart.NewCells(width, numKinds)
	}
	cells, edges := v.cells, make([]color.RGBA, width)
	for _, c := range cells {
		clear(c)
	}
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
