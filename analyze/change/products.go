package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
)

// nodes are those of a backward pass.
type nodes struct {
	*draft
	p        *pass
	gradient func(row int32) bool // which of its rows are gradients of parameters
}

// product is a node of a backward pass that makes the gradient of a parameter, and gives one on: it had saved the
// parameter, and its input, of the size of what it gives on. One of an embedding gives none on, and of a bias nothing was saved.
type product struct {
	span     // events
	gradient int32
	input    int64 // bytes
}

// longNode is how many allocations a node of a backward pass is taken to make at most before or behind a gradient.
const longNode = 256

// products are those of the pass.
func (x nodes) products() []product {
	const small = 4096
	var out []product
	for row, node := range x.weightGradients(small) {
		if given := x.givenOn(row, node, small); given >= 0 {
			out = append(out, product{span{node.from + 1, node.to}, row, x.sizes[given]})
		}
	}
	return out
}

// weightGradients are the gradients that the pass makes of parameters other than biases, from a size on, and the events between which
// their nodes are at work.
func (x nodes) weightGradients(least int64) func(yield func(row int32, node span) bool) {
	return func(yield func(int32, span) bool) {
		for row := x.p.rows.from; row < x.p.rows.to; row++ {
			l := &x.t.Lives[row]
			if l.Born < x.p.begin || l.Born >= x.p.stop || x.sizes[row] < least || !x.gradient(row) {
				continue
			}
			if node := (span{x.overBefore(l.Born), x.nodeOver(row)}); !x.bias(row, node) && !yield(row, node) {
				return
			}
		}
	}
}

// givenOn is the row that the node of a gradient gives on, -1 for none.
func (x nodes) givenOn(gradient int32, node span, least int64) int32 {
	for row := max(gradient-longNode, 0); row < min(gradient+longNode, int32(len(x.t.Lives))); row++ {
		if x.makes(row, node, least) && x.end(row) > node.to {
			return row
		}
	}
	return -1
}

// makes reports whether a node makes a row, from a size on, that is neither a gradient of a parameter nor what it works in.
func (x nodes) makes(row int32, node span, least int64) bool {
	born := x.t.Lives[row].Born
	return born > node.from && born <= node.to && x.sizes[row] >= least && !x.gradient(row) && !x.works(row)
}

// works reports whether a row is what a product of matrices works in.
func (r *run) works(row int32) bool { return r.is(row, category.Workspace) || r.scratch(row) }

// bias reports whether a node makes a row for a bias: the gradient of a parameter with several times as many elements, one for each row
// of a matrix, too.
func (x nodes) bias(row int32, node span) bool {
	n := x.t.Lives[row].Requested
	for other := max(row-longNode, 0); other < min(row+longNode, int32(len(x.t.Lives))); other++ {
		l := &x.t.Lives[other]
		if l.Born > node.from && l.Born <= node.to && l.Requested > n && l.Requested%max(n, 1) == 0 && x.gradient(other) {
			return true
		}
	}
	return false
}

// usesOf gives for each of some rows, which a pass saved, the events of products that read it before the one that lets go of
// it: of those whose input none goes with.
func (d *draft) usesOf(products []product, saved []int32) map[int32][]product {
	bySize := map[int64][]int32{}
	for _, row := range saved {
		bySize[d.sizes[row]] = append(bySize[d.sizes[row]], row)
	}
	out := map[int32][]product{}
	for _, n := range products {
		next := int32(-1) // to be let go of
		for _, row := range bySize[n.input] {
			if e := d.end(row); e >= n.from && (next < 0 || e < d.end(next)) {
				next = row
			}
		}
		same := func(u product) bool { return u.span == n.span }
		if next >= 0 && d.lastBefore(d.end(next)) > d.lastBefore(n.to) && !slices.ContainsFunc(out[next], same) {
			out[next] = append(out[next], n)
		}
	}
	return out
}
