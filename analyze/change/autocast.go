package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/snapshot"
)

// Activations of 16 bits where parameters keep 32 are those of torch.autocast (aten/src/ATen/autocast_mode.h): products of
// matrices and convolutions get copies of 16 bits of what they are given; norms, softmaxes and losses compute in 32 bits, in copies;
// all else takes the larger type of what it is given. Of what the program computes itself, a power or an exponential is not known.

// autocast has passes compute as under torch.autocast, and gives the rows that have 16 bits then, and how many bytes less a pass may
// need, where functions with a backward of their own make 16 bits too, or where it does not make 32 of logits that it caps. Some rows, of
// evaluations, keep 32.
func (d *draft) autocast(wider map[int32]bool) (narrow map[int32]bool, unsure, capped int64) {
	const large = 64 << 10 // bytes
	var matrices []int32
	sizes := map[int64]int{} // of these
	for row := range d.rows() {
		if d.t.Lives[row].Requested >= large && d.is(row, category.Parameter) {
			matrices = append(matrices, row)
			sizes[d.t.Lives[row].Requested]++
		}
	}
	narrow = map[int32]bool{}
	weights := map[int64]int{}
	for i := range d.passes {
		for n, times := range d.gradientCounts(&d.passes[i]) {
			weights[n] = max(weights[n], times)
		}
	}
	weighed, given, own, made := map[int32]int32{}, map[int32]int32{}, map[int32]bool{}, trainedRows{}
	var left []product16
	for i := range d.passes {
		p := &d.passes[i]
		x := autocast{draft: d, pass: p, forward: d.results(p), narrow: narrow, wide: map[int32]bool{}, normed: map[int32]bool{},
			powered: map[int32]bool{}, own: own, casts: map[int32]bool{}, matrices: matrices, ofSize: sizes, needs: d.savedRows(p),
			weights: weights, weighed: weighed, given: given,
			sums: map[int32]int32{}, summed: map[int32][]int32{}, ownNorms: d.norms(p), reformatted: map[int64]bool{}}
		x.findReformatted()
		x.addUps()
		x.findPiled()
		m, once := x.modelOf(), x.rowsOnce()
		maps.Copy(once, wider)
		if x.outside = once; m != nil {
			x.outside = x.rowsOutside(m)
		}
		maps.Copy(x.wide, x.outside)
		capped = max(capped, x.castCrossEntropies())
		if !d.underAutocast {
			for _, row := range d.castTiles(p, x.wide, true) {
				narrow[row], x.wide[row] = true, true
			}
		}
		d.castLosses(p, x.wide, false, func(stack []snapshot.FrameID, depth int) bool {
			return d.upcasts(stack, depth) || d.isLoss(stack, depth)
		})
		maps.DeleteFunc(x.wide, func(row int32, _ bool) bool { return x.outside[row] })
		if x.tells() {
			x.typesTold()
		} else {
			x.types()
		}
		x.castReformatted()
		x.copyWidened()
		x.copySampled()
		left = x.goOn(left)
		x.weighOwn()
		x.findBases()
		left = append(left, x.castGiven()...)
		var like map[int32]int32
		like, made = d.likenesses(p, x.forward, made)
		maps.DeleteFunc(like, func(row, _ int32) bool { return once[row] })
		x.typesLike(like)
		if m != nil {
			x.castOutput(m)
		}
		unsure = max(unsure, x.castBack())
	}
	return narrow, unsure, capped
}

// castCrossEntropies has cross entropies make logarithms of probabilities of the type of their logits, which they say
// (aten/src/ATen/native/LossNLL.cpp: cross_entropy_loss), and only what comes behind compute in 32 bits, in a copy that is saved; and
// backward the same. It notes the rows that have 16 bits, and those that are done with. What is given capped logits is left to castLosses;
// it says how many bytes the largest of that has.
func (x *autocast) castCrossEntropies() (capped int64) {
	p := x.pass
	for row := p.rows.from; row < p.rows.to && x.t.Lives[row].Born < p.begin; row++ {
		if x.wide[row] || !x.inCrossEntropy(row) {
			continue
		}
		if x.capped(row) {
			capped = max(capped, x.sizes[row])
			continue
		}
		if given := x.wideBefore(row); given >= 0 {
			x.wide[row], x.wide[given] = true, true
			for _, grad := range x.gradientsOf(p, row) {
				x.wide[grad] = true
			}
			continue
		}
		if x.last(row) < p.begin {
			x.castUnsaved(row)
		}
		if !x.saved(p, row) {
			continue
		}
		grads := slices.DeleteFunc(x.gradientsOf(p, row), x.ownBackward)
		smoothed := len(grads) == 3 && x.smooths(p, row, grads)
		if len(grads) != 2 && !smoothed {
			continue // it is not the whole of it, or nothing goes back through it
		}
		first, last := grads[len(grads)-2], grads[len(grads)-1]
		born := x.t.Lives[last].Born
		if x.end(first) < born || x.t.Lives[first].Born+1 >= born {
			continue
		}
		if smoothed {
			x.narrow[grads[0]], x.wide[grads[0]] = true, true
			x.narrow[last], x.wide[last] = true, true
		}
		x.narrow[row], x.wide[row], x.wide[first] = true, true, true
		copied := x.t.Lives[row].Born + 1 // behind what is copied
		if laid := row + 1; x.laysOut(laid) {
			x.narrow[laid], x.wide[laid], copied = true, true, x.returned(laid)
		}
		x.add(row, copied, x.t.Lives[first].Born).bytes = x.sizes[row]
		x.add(first, born-1, x.end(first)).parts = 2
		x.until(first, born-1)
	}
	return capped
}

