package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Of what a graph and a variable both hold, as the hidden states that a teacher returns, only the last to let go of it shows. But a
// graph that no backward pass goes through goes at once, so that what is there behind that is a variable's, and it goes in an order, in
// which what a variable has comes late.

// keptByProgram are the rows of code at a place that are held besides by the graph of what modules made in the same call of it, or in
// those that follow with nothing between: what it returns. In a loop that is each turn's, as each has a graph of its own: it has begun
// anew where code comes again that modules were called behind.
func (d *draft) keptByProgram(where *place) map[int32]bool {
	out, outside := map[int32]bool{}, d.outsideGraphs()
	var call []int32
	turn := map[snapshot.StackID]bool{} // by code of a turn outside of modules, whether such are called behind it
	over := func() {
		clear(turn)
		graph, most := d.graphGone(call)
		for _, row := range call {
			if graph < 0 || d.lastBefore(d.end(row)) <= graph {
				continue
			}
			if d.insides[d.t.Lives[row].Stack] == 0 && !most || most && row <= graph {
				out[row] = true
			}
		}
		d.keptFromNorms(call, out)
		d.keptLast(call, out)
		d.keptBehindPass(call, out)
		d.keptBeforeSoftmax(call, out)
		call = call[:0]
	}
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		switch phase := d.phase(row); {
		case phase == inNothing:
		case phase == inProgram && where.depth(d.code(row)) >= 0:
			if code := d.code(row); d.insides[code] != 0 {
				for other := range turn {
					turn[other] = true
				}
			} else {
				if turn[code] {
					over()
				}
				turn[code] = false
			}
			call = append(call, row)
			if outside[d.insides[d.code(row)]] {
				out[row] = true
			}
		default:
			over()
		}
	}
	over()
	return out
}

// outsideGraphs is the code inside of modules of which no pass keeps what outlives those that train them, as logits: no graph has it in an
// evaluation either.
func (d *draft) outsideGraphs() map[snapshot.StackID]bool {
	trains := map[int32]bool{} // calls of modules
	for stack, is := range d.kept {
		trains[d.around[stack]] = trains[d.around[stack]] || is
	}
	out := map[snapshot.StackID]bool{}
	for stack, is := range d.outlives {
		if inside := d.insides[stack]; is && inside != 0 && trains[d.around[stack]] && !d.keptInside[inside] {
			out[inside] = true
		}
	}
	return out
}

// graphGone is the last row that is allocated before what modules made in a call is gone, -1 where they made nothing, and whether most of
// that, and not only the last of it, goes at once then.
func (d *draft) graphGone(call []int32) (last int32, most bool) {
	last = -1
	gone, all := map[int32]int{}, 0 // by the row that is allocated last before
	for _, row := range call {
		if d.insides[d.t.Lives[row].Stack] == 0 || d.t.Lives[row].Passing() {
			continue
		}
		at := d.lastBefore(d.end(row))
		last = max(last, at)
		if at < call[len(call)-1] {
			continue // no graph of what it returns has it
		}
		if all++; d.byProgram(row) {
			gone[at]++
		}
	}
	for at, n := range gone {
		if 3*n > 2*all { // else several graphs go, one after another
			return at, true
		}
	}
	return last, false
}

// keptLast adds what had the graph that modules made in a call, which of what goes at once was made among the last, and goes last: a tensor
// lets go of its graph before its own memory (TensorImpl::release_resources in c10/core/TensorImpl.cpp), and an output of its loss, with
// the graph, before its logits. A graph goes from there to what it began with.
func (d *draft) keptLast(call []int32, out map[int32]bool) {
	const several, few, many = 2, 8, 16 // rows in all, of a loss, and in all where a loss is among them
	graphs := map[int32][]int32{}       // by the row that is allocated last before
	for _, row := range call {
		at := d.lastBefore(d.end(row))
		if at >= call[len(call)-1] && d.insides[d.t.Lives[row].Stack] != 0 && d.byProgram(row) {
			graphs[at] = append(graphs[at], row)
		}
	}
	for _, rows := range graphs {
		last := slices.MaxFunc(rows, func(a, b int32) int { return cmp.Compare(d.end(a), d.end(b)) })
		behind := len(rows) - 1 - slices.Index(rows, last)
		if len(rows) > several && (behind == 0 || behind < few && len(rows) > many) {
			out[last] = true
		}
	}
}

// keptBehindPass adds what the program lets go of behind a backward pass that has gone through most of a call: a pass frees what the graph
// saved as it goes, so that a variable has what is there behind it, as the hidden states of an output of transformers'.
func (d *draft) keptBehindPass(call []int32, out map[int32]bool) {
	var behind []int32
	through := 0
	for _, row := range call {
		switch p := d.passOf(d.t.Lives[row].Born); {
		case p == nil:
		case d.byProgram(row) && d.end(row) > p.end:
			behind = append(behind, row)
		case d.saved(p, row) && !d.byProgram(row):
			through++
		}
	}
	if len(behind) < through {
		for _, row := range behind {
			out[row] = true
		}
	}
}

// keptBeforeSoftmax adds what a product gives to a softmax, or to a cross entropy, and goes before the result of that, as a language
// model's logits: no graph has it, as the product saves what it is given and the softmax its result (linear, addmm, _softmax and
// _log_softmax in tools/autograd/derivatives.yaml).
func (d *draft) keptBeforeSoftmax(call []int32, out map[int32]bool) {
	before := int32(-1)
	for _, row := range call {
		if !d.outlasts(row) {
			continue
		}
		softens := d.isSoftmax(row) || d.isCrossEntropy(d.stack(d.code(row)), 0)
		if softens && before >= 0 && d.resultOfProduct(before) && d.byProgram(before) && d.end(before) < d.end(row) {
			out[before] = true
		}
		before = row
	}
}

// keptFromNorms adds the rows of a call that variables have besides nodes of normalizations. Such a node lets go of its input, then of its
// statistics in the order in which they were made: what is its input and is there behind these, something else has. Of a node that only
// its result still had, destructors let go, the last statistics first: a variable had the result (deleteNode in
// torch/csrc/autograd/function.cpp, and release_variables and the members of nodes in torch/csrc/autograd/generated/Functions.h).
func (d *draft) keptFromNorms(call []int32, out map[int32]bool) {
	for _, row := range call {
		own, op := d.stack(d.code(row)), d.operation(row)
		first, last := op.to-2, op.to-1 // the statistics
		if op.from != row || first <= row || !frames.Of(d.s, own[0]).IsLibrary() || !normalizes(d.name(own[0])) ||
			!d.byproduct(first) || !d.byproduct(last) || !d.byProgram(last) || d.lastBefore(d.end(first)) < op.to {
			continue // no graph has them, or a pass went through it
		}
		if d.end(first) > d.end(last) {
			out[first-1] = true
			continue
		}
		input := row - 1
		for input >= call[0] && (d.byproduct(input) || d.t.Lives[input].Passing()) {
			input--
		}
		if _, ok := slices.BinarySearch(call, input); ok && d.t.Lives[input].Requested == op.most && d.end(input) > d.end(last) {
			out[input] = true
		}
	}
}

// normalizes reports whether a function of torch's of a name normalizes, and keeps statistics beside its input.
func normalizes(name string) bool {
	switch name {
	case "batch_norm", "layer_norm", "group_norm", "instance_norm":
		return true
	}
	return false
}
