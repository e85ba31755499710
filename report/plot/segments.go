package plot

import (
	"cmp"
	"fmt"
	"image"
	"slices"

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
func segmentsPage(to Medium, r *analyze.Result, d *analyze.Device, m *analyze.Moment, paint coloring) *page {
	f := &m.Frag
	p := newPage(to, pageTitle(r, d, "Segments of")+", "+when(m), fmt.Sprintf("%s reserved = %s active + %s free in partly used segments (split) + %s in empty segments (releasable)",
		units.Bytes(f.Reserved), units.Bytes(f.Active), units.Bytes(f.Split), units.Bytes(f.Releasable)))

	pieces := piecesOf(d.Timeline, m, &paint)
	area := image.Rect(mapLeft, p.top+22, p.width-mapRight, p.height-66)
	if len(pieces) <= maxMapRows {
		p.rows(pieces, area)
		p.share(area, "position in the segment; each row is one segment, by address; taller rows are larger segments")
	} else {
		p.wrapped(pieces, area)
	}
	p.mapKeys(m, &paint, area.Max.X+28, area.Min.Y+14)
	return p
}

// segment is a segment as a row of pieces that cover it.
type segment struct {
	size   int64
	note   string
	pieces []piece
}

// piece is a stretch of one kind: free memory of a class, or a live block.
type piece struct {
	at, n int64
	kind  kind
	note  string // of a live block
}

// kind is a fragmentation.Class, or numClasses plus the rank of a live block.
type kind int

const numClasses = kind(fragmentation.Stream) + 1

// piecesOf cuts the segments of a state, by address, into pieces. Blocks that stick out of their
// segment are cut; those that lie outside are left out.
func piecesOf(t *timeline.Timeline, m *analyze.Moment, paint *coloring) []segment {
	st := m.State
	holes := make([][]fragmentation.Hole, len(st.Segments))
	for _, h := range fragmentation.FindHoles(t, st, m.Frag.Stream) {
		holes[h.Segment] = append(holes[h.Segment], h)
	}
	var out []segment
	for i := range st.Segments {
		seg := &st.Segments[i]
		if seg.Size <= 0 {
			continue
		}
		v := segment{size: seg.Size, note: fmt.Sprintf("%#x: %s, %s; %s live in %s, %s free", seg.Addr, units.Bytes(seg.Size),
			chart.Pool(seg.Kind, seg.Pool, seg.Stream, seg.Expandable), units.Bytes(seg.Active), units.Plural(len(seg.Live), "block"), units.Bytes(seg.Size-seg.Active))}
		add := func(addr uint64, size int64, k kind, note string) {
			if at, n, ok := chart.Extent(addr, size, seg); ok {
				v.pieces = append(v.pieces, piece{at, n, k, note})
			}
		}
		for _, h := range holes[i] {
			add(h.Addr, h.Size, kind(h.Class), "")
		}
		for _, row := range seg.Live {
			l, rank := &t.Lives[row], paint.rank(row)
			add(l.Addr, l.Rounded, numClasses+kind(rank), units.Bytes(l.Rounded)+", "+paint.name(rank))
		}
		slices.SortStableFunc(v.pieces, func(a, b piece) int { return cmp.Compare(a.at, b.at) })
		out = append(out, v)
	}
	return out
}

// rows paints a row for each segment. Every row has a lowest height; the rest of the room goes by
// size.
func (p *page) rows(segs []segment, area image.Rectangle) {
	var total int64
	for i := range segs {
		total += segs[i].size
	}
	floor := min(area.Dy()/max(len(segs), 1), 12)
	floor = max(floor, rowFloor)
	spare := float64(area.Dy() - floor*len(segs))
	label := style(smallSize-1, chart.ColorInk)
	p.text(style(smallSize-1, chart.ColorMuted), margin, area.Min.Y-10, "segment size")
	var before int64 // bytes of the rows above
	lastLabel := area.Min.Y - 100
	for i := range segs {
		s := &segs[i]
		y0 := area.Min.Y + floor*i + int(spare*float64(before)/float64(total))
		before += s.size
		y1 := area.Min.Y + floor*(i+1) + int(spare*float64(before)/float64(total))
		box := image.Rect(area.Min.X, y0, area.Max.X, y1-rowGap)
		b := newBand(box, s.size)
		b.segment(s, 0)
		p.band(b)
		if mid := (y0+y1)/2 + 5; mid-lastLabel >= 16 {
			p.textRight(label, area.Min.X-8, mid, units.Bytes(s.size))
			lastLabel = mid
		}
	}
}

// wrapped paints all segments end to end, in rows of equally many bytes, with a mark where each
// begins.
func (p *page) wrapped(segs []segment, area image.Rectangle) {
	var total int64
	for i := range segs {
		total += segs[i].size
	}
	row := int64(1) << 20
	for row*maxWraps < total {
		row *= 2
	}
	n := int((total + row - 1) / row)
	bands := make([]*band, n)
	height := min(area.Dy()/n, 40)
	for i := range bands {
		y := area.Min.Y + i*height
		bands[i] = newBand(image.Rect(area.Min.X, y, area.Max.X, y+height-3), row)
	}
	var at int64
	for i := range segs {
		s := &segs[i]
		for k := at / row; k*row < at+s.size; k++ {
			bands[k].segment(s, at-k*row)
		}
		at += s.size
	}
	label := style(smallSize-1, chart.ColorInk)
	p.text(style(smallSize-1, chart.ColorMuted), margin, area.Min.Y-10, "bytes before")
	lastLabel := area.Min.Y - 100
	for i, b := range bands {
		p.band(b)
		if mid := (b.box.Min.Y+b.box.Max.Y)/2 + 5; mid-lastLabel >= 16 {
			p.textRight(label, area.Min.X-8, mid, units.Bytes(int64(i)*row))
			lastLabel = mid
		}
	}
	s := style(smallSize, chart.ColorMuted)
	txt := fmt.Sprintf("all %s segments end to end in address order; a full row is %s", units.Count(int64(len(segs))), units.Bytes(row))
	if slices.ContainsFunc(bands, func(b *band) bool {
		return slices.ContainsFunc(b.cols, func(c column) bool { return c.edge == segmentEdge })
	}) {
		txt += "; a gap marks where one begins"
	}
	p.text(s, area.Min.X, area.Min.Y+n*height+24, txt)
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

// mapKeys is the legend at the right of the map.
func (p *page) mapKeys(m *analyze.Moment, paint *coloring, x, y int) {
	ink, muted := style(smallSize, chart.ColorInk), style(smallSize, chart.ColorMuted)
	width := p.width - margin - x
	p.text(bold(textSize), x, y, paint.title)
	y += 14
	sum := m.State.Totals.Active
	for i, e := range paint.entries {
		p.fill(image.Rect(x, y+4, x+22, y+36), rankColor(e.rank))
		p.text(ink, x+32, y+17, fitLeft(ink, paint.entries[i].name, width-32))
		p.text(muted, x+32, y+36, units.Bytes(e.bytes)+", "+units.Percent(e.bytes, sum)+" of active")
		y += 48
	}
	y += 26
	p.text(bold(textSize), x, y, "Free memory")
	y += 14
	c := &m.Frag.Classes
	for _, k := range []struct {
		class fragmentation.Class
		means string
		bytes int64
	}{
		{fragmentation.Hard, chart.FreeHard, c.Hard},
		{fragmentation.Soft, chart.FreeSoft + ": expandable segments can join them", c.Soft},
		{fragmentation.Stream, "for another stream or a private pool", c.Stream},
		{fragmentation.Releasable, "whole segments: empty_cache() returns them", c.Releasable},
	} {
		if k.bytes == 0 {
			continue
		}
		box := image.Rect(x, y+4, x+22, y+36)
		p.free(box, k.class)
		p.frame(box, chart.ColorOther)
		p.text(ink, x+32, y+17, k.class.String()+", "+units.Bytes(k.bytes))
		p.text(muted, x+32, y+36, fit(muted, k.means, width-32))
		y += 48
	}
	if c.Hard+c.Soft+c.Stream+c.Releasable == 0 {
		p.text(muted, x, y+17, "none")
	}
}
