package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// model is what accelerate runs under torch.autocast in a pass. It has only that run so, and what it gives go over to 32 bits
// (accelerate/accelerator.py prepare_model, utils/operations.py convert_outputs_to_fp32).
type model struct {
	around map[int32]bool // calls, by the number of the frames around them
	last   int32          // row that these make
}

// modelOf is that of the pass: the calls that keep much of what backward needs; nil where accelerate does not run the program.
func (x *autocast) modelOf() *model {
	const part = 8
	if !x.accelerates {
		return nil
	}
	bytes, most := map[int32]int64{}, int64(0)
	for _, row := range x.needs {
		if around := x.around[x.code(row)]; around != 0 && row >= x.pass.rows.from {
			bytes[around] += x.t.Lives[row].Requested
			most = max(most, bytes[around])
		}
	}
	m := &model{map[int32]bool{}, -1}
	for around, n := range bytes {
		m.around[around] = n*part >= most
	}
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		if x.ofModel(m, row) {
			m.last = row
		}
	}
	if m.last < 0 {
		return nil
	}
	return m
}

// ofModel reports whether the model makes a row.
func (r *run) ofModel(m *model, row int32) bool { return m.around[r.around[r.code(row)]] }

// rowsOutside are the rows on the way to the pass that the model does not make.
func (x *autocast) rowsOutside(m *model) map[int32]bool {
	out := map[int32]bool{}
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		if !x.ofModel(m, row) {
			out[row] = true
		}
	}
	return out
}

// rowsOnce are the rows that the program makes in its own code before the first that it makes again, where modules leave some large one of
// them until the end, as the features of an image that outputs are compared with: programs go into torch.autocast for each batch, so that
// these have 32 bits.
func (x *autocast) rowsOnce() map[int32]bool {
	const part = 8
	again, end := x.madeAgain(x.pass), x.passes[len(x.passes)-1].end
	if again == nil {
		return map[int32]bool{}
	}
	out, most, stays := map[int32]bool{}, int64(0), int64(0)
	for _, row := range x.forward {
		id, n := x.t.Lives[row].Stack, x.t.Lives[row].Requested
		if again[id] || x.calledByPackage(id) {
			break
		}
		if out[row] = true; x.around[id] == 0 {
			continue
		}
		if most = max(most, n); x.end(row) >= end {
			stays = max(stays, n)
		}
	}
	if stays*part < most || stays == 0 {
		return map[int32]bool{}
	}
	return out
}

// calledByPackage reports whether another package calls the modules that allocate, as trainers do.
func (r *run) calledByPackage(id snapshot.StackID) bool {
	return slices.ContainsFunc(r.outside(r.stack(id)), func(id snapshot.FrameID) bool {
		return frames.Of(r.s, id).Origin() == frames.Other
	})
}

// castOutput has what a model gives last, but for its loss, go over to 32 bits as it returns, and the gradient of that to 16.
func (x *autocast) castOutput(m *model) {
	over := x.returned(m.last)
	out := int32(-1)
	for _, row := range x.forward {
		if row <= m.last && x.narrow[row] && x.ofModel(m, row) && !x.inLoss(row) {
			out = row
		}
	}
	if out < 0 || x.last(out) <= x.t.Lives[m.last].Born {
		return
	}
	if gone := x.last(out); gone <= over { // it was given with a loss, and let go of with all that was given
		x.add(out, gone-1, gone).bytes = x.sizes[out]
		return
	}
	for row := x.earlier(x.pass).from; row < x.pass.rows.from; row++ {
		if gone := x.end(row); x.code(row) == x.code(out) && x.t.Lives[m.last].Born < gone && gone <= over {
			over = gone - 1 // the variable had that until then
		}
	}
	x.add(out, over, x.last(out)).bytes = x.sizes[out]
	x.until(out, over)
	const first = 12 // rows of backward: the loss makes several of that size, and gives on the last
	grad, n := int32(-1), 0
	for row := x.lastBefore(x.pass.begin); row < x.pass.rows.to && n < first; row++ {
		if x.t.Lives[row].Born < x.pass.begin {
			continue
		}
		if n++; x.t.Lives[row].Requested == x.t.Lives[out].Requested && !x.gradient(row) {
			grad = row
		}
	}
	if grad >= 0 {
		x.castAt(grad, x.returned(grad), false)
	}
}
