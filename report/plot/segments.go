package plot

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"slices"

	"snapana/analyze"
	"snapana/analyze/timeline"
	"snapana/analyze/units"
	"snapana/report/internal/view"
	"snapana/snapshot"
)

// Sizes of the map of segments, in pixels.
const (
	mapLeft    = 128 // for the sizes of the segments
	mapRight   = 470 // for the legend
	rowGap     = 1
	rowFloor   = 4   // lowest row, with its gap
	maxMapRows = 150 // more segments are summed in one row
)

// rankColours are the colours of the stacks that hold the most, largest first.
var rankColours = [...]color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x8c, 0x6b, 0x2f, 0xff}, {0x5b, 0x4b, 0x9e, 0xff},
}

// Ranks after those of rankColours: all other stacks, and stacks that are not told apart.
const (
	rankOther = len(rankColours) + iota
	rankAny
)

func rankColour(rank int) color.RGBA {
	switch rank {
	case rankOther:
		return color.RGBA{0x8a, 0x94, 0x9e, 0xff}
	case rankAny:
		return color.RGBA{0x46, 0x4d, 0x55, 0xff}
	}
	return rankColours[rank]
}

func segmentsPage(medium Medium, r *analyze.Result, d *analyze.Device, m *analyze.Moment) *page {
	f := &m.Frag
	when := m.Name
	switch m.Name {
	case "peak", "end":
		when = "at its " + m.Name
	case "oom":
		when = "when it ran out of memory"
	}
	p := newPage(medium, pageTitle(r, d, "Segments of")+", "+when, fmt.Sprintf("%s reserved = %s active + %s free in partly used segments (split) + %s in empty segments (releasable)",
		units.Bytes(f.Reserved), units.Bytes(f.Active), units.Bytes(f.Split), units.Bytes(f.Releasable)))

	ranks := map[snapshot.StackID]int{}
	for i := range m.Live[:min(len(m.Live), rankOther)] {
		ranks[m.Live[i].Stack] = i
	}
	rows := segmentRows(d.Timeline, m.State, ranks)
	area := image.Rect(mapLeft, p.top+22, p.width-mapRight, p.height-66)
	p.rows(rows, area)
	caption := "place within the segment; each row is one segment, taller rows are larger segments"
	summed := len(rows) > 0 && rows[len(rows)-1].sum
	if summed {
		caption += "; the last row sums the smallest"
	}
	p.share(area, caption)
	p.stackKeys(m, area.Max.X+28, area.Min.Y+14, summed)
	return p
}

// mapRow is one row of the map: a segment, or the sum of the ones that have no row.
type mapRow struct {
	label string
	size  int64
	empty int64 // bytes at the end that belong to segments without a live block
	runs  []run
	sum   bool // of several segments
}

// run is a stretch of live bytes of one stack within a row.
type run struct {
	at, n int64
	rank  int
}

// segmentRows orders the segments by size and sums those that do not get a row.
func segmentRows(t *timeline.Timeline, st *timeline.State, ranks map[snapshot.StackID]int) []mapRow {
	order := make([]int, 0, len(st.Segments))
	for i := range st.Segments {
		if st.Segments[i].Size > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(st.Segments[b].Size, st.Segments[a].Size) })
	var rest []int
	if len(order) > maxMapRows {
		order, rest = order[:maxMapRows-1], order[maxMapRows-1:]
	}
	var rows []mapRow
	for _, i := range order {
		seg := &st.Segments[i]
		row := mapRow{label: units.Bytes(seg.Size), size: seg.Size}
		if len(seg.Live) == 0 {
			row.empty = seg.Size
		}
		for _, l := range seg.Live {
			life := &t.Lives[l]
			if life.Addr < seg.Addr || life.Addr-seg.Addr >= uint64(seg.Size) {
				continue
			}
			rank, ok := ranks[life.Stack]
			if !ok {
				rank = rankOther
			}
			at := int64(life.Addr - seg.Addr)
			row.runs = append(row.runs, run{at, min(life.Rounded, seg.Size-at), rank})
		}
		rows = append(rows, row)
	}
	if len(rest) > 0 {
		row := mapRow{label: fmt.Sprintf("+ %s more", units.Count(int64(len(rest)))), sum: true}
		var live int64
		for _, i := range rest {
			row.size += st.Segments[i].Size
			live += st.Segments[i].Active
			if len(st.Segments[i].Live) == 0 {
				row.empty += st.Segments[i].Size
			}
		}
		row.runs = []run{{0, min(live, row.size), rankAny}}
		rows = append(rows, row)
	}
	return rows
}

// rows paints the map. Every row has a lowest height; the rest of the room goes by size.
func (p *page) rows(rows []mapRow, area image.Rectangle) {
	var total int64
	for _, r := range rows {
		total += r.size
	}
	floor := min(area.Dy()/max(len(rows), 1), 12)
	floor = max(floor, rowFloor)
	spare := float64(area.Dy() - floor*len(rows))
	label := style(smallSize-1, view.ColourInk)
	p.text(style(smallSize-1, view.ColourMuted), margin, area.Min.Y-10, "segment size")
	into := p.raster(area)
	var before int64 // bytes of the rows above
	lastLabel := area.Min.Y - 100
	for i, r := range rows {
		y0 := area.Min.Y + floor*i + int(spare*float64(before)/float64(total))
		before += r.size
		y1 := area.Min.Y + floor*(i+1) + int(spare*float64(before)/float64(total))
		into.row(r, into.box(image.Rect(area.Min.X, y0, area.Max.X, y1-rowGap)))
		if mid := (y0+y1)/2 + 5; mid-lastLabel >= 16 {
			p.textRight(label, area.Min.X-8, mid, r.label)
			lastLabel = mid
		}
	}
	p.place(into)
}

