package fit

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// matcher finds for each row of one recording the row of another that the same call of the program made.
type matcher struct {
	a, b     *recording
	terms    []term
	partners []int32 // by row of a, -1 for none
	ratios   []ratio // by which sizes differ
}

// ratio is how a term differs between two points.
type ratio struct{ a, b int64 }

func (r ratio) reduced() ratio {
	a, b := r.a, r.b
	for b != 0 {
		a, b = b, a%b
	}
	return ratio{r.a / a, r.b / a}
}

// match gives the partners of a's rows among b's.
func match(a, b *recording, all []term) []int32 {
	m := &matcher{a: a, b: b, terms: all, partners: slices.Repeat([]int32{-1}, len(a.Timeline.Lives))}
	for _, t := range all {
		r := ratio{t.of(a.At), t.of(b.At)}
		if r = r.reduced(); !slices.Contains(m.ratios, r) {
			m.ratios = append(m.ratios, r)
		}
	}
	m.old()
	if a.steps.Unit != b.steps.Unit || a.numSteps() < 2 || b.numSteps() < 2 {
		m.spans(span{a.warm, len(a.Timeline.Lives)}, span{b.warm, len(b.Timeline.Lives)})
		return m.partners
	}
	m.spans(a.before(), b.before())
	for i := range a.numSteps() {
		m.spans(a.step(i), b.step(m.stepLike(i)))
	}
	return m.partners
}

// stepLike is the step of b that is most like one of a: that of the same number, unless another has more of its code.
// What a loop repeats counts once: there are more of it with higher values.
func (m *matcher) stepLike(i int) int {
	n := m.b.numSteps()
	count := func(r *recording, s span) map[int32]int {
		of := map[int32]int{}
		starts := r.runs(s, false)
		for _, row := range starts[:len(starts)-1] {
			of[r.stackOf(row)]++
		}
		return of
	}
	mine := count(m.a, m.a.step(i))
	best, least := 0, math.MaxInt
	tried := map[int]bool{}
	for _, k := range []int{i, i - 1, i + 1, n - 2, n - 1, n / 2} {
		if k = min(max(k, 0), n-1); tried[k] {
			continue
		}
		tried[k] = true
		theirs := count(m.b, m.b.step(k))
		apart := 0
		for stack, c := range mine {
			apart += max(c-theirs[stack], theirs[stack]-c)
		}
		for stack, c := range theirs {
			if mine[stack] == 0 {
				apart += c
			}
		}
		if apart < least {
			best, least = k, apart
		}
	}
	return best
}

// scales reports whether two sizes are those of one simple law.
func (m *matcher) scales(a, b int64) bool {
	for _, r := range m.ratios {
		if a*r.b == b*r.a { // sizes and ratios are far from 1<<63 together
			return true
		}
	}
	return false
}

// runs are the rows of a span at which rows of another code or size begin than that before, and the span's end; with single
// every row is one.
func (r *recording) runs(s span, single bool) (out []int) {
	for row := s.from; row < s.to; row++ {
		if single || row == s.from || r.stackOf(row) != r.stackOf(row-1) ||
			r.Timeline.Lives[row].Requested != r.Timeline.Lives[row-1].Requested {
			out = append(out, row)
		}
	}
	return append(out, s.to)
}

// turn is the place of a request among those that the same code makes in a row.
type turn struct{ nth, of int }

// turns are the places of runs of rows. They are not known of requests without a stack, which may be of any code.
func (r *recording) turns(runs []int) []turn {
	out := make([]turn, len(runs))
	for from := 0; from < len(out); {
		to := from + 1
		for to < len(out) && r.stackOf(runs[to]) == r.stackOf(runs[from]) {
			to++
		}
		if r.Timeline.Lives[runs[from]].Stack != snapshot.EmptyStack {
			for i := from; i < to; i++ {
				out[i] = turn{i - from, to - from}
			}
		}
		from = to
	}
	return out
}

// spans aligns rows of both. Where they differ in too much to be looked over a loop over the items of a batch may be why: then
// what it repeats counts once, if the rest is little enough, be it one request or many: as more of them are paired.
func (m *matcher) spans(a, b span) {
	pairs, all := m.pairs(a, b, true)
	if !all {
		if once, few := m.pairs(a, b, false); few {
			pairs = once
		}
		rows := 0
		for _, p := range pairs {
			rows += p.rows
		}
		if x := m.fold(a, b); x != nil && x.count() > rows {
			m.unfold(x)
			return
		}
	}
	x, y := a.from, b.from // behind the last pair
	for _, p := range pairs {
		m.gap(between(x, p.a), between(y, p.b))
		for k := range p.rows {
			m.partners[p.a+k] = int32(p.b + k)
		}
		x, y = p.a+p.rows, p.b+p.rows
	}
	m.gap(between(x, a.to), between(y, b.to))
}

// between are the rows from one on, before another.
func between(from, to int) []int {
	out := make([]int, to-from)
	for i := range out {
		out[i] = from + i
	}
	return out
}

// pair is rows that follow each other in both recordings, from a and b on.
type pair struct{ a, b, rows int }

// pairs aligns runs of rows, or single ones. It reports whether it looked all differences over.
func (m *matcher) pairs(a, b span, single bool) (out []pair, all bool) {
	runsA, runsB := m.a.runs(a, single), m.b.runs(b, single)
	all = m.inOrder(runsA[:len(runsA)-1], runsB[:len(runsB)-1], func(i, j int) {
		out = append(out, pair{runsA[i], runsB[j], min(runsA[i+1]-runsA[i], runsB[j+1]-runsB[j])})
	})
	return out, all
}