// laysOut reports whether a row is a copy that a cross entropy makes of logits which do not lie as the logarithms do that it makes before,
// as those of classes in the second dimension, and lets go of at once (aten/src/ATen/native/cuda/SoftMax.cu: host_softmax).
func (x *autocast) laysOut(row int32) bool {
	return int(row) < len(x.t.Lives) && x.code(row) == x.code(row-1) && x.sizes[row] == x.sizes[row-1] && x.end(row) <= x.returned(row)
}

// capped reports whether what a cross entropy is given that makes a row is the result of a product that the program caps, with a tanh
// between a division and a multiplication. Programs that do so, as modded-nanogpt and nanochat, make 32 bits of it before the loss, which
// allocates nothing in a program of 32 bits.
func (x *autocast) capped(row int32) bool {
	const steps = 3 // operations
	k, _ := slices.BinarySearch(x.forward, row)
	if k <= steps {
		return false
	}
	for at, of := range x.forward[k-steps : k] {
		if x.t.Lives[of].Requested != x.t.Lives[row].Requested || frames.Of(x.s, x.stack(x.code(of))[0]).IsLibrary() ||
			x.saved(x.pass, of) != (at == 1) {
			return false
		}
	}
	of, _ := x.precision(x.forward[k-steps-1])
	tanh := x.operator(x.forward[k-2]).Name
	return of == frames.Weighs && (tanh == "" || tanh == "tanh")
}

// smooths reports whether three gradients are of a cross entropy of smoothed labels: of their sum, of its choice and of its input, with
// nothing else of that size let go of meanwhile.
func (d *draft) smooths(p *pass, row int32, grads []int32) bool {
	const least = 4096 // bytes
	if d.t.Lives[row].Requested < least {
		return false
	}
	return !d.otherSaved(p, row, func(other int32) bool {
		return d.end(other) > d.t.Lives[grads[0]].Born && d.end(other) < d.end(row)
	})
}

// castUnsaved is castCrossEntropies for a row that nothing goes back through.
func (x *autocast) castUnsaved(row int32) {
	const least = 4096 // bytes
	last := row
	for int(last)+1 < len(x.t.Lives) && x.code(last+1) == x.code(row) && x.sizes[last+1] < x.sizes[row] {
		last++
	}
	if last == row || x.sizes[row] < least || x.end(row) <= x.t.Lives[last].Born {
		return
	}
	x.narrow[row], x.wide[row] = true, true
	over := x.returned(last)
	if x.unused[row] {
		over = x.end(row)
	}
	x.add(row, x.t.Lives[row].Born+1, min(over, x.end(row)-1)).bytes = x.sizes[row]
}

// inCrossEntropy reports whether a cross entropy makes a row, but for those that are known to be given 32 bits.
func (d *draft) inCrossEntropy(row int32) (found bool) {
	stack := d.stack(d.t.Lives[row].Stack)
	for depth := range stack {
		if d.upcasts(stack, depth) {
			return false
		}
		found = found || d.isCrossEntropy(stack, depth)
	}
	return found
}

// autocast is what torch.autocast does to a pass.
type autocast struct {
	*draft
	pass         *pass
	forward      []int32        // results of operations on the way to the pass
	narrow, wide map[int32]bool // rows of 16 bits, and of losses
	outside      map[int32]bool // rows that are not made under torch.autocast
	products     []product16
	normed       map[int32]bool // what norms are given, or scaled
	own          map[int32]bool // results that operations save themselves, of all passes
	casts        map[int32]bool // gradients that go over to another type, and whether that is the wider one
	matrices     []int32        // large parameters
	reformatted  map[int64]bool // the sizes of weights that convolutions copy into another memory format
	ofSize       map[int64]int  // how many of these there are of a size
	weights      map[int64]int  // by size, how many gradients of parameters a pass makes at most
	needs        []int32        // what backward needs, see savedRows
	widened      []widened      // see copyWidened
	powered      map[int32]bool // powers that have a copy of what they are given, see powers
	// sums are gradients of parameters by what was added up for them, and summed all that was for each, see addUps.
	sums     map[int32]int32
	summed   map[int32][]int32
	piled    map[int32]bool // see findPiled
	ownNorms []norm         // the program's own, in the order of birth
	// weighed are the gradients of the weights that products multiply, by the rows of these, of all passes.
	weighed map[int32]int32
	given   map[int32]int32 // what products are given a copy of, by the rows of these, of all passes
}

