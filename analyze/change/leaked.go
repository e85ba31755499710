package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Of some leaks what stays are whole graphs: which rows are of one shows in where the same code begins anew.

// leakedGraph is a graph that leaks and that nothing goes back through, as of an evaluation with gradients.
type leakedGraph struct {
	rows []int32          // that leak, in their order
	kind snapshot.StackID // the code that it begins with
	end  int32            // the last of them, but for what comes of several
	step int
	// metric says that it may be of a number that is computed from what is trained.
	metric bool
}

// leakedGraphs are those of some rows, in their order. Code that begins anew begins another.
func (d *draft) leakedGraphs(stays func(row int32) bool) []leakedGraph {
	var out []leakedGraph
	trained := map[graphCall]bool{}
	step := func(row int32) int {
		at := d.steps.At(int(d.t.Lives[row].Born))
		if n := len(d.steps.Steps); at < 0 && (n == 0 || int(d.t.Lives[row].Born) > d.steps.Steps[0].Last) {
			return n // behind the last
		}
		return at
	}
	derived := map[*pass]bool{}
	derives := func(p *pass) bool { // what is derived again
		if p == nil {
			return false
		}
		is, ok := derived[p]
		if !ok {
			for row := p.rows.from; row < p.rows.to && !is; row++ {
				is = d.phase(row) == inBackward && !d.parameters[d.t.Lives[row].Requested] && d.last(row) > p.end && stays(row)
			}
			derived[p] = is
		}
		return is
	}
	goesOn, until := false, int32(0) // until when something is there of the last
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		l := &d.t.Lives[row]
		at := step(row)
		switch d.phase(row) {
		case inNothing:
			continue
		case inBackward:
			if goesOn = goesOn && derives(d.passOf(l.Born)); goesOn && stays(row) && out[len(out)-1].step == at {
				out[len(out)-1].rows = append(out[len(out)-1].rows, row)
			}
			continue
		}
		if at < 0 {
			continue
		}
		if call := (graphCall{at, d.around[l.Stack]}); call.around > 0 && !trained[call] {
			p := d.passOf(l.Born)
			trained[call] = p != nil && d.saved(p, row)
		}
		if !stays(row) {
			continue
		}
		last := len(out) - 1
		if goesOn && until < l.Born && d.around[out[last].kind] == 0 {
			out, goesOn = out[:last], false // it was of the statements before
		}
		if goesOn {
			if k := d.loopIn(&out[last], row); k > 0 {
				g := out[last]
				out[last].rows = slices.Clip(g.rows[:k])
				out, last = append(out, leakedGraph{rows: g.rows[k:], kind: d.code(row), step: g.step}), last+1
			}
		}
		if goesOn && out[last].step == at && !d.repeats(&out[last], row) {
			out[last].rows = append(out[last].rows, row)
		} else {
			out, until = append(out, leakedGraph{rows: []int32{row}, kind: d.code(row), step: at}), 0
		}
		goesOn, until = true, max(until, d.last(row))
	}
	for i := range out {
		g := &out[i]
		g.metric = !d.several(g.rows, func(around int32) bool { return !trained[graphCall{g.step, around}] })
	}
	out = slices.DeleteFunc(out, func(g leakedGraph) bool { return g.metric && !d.endsInNumber(g.rows) })
	for i := range out {
		d.takeRest(&out[i])
	}
	return out
}

// endsInNumber reports whether the last of some rows is a number, which the others were made for, as of a metric that is computed from
// what is trained.
func (d *draft) endsInNumber(rows []int32) bool {
	const number, large = 512, 64 << 10 // bytes, rounded
	last := rows[len(rows)-1]
	return d.t.Lives[last].Rounded <= number && slices.ContainsFunc(rows, func(row int32) bool {
		return d.t.Lives[row].Rounded >= large && d.code(row) != d.code(last)
	})
}

// several reports whether some rows are of several operations of a call of a module, by the code around it which a filter takes.
func (d *draft) several(rows []int32, takes func(around int32) bool) bool {
	first := map[int32]snapshot.StackID{}
	return slices.ContainsFunc(rows, func(row int32) bool {
		stack := d.t.Lives[row].Stack
		around := d.around[stack]
		of, ok := first[around]
		if !ok {
			first[around] = d.insides[stack]
		}
		return ok && around > 0 && of != d.insides[stack] && takes(around)
	})
}

