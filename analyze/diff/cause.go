package diff

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Cause is one reason for a part of the difference.
type Cause struct {
	Kind  Kind    `json:"kind"`
	Bytes int64   `json:"bytes"` // of the difference, below zero where memory shrank
	Ratio float64 `json:"ratio"` // by which sizes or counts changed, of the kinds that have one; else 0
	// Squared is the part of Bytes of blocks that changed by the ratio twice over, as attention scores do with the length
	// of a sequence.
	Squared int64  `json:"squared"`
	Moved   int64  `json:"moved"`    // bytes of each side of the kind Moved, whose Bytes are 0
	PerStep int64  `json:"per_step"` // by how much more active memory grows with each step, of a Leak
	From    string `json:"from"`     // of a Part or Between, where the peak was on side A, "" for nowhere in particular
	To      string `json:"to"`       // and where on side B
	Uses    []Use  `json:"uses"`     // what its memory is for, largest differences first
	Sites   []Site `json:"sites"`    // where it was allocated, largest differences first
}

// Use is the part of a cause that serves one purpose.
type Use struct {
	Category category.Category `json:"category"`
	Bytes    int64             `json:"bytes"`
}

// Site is the part of a cause from one place in code.
type Site struct {
	Site  string `json:"site"`
	Bytes int64  `json:"bytes"`
}

// Kind is what made the difference.
type Kind string

const (
	Leak          Kind = "leak"          // memory that only one side keeps from step to step
	Part          Kind = "part"          // another part of the program peaks, with other code in between
	Between       Kind = "between"       // a side peaks between its passes, such as in the optimizer's step
	Checkpointing Kind = "checkpointing" // saved tensors that are made anew in the backward pass
	Graph         Kind = "graph"         // tensors that were saved for a backward pass, and no more
	Optimizer     Kind = "optimizer"     // another optimizer, or none
	Precision     Kind = "precision"     // numbers of another width: parameters, and what is computed of them
	Width         Kind = "width"         // layers of another width
	Length        Kind = "length"        // what grows with a size of the input, some of it by its square
	Batch         Kind = "batch"         // what grows in proportion to a size of the input
	Scale         Kind = "scale"         // other blocks that have another size by the same factor
	Layers        Kind = "layers"        // more of the same: parameters, and what belongs to them
	Progress      Kind = "progress"      // the peak comes earlier or later in the backward pass
	Count         Kind = "count"         // other blocks of which there are more, or fewer
	New           Kind = "new"           // from code that the other side does not run
	Gone          Kind = "gone"          // from code that this side does not run
	Rounding      Kind = "rounding"      // the same requests, for which the allocator took blocks of other sizes
	Moved         Kind = "moved"         // as many blocks of the same sizes and for the same purpose, from other code
	Unrecorded    Kind = "unrecorded"    // memory of which a file does not say what allocated it
	Changed       Kind = "changed"       // anything else
)

// sorter puts pieces down to causes, each to the first that fits.
type sorter struct {
	r    *Result
	a, b *footprint.Footprint
	left []piece // without a cause yet
	out  []Cause
}

func causes(r *Result) []Cause {
	s := &sorter{r: r, a: r.A, b: r.B}
	for i := range r.Pairs {
		s.left = append(s.left, r.Pairs[i].pieces()...)
	}
	s.moves()
	if sameRequests(r.A, r.B) {
		s.take(Cause{Kind: Rounding}, func(*piece) bool { return true })
	}
	s.leaks()
	s.parts()
	s.recomputes()
	s.stepping()
	for range maxRatios {
		if !s.scales() {
			break
		}
	}
	s.take(Cause{Kind: Rounding}, func(p *piece) bool { return p.law == rounding })
	s.take(Cause{Kind: Optimizer}, func(p *piece) bool { return p.use() == category.OptimizerState && p.law != multiplied })
	s.graphs()
	s.progress()
	for range maxRatios {
		if !s.counts() {
			break
		}
	}
	s.net()
	s.take(Cause{Kind: Unrecorded}, func(p *piece) bool { return !p.any().Known })
	s.take(Cause{Kind: New}, func(p *piece) bool { return p.law == alone && p.A == nil })
	s.take(Cause{Kind: Gone}, func(p *piece) bool { return p.law == alone && p.B == nil })
	s.take(Cause{Kind: Changed}, func(*piece) bool { return true })
	s.out = slices.DeleteFunc(s.out, func(c Cause) bool { return c.Bytes == 0 && c.Moved == 0 && isZero(c.Sites) })
	sorting.Stable(s.out, func(a, b Cause) int { return cmp.Compare(abs(b.Bytes), abs(a.Bytes)) })
	sorting.Stable(s.out, func(a, b Cause) int { return cmp.Compare(a.Moved, b.Moved) }) // last, since it is none
	// A difference is never explained by what went the other way, and by when the peak is only if by nothing else.
	explains := func(c Cause) bool { return (c.Bytes > 0 == (r.Delta() > 0) || r.Delta() == 0) && c.Kind != Moved }
	i := slices.IndexFunc(s.out, func(c Cause) bool {
		return explains(c) && c.Kind != Progress && 10*abs(c.Bytes) >= abs(r.Delta())
	})
	if i < 0 {
		i = slices.IndexFunc(s.out, explains)
	}
	if i > 0 {
		first := s.out[i]
		copy(s.out[1:], s.out[:i])
		s.out[0] = first
	}
	return s.out
}

