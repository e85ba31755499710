package fit

import (
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/whatif"
)

// loop is one pass of a loop that makes more of them with higher values, as one over the steps of a recurrent network does.
type loop struct {
	span             // rows of the pass, the last of those that another recording lacks
	begin      int   // the first row of those that the other lacks
	first, end int32 // its events, without the last
	value      int   // of Point, which the number of passes goes with
	passes     float64
}

// mostCopies bounds the requests that are added to a run. Where there were more each stands for several.
const mostCopies = 1 << 17

// findLoops finds the passes that a recording has more than another with a lower value, in each of its steps. Which pass of
// a loop that is does not matter. Rows of it get the laws of the pass beside it, of which the other has a partner.
func (m *model) findLoops(others []*recording, partners [][]int32) {
	for value := range m.At {
		below := -1
		for k, o := range others {
			if len(m.At) == 2 && o.At[1-value] != m.At[1-value] || o.At[value] >= m.At[value] || o.failed() {
				continue
			}
			if below < 0 || o.At[value] > others[below].At[value] {
				below = k
			}
		}
		if below < 0 || m.failed() {
			continue
		}
		more := float64(m.At[value] - others[below].At[value])
		for i := range m.numSteps() {
			s := m.step(i)
			for row := s.from; row < s.to; row++ {
				run := span{row, row}
				for run.to < s.to && partners[below][run.to] < 0 {
					run.to++
				}
				if row = max(row, run.to); run.from < run.to {
					m.addLoop(run, s, value, more)
				}
			}
		}
	}
}

// addLoop adds what rows without partners repeat of the rows beside them, if they do.
func (m *model) addLoop(run, within span, value int, more float64) {
	alike := func(a, b int) bool {
		return m.stackOf(a) == m.stackOf(b) && m.Timeline.Lives[a].Requested == m.Timeline.Lives[b].Requested
	}
	n := run.to - run.from
	for period := 1; period <= n; period++ {
		if n%period != 0 {
			continue
		}
		by, again := 0, true
		for row := run.from; row < run.to-period && again; row++ {
			again = alike(row, row+period)
		}
		for _, d := range []int{-period, period} { // the pass before the rows, or behind them
			beside := again && by == 0
			for k := 0; k < period && beside; k++ {
				row := run.from + k
				if d > 0 {
					row = run.to - period + k
				}
				beside = within.from <= row+d && row+d < within.to && alike(row, row+d)
			}
			if beside {
				by = d
			}
		}
		if by == 0 {
			continue
		}
		l := loop{span: span{run.to - period, run.to}, begin: run.from, value: value, passes: float64(n/period) / more}
		l.first, l.end = m.Timeline.Lives[l.from].Born, int32(m.Timeline.Trace.Len())
		if run.to < len(m.of) {
			l.end = m.Timeline.Lives[run.to].Born
		}
		for k := range n {
			row := run.from + k
			beside := run.from - period + k%period
			if by > 0 {
				beside = run.to + k%period
			}
			m.of[row] = m.of[beside]
		}
		m.loops = append(m.loops, l)
		return
	}
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

// left takes the passes out of sizes that a run at a point does not make, of those that the other recording has not either.
func (m *model) left(p Point, sizes []int64) {
	for i := range m.loops {
		l := &m.loops[i]
		fewer := math.Round(l.passes * float64(m.At[l.value]-p[l.value]))
		n := int(min(max(fewer, 0)*float64(l.to-l.from), float64(l.to-l.begin)))
		for row := l.begin; row < l.begin+n; row++ {
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
