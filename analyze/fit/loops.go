package fit

import (
	"cmp"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/whatif"
)

// loop is one pass of a loop that makes more of them with higher values, as one over the steps of a recurrent network does.
type loop struct {
	span             // rows of the pass
	all        span  // rows of passes like it that follow each other
	first, end int32 // its events, without the last
	value      int   // of Point, which the number of passes goes with
	passes     float64
	// Undoes is the first row of the pass that gives up what the pass of a loop before this one kept, -1 for none. The pass
	// is the one behind it then, so that those that are added come between.
	undoes int
}

// mostCopies bounds the requests that are added to a run. Where there were more each stands for several.
const mostCopies = 1 << 19

// findLoops finds the passes that a recording has more than another with a lower value, in each of its stretches, or where it has
// the lowest itself those that another has more. Which pass of a loop that is does not matter.
func (m *model) findLoops(others []*recording, partners [][]int32) {
	for value := range m.At {
		below, above := -1, -1 // the nearest
		for k, o := range others {
			switch at := o.At[value]; {
			case len(m.At) == 2 && o.At[1-value] != m.At[1-value] || o.failed():
			case at < m.At[value] && (below < 0 || at > others[below].At[value]):
				below = k
			case at > m.At[value] && (above < 0 || at < others[above].At[value]):
				above = k
			}
		}
		switch {
		case m.failed():
		case below >= 0:
			more := float64(m.At[value] - others[below].At[value])
			m.unmatched(partners[below], func(x *repeats, within span) { m.addLoop(x, partners[below], within, value, more) })
		case above >= 0:
			more := float64(others[above].At[value] - m.At[value])
			mine := slices.Repeat([]int32{-1}, len(others[above].Timeline.Lives))
			for row, j := range partners[above] {
				if j >= 0 {
					mine[j] = int32(row)
				}
			}
			others[above].unmatched(mine, func(x *repeats, _ span) { m.borrowLoop(x, mine, value, more) })
		}
	}
	m.pairLoops()
}

// unmatched gives the repeats that rows without partners are of.
func (r *recording) unmatched(partners []int32, give func(x *repeats, within span)) {
	for _, s := range r.stretches() {
		done := s.from
		for row := s.from; row < s.to; row++ {
			run := span{row, row}
			for run.to < s.to && partners[run.to] < 0 {
				run.to++
			}
			if row = max(row, run.to); run.from == run.to || run.from < done {
				continue
			}
			if x := r.repeats(run, s, partners); x != nil {
				give(x, s)
				done = x.all.to
			}
		}
	}
}

// alike reports whether two rows are the same request, in passes of a loop.
func (r *recording) alike(a, b int) bool {
	return r.stackOf(a) == r.stackOf(b) && r.Timeline.Lives[a].Requested == r.Timeline.Lives[b].Requested
}

// repeats are rows each of which is like that so many rows before.
type repeats struct {
	all    span
	period int
	alone  int  // how many rows have no partner: whole passes
	run    span // the longest run of them
}

// mostPeriod is the highest number of rows of a pass that is looked for.
const mostPeriod = 4096

// repeats finds the passes of a loop that a run of rows without partners is of, nil where there are none. An alignment pairs
// some of the rows between them now and then: what counts is how many are left over.
func (r *recording) repeats(run, within span, partners []int32) *repeats {
	for period := 1; period <= min(mostPeriod, (within.to-within.from)/2); period++ {
		x := repeats{all: span{run.from, run.from}, period: period}
		for x.all.from > within.from && x.all.from+period <= within.to && r.alike(x.all.from-1, x.all.from-1+period) {
			x.all.from--
		}
		for x.all.to+period < within.to && r.alike(x.all.to, x.all.to+period) {
			x.all.to++
		}
		if x.all.from == x.all.to {
			continue
		}
		if x.all.to += period; x.all.to < run.to || x.all.to-x.all.from < 2*period {
			continue
		}
		alone := make([]bool, period) // by the place in a pass, whether some row has no partner
		places := 0
		for row := x.all.from; row < x.all.to; row++ {
			of := span{row, row}
			for of.to < x.all.to && partners[of.to] < 0 {
				if place := (of.to - x.all.from) % period; !alone[place] {
					alone[place] = true
					places++
				}
				of.to++
			}
			n := of.to - of.from
			if x.alone += n; n > x.run.to-x.run.from {
				x.run = of
			}
			row = max(row, of.to)
		}
		// Where all passes have a few rows more, as for the scratch memory of large sums, there are no more passes.
		if x.alone%period == 0 && x.alone+period <= x.all.to-x.all.from && 2*places > period {
			return &x
		}
	}
	return nil
}

