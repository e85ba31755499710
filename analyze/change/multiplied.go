package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
)

// What a program multiplies itself has no frame of torch's that says so. Two things tell a product from what is computed element by
// element, or summed up: the workspace that it asks for, and its node, which lets go of what it multiplied.

// isProduct reports whether a workspace is asked for next.
func (x *autocast) isProduct(row int32) bool {
	return int(row)+1 < len(x.t.Lives) && (x.scratch(row+1) || x.is(row+1, category.Workspace))
}

// productsWork reports whether all layers that are products of matrices, or products of the program's own where there are none, ask for
// workspaces, as later torch has them for each call, so that all that the program multiplies itself does, too.
func (x *autocast) productsWork() bool {
	found := false
	for _, row := range x.forward {
		if of, name := x.precision(row); of != frames.Weighs || name != "forward" || x.convolves(row) {
			found = found || of == frames.AsGiven && x.isProduct(row) && !x.stands(row+1)
			continue
		}
		if found = true; !x.isProduct(row) {
			return false
		}
	}
	return found
}

// forProduct reports whether a product is made behind a row by its code, as one that copies what it is given.
func (x *autocast) forProduct(row int32) bool {
	k, _ := slices.BinarySearch(x.forward, row)
	for _, next := range x.forward[k+1:] {
		if x.code(next) != x.code(row) {
			break
		}
		if x.isProduct(next) {
			return true
		}
	}
	return false
}

// leadToProducts says of the results on the way to the pass whether each, or one that the same code makes next, is of a product by what its
// node lets go of: it is given copies in its order of elements first.
func (x *autocast) leadToProducts() []bool {
	first := x.pass.reach
	needed := make([]bool, max(x.pass.rows.to-first, 0)) // by row, from the first on
	for _, row := range x.needs {
		if row >= first && row < x.pass.rows.to {
			needed[row-first] = true
		}
	}
	out := make([]bool, len(x.forward))
	for at, row := range slices.Backward(x.forward) {
		next := at + 1
		out[at] = next < len(x.forward) && out[next] && x.code(x.forward[next]) == x.code(row) || x.multiplies(row, needed)
	}
	return out
}

// multiplies reports whether the node of a product may go back through a row: one that lets go of something made before, with nothing of
// the row's size between, and of a gradient of that size at once, as a product keeps what it multiplies. What has the row's size itself
// the same statement made for the product, or the node lets go of the row with it, as attention keeps its result, too. Statistics of a
// norm nothing multiplies: the norm's node lets go of them, of a gradient of the size of what it made right behind.
func (x *autocast) multiplies(row int32, needed []bool) bool {
	n := x.t.Lives[row].Requested
	for of := row - 1; of >= max(row-nearBy, x.pass.reach); of-- {
		same, is := x.t.Lives[of].Requested == n && x.phase(of) == inProgram, needed[of-x.pass.reach]
		switch {
		case !is && same:
			return false
		case !is, x.isStatistic(of):
			continue
		}
		last := x.lastBefore(x.end(of))
		takes := (!same || x.code(of) == x.code(row)) && x.gradientBehind(last, n) >= 0 && !x.isForItself(of)
		if same {
			return takes || x.saved(x.pass, row) && x.lastBefore(x.end(row)) == last
		}
		if takes {
			return true
		}
	}
	return false
}

// isStatistic reports whether a row is of the statistics that a norm of torch's keeps.
func (r *run) isStatistic(row int32) bool {
	own := r.stack(r.code(row))
	return len(own) > 0 && normalizes(r.name(own[0])) && r.byproduct(row)
}

// computesWide reports whether a result at a place of those on the way to the pass, which may be a product by what its node lets go of, but
// asks for no workspace where products do, is an operation on elements of 32 bits: the result before it has 32, and so has what the node
// lets go of, which makes no gradient of a weight, as that of a convolution does. What is much smaller may be places to pick from what was
// made last of the row's size, see half.
func (x *autocast) computesWide(at int, half bool) bool {
	row := x.forward[at]
	if at > 0 && x.narrow[x.forward[at-1]] || x.forProduct(row) {
		return false
	}
	n := x.t.Lives[row].Requested
	for of := row - 1; of >= max(row-nearBy, x.pass.rows.from); of-- {
		last := x.lastBefore(x.end(of))
		if !x.saved(x.pass, of) || x.gradientBehind(last, n) < 0 {
			continue
		}
		grad := x.gradientAt(x.end(of))
		weighs := grad >= 0 && !x.ofScale(grad, of)
		attends := last == x.lastBefore(x.end(row)) // it keeps its result, too
		return !weighs && !attends && !x.narrow[of] && (!half || x.t.Lives[of].Requested*muchSmaller >= n)
	}
	return false
}

