package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/whatif"
)

// zero shares what ranks hold alike: the optimizer's state (stage 1), gradients too (2), parameters too (3).
func (d *draft) zero(stage int, ranks int64, e *Applied) {
	full := slices.Clone(d.sizes)
	for row := range d.rows() {
		if d.gradient(row) {
			e.moved += int64(stage) * d.sizes[row]
		}
	}
	d.shareState(ranks, e)
	if stage >= 2 {
		d.shareGradients(ranks, e)
	}
	if stage >= 3 {
		d.gather(full)
		for row := range d.t.Lives {
			if d.is(int32(row), category.Parameter) {
				d.share(int32(row), ranks, e)
			}
		}
	}
}

// share leaves a rank its part of a row.
func (d *draft) share(row int32, ranks int64, e *Applied) {
	d.sizes[row] = (d.sizes[row] + ranks - 1) / ranks
	e.count(d.run, row)
}

// shareState leaves a rank its part of the optimizer's state, and of what a step of it makes on the way.
func (d *draft) shareState(ranks int64, e *Applied) {
	for row := range d.rows() {
		if d.is(row, category.OptimizerState) {
			d.share(row, ranks, e)
		}
	}
	for i := range d.calls {
		for _, u := range d.updates(&d.calls[i]) {
			for _, l := range u.lists {
				for _, row := range l {
					d.share(row, ranks, e)
				}
			}
		}
	}
}

// shareGradients keeps of each gradient, as soon as it is complete, the rank's part alone.
func (d *draft) shareGradients(ranks int64, e *Applied) {
	for i := range d.added {
		if x := &d.added[i]; d.gradient(x.Like) {
			x.parts = ranks // those of smaller batches before
		}
	}
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		if !d.gradient(row) {
			continue
		}
		at, end := d.complete(row), d.last(row)
		if end <= at {
			continue
		}
		d.ends[row] = at
		v := d.add(row, at, end)
		v.parts = ranks
		e.count(d.run, row)
	}
}

// gather brings the parameters of a module together while it runs: of the modules that one line calls one after
// another, and of all others together. Which parameters are whose, the gradients tell, which backward makes as it
// goes through the modules.
func (d *draft) gather(full []int64) {
	groups := d.lists()
	for i := range d.passes {
		p := &d.passes[i]
		units := d.units(p, groups)
		for row := p.rows.from; row < p.rows.to; row++ {
			l := &d.t.Lives[row]
			if !d.gradient(row) || l.Born < p.begin {
				continue
			}
			n := full[row]
			gathered := func(from, to int32) {
				v := d.add(row, from, max(to, from))
				v.bytes = n
			}
			in := false
			for u := range units {
				if x := &units[u]; l.Born > x.start && l.Born <= x.done {
					gathered(d.t.Lives[x.call.rows[0]].Born, x.over)
					gathered(x.start+1, x.done)
					in = true
					break
				}
			}
			if in {
				continue
			}
			// Between which units it is used, backward tells, which goes the other way.
			from, to, again := p.first, p.begin, p.begin
			for u := range units {
				if x := &units[u]; x.start >= l.Born {
					from = max(from, x.over) // the unit comes before it
				} else {
					to, again = min(to, d.t.Lives[x.call.rows[0]].Born), max(again, x.done)
				}
			}
			if again > p.begin {
				gathered(from, to)
				from = again
			}
			gathered(min(from, l.Born), l.Born)
		}
	}
}

// unit is a module of a loop, whose parameters are gathered while it runs.
type unit struct {
	call *instance
	part
}

// units are the modules of loops that keep something for a pass, in the order of forward.
func (d *draft) units(p *pass, groups []group) []unit {
	var out []unit
	for g := range groups {
		for k := range groups[g].calls {
			if c := &groups[g].calls[k]; c.pass == p {
				if x := d.parts(c); len(x.saved) > 0 {
					out = append(out, unit{c, x})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b unit) int { return cmp.Compare(a.call.rows[0], b.call.rows[0]) })
	for i := range out {
		if i > 0 {
			out[i].done = max(out[i].last, out[i-1].start)
			continue
		}
		// What goes into the first was made before it, and its backward needs that too.
		first := p.end
		for row := p.rows.from; row < out[0].call.rows[0]; row++ {
			if e := d.end(row); e > out[0].last && e < p.stop && d.saved(p, row) {
				first = min(first, e)
			}
		}
		out[0].done = out[0].last
		if first < p.end {
			out[0].done = max(out[0].last, d.nodes[first-1])
		}
	}
	return out
}

// accumulate makes each pass the last of several smaller ones, each with its part of the batch: what depends on the
// batch shrinks, and the gradients so far are there from its beginning on.
func (d *draft) accumulate(parts int64, e *Applied) {
	for i := range d.passes {
		p := &d.passes[i]
		for row := p.rows.from; row < p.rows.to; row++ {
			l := &d.t.Lives[row]
			if d.gradient(row) && l.Born >= p.begin {
				d.pile(p, row)
				continue
			}
			if d.ofBatch(row) && d.sizes[row]%parts == 0 {
				d.sizes[row] /= parts
				e.count(d.run, row)
			}
		}
		if p.stop != whatif.Never {
			d.owe(i)
		}
	}
	if d.p.OOMs == len(d.t.OOMs) { // their requests come behind the rows
		for i := range d.t.OOMs {
			row := len(d.t.Lives) + i
			if d.passOf(int32(d.t.OOMs[i].Event)) != nil && d.sizes[row]%parts == 0 {
				d.sizes[row] /= parts
			}
		}
	}
}

// owe brings in the gradients of smaller batches before a pass that stops before it has made its own: those of the pass
// before it, or one for each parameter.
func (d *draft) owe(i int) {
	p := &d.passes[i]
	made := map[int64]int{} // by size
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.gradient(row) {
			made[d.sizes[row]]++
		}
	}
	all := span{0, p.rows.to}
	of := func(row int32) bool { return d.is(row, category.Parameter) }
	if i > 0 {
		all = d.passes[i-1].rows
		of = func(row int32) bool { return d.gradient(row) && d.end(row) <= p.first }
	}
	until := int32(whatif.Never)
	if int(p.end) < d.t.Trace.Len() {
		until = p.end
	}
	for row := all.from; row < all.to; row++ {
		switch n := d.sizes[row]; {
		case !of(row):
		case made[n] > 0:
			made[n]--
		default:
			d.add(row, p.first, until)
		}
	}
}

// ofBatch reports whether a row of a pass depends on the batch, as all does but for what steps share or the optimizer makes.
func (d *draft) ofBatch(row int32) bool {
	switch c, _ := d.uses.Of(row); c {
	case category.Parameter, category.OptimizerState, category.Workspace, category.Communication:
		return false
	}
	return d.phase(row) != inOptimizer
}

// pile has the gradient of the passes before there from the beginning of one, which adds its own to it.
func (d *draft) pile(p *pass, row int32) {
	end := d.last(row)
	at := d.complete(row)
	if end <= at {
		return
	}
	d.add(row, p.first, end)
	d.ends[row] = at
}

// narrow makes the elements of a category half as large.
func (d *draft) narrow(of func(row int32) bool, e *Applied) {
	for row := range d.t.Lives {
		if of(int32(row)) {
			d.sizes[row] = (d.sizes[row] + 1) / 2
			e.count(d.run, int32(row))
		}
	}
}
