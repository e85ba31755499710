package html

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// segmentMap shows the segments of one moment, largest first.
type segmentMap struct {
	Title, When  string
	Note         string // instead of rows
	Rows         []segmentRow
	More         string        // what the rows leave out
	Ribbon       template.HTML // all segments, when the rows leave some out
	RibbonNote   string
	RibbonPixels int
}

// segmentRow is one segment: a bar as long as the segment is large, blocks where they lie.
type segmentRow struct {
	Size, Pool, Free string
	Title            string
	Bar              template.HTML
	Width            string // percent of the largest segment
	Pinned           bool   // more free than live: the blocks are marked
}

const (
	rowCells  = 300  // finest division of a bar whose blocks are too many to draw
	wideBlock = 0.02 // fraction of the whole width from which a block tells its site
	maxPins   = 40   // marks below one bar
)

func newSegmentMap(t *timeline.Timeline, ph phase, colors palette, deep depth) segmentMap {
	m := segmentMap{Title: ph.Title, When: ph.When}
	segments := ph.State.Segments
	order := make([]int, len(segments))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(segments[b].Size, segments[a].Size) })
	for len(order) > 0 && segments[order[len(order)-1]].Size <= 0 {
		order = order[:len(order)-1]
	}
	if len(order) == 0 {
		m.Note = "No memory was reserved at this moment."
		return m
	}
	shown := order
	if len(order) > deep.segments+1 {
		shown = order[:deep.segments]
	}
	titled := deep.titled
	most := segments[order[0]].Size
	for _, i := range shown {
		m.Rows = append(m.Rows, newSegmentRow(t, ph, &segments[i], most, colors, &titled))
	}
	rest := order[len(shown):]
	if len(rest) == 0 {
		return m
	}
	var size, free, idle int64
	for _, i := range rest {
		s := &segments[i]
		size += s.Size
		free += max(s.Size-s.Active, 0)
		if len(s.Live) == 0 {
			idle++
		}
	}
	m.More = fmt.Sprintf("… %s more segments, %s: %s of it free, %s segments without a live block",
		units.Count(int64(len(rest))), units.Bytes(size), units.Bytes(free), units.Count(idle))
	if deep.ribbon > 0 && size*10 > ph.State.Totals.Reserved {
		m.addRibbon(t, ph.State, deep.ribbon)
	}
	return m
}

func newSegmentRow(t *timeline.Timeline, ph phase, s *timeline.SegmentState, most int64, colors palette, titled *int) segmentRow {
	free := max(s.Size-s.Active, 0)
	r := segmentRow{
		Size: units.Bytes(s.Size), Pool: chart.Pool(s.Kind, s.Pool, s.Stream, s.Expandable), Free: units.Bytes(free) + " free",
		Width:  percent(max(share(s.Size, most), 0.012)),
		Pinned: len(s.Live) > 0 && free > s.Active && free > s.Size/8,
	}
	switch {
	case free == 0:
		r.Free = "full"
	case len(s.Live) == 0:
		r.Free = "all free"
	}
	r.Title = fmt.Sprintf("%#x: %s, %s live in %s, %s free", s.Addr, r.Size, units.Bytes(s.Active), units.Plural(len(s.Live), "block"), units.Bytes(free))
	var d drawing
	d.open("segment", r.Title)
	d.blocks(t, ph, s, most, colors, titled)
	if r.Pinned {
		d.pins(t, s)
	}
	d.close()
	r.Bar = d.html()
	return r
}

// barHeight is the part of a bar's drawing that the blocks fill; pin marks lie below.
const barHeight = 0.72

