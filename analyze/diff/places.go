package diff

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot/sorting"
)

// function is a function of a file, and place a line in it.
type function struct{ file, name string }

func (f *function) String() string { return f.name + " (" + frames.Base(f.file) + ")" }

type place struct {
	function
	line int32
}

func placeOf(f *attribution.Frame) place { return place{function{f.File, f.Name}, f.Line} }

// code is what one side's stacks show of the program: its functions, their lines, and what each line leads to.
type code struct {
	f         *footprint.Footprint
	bytes     []int64                             // requested, by stack
	files     map[string]map[string]int64         // requested bytes by file and name of function
	functions map[function]map[int32]*consequence // by line
	// blocks are those of each stack by the bytes that were requested, smallest first: what the allocator took for them
	// depends on what was free.
	blocks [][]footprint.Size
}

// consequence is what one line leads to.
type consequence struct {
	bytes int64              // requested
	calls map[function]int64 // requested bytes below each function that it calls; of the line itself, below none
	sizes map[int64]int64    // how many blocks of a size it allocates itself
	count int64              // of them
}

func codeOf(f *footprint.Footprint) *code {
	c := &code{f: f, bytes: make([]int64, len(f.Stacks)), files: map[string]map[string]int64{},
		functions: map[function]map[int32]*consequence{}}
	c.blocks = make([][]footprint.Size, len(f.Stacks))
	for i := range f.Groups {
		if g := &f.Groups[i]; g.Stack >= 0 {
			c.bytes[g.Stack] += g.Requested
			c.blocks[g.Stack] = append(c.blocks[g.Stack], g.Sizes...)
		}
	}
	for i := range c.blocks {
		c.blocks[i] = requests(c.blocks[i])
	}
	for i, stack := range f.Stacks {
		var below function
		for depth, row := range stack {
			at := placeOf(&f.Frames[row])
			if c.files[at.file] == nil {
				c.files[at.file] = map[string]int64{}
			}
			c.files[at.file][at.name] += c.bytes[i]
			lines := c.functions[at.function]
			if lines == nil {
				lines = map[int32]*consequence{}
				c.functions[at.function] = lines
			}
			l := lines[at.line]
			if l == nil {
				l = &consequence{calls: map[function]int64{}, sizes: map[int64]int64{}}
				lines[at.line] = l
			}
			l.bytes += c.bytes[i]
			l.calls[below] += c.bytes[i]
			if depth == 0 {
				for _, s := range c.blocks[i] {
					l.sizes[s.Requested] += s.Count
					l.count += s.Count
				}
			}
			below = at.function
		}
	}
	return c
}

// requests sums blocks up by the bytes that were requested.
func requests(sizes []footprint.Size) (out []footprint.Size) {
	sorting.By(sizes, compareSizes)
	for _, z := range sizes {
		if n := len(out); n > 0 && out[n-1].Requested == z.Requested {
			out[n-1].Count += z.Count
		} else {
			out = append(out, footprint.Size{Requested: z.Requested, Count: z.Count})
		}
	}
	return out
}

// mapping says where the code of one side is on the other, for what moved: files that were renamed, functions, lines.
type mapping struct {
	files     map[string]string
	functions map[function]function
	lines     map[place]int32 // of functions of the one side
	to        *code           // the other side
}

// any reports whether code moved.
func (m *mapping) any() bool { return len(m.files)+len(m.functions)+len(m.lines) > 0 }

// runs reports whether stacks of the other side have a line.
func (m *mapping) runs(p place) bool { return m.to.functions[p.function][p.line] != nil }

// of is where a place of the one side is on the other.
func (m *mapping) of(p place) place {
	to := place{m.function(p.function), p.line}
	if line, ok := m.lines[p]; ok {
		to.line = line
	}
	return to
}

func (m *mapping) function(f function) function {
	if to, ok := m.functions[f]; ok {
		return to
	}
	if to, ok := m.files[f.file]; ok {
		f.file = to
	}
	return f
}

// findMoves compares the code of two sides.
func findMoves(a, b *code) *mapping {
	m := &mapping{functions: map[function]function{}, lines: map[place]int32{}, to: b}
	m.files = pairs(missing(a.files, b.files), missing(b.files, a.files), 0.4, func(x, y string) float64 {
		near := 0.0
		if frames.Base(x) == frames.Base(y) {
			near = 0.5
		}
		return near + overlap(a.files[x], b.files[y])
	})
	m.moveFunctions(a, b)
	for _, f := range sorting.Of(maps.Keys(a.functions), compareFunctions) {
		if there := b.functions[m.function(f)]; there != nil {
			m.moveLines(f, a.functions[f], there)
		}
	}
	return m
}