func isZero(sites []Site) bool {
	return !slices.ContainsFunc(sites, func(s Site) bool { return s.Bytes != 0 })
}

// net sums up what is left of one place and one purpose: a line that keeps another tensor than before has both.
func (s *sorter) net() {
	type key struct {
		site string
		use  category.Category
	}
	index := map[key]int{}
	var out []piece
	for _, p := range s.left {
		if p.law != alone && p.law != mixed || p.law == alone && !p.any().Known {
			out = append(out, p)
			continue
		}
		k := key{p.any().Site, p.use()}
		at, ok := index[k]
		if !ok {
			index[k] = len(out)
			out = append(out, p)
			continue
		}
		q := &out[at]
		if p.law != q.law || (p.A == nil) != (q.A == nil) {
			q.law = mixed
		}
		q.to, q.delta = q.to+p.to, q.delta+p.delta
	}
	s.left = out
}

// moves takes away what one side has from code that the other does not run, where that has as many blocks of the same sizes
// and for the same purpose from other code: a line that was split in two, or a call that others make now.
func (s *sorter) moves() {
	type key struct {
		use  category.Category
		size footprint.Size
	}
	keyOf := func(p *piece) key {
		return key{p.use(), footprint.Size{Requested: p.size.Requested, Rounded: p.size.Rounded}}
	}
	var counts [2]map[key]int64
	for side := range counts {
		counts[side] = map[key]int64{}
	}
	side := func(p *piece) int {
		if p.A == nil {
			return 1
		}
		return 0
	}
	for i := range s.left {
		if p := &s.left[i]; p.law == alone && p.any().Known {
			counts[side(p)][keyOf(p)] += p.size.Count
		}
	}
	var both [2]map[key]int64 // left to take away
	for i := range both {
		both[i] = map[key]int64{}
		for k, n := range counts[i] {
			both[i][k] = min(n, counts[1-i][k])
		}
	}
	c := Cause{Kind: Moved}
	for i := range s.left {
		p := &s.left[i]
		if p.law != alone || !p.any().Known {
			continue
		}
		k := keyOf(p)
		n := min(p.size.Count, both[side(p)][k])
		both[side(p)][k] -= n
		bytes := n * p.size.Rounded
		p.size.Count -= n
		if p.B != nil {
			c.Moved += bytes
			p.to, p.delta = p.to-bytes, p.delta-bytes
		} else {
			p.delta += bytes
		}
	}
	s.left = slices.DeleteFunc(s.left, func(p piece) bool { return p.law == alone && p.size.Count == 0 })
	if c.Moved > 0 {
		s.out = append(s.out, c)
	}
}

// maxRatios is how many factors of one kind are told apart.
const maxRatios = 4

// take makes a cause of the pieces that fit it, if there are any.
func (s *sorter) take(c Cause, fits func(p *piece) bool) bool {
	uses, sites := map[category.Category]int64{}, map[string]int64{}
	s.left = slices.DeleteFunc(s.left, func(p piece) bool {
		if !fits(&p) {
			return false
		}
		c.Bytes += p.delta
		uses[p.use()] += p.delta
		sites[p.any().Site] += p.delta
		return true
	})
	if len(sites) == 0 {
		return false
	}
	for u, n := range uses {
		c.Uses = append(c.Uses, Use{u, n})
	}
	sorting.By(c.Uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(abs(b.Bytes), abs(a.Bytes)), cmp.Compare(a.Category, b.Category))
	})
	for at, n := range sites {
		c.Sites = append(c.Sites, Site{at, n})
	}
	sorting.By(c.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(abs(b.Bytes), abs(a.Bytes)), cmp.Compare(a.Site, b.Site))
	})
	s.out = append(s.out, c)
	return true
}

