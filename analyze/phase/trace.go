package phase

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// trace is a device's events with what laps ask of them.
type trace struct {
	s        *snapshot.Snapshot
	t        *timeline.Timeline
	level    []int64   // allocated bytes before the trace, and after each event
	tops     [][]int32 // of level: tops[k][i] is the place of the highest of 1<<k runs from run i on
	reserved []reserved
	bound    timeline.Bound
	work     int // lives that may still be looked at
}

// reserved is what was reserved from an event on.
type reserved struct {
	event int
	bytes int64
}

const (
	run  = 64 // of events
	work = 200_000_000
)

func newTrace(s *snapshot.Snapshot, t *timeline.Timeline) *trace {
	tr := &trace{s: s, t: t, level: t.AllocatedBytes(), bound: t.Recording.Told().Peak.Allocated, work: work}
	var first []int32
	for from := 0; from < len(tr.level); from += run {
		first = append(first, int32(tr.scan(from, min(from+run, len(tr.level)))))
	}
	tr.tops = [][]int32{first}
	for width := 1; 2*width <= len(first); width *= 2 {
		below := tr.tops[len(tr.tops)-1]
		next := make([]int32, len(below)-width)
		for i := range next {
			next[i] = int32(tr.higher(int(below[i]), int(below[i+width])))
		}
		tr.tops = append(tr.tops, next)
	}
	return tr
}

// higher is the place of the higher of two levels, the first of equal ones.
func (tr *trace) higher(a, b int) int {
	if tr.level[b] > tr.level[a] || tr.level[b] == tr.level[a] && b < a {
		return b
	}
	return a
}

func (tr *trace) scan(from, to int) int {
	best := from
	for i := from + 1; i < to; i++ {
		best = tr.higher(best, i)
	}
	return best
}

// highest is the place of the highest level from one place up to before another.
func (tr *trace) highest(from, to int) int {
	a, b := (from+run-1)/run, to/run
	if b <= a {
		return tr.scan(from, to)
	}
	k := 0
	for 2<<k <= b-a {
		k++
	}
	best := tr.higher(int(tr.tops[k][a]), int(tr.tops[k][b-1<<k]))
	if from < a*run {
		best = tr.higher(tr.scan(from, a*run), best)
	}
	if b*run < to {
		best = tr.higher(best, tr.scan(b*run, to))
	}
	return best
}

// measure adds to a lap what the trace has of it. What the recorder's counters told stays where the trace has a part.
func (tr *trace) measure(l *lap, c *clock) {
	first, last, cut := c.place(l)
	if last < first-1 {
		return
	}
	top := tr.highest(first, last+2)
	known := l.Peak >= 0
	l.First, l.Last, l.At, l.Cut = first, last, top-1, cut
	if from := l.from; from > 0 && l.At >= first {
		l.Micros = max(c.time(l.At)-from, 0)
	}
	if !cut {
		less, more := tr.missing(l)
		l.Start, l.Peak, l.End, l.AtMost, l.How = tr.level[first], tr.level[top]+less, tr.level[last+1], -1, ByTrace
		if l.begun >= 0 {
			l.Start = l.begun
		}
		if l.finished >= 0 {
			l.End = l.finished
		}
		l.Peak = max(l.Peak, l.Start, l.End)
		if most := tr.level[top] + more; most > l.Peak {
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
		l.Peak, l.How = tr.level[top], BySamples
		l.Reserved = tr.reservedIn(first, last)
		if l.to > 0 && last < c.n-1 {
			l.End = tr.level[last+1]
		}
	case tr.level[top] > l.Peak:
		l.Peak = tr.level[top]
		if l.AtMost >= 0 && l.Peak >= l.AtMost {
			l.How = ByCounter
		}
	case tr.level[top] < l.Peak:
		l.First, l.Last, l.At, l.Micros = -1, -1, -1, 0 // the peak was elsewhere
	}
}

// missing is by how much the level lies below torch's counters in a lap, at least and at most. A block from before the
// trace that is freed in it may have been larger than its request shows (analyze/timeline/SPEC.md 4.4): until then the
// level is too low by the same amount, and after it right.
func (tr *trace) missing(l *lap) (less, more int64) {
	at, end := int64(0), int64(0)
	if l.begun >= 0 {
		at = max(l.begun-tr.level[l.First], 0)
	}
	if l.finished >= 0 {
		end = max(l.finished-tr.level[l.Last+1], 0)
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
	slices.SortFunc(out, func(a, b Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	return out[:min(len(out), maxSites)]
}