// moveFunctions finds functions that were renamed, or moved to another file.
func (m *mapping) moveFunctions(a, b *code) {
	taken := map[function]bool{}
	var gone []function
	for f := range a.functions {
		to := m.function(f)
		if b.functions[to] != nil {
			taken[to] = true
		} else {
			gone = append(gone, f)
		}
	}
	var came []function
	for f := range b.functions {
		if !taken[f] {
			came = append(came, f)
		}
	}
	sorting.By(gone, compareFunctions)
	sorting.By(came, compareFunctions)
	calls := func(c *code, f function, m *mapping) map[function]int64 {
		out := map[function]int64{}
		for _, l := range c.functions[f] {
			for g, n := range l.calls {
				if m != nil {
					g = m.function(g)
				}
				out[g] += n
			}
		}
		return out
	}
	m.functions = pairs(gone, came, 0.6, func(x, y function) float64 {
		to := m.function(x)
		switch {
		case to.name == y.name:
			return 0.6 + overlap(calls(a, x, m), calls(b, y, nil))
		case to.file == y.file:
			return overlap(calls(a, x, m), calls(b, y, nil))
		}
		return 0
	})
}

// moveLines aligns the lines of one function: they keep their order, and what they lead to.
func (m *mapping) moveLines(f function, from, to map[int32]*consequence) {
	a, b := slices.Sorted(maps.Keys(from)), slices.Sorted(maps.Keys(to))
	if len(a)*len(b) > maxAligned {
		return
	}
	calls := make([]map[function]int64, len(a)) // as they are on the other side
	for i, line := range a {
		calls[i] = map[function]int64{}
		for g, n := range from[line].calls {
			calls[i][m.function(g)] += n
		}
	}
	// best[i][j] is what lines from i and j on can gain.
	best := make([][]float64, len(a)+1)
	for i := range best {
		best[i] = make([]float64, len(b)+1)
	}
	score := func(i, j int) float64 {
		x, y := from[a[i]], to[b[j]]
		same := overlap(calls[i], y.calls)
		if same == 0 {
			return 0
		}
		return same + overlap(x.sizes, y.sizes) + nearness(x.count, y.count)/2 + nearness(x.bytes, y.bytes)/2
	}
	scores := make([][]float64, len(a))
	stay := 0.0 // what lines gain where they were
	for i := len(a) - 1; i >= 0; i-- {
		scores[i] = make([]float64, len(b))
		for j := len(b) - 1; j >= 0; j-- {
			scores[i][j] = score(i, j)
			if a[i] == b[j] {
				stay += scores[i][j]
			}
			best[i][j] = max(best[i+1][j], best[i][j+1], scores[i][j]+best[i+1][j+1])
		}
	}
	if best[0][0] < moved*stay {
		return
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch best[i][j] {
		case best[i+1][j]:
			i++
		case best[i][j+1]:
			j++
		default:
			if a[i] != b[j] {
				m.lines[place{f, a[i]}] = b[j]
			}
			i, j = i+1, j+1
		}
	}
	// A line that is there on both sides and found no partner must not meet one that moved to it.
	used := map[int32]bool{}
	for i := range a {
		if line, ok := m.lines[place{f, a[i]}]; ok {
			used[line] = true
		}
	}
	for _, line := range a {
		if _, moved := m.lines[place{f, line}]; !moved && used[line] {
			m.lines[place{f, line}] = gone
		}
	}
}

// moved is how much better lines must fit elsewhere than where they were to be taken for moved.
const moved = 1.08

// gone is the line of code that the other side does not have.
const gone = -1

// maxAligned bounds the pairs of lines of one function that are compared.
const maxAligned = 1 << 18

// pairs gives each of from at most one of to, best scores first and none below least. Both are in a fixed order.
func pairs[K comparable](from, to []K, least float64, score func(a, b K) float64) map[K]K {
	type pair struct {
		a, b  int
		score float64
	}
	var all []pair
	if len(from)*len(to) > maxAligned {
		return map[K]K{}
	}
	for i, a := range from {
		for j, b := range to {
			if s := score(a, b); s >= least {
				all = append(all, pair{i, j, s})
			}
		}
	}
	sorting.Stable(all, func(x, y pair) int { return cmp.Compare(y.score, x.score) })
	out, taken := map[K]K{}, make([]bool, len(to))
	for _, p := range all {
		if _, has := out[from[p.a]]; !has && !taken[p.b] {
			out[from[p.a]], taken[p.b] = to[p.b], true
		}
	}
	return out
}

// overlap is how far two weighted sets agree, 0 to 1: the share of keys that both have, each by its share of its own set.
func overlap[K comparable](a, b map[K]int64) float64 {
	var inA, inB int64
	for _, n := range a {
		inA += n
	}
	for _, n := range b {
		inB += n
	}
	if inA == 0 || inB == 0 {
		return 0
	}
	const whole = 1 << 40 // parts are counted, so that their order does not matter
	var both int64
	for k, n := range a {
		both += int64(whole * min(float64(n)/float64(inA), float64(b[k])/float64(inB)))
	}
	return float64(both) / whole
}

// nearness is 1 for equal amounts, and less the further they are apart.
func nearness(a, b int64) float64 {
	if a == b {
		return 1
	}
	return float64(min(a, b)) / float64(max(a, b))
}

// missing lists the keys of a that b lacks, in order.
func missing[V any](a, b map[string]V) []string {
	var out []string
	for k := range a {
		if _, ok := b[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func compareFunctions(a, b function) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.name, b.name))
}
