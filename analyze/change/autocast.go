package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Activations of 16 bits where parameters keep 32 are those of torch.autocast (aten/src/ATen/autocast_mode.h): products of
// matrices and convolutions get copies of 16 bits of what they are given; norms, softmaxes and losses compute in 32 bits, in copies;
// all else takes the larger type of what it is given. Of what the program computes itself, a power or an exponential is not known.

// autocast has passes compute as under torch.autocast, and gives the rows that have 16 bits then, and how many bytes less a pass may
// need, where functions with a backward of their own make 16 bits too.
func (d *draft) autocast() (narrow map[int32]bool, unsure int64) {
	const large = 64 << 10 // bytes
	var matrices []int32
	for row := range d.rows() {
		if d.t.Lives[row].Requested >= large && d.is(row, category.Parameter) {
			matrices = append(matrices, row)
		}
	}
	narrow = map[int32]bool{}
	weights := map[int64]int{}
	for i := range d.passes {
		for n, times := range d.gradientCounts(&d.passes[i]) {
			weights[n] = max(weights[n], times)
		}
	}
	weighed, given, made := map[int32]int32{}, map[int32]int32{}, trainedRows{}
	var left []product16
	for i := range d.passes {
		p := &d.passes[i]
		x := autocast{draft: d, pass: p, forward: d.results(p), narrow: narrow, wide: map[int32]bool{}, normed: map[int32]bool{},
			own: map[int32]bool{}, casts: map[int32]bool{}, matrices: matrices, needs: d.savedRows(p),
			weights: weights, weighed: weighed, given: given,
			sums: map[int32]int32{}, summed: map[int32][]int32{}, ownNorms: d.norms(p)}
		x.addUps()
		x.findPiled()
		m := x.modelOf()
		if m != nil {
			x.outside = x.rowsOutside(m)
			maps.Copy(x.wide, x.outside)
		}
		d.castCrossEntropies(p, narrow, x.wide)
		if !d.underAutocast {
			for _, row := range d.castTiles(p, x.wide, true) {
				narrow[row], x.wide[row] = true, true
			}
		}
		d.castLosses(p, x.wide, func(stack []snapshot.FrameID, depth int) bool {
			return d.upcasts(stack, depth) || d.isLoss(stack, depth)
		})
		maps.DeleteFunc(x.wide, func(row int32, _ bool) bool { return x.outside[row] })
		if x.tells() {
			x.typesTold()
		} else {
			x.types()
		}
		x.copyWidened()
		left = x.goOn(left)
		x.weighOwn()
		left = append(left, x.castGiven()...)
		var like map[int32]int32
		like, made = x.likenesses(made)
		x.typesLike(like)
		if m != nil {
			x.castOutput(m)
		}
		unsure = max(unsure, x.castBack())
	}
	return narrow, unsure
}

// castCrossEntropies has cross entropies make logarithms of probabilities of the type of their logits, which they say
// (aten/src/ATen/native/LossNLL.cpp: cross_entropy_loss), and only what comes behind compute in 32 bits, in a copy that is saved; and
// backward the same. It notes the rows that have 16 bits, and those that are done with.
func (d *draft) castCrossEntropies(p *pass, narrow, wide map[int32]bool) {
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		if wide[row] || !d.inCrossEntropy(row) {
			continue
		}
		if d.last(row) < p.begin {
			d.castUnsaved(row, narrow, wide)
		}
		if !d.saved(p, row) {
			continue
		}
		same := map[int32]bool{}
		second := d.gradientsOf(p, row, same)
		if len(same) != 2 {
			continue // it is not the whole of it, or nothing goes back through it
		}
		first := int32(-1)
		for grad := range same {
			if grad != second {
				first = grad
			}
		}
		born := d.t.Lives[second].Born
		if d.end(first) < born || d.t.Lives[first].Born+1 >= born {
			continue
		}
		narrow[row], wide[row], wide[first] = true, true, true
		d.add(row, d.t.Lives[row].Born+1, d.t.Lives[first].Born).bytes = d.sizes[row] // behind what is copied
		d.add(first, born-1, d.end(first)).parts = 2
		d.until(first, born-1)
	}
}