// leaks finds what only one side keeps from step to step: more blocks of the same code, where one side grows by about as
// much.
func (s *sorter) leaks() {
	was, is := growth(s.a), growth(s.b)
	more, steps := is-was, len(s.b.Steps)
	if more < 0 {
		steps = len(s.a.Steps)
	}
	if abs(more) < minGrowth || min(abs(was), abs(is)) > max(abs(was), abs(is))/4 {
		return
	}
	fits := func(p *piece) bool {
		if p.delta > 0 != (more > 0) || p.use() == category.OptimizerState {
			return false
		}
		return p.law == multiplied || p.law == mixed || p.law == alone && p.any().Count > 1
	}
	var bytes int64
	for i := range s.left {
		if fits(&s.left[i]) {
			bytes += s.left[i].delta
		}
	}
	// By the peak some of the steps have run.
	if all := abs(more) * int64(steps); abs(bytes) >= abs(more) && abs(bytes) <= 2*all {
		s.take(Cause{Kind: Leak, PerStep: more}, fits)
	}
}

// minGrowth is how much a step must leave behind, beyond what those of the other side do, to be called a leak.
const minGrowth = 64 << 10

// growth is by how much the lowest level of a side rises with each step, 0 where it does not do so all the way or there
// are too few steps. The first one, in which a program sets up, and the last, which may end with it, are left out. Levels
// are compared over thirds, since what is called a step may be a half of one. It is another question than that of
// Footprint.Growth, which a limit is held against: that says what a step leaves behind, whatever becomes of it, this
// whether memory accumulates, so that it may be called a leak.
func growth(f *footprint.Footprint) int64 {
	if len(f.Steps) < 6 {
		return 0
	}
	var levels []int64
	level := int64(0)
	for _, s := range f.Steps[1 : len(f.Steps)-1] {
		level += s.Growth
		levels = append(levels, level)
	}
	third := len(levels) / 3
	first, last := slices.Min(levels[:third]), slices.Min(levels[len(levels)-third:])
	middle := slices.Min(levels[third : len(levels)-third])
	rise := last - first
	if part := middle - first; abs(rise) < 5*abs(part) && abs(part) < abs(rise) && part > 0 == (rise > 0) {
		mean := rise / int64(len(levels)-third)
		if usual := footprint.MedianGrowth(f.Steps); usual > 0 == (mean > 0) && 2*abs(usual) > abs(mean) && abs(usual) < 2*abs(mean) {
			return usual // what most steps do, where some do more
		}
		return mean
	}
	return 0
}

// recomputes finds activations that a side does not keep since torch.utils.checkpoint makes them anew, also where that
// side's peak has none of them.
func (s *sorter) recomputes() {
	if s.a.Recomputes == s.b.Recomputes {
		return
	}
	fits := func(p *piece) bool {
		switch p.use() {
		case category.AutogradSaved, category.Activation, category.Temporary, category.Gradient:
			return p.law != scaled
		}
		return false
	}
	var bytes int64
	for i := range s.left {
		if fits(&s.left[i]) {
			bytes += s.left[i].delta
		}
	}
	if bytes < 0 == s.b.Recomputes { // else something else outweighs it
		s.take(Cause{Kind: Checkpointing}, fits)
	}
}

// sameRequests reports whether both sides ask for as many blocks of each size for each purpose.
func sameRequests(a, b *footprint.Footprint) bool {
	type key struct {
		use   category.Category
		bytes int64
	}
	counts := map[key]int64{}
	for sign, f := range map[int64]*footprint.Footprint{1: a, -1: b} {
		for i := range f.Groups {
			for _, z := range f.Groups[i].Sizes {
				counts[key{f.Groups[i].Use, z.Requested}] += sign * z.Count
			}
		}
	}
	for _, n := range counts {
		if n != 0 {
			return false
		}
	}
	return true
}

// graphs finds tensors between forward and backward that only one side keeps: most of what the other has of them.
func (s *sorter) graphs() {
	var gone, came int64
	for i := range s.left {
		switch p := &s.left[i]; {
		case p.isGraph(false):
			gone -= p.delta
		case p.isGraph(true):
			came += p.delta
		}
	}
	lost := gone > 4*came && gone > activations(s.a)/2
	if lost || came > 4*gone && came > activations(s.b)/2 {
		s.take(Cause{Kind: Graph}, func(p *piece) bool { return p.isGraph(!lost) })
	}
}

// isGraph reports whether blocks are between forward and backward, and all but a few of them on one side alone.
func (p *piece) isGraph(onB bool) bool {
	to, from := p.to, p.to-p.delta
	if !onB {
		to, from = from, to
	}
	return (p.law == alone || p.law == mixed) && isSaved(p.any()) && p.use() != category.Gradient && to > 4*from
}

