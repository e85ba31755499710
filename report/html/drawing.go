package html

import (
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/report/internal/chart"
)

// drawing builds an inline SVG without a viewBox: positions are percentages of its box, so
// that strokes and distances between marks do not stretch with it. Paths live in a nested
// element that maps 0..pathWidth and 0..pathHeight to the whole box.
type drawing struct{ b strings.Builder }

const (
	pathWidth  = 4000
	pathHeight = 1000
)

func (d *drawing) html() template.HTML { return template.HTML(d.b.String()) }

// open starts the drawing; label is what a screen reader says of it, "" for a part of something that is described.
func (d *drawing) open(class, label string) {
	if label == "" {
		d.put(`<svg class="`, class, `" aria-hidden="true">`)
		return
	}
	d.put(`<svg class="`, class, `" role="img" aria-label="`, escape(label), `">`)
}

func (d *drawing) close() { d.put(`</svg>`) }

// rect draws a box with a title; positions are fractions of the drawing.
func (d *drawing) rect(x, y, w, h float64, class, title string) {
	d.put(`<rect class="`, class, `" x="`, percent(x), `%" y="`, percent(y), `%" width="`, percent(w), `%" height="`,
		percent(h), `%"><title>`, escape(title), `</title></rect>`)
}

// text writes a short text around (x, y).
func (d *drawing) text(x, y float64, class, s string) {
	d.put(`<text class="`, class, `" x="`, percent(x), `%" y="`, percent(y), `%">`, escape(s), `</text>`)
}

// paths draws paths in the nested element, in the order given.
func (d *drawing) paths(list ...path) {
	d.put(`<svg width="100%" height="100%" viewBox="0 0 `, strconv.Itoa(pathWidth), ` `, strconv.Itoa(pathHeight),
		`" preserveAspectRatio="none">`)
	for i := range list {
		if p := &list[i]; len(p.b) > 0 {
			d.put(`<path class="`, p.class, `" d="`, string(p.b), `"/>`)
		}
	}
	d.put(`</svg>`)
}

func (d *drawing) put(parts ...string) {
	for _, s := range parts {
		d.b.WriteString(s)
	}
}

// path collects the commands of one path; positions are fractions of the drawing.
type path struct {
	class string
	b     []byte
	x, y  int // where it is
	level int // where in b the last command is, if it goes along a level
}

func (p *path) cmd(c string, values ...int) {
	p.level = 0
	p.b = append(p.b, c...)
	for i, v := range values {
		if i > 0 {
			p.b = append(p.b, ' ')
		}
		p.b = strconv.AppendInt(p.b, int64(v), 10)
	}
}

// to goes on to a place, along one side of the drawing and then along the other.
func (p *path) to(x, y float64) {
	from := *p
	p.x, p.y = across(x), down(y)
	if len(p.b) == 0 {
		p.cmd("M", p.x, p.y)
		return
	}
	if p.y != from.y {
		p.cmd("V", p.y)
	}
	if p.x != from.x {
		at := len(p.b)
		if p.level > 0 { // on the way
			at = p.level
			p.b = p.b[:at]
		}
		p.cmd("H", p.x)
		p.level = at
	}
}

// box adds a rectangle.
func (p *path) box(x, y, w, h float64) {
	x1, y1, x2, y2 := across(x), down(y), across(x+w), down(y+h)
	p.cmd("M", x1, y1)
	p.cmd("H", max(x2, x1+1))
	p.cmd("V", y2)
	p.cmd("H", x1)
	p.cmd("Z")
}

// levels draws n levels of bytes by trace event, up to most: each has its first and last event.
func levels(class string, n int, most int64, at func(i int) (first, last int, bytes int64)) path {
	p := path{class: class}
	if n == 0 {
		return p
	}
	_, last, _ := at(n - 1)
	y := 0.0
	for i := range n {
		first, _, bytes := at(i)
		x := float64(first) / float64(max(last, 1))
		if i == 0 {
			x = 0
		} else {
			p.to(x, y)
		}
		y = 1 - chart.Share(bytes, most)
		p.to(x, y)
	}
	p.to(1, y)
	return p
}

func across(x float64) int { return int(clamp(x)*pathWidth + 0.5) }
func down(y float64) int   { return int(clamp(y)*pathHeight + 0.5) }

func clamp(x float64) float64 {
	if !(x > 0) { // not a number included
		return 0
	}
	return min(x, 1)
}

// percent prints a fraction as the number before a % sign.
func percent(x float64) string {
	s := strconv.FormatFloat(clamp(x)*100, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// width is a part of the most, as percent prints it.
func width(part, most int64) string { return percent(chart.Share(part, most)) }

func escape(s string) string { return template.HTMLEscapeString(s) }
