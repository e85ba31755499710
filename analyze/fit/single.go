package fit

import (
	"math"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/snapshot"
)

// guess gives the requests of the only recording laws by what they are for: what a model is and what an optimizer keeps
// is constant, what flows through it goes with the value, and scratch memory of kernels mostly does not. Where memory could
// be either it is bounded by both; and where the value is no batch, by its square.
func (m *model) guess(all []term, v value) {
	g := newGuesser(m, v)
	powers := m.powers()
	type class struct {
		size, stays    int64
		grows, certain bool
		power          uint8 // of the value, at most
	}
	known := map[class]int32{}
	certain := v != widths && (v != count || m.At[0] >= few) && !g.oneByOne()
	for row := range m.of {
		n := m.Timeline.Lives[row].Requested
		k := class{size: n}
		k.grows, k.certain = g.flows(row)
		k.stays, _ = g.worksIn(row)
		k.certain = k.certain && (certain || !k.grows && v != widths)
		switch {
		case k.grows && v == batch:
			k.power = powers[n]
		case k.grows && v == patches:
			k.power = 3
		case k.grows, v == widths && g.params[n] > 0: // a matrix of a wider model is wider and longer
			k.power = max(powers[n], 2)
		}
		id, ok := known[k]
		if !ok {
			line := along(all[1], n, m.At)
			l := constant(n)
			if k.grows {
				if l = g.growth(n - k.stays); k.stays > 0 {
					l.parts = append(l.parts, constant(k.stays).parts...)
				}
			}
			if l.kind = estimated; !k.certain {
				l.low, l.high = constant(n), line
			}
			if k.power > 1 {
				l.low, l.high = constant(n), along(term{k.power}, n, m.At)
				if k.certain {
					l.low = line
				}
			}
			id = int32(len(m.laws))
			known[k] = id
			m.laws, m.seen = append(m.laws, l), append(m.seen, 1)
		}
		m.of[row] = id
	}
}

// work is what a line asks for to work in, -1 for backward passes, and its size in bytes.
type work struct {
	line int32
	size int64
}

// guesser says which requests of a recording grow with the value that it was made with.
type guesser struct {
	*model
	uses  *category.Table
	value value
	lines []int32 // by stack, the number of its frames of Python: what C++ calls differs within a call
	calls []int   // by row, that behind the last one of its call: requests of one line in a row
	turns []bool  // by line, whether steps free some of what it makes

	copies map[int32]bool // lines that copy all that a model is

	params map[int64]int64 // by size, how many parameters there are
	left   map[int64]int64 // by size, how many requests of forward passes outlast their calls
	// Sizes of scratch memory of convolutions, of copies of parameters, and of what is made of all pairs.
	scratch, casts, pairs map[int64]bool
	works                 map[work]int64 // of what libraries work in and goes with the value, how much does not
	conv                  []bool         // by stack, of a convolution
	evaluates             []evaluation   // by stack, nil for none
	patch                 int64          // side of the patches of an image, 0 for none
}

func newGuesser(m *model, v value) *guesser {
	lives := m.Timeline.Lives
	g := &guesser{model: m, uses: m.categories(), value: v, calls: make([]int, len(lives)),
		turns: make([]bool, m.Snapshot.Stacks.Len()+1), conv: convolutions(m.Snapshot),
		params: map[int64]int64{}, left: map[int64]int64{}, scratch: map[int64]bool{}, pairs: map[int64]bool{},
		works: map[work]int64{}}
	ofPython := codes{frames: map[frameKey]int32{}, stacks: map[string]int32{}, python: true}
	g.lines = ofPython.number(m.Snapshot)
	none := g.lines[snapshot.EmptyStack]
	for row := len(lives) - 1; row >= 0; row-- {
		l := &lives[row]
		line := g.lines[l.Stack]
		if g.calls[row] = row + 1; row+1 < len(lives) && g.lines[lives[row+1].Stack] == line && line != none {
			g.calls[row] = g.calls[row+1]
		}
		use, _ := g.uses.Of(int32(row))
		old := row < m.bounds[0]
		if use == category.Parameter || old && l.Freed < 0 {
			g.params[l.Requested]++
		}
		if !old && l.Freed >= 0 {
			g.turns[line] = true
		}
	}
	g.findCasts()
	g.findCopies()
	g.findWorks()
	for row := m.bounds[0]; row < len(lives); row++ {
		l := &lives[row]
		switch {
		case m.phase(l.Stack) != "forward" || g.isCast(row):
		case !g.inside(row):
			g.left[l.Requested]++
		case g.conv[l.Stack] && !v.isSide() && !g.isWork(row):
			g.scratch[l.Requested] = true
		}
	}
	switch v {
	case pixels:
		g.findPatch()
	case batch:
		g.evaluates = m.evaluations()
		g.findPairs()
	default:
		g.findPairs()
	}
	return g
}