// widened is a row of 16 bits that an operator is given that computes in 32, and its result.
type widened struct{ given, result int32 }

// product16 is the result of a product of matrices, or a convolution.
type product16 struct {
	row    int32
	weighs bool // by a parameter
	base   bool // of a layer that peft has an adapter for, which is frozen
	adapts bool // of such an adapter
	// doubtful is one that asks for no workspace where others do: it has 16 bits as a product has, but is given no copies.
	doubtful bool
}

// muchSmaller is by how many times what the program made last is smaller than what it makes of something else.
const muchSmaller = 8

// types finds the types of what is made on the way to the pass.
func (x *autocast) types() {
	norms := map[int32]bool{} // of the program's own
	for _, n := range x.ownNorms {
		for row := n.square; row <= n.out; row++ {
			norms[row] = true
		}
		x.normed[n.scaled] = true
		if in := x.inputOf(x.pass, n, x.end(n.scale)); in >= 0 {
			x.normed[in] = true
		}
	}
	half, last := false, int32(-1) // the last result
	// A module was called, if any is: before that, batches are put together, and averages of weights are made.
	begun := !slices.ContainsFunc(x.forward, func(row int32) bool { return x.around[x.t.Lives[row].Stack] != 0 })
	stream := map[int64]bool{} // by size, whether what a norm is given has 16 bits
	latest := map[int64]bool{} // by size, whether the last result has 16 bits
	works, leads := x.productsWork(), x.leadToProducts()
	powers, sums, centered, batches := x.powers(), x.addsParameters(), x.centered(), x.batches()
	for at, row := range x.forward {
		if x.wide[row] || x.outside[row] || batches[row] || x.masks(row) {
			continue
		}
		if x.looksUp(at) {
			x.wide[row] = true
			continue
		}
		if x.unfolds(row) {
			x.narrow[row] = true
			continue
		}
		code, size := x.stack(x.code(row))[0], x.t.Lives[row].Requested
		begun = begun || x.around[x.t.Lives[row].Stack] != 0
		other := last < 0 || size != x.t.Lives[last].Requested
		joined := x.joinedWith(row, last)
		group, norm := x.norm(row)
		x.normed[row] = norm
		norm = norm || centered[row]
		switch of, name := x.precision(row); {
		case x.ofWeight(row, name):
			half = true
		case !x.inMultiHead(row) && x.attends(x.pass, row):
			half, x.products = true, append(x.products, product16{row: row})
		case of == frames.Weighs, of == frames.Half:
			product, heads := x.isProduct(row), strings.Contains(name, "multi_head_attention")
			n := len(x.products)
			if half = !heads || product || !other || n == 0 || x.products[n-1].row != last; !half {
				break // the mean over heads of what a softmax made
			}
			if weighs := of == frames.Weighs || product && !heads; weighs || product || other {
				x.products = append(x.products, product16{row: row, weighs: weighs})
			}
		case of == frames.Full:
			half = false
			x.own[row] = strings.Contains(name, "softm")
			switch {
			case last < 0 || !x.narrow[last] || norms[row]:
			case frames.IsPower(name) && !other:
				x.widened = append(x.widened, widened{last, row})
			case frames.Interpolates(name) && size >= x.t.Lives[last].Requested:
				born := x.t.Lives[row].Born
				x.add(last, born, born).bytes = x.sizes[last] // it computes in 32 bits, and saves no input
			}
		case norms[row]:
			half = false
		case powers[row] > 0:
			half = half && powers[row] == 1
		case !other && x.narrow[last] && x.isPower(row, last):
			half, x.widened = false, append(x.widened, widened{last, row})
		case !x.weights16 && x.shifts(at):
			half = false
		case of != frames.Contracts && (frames.Of(x.s, code).IsLibrary() || frames.Rearranges(x.file(code))): // it takes what it is given
			if was, seen := latest[size]; seen && x.t.Lives[last].Requested*muchSmaller < size {
				half = was
			}
		case norm:
			was, seen := stream[size]
			half = half && (seen && was || !seen && group)
		case sums[row] && !x.weights16:
			half = false
		case half && !other && x.sumsWide(row):
			half = false
		case last >= 0 && x.widens(row, last) && !x.isProduct(row):
			half = x.otherIsNarrow(row)
		case last >= 0 && !x.weights16 && x.appends(last, row):
			half = false
		case last >= 0 && !other && !x.weights16 && x.scaled(last) && !x.isProduct(row):
			half, x.normed[last] = false, true
		case joined >= 0:
			half = half && x.narrow[joined]
		case other && x.joinsWide(row, last):
			half = false
		case !other && (x.isLogarithms(row, last) || x.laysOutSoftmax(row, last)):
			half = false
			x.savesWide(last, row)
		case !x.isProduct(row) && x.takesWide(row), other && x.takesTwo(row):
			half = false
		case x.scalesBy(last, row):
			half = false
		case other && (of == frames.Contracts || begun && leads[at]), x.isProduct(row): // by the program itself
			doubtful := works && !x.isProduct(row)
			half = !doubtful || of == frames.Contracts || !x.computesWide(at, latest[size])
			x.products = append(x.products, product16{row: row, doubtful: doubtful})
		case x.scores(last) && x.savesOwn(row) && !x.saved(x.pass, last) && !x.forProduct(row): // a softmax
			half = false
			x.savesWide(last, row)
		case last >= 0 && x.t.Lives[last].Requested*muchSmaller < size:
			was, seen := latest[size]
			half = half && (was || !seen)
		}
		if last = row; norm {
			stream[size] = half
		}
		latest[size] = half
		if half {
			x.makeNarrow(row)
		}
	}
	x.products = slices.DeleteFunc(x.products, func(of product16) bool { return of.doubtful })
}

