package attribution

import (
	"cmp"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// ShortLife is how many events of the trace may pass before a free for an allocation to count
// as short-lived.
const ShortLife = 32

// maxNamed is how many sites are named: a trace has very many.
const maxNamed = 256

// Turnover is what came and went on one device: memory that was allocated only to be freed
// again a moment later, and how long each stack's memory was held.
type Turnover struct {
	Allocs int64 `json:"allocs"`      // allocations in the trace
	Short  int64 `json:"short"`       // short-lived ones
	Bytes  int64 `json:"short_bytes"` // rounded bytes of the short-lived ones
	// Micros is the time from the first event to the last, 0 when times are unknown.
	Micros int64          `json:"span_us"`
	Sites  []SiteTurnover `json:"sites"` // by stack, most short-lived bytes first
}

// SiteTurnover is the turnover of one stack.
type SiteTurnover struct {
	Stack  snapshot.StackID `json:"-"`
	Site   string           `json:"site"`        // of Stack, "" without frames; of the first maxNamed only
	Allocs int64            `json:"allocs"`      // allocations in the trace
	Short  int64            `json:"short"`       // short-lived ones
	Bytes  int64            `json:"short_bytes"` // rounded bytes of the short-lived ones
	// Held is the sum over all allocations of rounded bytes times the time they were held, in
	// byte-seconds; where times are unknown in byte-events.
	Held float64 `json:"held"`
}

// Rate gives short-lived bytes per second, false when times are unknown.
func (r *Turnover) Rate() (float64, bool) {
	return float64(r.Bytes) / (float64(r.Micros) / 1e6), r.Micros > 0
}

// MeasureTurnover adds up the lives that began in the trace.
func MeasureTurnover(s *snapshot.Snapshot, t *timeline.Timeline) Turnover {
	var r Turnover
	n := t.Trace.Len()
	if n == 0 {
		return r
	}
	if first, last := t.Trace.Time(0), t.Trace.Time(n-1); first > 0 && last > first {
		r.Micros = last - first
	}
	sites := make([]SiteTurnover, s.Stacks.Len()+1)
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 {
			continue
		}
		p := &sites[l.Stack]
		p.Stack = l.Stack
		p.Allocs++
		end := n - 1
		if l.Freed >= 0 {
			end = int(l.Freed)
			if end-int(l.Born) <= ShortLife {
				p.Short++
				p.Bytes += l.Rounded
			}
		}
		if r.Micros > 0 {
			p.Held += float64(l.Rounded) * float64(max(t.Trace.Time(end)-t.Trace.Time(int(l.Born)), 0)) / 1e6
		} else {
			p.Held += float64(l.Rounded) * float64(end-int(l.Born))
		}
	}
	for i := range sites {
		if p := &sites[i]; p.Allocs > 0 {
			r.Allocs, r.Short, r.Bytes = r.Allocs+p.Allocs, r.Short+p.Short, r.Bytes+p.Bytes
			r.Sites = append(r.Sites, *p)
		}
	}
	sorting.Stable(r.Sites, func(a, b SiteTurnover) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Held, a.Held))
	})
	for i := range min(len(r.Sites), maxNamed) {
		r.Sites[i].Site = Site(s, r.Sites[i].Stack)
	}
	return r
}
