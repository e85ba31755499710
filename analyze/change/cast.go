package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// norm is a call of a norm by root mean squares, as programs write it by hand: LLaMA's, T5's, and what came of them. All
// of them square in 32 bits whatever the type of their input, and go back to that before the weight. In a program of 32
// bits these casts allocate nothing.
type norm struct {
	square, scale, scaled, out int32 // rows: of the squares, their root's reciprocal, its product with the input, the result
	file                       string
}

// norms finds the calls of norms on the way to the loss of a pass: by the sizes of what the code of one module makes, from
// its first allocation on: squares, two to four statistics of a row each, and twice the size of the squares.
func (d *draft) norms(p *pass) []norm {
	const least, statistics, element = 4096, 32, 4
	var out []norm
	last := int32(-1)
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		l := &d.t.Lives[row]
		before := last
		last = row
		if l.Requested < least || d.forwardOf(l.Stack) < 0 || before >= 0 && d.sameCall(d.t.Lives[before].Stack, l.Stack) {
			continue
		}
		k := row + 1
		within := func() bool { return k < p.rows.to && d.sameCall(d.t.Lives[k].Stack, l.Stack) }
		small := int64(0)
		for within() && d.t.Lives[k].Requested*statistics <= l.Requested && (small == 0 || d.t.Lives[k].Requested == small) {
			small = d.t.Lives[k].Requested
			k++
		}
		if n := k - row - 1; n < 2 || n > 4 || small == 0 || l.Requested%small != 0 {
			continue
		}
		if !within() || d.t.Lives[k].Requested != l.Requested {
			continue
		}
		scaled := k
		k++
		if within() && d.t.Lives[k].Requested == l.Requested/small*element {
			k++ // one more than the weight, as Gemma's norms weigh by
		}
		if within() && d.t.Lives[k].Requested == l.Requested {
			out = append(out, norm{row, scaled - 1, scaled, k, d.file(d.stack(l.Stack)[0])})
		}
	}
	return out
}

// forwardOf is the depth in a stack of a module's forward, of the program's own, that allocates itself or by a function that it
// calls; -1 for another stack.
func (r *run) forwardOf(id snapshot.StackID) int {
	const deep = 1
	stack := r.stack(id)
	for depth := 0; depth <= deep && depth+1 < len(stack); depth++ {
		switch c := frames.Of(r.s, stack[depth]); {
		case c.IsLibrary() || c.IsModuleCall():
			return -1
		case c.Has(frames.Forwards) && frames.Of(r.s, stack[depth+1]).IsModuleCall():
			return depth
		}
	}
	return -1
}

// sameCall reports whether two stacks are of the same forward of one caller, see forwardOf.
func (r *run) sameCall(a, b snapshot.StackID) bool {
	i, j := r.forwardOf(a), r.forwardOf(b)
	if i < 0 || j < 0 {
		return false
	}
	x, y := r.stack(a)[i:], r.stack(b)[j:]
	return len(x) == len(y) && r.functions[x[0]] == r.functions[y[0]] && slices.Equal(x[1:], y[1:])
}

// cast brings in what norms and losses make of an input of 16 bits, and gives the rows that keep 32, and of losses that are taken to do
// so, as most programs have it, how many bytes less a pass needs where they do not.
func (d *draft) cast(losses bool) (wide map[int32]bool, likely int64) {
	wide = map[int32]bool{}
	for i := range d.passes {
		p := &d.passes[i]
		d.castTiles(p, wide, false)
		d.castLosses(p, wide, false, d.upcasts)
		if losses && d.floats(p) < 0 {
			likely = max(likely, 2*d.castLosses(p, wide, true, d.likelyUpcasts))
		}
		norms := d.norms(p)
		d.castSoftmaxes(p, norms, wide)
		d.castNorms(p, norms, wide)
		for row := p.rows.from; row < p.rows.to; row++ {
			if d.indexes(row) {
				wide[row] = true
			}
		}
	}
	return wide, likely
}

// castNorms brings in what norms of a pass make of an input of 16 bits, and notes the rows that keep 32.
func (d *draft) castNorms(p *pass, norms []norm, wide map[int32]bool) {
	for _, n := range norms {
		for row := n.square; row < n.out; row++ {
			wide[row] = true
		}
		over := d.last(n.scaled)
		if over != d.end(n.scaled) || d.last(n.scale) != d.end(n.scale) || over >= p.end {
			continue // another change has it end with the call
		}
		end := d.end(n.scale)
		x := d.inputOf(p, n, end)
		if x >= 0 {
			end = d.end(x)
			if !frames.ScalesGiven(n.file) {
				d.until(x, d.leaves(x))
			}
		}
		born := d.t.Lives[n.out].Born
		d.add(n.scaled, d.t.Lives[n.square].Born, end)
		if frames.WeighsWide(n.file) {
			d.add(n.out, born, born)
		} else {
			d.add(n.scaled, born, over).parts = 2
			d.until(n.scaled, born)
		}
		from := over
		if over < p.begin { // its weight is frozen, and nothing tells where its backward begins
			from = max(p.begin, end-ofNorm)
		}
		for row := p.rows.from; row < p.rows.to; row++ {
			if l := &d.t.Lives[row]; l.Born > from && l.Born <= end && d.end(row) <= end &&
				l.Requested == d.t.Lives[n.square].Requested {
				wide[row] = true
			}
		}
	}
}