// batches are what the program makes in its own code of the size of a batch that it gave modules, before it gives the same call another,
// as what an environment answers with, or a batch that steps of a sampler go on from: what comes from the host has 32 bits, as what is
// computed of such a batch has, and what all of them are put together to.
func (x *autocast) batches() map[int32]bool {
	type given struct {
		bytes  int64
		around int32 // the number of the frames around the call
	}
	inputs, out := map[given]bool{}, map[int32]bool{}
	bySize, byCode := map[int64][]int32{}, map[snapshot.StackID]int64{} // inputs and batches, and the bytes of these
	next := x.pass.rows.from                                            // that a module makes
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		input, n := x.is(row, category.Input), x.t.Lives[row].Requested
		if !input && (x.around[x.code(row)] != 0 || x.ownDepth(x.stack(x.code(row))) != 0) {
			continue
		}
		next = max(next, row+1)
		for next < x.pass.rows.to && x.around[x.code(next)] == 0 && x.t.Lives[next].Born < x.pass.begin {
			next++
		}
		of := given{bytes: n}
		if next < x.pass.rows.to {
			of.around = x.around[x.code(next)]
		}
		switch {
		case of.around != 0 && input:
			inputs[of], bySize[n] = true, append(bySize[n], row)
		case of.around != 0 && inputs[of], byCode[x.code(row)] == n && n > 0:
			out[row], byCode[x.code(row)], bySize[n] = true, n, append(bySize[n], row)
		default:
			out[row] = !input && x.joinsBatches(row, bySize)
		}
	}
	return out
}

// joinsBatches reports whether a row has room for all of some batches of a size that are there, by their size, or all but the one that is
// to be given next, and for nothing more.
func (x *autocast) joinsBatches(row int32, bySize map[int64][]int32) bool {
	all := x.t.Lives[row].Requested
	for n, rows := range bySize {
		if n == 0 || all%n != 0 || all/n > int64(len(rows)) {
			continue
		}
		times := int64(0)
		for _, of := range rows {
			if x.end(of) > x.t.Lives[row].Born {
				times++
			}
		}
		if times > 2 && (all == n*times || all == n*(times-1)) {
			return true
		}
	}
	return false
}

// centered are what norms of the program's own are given that take its mean off first, as those of layers that tutorials write by hand:
// their modules make two statistics or more, of many elements each, before anything of its size.
func (x *autocast) centered() map[int32]bool {
	const least, statistics = 2, 32
	out := map[int32]bool{}
	size := func(at int) int64 { return x.t.Lives[x.forward[at]].Requested }
	sameCall := func(i, j int) bool { return x.sameCall(x.t.Lives[x.forward[i]].Stack, x.t.Lives[x.forward[j]].Stack) }
	for at := 1; at < len(x.forward); at++ {
		n := size(at)
		if n <= number || n*statistics > size(at-1) || sameCall(at-1, at) {
			continue
		}
		to := at
		for to < len(x.forward) && size(to) == n && sameCall(to, at) {
			to++
		}
		if to-at >= least && to < len(x.forward) && size(to) == size(at-1) && sameCall(to, at) {
			out[x.forward[at-1]] = true
		}
	}
	return out
}