// castUnsaved is castCrossEntropies for a row that nothing goes back through.
func (d *draft) castUnsaved(row int32, narrow, wide map[int32]bool) {
	const least = 4096 // bytes
	last := row
	for int(last)+1 < len(d.t.Lives) && d.code(last+1) == d.code(row) && d.sizes[last+1] < d.sizes[row] {
		last++
	}
	if last == row || d.sizes[row] < least || d.end(row) <= d.t.Lives[last].Born {
		return
	}
	narrow[row], wide[row] = true, true
	d.add(row, d.t.Lives[row].Born+1, min(d.returned(last), d.end(row)-1)).bytes = d.sizes[row]
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
	own          map[int32]bool // results that operations save themselves
	casts        map[int32]bool // gradients that go over to another type, and whether that is the wider one
	matrices     []int32        // large parameters
	weights      map[int64]int  // by size, how many gradients of parameters a pass makes at most
	needs        []int32        // what backward needs, see savedRows
	widened      []widened      // see copyWidened
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
}

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
	powers := x.powers()
	for _, row := range x.forward {
		if x.wide[row] || x.outside[row] || x.masks(row) {
			continue
		}
		code, size := x.stack(x.code(row))[0], x.t.Lives[row].Requested
		begun = begun || x.around[x.t.Lives[row].Stack] != 0
		other := last < 0 || size != x.t.Lives[last].Requested
		group, norm := x.norm(row)
		x.normed[row] = norm
		switch of, name := x.precision(row); {
		case x.ofWeight(row, name):
			half = true
		case of == frames.Weighs, of == frames.Half:
			product, heads := x.isProduct(row), strings.Contains(name, "multi_head_attention")
			n := len(x.products)
			if half = !heads || product || !other || n == 0 || x.products[n-1].row != last; !half {
				break // the mean over heads of what a softmax made
			}
			if weighs := of == frames.Weighs || product && !heads; weighs || product || other {
				x.products = append(x.products, product16{row, weighs})
			}
		case of == frames.Full:
			half = false
			x.own[row] = strings.Contains(name, "softm")
			if frames.IsPower(name) && !other && x.narrow[last] && !norms[row] {
				x.widened = append(x.widened, widened{last, row})
			}
		case norms[row]:
			half = false
		case powers[row] > 0:
			half = half && powers[row] == 1
		case frames.Of(x.s, code).IsLibrary() && of != frames.Contracts: // it takes what it is given
			const aside = 8 // times smaller: what the program made last is something else
			if was, seen := latest[size]; seen && x.t.Lives[last].Requested*aside < size {
				half = was
			}
		case norm:
			was, seen := stream[size]
			half = half && (seen && was || !seen && group)
		case last >= 0 && x.widens(row, last) && !x.isProduct(row):
			half = x.otherIsNarrow(row)
		case last >= 0 && !x.weights16 && x.appends(last, row):
			half = false
		case last >= 0 && !other && !x.weights16 && x.scaled(last) && !x.isProduct(row):
			half, x.normed[last] = false, true
		case !x.isProduct(row) && x.takesWide(row), other && x.takesTwo(row):
			half = false
		case other && (begun || x.isProduct(row)): // of what the program multiplies itself
			half = true
			x.products = append(x.products, product16{row, false})
		case x.scores(last) && x.savesOwn(row) && !x.saved(x.pass, last): // a softmax
			half, x.own[row] = false, true
		}
		if last = row; norm {
			stream[size] = half
		}
		latest[size] = half
		if half {
			x.makeNarrow(row)
		}
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
	const far = 256 // results
	k, _ := slices.BinarySearch(x.forward, row)
	for _, of := range slices.Backward(x.forward[max(k-far, 0):k]) {
		if x.t.Lives[of].Requested == x.t.Lives[row].Requested && x.end(of) > x.t.Lives[row].Born {
			return x.narrow[of]
		}
	}
	return x.weights16
}

