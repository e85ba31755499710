package html

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot/sorting"
)

// story is the picture of the verdict. On the left is memory over time, up to the moment that the verdict is about; on
// the right a column of what memory was at that moment, with a label for each of its layers. tell.go says what is in it.
//
// Labels are HTML, so that they keep their size: beside the column, apart from each other, where there is room for that,
// and below the picture where there is not.
type story struct {
	Class        string // "failure", "growth", "free" or "calm"; "bars" is that of Bars alone
	Plot, Column template.HTML
	Leads        template.HTML // from the layers of the column to their labels
	Y, X         []axisTick
	Labels       []storyLabel
	Peak, Step   *storyNote // within the plot
	Bars         []storyBar
	Caption      string
	scale        int64 // bytes of the plot's height
}

// storyLabel names a layer or a line of the column.
type storyLabel struct {
	Class, Name, Detail string
	Top                 int // pixels from the top of the plot
	at                  float64
}

// storyNote is a text within the plot, on one side of its place or around it, so that it stays within the narrowest plot.
type storyNote struct {
	Class, Text string
	X, Y        string // percents
	Top, Height string // of what it marks
}

// storyBar is a bar of its own, with a width in percents.
type storyBar struct {
	Name, Figure, Width string
	Alarm               bool
	Parts               []part
}

const (
	storyHeight = 240 // pixels of the plot, as in style.css
	storyColumn = 64  // its width and that of the leads are those of their coordinates
	storyLeads  = 24
	storyLabels = 36 // of a label, two lines
	storyPoints = 360
	leastLayer  = 0.012 // of the height, below which a layer has no label
)

// scene is what a story is drawn from.
type scene struct {
	d      *analyze.Device
	axis   chart.Axis
	end    int    // the event after which the plot ends
	moment string // of the column, as in "at the failure"
	peak   string // what the highest active memory is called in the plot, "" where it has no mark
	layers []layer
	lines  []rule
}

// layer is a part of the column, from a level of bytes on. Its name is "" where it says nothing.
type layer struct {
	class       string
	from, bytes int64
	hatched     bool
	inset       bool // drawn over what is there
	name, note  string
}

// rule is a line across the picture.
type rule struct {
	class      string
	bytes      int64
	name, note string
}

// pile puts a layer on the last one.
func (c *scene) pile(class string, bytes int64, name, note string) *layer {
	from := int64(0)
	if n := len(c.layers); n > 0 {
		from = c.layers[n-1].from + c.layers[n-1].bytes
	}
	c.layers = append(c.layers, layer{class: class, from: from, bytes: bytes, name: name, note: note})
	return &c.layers[len(c.layers)-1]
}

// top is where the pile ends.
func (c *scene) top() int64 {
	var top int64
	for i := range c.layers {
		top = max(top, c.layers[i].from+c.layers[i].bytes)
	}
	return top
}

// x is where an event lies, as a fraction of the plot.
func (c *scene) x(event int) float64 {
	return chart.Share(c.axis.Event(event), max(c.axis.Event(c.end), 1))
}

// curve gives the corners of a series up to the end of the plot.
func (c *scene) curve(s chart.Series, to func(x float64, bytes int64)) {
	t := c.d.Timeline
	n := len(t.Curve)
	for n > 1 && t.Curve[n-1].First > c.end {
		n--
	}
	end := chart.Share(c.axis.Event(c.end), c.axis.Span)
	if end <= 0 {
		end = 1
	}
	s.Steps(c.axis.Spans(t.Curve[:n], storyPoints), t.Initial, chart.Highest, func(x float64, bytes int64) {
		to(x/end, bytes) // drawing clips what is beyond
	})
}

// most is the highest of what is drawn.
func (c *scene) most() int64 {
	most := c.top()
	for _, l := range c.lines {
		most = max(most, l.bytes)
	}
	c.curve(chart.Reserved, func(_ float64, bytes int64) { most = max(most, bytes) })
	c.curve(chart.Active, func(_ float64, bytes int64) { most = max(most, bytes) })
	return most
}

// drawn is a part of the plot: areas from the back to the front.
type drawn func(s *story, c *scene, at func(bytes int64) float64) []path

