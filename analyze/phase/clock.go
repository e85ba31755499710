package phase

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// clock finds moments in a trace: by how often torch had allocated and freed, where that is known and fits, else by
// time.
type clock struct {
	t             *timeline.Timeline
	n             int
	allocs, frees []int32 // events of each kind, none where no lap has counters
	// allocs0 and frees0 are torch's counters at the start of the trace, if counted.
	allocs0, frees0 int64
	counted         bool
	// whole says that nothing shows that events before the first were lost.
	whole bool
}

// slack is by how many microseconds the clocks of the recorder and of the trace may differ: torch converts times of a
// cheap clock when the snapshot is taken.
const slack = 100_000

func newClock(t *timeline.Timeline, laps []lap, dump *sidecar.Dump) *clock {
	c := &clock{t: t, n: t.Trace.Len()}
	c.whole = !round(c.n)
	for i := range laps {
		if l := &laps[i]; l.ended && l.to > 0 && l.to < c.time(0) {
			c.whole = false
		}
	}
	c.whole = c.whole || t.Initial == timeline.Totals{}
	if !slices.ContainsFunc(laps, func(l lap) bool { return l.begin != nil }) {
		return c
	}
	for e := range c.n {
		switch t.Trace.Action(e) {
		case snapshot.Alloc:
			c.allocs = append(c.allocs, int32(e))
		case snapshot.FreeRequested:
			c.frees = append(c.frees, int32(e))
		}
	}
	var known *sidecar.Level
	if dump != nil {
		known = levelIn(dump.Counters, t.Device)
	}
	if known != nil && known.Allocs != nil && known.Frees != nil {
		c.allocs0, c.frees0 = *known.Allocs-int64(len(c.allocs)), *known.Frees-int64(len(c.frees))
		c.counted = true
	} else {
		c.guess(laps)
	}
	c.counted = c.counted && c.fits(laps)
	return c
}

// round tells numbers that rings are made for: a full one loses its oldest events.
func round(n int) bool { return n%100 == 0 || bits.OnesCount(uint(n)) == 1 }

// levelIn is what is said of a device, nil for nothing.
func levelIn(levels []sidecar.Level, device int) *sidecar.Level {
	for i := range levels {
		if l := &levels[i]; l.Device != nil && *l.Device == int64(device) {
			return l
		}
	}
	return nil
}

// time is that of an event in microseconds, 0 unknown.
func (c *clock) time(event int) int64 {
	if c.n == 0 {
		return 0
	}
	return c.t.Trace.Time(event)
}

// before gives the number of events before a time.
func (c *clock) before(time int64) int {
	return sort.Search(c.n, func(i int) bool { return c.time(i) >= time })
}

// marks gives both ends of all laps of the recorder.
func (c *clock) marks(laps []lap, yield func(level *sidecar.Level, time int64)) {
	for i := range laps {
		l := &laps[i]
		if l.begin == nil {
			continue
		}
		if v := levelOf(l.begin.Devices, c.t.Device); v != nil && v.Allocs != nil && v.Frees != nil {
			yield(v, l.from)
		}
		if l.end == nil {
			continue
		}
		if v := levelOf(l.end.Devices, c.t.Device); v != nil && v.Allocs != nil && v.Frees != nil {
			yield(v, l.to)
		}
	}
}

// guess takes for the counters at the start those that most ends of laps agree on, by their times.
func (c *clock) guess(laps []lap) {
	type start struct{ allocs, frees int64 }
	votes := map[start]int{}
	best, most := start{}, 0
	c.marks(laps, func(v *sidecar.Level, time int64) {
		if c.n == 0 || time < c.time(0) || time > c.time(c.n-1) {
			return
		}
		at := c.before(time)
		k := start{*v.Allocs - int64(below(c.allocs, at)), *v.Frees - int64(below(c.frees, at))}
		if votes[k]++; votes[k] > most {
			best, most = k, votes[k]
		}
	})
	c.allocs0, c.frees0, c.counted = best.allocs, best.frees, most > 1
}

// below counts the events before one.
func below(events []int32, at int) int {
	return sort.Search(len(events), func(i int) bool { return int(events[i]) >= at })
}

// fits reports whether counting and the clock agree on all ends of laps, as they do not where kinds of events were left
// out of the trace, or the program set its counters back.
func (c *clock) fits(laps []lap) bool {
	if c.allocs0 < 0 || c.frees0 < 0 {
		return false
	}
	fits := true
	c.marks(laps, func(v *sidecar.Level, time int64) {
		lo, hi := c.count(v)
		first, last := c.time(0), c.time(c.n-1)
		switch {
		case lo > hi:
			fits = false
		case hi < -1:
			fits = fits && time < first+slack
		case lo >= c.n:
			fits = fits && time > last-slack
		default:
			fits = fits && (time == 0 || (lo < 0 || time > c.time(lo)-slack) && (hi == c.n-1 || time < c.time(hi+1)+slack))
		}
	})
	return fits
}

// count gives the first and the last event that may have been the latest at the moment of counters: below -1 for one
// before the trace, and n for one after it. The first is above the last where there is no such moment.
func (c *clock) count(v *sidecar.Level) (lo, hi int) {
	a, f := *v.Allocs-c.allocs0, *v.Frees-c.frees0
	switch {
	case a < 0 || f < 0:
		if a > int64(len(c.allocs)) || f > int64(len(c.frees)) {
			return 1, 0
		}
		return -2, -2
	case a > int64(len(c.allocs)) || f > int64(len(c.frees)):
		return c.n, c.n
	}
	lo, hi = -1, c.n-1
	for _, k := range []struct {
		events []int32
		done   int64
	}{{c.allocs, a}, {c.frees, f}} {
		if k.done > 0 {
			lo = max(lo, int(k.events[k.done-1]))
		}
		if k.done < int64(len(k.events)) {
			hi = min(hi, int(k.events[k.done])-1)
		}
	}
	return lo, hi
}

// find gives the last event before a moment, from -1 on; -2 is before the trace, and n after it.
func (c *clock) find(p *sidecar.Phase, time int64, inclusive bool) int {
	at := -2
	if time > 0 && c.n > 0 && c.time(0) > 0 {
		if inclusive {
			time++
		}
		at = c.before(time) - 1
	}
	var v *sidecar.Level
	if p != nil && c.counted {
		v = levelOf(p.Devices, c.t.Device)
	}
	if v == nil || v.Allocs == nil || v.Frees == nil {
		return at
	}
	lo, hi := c.count(v)
	return min(max(at, lo), hi)
}

// place gives the events of a lap, and whether the trace lacks some at its beginning or end; last is below first-1 where
// it has none.
func (c *clock) place(l *lap) (first, last int, cut bool) {
	b := c.find(l.begin, l.from, false)
	switch {
	case b == -1 && l.begin != nil && c.counted: // counted: nothing is missing
	case b < 0:
		cut = b < -1 || !c.whole
		b = -1
	case b >= c.n:
		return c.n, -1, true
	}
	if !l.ended {
		return b + 1, c.n - 1, cut
	}
	e := c.find(l.end, l.to, true)
	if e < -1 || e == -1 && cut {
		return 0, -2, true
	}
	if e >= c.n {
		e, cut = c.n-1, true
	}
	return b + 1, e, cut
}
