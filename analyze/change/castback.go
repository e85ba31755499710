package change

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// copyWidened has operators of 32 bits make a copy of what has 16, which those that save what they are given keep, and others, as
// softmaxes, have until they are done. What norms do castGiven knows, and of what one operator alone saves; what losses do castLosses.
func (x *autocast) copyWidened() {
	node := x.lastBefore(x.pass.begin) // backward goes the other way
	for _, w := range slices.Backward(x.widened) {
		o := x.operator(w.result)
		if x.normed[w.given] || o.Widens() || strings.HasSuffix(o.Ruled, "_norm") || x.wide[w.result] || x.powered[w.result] {
			continue
		}
		born, end := x.t.Lives[w.result].Born, x.t.Lives[w.result].Born
		if grad := x.nodeOf(w, o, node); grad >= 0 {
			end, node = x.t.Lives[grad].Born+1, grad+1 // the node lets go of the copy, and then what it gives on is copied
			x.castAt(grad, end, false)
		} else if !o.SavesResult() && x.saved(x.pass, w.given) {
			gone := x.end(w.given)
			if again, ok := x.remade[w.result]; !ok {
				end = gone
			} else if again.comesBefore(gone) {
				x.addAgain(w.given, again, gone).bytes = x.sizes[w.given]
			}
		}
		if n := x.copied(w, o); n > 0 {
			x.add(w.given, born, end).bytes = n
		}
		if o.Name == "" {
			x.widenBack(w)
		}
	}
}

// copySampled has torch's grid_sample be given a copy of 32 bits of what has 16, where the places that it samples at have 32 (promote in
// aten/src/ATen/autocast_mode.h): its node keeps that, and gives on a gradient of the size of what is sampled, and one of the places
// (aten/src/ATen/native/cuda/GridSampler.cpp: grid_sampler_2d_backward_cuda).
func (x *autocast) copySampled() {
	for at, row := range x.forward {
		if !x.madeByTorch(row, "grid_sample") {
			continue
		}
		places := x.neededBefore(row)
		if _, again := x.remade[row]; again || places < 0 || x.narrow[row] || x.narrow[places] {
			continue
		}
		over := x.end(places)
		ofPlaces := x.lastBefore(over)
		grad := ofPlaces - 1
		if grad <= row || x.t.Lives[ofPlaces].Requested != x.t.Lives[places].Requested ||
			x.t.Lives[grad].Born+1 != x.t.Lives[ofPlaces].Born {
			continue
		}
		for _, of := range slices.Backward(x.forward[max(at-farAway, 0):at]) {
			if x.t.Lives[of].Requested == x.t.Lives[grad].Requested && x.end(of) > x.t.Lives[row].Born && of != places {
				if x.narrow[of] && x.phase(grad) == inBackward {
					x.add(of, x.t.Lives[row].Born, over).bytes = x.sizes[of]
					x.castAt(grad, over, false)
				}
				break
			}
		}
	}
}

// copied is how many bytes the copy has: of a slice, which has no row of its own, those of what is made of it, and none where the operator
// copies what does not lie in one piece anyway, which it does in the other type then.
func (x *autocast) copied(w widened, o frames.Operator) int64 {
	n, made := x.sizes[w.given], x.sizes[w.result]
	switch {
	case made >= n || !o.SavesResult() && !o.IsElementwise():
		return n
	case x.laysOut(w.result + 1):
		return 0
	}
	return made
}

// nodeOf is the gradient that the next node from a row on makes which goes back through an operator of 32 bits that saves what it is
// given, where the program has that for longer than backward, -1 for none. Nothing goes back through what is made where nothing was
// saved for a while, as by a teacher.
func (x *autocast) nodeOf(w widened, o frames.Operator, from int32) int32 {
	const far = 4096 // rows
	if !o.IsElementwise() || o.SavesResult() || x.pass.open || x.end(w.given) <= x.pass.last {
		return -1
	}
	at, _ := slices.BinarySearch(x.forward, w.given)
	last, _ := slices.BinarySearch(x.forward, x.neededBefore(w.given))
	if at-last > recently {
		return -1
	}
	grad := int32(-1)
	for row := from; row < min(x.pass.rows.to, from+far); row++ {
		is := x.phase(row) == inBackward && x.operator(row).IsNodeOf(o.Name)
		switch {
		case is && x.t.Lives[row].Requested == x.t.Lives[w.given].Requested:
			grad = row
		case !is && grad >= 0:
			return grad
		}
	}
	return grad
}