// draw makes the story of a scene, nil where there is nothing to see.
func (c *scene) draw(class string, parts drawn) *story {
	most := c.most()
	if most <= 0 || c.axis.Event(c.end) <= 0 {
		return nil
	}
	s := &story{Class: class, scale: most + most/14}
	over := "the events of the trace"
	if c.axis.ByTime {
		over = "time"
	}
	s.Caption = fmt.Sprintf("Left: memory over %s. Right: what it was %s.", over, c.moment)
	at := func(bytes int64) float64 { return 1 - chart.Share(bytes, s.scale) }
	for _, k := range chart.ByteTicks(s.scale, 5) {
		s.Y = append(s.Y, axisTick{At: percent(at(k.Value)), Label: k.Label})
	}
	span := c.axis
	span.Span = max(c.axis.Event(c.end), 1)
	for i, k := range span.Ticks(6) {
		if x := chart.Share(k.Value, span.Span); x < 0.94 {
			s.X = append(s.X, axisTick{At: percent(x), Label: k.Label, Odd: i%2 == 1})
		}
	}
	var d drawing
	d.open("plot", "")
	for _, k := range s.Y {
		d.put(`<line class="grid" x1="0%" y1="`, k.At, `%" x2="100%" y2="`, k.At, `%"/>`)
	}
	d.paths(parts(s, c, at)...)
	d.levels(c.lines, at)
	d.close()
	s.Plot = d.html()
	s.column(c, at)
	s.peak(c, at)
	s.label(c, at)
	return s
}

// levels draws the lines across the plot or the column.
func (d *drawing) levels(lines []rule, at func(int64) float64) {
	for _, l := range lines {
		y := percent(at(l.bytes))
		d.put(`<line class="level `, l.class, `" x1="0%" y1="`, y, `%" x2="100%" y2="`, y, `%"/>`)
	}
}

func (s *story) column(c *scene, at func(int64) float64) {
	var d drawing
	d.open("plot", "")
	d.put(`<svg width="100%" height="100%" viewBox="0 0 `, strconv.Itoa(storyColumn), " ", strconv.Itoa(storyHeight),
		`" preserveAspectRatio="none">`)
	for i := range c.layers {
		l := &c.layers[i]
		x, w := 0, storyColumn
		if l.inset {
			x, w = storyColumn/8, storyColumn*3/4
		}
		y0, y1 := pixel(at(l.from+l.bytes)), pixel(at(l.from))
		if y1 <= y0 {
			if l.bytes <= 0 {
				continue
			}
			y0 = y1 - 1
		}
		d.put(`<rect class="part `, l.class, `" x="`, strconv.Itoa(x), `" y="`, strconv.Itoa(y0), `" width="`,
			strconv.Itoa(w), `" height="`, strconv.Itoa(y1-y0), `"/>`)
		if l.hatched {
			d.put(`<path class="hatch `, l.class, `" d="`, hatch(x, y0, x+w, y1), `"/>`)
		}
	}
	d.put(`</svg>`)
	d.levels(c.lines, at)
	d.close()
	s.Column = d.html()
}

// pixel is a fraction of the plot's height in pixels.
func pixel(y float64) int { return int(clamp(y)*storyHeight + 0.5) }

// hatch are the commands of slanted lines within a box.
func hatch(x0, y0, x1, y1 int) string {
	const apart = 7
	var b strings.Builder
	for c := y0 + apart; c < y1+x1-x0; c += apart { // each line is x-x0 + y = c
		fmt.Fprintf(&b, "M%d %dL%d %d", x0+max(c-y1, 0), min(c, y1), x0+min(c-y0, x1-x0), max(c-(x1-x0), y0))
	}
	return b.String()
}

// label places the labels: near what they name, in its order, and apart from each other.
func (s *story) label(c *scene, at func(int64) float64) {
	for _, l := range c.lines {
		s.Labels = append(s.Labels, storyLabel{Class: "line " + l.class, Name: l.name, Detail: l.note, at: at(l.bytes)})
	}
	for i := range c.layers {
		l := &c.layers[i]
		if l.name == "" || chart.Share(l.bytes, s.scale) < leastLayer && !l.inset {
			continue
		}
		class := l.class
		if l.hatched {
			class += " hatched"
		}
		s.Labels = append(s.Labels, storyLabel{Class: class, Name: l.name, Detail: l.note,
			at: (at(l.from) + at(l.from+l.bytes)) / 2})
	}
	sorting.Stable(s.Labels, func(a, b storyLabel) int { return cmp.Compare(a.at, b.at) })
	next := -storyLabels / 2
	for i := range s.Labels {
		l := &s.Labels[i]
		l.Top = max(pixel(l.at)-storyLabels/2, next)
		next = l.Top + storyLabels
	}
	below := storyHeight + storyLabels/2
	var d drawing
	d.put(`<svg class="plot" aria-hidden="true" viewBox="0 0 `, strconv.Itoa(storyLeads), " ", strconv.Itoa(storyHeight), `">`)
	for i := len(s.Labels) - 1; i >= 0; i-- {
		l := &s.Labels[i]
		l.Top = min(l.Top, below-storyLabels)
		below = l.Top
	}
	for _, l := range s.Labels {
		y := l.Top + storyLabels/2
		d.put(`<path class="lead" d="M2 `, strconv.Itoa(pixel(l.at)), `L8 `, strconv.Itoa(pixel(l.at)), `L17 `,
			strconv.Itoa(y), `L22 `, strconv.Itoa(y), `"/>`)
	}
	d.close()
	s.Leads = d.html()
}

