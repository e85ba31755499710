package change

import (
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/analyze/timeline"
)

// scratch reports whether a row is what cuBLASLt works in: one operation makes it and lets go of it at once. Its size is
// the same for all shapes.
func (r *run) scratch(row int32) bool {
	l := &r.t.Lives[row]
	return l.Requested == frames.LtWorkspaceSize && l.Passing()
}

// stands reports whether a row is a workspace of matrix products that a thread keeps once it has one.
func (r *run) stands(row int32) bool {
	l := &r.t.Lives[row]
	return r.is(row, category.Workspace) && frames.IsWorkspaceSize(l.Requested) && l.GivenUp() < 0
}

// follows reports whether a row is what cuDNN works in for one call, as C++ tells where that was recorded: it is
// chosen for what the call is given, and goes with that, more or less.
func (r *run) follows(row int32) bool {
	l := &r.t.Lives[row]
	return l.Passing() && r.is(row, category.Workspace) && r.convolves(row) && !frames.IsWorkspaceSize(l.Requested)
}

// scratchRows are the rows that convolutions work in while they are called, forward or backward, and that are neither
// their results nor gradients.
type scratchRows struct {
	own, library map[int32]bool // torch's own, and those of libraries
	largest      int64          // of both, in rounded bytes
}

// columns finds what convolutions work in. Torch's own unfold one image at a time, so that it does not follow the
// batch. That of libraries does, more or less: an algorithm is chosen for each shape anew, and takes copies of what
// it is given beside some of the weights'.
//
// Forward, their stacks tell. Backward has the same stack for all, and torch's own unfold into the same sizes there.
func (r *run) columns() scratchRows {
	const least = 4096 // bytes; less is of other kernels, too
	out, sizes := scratchRows{own: map[int32]bool{}, library: map[int32]bool{}}, map[int64]bool{}
	add := func(row int32, own bool) {
		out.largest = max(out.largest, r.t.Lives[row].Rounded)
		if own {
			out.own[row] = true
		} else {
			out.library[row] = true
		}
	}
	for row := int32(r.warm); int(row) < len(r.t.Lives); row++ {
		if l := &r.t.Lives[row]; r.phase(row) == inProgram && r.convolves(row) && r.alone(row) {
			result := &r.t.Lives[max(row-1, 0)]
			own := result.Stack != l.Stack || kernel.Unfolds(l.Requested, result.Requested)
			add(row, own)
			sizes[l.Requested] = sizes[l.Requested] || own
		} else if r.reformats(row) {
			out.own[row] = true
		}
	}
	const soon, ofGroup = 32, 4   // rows, and how many times smaller a gradient of the weights of one group is
	ofGroups := map[int64]int32{} // by size, the last row that may be of a group of a convolution's, which come one after another
	for row := int32(r.warm); int(row) < len(r.t.Lives); row++ {
		l := &r.t.Lives[row]
		switch {
		case r.phase(row) != inBackward:
		case sizes[l.Requested] && r.alone(row):
			add(row, true)
		case sizes[l.Requested] && r.aloneBut(row, ofGroup) && r.collects(row):
			if before, ok := ofGroups[l.Requested]; ok && row-before <= soon {
				for _, column := range []int32{before, row} {
					add(column, true)
					for of := column + 1; int(of) < len(r.t.Lives) && r.t.Lives[of].Born < r.end(column); of++ {
						out.own[of] = !r.gradient(of) // a part of the gradients
					}
				}
			}
			ofGroups[l.Requested] = row
		case !r.alone(row):
		case r.convolves(row) || len(out.library) > 0 && l.Passing() && l.Requested%512 != 0 && l.Requested > least:
			add(row, len(out.library) == 0)
		}
	}
	return out
}

// reformats reports whether a convolution copies its weight into another memory format, as of a model that was brought to channels_last,
// and has that until it is done.
func (r *run) reformats(row int32) bool {
	to := r.operation(row).to
	return r.phase(row) == inProgram && r.parameters[r.t.Lives[row].Requested] && r.convolves(row) && int(to) < len(r.t.Lives) &&
		r.end(row) <= r.t.Lives[to].Born
}

