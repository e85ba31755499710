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
	alone    bool  // what it gives on is added to nothing that others gave on for the same
	added    bool  // it is known to be
}

// longNode is how many allocations a node of a backward pass is taken to make at most before or behind a gradient.
const longNode = 256

// products are those of the pass.
func (x nodes) products() []product {
	const small = 4096
	var out []product
	for row, node := range x.weightGradients(small) {
		if given := x.givenOn(row, node, small); given >= 0 {
			out = append(out, x.product(row, given, node))
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

// product is the node of a gradient that gives on a row, which goes as soon as it is added in place to what others gave on
// for the same, or the sum is there (torch/csrc/autograd/input_buffer.cpp). Whether it is added is not known where another
// operation may take it.
func (x nodes) product(gradient, given int32, node span) product {
	n := product{span: span{node.from + 1, node.to}, gradient: gradient, input: x.sizes[given]}
	sum, end := x.lastBefore(node.to)+1, x.lastBefore(x.end(given))
	switch {
	case end < sum:
		n.added = true
	case int(sum) == len(x.t.Lives) || end > sum || x.t.Lives[sum].Requested != x.t.Lives[given].Requested:
		n.alone = true
	default:
		n.added = slices.Contains(x.addends(sum), given)
	}
	return n
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
// it: of those whose input none goes with. What that last one gives on is added to what they gave on; where theirs is known
// to be added to others', a row whose last one's is, too, comes before one that no product lets go of, unless an activation
// function saved that.
func (d *draft) usesOf(products []product, saved []int32) map[int32][]product {
	nodes := map[int32]product{} // by the last row before they are over
	for _, n := range products {
		nodes[d.lastBefore(n.to)] = n
	}
	type held struct {
		row, end, over int32   // over is the last row before its end
		last           product // that lets go of it, if one does
	}
	bySize := map[int64][]held{}
	for _, row := range saved {
		over := d.lastBefore(d.end(row))
		bySize[d.sizes[row]] = append(bySize[d.sizes[row]], held{row, d.end(row), over, nodes[over]})
	}
	out := map[int32][]product{}
	for _, n := range products {
		over := d.lastBefore(n.to)
		var best *held // to be let go of next
		rows := bySize[n.input]
		for i := range rows {
			h := &rows[i]
			own := h.over <= over
			switch {
			case h.end < n.from, !own && h.last.alone:
			case best == nil:
				best = h
			case !own && n.added && h.last.added != best.last.added && !d.activates(best.row):
				if h.last.added {
					best = h
				}
			case h.end < best.end:
				best = h
			}
		}
		same := func(u product) bool { return u.span == n.span }
		if best != nil && best.over > over && !slices.ContainsFunc(out[best.row], same) {
			out[best.row] = append(out[best.row], n)
		}
	}
	return out
}