// findWorks finds what cuDNN works in. For a convolution that is as much of what flows through as of nothing else,
// for all that is known; for a recurrent layer it is mostly copies of weights, and what flows takes about as much as
// the layer saves for its backward pass. Torch's own layers have much that is gone when they return, cuDNN's have
// that alone.
func (g *guesser) findWorks() {
	recurrent := stacksWith(g.Snapshot, func(file, name string) bool {
		return name == "forward" && frames.IsRecurrent(file)
	})
	lives := g.Timeline.Lives
	add := func(row int, stays int64) {
		g.works[work{g.lines[lives[row].Stack], lives[row].Requested}] = stays
		g.works[work{-1, lives[row].Requested}] = stays // in backward passes
	}
	for row := g.bounds[0]; row < len(lives); row++ {
		l := &lives[row]
		switch {
		case g.phase(l.Stack) != "forward":
		case recurrent[l.Stack]:
			within, saved, n := -1, int64(0), 0
			for k := row; k < g.calls[row]; k++ {
				if g.freedBefore(k, g.calls[row]) {
					within = k
					n++
				} else {
					saved = max(saved, lives[k].Requested)
				}
			}
			if n == 1 {
				add(within, max(lives[within].Requested-saved, 0))
			}
			row = g.calls[row] - 1
		case g.passing(row) && g.conv[l.Stack] && row > 0 && lives[row-1].Stack == l.Stack &&
			!kernel.Unfolds(l.Requested, lives[row-1].Requested):
			add(row, 0)
		}
	}
}

// passing reports whether a row is given back before anything else happens, and no workspace of matrix products.
func (m *model) passing(row int) bool {
	l := &m.Timeline.Lives[row]
	return l.Passing() && !frames.IsWorkspaceSize(l.Requested)
}

func (g *guesser) isWork(row int) bool {
	_, is := g.worksIn(row)
	return is
}

// worksIn reports whether a row is of what findWorks found, and how much of it does not go with the value.
func (g *guesser) worksIn(row int) (stays int64, is bool) {
	l := &g.Timeline.Lives[row]
	line := g.lines[l.Stack]
	if g.phase(l.Stack) == "backward" {
		line = -1
	}
	stays, is = g.works[work{line, l.Requested}]
	return stays, is && (g.passing(row) || g.inside(row))
}

// inside reports whether a request is freed before another call makes one, as what only its call uses.
func (g *guesser) inside(row int) bool { return g.freedBefore(row, g.calls[row]) }

func (g *guesser) freedBefore(row, other int) bool {
	freed := g.Timeline.Lives[row].Freed
	return freed >= 0 && (other >= len(g.of) || g.Timeline.Lives[other].Born > freed)
}

// findCasts finds out whether the program runs under autocast: it makes copies of nearly all that its model has, but for
// embeddings, which are not copied.
func (g *guesser) findCasts() {
	const nearly = 0.8
	found := map[int64]bool{}
	for row := g.bounds[0]; row < len(g.of); row++ {
		if g.mayCast(row) {
			found[g.Timeline.Lives[row].Requested] = true
		}
	}
	var all, copied, largest int64
	for n, count := range g.params {
		if found[n/2] && n%2 == 0 {
			copied += n * count
		} else {
			largest = max(largest, n*count)
		}
		all += n * count
	}
	if copied > 0 && float64(copied) >= nearly*float64(all-largest) {
		g.casts = found
	}
}

// findCopies finds the code that copies a model, as of its best weights: it makes half of the sizes of parameters, or more.
func (g *guesser) findCopies() {
	type made struct {
		line int32
		size int64
	}
	known := map[made]bool{}
	sizes := map[int32]int{}
	for row := g.bounds[0]; row < len(g.of); row++ {
		l := &g.Timeline.Lives[row]
		if k := (made{g.lines[l.Stack], l.Requested}); g.params[k.size] > 0 && !known[k] {
			known[k] = true
			sizes[k.line]++
		}
	}
	g.copies = map[int32]bool{}
	for line, n := range sizes {
		g.copies[line] = n > 1 && 2*n >= len(g.params)
	}
}