// heldGraphs are graphs of code at a line, nil for any, that stay though nothing goes back through them: what a variable holds is gone
// with the next of its kind, and these are there when the one behind that begins.
func (d *draft) heldGraphs(where *place) []leakedGraph {
	if !d.trains {
		return nil // nothing says that there is any graph
	}
	all := d.leakedGraphs(func(row int32) bool {
		return d.phase(row) == inProgram && !d.t.Lives[row].Passing() && !d.is(row, category.Workspace) && !d.byproduct(row) &&
			!slices.ContainsFunc(d.stack(d.code(row)), d.keepsNothing)
	})
	all = slices.DeleteFunc(all, func(g leakedGraph) bool { return g.metric })
	kinds, places := map[snapshot.StackID][]int{}, make([]int, len(all))
	for i := range all {
		places[i] = len(kinds[all[i].kind])
		kinds[all[i].kind] = append(kinds[all[i].kind], i)
	}
	held := map[snapshot.StackID]bool{} // by kind
	for i := range all {
		of := kinds[all[i].kind]
		until := d.t.Lives[len(d.t.Lives)-1].Born
		if k := places[i] + 2; k < len(of) {
			until = d.t.Lives[all[of[k]].rows[0]].Born
		} else if len(of) < 3 {
			continue
		}
		var stays []int32
		for _, row := range all[i].rows {
			if d.last(row) >= until {
				stays = append(stays, row)
			}
		}
		there := func(row int32) bool { return where == nil || where.depth(d.t.Lives[row].Stack) >= 0 }
		if slices.ContainsFunc(stays, there) && d.several(stays, func(int32) bool { return true }) {
			held[all[i].kind], all[i].rows = true, stays
		}
	}
	return slices.DeleteFunc(all, func(g leakedGraph) bool { return !held[g.kind] })
}

// takeRest takes into a graph what else its modules made in between that is there as long as it.
func (d *draft) takeRest(g *leakedGraph) {
	arounds, until := map[int32]bool{}, int32(whatif.Never)
	for _, row := range g.rows {
		arounds[d.around[d.t.Lives[row].Stack]] = true
		until = min(until, d.last(row))
	}
	delete(arounds, 0)
	var all []int32
	next := 0 // of the rows that it has
	for row := g.rows[0]; next < len(g.rows); row++ {
		if row == g.rows[next] {
			next++
			all = append(all, row)
		} else if arounds[d.around[d.t.Lives[row].Stack]] && d.phase(row) == inProgram && d.last(row) >= until {
			all = append(all, row)
		}
	}
	g.rows = all
}

// graphCall is a call of a model in a step, by the code that makes it.
type graphCall struct {
	step   int
	around int32
}

// loopIn is which of the rows of a graph a loop begins with that is back there for another row, 0 for none: with its first module, or
// with what is made for that, as a batch, where the graph has something that was made before the loop, as a first hidden state.
func (d *draft) loopIn(g *leakedGraph, row int32) int {
	around := d.around[d.code(row)]
	if d.around[g.kind] > 0 || around > 0 && around == d.around[d.code(g.rows[len(g.rows)-1])] {
		return 0
	}
	k := slices.IndexFunc(g.rows, func(of int32) bool { return d.around[d.code(of)] > 0 || d.code(of) == d.code(row) })
	if k < 0 || d.code(g.rows[k]) != d.code(row) || !d.several(g.rows[k:], func(int32) bool { return true }) {
		return 0
	}
	return k
}

// repeats reports whether a row begins a graph anew: where one that is there did, or before that, behind something that another
// statement made, or the outermost module at a later line.
func (d *draft) repeats(g *leakedGraph, row int32) bool {
	now, last := d.t.Lives[row].Stack, d.t.Lives[g.rows[len(g.rows)-1]].Stack
	if around := d.around[now]; around == 0 || around != d.around[last] {
		return d.back(g.kind, d.code(row))
	}
	if d.code(row) != g.kind {
		return false
	}
	// The two are in the function of that module at the same frames, up to where it has gone on to another line.
	x, y := d.stack(now), d.stack(last)
	code := false
	for k := len(d.outside(x)) + 1; k <= min(len(x), len(y)); k++ {
		a, b := x[len(x)-k], y[len(y)-k]
		if a != b {
			p, q := d.s.Frames.Get(a), d.s.Frames.Get(b)
			return p.File == q.File && p.Name == q.Name && p.Line < q.Line
		}
		isCall := frames.Of(d.s, a).IsModuleCall()
		if isCall && code {
			return false // both are in a module of it
		}
		code = code || !isCall
	}
	return false
}

// findEnds tells where graphs end: what begins with the same code ends with what all of these have last.
func (d *draft) findEnds(all []leakedGraph) {
	type kind struct{ of, code snapshot.StackID }
	graphs, times := map[snapshot.StackID]int{}, map[kind]int{}
	for i := range all {
		g := &all[i]
		seen := map[snapshot.StackID]bool{}
		graphs[g.kind]++
		for _, row := range g.rows {
			if code := d.code(row); !seen[code] {
				seen[code] = true
				times[kind{g.kind, code}]++
			}
		}
	}
	for i := range all {
		g := &all[i]
		g.end = g.rows[len(g.rows)-1]
		for _, row := range slices.Backward(g.rows) {
			if times[kind{g.kind, d.code(row)}] == graphs[g.kind] {
				g.end = row
				break
			}
		}
	}
}
