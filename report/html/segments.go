package html

import (
	"cmp"
	"fmt"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// segmentMap shows the segments of one moment, largest first.
type segmentMap struct {
	Title, When  string
	Gist         string
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

	ribbonRows = 32 // at most, so that a map is about as high as it is readable
)

func newSegmentMap(t *timeline.Timeline, ph phase, colors palette, deep depth) segmentMap {
	m := segmentMap{Title: ph.Title, When: ph.When}
	segments := chart.Segments(t, ph.Moment)
	if len(segments) == 0 {
		m.Note = "No memory was reserved at this moment."
		return m
	}
	m.Gist = fmt.Sprintf("%s: %s, %s", ph.Title, units.Plural(len(segments), "segment"), units.Bytes(ph.Frag.Reserved))
	order := slices.Clone(segments)
	sorting.Stable(order, func(a, b chart.Segment) int { return cmp.Compare(b.Size, a.Size) })
	shown := order
	if len(order) > deep.segments+1 {
		shown = order[:deep.segments]
	}
	v := barPainter{t: t, site: attribution.Names(ph.Live), colors: colors, most: order[0].Size, titled: deep.titled}
	for i := range shown {
		m.Rows = append(m.Rows, v.row(&shown[i]))
	}
	rest := order[len(shown):]
	if len(rest) == 0 {
		return m
	}
	var size, free, idle int64
	for i := range rest {
		s := &rest[i]
		size += s.Size
		free += s.Free()
		if len(s.Live) == 0 {
			idle++
		}
	}
	m.More = fmt.Sprintf("… %s more segments, %s: %s of it free, %s segments without a live block",
		units.Count(int64(len(rest))), units.Bytes(size), units.Bytes(free), units.Count(idle))
	if deep.ribbon > 0 && size*10 > ph.State.Totals.Reserved {
		m.addRibbon(segments, deep.ribbon)
	}
	return m
}

// barPainter draws segments as bars.
type barPainter struct {
	drawing
	t      *timeline.Timeline
	site   func(snapshot.StackID) string
	colors palette
	most   int64 // bytes of the largest segment
	titled int   // blocks that may still tell their site
}

func (v *barPainter) row(s *chart.Segment) segmentRow {
	free := s.Free()
	r := segmentRow{
		Size: units.Bytes(s.Size), Pool: chart.Pool(s.Kind, s.Pool, s.Stream, s.Expandable),
		Free: units.Bytes(free) + " free", Title: s.Title(), Width: percent(max(chart.Share(s.Size, v.most), 0.012)),
		Pinned: len(s.Live) > 0 && free > s.Active && free > s.Size/8,
	}
	switch {
	case free == 0:
		r.Free = "full"
	case len(s.Live) == 0:
		r.Free = "all free"
	}
	v.drawing = drawing{}
	v.open("segment", r.Title)
	row := chart.Row{Bytes: s.Size, Parts: []chart.Part{{Segment: s}}}
	v.blocks(&row)
	if r.Pinned {
		v.pins(&row)
	}
	v.close()
	r.Bar = v.html()
	return r
}

// barHeight is the part of a bar's drawing that the blocks fill; pin marks lie below.
const barHeight = 0.72

// blocks draws the live blocks of a segment. Wide ones are boxes of their own with a title; small ones are
// merged into one path per color. Where there are too many, cells take their place, each as high as it is full.
func (v *barPainter) blocks(row *chart.Row) {
	v.put(`<rect class="free" x="0" y="0" width="100%" height="`, percent(barHeight), `%"/>`)
	var small [chart.SlotUnknown + 1]path
	for i := range small {
		small[i].class = chart.Slot(i).Class()
	}
	part := chart.Share(row.Bytes, v.most)
	var cells chart.Cells
	if n := min(rowCells, max(12, int(rowCells*part))); len(row.Parts[0].Live) > n {
		cells = chart.NewCells(n, len(small))
	}
	var boxes []func()
	row.Each(1, func(_ *chart.Segment, p *chart.Piece, x, end float64) {
		if p.Life < 0 {
			return
		}
		l := &v.t.Lives[p.Life]
		c, w := v.colors[l.Stack], end-x
		switch n := float64(len(cells)); {
		case w*part >= wideBlock && v.titled > 0:
			v.titled--
			boxes = append(boxes, func() {
				v.rect(x, 0, w, barHeight, c.Color.Class(), v.blockTitle(l))
				if c.Number > 0 && w*part >= 2*wideBlock {
					v.text(x+w/2, barHeight/2, c.Color.Class()+" slot", fmt.Sprint(int(c.Number)))
				}
			})
		case cells != nil:
			cells.Add(x*n, end*n, int(c.Color))
		default:
			small[c.Color].box(x, 0, w, barHeight)
		}
	})
	for i := range cells {
		if c, sum := cells.Most(i, 0, len(small)); sum > 0 {
			h, n := barHeight*max(clamp(sum), 0.2), float64(len(cells))
			small[c].box(float64(i)/n, barHeight-h, 1/n, h)
		}
	}
	v.paths(small[:]...)
	for _, f := range boxes {
		f()
	}
}

// pins marks the blocks that keep a mostly free segment.
func (v *barPainter) pins(row *chart.Row) {
	last, n := -1.0, 0
	row.Each(1, func(_ *chart.Segment, p *chart.Piece, x, end float64) {
		if x = (x + end) / 2; p.Life >= 0 && x-last >= 0.02 && n < maxPins {
			n, last = n+1, x
			v.put(`<svg class="pin" x="`, percent(x), `%" y="76%"><path d="M0 0l4 5h-8z"/></svg>`)
		}
	})
}

func (v *barPainter) blockTitle(l *timeline.Life) string {
	s := units.Bytes(l.Rounded) + ", " + chart.ClipLeft(text(v.site(l.Stack)), 80)
	switch {
	case l.Born < 0 && v.t.HasHistory():
		return s + ", from before the trace"
	case l.Born < 0:
		return s
	}
	return s + fmt.Sprintf(", since event %s", units.Count(int64(l.Born)))
}

// run is a stretch of a row of the ribbon, as fractions of the row, that looks the same.
type run struct {
	class    int
	from, to float64
}

// addRun adds a stretch to a row. One that goes on with the same class is one run.
func addRun(row []run, class int, from, to float64) []run {
	if k := len(row) - 1; k >= 0 && row[k].class == class && row[k].to >= from {
		row[k].to = to
		return row
	}
	return append(row, run{class, from, to})
}

// addRibbon draws all segments end to end: what is live and what is free, or cells that show what
// fills most of them where that takes more pieces than the budget.
func (m *segmentMap) addRibbon(segments []chart.Segment, budget int) {
	rows := chart.Wrap(segments, ribbonRows)
	classes := [...]path{{class: "k-live"}, {class: "k-split"}, {class: "k-releasable"}}
	runs, count := make([][]run, len(rows)), 0
	for k := range rows {
		rows[k].Each(1, func(s *chart.Segment, p *chart.Piece, from, to float64) {
			class := 2
			switch {
			case p.Life >= 0:
				class = 0
			case len(s.Live) > 0:
				class = 1
			}
			runs[k] = addRun(runs[k], class, from, to)
		})
		count += len(runs[k])
	}
	m.RibbonNote = fmt.Sprintf("All %s segments end to end in address order; a full row is %s.",
		units.Count(int64(len(segments))), units.Bytes(rows[0].Bytes))
	if count > budget {
		n := min(max(budget/len(rows), 32), 1000)
		m.RibbonNote += fmt.Sprintf(" Each cell of %s shows what fills most of it.",
			units.Bytes(rows[0].Bytes/int64(n)))
		for k, row := range runs {
			cells, width := chart.NewCells(n, len(classes)), float64(n)
			for _, r := range row {
				cells.Add(r.from*width, r.to*width, r.class)
			}
			runs[k] = nil
			for i := range cells {
				if class, sum := cells.Most(i, 0, len(classes)); sum > 0 {
					runs[k] = addRun(runs[k], class, float64(i)/width, float64(i+1)/width)
				}
			}
		}
	}
	h := 1 / float64(len(rows))
	for k, row := range runs {
		for _, r := range row {
			classes[r.class].box(r.from, float64(k)*h, r.to-r.from, h*0.8)
		}
	}
	var d drawing
	d.open("ribbon", "all segments end to end in address order")
	d.paths(classes[:]...)
	d.close()
	m.Ribbon, m.RibbonPixels = d.html(), 8*len(rows)
}
