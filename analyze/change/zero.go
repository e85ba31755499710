package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot/sorting"
)

// ZeRO has ranks share what they hold alike.

// zero shares what ranks hold alike: the optimizer's state (stage 1), gradients too (2), parameters too (3).
func (d *draft) zero(c *Change, e *Applied) {
	stage, ranks := c.stage, c.n
	full := slices.Clone(d.sizes)
	for row := range d.rows() {
		if d.gradient(row) {
			e.moved += int64(stage) * d.sizes[row]
		}
	}
	if c.dealt {
		d.dealState(ranks, e)
	} else {
		d.shareState(ranks, e)
	}
	if stage >= 2 {
		d.shareGradients(ranks, e)
	}
	if stage >= 3 {
		d.gather(full)
		s := &sharder{draft: d, ranks: ranks}
		s.shard(e)
		s.write()
	}
}

// share leaves a rank its part of a row.
func (d *draft) share(row int32, ranks int64, e *Applied) {
	d.sizes[row] = (d.sizes[row] + ranks - 1) / ranks
	e.count(d.run, row)
}

func (d *draft) shareAll(rows []int32, ranks int64, e *Applied) {
	for _, row := range rows {
		d.share(row, ranks, e)
	}
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
				d.shareAll(l, ranks, e)
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
			// Between which units it is used, backward tells, which goes the other way. One that is used several times stays
			// from the first of these in backward on, until its gradient is complete.
			since := int32(-1)
			for _, of := range append(d.summands(p, row), row) {
				at, to, again := p.first, p.begin, p.begin
				for u := range units {
					if x := &units[u]; x.start >= d.t.Lives[of].Born {
						at = max(at, x.over) // the unit comes before it
					} else {
						to, again = min(to, d.t.Lives[x.call.rows[0]].Born), max(again, x.done)
					}
				}
				if again > p.begin {
					gathered(at, to)
					at = again
				}
				if since < 0 {
					since = at
				}
			}
			gathered(min(since, l.Born), l.Born)
		}
	}
}

// summands are the rows that a pass sums up in a gradient of a parameter which is used several times: of its size, and gone
// before anything else is asked for.
func (d *draft) summands(p *pass, gradient int32) []int32 {
	var out []int32
	for row := range d.goneBehind(gradient) {
		if d.t.Lives[row].Requested == d.t.Lives[gradient].Requested && row < gradient && row >= p.rows.from &&
			d.t.Lives[row].Born >= p.begin {
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out
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
	sorting.By(out, func(a, b unit) int { return cmp.Compare(a.call.rows[0], b.call.rows[0]) })
	for i := range out {
		u, from := &out[i], p.rows.from
		if u.done = u.last; i > 0 {
			rows := out[i-1].call.rows
			if from = rows[len(rows)-1] + 1; from >= u.call.rows[0] {
				u.done = max(u.last, out[i-1].start)
				continue
			}
		}
		// What goes into it was made before it, and its backward needs that too.
		first := p.end
		for row := from; row < u.call.rows[0]; row++ {
			if e := d.end(row); e > u.last && e < min(first, p.stop) && d.saved(p, row) {
				first = e
			}
		}
		if first == p.end {
			continue
		}
		if u.done = first; d.before(first) > u.last {
			u.done = d.before(first) // the operation that made it saved it too
		}
	}
	return out
}