// ofNorm is how many events the backward of a norm takes at most.
const ofNorm = 64

// inputOf is the row of a norm's input, where backward lets go of it next to the norm's own; -1 where that is not seen.
func (d *draft) inputOf(p *pass, n norm, from int32) int32 {
	x := int32(-1)
	for row := n.square - 1; row >= p.rows.from; row-- {
		if e := d.end(row); d.t.Lives[row].Requested == d.t.Lives[n.square].Requested && e >= from && e < from+ofNorm &&
			(x < 0 || e < d.end(x)) {
			x = row
		}
	}
	return x
}

// castLosses has losses that go over to 32 bits, of which a filter knows the frame, hold a copy of what they are given until they
// return, and gives how much more the largest of them needs for that, in bytes. A copy that the program makes a loss may share with
// what else is made of it.
func (d *draft) castLosses(p *pass, wide map[int32]bool, shares bool, is func(stack []snapshot.FrameID, depth int) bool) (most int64) {
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		stack := d.stack(d.t.Lives[row].Stack)
		depth := 0
		for depth < len(stack) && !is(stack, depth) {
			depth++
		}
		if depth == len(stack) || wide[row] {
			continue
		}
		first, largest := row, row
		for ; row+1 < p.rows.to && d.t.Lives[row+1].Born < p.begin; row++ {
			next := d.stack(d.t.Lives[row+1].Stack)
			if at := len(next) - len(stack) + depth; at < 0 || !slices.Equal(next[at+1:], stack[depth+1:]) ||
				d.functions[next[at]] != d.functions[stack[depth]] {
				break
			}
			if d.t.Lives[row+1].Requested > d.t.Lives[largest].Requested {
				largest = row + 1
			}
		}
		for k := first; k <= row; k++ {
			wide[k] = true
		}
		begin, over, g := d.t.Lives[first].Born, d.lossOver(first, row), d.gradientsOfLoss(p, largest, shares)
		logarithms := slices.ContainsFunc(stack[:depth+1], func(id snapshot.FrameID) bool { return frames.TakesLogarithms(d.name(id)) })
		if logarithms && d.isLoss(stack, depth) && d.givenSoftmax(p, first, largest) {
			for _, grad := range g.rows {
				wide[grad] = true
			}
			continue
		}
		if shares {
			begin, over = d.alsoWide(p, largest, first, wide), max(over, g.over)
		}
		d.add(largest, begin, over)
		for _, grad := range g.rows {
			wide[grad] = true
		}
		if g.last >= 0 {
			d.narrowFrom(g.last, g.at)
		}
		copies := int64(1)
		if g.over >= 0 {
			copies = 2 // what is made of it besides has 32 bits, too, and its gradients
		}
		most = max(most, copies*d.t.Lives[largest].Requested)
	}
	return most
}

// givenSoftmax reports whether the logarithms of probabilities that a loss is given, which begins with a row and makes another of their
// size, come of torch's softmaxes, which compute in 32 bits (fp32 in aten/src/ATen/autocast_mode.h): then it makes no copy. What is as
// large and was made since may be the probabilities that they are compared with, as those of smoothed labels, and what these are copied of.
func (d *draft) givenSoftmax(p *pass, first, largest int32) bool {
	const candidates, far = 3, 256 // rows of that size, and rows
	seen := 0
	for of := first - 1; of >= max(first-far, p.rows.from) && seen < candidates; of-- {
		if d.t.Lives[of].Requested != d.t.Lives[largest].Requested || d.end(of) <= d.t.Lives[first].Born {
			continue
		}
		if d.isSoftmax(of) {
			return true
		}
		seen++
	}
	return false
}

// thereBefore is the last row before one, down to another, that is there when the one is made and has a size, in bytes; -1 for none.
func (d *draft) thereBefore(row, from int32, n int64) int32 {
	for of := row - 1; of >= from; of-- {
		if d.t.Lives[of].Requested == n && d.end(of) > d.t.Lives[row].Born {
			return of
		}
	}
	return -1
}

