package fit

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Point is what a run was made with: a value for each of the names that Question.Names has.
type Point []int64

// mostNames is how many numbers can scale at a time.
const mostNames = 2

// term is a monomial of the values, as powers of each.
type term [mostNames]uint8

// terms are the monomials that requests are made of, the likelier ones first. What is made of all pairs of an image's pixels goes
// with the fourth power of its side.
func terms(names []string) []term {
	out := []term{{0}, {1}, {2}}
	if len(names) > 1 {
		out = []term{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {2, 0}, {1, 2}, {2, 1}}
	}
	for i, name := range names {
		if valueOf(name) != pixels {
			continue
		}
		pairs := term{}
		pairs[i] = 4
		if out = append(out, pairs); len(names) > 1 {
			pairs[1-i] = 1
			out = append(out, pairs)
		}
	}
	return out
}

// of is the value of a term at a point, the highest number where it is more.
func (m term) of(p Point) int64 {
	n := int64(1)
	for i, v := range p {
		for range m[i] {
			hi, lo := bits.Mul64(uint64(n), uint64(v))
			if hi != 0 || lo > math.MaxInt64 {
				return math.MaxInt64
			}
			n = int64(lo)
		}
	}
	return n
}

// ofPixels tells a term of all pairs of an image's pixels, which nothing but such goes with. It comes behind the others.
func (m term) ofPixels() bool { return m[0] == 4 || m[1] == 4 }

func (m term) degree() int { return int(m[0]) + int(m[1]) }

// law is the size of a request as a sum of terms.
type law struct {
	kind  kind
	parts []part
	// Bounds of what is only estimated: the size is between them. They have none of their own.
	low, high *law
	// Rest is what a size that depends on data has more than the parts, where the values are From: it goes with the root of
	// what its part goes with.
	rest float64
	from Point
	// Full is the law of sizes that are padded to the longest of a batch, from twice the batch on: some of it is about as long as any
	// there is. It is nil for others.
	full *law
	// Parted is the size where code works in parts: the size may never be more. It is 0 for others.
	parted int64
	// Size is the law of what is computed, 0 for no request; nil for others.
	size func(Point) int64
}

// part is a term with its coefficient. Those of proven and exact laws are such that sizes are whole.
type part struct {
	term
	factor float64
}

// kind says how well a law is known.
type kind uint8

const (
	// Proven laws have fewer coefficients than there are sizes, which they fit to the byte.
	proven kind = iota
	// Exact ones fit as well, and have as many: other laws would fit too.
	exact
	// An estimated one is somewhere between two bounds.
	estimated
)

// at is the size at a point.
func (l *law) at(p Point) int64 { return l.turned(p, 1) }

// turned is the size at a point where a size that depends on data has so many times what it has more than the parts.
func (l *law) turned(p Point, times float64) int64 {
	if l.size != nil {
		return l.size(p)
	}
	const twice = 2
	if l.full != nil && float64(l.full.parts[0].of(p)) >= twice*float64(l.full.parts[0].of(l.full.from)) {
		return l.full.at(p)
	}
	var n float64
	for i := range l.parts {
		n += l.parts[i].factor * float64(l.parts[i].of(p))
	}
	if l.rest != 0 {
		n += times * l.rest * math.Sqrt(float64(l.parts[0].of(p))/float64(l.parts[0].of(l.from)))
	}
	return int64(min(math.Round(n), allocator.MaxRequest))
}

// bound is the size at a point, or a bound of it.
func (l *law) bound(p Point, s side) int64 {
	switch {
	case s == even:
		return l.turned(p, 0)
	case s == turned:
		return l.turned(p, -1)
	case l.low == nil || s == mid:
		return l.at(p)
	case s == low && l.parted > 0:
		return min(l.at(p), l.low.at(p), l.high.at(p), l.parted)
	case s == low:
		return min(l.at(p), l.low.at(p), l.high.at(p))
	}
	return max(l.at(p), l.low.at(p), l.high.at(p))
}

// side chooses a bound of an estimate, or itself.
type side uint8

const (
	mid side = iota
	low
	high
	// Sizes that depend on data as they may be as well: always the same, or smaller where they were larger than usual. Which
	// step has the larger ones is chance, and decides about how memory is laid out.
	even
	turned
)

// bounds reports whether a side is a bound.
func (s side) bounds() bool { return s == low || s == high }

// growsWith reports whether a size is said to be other with another one of the values.
func (l *law) growsWith(value int) bool {
	return slices.ContainsFunc(l.parts, func(p part) bool { return p.term[value] > 0 })
}

func constant(n int64) *law { return &law{parts: []part{{factor: float64(n)}}} }

