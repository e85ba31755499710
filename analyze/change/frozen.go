package change

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Weights that are not trained are no leaves that need gradients, so that torch.autocast keeps no copies of them
// (aten/src/ATen/autocast_mode.cpp: cached_cast): each product makes its own, and its node keeps that if what it is given needs a gradient.
// No gradient tells which weight a product multiplies.

// findBases finds the products of layers that have adapters: peft's module of both calls that layer first, whose weights are frozen, and
// what it has beside it by other lines (peft/tuners/lora/layer.py: Linear.forward, and others like it).
func (x *autocast) findBases() {
	var first []snapshot.FrameID // what calls the layer of the last module
	for i := range x.products {
		stack := x.stack(x.code(x.products[i].row))
		at := x.adapter(stack)
		if at < 0 {
			continue
		}
		calls := stack[at:]
		if len(first) != len(calls) || x.functions[first[0]] != x.functions[calls[0]] || !slices.Equal(first[1:], calls[1:]) {
			first = calls
		}
		x.products[i].base = x.products[i].weighs && first[0] == calls[0]
		x.products[i].adapts = !x.products[i].base
	}
}

// adapter is the depth of the outermost function of peft's that a stack goes through from inside, but for a library's; -1 for none.
func (r *run) adapter(stack []snapshot.FrameID) int {
	at := -1
	for depth, id := range stack {
		if strings.HasPrefix(r.file(id), "peft/tuners/") {
			at = depth
		} else if !frames.Of(r.s, id).IsLibrary() {
			break
		}
	}
	return at
}

// castFrozen has products by weights that are not trained keep copies of these, which what they give on is made with, where there are
// as many such weights, or nearly: in the order of the model's parameters.
func (x *autocast) castFrozen(trained map[int32]bool, floats bool) {
	const others = 4 // embeddings, a head that a loss multiplies by itself, and what is too small
	var all, frozen, through []int32
	last := int32(-1)
	for _, of := range x.products {
		if of.row < x.pass.rows.from || !of.weighs || of.adapts {
			continue // a pass before made copies for it, or it is an adapter's
		}
		if all = append(all, of.row); !trained[of.row] {
			frozen = append(frozen, of.row)
			if x.needsSome(last, of.row) {
				through = append(through, of.row)
			}
		}
		last = of.row
	}
	if len(frozen) == 0 {
		return
	}
	products, weights := frozen, x.frozenWeights(frozen[0])
	most := len(weights)
	least := most
	if !floats {
		least-- // the first may be of an embedding
	}
	fits := func(products []int32, least int) bool { return least <= len(products) && len(products) <= most }
	if !fits(frozen, least) {
		switch of := x.ofLines(all, least, most); {
		case of != nil:
			products = of
		case fits(through, least):
			products = through
		case !fits(frozen, most-others):
			products, weights = x.ofSomeModel(frozen, weights, len(through)/2, others)
		}
	}
	products, weights = x.inOrder(products, weights)
	for i, result := range products {
		last := x.neededBefore(result)
		if last < 0 || x.end(last) <= x.pass.begin {
			continue
		}
		born, gone := x.t.Lives[result].Born, x.end(last)
		if again, ok := x.remade[result]; ok {
			x.castAgain(weights[i], again, gone, 0)
			gone = x.t.Lives[result].Born
		}
		x.add(weights[i], born, gone).parts = 2
	}
}

// frozenWeights are the large weights from before a row that are not trained, in the order of the model's parameters.
func (x *autocast) frozenWeights(before int32) (weights []int32) {
	gradients := x.gradientSizes(x.pass)
	for row := range x.piled {
		gradients[x.t.Lives[row].Requested] = true
	}
	for _, row := range x.matrices {
		if row < before && !gradients[x.t.Lives[row].Requested] {
			weights = append(weights, row)
		}
	}
	return weights
}

// needsSome reports whether backward needs something that is made behind a product, up to the next one and with it.
func (x *autocast) needsSome(last, product int32) bool {
	k, _ := slices.BinarySearch(x.needs, last+1)
	return k < len(x.needs) && x.needs[k] < x.operation(product).to
}

