package chart

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Reduce merges neighbouring points so that at most n stay. Extremes survive: each merged
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
			p.Min = each(p.Min, q.Min, func(a, b int64) int64 { return min(a, b) })
			p.Max = each(p.Max, q.Max, func(a, b int64) int64 { return max(a, b) })
		}
		out = append(out, p)
	}
	return out
}

// each joins two totals, figure by figure, with f.
func each(a, b timeline.Totals, f func(a, b int64) int64) timeline.Totals {
	return timeline.Totals{
		Reserved:  f(a.Reserved, b.Reserved),
		Active:    f(a.Active, b.Active),
		Allocated: f(a.Allocated, b.Allocated),
		Requested: f(a.Requested, b.Requested),
	}
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
		note(t.Trace.At(0).Time)
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