// row paints one segment. A column of pixels is coloured as high as its share of live bytes,
// in the colour of the stack that has the most of them there, and at least a bit where any
// byte is live.
func (p *raster) row(r mapRow, box image.Rectangle) {
	width, height := box.Dx(), box.Dy()
	split := box.Max.X - int(float64(r.empty)/float64(r.size)*float64(width)+0.5)
	p.free(image.Rect(box.Min.X, box.Min.Y, split, box.Max.Y), false)
	p.free(image.Rect(split, box.Min.Y, box.Max.X, box.Max.Y), true)
	live := make([]float64, width)
	top := make([]float64, width) // bytes of the longest run that touches the column
	rank := make([]int, width)
	scale := float64(width) / float64(r.size)
	for _, u := range r.runs {
		from, to := float64(u.at)*scale, float64(u.at+u.n)*scale
		for x := int(from); x < width && float64(x) < to; x++ {
			part := min(to, float64(x+1)) - max(from, float64(x))
			live[x] += part
			if part > top[x] {
				top[x], rank[x] = part, u.rank
			}
		}
	}
	for x := range width {
		if live[x] <= 0 {
			continue
		}
		h := min(max(int(live[x]*float64(height)+0.5), max(height/4, 1)), height)
		p.fill(image.Rect(box.Min.X+x, box.Max.Y-h, box.Min.X+x+1, box.Max.Y), rankColour(rank[x]))
	}
}

// free paints memory without live blocks: hatched where live blocks elsewhere in the segment
// hold it, plain where the whole segment could be given back.
func (p *raster) free(box image.Rectangle, empty bool) {
	if empty {
		p.fill(box, faded(view.ColourReleasable, 110))
		return
	}
	p.fill(box, color.RGBA{0xf4, 0xf4, 0xf2, 0xff})
	period, thick := max(int(7*p.k+0.5), 3), max(int(p.k+0.5), 1)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if (x+y)%period < thick {
				p.img.SetRGBA(x, y, color.RGBA{0xb0, 0xa8, 0x98, 0xff})
			}
		}
	}
}

// share draws the horizontal axis: every row spans its whole segment.
func (p *page) share(area image.Rectangle, txt string) {
	s := style(smallSize, view.ColourInk)
	for i := 0; i <= 4; i++ {
		x := area.Min.X + area.Dx()*i/4
		p.fill(image.Rect(x, area.Max.Y, x+1, area.Max.Y+6), view.ColourMuted)
		txt := fmt.Sprintf("%d%%", 25*i)
		p.text(s, x-textWidth(s, txt)/2, area.Max.Y+23, txt)
	}
	s = style(smallSize, view.ColourMuted)
	p.text(s, area.Min.X+(area.Dx()-textWidth(s, txt))/2, area.Max.Y+46, txt)
}

// stackKeys is the legend at the right of the map.
func (p *page) stackKeys(m *analyze.Moment, x, y int, summed bool) {
	ink, muted := style(smallSize, view.ColourInk), style(smallSize, view.ColourMuted)
	width := p.width - margin - x
	p.text(bold(textSize), x, y, "Live blocks by stack")
	y += 14
	top, other, more := view.Top(m.Live, rankOther)
	sites, sum := view.Sites(top), view.Sum(m.Live)
	entry := func(c color.RGBA, site string, bytes int64) {
		p.fill(image.Rect(x, y+4, x+22, y+36), c)
		p.text(ink, x+32, y+17, fitLeft(ink, site, width-32))
		p.text(muted, x+32, y+36, units.Bytes(bytes)+", "+units.Percent(bytes, sum)+" of active")
		y += 52
	}
	for i := range top {
		entry(rankColour(i), sites[i], top[i].Rounded)
	}
	if more > 0 {
		entry(rankColour(rankOther), units.Count(int64(more))+" other stacks", other.Rounded)
	}
	if summed {
		p.fill(image.Rect(x, y+4, x+22, y+24), rankColour(rankAny))
		p.text(ink, x+32, y+20, "any stack, in the last row")
		y += 40
	}
	y += 30
	p.text(bold(textSize), x, y, "Free memory")
	y += 14
	free := func(empty bool, name, means string, bytes int64) {
		box := image.Rect(x, y+4, x+22, y+36)
		swatch := p.raster(box)
		swatch.free(swatch.img.Bounds(), empty)
		p.place(swatch)
		p.frame(box, view.ColourOther)
		p.text(ink, x+32, y+17, name+", "+units.Bytes(bytes))
		p.text(muted, x+32, y+36, fit(muted, means, width-32))
		y += 52
	}
	free(false, "split", "live blocks keep the segment", m.Frag.Split)
	free(true, "releasable", "empty_cache() returns it", m.Frag.Releasable)
}
