package change

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/snapshot"
)

// Torch's ZeroRedundancyOptimizer deals whole parameters to ranks: those of one group after another, the largest of each first, to the
// rank that has the least. A rank goes through its own in that order (torch/distributed/optim/zero_redundancy_optimizer.py,
// _partition_parameters, 2.13 to 2.15). The recording is made that of rank 0.

// dealState leaves a rank the optimizer's state of its parameters, and what a step of it makes for these on the way. Of state whose
// parameters nothing tells, as of what was there before the trace, it has its part.
func (d *draft) dealState(ranks int64, e *Applied) {
	gone := map[int32]bool{}
	for i := range d.calls {
		c := &d.calls[i]
		most := min(ranks, int64(c.rows.to-c.rows.from)) // more have nothing to do
		ofStates, ofLists := newDealer(most), newDealer(most)
		for _, rows := range d.madeBy(c) {
			each := d.ofOneParameter(rows)
			if each == 0 {
				d.shareAll(rows, ranks, e)
				continue
			}
			d.keep(ofStates.own(d.every(rows, each)), rows, each, gone, e)
		}
		for _, u := range d.updates(c) {
			own := ofLists.own(d.every(u.lists[0], 1))
			for _, l := range u.lists {
				d.keep(own, l, 1, gone, e)
			}
		}
	}
	for row := range d.rows() {
		if d.t.Lives[row].Born < 0 && d.is(row, category.OptimizerState) {
			d.share(row, ranks, e)
		}
	}
	d.added = slices.DeleteFunc(d.added, func(x extra) bool { return gone[x.Like] })
}

// madeBy are the rows of the state that a call of an optimizer makes, those of one group of parameters together: between groups the
// parameters of one are updated.
func (d *draft) madeBy(c *call) [][]int32 {
	const number = 8 // bytes: a count of steps stays
	var out [][]int32
	another := true
	for row := c.rows.from; row < c.rows.to; row++ {
		switch {
		case d.phase(row) != inOptimizer:
		case !d.is(row, category.OptimizerState):
			another = true
		case d.sizes[row] > number:
			if another {
				out, another = append(out, nil), false
			}
			out[len(out)-1] = append(out[len(out)-1], row)
		}
	}
	return out
}

// ofOneParameter is how many rows of a group's state each parameter has, which lines of code make in turn; 0 where that is not so.
func (d *draft) ofOneParameter(rows []int32) int {
	lines := map[snapshot.StackID]bool{}
	for _, row := range rows {
		lines[d.code(row)] = true
	}
	each := len(lines)
	for i, row := range rows {
		if d.code(row) != d.code(rows[i%each]) || d.sizes[row] != d.sizes[rows[i-i%each]] {
			return 0
		}
	}
	if len(rows)%each != 0 {
		return 0
	}
	return each
}

// every gives the sizes of every so many of some rows.
func (d *draft) every(rows []int32, each int) (sizes []int64) {
	for i := 0; i < len(rows); i += each {
		sizes = append(sizes, d.sizes[rows[i]])
	}
	return sizes
}

// keep leaves of rows, so many of each parameter, those for parameters of some sizes, which come first and in that order.
func (d *draft) keep(own []int64, rows []int32, each int, gone map[int32]bool, e *Applied) {
	for i, row := range rows {
		switch k := i / each; {
		case k >= len(own):
			d.drop[row], gone[row] = true, true
		case d.sizes[row] == own[k]:
			continue
		default:
			d.sizes[row] = own[k]
		}
		e.count(d.run, row)
	}
}

// dealer is what ranks were dealt, a heap with the rank on top that has the least.
type dealer []dealt

type dealt struct {
	rank  int
	bytes int64
}

func newDealer(ranks int64) *dealer {
	r := make(dealer, ranks)
	for i := range r {
		r[i].rank = i
	}
	return &r
}

// own deals parameters of some sizes, and gives those of rank 0.
func (r *dealer) own(sizes []int64) (own []int64) {
	slices.SortFunc(sizes, func(a, b int64) int { return cmp.Compare(b, a) })
	for _, n := range sizes {
		if (*r)[0].rank == 0 {
			own = append(own, n)
		}
		(*r)[0].bytes += n
		heap.Fix(r, 0)
	}
	return own
}

func (r dealer) Len() int { return len(r) }
func (r dealer) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(r[i].bytes, r[k].bytes), cmp.Compare(r[i].rank, r[k].rank)) < 0
}
func (r dealer) Swap(i, k int) { r[i], r[k] = r[k], r[i] }
func (r *dealer) Push(any)     {}             // ranks neither come
func (r *dealer) Pop() any     { return nil } // nor go
