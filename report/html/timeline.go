package html

import (
	"fmt"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
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

var allSeries = [...]chart.Series{chart.Reserved, chart.Active, chart.Allocated}

func newChart(s *snapshot.Snapshot, t *timeline.Timeline, axis chart.Axis, points int) timelineChart {
	if len(t.Curve) == 0 {
		return timelineChart{Note: platform.Of(s.Writer.Backend).Say("The file has no trace for this device, so there " +
			"is no history to draw: only the state at the dump is known. " +
			"Call torch.cuda.memory._record_memory_history() before the program allocates to get one.")}
	}
	top := chart.Top(t)
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
	c.addLanes(s, t, axis)
	c.addEnds(t, limit)
	c.draw(t, axis, limit, points)
	return c
}

func (c *timelineChart) draw(t *timeline.Timeline, axis chart.Axis, limit int64, points int) {
	spans := axis.Spans(t.Curve, points)
	at := func(bytes int64) float64 { return 1 - chart.Share(bytes, limit) }
	steps := func(p *path, s chart.Series, of func(*timeline.Point) timeline.Totals) {
		s.Steps(spans, t.Initial, of, func(x float64, bytes int64) { p.to(x, at(bytes)) })
	}
	area := func(class string, s chart.Series, of func(*timeline.Point) timeline.Totals) path {
		p := path{class: class}
		p.to(0, 1)
		steps(&p, s, of)
		p.to(1, 1)
		p.cmd("Z")
		return p
	}

	var d drawing
	told := t.Recording.Told().Peak
	d.open("plot", fmt.Sprintf("Memory over time: reserved up to %s, active up to %s",
		told.Reserved.Of(t.PeakReserved.Bytes), told.Active.Of(t.PeakActive.Bytes)))
	for _, k := range c.Y {
		d.put(`<line class="grid" x1="0%" y1="`, k.At, `%" x2="100%" y2="`, k.At, `%"/>`)
	}
	paths := []path{
		area("fill-reserved", chart.Reserved, chart.Highest),
		area("fill-active range", chart.Active, chart.Highest),
		area("fill-active", chart.Active, chart.Lowest),
	}
	for _, s := range allSeries {
		p := path{class: "line-" + s.Name}
		steps(&p, s, chart.Highest)
		paths = append(paths, p)
	}
	d.paths(paths...)
	for _, l := range c.Lanes {
		for _, m := range l.Marks {
			d.put(`<line class="mark `, l.Class, `" x1="`, m.At, `%" x2="`, m.At, `%" y1="0" y2="100%"><title>`,
				escape(m.Title),
				`</title></line>`)
		}
	}
	d.close()
	c.Plot = d.html()
}

func (c *timelineChart) addLanes(s *snapshot.Snapshot, t *timeline.Timeline, axis chart.Axis) {
	notes := axis.Annotations(s, t, maxMarks)
	peak, bytes := axis.At(t.PeakActive.Event), units.Bytes(t.PeakActive.Bytes)
	c.Lanes = append(c.Lanes, lane{Class: "peak", Sign: "▼", Name: "Peak", Marks: []laneMark{{
		At: percent(peak), Label: bytes + " active", Left: peak > 0.5,
		Title: fmt.Sprintf("highest active memory, %s: %s", bytes, eventName(axis, t.PeakActive.Event)),
	}}})
	for _, k := range []struct {
		class, sign, name string
		count             int
		marks             []chart.Mark
	}{
		{"oom", "✕", "OOM", len(t.OOMs), axis.OOMs(t, maxMarks)},
		{"retry", "◆", "Retry", len(t.Retries), axis.Retries(t, maxMarks)},
		{"note", "●", "Note", len(attribution.Annotations(s, t)), notes},
	} {
		l := lane{Class: k.class, Sign: k.sign, Name: k.name}
		if k.count > 1 {
			l.Name += " ×" + units.Count(int64(k.count))
		}
		for _, m := range k.marks {
			l.Marks = append(l.Marks, laneMark{At: percent(m.X), Title: m.Text + ", " + eventName(axis, m.Event)})
		}
		if k.count > 0 {
			c.Lanes = append(c.Lanes, l)
		}
	}
}

// addEnds places the labels at the right end of the lines: near their line, in its order,
// and apart from each other.
func (c *timelineChart) addEnds(t *timeline.Timeline, limit int64) {
	final := t.Curve[len(t.Curve)-1].At
	for _, s := range allSeries {
		y := int((1-chart.Share(s.Of(final), limit))*plotHeight) - labelHeight/2
		c.Ends = append(c.Ends, endLabel{s.Name, strings.ToUpper(s.Name[:1]) + s.Name[1:], units.Bytes(s.Of(final)), y})
	}
	sorting.Stable(c.Ends, func(a, b endLabel) int { return a.Top - b.Top })
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