// widenBack has the node of an operator of 32 bits, which runs between those that let go of its result and of what it is given, have 32
// bits, where C++ does not tell it, and what it gives on go over to 16. One that saves what it is given alone, as a power does, saves the
// copy of that, and its node gets 32 bits, too (torch/csrc/autograd/FunctionsManual.cpp: pow_backward).
func (x *autocast) widenBack(w widened) {
	if !x.saved(x.pass, w.given) {
		return
	}
	begin, over := x.end(w.result), x.before(x.end(w.given))
	power := !x.saved(x.pass, w.result)
	if power {
		begin, over = over, x.end(w.given)
		last := x.lastBefore(begin)
		for row := last; row > max(last-longNode, x.pass.rows.from); row-- {
			got := x.phase(row) == inBackward && x.end(row) > begin && x.end(row) <= over
			if got && x.t.Lives[row].Requested == x.t.Lives[w.result].Requested {
				x.wide[row] = true
			}
		}
	}
	grad := int32(-1)
	for row := x.lastBefore(begin) + 1; row < x.pass.rows.to && x.t.Lives[row].Born <= over; row++ {
		if x.t.Lives[row].Requested == x.t.Lives[w.given].Requested && x.phase(row) == inBackward {
			x.wide[row], grad = true, row
		}
	}
	if grad >= 0 && x.end(grad) > over {
		x.castAt(grad, over, false)
	}
	if power && grad >= 0 && x.last(w.given) == x.end(w.given) {
		x.until(w.given, x.leaves(w.given))
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
	begin := x.before(over)
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
	for row := x.lastBefore(over); wider && row >= x.pass.rows.from && x.t.Lives[row].Born > begin; row-- {
		if row != grad && x.t.Lives[row].Requested == x.t.Lives[grad].Requested && x.end(row) <= over && x.phase(row) == inBackward {
			x.narrow[row], x.casts[row] = true, true // what it has in another order of the dimensions
		}
	}
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
	if saver < 0 {
		return
	}
	again, redone := x.remade[x.operation(saver).from]
	if of, _ := x.precision(saver); of != frames.Full || !redone && x.last(row) != x.end(row) {
		return
	}
	x.castAt(x.gradientOf(row, x.end(row)), x.end(row), false)
	if !redone {
		x.copySaved(row, saver)
		return
	}
	if again.comesBefore(x.end(row)) {
		x.addAgain(row, again, x.end(row)).bytes = x.sizes[row]
	}
	if x.remade[row].event == again.event {
		x.goesAgain(row)
	}
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

// weightAt is gradientAt for a weight alone: what a node sums up, see partialsAt, is the gradient of a bias, or of a scale.
func (x *autocast) weightAt(end int32) int32 {
	if grad := x.gradientAt(end); grad >= 0 && !x.partialsAt(grad) {
		return grad
	}
	return -1
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
		for _, added := range x.addendsOrCopied(row) {
			x.sums[added] = of
			x.summed[of] = append(x.summed[of], added)
		}
	}
	for _, of := range x.summed {
		slices.Sort(of)
	}
}

// isMade reports whether a node of a product makes a row as the gradient of a parameter, or what AccumulateGrad makes a copy of for that.
func (x *autocast) isMade(row int32) bool {
	if sum, ok := x.sums[row]; ok {
		return len(x.summed[sum]) == 1
	}
	return x.gradient(row) && len(x.summed[row]) != 1 || x.piled[row]
}

// addendsOrCopied are the addends of a gradient, or what AccumulateGrad made a copy of, in the order of the elements of the parameter, as
// where convolutions go through channels last (torch/csrc/autograd/functions/accumulate_grad.h: new_empty_strided).
func (x *autocast) addendsOrCopied(row int32) []int32 {
	name := x.operator(row).Name
	if name != "new_empty_strided" && (name != "" || !x.reformatted[x.t.Lives[row].Requested]) {
		return x.addends(row)
	}
	if of := x.gradientBehind(row, x.t.Lives[row].Requested); of >= 0 {
		return []int32{of}
	}
	return nil
}

// findReformatted finds the sizes of weights that convolutions copy on the way to the pass, see reformats. They make the gradients of these
// in that format, too.
func (x *autocast) findReformatted() {
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		if x.reformats(row) {
			x.reformatted[x.t.Lives[row].Requested] = true
		}
	}
}