// loopAt is the loop with a pass at those rows.
func (m *model) loopAt(pass, within span, value int, passes float64) loop {
	l := loop{all: pass, value: value, passes: passes, undoes: -1}
	n := pass.to - pass.from
	for again := true; again && l.all.from-n >= within.from; {
		for row := l.all.from - n; row < l.all.from && again; row++ {
			again = m.alike(row, row+n)
		}
		if again {
			l.all.from -= n
		}
	}
	for again := true; again && l.all.to+n <= within.to; {
		for row := l.all.to; row < l.all.to+n && again; row++ {
			again = m.alike(row, row-n)
		}
		if again {
			l.all.to += n
		}
	}
	if l.all.to-l.all.from >= 3*n { // what the last one keeps lives on behind the loop, and what others do until the next
		pass = span{l.all.to - 2*n, l.all.to - n}
	}
	m.setPass(&l, pass)
	return l
}

// setPass sets which pass of a loop is the one that there are more or fewer of.
func (m *model) setPass(l *loop, pass span) {
	l.span, l.first, l.end = pass, m.Timeline.Lives[pass.from].Born, m.bornBy(pass.to)
}

// bornBy is the event of a row, the end of the trace for that behind the last.
func (m *model) bornBy(row int) int32 {
	if row < len(m.of) {
		return m.Timeline.Lives[row].Born
	}
	return int32(m.Timeline.Trace.Len())
}

// pairLoops chooses the pass of each loop in which that of a loop before it is given up: the one that goes back over what
// the other kept.
func (m *model) pairLoops() {
	for i := range m.loops {
		for row := m.loops[i].from; row < m.loops[i].to; row++ {
			end := m.Timeline.Lives[row].GivenUp()
			j, _ := slices.BinarySearchFunc(m.loops, end, func(l loop, e int32) int { return cmp.Compare(m.bornBy(l.all.to)-1, e) })
			if j <= i || j == len(m.loops) || m.bornBy(m.loops[j].all.from) > end {
				continue
			}
			l := &m.loops[j]
			from, n := l.all.from, l.to-l.from
			for from+2*n <= l.all.to && m.bornBy(from+n) <= end {
				from += n
			}
			if l.undoes = from; from+2*n <= l.all.to {
				from += n
			}
			m.setPass(l, span{from, from + n})
			break
		}
	}
}

// addLoop adds a loop of which another recording has fewer passes. Rows of passes get the law of rows that are like them, of which
// the other has a partner: the one that is known best. There is no loop where such laws differ, as of a result that has the size
// of its neighbors by chance.
func (m *model) addLoop(x *repeats, partners []int32, within span, value int, more float64) {
	passes := float64(x.alone/x.period) / more
	to := max(x.run.to, x.all.from+x.period)
	l := m.loopAt(span{to - x.period, to}, within, value, passes)
	all := span{min(x.all.from, l.all.from), max(x.all.to, l.all.to)}
	place := func(row int) int { return ((row-x.all.from)%x.period + x.period) % x.period }
	laws := slices.Repeat([]int32{-1}, x.period)
	for row := all.from; row < all.to; row++ {
		if k := place(row); partners[row] >= 0 && (laws[k] < 0 || m.laws[m.of[row]].kind < m.laws[laws[k]].kind) {
			laws[k] = m.of[row]
		}
	}
	for row := all.from; row < all.to; row++ {
		law, best := m.laws[m.of[row]], laws[place(row)]
		if partners[row] >= 0 && law.kind == m.laws[best].kind && law.growsWith(value) != m.laws[best].growsWith(value) {
			return
		}
	}
	if x.period == 1 && passes < 1 && laws[0] >= 0 && m.laws[laws[0]].growsWith(value) {
		return // the same: a loop makes more requests, or more often
	}
	m.loops = append(m.loops, l)
	for row := all.from; row < all.to; row++ {
		if best := laws[place(row)]; best >= 0 && (partners[row] < 0 || m.laws[m.of[row]].kind > m.laws[best].kind) {
			m.of[row] = best
		}
	}
}

