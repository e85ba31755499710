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

// gather moves a few pairs that lie between two parts which only one of two sequences has, in front of both or behind them, so that these
// are one part: the further passes of a loop lie together. More of the pairs must be good there.
func gather(pairs [][2]int, n, m int, same, good func(i, j int) bool) {
	for from := 0; from < len(pairs); {
		to := from + 1
		for to < len(pairs) && pairs[to] == [2]int{pairs[to-1][0] + 1, pairs[to-1][1] + 1} {
			to++
		}
		last, next := [2]int{-1, -1}, [2]int{n, m}
		if from > 0 {
			last = pairs[from-1]
		}
		if to < len(pairs) {
			next = pairs[to]
		}
		for side := range 2 {
			before, behind := pairs[from][side]-last[side]-1, next[side]-pairs[to-1][side]-1
			one := pairs[from][1-side] == last[1-side]+1 && pairs[to-1][1-side] == next[1-side]-1
			if one && to-from < min(before, behind) && !move(pairs[from:to], side, behind, same, good) {
				move(pairs[from:to], side, -before, same, good)
			}
		}
		from = to
	}
}

// move moves pairs by so many items of a side, if they are the same there and more of them are good.
func move(pairs [][2]int, side, by int, same, good func(i, j int) bool) bool {
	gain := 0
	for _, p := range pairs {
		if good(p[0], p[1]) {
			gain--
		}
		if p[side] += by; !same(p[0], p[1]) {
			return false
		}
		if good(p[0], p[1]) {
			gain++
		}
	}
	if gain <= 0 {
		return false
	}
	for k := range pairs {
		pairs[k][side] += by
	}
	return true
}

// slide moves what only one of two sequences has, of n and m items, up between the pairs before it if more of them are good then: an
// alignment pairs what is the same as early as it can.
func slide(pairs [][2]int, n, m int, same, good func(i, j int) bool) {
	next := [2]int{n, m}
	for k := len(pairs) - 1; k >= 0; k-- {
		more := [2]int{next[0] - pairs[k][0] - 1, next[1] - pairs[k][1] - 1}
		if min(more[0], more[1]) == 0 && more[0] != more[1] {
			for moved := range better(pairs[:k+1], more, same, good) {
				pairs[k-moved][0] += more[0]
				pairs[k-moved][1] += more[1]
			}
		}
		next = pairs[k]
	}
}

// better is how many of the last pairs are best behind so many items more.
func better(pairs [][2]int, more [2]int, same, good func(i, j int) bool) (moved int) {
	last := pairs[len(pairs)-1]
	gain, most := 0, 0
	for n := range pairs {
		i, j := last[0]-n, last[1]-n
		if pairs[len(pairs)-1-n] != [2]int{i, j} || !same(i+more[0], j+more[1]) {
			break
		}
		if good(i, j) {
			gain--
		}
		if good(i+more[0], j+more[1]) {
			gain++
		}
		if gain > most {
			moved, most = n+1, gain
		}
	}
	return moved
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
