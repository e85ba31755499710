package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// cell is a step of a recurrent layer of torch's that runs without cuDNN: products of the input and of the hidden state by their
// weights, and what becomes of them in one kernel (aten/src/ATen/native/RNN.cpp: LSTMCell, GRUCell). Those take the weights transposed,
// and torch.autocast keeps no copy of a view: each step makes its own.
type cell struct {
	products [2]int32
	gates    int32
	state    int64 // requested bytes of the hidden state
}

// cells are the steps of recurrent layers on the way to the pass, told by the sizes of what they make, and by others next to them: a cell
// that a program calls for each step is given its weights as they are. What cells give on has 16 bits.
func (x *autocast) cells() (out []cell) {
	const few = 8     // rows
	var there []int32 // made by the same layer, but for workspaces
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		code := x.code(row)
		switch {
		case x.worksIn(row), x.scratch(row):
			continue
		case !x.recurs(row):
			there = there[:0]
			continue
		case len(there) > 0 && x.code(there[0]) != code:
			there = there[:0]
		}
		there = slices.DeleteFunc(there, func(of int32) bool { return x.end(of) <= x.t.Lives[row].Born })
		there = there[max(len(there)-few, 0):]
		n := len(there)
		there = append(there, row)
		if n < 2 || !x.narrow[row] {
			continue
		}
		products, gates := [2]int32(there[n-2:]), x.t.Lives[row].Requested
		product := x.t.Lives[products[0]].Requested
		state := product / 4
		gru := 3*gates == 5*product
		if gru {
			state = product / 3
		}
		if x.t.Lives[products[1]].Requested != product || gates != product && !gru {
			continue
		}
		next := row + 1
		for ; next < x.pass.rows.to && x.code(next) == code && x.t.Lives[next].Requested == state; next++ {
			x.narrow[next] = true
		}
		if next < x.pass.rows.to && x.code(next) == code || products[0] > x.pass.rows.from && x.code(products[0]-1) == code {
			out = append(out, cell{products, row, state})
		}
		there = there[:0]
	}
	return out
}

// recurs reports whether a recurrent layer makes a row, and no cell that a program calls for each step: those are given their weights.
func (x *autocast) recurs(row int32) bool {
	o := x.operator(row)
	return o.Ruled != "lstm_cell" && o.Ruled != "gru_cell" && slices.ContainsFunc(x.stack(x.code(row)), func(id snapshot.FrameID) bool {
		return frames.IsRecurrent(x.s.Strings.Get(x.s.Frames.Get(id).File))
	})
}

// castCells has each step of recurrent layers make copies of their weights, which backward needs to that step, and gradients of 16 bits,
// of which 32 are made before they are added up. It gives the products that are done with.
func (x *autocast) castCells() map[int32]bool {
	done := map[int32]bool{}
	cells := x.cells()
	if len(cells) == 0 {
		return done
	}
	weights := x.gradientSizes(x.pass)
	for _, c := range cells {
		of := 2 // products, of which backward comes to the last first
		for k := x.lastBefore(x.end(c.gates)) + 1; of > 0 && k < x.pass.rows.to && x.t.Lives[k].Born < x.end(c.gates)+ofNorm; k++ {
			n := x.t.Lives[k].Requested
			if x.phase(k) != inBackward || !x.isProduct(k) && !x.isProduct(k+1) || !weights[n] || n == c.state {
				continue
			}
			of--
			product, over := c.products[of], x.nodeOver(k)
			x.add(k, x.t.Lives[product].Born, over).parts = 2
			x.castAt(k, over, true)
			done[product] = true
		}
	}
	return done
}