// inOrder are products and the weights that they multiply, one each: of two lists in the order of the model's parameters, the longer one
// of which begins or ends with others, as of embeddings and of what a loss multiplies by itself. A weight is larger than what its product
// gives by what a layer is given, of which there are few sizes where each product has its own weight.
func (x *autocast) inOrder(products, weights []int32) (of, by []int32) {
	n := min(len(products), len(weights))
	fewest := n + 1
	for from := max(len(products), len(weights)) - n; from >= 0; from-- {
		some, others := products[min(from, len(products)-n):][:n], weights[min(from, len(weights)-n):][:n]
		inputs := map[float64]bool{}
		for i, row := range some {
			inputs[float64(x.t.Lives[others[i]].Requested)/float64(x.t.Lives[row].Requested)] = true
		}
		if len(inputs) < fewest {
			of, by, fewest = some, others, len(inputs)
		}
	}
	return of, by
}

// ofSomeModel are the products and the weights of one model, where a program has several: as many that one line calls, or nearly, and more
// than some, as another brings to the device; none where nothing fits.
func (x *autocast) ofSomeModel(products, weights []int32, least, others int) (of, by []int32) {
	const many = 4096 // pairs: no program has as many models
	lines, moves := x.byLine(products), x.byLine(weights)
	if len(lines)*len(moves) > many {
		return nil, nil
	}
	for _, called := range lines {
		for _, moved := range moves {
			if n := len(called) - len(moved); -others <= n && n <= others && len(called) > least {
				return called, moved
			}
		}
	}
	var parameters []int32
	for row := range x.rows() {
		if x.is(row, category.Parameter) {
			parameters = append(parameters, row)
		}
	}
	all := x.byLine(parameters)
	for _, called := range lines {
		for _, moved := range moves {
			if n := len(moved); n < len(called) && len(called) < 2*n && len(called) > least {
				if largest := x.largestMoved(all, moved[0], len(called)); largest != nil {
					return called, largest
				}
			}
		}
	}
	return nil, nil
}

// largestMoved are as many of the parameters, which are given by line, that the line moves to the device which moves one of them, in their
// order, as weigh something: the largest, for biases and scales are smaller; nil where sizes do not tell them apart.
func (x *autocast) largestMoved(all [][]int32, weight int32, n int) (out []int32) {
	k := slices.IndexFunc(all, func(rows []int32) bool { return slices.Contains(rows, weight) })
	size := func(row int32) int64 { return x.t.Lives[row].Requested }
	bySize := slices.SortedStableFunc(slices.Values(all[k]), func(a, b int32) int { return cmp.Compare(size(b), size(a)) })
	if n >= len(bySize) || size(bySize[n-1]) == size(bySize[n]) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all[k]), func(row int32) bool { return size(row) <= size(bySize[n]) })
}

// byLine parts rows where the program's own line that makes them changes.
func (x *autocast) byLine(rows []int32) (out [][]int32) {
	var last []snapshot.FrameID
	for i, row := range rows {
		line := x.stack(x.code(row))
		own := slices.IndexFunc(line, func(id snapshot.FrameID) bool { return frames.Of(x.s, id).Origin() == frames.User })
		if line = line[max(own, 0):]; i == 0 || !slices.Equal(line, last) {
			out = append(out, nil)
		}
		out[len(out)-1], last = append(out[len(out)-1], row), line
	}
	return out
}

// ofLines are those of some products that some of the lines which call them make, between least and most, as many as there can be: what
// adapters multiply beside no parameter of a model weighs. It is nil where several sets of lines make as many.
func (x *autocast) ofLines(products []int32, least, most int) []int32 {
	const many = 8 // lines
	var lines []snapshot.FrameID
	of := make([]int, len(products)) // place in lines
	for i, row := range products {
		stack := x.stack(x.code(row))
		at := max(x.ownDepth(stack), 0)
		k := slices.Index(lines, stack[at])
		if k < 0 {
			k, lines = len(lines), append(lines, stack[at])
		}
		of[i] = k
	}
	if len(lines) > many {
		return nil
	}
	var found []int32
	several := false
	for set := 1; set < 1<<len(lines); set++ {
		var some []int32
		for i, row := range products {
			if set>>of[i]&1 == 1 {
				some = append(some, row)
			}
		}
		switch {
		case len(some) < max(least, len(found), 1) || len(some) > most:
		case len(some) == len(found):
			several = true
		default:
			found, several = some, false
		}
	}
	if several {
		return nil
	}
	return found
}
