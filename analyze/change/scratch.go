package change

import (
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/snapshot"
)

// scratch reports whether a row is what cuBLASLt works in: one operation makes it and lets go of it at once. Its size is
// the same for all shapes.
func (r *run) scratch(row int32) bool {
	l := &r.t.Lives[row]
	return l.Requested == frames.LtWorkspaceSize && l.Born >= 0 && l.GivenUp() == l.Born+1
}

// stands reports whether a row is a workspace that a thread keeps once it has one.
func (r *run) stands(row int32) bool {
	return r.is(row, category.Workspace) && r.t.Lives[row].GivenUp() < 0
}

// chosen reports whether a row is what a library works in for one call, by an algorithm that it chose for what it was given:
// cuDNN's, where C++ was recorded. What it takes follows that, more or less.
func (r *run) chosen(row int32) bool {
	l := &r.t.Lives[row]
	return !frames.IsWorkspaceSize(l.Requested) && l.Born >= 0 && l.GivenUp() == l.Born+1 && r.is(row, category.Workspace)
}

// columns are the rows that convolutions work in while they are called, forward or backward, and that are neither their
// results nor gradients. Torch's own convolutions unfold one image at a time, so that theirs do not follow the batch
// (aten/src/ATen/native/cuda/ConvolutionMM2d.cu, columns; NaiveConvolutionTranspose2d.cu). Those of libraries do, more or
// less: an algorithm is chosen for each shape anew, and takes copies of what it is given beside some of the weights'.
//
// Forward, their stacks tell. Backward has the same stack for all, and torch's own unfold into the same sizes there.
type columns struct {
	own, chosen map[int32]bool // torch's own, and those of libraries
	largest     int64          // of both, in rounded bytes
}

func (r *run) columns() columns {
	out, sizes := columns{own: map[int32]bool{}, chosen: map[int32]bool{}}, map[int64]bool{}
	add := func(row int32, own bool) {
		out.largest = max(out.largest, r.t.Lives[row].Rounded)
		if own {
			out.own[row] = true
		} else {
			out.chosen[row] = true
		}
	}
	for row := int32(r.warm); int(row) < len(r.t.Lives); row++ {
		if r.phase(row) == inProgram && r.convolves(r.t.Lives[row].Stack) && r.alone(row) {
			own := r.unfolds(row)
			add(row, own)
			sizes[r.t.Lives[row].Requested] = sizes[r.t.Lives[row].Requested] || own
		}
	}
	for row := int32(r.warm); int(row) < len(r.t.Lives); row++ {
		l := &r.t.Lives[row]
		switch {
		case r.phase(row) != inBackward || !r.alone(row):
		case sizes[l.Requested]:
			add(row, true)
		case r.convolves(l.Stack) || len(out.chosen) > 0 && l.Requested%512 != 0 && l.GivenUp() == l.Born+1:
			add(row, len(out.chosen) == 0)
		}
	}
	return out
}

// unfolds reports whether a convolution's scratch memory can be an image that torch unfolds: of its result, which comes
// before it, it has the pixels and some of the channels, and so a large divisor in common.
func (r *run) unfolds(row int32) bool {
	const most = 1024 // an image's patches, by what the result's channels have in common with them
	a, b := r.t.Lives[row].Requested, r.t.Lives[max(row-1, 0)].Requested
	if r.t.Lives[max(row-1, 0)].Stack != r.t.Lives[row].Stack {
		return true
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a > 0 && r.t.Lives[row].Requested/a <= most
}

// convolves reports whether a convolution allocates, and nothing that it calls in Python.
func (r *run) convolves(stack snapshot.StackID) bool {
	for _, id := range r.s.Stacks.Get(stack) {
		if c := frames.Of(r.s, id); c.Has(frames.Convolves) || c.Has(frames.Python) {
			return c.Has(frames.Convolves)
		}
	}
	return false
}

// alone reports whether nothing but workspaces of matrix products and gradients of parameters is made while a row is there:
// it comes and goes within one call.
func (r *run) alone(row int32) bool {
	end := r.t.Lives[row].GivenUp()
	for other := row + 1; int(other) < len(r.t.Lives) && r.t.Lives[other].Born < end; other++ {
		if !r.is(other, category.Workspace) && !r.scratch(other) && !r.gradient(other) {
			return false
		}
	}
	return end >= 0
}

// partial reports whether a row is what a sum keeps partial results in, or its semaphores: the row behind the result, and the
// one behind that, which go together before anything else is asked for. They have 32 bits whatever is summed
// (ReduceConfig::global_memory_size in aten/src/ATen/native/cuda/Reduce.cuh).
func (r *run) partial(row int32) bool {
	return r.partialsAt(row-1) || r.partialsAt(row-2)
}

// divided are the sizes that sums of a pass keep partial results in, and semaphores, by row, where each sums so many times fewer
// rows of a matrix; 0 for none.
func (r *run) divided(p *pass, parts int64) map[int32]int64 {
	out := map[int32]int64{}
	gpus := kernel.GPUs(false)
	for result := p.rows.from; result < p.rows.to; result++ {
		if !r.partialsAt(result) {
			continue
		}
		if g, rows, columns := r.sumAt(result, gpus); rows > 0 {
			out[result+1], out[result+2] = g.SumBuffer((rows+parts-1)/parts, columns)
			gpus = []kernel.GPU{g} // a run has one kind
		}
	}
	return out
}

// sumAt is how many rows and columns the matrix has whose sum a row is, and on which of some devices: of one that is there, and for
// which the partial results that were recorded are made. There are 0 rows where none is.
func (r *run) sumAt(result int32, gpus []kernel.GPU) (g kernel.GPU, rows, columns int64) {
	const back = 64 // rows
	l := r.t.Lives[result : result+3]
	n := l[0].Requested
	for row := result - 1; row >= max(result-back, int32(r.warm)); row-- {
		m := &r.t.Lives[row]
		if m.Requested < n || m.Requested%n != 0 || !m.LiveAfter(int(l[0].Born)) {
			continue
		}
		for _, g := range gpus {
			for _, width := range [...]int64{4, 2} { // bytes of an element
				if n%width != 0 {
					continue
				}
				bytes, semaphores := g.SumBuffer(m.Requested/n, n/width)
				if bytes == l[1].Requested && semaphores == l[2].Requested {
					return g, m.Requested / n, n / width
				}
			}
		}
	}
	return g, 0, 0
}

func (r *run) partialsAt(result int32) bool {
	const fewer = 32 // times, semaphores than partial results
	if int(result) < r.warm || int(result)+2 >= len(r.t.Lives) {
		return false
	}
	l := r.t.Lives[result : result+3]
	if l[0].Requested <= 0 || l[0].Stack != l[1].Stack || l[1].Stack != l[2].Stack || l[1].Requested%l[0].Requested != 0 ||
		l[2].Requested*fewer > l[1].Requested || l[1].Requested <= l[0].Requested || l[2].Requested%4 != 0 {
		return false
	}
	next := int32(r.t.Trace.Len())
	if int(result)+3 < len(r.t.Lives) {
		next = r.t.Lives[result+3].Born
	}
	return r.end(result+1) < next && r.end(result+2) < next && r.end(result) > next
}