// savesWide has an operation of 32 bits save its own result, and be given a copy of the result before it where that has 16.
func (x *autocast) savesWide(last, row int32) {
	if x.own[row] = true; x.narrow[last] {
		x.widened = append(x.widened, widened{last, row})
	}
}

// goOn has the pass go back through products that passes before left, as those of a generator are whose critic is
// trained first. It gives those that it does not come to.
func (x *autocast) goOn(left []product16) (others []product16) {
	var own []product16
	for _, of := range left {
		if of.row < x.pass.reach {
			others = append(others, of)
		} else {
			own = append(own, of)
		}
	}
	x.products = append(own, x.products...)
	return others
}

// widens reports whether an operation under torch.autocast that was recorded makes a row of what has 16 bits and of
// something of 32, which it is as large as.
func (x *autocast) widens(row, of int32) bool {
	return x.underAutocast && x.narrow[of] && x.t.Lives[row].Requested == 2*x.t.Lives[of].Requested
}

// ofWeight reports whether a row has 16 bits where weights have them, whatever else it is made of: what a function embeds, and what norms
// of the program's own give.
func (x *autocast) ofWeight(row int32, function string) bool {
	if !x.weights16 {
		return false
	}
	_, gives := slices.BinarySearchFunc(x.ownNorms, row, func(n norm, row int32) int { return cmp.Compare(n.out, row) })
	return gives || function == "embedding"
}

// otherIsNarrow reports whether such a row has 16 bits now: where the other has, which is taken to be the last of that size
// that is still there.
func (x *autocast) otherIsNarrow(row int32) bool {
	if of := x.lastThere(row, row, x.t.Lives[row].Requested); of >= 0 {
		return x.narrow[of]
	}
	return x.weights16
}

// nearBy is how many results away another is looked for at most that an operation takes, too.
const nearBy = 256

// lastThere is the last result before one of a size, in bytes, that is still there when a row is made; -1 for none.
func (x *autocast) lastThere(before, row int32, n int64) int32 {
	k, _ := slices.BinarySearch(x.forward, before)
	for _, of := range slices.Backward(x.forward[max(k-nearBy, 0):k]) {
		if x.t.Lives[of].Requested == n && x.end(of) > x.t.Lives[row].Born {
			return of
		}
	}
	return -1
}

// takesWide reports whether something of 32 bits and of the size of a row is let go of behind it, see goneBehind: that is taken to be an
// operand, so that the row has 32 bits, too.
func (x *autocast) takesWide(row int32) bool {
	return slices.ContainsFunc(x.operandsBehind(row), func(of int32) bool { return !x.narrow[of] })
}

// operandsBehind are the results of the size of a row that are let go of behind it, see goneBehind, which are taken to be its operands:
// none where they are more than those of an operator of two, for then a function returns and lets go of all that it had.
func (x *autocast) operandsBehind(row int32) (out []int32) {
	const operands = 2
	for of := range x.goneBehind(row) {
		if _, made := slices.BinarySearch(x.forward, of); made && x.t.Lives[of].Requested == x.t.Lives[row].Requested {
			out = append(out, of)
		}
	}
	if len(out) > operands {
		return nil
	}
	return out
}

// takesTwo reports whether two vectors are let go of behind a row that has as many elements as both together: mostly they are sums, as of
// the squares of vectors whose distances a program computes, and those have 32 bits.
func (x *autocast) takesTwo(row int32) bool {
	const element = 4 // bytes
	of := slices.Collect(x.goneBehind(row))
	if len(of) != 2 {
		return false
	}
	a, b := x.t.Lives[of[0]].Requested, x.t.Lives[of[1]].Requested
	return a > element && b > element && a*b == element*x.t.Lives[row].Requested
}

// addsFixed reports whether a row may be the sum of another, beside which nothing of its size is there, and of something of 32 bits that
// the model does not train, as positions that are computed once, or a bias of logits: no gradient tells of it, and nothing makes it on the
// way to the pass.
func (x *autocast) addsFixed(row, other int32) bool {
	n, many, found := x.t.Lives[row].Requested, map[int64]int{}, false
	for of := range x.rows() {
		m := x.t.Lives[of].Requested
		switch {
		case of >= row:
			return found && !x.weights16
		case of == other || x.end(of) <= x.t.Lives[row].Born:
		case m == n && of >= x.pass.rows.from:
			return false
		case x.is(of, category.Parameter) && m > number && m < n && n%m == 0:
			many[m]++
			found = found || many[m] > x.weights[m]
		}
	}
	return false
}