// takesWide reports whether something of 32 bits and of the size of a row is let go of behind it, see goneBehind: that is taken to be an
// operand, so that the row has 32 bits, too.
func (x *autocast) takesWide(row int32) bool {
	for of := range x.goneBehind(row) {
		_, made := slices.BinarySearch(x.forward, of)
		if made && !x.narrow[of] && x.t.Lives[of].Requested == x.t.Lives[row].Requested {
			return true
		}
	}
	return false
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

// makeNarrow has a row have 16 bits, and what a convolution unfolds for it.
func (x *autocast) makeNarrow(row int32) {
	x.narrow[row] = true
	unfolds := x.convolves(row)
	for of := row + 1; unfolds && of < x.operation(row).to && x.byproduct(of); of++ {
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
			of.weighs = x.gradientAt(x.end(last)) >= 0
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

// masks reports whether a function makes a row that says in its name that it makes masks: what these are made of is no product.
func (x *autocast) masks(row int32) bool {
	return slices.ContainsFunc(x.stack(x.code(row)), func(id snapshot.FrameID) bool {
		return strings.Contains(x.name(id), "mask")
	})
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
		if to-from >= least && !frames.Of(x.s, x.stack(x.code(first))[0]).IsLibrary() {
			for k, row := range x.forward[from:to] {
				out[row] = k + 1
			}
			if from > 0 && x.saved(x.pass, x.forward[from-1]) {
				given, power := x.forward[from-1], x.forward[from+1]
				if x.t.Lives[given].Requested == x.t.Lives[power].Requested && x.last(given) == x.end(given) {
					x.add(power, x.t.Lives[power].Born, x.end(given))
					x.until(given, x.leaves(given))
				}
			}
		}
		from = to
	}
	return out
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
	return x.saved(x.pass, row) && x.gradientAt(x.end(row)) < 0
}

// scores reports whether a row is of the size of the last product, and that was the program's own, as scores of attention are.
func (x *autocast) scores(row int32) bool {
	n := len(x.products)
	return n > 0 && !x.products[n-1].weighs && x.t.Lives[x.products[n-1].row].Requested == x.t.Lives[row].Requested
}

// isProduct reports whether a workspace is asked for next.
func (x *autocast) isProduct(row int32) bool {
	return int(row)+1 < len(x.t.Lives) && (x.scratch(row+1) || x.is(row+1, category.Workspace))
}

// results are those of operations on the way to a pass.
func (d *draft) results(p *pass) (out []int32) {
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		switch of, _ := d.uses.Of(row); {
		case of == category.Input, of == category.Parameter, of == category.Communication,
			d.phase(row) != inProgram, len(d.stack(d.code(row))) == 0,
			d.worksIn(row), d.beside(row), d.byproduct(row), d.partial(row), d.scratch(row):
		default:
			out = append(out, row)
		}
	}
	return out
}

// copyWidened has operators of 32 bits make a copy of what has 16, which those that save what they are given keep, and others, as
// softmaxes, have until they are done. What norms do castGiven knows, and of what one operator alone saves; what losses do castLosses.
func (x *autocast) copyWidened() {
	for _, w := range x.widened {
		o := x.operator(w.result)
		if x.normed[w.given] || o.Widens() || strings.HasSuffix(o.Ruled, "_norm") || x.wide[w.result] {
			continue
		}
		born, end := x.t.Lives[w.result].Born, x.t.Lives[w.result].Born
		if !o.SavesResult() && x.saved(x.pass, w.given) {
			gone := x.end(w.given)
			if again, ok := x.remade[w.result]; !ok {
				end = gone
			} else if again.event >= 0 && again.event < gone {
				made := x.add(w.given, again.event, gone)
				made.Turn, made.bytes = again.turn-1, x.sizes[w.given]
			}
		}
		x.add(w.given, born, end).bytes = x.sizes[w.given]
		if o.Name == "" {
			x.widenBack(w)
		}
	}
}

// widenBack has the node of an operator of 32 bits, which runs between those that let go of its result and of what it is given, have 32
// bits, where C++ does not tell it, and what it gives on go over to 16.
func (x *autocast) widenBack(w widened) {
	if !x.saved(x.pass, w.result) || !x.saved(x.pass, w.given) {
		return
	}
	begin, over := x.end(w.result), x.before(x.end(w.given))
	grad := int32(-1)
	for row := x.lastBefore(begin) + 1; row < x.pass.rows.to && x.t.Lives[row].Born <= over; row++ {
		if x.t.Lives[row].Requested == x.t.Lives[w.given].Requested && x.phase(row) == inBackward {
			x.wide[row], grad = true, row
		}
	}
	if grad >= 0 && x.end(grad) > over {
		x.castAt(grad, over, false)
	}
}

// castAt has a node make a gradient in 16 bits, of which 32 are made when it is over, at an event, and has let go of what it had; or the
// other way.
func (x *autocast) castAt(grad, over int32, wider bool) {
	if next := x.lastBefore(over) + 1; next < x.pass.rows.to && grad >= 0 && x.t.Lives[next].Born < x.last(grad) {
		over = x.t.Lives[next].Born
	}
	if grad < 0 || x.drop[grad] || over <= x.t.Lives[grad].Born || over >= x.last(grad) {
		return
	}
	_, part := x.partOf[grad]
	_, added := x.sums[grad]
	if wider && !part && !added && x.goesAtOnce(grad) {
		x.castPiled(grad)
		return
	}
	turn, like := x.turn(over, 2), grad
	if wider {
		like = x.sumInPlace(grad)
	}
	after := x.add(like, over, x.last(like))
	after.Turn = turn
	if !wider {
		after.parts = 2
	}
	before := x.add(grad, x.t.Lives[grad].Born, over)
	before.Until = turn + 1
	if wider {
		before.parts = 2
	}
	x.drop[grad], x.casts[grad] = true, wider
}

// castPiled has a gradient of 16 bits go over to 32 right before it is added to that of a smaller batch before.
func (x *autocast) castPiled(grad int32) {
	at := x.last(grad)
	turn := x.turn(at, 3)
	before := x.add(grad, x.t.Lives[grad].Born, at)
	before.Until, before.parts = turn+1, 2
	after := x.add(grad, at, at)
	after.Turn, after.Until = turn, turn+2
	x.drop[grad], x.casts[grad] = true, true
}

// sumInPlace has what a pass adds up for the gradient of a parameter be added to the first of it, which is a tensor of its own where that
// goes over to 32 bits, and gives the row that this stays as: the sum, or the row itself where it is not the first.
func (x *autocast) sumInPlace(row int32) int32 {
	sum, ok := x.sums[row]
	if !ok {
		return row
	}
	all := x.summed[sum]
	if all[0] != row {
		return row
	}
	for _, other := range all {
		x.drop[other] = x.drop[other] || x.addends(other) != nil
	}
	x.drop[sum] = true
	return sum
}

// gradientOf is the gradient of a row that the node makes which lets go of something at an event, as far as sizes tell, -1 for none.
func (x *autocast) gradientOf(row, end int32) int32 {
	begin := x.before(end)
	for k := x.lastBefore(end); k >= x.pass.rows.from && x.t.Lives[k].Born > begin; k-- {
		_, part := x.partOf[k]
		if x.t.Lives[k].Requested == x.t.Lives[row].Requested && !part && !x.gradient(k) && !x.piled[k] && !x.worksIn(k) &&
			x.phase(k) == inBackward {
			return k
		}
	}
	return -1
}

// copyWide has a norm of torch's compute in 32 bits, in a copy of what it is given that it saves.
func (x *autocast) copyWide(row int32) {
	saver := x.savedBy(row).saver
	if saver < 0 || x.last(row) != x.end(row) {
		return
	}
	if of, _ := x.precision(saver); of != frames.Full {
		return
	}
	x.castAt(x.gradientOf(row, x.end(row)), x.end(row), false)
	x.copySaved(row, saver)
}

// copySaved has what saves a row of 16 bits save a copy of 32 in its place, which is made right before it.
func (d *draft) copySaved(row, saver int32) {
	born := max(d.t.Lives[d.operation(saver).from].Born, d.t.Lives[row].Born+1)
	d.add(row, born, d.end(row)).bytes = d.sizes[row]
	d.until(row, d.leaves(row))
}

// gradientAt is the largest gradient of a parameter that the node makes which lets go of something at an event, -1 for none: that of
// a product makes that of its weight.
func (x *autocast) gradientAt(end int32) int32 {
	begin, grad := x.before(end), int32(-1)
	for k := x.lastBefore(end); k >= x.pass.rows.from && x.t.Lives[k].Born > begin; k-- {
		_, part := x.partOf[k]
		_, added := x.sums[k]
		o := x.operator(k)
		of := (x.gradient(k) || part || added || x.piled[k]) && x.addends(k) == nil && (o.Name == "" || o.GivesOn() == frames.Half)
		if of && (grad < 0 || x.t.Lives[k].Requested > x.t.Lives[grad].Requested) {
			grad = k
		}
	}
	return grad
}

// addUps finds what the pass adds up for the gradients of parameters that are used several times, in the order of birth.
func (x *autocast) addUps() {
	p := x.pass
	for row := p.rows.to - 1; row >= p.rows.from && x.t.Lives[row].Born >= p.begin; row-- {
		of := row
		if sum, ok := x.sums[row]; ok {
			of = sum
		} else if !x.gradient(row) {
			continue
		}
		for _, added := range x.addends(row) {
			x.sums[added] = of
			x.summed[of] = append(x.summed[of], added)
		}
	}
	for _, of := range x.summed {
		slices.Sort(of)
	}
}

// findPiled finds what a pass makes for parameters that have a gradient from a smaller batch before, to which it is added
// in place: it goes at once, see goesAtOnce. What has the size of a result, too, has to be a product. Where the pass goes
// through another model than its own besides, as that of a generator goes through its critic, there may be as many as of
// that model's parameters.
func (x *autocast) findPiled() {
	results := map[int64]bool{}
	for _, row := range x.forward {
		results[x.t.Lives[row].Requested] = true
	}
	own := x.gradientSizes(x.pass)
	x.piled = map[int32]bool{}
	others := map[int64][]int32{} // by size
	for row := x.pass.rows.from; row < x.pass.rows.to; row++ {
		n := x.t.Lives[row].Requested
		_, part := x.partOf[row]
		_, added := x.sums[row]
		switch {
		case x.phase(row) != inBackward, x.weights[n] == 0, x.gradient(row), part, added, x.worksIn(row), !x.goesAtOnce(row):
		case !own[n] && (!results[n] || x.isProduct(row)):
			x.piled[row] = true
		case x.pass.reach < x.pass.rows.from:
			others[n] = append(others[n], row)
		}
	}
	for n, rows := range others {
		if len(rows) == x.weights[n] {
			for _, row := range rows {
				x.piled[row] = true
			}
		}
	}
}

// ownBackward reports whether a function with a backward of its own makes a row (torch.autograd.Function), in the types that it says.
func (x *autocast) ownBackward(row int32) bool {
	return slices.ContainsFunc(x.stack(x.code(row)), func(id snapshot.FrameID) bool {
		return x.name(id) == "backward"
	})
}

// castBack gives what backward passes on the types of what it is the gradient of, as far as sizes tell, and says how large the largest
// row is of functions with a backward of their own.
func (x *autocast) castBack() (unsure int64) {
	balance := map[int64]int{} // by size, how many more rows have 16 bits
	for _, row := range x.forward {
		n := -1
		if x.narrow[row] {
			n = 1
		}
		balance[x.t.Lives[row].Requested] += n
	}
	p := x.pass
	latest, last := map[int64]bool{}, false // by size, whether the last that C++ tells of has 16 bits, and of any size
	note := func(row int32, half bool) { latest[x.t.Lives[row].Requested], last = half, half }
	saved := map[int64][]int32{} // by size, in the order of their ends
	for _, row := range x.needs {
		saved[x.t.Lives[row].Requested] = append(saved[x.t.Lives[row].Requested], row)
	}
	for _, rows := range saved {
		sorting.By(rows, func(a, b int32) int { return cmp.Or(cmp.Compare(x.end(a), x.end(b)), cmp.Compare(a, b)) })
	}
	for row := p.rows.from; row < p.rows.to; row++ {
		l := &x.t.Lives[row]
		if l.Born < p.begin || x.phase(row) != inBackward {
			continue
		}
		if x.ownBackward(row) {
			unsure = max(unsure, x.sizes[row])
			continue
		}
		_, added := x.sums[row]
		if x.gradient(row) || added || x.piled[row] || x.wide[row] || x.is(row, category.Workspace) || x.is(row, category.Communication) {
			continue
		}
		o := x.operator(row)
		if o.Name != "" && x.partial(row) {
			continue
		}
		if wider, ok := x.casts[row]; ok {
			note(row, !wider)
			continue
		}
		if of := o.GivesOn(); of != frames.AsGiven {
			x.narrow[row] = of == frames.Half
			note(row, x.narrow[row])
			continue
		}
		of := saved[l.Requested]
		next, _ := slices.BinarySearchFunc(of, l.Born, func(row, e int32) int { return cmp.Compare(x.end(row), e) })
		near := next < len(of) && x.end(of[next]) < l.Born+ofNorm
		was, seen := latest[l.Requested]
		switch on := o.Passes(); {
		case on == frames.OtherSize || o.SumsUp() && len(latest) > 0:
			x.narrow[row] = last
		case on == frames.SameSize && seen:
			x.narrow[row] = was
		case near:
			x.narrow[row] = x.narrow[of[next]]
		case seen:
			x.narrow[row] = was
		default:
			x.narrow[row] = balance[l.Requested] > 0
		}
		if o.Name != "" {
			note(row, x.narrow[row])
		}
	}
	return unsure
}