// along is the law of a size that is n at a point and goes with a term.
func along(m term, n int64, p Point) *law {
	return &law{parts: []part{{m, float64(n) / float64(m.of(p))}}}
}

// mostOfTriple is how many bytes there are for each triple, at most: two sizes with more differ like that by chance.
const mostOfTriple = 64

// findLaw finds the simplest law of sizes at points: that with the fewest terms, and of these the likeliest. It is nil where
// no law fits them to the byte. There must be two points at least.
func findLaw(all []term, points []Point, sizes []int64) *law {
	distinct := distinctPoints(points)
	triples := term{3} // of a batch
	cubes := distinct > 2 || slices.Contains(all, triples) || sizes[0]/max(triples.of(points[0]), 1) <= mostOfTriple
	for _, m := range append(all[:len(all):len(all)], triples) {
		if goesWith(m, points, sizes) && (m != triples || cubes) {
			return along(m, sizes[0], points[0])
		}
	}
	if l := oneLess(all, points, sizes); l != nil {
		return l
	}
	if l := largerSide(all, points, sizes); l != nil {
		if distinct == 2 {
			l.kind = exact
		}
		return l
	}
	for n := 2; n <= 3 && n <= distinct; n++ {
		unit := 1.0
		if n < distinct && distinct >= 2*n-1 { // sizes enough for half bytes, and shares of patches
			unit = 1.0 / 4096
		}
		for _, pick := range picks(all, n) {
			if n == distinct && n == 2 && (pick[0] != term{} || pick[1][0]+pick[1][1] > 1) {
				continue // two sizes fit anything: only a line is likely
			}
			if l := solve(pick, points, sizes, unit); l != nil {
				if n == distinct {
					l.kind = exact
				}
				return l
			}
		}
	}
	var sides []int64 // values of what is squared
	for _, p := range points {
		if n := p[len(p)-1]; !slices.Contains(sides, n) {
			sides = append(sides, n)
		}
	}
	for _, pick := range squares(len(points[0])) {
		if l := solve(pick, points, sizes, 0); l != nil && len(sides) > len(pick) {
			return l
		}
	}
	return nil
}

// oneLess finds the law of sizes that go with one less than a value, as all tokens but the first do, or the last.
func oneLess(all []term, points []Point, sizes []int64) *law {
	for _, m := range all {
		for i := range points[0] {
			if m[i] != 1 || slices.ContainsFunc(points, func(p Point) bool { return p[i] < 2 }) {
				continue
			}
			less := make([]Point, len(points))
			for k, p := range points {
				less[k] = slices.Clone(p)
				less[k][i]--
			}
			if n := m.of(less[0]); goesWith(m, less, sizes) && sizes[0]%n == 0 {
				without := m
				without[i] = 0
				return &law{parts: []part{{m, float64(sizes[0] / n)}, {without, -float64(sizes[0] / n)}}}
			}
		}
	}
	return nil
}

// largerSide finds the law of sizes that go with the square of so many pixels more, or fewer, than the side of images: of a validation
// at another side, or of what is padded or cropped.
func largerSide(all []term, points []Point, sizes []int64) *law {
	const most = 1 << 15 // pixels
	if len(points[0]) > 1 || !slices.ContainsFunc(all, term.ofPixels) {
		return nil
	}
	far := 0
	for i := range points {
		if away(points[0], points[i]) > away(points[0], points[far]) {
			far = i
		}
	}
	root := math.Sqrt(float64(sizes[far]) / float64(sizes[0]))
	more := int64(math.Round((float64(points[far][0]) - root*float64(points[0][0])) / (root - 1)))
	if root == 1 || more == 0 || more > most || -2*more > points[0][0] || -2*more > points[far][0] {
		return nil
	}
	shifted := make([]Point, len(points))
	for i, p := range points {
		if shifted[i] = (Point{p[0] + more}); p[0] > most {
			return nil
		}
	}
	if !goesWith(term{2}, shifted, sizes) {
		return nil
	}
	each := float64(sizes[0]) / float64(shifted[0][0]*shifted[0][0])
	return &law{parts: []part{{term{2}, each}, {term{1}, 2 * each * float64(more)}, {term{}, each * float64(more*more)}}}
}

func distinctPoints(points []Point) int {
	seen := slices.Clone(points)
	sorting.By(seen, func(a, b Point) int { return slices.Compare(a, b) })
	return len(slices.CompactFunc(seen, func(a, b Point) bool { return slices.Equal(a, b) }))
}

// squares are the sets of terms of what goes with the square of a number of patches and one more: the attention among the
// patches of an image, by its side.
func squares(names int) [][]term {
	if names == 1 {
		return [][]term{{{0}, {2}, {4}}}
	}
	return [][]term{{{0, 0}, {0, 2}, {0, 4}}, {{1, 0}, {1, 2}, {1, 4}}}
}