// alsoWide has what else is made of what a loss is given, as the square of its normalizer is which many add, compute in 32 bits, and gives
// the event of the first of that, or of the loss.
func (d *draft) alsoWide(p *pass, largest, first int32, wide map[int32]bool) (begin int32) {
	alike := func(row int32) bool { return d.t.Lives[row].Requested == d.t.Lives[largest].Requested }
	begin = d.t.Lives[first].Born
	const far = 64 // rows
	given := d.thereBefore(first, max(first-far, p.rows.from), d.t.Lives[largest].Requested)
	if given < 0 {
		return begin
	}
	until := min(d.end(given), p.begin)
	for row := given + 1; row < p.rows.to && d.t.Lives[row].Born < until; row++ {
		if alike(row) && !d.inLoss(row) {
			wide[row], begin = true, min(begin, d.t.Lives[row].Born)
		}
	}
	return begin
}

// lossGradients are the rows of backward of the size of what a loss is given.
type lossGradients struct {
	rows []int32
	last int32 // of rows, the one that goes on to what made that; -1 for none
	at   int32 // the event from which it does
	over int32 // the event after which another than the loss needs its input no longer, -1 where none does
}

// gradientsOfLoss finds a loss's own gradients, of its choice and of its input, before it lets go of its result, and, if it shares
// that, those of what else took the same, which wait for each other to be summed.
func (d *draft) gradientsOfLoss(p *pass, largest int32, shares bool) lossGradients {
	const own = 2
	n, end := d.t.Lives[largest].Requested, d.end(largest)
	g := lossGradients{rows: d.gradientsOf(p, largest), last: -1, at: end + 1, over: -1}
	if len(g.rows) > 0 {
		g.last = g.rows[len(g.rows)-1]
	}
	if !shares || len(g.rows) == 0 || d.otherSaved(p, largest, d.inLoss) {
		return g
	}
	var behind []int32
	for row := d.lastBefore(end) + 1; row < p.rows.to && d.t.Lives[row].Requested <= n && !d.gradient(row); row++ {
		if d.phase(row) == inBackward && d.t.Lives[row].Requested == n && d.t.Lives[row].Born < d.last(g.last) {
			behind = append(behind, row)
		}
	}
	switch {
	case len(behind) > 1:
		g.over = d.t.Lives[behind[len(behind)-1]].Born - 1 // their sum
		g.rows = append(g.rows, behind...)
	case len(g.rows) > own:
		g.over = d.t.Lives[g.rows[len(g.rows)-own]].Born - 1
	default:
		return g
	}
	for _, row := range g.rows {
		if d.last(row) > d.last(g.last) {
			g.last = row
		}
	}
	for _, row := range g.rows {
		if row != g.last {
			g.at = max(g.at, d.last(row)+1)
		}
	}
	return g
}

// otherSaved reports whether a pass keeps another row of the size of one that a filter takes.
func (d *draft) otherSaved(p *pass, of int32, takes func(row int32) bool) bool {
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		if row != of && d.t.Lives[row].Requested == d.t.Lives[of].Requested && d.saved(p, row) && takes(row) {
			return true
		}
	}
	return false
}

// lossOver is the event after which a loss, which makes some rows, has let go of what it needs no longer: the last of these that goes
// before anything else is made tells.
func (d *draft) lossOver(first, last int32) int32 {
	over := int32(-1)
	for row := first; row <= last; row++ {
		if end := d.last(row); end <= d.returned(last) {
			over = max(over, end)
		}
	}
	if over < d.t.Lives[last].Born {
		return d.returned(last)
	}
	return over
}

// upcasts reports whether a frame is of a loss that is known to go over to 32 bits.
func (r *run) upcasts(stack []snapshot.FrameID, depth int) bool {
	return frames.Of(r.s, stack[depth]).Has(frames.Upcasts)
}

// isLoss reports whether a frame is of a loss of torch's.
func (r *run) isLoss(stack []snapshot.FrameID, depth int) bool {
	return frames.Of(r.s, stack[depth]).Part() == frames.Loss
}

// isCrossEntropy reports whether a frame is of torch's cross entropy.
func (r *run) isCrossEntropy(stack []snapshot.FrameID, depth int) bool {
	return r.isLoss(stack, depth) && r.name(stack[depth]) == "cross_entropy"
}

// likelyUpcasts reports whether a frame is of a cross entropy that the program itself asks for. Language models that run in 16 bits
// mostly give it logits that 32 bits are made of.
func (r *run) likelyUpcasts(stack []snapshot.FrameID, depth int) bool {
	if !r.isCrossEntropy(stack, depth) {
		return false
	}
	for depth++; depth < len(stack); depth++ {
		if !frames.Of(r.s, stack[depth]).IsLibrary() {
			return frames.Of(r.s, stack[depth]).Origin() == frames.User
		}
	}
	return false
}

