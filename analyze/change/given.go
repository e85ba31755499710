package change

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// remadeCopy is a copy of a weight, by the row of its gradient, that is made again when a checkpoint runs a module again, at an event; -1
// for the first one.
type remadeCopy struct{ weight, event int32 }

// castGiven has products make copies of what they are given: of weights, which the pass keeps until it has their
// gradients, and of what has 32 bits, which is kept no longer itself. Which products a row is given to shows where backward
// lets go of it. It gives products by weights that a later pass may train.
func (x *autocast) castGiven() (left []product16) {
	p := x.pass
	trains := nodes{x.draft, p, x.isMade}
	backward := trains.products()
	uses := x.usesOf(backward, x.needs)
	next, floats := 0, x.floats(p) // next of products
	products := slices.DeleteFunc(slices.Clone(x.products), func(of product16) bool { return of.base })
	trained := map[int32]bool{}    // products, by row
	inCells := x.castCells()       // products, by row
	copies := map[remadeCopy]int{} // of weights, 1 + their place in added
	for i, row := range x.needs {
		for next < len(products) && products[next].row <= row {
			next++
		}
		if x.narrow[row] && x.normed[row] {
			x.copyWide(row)
		}
		if next == len(products) || x.normed[row] || x.wide[row] || x.beside(row) || x.is(row, category.Input) && !x.isFloats(row) {
			continue
		}
		read := x.weightAt(x.end(row)) >= 0
		type node struct{ end, grad int32 } // grad is the gradient of a weight, -1 for none
		var ends []node                     // of products, those of the last ones first
		alone := x.savedBy(row).saver < 0   // no operation of torch's saves it, as attention does, too, that is given a copy
		attended := x.savedForAttention(row)
		given := read && alone || !read && !products[next].weighs || attended
		kept := x.own[row] && !attended || !given && alone // by the operation that made it, or one that the program asks for itself
		if node := x.nodeAt(x.end(row)); node.Node != "" {
			product := node.GivesOn() == frames.Half
			given, kept = product || given && kept, !product
		}
		if given && !read && x.takenOver(i, products[next].row) {
			given = false
		}
		if given && kept {
			given = !x.dropsOut(x.needs[i:], products[next].row)
		}
		if given {
			ends = append(ends, node{x.end(row), x.weightAt(x.end(row))})
		}
		for _, u := range uses[row] {
			same := func(n node) bool { return x.lastBefore(n.end) == x.lastBefore(u.to) }
			if !slices.ContainsFunc(ends, same) {
				ends = append(ends, node{u.to, u.gradient})
			}
		}
		if len(ends) == 0 {
			continue // it is of another operation alone
		}
		// Else another node lets go of it last, as that of an activation in place, which saves its result.
		kept = kept || !slices.ContainsFunc(ends, func(n node) bool { return x.lastBefore(n.end) == x.lastBefore(x.end(row)) })
		changed := x.last(row) != x.end(row)
		mine, inside := x.remade[row]
		copied := false // where a checkpoint makes it again
		full := !x.narrow[row] && !x.is(row, category.Input)
		for k, n := range ends {
			at := next + k
			if k > 0 || !given {
				if reader := x.readerAt(products, backward, row, n.end); reader >= 0 {
					at = reader
				}
			}
			if at >= len(products) {
				break
			}
			product := products[at].row
			if inCells[product] {
				trained[product] = true
				continue
			}
			born := x.t.Lives[product].Born
			weighs, over := n.grad >= 0 && products[at].weighs, n.end
			if weighs {
				over = x.nodeOver(n.grad)
				weight := x.castWeight(product, n.grad, over, copies)
				if was, ok := x.weighed[product]; !ok || x.t.Lives[weight].Requested > x.t.Lives[was].Requested { // else a norm's before it
					x.weighed[product] = weight
				}
				trained[product] = true
			}
			again, isRemade := x.remade[product]
			redone := isRemade && inside && mine.event >= 0 && mine.event == again.event
			if full && (weighs || !changed || redone) {
				x.castAt(x.gradientOf(row, n.end), over, true)
			}
			if weighs {
				x.castAt(n.grad, over, true)
			}
			if full && redone {
				x.castAgain(row, again, n.end, 0)
				copied = true
			} else if full && !changed {
				gone := n.end
				if isRemade && !inside {
					x.castAgain(row, again, n.end, 0)
					gone, kept = x.t.Lives[product].Born, true // the checkpoint refers to it
				}
				x.add(row, born, gone).parts = 2
				if was, ok := x.given[product]; !ok || x.t.Lives[row].Requested > x.t.Lives[was].Requested { // else statistics of it
					x.given[product] = row
				}
			}
		}
		if copied && !kept {
			x.goesAgain(row)
		} else if full && !changed && !kept {
			x.until(row, x.leaves(row))
		}
	}
	first := slices.IndexFunc(x.products, func(of product16) bool { return of.row >= p.rows.from })
	if floats >= 0 && first >= 0 {
		product := x.products[first].row
		x.add(floats, x.t.Lives[product].Born, p.last).parts = 2
		if _, again := x.remade[product]; !again && x.saved(p, floats) && x.last(floats) == x.end(floats) {
			x.until(floats, x.leaves(floats)) // the product saves the copy instead
		}
	}
	row, reached := p.rows.from, false // whether a later pass goes back through what is made there, as what is saved before tells
	for _, of := range x.products {
		for ; row < of.row; row++ {
			reached = !x.saved(p, row) && (reached || x.savedBehind(p, row) != nil)
		}
		if of.weighs && !of.base && !trained[of.row] && reached {
			left, trained[of.row] = append(left, of), true
		}
	}
	x.castFrozen(trained, floats >= 0)
	return left
}