// wideBefore is what was made last before a row and is as large, where it has 32 bits: an operation of that precision made it, as one that
// interpolates logits, or it is the sum of a product and of something fixed, as C++ tells it, or a model of transformers makes it of
// logits (final_logits_bias in transformers/models/bart/modeling_bart.py and others); -1 else.
func (x *autocast) wideBefore(row int32) int32 {
	k, _ := slices.BinarySearch(x.forward, row)
	if k < 1 || x.t.Lives[x.forward[k-1]].Requested != x.t.Lives[row].Requested {
		return -1
	}
	last := x.forward[k-1]
	of, name := x.precision(last)
	if of == frames.Full && !x.ofWeight(last, name) {
		return last
	}
	by := x.operator(last).Name
	if of == frames.Full || k < 2 || by != "add" && (by != "" || !x.ofTransformers(x.stack(x.code(last))[0])) {
		return -1
	}
	product := x.forward[k-2]
	of, _ = x.precision(product)
	if of == frames.Weighs && x.t.Lives[product].Requested == x.t.Lives[row].Requested && x.addsFixed(last, product) {
		return last
	}
	return -1
}

// makeNarrow has a row have 16 bits, and what a convolution unfolds for it.
func (x *autocast) makeNarrow(row int32) {
	x.narrow[row] = true
	convolves := x.convolves(row)
	for of := row + 1; convolves && of < x.operation(row).to && x.byproduct(of); of++ {
		x.narrow[of] = x.narrow[of] || !x.worksIn(of)
	}
}

// weighOwn finds products by parameters that the program asks for itself, as of layers that it writes by hand: the node that lets go of
// what was saved last before makes the gradient of one.
func (x *autocast) weighOwn() {
	for i := range x.products {
		of := &x.products[i]
		told := x.operator(of.row).Precision == frames.Half || x.operator(of.row).Precision == frames.Contracts
		if last := x.neededBefore(of.row); !of.weighs && last >= 0 && (told || x.isProduct(of.row)) {
			of.weighs = x.weightAt(x.end(last)) >= 0
		}
	}
}

// neededBefore is the last row before another that backward needs, -1 for none.
func (x *autocast) neededBefore(row int32) int32 {
	k, _ := slices.BinarySearch(x.needs, row)
	if k == 0 {
		return -1
	}
	return x.needs[k-1]
}

// joinedWith is what a row may join to the result before it (torch.cat, which has no frame of Python and takes the larger type): the last
// of the rest's size that is still there, or that result itself, of several that one line made; -1 for none.
func (x *autocast) joinedWith(row, last int32) int32 {
	if last < 0 || x.isProduct(row) {
		return -1
	}
	n, own := x.t.Lives[last].Requested, x.stack(x.code(last))
	rest := x.t.Lives[row].Requested - n
	if rest <= 0 || n <= 0 || len(own) == 0 {
		return -1
	}
	if rest%n == 0 && x.joinsAll(row, last) {
		return last
	}
	if rest%n == 0 && !frames.Of(x.s, own[0]).IsLibrary() {
		return -1 // it may be that several times, as heads of keys that are fewer than those of queries
	}
	return x.lastThere(last, row, rest)
}

// joinsWide reports whether a row may join something of 32 bits, or a part of it, that functions of the program's have, to the result
// before it, as of what a model is given once more behind some layers: no row as large is there, as one is for what is computed element by
// element.
func (x *autocast) joinsWide(row, last int32) (wide bool) {
	const part = 16 // of what it is joined to, at least
	if last < 0 || !x.narrow[last] || x.isProduct(row) || frames.Of(x.s, x.stack(x.code(row))[0]).IsLibrary() {
		return false
	}
	n, all, born := x.t.Lives[last].Requested, x.t.Lives[row].Requested, x.t.Lives[row].Born
	rest := all - n
	if n == 0 || rest*part < n || rest <= 0 || rest%n == 0 {
		return false
	}
	each := kernel.GCD(n, rest)
	for of := last - 1; of >= max(last-nearBy, x.pass.rows.from); of-- {
		m := x.t.Lives[of].Requested
		switch {
		case m < rest, x.end(of) <= born, x.phase(of) != inProgram, x.is(of, category.Parameter), x.worksIn(of),
			x.saved(x.pass, of) && x.leaves(of) <= born:
		case m == all:
			return false
		case m%each == 0 && !x.narrow[of]:
			wide = true
		}
	}
	return wide
}

// joinsAll reports whether all that the line made that made the result before a row, of its size and as many as that has room for, is
// still there, and nothing saved it, as a product would have. A line that goes on has not made all of it.
func (x *autocast) joinsAll(row, last int32) bool {
	if x.saved(x.pass, last) {
		return false
	}
	n, all := x.t.Lives[last].Requested, int64(0)
	at, _ := slices.BinarySearch(x.forward, last)
	for _, of := range x.forward[max(at-nearBy, 0):min(at+nearBy, len(x.forward))] {
		l := &x.t.Lives[of]
		if l.Requested == n && x.code(of) == x.code(last) && x.end(of) > x.t.Lives[row].Born && l.Born < x.end(last) {
			all += n
		}
	}
	return all == x.t.Lives[row].Requested
}

