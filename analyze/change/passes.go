package change

import (
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// A run goes forward and backward in turn. What belongs to which pass shows in what is there until it.

// pass is a backward pass, and what was computed for it: what the program allocated since the pass or the step of an
// optimizer before it.
type pass struct {
	first       int32 // event of the first allocation of the program
	begin, last int32 // events of the first and the last allocation of the backward pass
	end         int32 // the event of the next allocation by other code, or the trace's length
	rows        span  // allocated from first to end
	reach       int32 // the first row that it may keep: some of what passes before it computed is gone back through by this one
	open        bool  // the trace ends, or a request fails, before it begins; begin is then where
	stop        int32 // the event at which a request fails or the trace ends within it, whatif.Never for none
}

// call is a step of an optimizer: allocations with nothing else between them.
type call struct {
	rows        span
	first, next int32 // events of its first allocation, and of the next by other code, or the trace's length
}

// findPasses finds the passes and the optimizer's calls.
func (r *run) findPasses() {
	n, events := int32(len(r.t.Lives)), int32(r.t.Trace.Len())
	born := func(row int32) int32 {
		if row < n {
			return r.t.Lives[row].Born
		}
		return events
	}
	start := int32(r.warm) // of what leads to the next pass
	for row := start; row < n; {
		p, to := r.phase(row), row+1
		for to < n && (r.phase(to) == p || r.phase(to) == inNothing) {
			to++
		}
		switch p {
		case inBackward:
			r.passes = append(r.passes, pass{first: born(start), begin: born(row), last: born(to - 1),
				end: born(to), rows: span{start, to}})
			start = to
		case inOptimizer:
			r.calls = append(r.calls, call{span{row, to}, born(row), born(to)})
			start = to
		}
		row = to
	}
	r.joinDerived()
	r.findReach()
	r.kept, r.outlives = make([]bool, len(r.phases)), make([]bool, len(r.phases))
	for i := range r.passes {
		p := &r.passes[i]
		p.stop = r.stopOf(p)
		for row := p.rows.from; row < p.rows.to; row++ {
			id := r.t.Lives[row].Stack
			leaks := i < len(r.passes)-1 && r.t.Lives[row].Born < p.begin && r.t.Lives[row].GivenUp() < 0
			r.outlives[id] = r.outlives[id] || leaks || r.t.Lives[row].GivenUp() >= p.end
		}
		for _, row := range r.savedRows(p) {
			id := r.t.Lives[row].Stack
			r.kept[id] = r.kept[id] || r.end(row) < p.stop
		}
	}
	if start == n {
		r.guess()
		return
	}
	p := pass{first: born(start), begin: events, last: events, end: events + 1, rows: span{start, n}, reach: start, open: true}
	if p.stop = r.stopOf(&p); p.stop < events {
		p.begin = p.stop
	}
	if r.trains || p.stop < events {
		r.passes = append(r.passes, p)
	}
	r.guess()
	if !r.trains && !r.guessed {
		r.passes = nil
	}
}

// joinDerived has a pass go on to a later one that derives what it made again, as torch.autograd.grad does with create_graph: that lets
// go of it, and of most of what was computed for the pass, and no optimizer stepped in between.
func (r *run) joinDerived() {
	var joined []pass
	for i := 0; i < len(r.passes); i++ {
		p, to := r.passes[i], i
		next := int32(len(r.t.Lives)) // row of the next step of an optimizer
		if at := sort.Search(len(r.calls), func(k int) bool { return r.calls[k].rows.from >= p.rows.to }); at < len(r.calls) {
			next = r.calls[at].rows.from
		}
		for k := i; k <= to; k++ {
			for row := r.passes[k].rows.from; row < r.passes[k].rows.to; row++ {
				if r.phase(row) != inBackward || r.parameters[r.t.Lives[row].Requested] {
					continue
				}
				if q := r.goneIn(row); q > to && r.passes[q].rows.from < next && (to > i || r.retains(&p)) {
					to = q
				}
			}
		}
		last := &r.passes[to]
		p.begin, p.last, p.end, p.rows.to = last.begin, last.last, last.end, last.rows.to
		joined, i = append(joined, p), to
	}
	r.passes = joined
}

// goneIn is the index of the pass that goes backward where a row ends, -1 where none does.
func (r *run) goneIn(row int32) int {
	end := r.end(row)
	k := sort.Search(len(r.passes), func(k int) bool { return r.passes[k].last >= end })
	if k == len(r.passes) || r.passes[k].begin > end {
		return -1
	}
	return k
}

// retains reports whether most of what was computed on the way to a pass is there behind it still.
func (r *run) retains(p *pass) bool {
	var kept, gone int64
	for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
		switch end := r.end(row); {
		case end <= p.begin || r.phase(row) != inProgram:
		case end <= p.last:
			gone += r.t.Lives[row].Requested
		default:
			kept += r.t.Lives[row].Requested
		}
	}
	return kept > gone
}

