package change

import (
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
)

// A program that runs under torch.autocast already can have weights of 16 bits: products are given them as they are,
// without the copies that torch.autocast makes of those of 32 (aten/src/ATen/autocast_mode.cpp: cached_cast), and what
// had 32 bits for such a weight alone, as an embedding and what is added to it have, has 16. What torch.autocast
// computes in 32 bits it does all the same, in copies.

// conversion is what weights of 16 bits make of a program that was recorded under torch.autocast.
type conversion struct {
	*draft
	copies       map[int32]bool // of weights, and of what products are given, as are made no more
	adapters     map[int64]bool // see adapters
	narrow, wide map[int32]bool // rows of passes that have 16 bits instead of 32, and of those what has 32 all the same
	follow       bool           // gradients and states have the type of their parameters
}

// convert gives the weights of a program 16 bits, and with all what it trains them with, whatever optimizer that is;
// nil for a program that was not recorded under torch.autocast.
func (d *draft) convert(all bool) *conversion {
	copies, _ := d.weightCopies(span{0, int32(len(d.t.Lives))}, 0)
	if len(copies) == 0 {
		return nil
	}
	c := &conversion{draft: d, copies: copies, wide: map[int32]bool{}}
	if !all {
		c.adapters = d.adapters()
	}
	c.follow = all || len(c.adapters) == 0 && d.followParameters()
	maps.DeleteFunc(c.copies, func(row int32, _ bool) bool { return c.adapters[2*d.t.Lives[row].Requested] })
	c.narrow = d.under(true)
	for row := range d.under(false) {
		delete(c.narrow, row)
	}
	for i := range d.passes {
		c.give(&d.passes[i])
		for _, of := range d.tiledCalls(&d.passes[i], true) {
			for _, row := range of.copies {
				c.copies[row] = true
			}
		}
		d.castNorms(&d.passes[i], d.norms(&d.passes[i]), c.wide)
	}
	if c.follow {
		c.keepGradients()
	}
	for row := range c.copies {
		d.drop[row] = true
	}
	d.added = slices.DeleteFunc(d.added, func(x extra) bool { return c.copies[x.Like] })
	return c
}

// under are the rows of passes that have 16 bits under torch.autocast, where weights have them, too, or not.
func (d *draft) under(weights16 bool) map[int32]bool {
	other := newDraft(d.run, d.p)
	other.underAutocast, other.weights16 = true, weights16
	narrow, _, _ := other.autocast(nil)
	return narrow
}

// adapters are the sizes of what is trained where peft has adapters: it leaves them 32 bits beside weights of 16
// (peft/tuners/tuners_utils.py: cast_adapter_dtype).
func (d *draft) adapters() map[int64]bool {
	out := map[int64]bool{}
	if d.peft() != nil {
		for i := range d.passes {
			maps.Copy(out, d.gradientSizes(&d.passes[i]))
		}
	}
	return out
}

// followParameters reports whether all states are of torch's own optimizers, which make them like parameters and step
// with gradients of the same type (torch/optim/adam.py: zeros_like). One that a program has for weights of 16 bits
// mostly is there to have 32 for the others.
func (d *draft) followParameters() bool {
	for row := range d.rows() {
		stack := d.stack(d.code(row))
		if d.is(row, category.OptimizerState) && len(stack) > 0 && frames.Of(d.s, stack[0]).Part() != frames.Optimizer {
			return false
		}
	}
	return true
}

// narrows reports whether a row gets 16 bits.
func (c *conversion) narrows(row int32) bool {
	of, _ := c.uses.Of(row)
	_, part := c.partOf[row]
	switch {
	case of == category.Parameter:
		return !c.adapters[c.t.Lives[row].Requested]
	case of == category.OptimizerState, c.phase(row) == inOptimizer, c.gradient(row), part:
		return c.follow
	}
	return c.narrow[row] && !c.wide[row] && !c.copies[row]
}

// give has products of a pass be given what has 16 bits now as it is, where it is the last that was made of its size,
// and norms of torch's a copy of 32 bits, which they save.
func (c *conversion) give(p *pass) {
	last := map[int64]int32{} // by size
	for row := p.rows.from; row < p.rows.to && c.t.Lives[row].Born < p.begin; row++ {
		n := c.t.Lives[row].Requested
		of, _ := c.precision(row)
		if (of == frames.Weighs || of == frames.Half) && row < c.operation(row).to-1 && !c.copies[row] {
			if given, ok := last[2*n]; ok && c.narrow[given] && c.end(given) > c.t.Lives[row].Born && !c.adapts(row) {
				c.copies[row], c.ends[given] = true, max(c.last(given), c.last(row))
			}
		}
		last[n] = row
		saver := c.savedBy(row).saver
		if !c.narrow[row] || saver < 0 || c.last(row) != c.end(row) {
			continue
		}
		if of, _ := c.precision(saver); of == frames.Full {
			c.copySaved(row, saver)
		}
	}
}

// adapts reports whether an adapter's product makes a row, which goes over to the type of that before.
func (c *conversion) adapts(row int32) bool {
	o := c.operation(row)
	for k := o.from; k < o.to; k++ {
		if c.adapters[2*c.t.Lives[k].Requested] {
			return true
		}
	}
	return false
}

// keepGradients has the gradients of weights be those that products make: none goes over to 32 bits, beside which it
// would be there.
func (c *conversion) keepGradients() {
	const soon = 16 // rows, and events
	for row := range c.rows() {
		if !c.gradient(row) || c.phase(row) != inBackward {
			continue
		}
		born := c.t.Lives[row].Born
		for k := row - 1; k >= max(row-soon, 0); k-- {
			half := 2*c.t.Lives[k].Requested == c.t.Lives[row].Requested && c.phase(k) == inBackward
			if end := c.last(k); half && end > born && end < born+soon {
				c.until(k, born-1)
				break
			}
		}
	}
}