// savedForAttention reports whether attention of torch's saves a row, which it is given or gives.
func (x *autocast) savedForAttention(row int32) bool {
	saver := x.savedBy(row).saver
	return saver >= 0 && !x.inMultiHead(saver) && (x.attends(x.pass, saver) || x.attends(x.pass, saver-1))
}

// takenOver reports whether the row at a place of those that backward needs was taken by what was made before a product, and not by that:
// of what was saved between the two, at least two go before it, and more than go with it or behind it, for backward goes the other way.
func (x *autocast) takenOver(at int, product int32) bool {
	const least = 2
	row := x.needs[at]
	before, behind := 0, 0
	for _, of := range x.needs[at+1 : min(at+nearBy, len(x.needs))] {
		if of >= product {
			break
		}
		if x.lastBefore(x.end(of)) < x.lastBefore(x.end(row)) {
			before++
		} else {
			behind++
		}
	}
	return before >= least && before > behind
}

// readerAt is the place of a product that is given a row, in some: of those that multiply weights, as many behind the first one
// that is made after what is let go of next as nodes of such products run between its own, which is over at an event, and that;
// for backward goes the other way. It is -1 where there are not as many.
func (x *autocast) readerAt(products []product16, backward []product, row, over int32) int {
	after := func(last int32) int32 { // the event up to which a row is the last before
		if int(last)+1 < len(x.t.Lives) {
			return x.t.Lives[last+1].Born
		}
		return int32(x.t.Trace.Len())
	}
	next, begin := row, after(x.lastBefore(over))
	for _, of := range x.needs {
		if of > row && x.end(of) > begin && x.end(of) < x.end(next) {
			next = of
		}
	}
	between, last := 0, after(x.lastBefore(x.end(next)))
	for i := range backward {
		if to := backward[i].to; to > over && to <= last {
			between++
		}
	}
	for at, of := range products {
		if of.weighs && of.row >= next {
			if between == 0 {
				return at
			}
			between--
		}
	}
	return -1
}

// dropsOut reports whether the first of some rows that backward needs goes through a dropout of torch's before a product, which is given
// what that makes: another of them of that size.
func (x *autocast) dropsOut(needs []int32, product int32) bool {
	k, _ := slices.BinarySearch(needs, product)
	return slices.ContainsFunc(needs[1:max(k, 1)], func(row int32) bool {
		return x.t.Lives[row].Requested == x.t.Lives[needs[0]].Requested && x.isDropout(row)
	})
}

// isFloats reports whether a row is what the first product of the pass that it was made for is given, see floats.
func (x *autocast) isFloats(row int32) bool {
	p := x.passOf(x.t.Lives[row].Born)
	return p != nil && x.floats(p) == row
}

// castWeight has a product be given a copy of the weight whose gradient its node makes, which torch.autocast keeps for other uses, and the
// product until its node is over, at an event; where a checkpoint runs the product again, it makes another copy then. It gives the row of
// the gradient of all uses.
func (x *autocast) castWeight(product, grad, over int32, copies map[remadeCopy]int) int32 {
	weight, born := grad, x.t.Lives[product].Born
	if of, ok := x.partOf[weight]; ok {
		weight = of
	}
	if of, ok := x.sums[weight]; ok {
		weight = of
	}
	caches := x.caches(product)
	if again, ok := x.remade[product]; ok {
		k := remadeCopy{weight, again.event}
		if !caches {
			clear(copies)
		}
		copies[k] = x.castAgain(grad, again, over, copies[k])
		if over = born; caches {
			over = max(x.uncached(x.pass, product), born)
		}
	}
	first := remadeCopy{weight, -1}
	if c := copies[first]; c > 0 && caches {
		made := &x.added[c-1]
		made.Born, made.Freed = min(made.Born, born), max(made.Freed, over)
		return weight
	}
	x.add(grad, born, over).parts = 2
	copies[first] = len(x.added)
	return weight
}

// caches reports whether torch.autocast keeps the copies of weights for other uses: Lightning's trainer tells it not to
// (lightning/pytorch/plugins/precision/amp.py: cache_enabled=False), so that they are of the product alone that is given them.
func (x *autocast) caches(product int32) bool {
	return !slices.ContainsFunc(x.stack(x.code(product)), func(id snapshot.FrameID) bool {
		file := x.file(id)
		return strings.HasPrefix(file, "lightning/pytorch/") || strings.HasPrefix(file, "pytorch_lightning/")
	})
}

// castAgain has a product that a checkpoint runs again be given a copy of 16 bits then, up to an event: another one, or one that it makes
// there for another use already. It gives 1 + its place in added, 0 where the recording ends before.
func (x *autocast) castAgain(row int32, again remake, over int32, copied int) int {
	if !again.comesBefore(over) {
		return copied
	}
	if copied > 0 {
		made := &x.added[copied-1]
		made.Turn, made.Freed = min(made.Turn, again.turn-1), max(made.Freed, over)
		return copied
	}
	x.addAgain(row, again, over).parts = 2
	return len(x.added)
}

// addAgain has a copy of a row come in where a checkpoint runs again what is given it, up to an event.
func (x *autocast) addAgain(row int32, again remake, over int32) *extra {
	made := x.add(row, again.event, over)
	made.Turn = again.turn - 1
	return made
}