// castReformatted has convolutions copy weights of 16 bits into another memory format, forward and, beside the gradients, backward.
func (x *autocast) castReformatted() {
	for row := x.pass.rows.from; row < x.pass.rows.to; row++ {
		n := x.t.Lives[row].Requested
		if !x.reformatted[n] {
			continue
		}
		if x.reformats(row) && !x.wide[row] && !x.outside[row] {
			x.narrow[row] = true
		}
		if of, made := x.sums[row]; !made || len(x.summed[of]) != 1 {
			continue
		}
		begin := x.overBefore(x.t.Lives[row].Born)
		for of := row - 1; of >= x.pass.rows.from && x.t.Lives[of].Born > begin; of-- {
			if x.t.Lives[of].Requested == n && x.phase(of) == inBackward && x.end(of) <= x.end(row) {
				x.narrow[of] = true
			}
		}
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

// unfoldsBack reports whether a row is what the node of a convolution unfolds into that makes a gradient of 16 bits for its weight: it
// comes and goes while that is made (aten/src/ATen/native/cuda/ConvolutionMM2d.cu: slow_conv2d_grad_weight).
func (x *autocast) unfoldsBack(row int32) bool {
	wider := false
	for of := row + 1; of < x.pass.rows.to && x.t.Lives[of].Born < x.end(row) && !wider; of++ {
		wider = x.casts[of]
	}
	return wider && x.alone(row)
}

// typed is how many rows of a size have 16 bits, and how many 32.
type typed struct{ half, full int }

// typesBySize are those of the results on the way to the pass.
func (x *autocast) typesBySize() map[int64]typed {
	out := map[int64]typed{}
	for _, row := range x.forward {
		n := out[x.t.Lives[row].Requested]
		if x.narrow[row] {
			n.half++
		} else {
			n.full++
		}
		out[x.t.Lives[row].Requested] = n
	}
	return out
}

// halves reports whether all results that a row may be the gradient of have 16 bits, and what a model of accelerate's gives has not 32
// behind it.
func (x *autocast) halves(row int32, results map[int64]typed) bool {
	n := results[x.t.Lives[x.ofBase(row, results)].Requested]
	return n.half > 0 && n.full == 0 && !x.accelerates
}

// ofBase is the gradient of what a row is the gradient of a view of, the row itself where some result has its size: the node of a view
// lets go of what it is given, and gives on as much as that is a view of, of the type that both have.
func (x *autocast) ofBase(row int32, results map[int64]typed) int32 {
	next := x.lastBefore(x.end(row))
	for results[x.t.Lives[row].Requested] == (typed{}) && x.phase(next) == inBackward &&
		x.t.Lives[next].Requested > x.t.Lives[row].Requested {
		row, next = next, x.lastBefore(x.end(next))
	}
	return row
}

// castBack gives what backward passes on the types of what it is the gradient of, as far as sizes tell, and says how large the largest
// row is of functions with a backward of their own.
func (x *autocast) castBack() (unsure int64) {
	results := x.typesBySize()
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
		of := saved[l.Requested]
		next, _ := slices.BinarySearchFunc(of, l.Born, func(row, e int32) int { return cmp.Compare(x.end(row), e) })
		near := next < len(of) && x.end(of[next]) < l.Born+ofNorm
		if x.ownBackward(row) {
			if near && x.narrow[of[next]] { // the engine gives on the type of what the function is given
				x.narrow[row] = true
			} else {
				unsure = max(unsure, x.sizes[row])
			}
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
		if on := o.GivesOn(); on != frames.AsGiven {
			x.narrow[row] = on == frames.Half
			note(row, x.narrow[row])
			continue
		}
		was, seen := latest[l.Requested]
		switch on := o.Passes(); {
		case o.Name == "" && x.unfoldsBack(row):
			x.narrow[row] = true
		case on == frames.OtherSize || o.SumsUp() && len(latest) > 0:
			x.narrow[row] = last || on == frames.OtherSize && x.halves(row, results)
		case on == frames.SameSize && seen:
			x.narrow[row] = was
		case near:
			x.narrow[row] = x.narrow[of[next]]
		case seen:
			x.narrow[row] = was
		default:
			x.narrow[row] = results[l.Requested].half > results[l.Requested].full || x.halves(row, results)
		}
		if o.Name != "" {
			note(row, x.narrow[row])
		}
	}
	return unsure
}
