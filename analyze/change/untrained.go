package change

import (
	"maps"
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// An optimizer of torch's passes over parameters that have no gradient (torch/optim/adam.py and others: _init_group): they have no state,
// and no temporaries in a step.

// passOver drops what optimizers make for parameters of which no pass makes a gradient any more: of what the same code makes, one for
// each parameter of a size and in the order of parameters, which is that of gradients from the last to the first.
func (d *draft) passOver(e *Applied) {
	gone := d.goneGradients()
	if len(gone) == 0 {
		return
	}
	type of struct {
		code snapshot.StackID
		size int64
	}
	for i := range d.calls {
		c, made := &d.calls[i], map[of][]int32{}
		for row := c.rows.from; row < c.rows.to; row++ {
			if d.phase(row) == inOptimizer && len(gone[d.sizes[row]]) > 0 {
				key := of{d.code(row), d.sizes[row]}
				made[key] = append(made[key], row)
			}
		}
		for key, rows := range made {
			all := gone[key.size]
			if len(rows) != len(all) {
				continue
			}
			for k, row := range rows {
				if all[k] && !d.drop[row] {
					d.drop[row] = true
					e.count(d.run, row)
				}
			}
		}
	}
}

// goneGradients says by requested size which gradients are dropped in all passes that make some of that size, in the order of parameters;
// nothing of sizes of which none is, or of which passes make other numbers, as those of two networks do.
func (d *draft) goneGradients() map[int64][]bool {
	out, unclear := map[int64][]bool{}, map[int64]bool{}
	for i := range d.passes {
		p, all := &d.passes[i], map[int64][]bool{}
		for row := p.rows.to - 1; row >= p.rows.from; row-- {
			if d.gradient(row) {
				all[d.sizes[row]] = append(all[d.sizes[row]], d.drop[row])
			}
		}
		for n, of := range all {
			before, ok := out[n]
			switch {
			case !ok:
				out[n] = of
			case len(before) != len(of):
				unclear[n] = true
			default:
				for k := range before {
					before[k] = before[k] && of[k]
				}
			}
		}
	}
	maps.DeleteFunc(out, func(n int64, of []bool) bool { return unclear[n] || !slices.Contains(of, true) })
	return out
}