// inOrder gives the pairs of rows of both that are of the same call, in order: code that asks as often in both does so in the
// same order, whatever the sizes. It reports whether it looked all differences over.
func (m *matcher) inOrder(a, b []int, give func(i, j int)) bool {
	turnsA, turnsB := m.a.turns(a), m.b.turns(b)
	livesA, livesB := m.a.Timeline.Lives, m.b.Timeline.Lives
	back := m.a.midway() || m.b.midway() // where they begin is chance
	place := func(i, j int) (int, int) {
		if back {
			return len(a) - 1 - i, len(b) - 1 - j
		}
		return i, j
	}
	scales := func(i, j int) bool {
		i, j = place(i, j)
		return m.scales(livesA[a[i]].Requested, livesB[b[j]].Requested)
	}
	same := func(i, j int) bool {
		x, y := place(i, j)
		return m.a.stackOf(a[x]) == m.b.stackOf(b[y]) && (turnsA[x] == turnsB[y] && turnsA[x].of > 0 || scales(i, j))
	}
	var found [][2]int
	all := align(len(a), len(b), same, func(i, j int) { found = append(found, [2]int{i, j}) })
	gather(found, len(a), len(b), same, func(i, j int) bool {
		i, j = place(i, j)
		return livesA[a[i]].Requested == livesB[b[j]].Requested
	})
	slide(found, len(a), len(b), same, scales)
	for k, f := range found {
		found[k][0], found[k][1] = place(f[0], f[1])
	}
	if back {
		slices.Reverse(found)
	}
	for _, f := range found {
		give(f[0], f[1])
	}
	return all
}

// gap pairs what lies between rows that have partners, of the same code: in order, or where there are more on one side
// those whose sizes are likelier.
func (m *matcher) gap(a, b []int) {
	if len(a) == 0 || len(b) == 0 {
		return
	}
	mine, theirs := map[int32][]int{}, map[int32][]int{}
	for _, row := range a {
		mine[m.a.stackOf(row)] = append(mine[m.a.stackOf(row)], row)
	}
	for _, row := range b {
		theirs[m.b.stackOf(row)] = append(theirs[m.b.stackOf(row)], row)
	}
	for _, stack := range slices.Sorted(maps.Keys(mine)) {
		rows, others := mine[stack], theirs[stack]
		if len(rows) == len(others) {
			for k, row := range rows {
				m.partners[row] = int32(others[k])
			}
			continue
		}
		m.likeliest(rows, others)
	}
}

// mostLikely bounds the pairs that are compared of one stack in one gap.
const mostLikely = 1 << 16

// likeliest pairs rows in order so that their sizes are as likely as can be.
func (m *matcher) likeliest(rows, others []int) {
	if len(others) == 0 || len(rows)*len(others) > mostLikely {
		return
	}
	lo, hi := 1.0, 1.0 // of b to a
	for _, r := range m.ratios {
		q := float64(r.b) / float64(r.a)
		lo, hi = min(lo, q), max(hi, q)
	}
	price := func(row, other int) float64 {
		a, b := m.a.Timeline.Lives[row].Requested, m.b.Timeline.Lives[other].Requested
		if m.scales(a, b) {
			return 0
		}
		q := float64(b) / float64(a)
		if lo <= q && q <= hi {
			return 0.5
		}
		return 0.5 + math.Abs(math.Log(q/min(max(q, lo), hi)))
	}
	w := len(others) + 1
	cost := make([]float64, (len(rows)+1)*w)
	for i := len(rows); i >= 0; i-- {
		for j := len(others); j >= 0; j-- {
			switch {
			case i == len(rows):
				cost[i*w+j] = float64(len(others) - j)
			case j == len(others):
				cost[i*w+j] = float64(len(rows) - i)
			default:
				cost[i*w+j] = min(1+cost[(i+1)*w+j], 1+cost[i*w+j+1], price(rows[i], others[j])+cost[(i+1)*w+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(rows) && j < len(others); {
		switch cost[i*w+j] {
		case price(rows[i], others[j]) + cost[(i+1)*w+j+1]:
			m.partners[rows[i]] = int32(others[j])
			i, j = i+1, j+1
		case 1 + cost[(i+1)*w+j]:
			i++
		default:
			j++
		}
	}
}

// old pairs blocks from before the trace: by code and size, then by code and how sizes scale, in the order of sizes.
func (m *matcher) old() {
	type class = int32 // the stack
	group := func(r *recording) map[class][]int {
		of := map[class][]int{}
		for row := range r.warm {
			k := r.stackOf(row)
			of[k] = append(of[k], row)
		}
		for _, rows := range of {
			sorting.Stable(rows, func(x, y int) int {
				return cmp.Compare(r.Timeline.Lives[x].Requested, r.Timeline.Lives[y].Requested)
			})
		}
		return of
	}
	mine, theirs := group(m.a), group(m.b)
	for k, rows := range mine {
		others := theirs[k]
		for _, r := range m.ratios {
			rows, others = m.merge(rows, others, r)
		}
		m.likeliest(rows, others)
	}
}

// merge pairs rows whose sizes differ by a ratio, both in the order of sizes, and gives those that are left.
func (m *matcher) merge(rows, others []int, r ratio) (leftRows, leftOthers []int) {
	for len(rows) > 0 && len(others) > 0 {
		a, b := m.a.Timeline.Lives[rows[0]].Requested*r.b, m.b.Timeline.Lives[others[0]].Requested*r.a
		switch {
		case a == b:
			m.partners[rows[0]] = int32(others[0])
			rows, others = rows[1:], others[1:]
		case a < b:
			leftRows, rows = append(leftRows, rows[0]), rows[1:]
		default:
			leftOthers, others = append(leftOthers, others[0]), others[1:]
		}
	}
	return append(leftRows, rows...), append(leftOthers, others...)
}
