package fit

import (
	"encoding/binary"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/kernel"
)

// model is one recording with a law for each of its requests.
type model struct {
	*recording
	laws  []*law  // distinct ones
	of    []int32 // by row, in laws
	seen  []int   // by law, in how many recordings its requests are
	doubt bool    // some law is an estimate

	loops []loop
	sums  []reduction
	gpu   kernel.GPU // by which the scratch memory of sums is computed
	// Depends says that a good part of the requested bytes depends on the data: they differ from step to step.
	depends bool
	chance  bool // some law has a rest, so that other sizes are as likely
	chunks  bool // some code works in parts, see inChunks
	// Windows says by value whether some code works in windows of what that counts, see inWindows.
	windows  [mostNames]bool
	buffered bool // recordings have scratch memory of sums
}

// newModel fits the requests of one recording, with the partners that its rows have in others.
func newModel(r *recording, others []*recording, partners [][]int32, all []term, names []string) *model {
	v := valueOf(names[0])
	m := &model{recording: r, of: make([]int32, len(r.Timeline.Lives))}
	if len(others) == 0 {
		m.guess(all, v)
		m.reductions(others, partners)
		m.inChunks()
		m.inWindows(others, names)
		m.doubt = true
		return m
	}
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
	m.findLoops(others, partners)
	m.vary(others, partners, all, v)
	m.workspaces()
	m.algorithms(others, partners)
	m.reductions(others, partners)
	m.inChunks()
	m.inWindows(others, names)
	m.doubt = m.doubt || slices.ContainsFunc(m.of, func(id int32) bool { return m.laws[id].kind == estimated })
	return m
}

// lawOf is the law of sizes in so many recordings, of which the first is that of the skeleton. What only some of them have,
// as of a kernel that is chosen by shape, may be matched to what it is not: no square is made of it.
func lawOf(all []term, points []Point, sizes []int64, recordings int) *law {
	if len(points) < recordings {
		all = slices.DeleteFunc(slices.Clone(all), func(m term) bool { return m[0] > 1 || m[1] > 1 })
	}
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

// workspaces of products are as large for all sizes: which product asks for them differs.
func (m *model) workspaces() {
	made := map[int32]int32{}
	for row, id := range m.of {
		if m.laws[id].kind != estimated {
			continue
		}
		n := m.Timeline.Lives[row].Requested
		if use, _ := m.categories().Of(int32(row)); use != category.Workspace || !frames.IsWorkspaceSize(n) {
			continue
		}
		m.amend(row, made, func(l *law) { l.parts, l.rest, l.full = constant(n).parts, 0, nil }) // with its bounds
	}
}

// amend gives a row another law, made of its own once for all rows that have that.
func (m *model) amend(row int, made map[int32]int32, edit func(l *law)) {
	id := m.of[row]
	at, ok := made[id]
	if !ok {
		l := *m.laws[id]
		edit(&l)
		at = int32(len(m.laws))
		made[id] = at
		m.laws, m.seen = append(m.laws, &l), append(m.seen, m.seen[id])
	}
	m.of[row] = at
}

// likes are the rows with the same code and size.
type likes struct {
	stack int32
	size  int64
}

func (m *model) likesOf(row int) likes { return likes{m.stackOf(row), m.Timeline.Lives[row].Requested} }

// lend gives rows without partners the law of others with the same code and size, or, of what an optimizer makes of parameters, that of
// parameters of the size, where these agree.
func (m *model) lend(partners [][]int32) {
	const differ = -1
	const parameter = -1 // stack
	of := map[likes]int32{}
	table := m.categories()
	alone := func(row int) bool {
		return slices.ContainsFunc(partners, func(p []int32) bool { return p[row] < 0 })
	}
	for row := range m.of {
		if alone(row) {
			continue
		}
		keys := []likes{m.likesOf(row)}
		if use, _ := table.Of(int32(row)); use == category.Parameter {
			keys = append(keys, likes{parameter, keys[0].size})
		}
		for _, k := range keys {
			if law, ok := of[k]; !ok {
				of[k] = m.of[row]
			} else if law != m.of[row] {
				of[k] = differ
			}
		}
	}
	lent := map[[2]int32]int32{} // by law, and how many recordings have the row
	for row := range m.of {
		if alone(row) {
			l := &m.Timeline.Lives[row]
			law, ok := of[m.likesOf(row)]
			use, _ := table.Of(int32(row))
			if (!ok || law == differ) && (use == category.OptimizerState || m.phase(l.Stack) == "optimizer") {
				law, ok = of[likes{parameter, l.Requested}]
			}
			if !ok || law == differ {
				continue
			}
			k := [2]int32{law, int32(m.seen[m.of[row]])}
			if lent[k] == 0 {
				l := *m.laws[law]
				l.kind = max(l.kind, exact)
				lent[k] = int32(len(m.laws))
				m.laws, m.seen = append(m.laws, &l), append(m.seen, m.seen[m.of[row]])
			}
			m.of[row] = lent[k]
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
	sizes := m.sizes(p, s)
	m.left(p, sizes)
	m.cutOff(sizes)
	var sum int64
	for row := range m.warm {
		sum += sizes[row]
	}
	most, event = sum, -1
	row, sums := m.warm, m.sums
	for e := range m.gives {
		if len(sums) > 0 && int(sums[0].event) == e {
			if n := sum + sums[0].bytes(m.gpu, p); n > most && m.counts(&sums[0], s) {
				most, event = n, e
			}
			sums = sums[1:]
		}
		for row < len(m.of) && int(m.Timeline.Lives[row].Born) == e {
			sum += sizes[row]
			row++
		}
		if sum > most {
			most, event = sum, e
		}
		if r := m.gives[e]; r >= 0 {
			sum -= sizes[r]
		}
	}
	return most, event
}

// bySize are the sizes of the laws at a point.
func (m *model) bySize(p Point, s side) []int64 {
	by := make([]int64, len(m.laws))
	for i, l := range m.laws {
		if by[i] = l.bound(p, s); l.size == nil {
			by[i] = max(by[i], 1)
		}
	}
	return by
}
