package fit

import "slices"

// mostEdits is how many differences an alignment looks over before it settles for the furthest that it came, and goes on
// from there.
const mostEdits = 512

// align pairs the items of two sequences that are the same, in order: as many as there can be (Myers, "An O(ND)
// Difference Algorithm and Its Variations", 1986), or nearly so where the sequences differ in a great deal: then it gives
// false.
func align(n, m int, same func(i, j int) bool, pair func(i, j int)) bool {
	all := true
	for i, j := 0, 0; i < n && j < m; {
		p := path{n: n - i, m: m - j, same: func(x, y int) bool { return same(i+x, j+y) }}
		x, y, rounds := p.furthest()
		p.back(x, y, rounds, func(x, y int) { pair(i+x, j+y) })
		if i, j = i+x, j+y; x+y == 0 {
			break
		}
		all = all && rounds < mostEdits
	}
	return all
}

// path is a search from the beginning of two sequences.
type path struct {
	n, m  int
	same  func(x, y int) bool
	trail [][]int32 // by differences d and diagonal k from -d to d: how far in the first sequence, -1 is nowhere
	pairs [][2]int
}

// enter is where a diagonal is entered with one more difference: down along the second sequence, or along the first. It
// is -1 where neither is possible.
func (p *path) enter(d, k int) (x int, down bool) {
	was := p.trail[d-1]
	x = -1
	if at := k - 1 + d - 1; 0 <= at && at < len(was) && was[at] >= 0 && int(was[at]) < p.n {
		x = int(was[at]) + 1
	}
	if at := k + 1 + d - 1; 0 <= at && at < len(was) && int(was[at]) > x && int(was[at])-k <= p.m {
		return int(was[at]), true
	}
	return x, false
}

// furthest gives the end of both sequences, or how far the search came with the most differences that it may look over.
func (p *path) furthest() (x, y, rounds int) {
	for d := 0; ; d++ {
		now := make([]int32, 2*d+1)
		p.trail = append(p.trail, now)
		best, on := -1, 0
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x, _ = p.enter(d, k)
			}
			for x >= 0 && x < p.n && x-k < p.m && p.same(x, x-k) {
				x++
			}
			now[k+d] = int32(x)
			if k > -d {
				now[k+d-1] = -1
			}
			if x >= 0 && (best < 0 || 2*x-k > 2*best-on) {
				best, on = x, k
			}
		}
		if d == mostEdits || best == p.n && best-on == p.m {
			return best, best - on, d
		}
	}
}

// back follows the search from an end, and gives the pairs in order.
func (p *path) back(x, y, d int, pair func(x, y int)) {
	for ; d >= 0; d-- {
		from, down := 0, false
		if d > 0 {
			from, down = p.enter(d, x-y)
		}
		for ; x > from; x, y = x-1, y-1 {
			p.pairs = append(p.pairs, [2]int{x - 1, y - 1})
		}
		if down {
			y--
		} else {
			x--
		}
	}
	for _, f := range slices.Backward(p.pairs) {
		pair(f[0], f[1])
	}
}