// borrowLoop adds a loop of which another recording has more passes, where the rows of one are those of one in this.
func (m *model) borrowLoop(x *repeats, mine []int32, value int, more float64) {
	passes := float64(x.alone/x.period) / more
	for from := x.all.to - x.period; from >= x.all.from; from-- {
		own := span{int(mine[from]), int(mine[from]) + x.period}
		same := own.from >= 0
		for k := 1; k < x.period && same; k++ {
			same = mine[from+k] == mine[from]+int32(k)
		}
		if !same || x.period == 1 && passes < 1 && m.laws[m.of[own.from]].growsWith(value) {
			continue
		}
		for _, s := range m.stretches() {
			if s.from <= own.from && own.to <= s.to {
				m.loops = append(m.loops, m.loopAt(own, s, value, passes))
				return
			}
		}
	}
}

// repeat adds the requests of passes that a run at a point makes beyond those recorded. They come before the recorded pass of
// their loop; what a pass keeps for the backward one is freed by that, in reverse order.
func (m *model) repeat(p Point, by []int64, e *whatif.Edits) {
	copies := make([]int32, len(m.loops))
	rows := 0.0
	for i := range m.loops {
		l := &m.loops[i]
		rows += m.times(l, p) * float64(l.to-l.from)
	}
	each := max(rows/mostCopies, 1)
	for i := range m.loops {
		copies[i] = int32(math.Ceil(m.times(&m.loops[i], p) / each))
	}
	for i := range m.loops {
		l := &m.loops[i]
		size := l.end - l.first
		if copies[i] == 0 || int64(copies[i])*int64(size) > math.MaxInt32/2 {
			continue
		}
		m.passOn(l, e)
		share := m.times(l, p) / float64(copies[i])
		for k := range copies[i] {
			for row := l.from; row < l.to; row++ {
				if e.Sizes[row] == whatif.Dropped {
					continue
				}
				life := &m.Timeline.Lives[row]
				end := life.GivenUp()
				x := whatif.Life{Born: l.first, Turn: k*size + life.Born - l.first + 1, Freed: end, Like: int32(row),
					Bytes: max(int64(float64(by[m.of[row]])*share), 1)}
				switch {
				case end < 0:
					x.Freed = whatif.Never
				case end < l.end:
					x.Freed, x.Until = l.first, k*size+end-l.first+1
				case end < l.end+size && k+1 < copies[i]:
					x.Freed, x.Until = l.first, (k+1)*size+end-l.end+1
				case end < l.end+size:
					x.Freed = l.first + end - l.end
				default:
					j := slices.IndexFunc(m.loops, func(o loop) bool {
						return o.undoes >= 0 && m.bornBy(o.undoes) <= end && end < m.bornBy(o.undoes+o.to-o.from)
					})
					if j > i && copies[j] > 0 {
						o := &m.loops[j]
						last := max(copies[j]-1-k, 0)
						x.Freed, x.Until = o.first, last*(o.end-o.first)+end-m.bornBy(o.undoes)+1
					}
				}
				e.Added = append(e.Added, x)
			}
		}
	}
}

// passOn lets the first added pass give up what the recorded one gives up of that before it, such as what a variable has until
// it is bound anew.
func (m *model) passOn(l *loop, e *whatif.Edits) {
	for row := max(l.from-(l.to-l.from), l.all.from, m.warm); row < l.from; row++ {
		life := &m.Timeline.Lives[row]
		if end := life.GivenUp(); l.first <= end && end < l.end && e.Sizes[row] != whatif.Dropped {
			e.Added = append(e.Added, whatif.Life{Born: life.Born, Freed: l.first, Until: end - l.first + 1, Bytes: e.Sizes[row],
				Like: int32(row)})
			e.Sizes[row] = whatif.Dropped
		}
	}
}

// left takes the passes out of sizes that a run at a point does not make: all but one at most.
func (m *model) left(p Point, sizes []int64) {
	for i := range m.loops {
		l := &m.loops[i]
		fewer := math.Round(l.passes * float64(m.At[l.value]-p[l.value]))
		pass := l.to - l.from
		n := int(min(max(fewer, 0)*float64(pass), float64(l.all.to-l.all.from-pass)))
		from := max(l.to-n, l.all.from)
		if l.undoes >= 0 {
			from = min(l.undoes, l.all.to-n)
		}
		for row := from; row < from+n; row++ {
			sizes[row] = whatif.Dropped
		}
	}
}

// times is how many passes more a run at a point makes.
func (m *model) times(l *loop, p Point) float64 {
	return max(math.Round(l.passes*float64(p[l.value]-m.At[l.value])), 0)
}

// longer reports whether loops of a run at a point make more passes than were recorded.
func (f *fitter) longer(p Point) bool {
	m := f.model(f.nearest(p, -1))
	return slices.ContainsFunc(m.loops, func(l loop) bool { return m.times(&l, p) > 0 })
}
