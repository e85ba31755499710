package phase

import (
	"cmp"
	"sort"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// trace is a device's events with what laps ask of them.
type trace struct {
	s        *snapshot.Snapshot
	t        *timeline.Timeline
	level    *timeline.Levels // allocated bytes
	reserved []reserved
	bound    timeline.Bound
	work     int // lives that may still be looked at
}

// reserved is what was reserved from an event on.
type reserved struct {
	event int
	bytes int64
}

const work = 200_000_000

func newTrace(s *snapshot.Snapshot, t *timeline.Timeline) *trace {
	return &trace{s: s, t: t, level: t.AllocatedLevels(), bound: t.Recording.Told().Peak.Allocated, work: work}
}

// measure adds to a lap what the trace has of it. What the recorder's counters told stays where the trace has a part.
func (tr *trace) measure(l *lap, c *clock) {
	first, last, cut := c.place(l)
	if last < first-1 {
		return
	}
	top, at := tr.level.Highest(first-1, last)
	known := l.Peak >= 0
	l.First, l.Last, l.At, l.Cut = first, last, at, cut
	if from := l.from; from > 0 && l.At >= first {
		l.Micros = max(c.time(l.At)-from, 0)
	}
	if !cut {
		less, more := tr.missing(l)
		l.Start, l.Peak, l.End, l.AtMost, l.How = tr.level.At(first-1), top+less, tr.level.At(last), -1, ByTrace
		if l.begun >= 0 {
			l.Start = l.begun
		}
		if l.finished >= 0 {
			l.End = l.finished
		}
		l.Peak = max(l.Peak, l.Start, l.End)
		if most := top + more; most > l.Peak {
			l.How, l.AtMost = BySamples, most
		}
		l.Reserved = tr.reservedIn(first, last)
		if l.ended {
			l.Left = tr.left(first, last)
		}
		return
	}
	switch {
	case !known:
		l.Peak, l.How = top, BySamples
		l.Reserved = tr.reservedIn(first, last)
		if l.to > 0 && last < c.n-1 {
			l.End = tr.level.At(last)
		}
	case top > l.Peak:
		l.Peak = top
		if l.AtMost >= 0 && l.Peak >= l.AtMost {
			l.How = ByCounter
		}
	case top < l.Peak:
		l.First, l.Last, l.At, l.Micros = -1, -1, -1, 0 // the peak was elsewhere
	}
}

// missing is by how much the level lies below torch's counters in a lap, at least and at most. A block from before the
// trace that is freed in it may have been larger than its request shows (analyze/timeline/SPEC.md 4.4): until then the
// level is too low by the same amount, and after it right.
func (tr *trace) missing(l *lap) (less, more int64) {
	at, end := int64(0), int64(0)
	if l.begun >= 0 {
		at = max(l.begun-tr.level.At(l.First-1), 0)
	}
	if l.finished >= 0 {
		end = max(l.finished-tr.level.At(l.Last), 0)
	}
	if l.begun < 0 {
		at = end
	}
	return min(at, end), max(at, end)
}

// reservedIn is the most that was reserved from before an event to after another.
func (tr *trace) reservedIn(first, last int) int64 {
	if tr.reserved == nil {
		now := tr.t.Initial.Reserved
		tr.reserved = append(tr.reserved, reserved{-1, now})
		for i := range tr.t.Changes {
			c := &tr.t.Changes[i]
			if c.Add {
				now += c.Range.Size
			} else {
				now -= c.Range.Size
			}
			tr.reserved = append(tr.reserved, reserved{c.Event, now})
		}
	}
	at := sort.Search(len(tr.reserved), func(i int) bool { return tr.reserved[i].event >= first })
	most := tr.reserved[max(at-1, 0)].bytes
	for ; at < len(tr.reserved) && tr.reserved[at].event <= last; at++ {
		if tr.work--; tr.work < 0 {
			return -1
		}
		most = max(most, tr.reserved[at].bytes)
	}
	return most
}

// born gives the rows of Lives that were born in some events.
func (tr *trace) born(first, last int) (from, to int) {
	lives := tr.t.Lives
	from = sort.Search(len(lives), func(i int) bool { return int(lives[i].Born) >= first })
	return from, from + sort.Search(len(lives)-from, func(i int) bool { return int(lives[from+i].Born) > last })
}

// has reports whether a block is allocated after an event at which it had been born.
func has(l *timeline.Life, event int) bool {
	end := l.GivenUp()
	return end == -1 || int(end) > event
}

// left is what was born in some events and is allocated after the last, -1 unknown.
func (tr *trace) left(first, last int) (sum int64) {
	from, to := tr.born(first, last)
	if tr.work -= to - from; tr.work < 0 || tr.bound == timeline.Unknown {
		return -1
	}
	for i := from; i < to; i++ {
		if l := &tr.t.Lives[i]; has(l, last) {
			sum += l.Rounded
		}
	}
	return sum
}

// sites is left by site, most bytes first.
func (tr *trace) sites(first, last int) []Site {
	if first < 0 {
		return nil
	}
	from, to := tr.born(first, last)
	if tr.work -= to - from; tr.work < 0 || tr.bound == timeline.Unknown {
		return nil
	}
	rows := map[snapshot.StackID]*Site{}
	for i := from; i < to; i++ {
		l := &tr.t.Lives[i]
		if !has(l, last) {
			continue
		}
		if rows[l.Stack] == nil {
			rows[l.Stack] = &Site{Stack: l.Stack}
		}
		rows[l.Stack].Bytes += l.Rounded
		rows[l.Stack].Count++
	}
	bySite := map[string]*Site{}
	out := []Site{}
	for id, row := range rows {
		name := attribution.Site(tr.s, id)
		if bySite[name] == nil {
			bySite[name] = &Site{Stack: id, Site: name}
		}
		all := bySite[name]
		all.Bytes, all.Count, all.Stack = all.Bytes+row.Bytes, all.Count+row.Count, min(all.Stack, id)
	}
	for _, row := range bySite {
		out = append(out, *row)
	}
	sorting.By(out, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	return out[:min(len(out), maxSites)]
}
