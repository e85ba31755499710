package html

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// timelineChart is the timeline of one device. Lines and areas are SVG; the texts around them are
// HTML at percentages, so that they keep their size at any width.
type timelineChart struct {
	Note   string // why there is no chart
	Plot   template.HTML
	Y, X   []axisTick
	XLabel string
	Lanes  []lane
	Ends   []endLabel
}

type axisTick struct {
	At    string // percent
	Label string
	Odd   bool // left out where there is little room
}

// lane is a strip above the plot with the marks of one kind of event.
type lane struct {
	Class, Sign, Name string
	Marks             []laneMark
}

type laneMark struct {
	At    string // percent
	Title string
	Label string // "" for none
	Left  bool   // the label is to the left of the mark
}

// endLabel names a line at its right end.
type endLabel struct {
	Class, Name, Value string
	Top                int // pixels from the top of the plot
}

const (
	plotHeight  = 260 // pixels, as in style.css
	labelHeight = 32  // of an endLabel, two lines
)

// series is one line of the chart.
type series struct {
	class, name string
	of          func(timeline.Totals) int64
}

var (
	reserved  = series{"reserved", "Reserved", func(t timeline.Totals) int64 { return t.Reserved }}
	active    = series{"active", "Active", func(t timeline.Totals) int64 { return t.Active }}
	allocated = series{"allocated", "Allocated", func(t timeline.Totals) int64 { return t.Allocated }}
)

func newChart(t *timeline.Timeline, axis chart.Axis, points int) timelineChart {
	if len(t.Curve) == 0 {
		return timelineChart{Note: "The file has no trace for this device, so there is no history to draw: only the state at the dump is known. " +
			"Call torch.cuda.memory._record_memory_history() before the program allocates to get one."}
	}
	top := max(t.PeakReserved.Bytes, t.PeakActive.Bytes, t.PeakAllocated.Bytes, t.Initial.Reserved, t.Initial.Active)
	for i := range t.Curve {
		top = max(top, t.Curve[i].Max.Reserved, t.Curve[i].Max.Active, t.Curve[i].Max.Allocated)
	}
	if top <= 0 {
		return timelineChart{Note: "The trace has events, but no memory was ever in use on this device."}
	}
	c := timelineChart{XLabel: axis.Label()}
	limit := top + top/20
	for _, k := range chart.ByteTicks(limit, 5) {
		c.Y = append(c.Y, axisTick{At: percent(1 - chart.Share(k.Value, limit)), Label: k.Label})
	}
	for i, k := range axis.Ticks(8) {
		c.X = append(c.X, axisTick{At: percent(chart.Share(k.Value, axis.Span)), Label: k.Label, Odd: i%2 == 1})
	}
	if !axis.ByTime && len(c.X) > 0 && c.X[0].Label == "0" {
		c.X[0].Label = "start"
	}
	c.addLanes(t, axis)
	c.addEnds(t, limit)
	c.draw(t, axis, limit, points)
	return c
}

func (c *timelineChart) draw(t *timeline.Timeline, axis chart.Axis, limit int64, points int) {
	curve := place(t, axis, points)
	at := func(bytes int64) float64 { return 1 - chart.Share(bytes, limit) }

	var d drawing
	d.open("plot", fmt.Sprintf("Memory over time: reserved up to %s, active up to %s",
		units.Bytes(t.PeakReserved.Bytes), units.Bytes(t.PeakActive.Bytes)))
	for _, k := range chart.ByteTicks(limit, 5) {
		d.line(0, at(k.Value), 1, at(k.Value), "grid", "")
	}
	d.paths(
		area("fill-reserved", reserved, t.Initial, curve, at, true),
		area("fill-active range", active, t.Initial, curve, at, true),
		area("fill-active", active, t.Initial, curve, at, false),
		outline(reserved, t.Initial, curve, at),
		outline(active, t.Initial, curve, at),
		outline(allocated, t.Initial, curve, at),
	)
	for _, l := range c.Lanes {
		last := ""
		for _, m := range l.Marks {
			if m.At != last {
				d.put(`<line class="mark `, l.Class, `" x1="`, m.At, `%" x2="`, m.At, `%" y1="0" y2="100%"><title>`, escape(m.Title), `</title></line>`)
			}
			last = m.At
		}
	}
	d.close()
	c.Plot = d.html()
}

// span is a point of the curve with the place of its first and its last event, as fractions
// of the axis.
type span struct {
	timeline.Point
	from, to float64
}

