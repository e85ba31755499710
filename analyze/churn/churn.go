// Package churn measures what came and went: memory that was allocated only to be freed again
// a moment later, and how long each stack's memory was held.
package churn

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Within is how many events of the trace may pass before a free for an allocation to count as
// churn.
const Within = 32

// Report is the churn of one device.
type Report struct {
	Allocs int64 // allocations in the trace
	Short  int64 // those freed within Within events
	Bytes  int64 // rounded bytes of the short ones
	// Micros is the time from the first event to the last, 0 when times are unknown.
	Micros int64
	Sites  []Site // by stack, most short-lived bytes first
}

// Site is the churn of one stack.
type Site struct {
	Stack  snapshot.StackID
	Allocs int64 // allocations in the trace
	Short  int64 // those freed within Within events
	Bytes  int64 // rounded bytes of the short ones
	// Held is the sum over all allocations of rounded bytes times the time they were held, in
	// byte-seconds; where times are unknown in byte-events.
	Held float64
}

// Rate gives bytes per second of churn, false when times are unknown.
func (r *Report) Rate() (float64, bool) {
	return float64(r.Bytes) / (float64(r.Micros) / 1e6), r.Micros > 0
}

// Measure adds up the lives that began in the trace.
func Measure(s *snapshot.Snapshot, t *timeline.Timeline) Report {
	var r Report
	n := t.Trace.Len()
	if n == 0 {
		return r
	}
	if first, last := t.Trace.At(0).Time, t.Trace.At(n-1).Time; first > 0 && last > first {
		r.Micros = last - first
	}
	sites := make([]Site, s.Stacks.Len()+1)
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 {
			continue
		}
		p := &sites[l.Stack]
		p.Stack = l.Stack
		p.Allocs++
		r.Allocs++
		end := n - 1
		if l.Freed >= 0 {
			end = int(l.Freed)
			if end-int(l.Born) <= Within {
				p.Short++
				p.Bytes += l.Rounded
				r.Short++
				r.Bytes += l.Rounded
			}
		}
		if r.Micros > 0 {
			p.Held += float64(l.Rounded) * float64(max(t.Trace.At(end).Time-t.Trace.At(int(l.Born)).Time, 0)) / 1e6
		} else {
			p.Held += float64(l.Rounded) * float64(end-int(l.Born))
		}
	}
	for i := range sites {
		if sites[i].Allocs > 0 {
			r.Sites = append(r.Sites, sites[i])
		}
	}
	slices.SortStableFunc(r.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Held, a.Held))
	})
	return r
}
