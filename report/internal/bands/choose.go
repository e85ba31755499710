package bands

import (
	"math"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
)

// Choose picks the n lives that a page without more room should keep: those that are live right
// after one of the events in must, as far as they fit, and then those with the most bytes
// times events lived. Of many alike it takes some from all over the trace. The result is by
// row; it is nil when all fit.
func (x *Index) Choose(n int, must []int) []bool {
	lives := x.t.Lives
	if len(lives) <= n {
		return nil
	}
	return Largest(n, len(lives), func(i int) float64 {
		l := &lives[i]
		for _, e := range must {
			if l.LiveAfter(e) {
				return math.MaxFloat64
			}
		}
		return Area(bytes(l), l.Born, l.Freed, x.events)
	})
}

// Area is so many bytes times the events from birth to end, of a trace of so many; below 0 it never ends.
func Area(size int64, born, freed int32, events int) float64 {
	end := int(freed)
	if end < 0 {
		end = events
	}
	return float64(size) * float64(max(end-int(born), 1))
}

// Largest marks the n of count things that have the largest areas, to within 2 %. Things are
// sorted into classes of about one area, and the last class that fits in part is thinned out
// evenly: that needs no order of millions. Areas are not negative.
func Largest(n, count int, area func(i int) float64) []bool {
	const bits = 46 // of the mantissa that a class leaves out
	counts := make([]int32, math.Float64bits(math.MaxFloat64)>>bits+1)
	classes := make([]uint32, count)
	for i := range classes {
		classes[i] = uint32(math.Float64bits(area(i)) >> bits)
		counts[classes[i]]++
	}
	room, edge := n, uint32(len(counts)-1)
	for ; int(counts[edge]) <= room; edge-- {
		room -= int(counts[edge])
		if edge == 0 {
			break
		}
	}
	keep := make([]bool, count)
	share, have := int(counts[edge]), 0
	for i, c := range classes {
		keep[i] = c > edge
		if c == edge {
			if have += room; have >= share {
				have -= share
				keep[i] = true
			}
		}
	}
	return keep
}

// rankCount is more than the binary orders of magnitude of bytes times events.
const rankCount = 128

// Ranks finds, of the lives that a page leaves out, the ones that a part of the trace has, the
// largest first. It keeps 4 bytes for each of them; a search costs what it finds.
type Ranks struct {
	t    *timeline.Timeline
	kept []bool
	rows [rankCount][]int32 // by order of magnitude, each in order of birth
}

// NewRanks sorts the lives that are not kept; a nil kept keeps all.
func NewRanks(t *timeline.Timeline, kept []bool) *Ranks {
	r := &Ranks{t: t, kept: kept}
	rank := func(i int) int {
		l := &t.Lives[i]
		return min(math.Ilogb(Area(bytes(l)+1, l.Born, l.Freed, t.Trace.Len())), rankCount-1)
	}
	var counts [rankCount]int
	for i, k := range kept {
		if !k {
			counts[rank(i)]++
		}
	}
	for c, n := range counts {
		r.rows[c] = make([]int32, 0, n)
	}
	for i, k := range kept {
		if !k {
			c := rank(i)
			r.rows[c] = append(r.rows[c], int32(i))
		}
	}
	return r
}

// Within gives, in order, at most n of the lives that are not kept and live after at or after one
// of the events first..last; -1 is before the trace. Those live after at go first, then those
// live after first, then the largest. It reports whether these are all of first..last, and all
// of at.
func (r *Ranks) Within(first, last, at, n int) (rows []int32, all, allAt bool) {
	if r.kept == nil {
		return nil, true, true
	}
	// add takes evenly of a list of which not all fit.
	add := func(list []int32, taken func(l *timeline.Life) bool) bool {
		step := 1
		if room := n - len(rows); len(list) > room {
			step = len(list)/max(room, 1) + 1
		}
		for i := 0; i < len(list) && len(rows) < n; i += step {
			if row := list[i]; !taken(&r.t.Lives[row]) {
				rows = append(rows, row)
			}
		}
		return step == 1
	}
	allAt = add(r.left(at), func(*timeline.Life) bool { return false })
	all = allAt && add(r.left(first), func(l *timeline.Life) bool { return l.LiveAfter(at) })
	for c := rankCount - 1; c >= 0 && all; c-- {
		list := r.rows[c]
		from, to := r.bornAfter(list, first), r.bornAfter(list, last)
		all = add(list[from:to], func(l *timeline.Life) bool { return l.LiveAfter(at) })
	}
	slices.Sort(rows)
	return rows, all, allAt
}

// left lists the lives after an event that are not kept, in order.
func (r *Ranks) left(event int) []int32 {
	var rows []int32
	for _, row := range r.t.StateAt(event).Rows() {
		if !r.kept[row] {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}

// bornAfter is the first place of a list whose life begins after an event.
func (r *Ranks) bornAfter(list []int32, event int) int {
	return sort.Search(len(list), func(i int) bool { return int(r.t.Lives[list[i]].Born) > event })
}