// Description is what a screen reader says of the picture.
func (s *story) Description() string {
	said := []string{s.Caption}
	for _, l := range s.Labels {
		said = append(said, strings.TrimSuffix(l.Name+", "+l.Detail, ", ")+".")
	}
	for _, n := range []*storyNote{s.Step, s.Peak} {
		if n != nil {
			said = append(said, "Marked: "+n.Text+".")
		}
	}
	return strings.Join(said, " ")
}

// peak marks the highest active memory, where that is known.
func (s *story) peak(c *scene, at func(int64) float64) {
	p := c.d.Timeline.PeakActive
	if c.peak == "" || c.d.Timeline.Recording.Told().Peak.Active != timeline.Exact {
		return
	}
	x, side := c.x(p.Event), "right"
	switch { // so that it stays within the narrowest plot
	case x > 0.66:
		side = "left"
	case x > 0.34:
		side = "middle"
	}
	s.Peak = &storyNote{Class: side, Text: c.peak, X: percent(x), Y: percent(at(p.Bytes))}
}

// area fills below a series.
func (c *scene) area(class string, s chart.Series, at func(int64) float64) path {
	p := path{class: class}
	p.to(0, 1)
	c.curve(s, func(x float64, bytes int64) { p.to(x, at(bytes)) })
	p.to(1, 1)
	p.cmd("Z")
	return p
}

func (c *scene) line(class string, s chart.Series, at func(int64) float64) path {
	p := path{class: class}
	c.curve(s, func(x float64, bytes int64) { p.to(x, at(bytes)) })
	return p
}

// plain is reserved memory behind active memory.
func plain(reserved string) drawn {
	return func(_ *story, c *scene, at func(int64) float64) []path {
		return []path{c.area(reserved, chart.Reserved, at), c.area("fill-active", chart.Active, at),
			c.line("line-reserved", chart.Reserved, at), c.line("line-active", chart.Active, at)}
	}
}

// byUse is active memory by what it is for, below reserved memory. Each area reaches down to the ground, and those of
// what lies below are drawn over it.
func byUse(_ *story, c *scene, at func(int64) float64) []path {
	columns := c.columns()
	sums := make([]int64, len(columns))
	for i, x := range columns {
		sums[i] = x.total()
	}
	out := []path{c.area("fill-reserved", chart.Reserved, at)}
	for _, use := range slices.Backward(chart.UseOrder) {
		p := path{class: chart.UseSlot(use).Class()}
		there := false
		p.to(0, 1)
		for i := range columns {
			x := &columns[i]
			p.to(c.x(x.First-1), at(sums[i]))
			p.to(c.x(min(x.Last, c.end)), at(sums[i]))
			sums[i] -= x.Bytes[use]
			there = there || x.Bytes[use] > 0
		}
		p.to(1, 1)
		if p.cmd("Z"); there {
			out = append(out, p)
		}
	}
	return append(out, c.line("line-reserved", chart.Reserved, at))
}

// sample is what active memory was for at the fullest of some moments.
type sample struct{ category.Sample }

func (x *sample) total() (n int64) {
	for _, bytes := range x.Bytes {
		n += bytes
	}
	return n
}

// columns are as many as can be told apart, up to the end of the plot.
func (c *scene) columns() []sample {
	const most = 360
	var out []sample
	uses := c.d.Uses.Get()
	for len(uses) > 0 && uses[len(uses)-1].First > c.end {
		uses = uses[:len(uses)-1]
	}
	for i := range min(most, len(uses)) {
		from, to := i*len(uses)/min(most, len(uses)), (i+1)*len(uses)/min(most, len(uses))
		x := sample{uses[from]}
		for _, u := range uses[from+1 : to] {
			if next := (sample{u}); next.total() > x.total() {
				u.First = x.First
				x = sample{u}
			}
			x.Last = u.Last
		}
		out = append(out, x)
	}
	return out
}
