package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot/sorting"
)

// How says by what a stack of one side was known on the other.
type How uint8

const (
	Alone   How = iota // it was not: the other side has no such stack
	Similar            // most of its calls are the same, and it ends in the same function
	Inlined            // the same calls, but for those that only one of the two has
	Renamed            // the same calls, of files or functions with other names
	Shifted            // the same calls, from other lines
	Exact              // the same frames, or the same reason for having none
)

var howNames = [...]string{"unmatched", "similar", "inlined", "renamed", "shifted", "exact"}

func (h How) String() string { return howNames[h] }

// MarshalText is String.
func (h How) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// partners gives each stack of a its partner among those of b, or -1, and says how it was found.
func partners(a, b *footprint.Footprint) (of []int32, how []How, moves *mapping) {
	of, how = make([]int32, len(a.Stacks)), make([]How, len(a.Stacks))
	codeA, codeB := codeOf(a), codeOf(b)
	moves = findMoves(codeA, codeB)

	ids := map[place]int32{}
	id := func(p place) int32 {
		n, ok := ids[p]
		if !ok {
			n = int32(len(ids))
			ids[p] = n
		}
		return n
	}
	theirs := map[string][]int32{} // stacks of b by their places
	for i, stack := range b.Stacks {
		k := keyOf(stack, func(row int32) int32 { return id(placeOf(&b.Frames[row])) })
		theirs[k] = append(theirs[k], int32(i))
	}
	taken := make([]bool, len(b.Stacks))
	for i, stack := range a.Stacks {
		of[i] = -1
		least := Exact
		k := keyOf(stack, func(row int32) int32 {
			p := placeOf(&a.Frames[row])
			to := moves.of(p)
			switch {
			case to.function != p.function && frames.Base(to.file) == frames.Base(p.file) && to.name == p.name:
				// the same file, in another folder
			case to.function != p.function:
				least = min(least, Renamed)
			}
			if to.line != p.line {
				least = min(least, Shifted)
			}
			return id(to)
		})
		if same := theirs[k]; len(same) > 0 {
			of[i], how[i] = same[0], least
			theirs[k] = same[1:]
			taken[same[0]] = true
		}
	}
	resemble(codeA, codeB, moves, of, how, taken)
	return of, how, moves
}

// keyOf makes a key of a stack, of numbers that its frames have.
func keyOf(stack []int32, number func(row int32) int32) string {
	out := make([]byte, 0, 4*len(stack))
	for _, row := range stack {
		n := number(row)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return string(out)
}

// resemble finds partners for stacks whose calls are mostly those of another: code was put in between, inlined, or split
// off. They end in the same function of the program, or else they allocated blocks of the same sizes.
func resemble(a, b *code, moves *mapping, of []int32, how []How, taken []bool) {
	cells := maxCells
	by := func(key func(c *code, s *chain) string, least float64, score func(x, y int32) float64) {
		mine := calls(a, moves, key, func(i int) bool { return of[i] < 0 })
		theirs := calls(b, nil, key, func(i int) bool { return !taken[i] })
		for _, key := range slices.Sorted(maps.Keys(mine)) {
			from, to := mine[key], theirs[key]
			for x, y := range pairs(rows(len(from)), rows(len(to)), least, func(x, y int) float64 {
				return likeness(from[x].calls, to[y].calls, &cells) * score(from[x].stack, to[y].stack)
			}) {
				i, j := from[x].stack, to[y].stack
				of[i], how[i], taken[j] = j, Similar, true
				if isWithin(from[x].calls, to[y].calls) {
					how[i] = Inlined
				}
			}
		}
	}
	most := usualRatio(a, b, of)
	by(func(_ *code, s *chain) string { return s.site.file + "\x00" + s.site.name }, 0.6, func(x, y int32) float64 {
		grown := nearness(int64(float64(a.bytes[x])*most), b.bytes[y])
		if !alike(a.blocks[x], b.blocks[y], most) {
			return 0
		}
		return (3 + max(grown, 0.8*nearness(a.bytes[x], b.bytes[y]))) / 4 // most grew so
	})
	// Or they have as many blocks, each larger by the factor that most others are.
	if most != 1 {
		by(func(c *code, s *chain) string {
			var counts []int64
			for _, z := range c.blocks[s.stack] {
				counts = append(counts, z.Count)
			}
			return fmt.Sprint(counts)
		}, 0.4, func(x, y int32) float64 {
			if isNear(float64(b.bytes[y])/float64(a.bytes[x]), most) {
				return 1
			}
			return 0
		})
	}
	// Or the same blocks.
	by(func(c *code, s *chain) string { return fmt.Sprint(c.blocks[s.stack]) }, 0.4, func(x, y int32) float64 { return 1 })
}

// alike reports whether blocks may be of the same tensors: some have the same size on both sides, or one larger by the
// usual factor, or by its square as attention scores do.
func alike(a, b []footprint.Size, most float64) bool {
	for _, x := range a {
		for _, by := range []float64{1, most, most * most} {
			size := float64(x.Requested) * by
			at, _ := slices.BinarySearchFunc(b, size*(1-near), func(y footprint.Size, least float64) int {
				return cmp.Compare(float64(y.Requested), least)
			})
			if at < len(b) && isNear(float64(b[at].Requested), size) {
				return true
			}
		}
	}
	return false
}

// usualRatio is the factor by which most bytes grew whose stacks have a partner, of those that grew or shrank; 1 for none.
func usualRatio(a, b *code, of []int32) float64 {
	ratios := map[float64]int64{}
	var all int64
	for i, j := range of {
		if j < 0 || a.bytes[i] == 0 || b.bytes[j] == 0 {
			continue
		}
		all += max(a.bytes[i], b.bytes[j])
		if a.bytes[i] == b.bytes[j] {
			continue
		}
		r := float64(b.bytes[j]) / float64(a.bytes[i])
		ratios[math.Round(r*200)/200] += max(a.bytes[i], b.bytes[j])
	}
	best, most := 1.0, int64(0)
	for _, r := range slices.Sorted(maps.Keys(ratios)) {
		if n := ratios[r]; n > most {
			best, most = r, n
		}
	}
	if 5*most < all {
		return 1
	}
	return best
}

// chain is a stack as the functions that it calls, innermost first.
type chain struct {
	stack int32
	calls []function
	site  function // what it stands for
}

// calls lists the stacks to keep by their keys.
func calls(c *code, m *mapping, key func(c *code, s *chain) string, keep func(i int) bool) map[string][]chain {
	out := map[string][]chain{}
	for i, stack := range c.f.Stacks {
		if !keep(i) {
			continue
		}
		s := chain{stack: int32(i)}
		function := func(v *attribution.Frame) function {
			at := placeOf(v).function
			if m != nil {
				at = m.function(at)
			}
			return at
		}
		for _, row := range stack {
			s.calls = append(s.calls, function(&c.f.Frames[row]))
		}
		s.site = function(c.f.Place(int32(i)))
		k := key(c, &s)
		out[k] = append(out[k], s)
	}
	return out
}

func rows(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// maxCells bounds the pairs of calls that are compared in all: a second or so.
const maxCells = 1 << 27

// likeness is the share of calls that two stacks have in common, in the same order, 0 to 1.
func likeness(a, b []function, cells *int) float64 {
	// Most stacks have the same ends.
	n := 0
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, n = a[1:], b[1:], n+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b, n = a[:len(a)-1], b[:len(b)-1], n+1
	}
	whole := float64(n + max(len(a), len(b)))
	if *cells -= len(a) * len(b); *cells < 0 {
		return float64(n) / whole
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			before = above
		}
	}
	return float64(n+row[len(b)]) / whole
}

