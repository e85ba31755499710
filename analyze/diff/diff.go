// Package diff compares the live memory of two runs, or of two moments of one, to the byte.
//
// Every group of blocks of each side (analyze/footprint) goes into exactly one pair: with the group of the same code on
// the other side, or alone. So whatever the pairs are summed up by, the differences add up to that of the sides.
// Code is the same although lines moved, files or functions were renamed, or a call was put in between:
//
//  1. Files that only one side has are paired with those of the other that have the same functions, then functions
//     with those that call the same, then the lines of each function in their order (places.go).
//  2. Stacks are the same whose frames are, once they were put through that; of those left, stacks whose calls are
//     mostly the same (match.go). How each byte was matched is said.
//  3. What both sides have tells how it changed: larger blocks, more of them, for another purpose (law.go). Changes of
//     the same kind and factor have one cause (cause.go, peak.go).
package diff

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/footprint"
)

// Result is what two sides differ in. All bytes are rounded, as the allocator takes them, unless a name says requested.
type Result struct {
	A     *footprint.Footprint `json:"a"`
	B     *footprint.Footprint `json:"b"`
	Pairs []Pair               `json:"-"` // largest differences first
	// Causes part the difference: their bytes sum up to Delta. Largest first.
	Causes  []Cause          `json:"causes"`
	Guards  []Guard          `json:"guards"`
	Matched [Exact + 1]Match `json:"-"` // by How
	// SpreadA and SpreadB are what several runs of each side had, nil for one run each.
	SpreadA *Spread `json:"spread_a"`
	SpreadB *Spread `json:"spread_b"`

	runs     [2][]*footprint.Footprint
	moves    *mapping // of the code of A
	partners []int32  // of the stacks of A, -1 for none
}

// Delta is by how much more is active on side B.
func (r *Result) Delta() int64 { return r.B.Totals.Active - r.A.Totals.Active }

// Match is how many bytes of the sides were matched in one way.
type Match struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

// Pair is memory of one code and one purpose, on both sides or one.
type Pair struct {
	A, B *footprint.Group // nil for none; not both
	How  How
}

// Delta is by how many bytes more side B has.
func (p *Pair) Delta() int64 { return rounded(p.B) - rounded(p.A) }

// Call is a frame of a pair's stack.
type Call struct {
	attribution.Frame
	OnlyA bool // no stack of side B has the line
}

// Stack is the calls of a pair, innermost first. A line that stacks of both sides have goes by its name on side B.
func (r *Result) Stack(p *Pair) []Call {
	f, g := r.B, p.B
	if g == nil {
		f, g = r.A, p.A
	}
	if g.Stack < 0 {
		return nil
	}
	var out []Call
	for _, row := range f.Stacks[g.Stack] {
		v := Call{Frame: f.Frames[row]}
		if p.B == nil {
			if to := r.moves.of(placeOf(&v.Frame)); r.moves.runs(to) {
				v.File, v.Name, v.Line = to.file, to.name, to.line
			} else {
				v.OnlyA = true
			}
		}
		out = append(out, v)
	}
	return out
}

// any is the group of B, or else that of A.
func (p *Pair) any() *footprint.Group {
	if p.B != nil {
		return p.B
	}
	return p.A
}

// use is what the memory is for, on side B if it has any.
func (p *Pair) use() category.Category { return p.any().Use }

// Compare compares two footprints.
func Compare(a, b *footprint.Footprint) *Result {
	return CompareRuns([]*footprint.Footprint{a}, []*footprint.Footprint{b})
}

func compare(a, b *footprint.Footprint) *Result {
	r := &Result{A: a, B: b}
	r.match()
	for i := range r.Pairs {
		p := &r.Pairs[i]
		r.Matched[p.How].A += rounded(p.A)
		r.Matched[p.How].B += rounded(p.B)
	}
	r.Causes = causes(r)
	r.Guards = guards(r)
	return r
}

// Steps is how many steps of the sides can be compared by their numbers: none where one side has many more, which are of
// another kind.
func (r *Result) Steps() int {
	a, b := len(r.A.Steps), len(r.B.Steps)
	if max(a, b) > 2*min(a, b) {
		return 0
	}
	return min(a, b)
}