func isSaved(g *footprint.Group) bool {
	switch g.Use {
	case category.AutogradSaved, category.Activation, category.Gradient:
		return true
	}
	return false
}

// saved is what a side has of tensors that a backward pass needs or makes.
func saved(f *footprint.Footprint) (n int64) {
	for i := range f.Groups {
		if isSaved(&f.Groups[i]) {
			n += f.Groups[i].Rounded
		}
	}
	return n
}

// scales finds the factor that explains most of the blocks that changed in size.
func (s *sorter) scales() bool {
	best := s.ratio(scaled, true)
	if best == 0 {
		return false
	}
	layers := slices.ContainsFunc(s.left, func(p piece) bool {
		return p.law == multiplied && p.use() == category.Parameter && isNear(p.ratio, best)
	})
	fits := func(p *piece) bool {
		switch {
		case p.law == scaled:
			return isNear(p.ratio, best) || isNear(p.ratio, best*best)
		case (p.law == multiplied || p.law == mixed) && !layers: // a loop over what grew makes more blocks
			return isSaved(p.any()) && isNear(p.ratio, best)
		}
		return false
	}
	c := Cause{Ratio: best}
	var all, trained, squared int64 // changed: in all, of parameters and what belongs to them, of those the squared part
	var activations int64           // between forward and backward, of the side that has more of them
	for i := range s.left {
		p := &s.left[i]
		if !fits(p) {
			continue
		}
		all += abs(p.delta)
		if isSaved(p.any()) {
			activations += max(p.to, p.to-p.delta)
		}
		square := !isNear(p.ratio, best)
		if square {
			c.Squared += p.delta
		}
		if isTrained(p.any()) {
			trained += abs(p.delta)
			if square {
				squared += abs(p.delta)
			}
		}
	}
	switch {
	case squared > all/20:
		c.Kind = Width
	case s.scalesAll(best):
		c.Kind = Precision
	case trained > all/20 && c.Squared == 0 || 3*activations < max(saved(s.a), saved(s.b)):
		c.Kind = Scale
	case c.Squared != 0:
		c.Kind = Length
	default:
		c.Kind = Batch
	}
	return s.take(c, fits)
}

// ratio is the factor that explains most bytes that changed by a law; squares count with their root where that is asked
// for. It is 0 without any.
func (s *sorter) ratio(by law, squares bool) (best float64) {
	var most int64
	seen := map[float64]bool{}
	for i := range s.left {
		r := s.left[i].ratio
		if s.left[i].law != by || seen[r] || s.left[i].How <= Inlined {
			continue
		}
		seen[r] = true
		var all int64
		for j := range s.left {
			if p := &s.left[j]; p.law == by && (isNear(p.ratio, r) || squares && isNear(p.ratio, r*r)) {
				all += abs(p.delta)
			}
		}
		if all > most {
			best, most = r, all
		}
		if len(seen) == maxSeen {
			break
		}
	}
	return best
}

// maxSeen bounds the factors that are tried, those of the largest differences first.
const maxSeen = 1000

// isTrained reports whether memory is of parameters, or there is as much of it as of parameters.
func isTrained(g *footprint.Group) bool {
	return g.Use == category.Parameter || g.Use == category.OptimizerState
}

// scalesAll reports whether nearly all parameters changed by a factor.
func (s *sorter) scalesAll(ratio float64) bool {
	var scales int64
	for i := range s.left {
		if p := &s.left[i]; p.use() == category.Parameter && p.law == scaled && isNear(p.ratio, ratio) {
			scales += p.to
		}
	}
	var all int64
	for i := range s.b.Groups {
		if g := &s.b.Groups[i]; g.Use == category.Parameter {
			all += g.Rounded
		}
	}
	return scales > all*9/10
}

// counts finds the factor that explains most of the blocks of which there are more, or fewer.
func (s *sorter) counts() bool {
	best := s.ratio(multiplied, false)
	if best == 0 {
		return false
	}
	fits := func(p *piece) bool { return p.law == multiplied && isNear(p.ratio, best) }
	kind := Count
	for i := range s.left {
		if p := &s.left[i]; fits(p) && p.use() == category.Parameter {
			kind = Layers
		}
	}
	c := Cause{Kind: kind, Ratio: best}
	if kind == Layers {
		return s.take(c, fits)
	}
	// A loop that keeps what it makes has of some one more and of some several.
	also := func(p *piece) bool { return p.law == multiplied && p.ratio > 1 == (best > 1) }
	for i := range s.left {
		if p := &s.left[i]; also(p) && !fits(p) {
			c.Ratio = 0
		}
	}
	return s.take(c, also)
}
