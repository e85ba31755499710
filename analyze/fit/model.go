package fit

import (
	"encoding/binary"
	"math"
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
	depends  bool
	chance   bool // some law has a rest, so that other sizes are as likely
	inParts  bool // some code works in parts, see chunks
	buffered bool // recordings have scratch memory of sums
}

// newModel fits the requests of one recording, with the partners that its rows have in others.
func newModel(r *recording, others []*recording, partners [][]int32, all []term, v value) *model {
	m := &model{recording: r, of: make([]int32, len(r.Timeline.Lives))}
	if len(others) == 0 {
		m.guess(all, v)
		m.reductions(others, partners)
		m.chunks()
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
	m.chunks()
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
		law, ok := made[id]
		if !ok {
			l := *m.laws[id] // with its bounds
			l.parts, l.rest, l.full = constant(n).parts, 0, nil
			law = int32(len(m.laws))
			made[id] = law
			m.laws, m.seen = append(m.laws, &l), append(m.seen, m.seen[id])
		}
		m.of[row] = law
	}
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
	lent := map[[2]int32]int32{} // by law, and how many recordings have the row
	for row := range m.of {
		if alone(row) {
			law, ok := of[class{m.stackOf(row), m.Timeline.Lives[row].Requested}]
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

// slot is a request of one call of the program in each step; where no steps were found all of a stack.
type slot struct {
	stack int32
	nth   int32 // of its stack in the step
}

// observed is what the recordings have of a slot.
type observed struct {
	row         int32   // of the first
	least, most float64 // by what share sizes differ from those of the first, in either recording
	term        *term   // of a proven law
	logs        float64 // sum of the logarithms of how sizes differ between the recordings
	pairs       float64
	// Of those in both: sums of the squares of these logarithms, of those of sizes, and of the squares of those.
	logs2, sizes, sizes2 float64
	own, others          float64 // sums of sizes
	rows                 float64
	unproven             int
	laws                 map[int32]bool // those that are not proven
	// What divides all sizes, and the largest, of this recording and of the other.
	unit, itsUnit int64
	top, itsTop   int64
}

// differs reports whether steps differ in the sizes of a slot. Where they differ too much the slot is not one call: the order of
// calls does.
func (v *observed) differs() bool {
	const much = 16
	return v.least < v.most && v.most < much*v.least
}

// varies reports whether the sizes of a slot depend on the data.
func (v *observed) varies(steps bool) bool {
	const several = 4
	if steps {
		return v.differs() && v.unproven > 0
	}
	return len(v.laws) >= several && 5*v.unproven >= int(v.rows)
}

// vary finds the slots whose sizes differ from step to step although the values do not: they depend on the data. What no
// proven law gives of them is an estimate. Where the recordings' steps are of the same data each goes by itself, as recorded. Else
// their mean goes with the term of another step of the slot, or else with that by which the recordings differ on the whole; what a
// size differs from the mean, as the sum of many parts does, with the root. The bounds are as far apart as the steps are.
func (m *model) vary(others []*recording, partners [][]int32, all []term, scales value) {
	if len(others) == 0 {
		return
	}
	far := 0 // the other recording that is furthest away
	for k := range others {
		if away(m.At, others[k].At) > away(m.At, others[far].At) {
			far = k
		}
	}
	size := func(row int) float64 { return float64(m.Timeline.Lives[row].Requested) }
	its := func(row int) float64 { // of the partner
		if j := partners[far][row]; j >= 0 {
			return float64(others[far].Timeline.Lives[j].Requested)
		}
		return 0
	}
	steps := m.numSteps() > 1
	slots := make([]slot, len(m.of))
	of := map[slot]*observed{}
	nth := map[int32]int32{}
	for i := range m.numSteps() {
		clear(nth)
		s := m.step(i)
		for row := s.from; row < s.to; row++ {
			k := slot{m.stackOf(row), nth[m.stackOf(row)]}
			if steps {
				nth[k.stack]++
			}
			slots[row] = k
			v := of[k]
			if v == nil {
				v = &observed{row: int32(row), least: 1, most: 1, laws: map[int32]bool{}}
				of[k] = v
			}
			v.add(m, row, size, its, steps)
		}
	}
	const good = 25 // of so many bytes one
	var uneven, total int64
	for _, v := range of {
		bytes := int64(v.own / v.rows)
		total += bytes
		if v.varies(steps) || steps && v.least < v.most {
			uneven += bytes
		}
	}
	m.depends = good*uneven > total
	same := steps && sameData(of)
	padded := steps && scales == batch && m.isPadded(of, others[far].At, all, scales)
	type class struct {
		slot  slot
		size  float64
		its   float64
		known int32 // the law where it is sound, else -1
	}
	made := map[class]int32{}
	for row := m.bounds[0]; row < len(m.of); row++ {
		v := of[slots[row]]
		if !v.varies(steps) || m.sound(m.of[row]) && !padded {
			continue
		}
		k := class{slots[row], size(row), 0, -1}
		if m.sound(m.of[row]) {
			k.known = m.of[row]
		}
		if !steps {
			k.its = its(row)
		}
		id, ok := made[k]
		if !ok {
			t, nearest := v.termAt(m.At, others[far].At, all, scales)
			mean := v.own + v.others*float64(t.of(m.At))/float64(t.of(others[far].At))
			n := v.rows + v.pairs
			least, most := v.least, v.most
			if same {
				mean, n = size(row), 1
			} else if !steps {
				if mean, n = size(row), 1; k.its > 0 {
					mean, n = mean+k.its*float64(t.of(m.At))/float64(t.of(others[far].At)), 2
				}
				least, most = min(mean/n/size(row), 1), max(mean/n/size(row), 1)
			}
			var l *law
			if k.known >= 0 {
				known := *m.laws[k.known]
				l = &known
			} else {
				l = along(t, int64(mean/n), m.At)
				l.kind, l.rest = estimated, size(row)-mean/n
				m.chance = m.chance || !same
				l.low = along(t, int64(size(row)*least/most), m.At)
				l.high = along(nearest, int64(size(row)*most/least), m.At)
			}
			l.from = m.At
			if padded && t.degree() == 1 {
				top := max(float64(v.top), float64(v.itsTop)*float64(t.of(m.At))/float64(t.of(others[far].At)))
				l.full = along(t, int64(top), m.At)
				l.full.from = m.At
				if t.of(m.At) < t.of(others[far].At) {
					l.full.from = others[far].At
				}
			}
			id = int32(len(m.laws))
			made[k] = id
			m.laws, m.seen = append(m.laws, l), append(m.seen, m.seen[m.of[row]])
		}
		m.of[row] = id
	}
}

// sameData reports whether steps of both recordings worked on the same data, each on as large a part of it: where one has a larger
// size than in another step, so has the other, by as much. That is so of most bytes.
func sameData(of map[slot]*observed) bool {
	const clear, least = 4, 1e-6 // times the variance, and that of sizes that differ at all
	var same, other int64
	for _, v := range of {
		n := v.pairs
		if n < 2 || !v.differs() {
			continue
		}
		sizes, ratios := v.sizes2-v.sizes*v.sizes/n, v.logs2-v.logs*v.logs/n
		switch {
		case sizes < least:
		case clear*ratios < sizes:
			same += int64(v.own / v.rows)
		default:
			other += int64(v.own / v.rows)
		}
	}
	return same > other
}

// termAt is the term by which the sizes of two recordings differ, and the one that is nearest to that: it is not by the square of a
// batch, of which one may have longer items by chance.
func (v *observed) termAt(at, other Point, all []term, scales value) (t, nearest term) {
	if v.term != nil {
		return *v.term, *v.term
	}
	ratio := math.Exp(v.logs / max(v.pairs, 1))
	nearest = nearestTerm(all, at, other, ratio)
	if scales != batch || nearest[0] < 2 {
		return nearest, nearest
	}
	lower := slices.DeleteFunc(slices.Clone(all), func(t term) bool { return t[0] > 1 })
	return nearestTerm(lower, at, other, ratio), nearest
}

// isPadded reports whether most of what depends on the data, and differs from step to step, is padded with the batch, see observed.
func (m *model) isPadded(of map[slot]*observed, other Point, all []term, scales value) bool {
	var yes, no int64
	for _, v := range of {
		if !v.varies(true) {
			continue
		}
		t, _ := v.termAt(m.At, other, all, scales)
		switch bytes := int64(v.own / v.rows); {
		case t.degree() != 1:
		case v.padded(t.of(m.At), t.of(other)):
			yes += bytes
		default:
			no += bytes
		}
	}
	return yes > no
}

// add adds a row.
func (v *observed) add(m *model, row int, size, its func(int) float64, steps bool) {
	q := size(row) / size(int(v.row))
	v.least, v.most = min(v.least, q), max(v.most, q)
	v.own += size(row)
	v.rows++
	v.unit, v.top = gcd(v.unit, int64(size(row))), max(v.top, int64(size(row)))
	v.itsUnit, v.itsTop = gcd(v.itsUnit, int64(its(row))), max(v.itsTop, int64(its(row)))
	if n, was := its(row), its(int(v.row)); n > 0 {
		if was > 0 {
			v.least, v.most = min(v.least, n/was), max(v.most, n/was)
		}
		v.others += n
		log, ratio := math.Log(size(row)), math.Log(size(row)/n)
		v.logs, v.logs2 = v.logs+ratio, v.logs2+ratio*ratio
		v.sizes, v.sizes2 = v.sizes+log, v.sizes2+log*log
		v.pairs++
	}
	switch l := m.laws[m.of[row]]; {
	case l.kind != proven:
		v.unproven++
		v.laws[m.of[row]] = true
	case steps && !m.sound(m.of[row]):
	case len(l.parts) == 1:
		v.term = &l.parts[0].term
	}
}

// gcd is the greatest common divisor of two numbers, of which 0 is divided by all.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// padded reports whether sizes that depend on the data are so many times a number of the batch, as where all of it is padded to the
// longest: what divides the sizes of both recordings goes so often into what divides those of one as its batch has more.
func (v *observed) padded(batch, its int64) bool {
	if v.itsUnit == 0 || batch == its || min(batch, its) < 1 {
		return false
	}
	const byChance = 50 // sums are so in one of so many cases, at most
	both, common := gcd(v.unit, v.itsUnit), gcd(batch, its)
	factor, itsFactor := batch/common, its/common
	return v.unit/both%factor == 0 && v.itsUnit/both%itsFactor == 0 &&
		math.Pow(float64(factor), v.rows)*math.Pow(float64(itsFactor), v.pairs) > byChance
}

// sound reports whether a law is proven also where sizes depend on the data: there two of them are now and then in the ratio
// of a square by chance.
func (m *model) sound(id int32) bool {
	l := m.laws[id]
	return l.kind == proven && (m.seen[id] > 2 || len(l.parts) != 1 || l.parts[0].degree() < 2)
}

// nearestTerm is the term by which sizes at two points are in about such a ratio. What depends on data goes with the square
// of a value only where nothing else would do.
func nearestTerm(all []term, a, b Point, ratio float64) term {
	best, least := all[1], math.Inf(1)
	for _, t := range all {
		if t.ofPixels() {
			break
		}
		away := math.Abs(math.Log(ratio) - math.Log(float64(t.of(a))/float64(t.of(b))))
		if t.degree() > 1 {
			away *= 2
		}
		if away < least {
			best, least = t, away
		}
	}
	return best
}
