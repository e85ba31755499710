package host

import "github.com/snapana/snapana/snapshot"

// seam is a stretch of events, from First up to Next, that a ring whose size was changed has behind
// later ones (analyze/timeline/SPEC.md 3.4). It belongs before event To.
type seam struct{ first, next, to int }

// A step back of fewer microseconds and events can be that of a thread which took its time and then waited for
// another. Such events are where they belong.
const (
	wideMicros = 1000
	wideEvents = 16
)

// findSeam finds the widest step back in time behind which there is more than one event of the past.
func findSeam(t snapshot.Trace) (found seam, ok bool) {
	if t.Len() == 0 || t.At(0).Has&snapshot.EventHasTime == 0 {
		return found, false
	}
	var widest uint64 // microseconds
	for i := 1; i+1 < t.Len(); i++ {
		now, last := t.Time(i), t.Time(i-1)
		if now < last && uint64(last)-uint64(now) > widest && t.Time(i+1) < last {
			widest = uint64(last) - uint64(now)
			found, ok = seam{first: i, next: i}, true
		}
	}
	if !ok {
		return found, false
	}
	for found.next < t.Len() && t.Time(found.next) < t.Time(found.first-1) {
		found.next++
	}
	for t.Time(found.to) <= t.Time(found.first) {
		found.to++
	}
	return found, ok
}

// wide reports whether no thread can have caused it.
func (s seam) wide(t snapshot.Trace) bool {
	return uint64(t.Time(s.first-1))-uint64(t.Time(s.first)) >= wideMicros || s.next-s.first >= wideEvents
}

// mend is the trace with the stretch where it belongs. One that is older than all others is left out: it can be what
// a smaller ring never overwrites, and what came after it is lost.
func (s seam) mend(t snapshot.Trace) snapshot.Trace {
	events := &snapshot.Events{}
	add := func(from, to int) {
		for i := from; i < to; i++ {
			events.Add(t.At(i))
		}
	}
	add(0, s.to)
	if s.to > 0 {
		add(s.first, s.next)
	}
	add(s.to, s.first)
	add(s.next, t.Len())
	return snapshot.NewTrace(events, 0, events.Len())
}

func (s seam) moved() (moved, left int64) {
	if s.to == 0 {
		return 0, int64(s.next - s.first)
	}
	return int64(s.next - s.first), 0
}