// inLoss reports whether a loss of torch's makes a row.
func (r *run) inLoss(row int32) bool {
	stack := r.stack(r.code(row))
	for depth := range stack {
		if r.isLoss(stack, depth) {
			return true
		}
	}
	return false
}

// recast is how much more a pass needs where the program gives a loss of torch's what it has made 32 bits of: many do, and in a
// program of 32 bits that allocates nothing. The copy is there besides, and what the loss makes of it is twice as large.
func (d *draft) recast(wide map[int32]bool) (most int64) {
	for i := range d.passes {
		p := &d.passes[i]
		for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
			if !wide[row] && d.inLoss(row) {
				most = max(most, 2*d.t.Lives[row].Requested)
			}
		}
	}
	return most
}

// castSoftmaxes has a softmax in 32 bits go over to 16 behind it, which the product behind that keeps. Programs whose norms square in a
// function of that name began with LLaMA's code, whose attention has its softmax given a copy of 32 bits (llama/model.py).
func (d *draft) castSoftmaxes(p *pass, norms []norm, wide map[int32]bool) {
	byHand := slices.ContainsFunc(norms, func(n norm) bool { return d.name(d.stack(d.code(n.square))[0]) == "_norm" })
	for row := p.rows.from; row+1 < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		stack := d.stack(d.t.Lives[row].Stack)
		if len(stack) < 2 || d.name(stack[0]) != "softmax" {
			continue
		}
		switch by := frames.Of(d.s, stack[1]); {
		case by.Has(frames.UpcastsSoft):
		case byHand && !by.IsLibrary():
			d.add(row, d.t.Lives[row].Born-1, d.t.Lives[row].Born)
		default:
			continue
		}
		wide[row] = true
		over := d.last(row)
		if k := row + 1; d.isDropout(k) { // which takes the copy's place
			for int(k)+1 < len(d.t.Lives) && d.t.Lives[k].Requested != d.t.Lives[row].Requested && d.isDropout(k+1) {
				k++
			}
			over = min(over, d.returned(k))
		}
		d.add(row, d.t.Lives[row+1].Born, over).parts = 2
		if grads := d.gradientsOf(p, row); len(grads) > 0 {
			born := d.t.Lives[grads[len(grads)-1]].Born
			d.add(row, born, born)
		}
	}
}

// gradientsOf are the rows of backward of the size of one that it needs until then, in the order of birth.
func (d *draft) gradientsOf(p *pass, of int32) (out []int32) {
	end := d.end(of)
	for row := of + 1; row < p.rows.to && d.t.Lives[row].Born <= end; row++ {
		if d.phase(row) == inBackward && d.t.Lives[row].Requested == d.t.Lives[of].Requested {
			out = append(out, row)
		}
	}
	return out
}

// narrowFrom has a gradient go over to 16 bits behind an event.
func (d *draft) narrowFrom(grad, event int32) {
	if until := d.last(grad); until > event && d.until(grad, event) {
		d.add(grad, event, until).parts = 2
	}
}

// castInputs has what the first convolution or matrix product of a pass is given go over to 16 bits as it comes to the
// device. Of several inputs the largest is that: targets are integers.
func (d *draft) castInputs() {
	for i := range d.passes {
		p := &d.passes[i]
		if row := d.floats(p); row >= 0 {
			born, over := d.t.Lives[row].Born, d.last(row)
			for k := range d.added {
				if x := &d.added[k]; x.Like == row && x.bytes == 0 {
					x.parts *= 2 // of smaller batches before
				}
			}
			base := d.turn(born, 3)
			whole := d.add(row, born, born)
			whole.Turn, whole.Until = base, base+2
			half := d.add(row, born, over)
			half.Turn, half.parts = base+1, 2
			d.drop[row] = true
		}
	}
}

// floats is the largest input of a pass whose first operation of a module of torch's is a convolution or a matrix product, -1
// for others: what goes through an embedding has integers.
func (d *draft) floats(p *pass) int32 {
	const least = 4096
	x := int32(-1)
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		stack := d.stack(d.t.Lives[row].Stack)
		if d.is(row, category.Input) {
			if n := d.sizes[row]; !d.drop[row] && n >= least && (x < 0 || n > d.sizes[x]) {
				x = row
			}
			continue
		}
		if d.phase(row) != inProgram || d.insides[d.t.Lives[row].Stack] == 0 {
			continue
		}
		if c := frames.Of(d.s, stack[0]); d.convolves(row) || c.Has(frames.Multiplies) {
			return x
		} else if c.IsLibrary() {
			return -1
		}
	}
	return -1
}
