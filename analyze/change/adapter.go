package change

import "strings"

// leafInputs has what goes into the first checkpoint of each pass need a gradient where adapters are trained: peft has the embeddings'
// output need one, for checkpoints whose input needs none would keep no graph (transformers' enable_input_require_grads,
// peft/peft_model.py, _prepare_model_for_gradient_checkpointing). The graph refers to that output, which keeps its gradient, until
// the loss is bound anew. It reports whether there is such a one.
func (d *draft) leafInputs(calls []instance) (found bool) {
	for i := range calls {
		c := &calls[i]
		if i > 0 && calls[i-1].pass == c.pass || c.pass.open || !d.adapted(c) {
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

// adapted reports whether a call of transformers' modules has adapters of peft's in it.
func (d *draft) adapted(c *instance) bool {
	var peft, transformers bool
	for _, row := range c.rows {
		for _, id := range d.stack(d.t.Lives[row].Stack) {
			file := d.s.Strings.Get(d.s.Frames.Get(id).File)
			peft = peft || strings.Contains(file, "peft/tuners/")
			transformers = transformers || strings.Contains(file, "transformers/models/")
		}
		if peft && transformers {
			return true
		}
	}
	return false
}

// goesInto is what goes into the first call of a pass, of the size of what comes out: the last such that is there when it begins;
// -1 for none.
func (d *draft) goesInto(c *instance, size int64) int32 {
	for row := c.rows[0] - 1; row >= c.pass.rows.from; row-- {
		if d.phase(row) == inProgram && !d.drop[row] && d.sizes[row] == size && d.end(row) > d.t.Lives[c.rows[0]].Born {
			return row
		}
	}
	return -1
}

// lossOf is the event at which the loss of a pass is let go of, and its graph: the last of the numbers that forward made, or the
// end of the pass where none outlives it.
func (d *draft) lossOf(p *pass) int32 {
	const number = 8 // bytes, at most
	until := p.end
	for row := p.rows.from; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		if d.phase(row) == inProgram && d.t.Lives[row].Requested <= number && d.t.Lives[row].Born > p.first {
			until = max(until, d.last(row))
		}
	}
	return until
}
