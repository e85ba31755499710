package fit

import (
	"encoding/binary"
	"slices"
)

// model is one recording with a law for each of its requests.
type model struct {
	*recording
	laws  []*law  // distinct ones
	of    []int32 // by row, in laws
	seen  []int   // by law, in how many recordings its requests are
	doubt bool    // some law is not proven
}

// newModel fits the requests of one recording, with the partners that its rows have in others.
func newModel(r *recording, others []*recording, partners [][]int32, all []term) *model {
	m := &model{recording: r, of: make([]int32, len(r.Timeline.Lives))}
	known := map[string]int32{}
	var key []byte
	points, sizes := []Point{}, []int64{}
	for row := range r.Timeline.Lives {
		size := r.Timeline.Lives[row].Requested
		key = binary.AppendVarint(key[:0], size)
		for k := range others {
			n := int64(-1)
			if j := partners[k][row]; j >= 0 {
				n = others[k].Timeline.Lives[j].Requested
			}
			key = binary.AppendVarint(key, n)
		}
		id, ok := known[string(key)]
		if !ok {
			points, sizes = append(points[:0], r.At), append(sizes[:0], size)
			for k, o := range others {
				if j := partners[k][row]; j >= 0 {
					points, sizes = append(points, o.At), append(sizes, o.Timeline.Lives[j].Requested)
				}
			}
			id = int32(len(m.laws))
			known[string(key)] = id
			m.laws = append(m.laws, lawOf(all, points, sizes, len(others)+1))
			m.seen = append(m.seen, len(points))
		}
		m.of[row] = id
	}
	m.lend(partners)
	m.doubt = slices.ContainsFunc(m.laws, func(l *law) bool { return l.kind == estimated })
	return m
}

// lawOf is the law of sizes in so many recordings, of which the first is that of the skeleton.
func lawOf(all []term, points []Point, sizes []int64, recordings int) *law {
	if len(points) > 1 {
		if l := findLaw(all, points, sizes); l != nil {
			if len(points) < recordings {
				l.kind = exact
			}
			return l
		}
	}
	return estimate(all, points, sizes)
}

// lend gives rows without partners the law of others with the same code and size, where these agree.
func (m *model) lend(partners [][]int32) {
	type class struct {
		stack int32
		size  int64
	}
	const differ = -1
	of := map[class]int32{}
	alone := func(row int) bool {
		return slices.ContainsFunc(partners, func(p []int32) bool { return p[row] < 0 })
	}
	for row := range m.of {
		k := class{m.stackOf(row), m.Timeline.Lives[row].Requested}
		if alone(row) {
			continue
		}
		if law, ok := of[k]; !ok {
			of[k] = m.of[row]
		} else if law != m.of[row] {
			of[k] = differ
		}
	}
	for row := range m.of {
		if alone(row) {
			if law, ok := of[class{m.stackOf(row), m.Timeline.Lives[row].Requested}]; ok && law != differ {
				m.of[row] = law
			}
		}
	}
}

// sizes are the requests at a point, by row.
func (m *model) sizes(p Point, s side) []int64 {
	by := m.bySize(p, s)
	out := make([]int64, len(m.of))
	for row, law := range m.of {
		out[row] = by[law]
	}
	return out
}

// peak finds the highest sum of requested bytes at a point, and the event after which it holds first; -1 is the start.
func (m *model) peak(p Point, s side) (most int64, event int) {
	by := m.bySize(p, s)
	var sum int64
	for row := range m.warm {
		sum += by[m.of[row]]
	}
	most, event = sum, -1
	row := m.warm
	for e := range m.gives {
		for row < len(m.of) && int(m.Timeline.Lives[row].Born) == e {
			sum += by[m.of[row]]
			row++
		}
		if sum > most {
			most, event = sum, e
		}
		if r := m.gives[e]; r >= 0 {
			sum -= by[m.of[r]]
		}
	}
	return most, event
}

// bySize are the sizes of the laws at a point.
func (m *model) bySize(p Point, s side) []int64 {
	by := make([]int64, len(m.laws))
	for i, l := range m.laws {
		by[i] = max(l.bound(p, s), 1)
	}
	return by
}