// goesWith reports whether sizes are proportional to a term.
func goesWith(m term, points []Point, sizes []int64) bool {
	m0 := uint64(m.of(points[0]))
	for i, p := range points {
		hi, lo := bits.Mul64(uint64(sizes[i]), m0)
		wantHi, want := bits.Mul64(uint64(sizes[0]), uint64(m.of(p)))
		if hi != wantHi || lo != want {
			return false
		}
	}
	return true
}

// picks lists the sets of n terms, the likelier first.
func picks(all []term, n int) (out [][]term) {
	var pick func(from int, chosen []term)
	pick = func(from int, chosen []term) {
		if len(chosen) == n {
			out = append(out, slices.Clone(chosen))
			return
		}
		for i := from; i < len(all) && !all[i].ofPixels(); i++ {
			pick(i+1, append(chosen, all[i]))
		}
	}
	pick(0, nil)
	weight := func(ms []term) (n int) {
		for _, m := range ms {
			n += int(m[0]) + int(m[1])
		}
		return n
	}
	sorting.Stable(out, func(a, b []term) int { return cmp.Compare(weight(a), weight(b)) })
	return out
}

// solve finds positive coefficients, in multiples of a unit unless that is 0, with which the terms give all sizes. It is
// nil where there are none.
func solve(pick []term, points []Point, sizes []int64, unit float64) *law {
	l := through(pick, points, sizes)
	if l == nil {
		return nil
	}
	for k := range l.parts {
		f := &l.parts[k].factor
		if unit > 0 {
			*f = math.Round(*f/unit) * unit
		}
		if *f <= 0 {
			return nil
		}
	}
	for i, p := range points {
		if l.at(p) != sizes[i] {
			return nil
		}
	}
	return l
}

// through finds the coefficients with which as many terms give the sizes at the first points that tell them apart. It is
// nil where there are not enough.
func through(pick []term, points []Point, sizes []int64) *law {
	n := len(pick)
	var rows [][]float64 // reduced, each with a 1 at lead
	var lead []int
	for i, p := range points {
		row := make([]float64, n+1) // by term, as multiples of its value at the first point
		largest := 0.0
		for k, m := range pick {
			row[k] = float64(m.of(p)) / float64(m.of(points[0]))
			largest = max(largest, row[k])
		}
		row[n] = float64(sizes[i])
		for j, r := range rows {
			f := row[lead[j]]
			for k := range row {
				row[k] -= f * r[k]
			}
			row[lead[j]] = 0
		}
		k := slices.IndexFunc(row[:n], func(v float64) bool { return math.Abs(v) > 1e-9*largest })
		if k < 0 {
			continue
		}
		f := row[k]
		for j := range row {
			row[j] /= f
		}
		row[k] = 1
		for _, r := range rows {
			f := r[k]
			for j := range r {
				r[j] -= f * row[j]
			}
			r[k] = 0
		}
		if rows, lead = append(rows, row), append(lead, k); len(rows) == n {
			break
		}
	}
	if len(rows) < n {
		return nil
	}
	l := &law{parts: make([]part, n)}
	for j, r := range rows {
		l.parts[lead[j]] = part{pick[lead[j]], r[n] / float64(pick[lead[j]].of(points[0]))}
	}
	return l
}

// estimate is a law of sizes that none fits to the byte, the first of which is the one that matters most: along the term
// that is nearest to how the sizes differ between the first point and the one that is furthest from it, bounded by the
// terms to both sides.
func estimate(all []term, points []Point, sizes []int64) *law {
	n, p := sizes[0], points[0]
	each := term{} // goes with every value
	for i := range p {
		each[i] = 1
	}
	l := along(all[1], n, p)
	l.kind, l.low, l.high = estimated, constant(n), along(each, n, p)
	far := 0
	for i := range points {
		if away(p, points[i]) > away(p, points[far]) {
			far = i
		}
	}
	if far == 0 {
		return l
	}
	t := nearestTerm(all, p, points[far], float64(n)/float64(max(sizes[far], 1)))
	l.parts = along(t, n, p).parts
	if t.degree() > each.degree() {
		l.low, l.high = l.high, along(t, n, p)
	}
	return l
}

// notSquared are the terms without the square of the first value: of a batch, items may be longer by chance.
func notSquared(all []term) []term {
	return slices.DeleteFunc(slices.Clone(all), func(t term) bool { return t[0] > 1 })
}

// away is how far two points are apart: by which factors their values differ, in logarithms.
func away(a, b Point) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Abs(math.Log(float64(a[i]) / float64(b[i])))
	}
	return sum
}