// isForItself reports whether the node that lets go of a row makes nothing but a gradient of its size, beside what the one before it sums
// up for a bias: as that of a sum by index does, which keeps what it adds (index_add in tools/autograd/derivatives.yaml). A product keeps a
// row for the gradient of what it is multiplied by.
func (x *autocast) isForItself(of int32) bool {
	begin, made := x.before(x.end(of)), int32(-1)
	for row := x.lastBefore(x.end(of)); row > of && x.t.Lives[row].Born > begin; row-- {
		if x.works(row) || x.partial(row) || x.partialsAt(row) {
			continue
		}
		if made >= 0 {
			return false
		}
		made = row
	}
	return made >= 0 && x.t.Lives[made].Requested == x.t.Lives[of].Requested
}

// gradientBehind is the first of a size, in bytes, that the node of a backward pass which makes a row last lets go of, and that backward
// made; -1 for none.
func (r *run) gradientBehind(last int32, n int64) int32 {
	const soon = 64 // events
	for of := range r.goneBehind(last) {
		if r.end(of) > r.t.Lives[last].Born+soon {
			break
		}
		if r.t.Lives[of].Requested == n && r.phase(of) == inBackward {
			return of
		}
	}
	return -1
}

// shifts reports whether a result at a place of those on the way to the pass is of a norm whose statistics are fixed, as a frozen batch
// norm has them (torchvision/ops/misc.py: FrozenBatchNorm2d): its forward makes several vectors, of what the module holds, which has 32
// bits, and then scales what it is given and shifts it.
func (x *autocast) shifts(at int) bool {
	const (
		least = 4  // vectors: with eps, its root, the scale, and the mean by that or the shift
		most  = 16 // results from the first vector on
	)
	row := x.forward[at]
	n, small, vectors := x.t.Lives[row].Requested, int64(0), 0
	for _, of := range slices.Backward(x.forward[max(at-most, 0):at]) {
		size := x.t.Lives[of].Requested
		if !x.sameCall(x.t.Lives[of].Stack, x.t.Lives[row].Stack) || size != n && small != 0 && size != small {
			break
		}
		if size == n && small == 0 {
			continue
		}
		if small, vectors = size, vectors+1; size*muchSmaller > n {
			return false
		}
	}
	return vectors >= least && small > 0 && n%small == 0 && x.parameters[small]
}

// addsParameters are the results on the way to the pass that the program makes by adding a parameter to what it made before, as positions
// that are learned: the sum has the 32 bits of that (c10/core/ScalarType.h, promoteTypes). The node of such a sum saved nothing, so that
// right behind the one that goes back through what is made of the result the engine sums up what that gives on, and has the gradient.
func (x *autocast) addsParameters() map[int32]bool {
	out, nodes := map[int32]bool{}, nodes{x.draft, x.pass, x.gradient}
	for grad := x.pass.rows.from + 1; grad < x.pass.rows.to; grad++ {
		born, m := x.t.Lives[grad].Born, x.t.Lives[grad].Requested
		if born < x.pass.begin || m <= number || !x.gradient(grad) {
			continue
		}
		given := grad - 1
		n := x.t.Lives[given].Requested
		if x.phase(given) != inBackward || n <= m || n%m != 0 || x.end(given) <= born || x.gradient(given) ||
			nodes.bias(grad, span{x.overBefore(born), x.nodeOver(grad)}) {
			continue
		}
		saved := int32(-1) // what was let go of last before
		for e := born - 1; e > x.t.Lives[given].Born && saved < 0; e-- {
			if of := x.ended[e] - 1; of >= 0 && x.saved(x.pass, of) {
				saved = of
			}
		}
		if saved < 0 {
			continue
		}
		if own := x.stack(x.code(saved)); len(own) == 0 || frames.Of(x.s, own[0]).IsLibrary() || x.byproduct(saved) {
			saved = x.operation(saved).from - 1
		}
		if saved >= 0 && x.t.Lives[saved].Requested == n {
			out[saved] = true
		}
	}
	return out
}

// sumsWide reports whether a row, which a batch norm is given, is a sum of what was made last and of something of 32 bits: backward passes
// the gradient of the sum on to both, and what goes back from the one is added to it where it comes to the other, which is what was made
// last of all that backward needs then.
func (x *autocast) sumsWide(row int32) bool {
	saver, own := x.savedBy(row).saver, x.stack(x.code(row))
	if saver < 0 || !x.normalizesBatch(saver) || len(own) == 0 || frames.Of(x.s, own[0]).IsLibrary() {
		return false
	}
	grad, n := x.gradientOf(row, x.end(row)), x.t.Lives[row].Requested
	if grad < 0 {
		return false
	}
	sum, added := x.lastBefore(x.end(grad)), int32(-1)
	for of := range x.goneBehind(sum) {
		if of > grad && of < sum && x.t.Lives[of].Requested == n && x.phase(of) == inBackward {
			added = of
		}
	}
	if added < 0 || x.t.Lives[sum].Requested != n {
		return false
	}
	k, _ := slices.BinarySearch(x.needs, row)
	for _, of := range slices.Backward(x.needs[:k]) {
		if x.t.Lives[of].Requested == n && x.end(of) > x.t.Lives[added].Born {
			return !x.narrow[of]
		}
	}
	return false
}
