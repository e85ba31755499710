package fit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/snapshot/sorting"
)

// fold is a list of rows in which some come again with a period, as of a loop.
type fold struct {
	rows   []int
	period int
	loops  []passes
}

// passes are those of a loop, one after another, in the rows of a fold.
type passes struct{ from, count int }

// folding is rows of both recordings in which loops count once, and pairs of them.
type folding struct {
	a, b           []int
	pairs          [][2]int // places in them
	foldsA, foldsB []fold   // as they were made
}

// fold aligns rows of both when loops over the items of a batch count once, however much each pass asks for: first those by
// which the recordings differ most. It is nil where what is left is still too much to be looked over.
func (m *matcher) fold(a, b span) *folding {
	const most = 8 // periods, one after another or in each other
	x := &folding{a: between(a.from, a.to), b: between(b.from, b.to)}
	for range most {
		longer, rows := m.a, x.a
		if len(x.b) > len(x.a) {
			longer, rows = m.b, x.b
		}
		var foldA, foldB fold
		best := 0
		for _, period := range longer.distances(rows) {
			s, t := m.a.fold(x.a, period), m.b.fold(x.b, period)
			if n := nearer(&s, &t); n > best {
				foldA, foldB, best = s, t, n
			}
		}
		if best == 0 {
			return nil
		}
		x.foldsA, x.foldsB = append(x.foldsA, foldA), append(x.foldsB, foldB)
		x.a, x.b, x.pairs = foldA.once(), foldB.once(), nil
		if m.inOrder(x.a, x.b, func(i, j int) { x.pairs = append(x.pairs, [2]int{i, j}) }) {
			return x
		}
	}
	return nil
}

// nearer is how much less two lists differ in length when loops count once. It counts a hundredth where only one has passes: a
// period that the other does not have at all may go with the value itself, as that of a step does.
func nearer(a, b *fold) int {
	x, y := a.extra(), b.extra()
	apart, then := len(a.rows)-len(b.rows), len(a.rows)-x-len(b.rows)+y
	n := max(apart, -apart) - max(then, -then)
	if x == 0 || y == 0 {
		n = (n + 99) / 100
	}
	return n
}

// count is how many rows have a partner.
func (x *folding) count() (n int) {
	for _, p := range x.pairs {
		times := 1
		for k := range x.foldsA {
			_, a := x.foldsA[k].first(x.a[p[0]])
			_, b := x.foldsB[k].first(x.b[p[1]])
			times *= min(a, b)
		}
		n += times
	}
	return n
}

// unfold gives rows their partners: passes of a loop those of the first one, in the same pass.
func (m *matcher) unfold(x *folding) {
	i, j := 0, 0 // behind the last pair
	for _, p := range x.pairs {
		m.gap(x.a[i:p[0]], x.b[j:p[1]])
		m.partners[x.a[p[0]]] = int32(x.b[p[1]])
		i, j = p[0]+1, p[1]+1
	}
	m.gap(x.a[i:], x.b[j:])
	for k := len(x.foldsA) - 1; k >= 0; k-- {
		a, b := &x.foldsA[k], &x.foldsB[k]
		for _, l := range a.loops {
			for i := l.from; i < l.from+a.period; i++ {
				j, count := b.first(int(m.partners[a.rows[i]]))
				for pass := 1; pass < min(l.count, count); pass++ {
					m.partners[a.rows[i+pass*a.period]] = int32(b.rows[j+pass*b.period])
				}
			}
		}
	}
}

// fold finds the loops with a period in a list of rows.
func (r *recording) fold(rows []int, period int) fold {
	f := fold{rows: rows, period: period}
	for i := 0; i+period < len(rows); {
		to := r.again(rows, i, period)
		if n := (to - i) / period; n > 0 {
			f.loops = append(f.loops, passes{i, n + 1})
			to = i + (n+1)*period
		}
		i = max(to, i+1)
	}
	return f
}

// again is how far each row from one on is like that a period behind it, but for a few: where a whole pass is of others, the loop is over,
// however long it was.
func (r *recording) again(rows []int, from, period int) (to int) {
	const few, near = 16, 8  // of so many one, and how many more
	other, last := 0, from-1 // last that was like it
	for to = from; to+period < len(rows); to++ {
		if r.alike(rows[to], rows[to+period]) {
			last = to
			continue
		}
		if other++; to == from || few*other > to-from+near || to-last >= 2*period {
			break
		}
	}
	for to > from && !r.alike(rows[to-1], rows[to-1+period]) {
		to--
	}
	return to
}

// distances are how far it is to where rows come again that follow each other in the same way, the likeliest of a loop first.
func (r *recording) distances(rows []int) []int {
	const window, tries, base = 16, 8, 0x9E3779B97F4A7C15
	codes := map[request]uint64{}
	last, votes := map[uint64]int{}, map[int]int{} // by sum over a window; by distance, in rows
	var sum, oldest uint64 = 0, 1
	for range window {
		oldest *= base
	}
	code := make([]uint64, len(rows))
	for i, row := range rows {
		k := r.request(row)
		if codes[k] == 0 {
			codes[k] = uint64(len(codes)) + 1
		}
		code[i] = codes[k]
		if sum = sum*base + code[i]; i >= window {
			sum -= code[i-window] * oldest
		}
		if was, ok := last[sum]; ok {
			votes[i-was] += i - was
		}
		last[sum] = i
	}
	tried := sorting.Of(maps.Keys(votes), func(a, b int) int { return cmp.Or(cmp.Compare(votes[b], votes[a]), a-b) })
	return tried[:min(len(tried), tries)]
}

// extra is how many rows there are beside the first passes.
func (f *fold) extra() (n int) {
	for _, l := range f.loops {
		n += (l.count - 1) * f.period
	}
	return n
}

// once are the rows with one pass of each loop.
func (f *fold) once() []int {
	var out []int
	at := 0
	for _, l := range f.loops {
		out = append(out, f.rows[at:l.from+f.period]...)
		at = l.from + l.count*f.period
	}
	return append(out, f.rows[at:]...)
}

// first is the place of a row, and of how many passes it is in the first one: 1 for what is in no loop, 0 in other passes.
func (f *fold) first(row int) (i, count int) {
	i, ok := slices.BinarySearch(f.rows, row)
	if !ok {
		return -1, 0
	}
	k, exact := slices.BinarySearchFunc(f.loops, i, func(l passes, at int) int { return cmp.Compare(l.from, at) })
	if !exact {
		k--
	}
	if k < 0 || i >= f.loops[k].from+f.loops[k].count*f.period {
		return i, 1
	}
	if i >= f.loops[k].from+f.period {
		return i, 0
	}
	return i, f.loops[k].count
}