// isWithin reports whether one of two lists has all calls of the other, in the same order.
func isWithin(a, b []function) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, x := range b {
		if len(a) > 0 && a[0] == x {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// match pairs the groups of the sides. Each group is in exactly one pair.
func (r *Result) match() {
	a, b := r.A, r.B
	of, how, moves := partners(a, b)
	r.partners, r.moves = of, moves
	type key struct {
		stack int32
		site  string // of groups without a stack
		use   string
	}
	by := map[key][]int{}
	keyB := func(g *footprint.Group) key { return key{g.Stack, siteKey(g), g.Use.String()} }
	for i := range b.Groups {
		k := keyB(&b.Groups[i])
		by[k] = append(by[k], i)
	}
	used := make([]bool, len(b.Groups))
	var out []Pair
	var left []int
	take := func(k key) int {
		if len(by[k]) == 0 {
			return -1
		}
		i := by[k][0]
		by[k], used[i] = by[k][1:], true
		return i
	}
	for i := range a.Groups {
		g := &a.Groups[i]
		k := key{-1, siteKey(g), g.Use.String()}
		h := Exact
		if g.Stack >= 0 {
			if k.stack, h = of[g.Stack], how[g.Stack]; k.stack < 0 {
				out = append(out, Pair{A: g})
				continue
			}
		}
		if j := take(k); j >= 0 {
			out = append(out, Pair{A: g, B: &b.Groups[j], How: h})
		} else {
			left = append(left, i)
		}
	}
	// The same code, for another purpose.
	others := map[int32][]int{}
	for j := range b.Groups {
		if g := &b.Groups[j]; !used[j] && g.Stack >= 0 {
			others[g.Stack] = append(others[g.Stack], j)
		}
	}
	for _, i := range left {
		g := &a.Groups[i]
		if g.Stack >= 0 {
			if to := others[of[g.Stack]]; len(to) > 0 {
				others[of[g.Stack]] = to[1:]
				used[to[0]] = true
				out = append(out, Pair{A: g, B: &b.Groups[to[0]], How: how[g.Stack]})
				continue
			}
		}
		out = append(out, Pair{A: g})
	}
	// Whoever calls a library first makes its workspace.
	spaces := map[string][]int{} // by their sizes
	for j := range b.Groups {
		if g := &b.Groups[j]; !used[j] && g.Use == category.Workspace {
			spaces[fmt.Sprint(g.Sizes)] = append(spaces[fmt.Sprint(g.Sizes)], j)
		}
	}
	for i := range out {
		p := &out[i]
		if p.B != nil || p.A.Use != category.Workspace {
			continue
		}
		if sizes := fmt.Sprint(p.A.Sizes); len(spaces[sizes]) > 0 {
			j := spaces[sizes][0]
			p.B, p.How, used[j], spaces[sizes] = &b.Groups[j], Similar, true, spaces[sizes][1:]
		}
	}
	for j := range b.Groups {
		if !used[j] {
			out = append(out, Pair{B: &b.Groups[j]})
		}
	}
	sorting.Stable(out, func(x, y Pair) int { return cmp.Compare(abs(y.Delta()), abs(x.Delta())) })
	r.Pairs = out
}

// siteKey tells groups without a stack apart, which have nothing but why there is none.
func siteKey(g *footprint.Group) string {
	if g.Stack >= 0 {
		return ""
	}
	return g.Site
}

func rounded(g *footprint.Group) int64 {
	if g == nil {
		return 0
	}
	return g.Rounded
}

func abs(n int64) int64 { return max(n, -n) }