// collects reports whether what is made while a row is there stays behind it, as parts of gradients do, which are put together in the end.
func (r *run) collects(row int32) bool {
	end := r.end(row)
	for of := row + 1; int(of) < len(r.t.Lives) && r.t.Lives[of].Born < end; of++ {
		if r.end(of) <= end && !r.is(of, category.Workspace) && !r.scratch(of) {
			return false
		}
	}
	return true
}

// convolves reports whether a convolution allocates, and nothing that it calls in Python.
func (r *run) convolves(row int32) bool {
	for _, id := range r.s.Stacks.Get(r.recorded[row].Stack) {
		if c := frames.Of(r.s, id); c.Has(frames.Convolves) || c.Has(frames.Python) {
			return c.Has(frames.Convolves)
		}
	}
	return false
}

// unfolds reports whether a row is what a convolution unfolds into, or works in otherwise until it is done.
func (r *run) unfolds(row int32) bool { return r.convolves(row) && r.alone(row) }

// alone reports whether nothing but workspaces of matrix products, gradients of parameters and what is small beside it is made while
// a row is there, as the ones that a transposed convolution adds its bias with: it comes and goes within one call.
func (r *run) alone(row int32) bool {
	const small = 64 // times less
	return r.aloneBut(row, small)
}

// aloneBut is alone beside what is so many times smaller.
func (r *run) aloneBut(row int32, small int64) bool {
	l := &r.t.Lives[row]
	end := l.GivenUp()
	for other := row + 1; int(other) < len(r.t.Lives) && r.t.Lives[other].Born < end; other++ {
		o := &r.t.Lives[other]
		beside := o.Stack == l.Stack && o.Requested*small <= l.Requested
		if !beside && !r.is(other, category.Workspace) && !r.scratch(other) && !r.gradient(other) {
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
	gpus := kernel.GPUs(r.uses.Hopper())
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
// which the partial results that were recorded are made. Of several it is the one that goes first: what a node of backward got, of which it
// sums up the gradient of a bias, and not what it gives on. There are 0 rows where none is.
func (r *run) sumAt(result int32, gpus []kernel.GPU) (g kernel.GPU, rows, columns int64) {
	const back = 64 // rows
	l := r.t.Lives[result : result+3]
	n, first := l[0].Requested, int32(-1)
	for row := result - 1; row >= max(result-back, int32(r.warm)); row-- {
		m := &r.t.Lives[row]
		if m.Requested < n || m.Requested%n != 0 || !m.LiveAfter(int(l[0].Born)) || first >= 0 && r.end(row) >= r.end(first) {
			continue
		}
		for _, on := range gpus {
			if width := sumWidth(on, m.Requested, l); width > 0 {
				first, g, rows, columns = row, on, m.Requested/n, n/width
				gpus = []kernel.GPU{on}
				break
			}
		}
	}
	return g, rows, columns
}

// sumWidth is the bytes of an element with which a device sums up so many bytes with recorded partial results and semaphores, 0 for none.
func sumWidth(g kernel.GPU, bytes int64, sum []timeline.Life) int64 {
	n := sum[0].Requested
	for _, width := range [...]int64{4, 2} {
		if n%width != 0 {
			continue
		}
		partial, semaphores := g.SumBuffer(bytes/n, n/width)
		if partial == sum[1].Requested && semaphores == sum[2].Requested {
			return width
		}
	}
	return 0
}

func (r *run) partialsAt(result int32) bool {
	const fewer = 32 // times, semaphores than partial results
	if int(result) < r.warm || int(result)+2 >= len(r.t.Lives) {
		return false
	}
	l := r.t.Lives[result : result+3]
	if r.phase(result) == inProgram && r.convolves(result) {
		return false // it unfolds behind its result
	}
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