// mayCast reports whether a request of a forward pass may be the copy of a parameter, of half its size, that autocast makes
// for an operation: it comes before that operation's result, in the same call.
func (g *guesser) mayCast(row int) bool {
	const small = 64 // a result is no smaller than such a part, as the statistics of a norm are
	const soon = 64  // requests within which it comes
	lives := g.Timeline.Lives
	n := lives[row].Requested
	if g.params[2*n] == 0 || g.phase(lives[row].Stack) != "forward" {
		return false
	}
	for later := row + 1; later < min(g.calls[row], row+soon); later++ {
		if !g.inside(later) && lives[later].Requested > n/small {
			return true
		}
	}
	return false
}

func (g *guesser) isCast(row int) bool {
	return g.casts[g.Timeline.Lives[row].Requested] && g.mayCast(row)
}

func (g *guesser) evaluation(stack snapshot.StackID) evaluation {
	if g.evaluates == nil {
		return noEvaluation
	}
	return g.evaluates[stack]
}

// flows reports whether a request grows with the value, and whether that is certain.
func (g *guesser) flows(row int) (grows, certain bool) {
	l := &g.Timeline.Lives[row]
	n := l.Requested
	use, trust := g.uses.Of(int32(row))
	old := row < g.warm
	switch use {
	case category.Gradient: // of a parameter, or of what flows
		grows, certain = trust == category.Low, trust != category.Medium
		if trust == category.Medium && len(g.params) > 0 && g.params[n] == 0 && g.left[n] > 0 {
			grows = true
		}
	case category.AutogradSaved, category.Activation, category.Input, category.KVCache:
		grows, certain = !old, true
	case category.Temporary:
		grows = !old
	case category.Other: // of the program's own: made anew in each step
		grows = row >= g.bounds[0] && g.turns[g.lines[l.Stack]] && !g.copies[g.lines[l.Stack]]
	default:
		return false, true
	}
	if g.isWork(row) {
		return true, false
	}
	if grows && n%g.At[0] != 0 {
		grows, certain = g.value != batch, g.value == batch
	}
	if !grows {
		return false, certain
	}
	switch phase := g.phase(l.Stack); {
	case g.evaluation(l.Stack) == ownBatch:
		return false, false
	case phase == "optimizer":
		return false, certain
	case phase == "backward" && g.left[n] == 0 && (g.params[n] > 0 || g.casts[n] || g.scratch[n]):
		return false, false
	case phase != "backward" && g.inside(row) && g.conv[l.Stack] && !g.value.isSide(),
		phase == "forward" && g.freedBefore(row, row+1) && g.left[n] == 0:
		return false, false // scratch memory: for one item of a batch, or as large for all
	case phase == "forward" && g.isCast(row):
		return false, false
	case g.evaluation(l.Stack) == sameBatch, g.params[n] > 0, g.params[2*n] > 0: // may be a gradient, or made of a parameter alone
		certain = false
	}
	const briefly = 8 // events that scratch memory of a kernel lives at most
	if l.Freed >= 0 && l.Freed-l.Born <= briefly {
		certain = false
	}
	return true, certain
}

// powers are the sizes of what may be made of all pairs or triples of a batch, as scores of its items by each other are, with
// the power of the value by which they may grow: of what the program's own code makes, and of matrices that are about as
// wide as the batch. Such a size may be so by chance: it is only bounded by that.
func (m *model) powers() map[int64]uint8 {
	const several, wide, widest = 16, 32, 8 // items, bytes of a pair, and of a triple
	at := m.At[0]
	out := map[int64]uint8{}
	for row := m.bounds[0]; row < len(m.Timeline.Lives); row++ {
		l := &m.Timeline.Lives[row]
		n, phase := l.Requested, m.phase(l.Stack)
		side := int64(math.Sqrt(float64(n / 4)))
		switch {
		case phase != "" && phase != "forward", at > math.MaxInt32:
		case phase == "" && at >= several && n%at == 0 && n/at%(at*at) == 0 && n/at/(at*at) <= widest:
			out[n] = 3
		case phase == "" && side*side*4 == n && side > at && side%at == 0,
			at >= several && n%(at*at) == 0 && n/(at*at) <= wide:
			out[n] = max(out[n], 2)
		}
	}
	return out
}