// blocks draws the live blocks of a segment. Wide ones are boxes of their own with a title;
// small ones are merged into one path per color.
func (d *drawing) blocks(t *timeline.Timeline, ph phase, s *timeline.SegmentState, most int64, colors palette, titled *int) {
	d.put(`<rect class="free" x="0" y="0" width="100%" height="`, percent(barHeight), `%"/>`)
	var small [slots + 1]path
	for i := range small {
		small[i].class = slot(i).Class()
	}
	cells := newCells(s, min(rowCells, max(12, int(rowCells*share(s.Size, most)))))
	var boxes []func()
	for _, row := range s.Live {
		x, w, ok := extent(&t.Lives[row], s)
		if !ok {
			continue
		}
		l, c, width := &t.Lives[row], colors[t.Lives[row].Stack], w*share(s.Size, most)
		if width >= wideBlock && *titled > 0 {
			*titled--
			boxes = append(boxes, func() {
				d.rect(x, 0, w, barHeight, c.Class(), blockTitle(ph, l))
				if c > 0 && width >= 2*wideBlock {
					d.text(x+w/2, barHeight/2, c.Class()+" slot", fmt.Sprint(int(c)))
				}
			})
			continue
		}
		if cells != nil {
			cells.add(x, w, c)
			continue
		}
		small[c].box(x, 0, w, barHeight)
	}
	cells.draw(&small)
	d.paths(small[:]...)
	for _, f := range boxes {
		f()
	}
}

// extent is where a block lies, as fractions of its segment.
func extent(l *timeline.Life, s *timeline.SegmentState) (x, w float64, ok bool) {
	at, n, ok := chart.Extent(l.Addr, l.Rounded, s)
	return float64(at) / float64(s.Size), share(n, s.Size), ok
}

// cells divide a bar with too many blocks to draw: each is as high as it is full, in the
// color that fills most of it. nil when the blocks can be drawn one by one.
type cells [][slots + 1]float64

func newCells(s *timeline.SegmentState, n int) cells {
	if len(s.Live) <= n {
		return nil
	}
	return make(cells, n)
}

func (c cells) add(x, w float64, s slot) {
	n := float64(len(c))
	from, to := x*n, (x+w)*n
	for i := int(from); i < len(c) && float64(i) < to; i++ {
		c[i][s] += min(to, float64(i+1)) - max(from, float64(i))
	}
}

func (c cells) draw(into *[slots + 1]path) {
	n := float64(len(c))
	for i := range c {
		best, sum := 0, 0.0
		for s, v := range c[i] {
			sum += v
			if v > c[i][best] {
				best = s
			}
		}
		if sum > 0 {
			h := barHeight * max(clamp(sum), 0.2)
			into[best].box(float64(i)/n, barHeight-h, 1/n, h)
		}
	}
}

// pins marks the blocks that keep a mostly free segment.
func (d *drawing) pins(t *timeline.Timeline, s *timeline.SegmentState) {
	last, n := -1.0, 0
	for _, row := range s.Live {
		x, w, ok := extent(&t.Lives[row], s)
		if x += w / 2; !ok || x-last < 0.02 {
			continue
		}
		if n++; n > maxPins {
			return
		}
		last = x
		d.put(`<svg class="pin" x="`, percent(x), `%" y="76%"><path d="M0 0l4 5h-8z"/></svg>`)
	}
}

func blockTitle(ph phase, l *timeline.Life) string {
	s := units.Bytes(l.Rounded)
	for i := range ph.Live {
		if g := &ph.Live[i]; g.Stack == l.Stack {
			s += ", " + chart.ClipLeft(text(g.Name()), 80)
			break
		}
	}
	if l.Born < 0 {
		return s + ", from before the trace"
	}
	return s + fmt.Sprintf(", since event %s", units.Count(int64(l.Born)))
}

// addRibbon draws all segments end to end.
func (m *segmentMap) addRibbon(t *timeline.Timeline, s *timeline.State, budget int) {
	v := chart.NewMap(t, s, budget)
	if v.Rows == 0 {
		return
	}
	classes := [chart.NumClasses]path{{class: "k-live"}, {class: "k-split"}, {class: "k-releasable"}}
	h := 1 / float64(v.Rows)
	for _, p := range v.Pieces {
		classes[p.Class].box(p.X, float64(p.Row)*h, p.W, h*0.8)
	}
	var d drawing
	d.open("ribbon", "all segments end to end in address order")
	d.paths(classes[:]...)
	d.close()
	m.Ribbon, m.RibbonPixels = d.html(), 8*v.Rows
	m.RibbonNote = fmt.Sprintf("All %s segments end to end in address order; a full row is %s.", units.Count(int64(len(s.Segments))), units.Bytes(v.RowBytes))
	if v.Cell > 0 {
		m.RibbonNote += fmt.Sprintf(" Each cell of %s shows what fills most of it.", units.Bytes(v.Cell))
	}
}
