package change

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// leafInputs makes the input of the first checkpoint of each pass need a gradient where adapters are trained: peft has the
// embeddings' output need one, for checkpoints whose input needs none would keep no graph (transformers'
// enable_input_require_grads, peft/peft_model.py, _prepare_model_for_gradient_checkpointing). The graph refers to that output, which
// keeps its gradient, until the loss is bound anew. It reports whether there is such an input.
func (d *draft) leafInputs(calls []instance) (found bool) {
	peft := d.peft()
	if peft == nil {
		return false
	}
	for i := range calls {
		c := &calls[i]
		if i > 0 && calls[i-1].pass == c.pass || c.pass.open || !d.adapted(c, peft) {
			continue
		}
		x := d.parts(c)
		if x.out < 0 || len(x.saved) == 0 {
			continue
		}
		in := d.goesInto(c, d.sizes[x.out])
		if in < 0 {
			continue
		}
		until := d.lossOf(c.pass)
		if d.last(in) < until {
			d.ends[in] = until
		}
		d.add(in, x.last, until)
		found = true
	}
	return found
}

// peft says by frame whether it is of adapters that peft makes; nil for a program without.
func (r *run) peft() []bool {
	out := make([]bool, r.s.Frames.Len()+1)
	for id := 1; id < len(out); id++ {
		out[id] = strings.HasPrefix(r.file(snapshot.FrameID(id)), "peft/tuners/")
	}
	if !slices.Contains(out, true) {
		return nil
	}
	return out
}

// file is the path of a frame's file, of an installed package from its folder on.
func (r *run) file(id snapshot.FrameID) string {
	return frames.Short(r.s.Strings.Get(r.s.Frames.Get(id).File))
}

// ofTransformers reports whether a frame is of a model of transformers.
func (r *run) ofTransformers(id snapshot.FrameID) bool {
	return strings.HasPrefix(r.file(id), transformers)
}

// name is that of a frame's function.
func (r *run) name(id snapshot.FrameID) string { return r.s.Strings.Get(r.s.Frames.Get(id).Name) }

// adapted reports whether a call of transformers' modules has adapters in it, whose frames are given.
func (d *draft) adapted(c *instance, peft []bool) bool {
	return slices.ContainsFunc(c.rows, func(row int32) bool {
		stack := d.stack(d.t.Lives[row].Stack)
		return slices.ContainsFunc(stack, func(id snapshot.FrameID) bool { return peft[id] }) &&
			slices.ContainsFunc(stack, d.ofTransformers)
	})
}

// goesInto is what goes into the first call of a pass: the last block of a size, that of what comes out, that is still there when
// the call begins; -1 for none.
func (d *draft) goesInto(c *instance, size int64) int32 {
	for row := c.rows[0] - 1; row >= c.pass.rows.from; row-- {
		if d.phase(row) == inProgram && !d.drop[row] && d.sizes[row] == size && d.end(row) > d.t.Lives[c.rows[0]].Born {
			return row
		}
	}
	return -1
}

// lossOf is the event at which the loss of a pass is let go of, and its graph: the last of the numbers that forward made and that
// are gone before the next pass is over, or the end of the pass where none outlives it.
func (d *draft) lossOf(p *pass) int32 {
	const number = 8 // bytes, at most
	until, latest := p.end, int32(d.t.Trace.Len())
	if i := slices.IndexFunc(d.passes, func(q pass) bool { return q.first > p.first }); i >= 0 {
		latest = d.passes[i].end
	}
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		if d.phase(row) == inProgram && d.t.Lives[row].Requested <= number && d.t.Lives[row].Born > p.first {
			if end := d.last(row); end <= latest {
				until = max(until, end)
			}
		}
	}
	return until
}
