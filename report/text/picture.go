package text

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// maxPicture is how many lines a picture takes.
const maxPicture = 8

// picture draws the memory in use of a device over the trace, with its peak and the requests that failed, and below it what
// the memory of the peak is for. These lines do not count among those that a verdict
// may have.
func (v *outcome) picture(d *analyze.Device) {
	if v.markdown || d == nil {
		return
	}
	before := len(v.lines)
	v.curve(d)
	v.purposes(d)
	if len(v.lines) > before {
		v.gap()
	}
	v.above -= len(v.lines) - before
}

// leastEvents is how many events a curve needs to show anything.
const leastEvents = 8

// curve draws the memory in use in two rows of blocks, from 0 to the peak, and a row of marks.
func (v *outcome) curve(d *analyze.Device) {
	t := d.Timeline
	top := t.PeakActive.Bytes
	if !t.HasHistory() || t.Trace.Len() < leastEvents || top <= 0 {
		return
	}
	axis := chart.NewAxis(t, false) // steps of a loop are alike in events, whatever the program waited for
	n := v.width - v.margin
	values := make([]int64, n)
	column := func(x float64) int { return min(max(int(x*float64(n)), 0), n-1) }
	at := 0
	chart.Active.Steps(axis.Spans(t.Curve, n), t.Initial, chart.Highest, func(x float64, bytes int64) {
		for to := column(x); at < to; at++ {
			values[at+1] = bytes
		}
		values[at] = max(values[at], bytes)
	})
	label := "In use"
	if len(v.r.Devices) > 1 {
		label = chart.DeviceName(t.Device)
	}
	rows := blocks(values, top, 2)
	v.labeled(label, cells(cyan.of(rows[0])), cells(cyan.of(rows[1])))
	for _, l := range v.marked(t, axis, n, column) {
		v.labeled("", l)
	}
}

// marked is a line with the peak and the requests that failed, named beside the marks, or in a line of their own.
func (v *outcome) marked(t *timeline.Timeline, axis chart.Axis, n int, column func(float64) int) [][]cell {
	line := func() marks { return marks(strings.Repeat(" ", n)) }
	m := line()
	peak := column(axis.At(t.PeakActive.Event))
	m[peak] = '▲'
	var last int
	for _, o := range axis.OOMs(t, n) {
		last = column(o.X)
		m[last] = '✕'
	}
	const failed = "out of memory"
	name, span := "peak "+units.Bytes(t.PeakActive.Bytes), units.Count(axis.Span)+" events"
	bare := slices.Clone(m)
	named := false
	switch {
	case len(t.OOMs) == 0:
		named = m.label(peak, name)
	case peak == last:
		named = m.label(peak, name+", "+failed)
	default:
		named = m.label(max(peak, last), map[bool]string{true: failed, false: name}[peak < last]) &&
			m.label(min(peak, last), map[bool]string{true: name, false: failed}[peak < last])
	}
	if named {
		m.put(n-chart.Width(span), span)
		return [][]cell{m.cells()}
	}
	words := "▲ " + name + when(len(t.OOMs) > 0, "  ✕ "+failed)
	if bare.put(0, words) {
		return [][]cell{bare.cells()}
	}
	legend := line()
	legend.put(0, words)
	legend.put(n-chart.Width(span), span)
	return [][]cell{bare.cells(), legend.cells()}
}

// marks is a line of marks with labels beside them, wherever there is room.
type marks []rune

// label writes a text to the right of a column, or to its left, and reports whether there was room.
func (m marks) label(at int, text string) bool {
	return m.put(at+2, text) || m.put(at-1-chart.Width(text), text)
}

// put writes a text where nothing is, with a space on both sides, and reports whether there was room.
func (m marks) put(at int, text string) bool {
	end := at + chart.Width(text)
	if at < 0 || end > len(m) || strings.Trim(string(m[max(at-1, 0):min(end+1, len(m))]), " ▲✕") != "" ||
		strings.TrimSpace(string(m[at:end])) != "" {
		return false
	}
	copy(m[at:], []rune(text))
	return true
}

// cells gives marks their colors.
func (m marks) cells() []cell {
	var out []cell
	for _, r := range m {
		a := dim
		switch r {
		case '▲':
			a = bold
		case '✕':
			a = red
		}
		if k := len(out); k > 0 && out[k-1].attr == a {
			out[k-1].text += string(r)
			continue
		}
		out = append(out, a.of(string(r)))
	}
	return out
}

// purposes draws what the memory of the peak is for, or that of the end where no peak is known, as a bar with its parts
// named below.
func (v *outcome) purposes(d *analyze.Device) {
	label, m := "At peak", d.Moment("peak")
	if m == nil {
		label, m = "At end", d.Moment("end")
	}
	if m == nil {
		return
	}
	total := int64(0)
	for _, u := range m.Uses {
		total += u.Rounded
	}
	if !chart.Informed(m.Uses) {
		return
	}
	const named = 5
	n := v.width - v.margin
	var bar, names []cell
	drawn, sum := 0, int64(0)
	add := func(i int, name string, bytes int64) {
		sum += bytes
		to := int(float64(sum)/float64(total)*float64(n) + 0.5)
		p := parts[i]
		if v.color {
			p.glyph = "█"
		}
		bar = append(bar, p.attr.of(strings.Repeat(p.glyph, to-drawn)))
		drawn = to
		if bytes*200 < total {
			return // not even half a percent
		}
		if len(names) > 0 {
			names = append(names, plain.of("  "))
		}
		names = append(names, p.attr.of(p.glyph), plain.of(strings.ReplaceAll(" "+name+" "+units.Percent(bytes, total), " ", unbroken)))
	}
	known, unknown := 0, int64(0)
	var other int64
	for _, u := range m.Uses {
		switch {
		case u.Category == category.Unknown:
			unknown = u.Rounded
		case known < named && u.Rounded*100 >= total:
			add(known, u.Category.String(), u.Rounded)
			known++
		default:
			other += u.Rounded
		}
	}
	if other > 0 {
		add(named, "others", other)
	}
	if unknown > 0 {
		add(named+1, "unknown", unknown)
	}
	v.labeled(label, bar)
	for _, l := range v.flow(names, n, 0) {
		v.lines = append(v.lines, strings.Repeat(" ", v.margin)+strings.ReplaceAll(l, unbroken, " "))
	}
}

// unbroken is a space at which no line ends.
const unbroken = "\u00a0"

// parts are the looks of the parts of a bar, by color where there are colors: five of them, the others, and what is not
// known.
var parts = [...]struct {
	glyph string
	attr  attr
}{{"█", "34"}, {"▓", "33"}, {"▒", "32"}, {"░", "35"}, {"▚", "36"}, {"╱", "90"}, {"·", dim}}

// blocks draws values from 0 to limit, in so many rows from top to bottom.
func blocks(values []int64, limit int64, rows int) []string {
	out := make([]string, rows)
	for i := range out {
		var b strings.Builder
		below := (rows - 1 - i) * len(sparks) // steps in the rows below
		for _, v := range values {
			at := min(int(float64(max(v, 0))/float64(limit)*float64(rows*len(sparks))), rows*len(sparks)-1) - below
			switch {
			case at < 0:
				b.WriteByte(' ')
			default:
				b.WriteRune(sparks[min(at, len(sparks)-1)])
			}
		}
		out[i] = b.String()
	}
	return out
}