// findReach finds what passes go back through that was computed before another pass, as what a generator makes is before its critic
// is trained: a few passes behind that they let go of what several operations of modules made.
func (r *run) findReach() {
	const far, several = 4, 2
	type reached struct {
		row    int32
		inside map[snapshot.StackID]bool
	}
	by := map[int]*reached{} // by pass
	for i := range r.passes {
		p := &r.passes[i]
		p.reach = p.rows.from
		for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
			end, inside := r.end(row), r.insides[r.t.Lives[row].Stack]
			if end <= p.end || inside == 0 || r.phase(row) != inProgram {
				continue
			}
			k := r.goneIn(row)
			if k < 0 || k > i+far {
				continue
			}
			if by[k] == nil {
				by[k] = &reached{row, map[snapshot.StackID]bool{}}
			}
			by[k].inside[inside] = true
		}
	}
	for k, of := range by {
		if len(of.inside) >= several {
			r.passes[k].reach = of.row
		}
	}
}

// savedBehind is the pass that keeps a row which was made for another before it, nil where none does.
func (r *run) savedBehind(p *pass, row int32) *pass {
	end := r.end(row)
	k := sort.Search(len(r.passes), func(k int) bool { return r.passes[k].end >= end })
	if k == len(r.passes) || &r.passes[k] == p || !r.saved(&r.passes[k], row) {
		return nil
	}
	return &r.passes[k]
}

// guess takes what modules made and is there when a request fails for kept, where no backward pass came so far as to
// tell.
func (r *run) guess() {
	if slices.Contains(r.kept, true) {
		return
	}
	for i := range r.passes {
		p := &r.passes[i]
		if int(p.stop) >= r.t.Trace.Len() {
			continue
		}
		for row := p.rows.from; row < p.rows.to; row++ {
			c, _ := r.uses.Of(row)
			if (c == category.Activation || c == category.AutogradSaved) && r.end(row) > p.stop {
				r.kept[r.t.Lives[row].Stack], r.guessed = true, true
			}
		}
	}
}

// stopOf is where a pass stops.
func (r *run) stopOf(p *pass) int32 {
	all := r.t.OOMs
	i := sort.Search(len(all), func(i int) bool { return all[i].Event >= int(p.first) })
	if i < len(all) && all[i].Event <= int(p.end) {
		return int32(all[i].Event)
	}
	if events := int32(r.t.Trace.Len()); p.end >= events {
		return events
	}
	return whatif.Never
}

// failedIn is the first pass in which a request failed, -1 for none.
func (r *run) failedIn() int {
	return slices.IndexFunc(r.passes, func(p pass) bool { return int(p.stop) < r.t.Trace.Len() })
}

// passOf is the pass that an event lies in, nil for none.
func (r *run) passOf(event int32) *pass {
	i := sort.Search(len(r.passes), func(i int) bool { return r.passes[i].end > event })
	if i < len(r.passes) && r.passes[i].first <= event {
		return &r.passes[i]
	}
	return nil
}

// saved reports whether a pass keeps a row, which was made on the way to its loss, for its backward.
func (r *run) saved(p *pass, row int32) bool {
	l := &r.t.Lives[row]
	end := r.end(row)
	if end >= p.stop && !r.kept[l.Stack] {
		return false // what is there then was not all kept for backward
	}
	of := r.phase(row)
	return (of == inProgram || of == inBackward) && row >= p.reach && l.Born < p.begin && end > p.begin && end <= p.end
}

// savedRows are the rows that a pass keeps.
func (r *run) savedRows(p *pass) (out []int32) {
	for row := p.reach; row < p.rows.to; row++ {
		if r.saved(p, row) {
			out = append(out, row)
		}
	}
	return out
}