// masks reports whether a function makes a row that says in its name that it makes masks: what these are made of is no product.
func (x *autocast) masks(row int32) bool {
	return slices.ContainsFunc(x.stack(x.code(row)), func(id snapshot.FrameID) bool {
		return strings.Contains(x.name(id), "mask")
	})
}

// looksUp reports whether a result at a place of those on the way to the pass are integers, which an embedding of torch's is given next
// that has several elements for each. Of one that has fewer the node tells, which lets go of them: it makes the gradient of the weight, and
// gives none on (aten/src/ATen/native/cuda/Embedding.cu: embedding_dense_backward_cuda; it sorts copies of them meanwhile).
func (x *autocast) looksUp(at int) bool {
	const least = 4 // times larger
	if at+1 == len(x.forward) {
		return false
	}
	row, next := x.forward[at], x.forward[at+1]
	n, all := x.t.Lives[row].Requested, x.t.Lives[next].Requested
	if !x.madeByTorch(next, "embedding") || frames.Of(x.s, x.stack(x.code(row))[0]).IsLibrary() || n == 0 || 2*all%n != 0 {
		return false
	}
	if all >= least*n && all%n == 0 {
		return true
	}
	grad := x.gradientOf(row, x.end(row))
	return x.saved(x.pass, row) && x.gradientAt(x.end(row)) >= 0 && (grad < 0 || x.end(grad) <= x.end(row))
}

// mayBePower reports whether a row is of a power, as far as C++ tells.
func (x *autocast) mayBePower(row int32) bool {
	name := x.operator(row).Name
	return name == "" || name == "pow"
}

// powers finds GELUs that programs write by hand, with a power of three, by the operations that their one statement makes: it gives
// the place of a row among them, from 1 on. The first is half of what they are given, the next a power, which computes in 32 bits, in
// a copy that it keeps, and all behind that has 32 bits too.
func (x *autocast) powers() map[int32]int {
	const least = 7 // operations
	out := map[int32]int{}
	for from := 0; from < len(x.forward); {
		first, to := x.forward[from], from+1
		alike := func(row int32) bool {
			return x.code(row) == x.code(first) && x.t.Lives[row].Requested == x.t.Lives[first].Requested
		}
		for to < len(x.forward) && alike(x.forward[to]) {
			to++
		}
		if to-from >= least && !frames.Of(x.s, x.stack(x.code(first))[0]).IsLibrary() && x.mayBePower(x.forward[from+1]) {
			for k, row := range x.forward[from:to] {
				out[row] = k + 1
			}
			if from > 0 && x.saved(x.pass, x.forward[from-1]) {
				given, power := x.forward[from-1], x.forward[from+1]
				if x.t.Lives[given].Requested == x.t.Lives[power].Requested && x.last(given) == x.end(given) {
					x.powered[power] = true
					x.add(power, x.t.Lives[power].Born, x.end(given))
					x.until(given, x.leaves(given))
				}
			}
		}
		from = to
	}
	return out
}

// isPower reports whether a row is a power that a program makes of the result before it by a function of Tensor's, which has no frame, as
// relu(x).square(): the node of that, between those that let go of the two but for that of what made the result and saved it, too,
// multiplies another power by the exponent and by the gradient in one statement, and lets go of the first two of these three, the latter
// first (torch/csrc/autograd/FunctionsManual.cpp: pow_backward).
func (x *autocast) isPower(row, last int32) bool {
	const made, next = 3, 4
	a := x.lastBefore(x.end(row)) + 1
	b, c, over := a+1, a+2, x.lastBefore(x.end(last))
	if !x.saved(x.pass, last) || !x.saved(x.pass, row) || x.isProduct(row) || over < a+made-1 || over >= a+next ||
		frames.Of(x.s, x.stack(x.code(row))[0]).IsLibrary() {
		return false
	}
	for k := a; k <= over; k++ {
		if x.t.Lives[k].Requested != x.t.Lives[row].Requested {
			return false
		}
	}
	return x.end(b) > x.t.Lives[c].Born && x.end(a) > x.end(b) && x.end(c) > x.end(a)
}

// appends reports whether a row is a convolution's result with little more, as where a vision transformer has tokens
// that it learns: those have the 32 bits of parameters.
func (x *autocast) appends(last, row int32) bool {
	const part = 8
	had, has := x.t.Lives[last].Requested, x.t.Lives[row].Requested
	return has > had && has-had <= had/part && x.convolves(last)
}