// place puts the curve on the axis and merges points that fall on the same of n columns.
// A clock that runs backwards stands still.
func place(t *timeline.Timeline, axis chart.Axis, n int) []span {
	out := make([]span, 0, min(n, len(t.Curve))+1)
	var prev int64
	for i := range t.Curve {
		q := t.Curve[i]
		from := max(prev, axis.Event(q.First))
		to := axis.Point(&q, prev)
		from, prev = min(from, to), to
		if k := len(out) - 1; k >= 0 && int(out[k].to*float64(n)) == int(chart.Share(to, axis.Span)*float64(n)) {
			out[k].Point = chart.Reduce([]timeline.Point{out[k].Point, q}, 1)[0]
			out[k].to = chart.Share(to, axis.Span)
			continue
		}
		out = append(out, span{q, chart.Share(from, axis.Span), chart.Share(to, axis.Span)})
	}
	return out
}

// area fills what lies below the highest or the lowest values of a series. Between
// spans the last value holds.
func area(class string, s series, initial timeline.Totals, curve []span, at func(int64) float64, highest bool) path {
	p := path{class: class}
	p.move(0, 1)
	p.steps(s, initial, curve, at, highest)
	p.v(1)
	p.shut()
	return p
}

// outline draws the highest values of a series.
func outline(s series, initial timeline.Totals, curve []span, at func(int64) float64) path {
	p := path{class: "line-" + s.class}
	p.move(0, at(s.of(initial)))
	p.steps(s, initial, curve, at, true)
	return p
}

func (p *path) steps(s series, initial timeline.Totals, curve []span, at func(int64) float64, highest bool) {
	held, y := s.of(initial), -1
	to := func(bytes int64) {
		if d := down(at(bytes)); d != y {
			p.v(at(bytes))
			y = d
		}
	}
	for i := range curve {
		q := &curve[i]
		if i == 0 || q.from-curve[i-1].to > 1.0/500 { // no drop between spans that all but touch
			to(held)
		}
		p.h(q.from)
		v := s.of(q.Min)
		if highest {
			v = s.of(q.Max)
		}
		to(v)
		if q.to > q.from {
			p.h(q.to)
		}
		held = s.of(q.At)
	}
	to(held)
	p.h(1)
}

func (c *timelineChart) addLanes(t *timeline.Timeline, axis chart.Axis) {
	peak := chart.Share(axis.Event(t.PeakActive.Event), axis.Span)
	c.Lanes = append(c.Lanes, lane{Class: "peak", Sign: "▼", Name: "Peak", Marks: []laneMark{{
		At: percent(peak), Label: units.Bytes(t.PeakActive.Bytes) + " active", Left: peak > 0.5,
		Title: fmt.Sprintf("highest active memory, %s: %s", units.Bytes(t.PeakActive.Bytes), eventName(axis, t.PeakActive.Event)),
	}}})
	var marks []laneMark
	for _, o := range t.OOMs {
		marks = append(marks, laneMark{
			At:    percent(chart.Share(axis.Event(o.Event), axis.Span)),
			Title: fmt.Sprintf("out of memory: %s requested, %s", units.Bytes(o.Requested), eventName(axis, o.Event)),
		})
	}
	c.addLane("oom", "✕", "OOM", marks)
	marks = nil
	for _, r := range t.Retries {
		marks = append(marks, laneMark{
			At:    percent(chart.Share(axis.Event(r.FirstEvent), axis.Span)),
			Title: fmt.Sprintf("retry: %s released, %s", units.Bytes(r.Released), eventName(axis, r.FirstEvent)),
		})
	}
	c.addLane("retry", "◆", "Retry", marks)
}

// addLane adds a lane when there are marks, at most maxMarks evenly chosen ones; a lane with
// several marks tells their number.
func (c *timelineChart) addLane(class, sign, name string, marks []laneMark) {
	n := len(marks)
	if n == 0 {
		return
	}
	if n > 1 {
		name += " ×" + units.Count(int64(n))
	}
	if n > maxMarks {
		some := make([]laneMark, maxMarks)
		for i := range some {
			some[i] = marks[i*(n-1)/(maxMarks-1)]
		}
		marks = some
	}
	c.Lanes = append(c.Lanes, lane{Class: class, Sign: sign, Name: name, Marks: marks})
}

// addEnds places the labels at the right end of the lines: near their line, in its order,
// and apart from each other.
func (c *timelineChart) addEnds(t *timeline.Timeline, limit int64) {
	final := t.Curve[len(t.Curve)-1].At
	for _, s := range []series{reserved, active, allocated} {
		y := int((1-chart.Share(s.of(final), limit))*plotHeight) - labelHeight/2
		c.Ends = append(c.Ends, endLabel{s.class, s.name, units.Bytes(s.of(final)), y})
	}
	slices.SortStableFunc(c.Ends, func(a, b endLabel) int { return a.Top - b.Top })
	next := -labelHeight / 2
	for i := range c.Ends {
		c.Ends[i].Top = max(c.Ends[i].Top, next)
		next = c.Ends[i].Top + labelHeight
	}
	below := plotHeight + labelHeight/2
	for i := len(c.Ends) - 1; i >= 0; i-- {
		c.Ends[i].Top = min(c.Ends[i].Top, below-labelHeight)
		below = c.Ends[i].Top
	}
}
