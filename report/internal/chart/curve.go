package chart

import (
	"image/color"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Reduce merges neighboring points so that at most n stay. Extremes survive: each merged
// point keeps the lowest minimum and the highest maximum of what it covers.
func Reduce(points []timeline.Point, n int) []timeline.Point {
	if len(points) <= n {
		return points
	}
	out := make([]timeline.Point, 0, n)
	for i := range n {
		from, to := i*len(points)/n, (i+1)*len(points)/n
		p := points[from]
		for _, q := range points[from+1 : to] {
			p.Last, p.At = q.Last, q.At
			if q.Time != 0 {
				p.Time = q.Time
			}
			p.Min.Lower(&q.Min)
			p.Max.Raise(&q.Max)
		}
		out = append(out, p)
	}
	return out
}

// Axis places events along the horizontal axis of a timeline: by time where the file has
// times, by index otherwise.
type Axis struct {
	ByTime bool
	Span   int64 // microseconds or events, at least 1

	trace snapshot.Trace
	start int64
}

// NewAxis is the axis of one device's timeline.
func NewAxis(t *timeline.Timeline, hasTimes bool) Axis {
	a := Axis{trace: t.Trace, Span: int64(max(t.Trace.Len(), 1))}
	if n := len(t.Curve); n > 0 {
		a.Span = max(a.Span, int64(t.Curve[n-1].Last)+1)
	}
	if !hasTimes {
		return a
	}
	var first, last int64
	note := func(us int64) {
		if us == 0 {
			return
		}
		if first == 0 || us < first {
			first = us
		}
		last = max(last, us)
	}
	if t.Trace.Len() > 0 {
		note(t.Trace.Time(0))
	}
	for i := range t.Curve {
		note(t.Curve[i].Time)
	}
	if last > first {
		a.ByTime, a.start, a.Span = true, first, last-first
	}
	return a
}

// TellingAxis is by events also where there are times, if a chart by time would show little.
func TellingAxis(t *timeline.Timeline, hasTimes bool) Axis {
	a := NewAxis(t, hasTimes)
	if a.ByTime && a.Bunched(t) {
		return NewAxis(t, false)
	}
	return a
}

// Bunched reports whether half of the timeline's curve lies in a twentieth of the axis.
func (a Axis) Bunched(t *timeline.Timeline) bool {
	var prev int64
	at := make([]int64, len(t.Curve))
	for i := range t.Curve {
		prev = a.Point(&t.Curve[i], prev)
		at[i] = prev
	}
	half := len(at) / 2
	for i := 0; i+half < len(at); i++ {
		if half >= 20 && (at[i+half]-at[i])*20 < a.Span {
			return true
		}
	}
	return false
}

// At is where event i lies as a fraction of the axis.
func (a Axis) At(i int) float64 { return Share(a.Event(i), a.Span) }

// Label names the axis with its unit.
func (a Axis) Label() string {
	if a.ByTime {
		return "time since the first event"
	}
	return "trace event"
}

// Ticks divides the axis into at most n steps.
func (a Axis) Ticks(n int) []Tick {
	if a.ByTime {
		return TimeTicks(a.Span, n)
	}
	return CountTicks(a.Span, n)
}

// Event is where event i lies, 0 for the state before the trace.
func (a Axis) Event(i int) int64 {
	if !a.ByTime {
		return min(max(int64(i)+1, 0), a.Span)
	}
	if i < 0 || i >= a.trace.Len() {
		return 0
	}
	for ; i >= 0; i-- { // an event without a time takes that of the last one that has it
		if us := a.trace.At(i).Time; us != 0 {
			return min(max(us-a.start, 0), a.Span)
		}
	}
	return 0
}

// Point is where a point of the curve ends; prev is where the one before it ended.
func (a Axis) Point(p *timeline.Point, prev int64) int64 {
	x := int64(p.Last) + 1
	if a.ByTime {
		x = p.Time - a.start
	}
	return min(max(x, prev), a.Span)
}

// Series is one line of a timeline. Its name is part of its classes of style.css.
type Series struct {
	Name string
	Line color.RGBA
	Of   func(timeline.Totals) int64
}

// The lines of a timeline.
var (
	Reserved  = Series{"reserved", ColorMuted, func(t timeline.Totals) int64 { return t.Reserved }}
	Active    = Series{"active", ColorLive, func(t timeline.Totals) int64 { return t.Active }}
	Allocated = Series{"allocated", ColorAllocated, func(t timeline.Totals) int64 { return t.Allocated }}
)

// Span is a point of a curve with the places of its first and its last event, as fractions of the
// axis.
type Span struct {
	timeline.Point
	From, To float64
}

// Spans puts a curve on the axis and merges points that fall on the same of n columns. A clock that
// runs backwards stands still.
func (a Axis) Spans(curve []timeline.Point, n int) []Span {
	out := make([]Span, 0, min(n, len(curve))+1)
	var prev int64
	for _, q := range curve {
		from := max(prev, a.Event(q.First))
		to := a.Point(&q, prev)
		from, prev = min(from, to), to
		s := Span{q, Share(from, a.Span), Share(to, a.Span)}
		if k := len(out) - 1; k >= 0 && int(out[k].To*float64(n)) == int(s.To*float64(n)) {
			s.Point, s.From = Reduce([]timeline.Point{out[k].Point, q}, 1)[0], out[k].From
			out[k] = s
			continue
		}
		out = append(out, s)
	}
	return out
}

// Steps calls to with the corners of a line of steps from the left end of the axis to the right one: the
// values that a series has in spans, and between them the one that the span before left.
func (s Series) Steps(spans []Span, initial timeline.Totals, of func(*timeline.Point) timeline.Totals,
	to func(x float64, bytes int64)) {
	left := s.Of(initial)
	x, y := 0.0, left
	to(x, y)
	for i := range spans {
		q := &spans[i]
		if i == 0 || q.From-x > 1.0/500 { // no drop between spans that all but touch
			y = left
			to(x, y)
		}
		to(q.From, y)
		x, y, left = q.To, s.Of(of(&q.Point)), s.Of(q.At)
		to(q.From, y)
		to(x, y)
	}
	to(x, left)
	to(1, left)
}

// Highest and Lowest choose what Steps shows of a point.
func Highest(p *timeline.Point) timeline.Totals { return p.Max }
func Lowest(p *timeline.Point) timeline.Totals  { return p.Min }

// Top is the most bytes that a timeline of the device shows.
func Top(t *timeline.Timeline) int64 {
	top := max(t.PeakReserved.Bytes, t.PeakActive.Bytes, t.PeakAllocated.Bytes, t.Initial.Reserved, t.Initial.Active)
	for i := range t.Curve {
		top = max(top, t.Curve[i].Max.Reserved, t.Curve[i].Max.Active, t.Curve[i].Max.Allocated)
	}
	return top
}

// Mark is an event that timelines mark.
type Mark struct {
	Event int
	X     float64 // as a fraction of the axis
	Text  string
}

// OOMs are the marks of the requests that failed, of those on the same of n columns the last: a trace
// can hold thousands.
func (a Axis) OOMs(t *timeline.Timeline, n int) []Mark {
	return a.marks(len(t.OOMs), n, func(i int) (int, string) {
		return t.OOMs[i].Event, "out of memory: " + units.Bytes(t.OOMs[i].Requested) + " requested"
	})
}

// Retries are the marks of the retries, chosen likewise.
func (a Axis) Retries(t *timeline.Timeline, n int) []Mark {
	return a.marks(len(t.Retries), n, func(i int) (int, string) {
		return t.Retries[i].FirstEvent, "retry: " + units.Bytes(t.Retries[i].Released) + " released"
	})
}

// Annotations are the marks of what the program said of tensors, chosen likewise.
func (a Axis) Annotations(s *snapshot.Snapshot, t *timeline.Timeline, n int) []Mark {
	all := attribution.Annotations(s, t)
	return a.marks(len(all), n, func(i int) (int, string) {
		return all[i].Event, "annotation: " + Line(s.Strings.Get(all[i].Text), 80)
	})
}

func (a Axis) marks(count, n int, of func(i int) (event int, text string)) []Mark {
	var out []Mark
	for i := range count {
		event, text := of(i)
		m := Mark{event, a.At(event), text}
		if k := len(out) - 1; k >= 0 && int(out[k].X*float64(n)) == int(m.X*float64(n)) {
			out = out[:k]
		}
		out = append(out, m)
	}
	return out
}
