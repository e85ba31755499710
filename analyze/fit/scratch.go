package fit

import "github.com/snapana/snapana/analyze/kernel"

// algorithms bounds the laws of what libraries work in for one convolution. They choose an algorithm for each shape
// anew, so that two sizes may be of two algorithms, and lie on a line that rises far faster than what is convolved.
// The memory of one goes with that, or less.
func (m *model) algorithms(others []*recording, partners [][]int32) {
	stacks := convolutions(m.Snapshot)
	if !m.haveScratch(stacks) {
		return
	}
	far := make(Point, len(m.At))
	for i, v := range m.At {
		far[i] = 4 * v
	}
	made := map[[2]int32]int32{} // by law of the memory, and of what is convolved
	for row := m.warm; row < len(m.of); row++ {
		if !m.byAlgorithm(row, stacks) {
			continue
		}
		of := m.convolved(row)
		if of < 0 {
			continue
		}
		own, result := m.laws[m.of[row]], m.laws[m.of[of]]
		ratio := func(size int64, p Point) float64 { return float64(size) / float64(max(result.at(p), 1)) }
		most := ratio(m.Timeline.Lives[row].Requested, m.At)
		for k, o := range others {
			if j := partners[k][row]; j >= 0 {
				most = max(most, ratio(o.Timeline.Lives[j].Requested, o.At))
			}
		}
		steep := ratio(own.at(far), far) > 1.01*most
		if !steep && kernel.Unfolds(m.Timeline.Lives[row].Requested, m.Timeline.Lives[of].Requested) {
			continue
		}
		key := [2]int32{m.of[row], m.of[of]}
		id, ok := made[key]
		if !ok {
			id = int32(len(m.laws))
			made[key] = id
			l := result.times(most)
			l.low, l.high = result.times(most/4), own
			if !steep {
				c := *own
				l = &c
				l.low, l.high = own, result.times(3*most)
			}
			l.kind = estimated
			m.laws, m.seen = append(m.laws, l), append(m.seen, m.seen[m.of[row]])
		}
		m.of[row] = id
	}
}

// haveScratch reports whether some convolution works in memory of its own.
func (m *model) haveScratch(stacks []bool) bool {
	for row := m.warm; row < len(m.of); row++ {
		if stacks[m.Timeline.Lives[row].Stack] && m.passing(row) {
			return true
		}
	}
	return false
}

// byAlgorithm reports whether a row is what a library works in for a convolution: it gives that back before anything
// else happens, and asks for what no tensor has in backward passes, which have no stacks, or what no law fits.
func (m *model) byAlgorithm(row int, stacks []bool) bool {
	l := &m.Timeline.Lives[row]
	return m.passing(row) &&
		(stacks[l.Stack] || m.backward(row) && (l.Requested%4 != 0 || m.laws[m.of[row]].kind == estimated))
}

// convolved is the row before another that is as large as what is convolved: its result, or in backward passes the
// last that is not of one size, -1 for none.
func (m *model) convolved(row int) int {
	const near = 6 // requests
	for k := row - 1; k >= max(row-near, m.warm); k-- {
		if l := m.laws[m.of[k]]; !isConstant(l) && l.size == nil && l.kind != estimated {
			return k
		}
	}
	return -1
}

// times is a law with all sizes so many times as large.
func (l *law) times(n float64) *law {
	out := &law{kind: l.kind}
	for _, p := range l.parts {
		out.parts = append(out.parts, part{p.term, p.factor * n})
	}
	return out
}