// scaled reports whether what reads a row for backward multiplies it by a vector that is learned, as the scale of a layer is: those
// have 32 bits.
func (x *autocast) scaled(row int32) bool {
	if !x.saved(x.pass, row) {
		return false
	}
	grad := x.gradientAt(x.end(row))
	return grad >= 0 && x.ofScale(grad, row)
}

// scalesBy reports whether a row is what the program multiplies, element by element, by something smaller of 32 bits that it made right
// before, as by the reciprocal of a norm, and has 32 bits, too: the node which lets go of that makes two gradients of the row's size, and
// then the engine sums one of these up (torch/csrc/autograd/FunctionsManual.cpp: mul_tensor_backward), which no product of matrices does.
func (x *autocast) scalesBy(last, row int32) bool {
	if last < 0 || x.narrow[last] || x.isProduct(row) || !x.saved(x.pass, last) {
		return false
	}
	n, m := x.t.Lives[row].Requested, x.t.Lives[last].Requested
	if m <= number || m >= n || n%m != 0 {
		return false
	}
	sum := x.lastBefore(x.end(last))
	size := func(row int32) int64 { return x.t.Lives[max(row, 0)].Requested }
	return x.phase(sum) == inBackward && size(sum) == m && size(sum-1) == n && size(sum-2) == n
}

// isLogarithms reports whether a row are the logarithms of probabilities that a program makes of the result before it by a function of
// Tensor's, which has no frame: backward needs it and not what it is made of, and one of torch's losses that take such is called next.
// A log_softmax computes in 32 bits.
func (x *autocast) isLogarithms(row, last int32) bool {
	k, _ := slices.BinarySearch(x.forward, row)
	if k+1 >= len(x.forward) || x.saved(x.pass, last) || x.end(row) <= x.pass.begin || x.isProduct(row) ||
		frames.Of(x.s, x.stack(x.code(row))[0]).IsLibrary() {
		return false
	}
	return slices.ContainsFunc(x.stack(x.code(x.forward[k+1])), func(id snapshot.FrameID) bool {
		return frames.Of(x.s, id).Part() == frames.Loss && frames.TakesLogarithms(x.name(id))
	})
}

// laysOutSoftmax reports whether a row is a softmax that a program makes of the result before it by a function of Tensor's, where that does
// not lie in one piece, as scores whose heads a layer mixed: it saves its result, and not what it is given, and copies that behind it.
func (x *autocast) laysOutSoftmax(row, last int32) bool {
	return !x.saved(x.pass, last) && x.laysOut(row+1) && x.savesOwn(row) && !x.isProduct(row)
}

// norm reports whether a row is what a norm of torch's is given that saves it, and whether that is one of groups.
func (x *autocast) norm(row int32) (group, is bool) {
	if x.normed[row] {
		return false, true
	}
	saver := x.savedBy(row).saver
	if saver < 0 {
		return false, false
	}
	of, name := x.precision(saver)
	if o := x.operator(saver); o.Name != "" {
		return false, of == frames.Full && !o.SavesResult() && !o.Widens()
	}
	return name == "group_norm", of == frames.Full && strings.HasSuffix(name, "_norm")
}

// precision is what torch.autocast makes of the code of a row, and the name of its function.
func (r *run) precision(row int32) (of frames.Precision, function string) {
	own := r.stack(r.code(row))
	if len(own) == 0 {
		return frames.AsGiven, ""
	}
	f := r.s.Frames.Get(own[0])
	function = r.s.Strings.Get(f.Name)
	if o := r.operator(row); o.Name != "" && !frames.Turns(function) {
		return o.Precision, cmp.Or(o.Ruled, o.Name)
	}
	return frames.PrecisionOf(r.s.Strings.Get(f.File), function), function
}

// savesOwn reports whether what saved a row is no product, but the operation that made it.
func (x *autocast) savesOwn(row int32) bool {
	return x.saved(x.pass, row) && x.weightAt(x.end(row)) < 0
}

// scores reports whether a row is of the size of the last product, and that was the program's own, as scores of attention are.
func (x *autocast) scores(row int32) bool {
	n := len(x.products)
	return n > 0 && !x.products[n-1].weighs && x.t.Lives[x.products[n-1].row].Requested == x.t.Lives[row].Requested
}

// results are those of operations on the way to a pass.
func (d *draft) results(p *pass) (out []int32) {
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		switch of, _ := d.uses.Of(row); {
		case of == category.Input, of == category.Parameter, of == category.Communication,
			d.phase(row) != inProgram, len(d.stack(d.code(row))) == 0,
			d.worksIn(row), d.beside(row), d.byproduct(row) && !d.resultOfProduct(row), d.partial(row),
			d.scratch(row):
		default:
			out = append(out, row)
		}
	}
	return out
}
