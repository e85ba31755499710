package fit

import (
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
}

// mostCopies bounds the requests that are added to a run. Where there were more each stands for several.
const mostCopies = 1 << 17

// findLoops finds the passes that a recording has more than another with a lower value, in each of its steps, or where it has
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
			m.unmatched(partners[below], func(run, within span) { m.addLoop(run, within, value, more) })
		case above >= 0:
			more := float64(others[above].At[value] - m.At[value])
			mine := slices.Repeat([]int32{-1}, len(others[above].Timeline.Lives))
			for row, j := range partners[above] {
				if j >= 0 {
					mine[j] = int32(row)
				}
			}
			others[above].unmatched(mine, func(run, within span) {
				m.borrowLoop(others[above], mine, run, within, value, more)
			})
		}
	}
}

// unmatched gives the runs of rows without partners of each step.
func (r *recording) unmatched(partners []int32, give func(run, within span)) {
	for i := range r.numSteps() {
		s := r.step(i)
		for row := s.from; row < s.to; row++ {
			run := span{row, row}
			for run.to < s.to && partners[run.to] < 0 {
				run.to++
			}
			if row = max(row, run.to); run.from < run.to {
				give(run, s)
			}
		}
	}
}

// alike reports whether two rows are the same request, in passes of a loop.
func (r *recording) alike(a, b int) bool {
	return r.stackOf(a) == r.stackOf(b) && r.Timeline.Lives[a].Requested == r.Timeline.Lives[b].Requested
}

// passes tells of how many rows each pass is if rows repeat those beside them, and whether these are before them (below 0)
// or behind: 0 if they do not.
func (r *recording) passes(run, within span) (period, by int) {
	n := run.to - run.from
	for period := 1; period <= n; period++ {
		if n%period != 0 {
			continue
		}
		again := true
		for row := run.from; row < run.to-period && again; row++ {
			again = r.alike(row, row+period)
		}
		for _, by := range []int{-period, period} {
			beside := again
			for k := 0; k < period && beside; k++ {
				row := run.from + k
				if by > 0 {
					row = run.to - period + k
				}
				beside = within.from <= row+by && row+by < within.to && r.alike(row, row+by)
			}
			if beside {
				return period, by
			}
		}
	}
	return 0, 0
}

// loopAt is the loop with a pass at those rows.
func (m *model) loopAt(pass, within span, value int, passes float64) loop {
	l := loop{span: pass, all: pass, value: value, passes: passes}
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
	l.first, l.end = m.Timeline.Lives[l.from].Born, int32(m.Timeline.Trace.Len())
	if l.to < len(m.of) {
		l.end = m.Timeline.Lives[l.to].Born
	}
	return l
}

// addLoop adds what rows without partners repeat of the rows beside them, if they do. Rows get the laws of the pass beside
// them, of which the other recording has a partner.
func (m *model) addLoop(run, within span, value int, more float64) {
	period, by := m.passes(run, within)
	if by == 0 {
		return
	}
	n := run.to - run.from
	m.loops = append(m.loops, m.loopAt(span{run.to - period, run.to}, within, value, float64(n/period)/more))
	for k := range n {
		beside := run.from - period + k%period
		if by > 0 {
			beside = run.to + k%period
		}
		m.of[run.from+k] = m.of[beside]
	}
}

// borrowLoop adds the loop of which another recording has passes more, in those rows.
func (m *model) borrowLoop(o *recording, mine []int32, run, within span, value int, more float64) {
	period, by := o.passes(run, within)
	if by == 0 {
		return
	}
	beside := run.from - period
	if by > 0 {
		beside = run.to
	}
	from := int(mine[beside])
	for k := range period {
		if mine[beside+k] != int32(from+k) || from < 0 {
			return
		}
	}
	i, ok := slices.BinarySearch(m.bounds, from)
	if !ok {
		i--
	}
	if i < 0 || i >= m.numSteps() || from+period > m.bounds[i+1] {
		return
	}
	passes := float64((run.to-run.from)/period) / more
	if n := len(m.loops); n > 0 && m.loops[n-1].span == (span{from, from + period}) {
		m.loops[n-1].passes += passes
		return
	}
	m.loops = append(m.loops, m.loopAt(span{from, from + period}, m.step(i), value, passes))
}

// repeated are the requests of passes that a run at a point makes beyond those recorded. They come before the recorded pass
// of their loop; what a pass keeps for the backward one is freed by that, in reverse order.
func (m *model) repeated(p Point, by []int64) (out []whatif.Life) {
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
		if int64(copies[i])*int64(size) > math.MaxInt32/2 {
			continue
		}
		share := m.times(l, p) / max(float64(copies[i]), 1)
		for k := range copies[i] {
			for row := l.from; row < l.to; row++ {
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
					j := slices.IndexFunc(m.loops, func(o loop) bool { return o.first <= end && end < o.end })
					if j > i && copies[j] > 0 {
						o := &m.loops[j]
						last := max(copies[j]-1-k, 0)
						x.Freed, x.Until = o.first, last*(o.end-o.first)+end-o.first+1
					}
				}
				out = append(out, x)
			}
		}
	}
	return out
}

// left takes the passes out of sizes that a run at a point does not make: all but one at most.
func (m *model) left(p Point, sizes []int64) {
	for i := range m.loops {
		l := &m.loops[i]
		fewer := math.Round(l.passes * float64(m.At[l.value]-p[l.value]))
		pass := l.to - l.from
		n := int(min(max(fewer, 0)*float64(pass), float64(l.all.to-l.all.from-pass)))
		from := max(l.to-n, l.all.from)
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
