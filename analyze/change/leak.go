package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// freeLeak lets go of what stacks leave behind, at the earliest of these: where the last statement is over that reads
// it, if backward does not save it as far as is known; where the step ends that allocated it; where they allocate
// again. Where the function that gets it goes on in the next step, and keeps other variables up to there, only the
// last of these counts. Graphs that nothing goes back through are gone with the variable that has their end.
func (d *draft) freeLeak(stacks []snapshot.StackID, e *Applied) {
	loops := map[snapshot.StackID]bool{}
	for _, id := range stacks {
		if row := slices.IndexFunc(d.t.Lives, func(l timeline.Life) bool { return l.Stack == id && l.Born >= 0 }); row >= 0 {
			loops[id] = d.goesOn(int32(row))
		}
	}
	next := make([]int32, d.s.Stacks.Len()+1) // by stack, the next birth
	for _, id := range stacks {
		next[id] = int32(d.t.Trace.Len())
	}
	var last int32 // birth
	for row := int32(len(d.t.Lives)) - 1; row >= 0 && last == 0; row-- {
		if l := &d.t.Lives[row]; next[l.Stack] > 0 {
			last = l.Born
		}
	}
	stays := func(row int32) bool { return next[d.t.Lives[row].Stack] > 0 && d.last(row) >= last }
	graphs := d.leakedGraphs(stays)
	if len(graphs) == 0 { // what is known to leak may be a small part of graphs all the same
		const few = 3 // operations
		graphs = slices.DeleteFunc(d.heldGraphs(nil), func(g leakedGraph) bool {
			others := map[snapshot.StackID]bool{}
			for _, row := range g.rows {
				if l := &d.t.Lives[row]; next[l.Stack] == 0 {
					others[d.code(row)] = true
				}
			}
			return len(others) <= few || !slices.ContainsFunc(g.rows, stays)
		})
	}
	freed := d.freeGraphs(graphs, e)
	gone := map[int32]int32{} // by row, in their order
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		l := &d.t.Lives[row]
		if stays(row) && !freed[row] && !loops[l.Stack] && d.unsaved(row) {
			if event, depth := d.dropped(row); depth >= 0 && event >= l.Born {
				gone[row] = event
			}
		}
	}
	after, anew := make([]int32, len(next)), make([]int32, len(next)) // by stack, the next birth, and the first in the next step
	for row := int32(len(d.t.Lives)) - 1; row >= int32(d.warm); row-- {
		l := &d.t.Lives[row]
		if next[l.Stack] == 0 {
			continue
		}
		end := next[l.Stack]
		if at := d.steps.At(int(l.Born)); at >= 0 && !loops[l.Stack] {
			end = min(end, int32(d.steps.Steps[at].Last))
			if event, ok := gone[row]; ok {
				end = min(end, event)
			}
		} else if at >= 0 && !freed[row] {
			e.assumeOnce(BoundAgain)
		}
		if after[l.Stack] > 0 && d.steps.At(int(after[l.Stack])) != d.steps.At(int(l.Born)) {
			anew[l.Stack] = after[l.Stack]
		}
		after[l.Stack] = l.Born
		if until := d.end(row); !loops[l.Stack] || d.steps.At(int(until)) != d.steps.At(int(l.Born)) {
			next[l.Stack] = l.Born // what the same stack makes and frees at once is not assigned to it
		}
		if was := d.last(row); !freed[row] && d.until(row, end) {
			e.count(d.run, row)
			if anew[l.Stack] > end {
				e.mayEnd(row, end, min(anew[l.Stack], was))
			}
		}
	}
}

// freeGraphs lets go of graphs, and says of which rows.
func (d *draft) freeGraphs(all []leakedGraph, e *Applied) map[int32]bool {
	type place struct {
		code  snapshot.StackID
		depth int
	}
	known := map[place]bool{}
	goesOn := func(row int32, depth int) bool {
		at := place{d.code(row), depth}
		is, ok := known[at]
		if !ok {
			is = d.goesOnAt(row, depth)
			known[at] = is
		}
		return is
	}
	freed := map[int32]bool{}
	d.findEnds(all)
	loops := &graphLoops{draft: d, all: all, goesOn: goesOn, last: map[graphLoop]int{}, next: map[snapshot.StackID]int{},
		before: map[int]trained{}}
	for i := range slices.Backward(all) {
		g := &all[i]
		x := loops.ends(i)
		for _, row := range g.rows {
			loops.next[d.code(row)] = i
			freed[row] = true
			was := d.last(row)
			end, sooner := x.end, x.sooner
			if row > g.end { // it comes of this one and others
				end, sooner = max(end, d.returned(row)), max(sooner, d.returned(row))
			}
			if !d.until(row, end) {
				continue
			}
			if int(end)+1 < d.t.Trace.Len() { // else a variable has it in the end
				e.count(d.run, row)
			}
			if sooner < end {
				e.mayEnd(row, end, sooner)
			}
			if row == g.end {
				e.mayEnd(row, end, was) // as where it is kept without its graph
			} else if x.later > end {
				e.mayEnd(row, end, min(x.later, was))
			}
		}
		if x.bound {
			e.assumeOnce(BoundAgain)
		}
	}
	return freed
}

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
	goesOn := false
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		l := &d.t.Lives[row]
		if phase := d.phase(row); phase != inProgram {
			goesOn = goesOn && phase == inNothing
			continue
		}
		at := step(row)
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
		if last := len(out) - 1; goesOn && out[last].step == at && !d.repeats(&out[last], row) {
			out[last].rows = append(out[last].rows, row)
		} else {
			out = append(out, leakedGraph{rows: []int32{row}, kind: d.code(row), step: at})
		}
		goesOn = true
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
		return !d.t.Lives[row].Passing() && !d.is(row, category.Workspace) && !d.byproduct(row) &&
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
		if has := row == g.rows[next]; has {
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

// repeats reports whether a row begins a graph anew: where one that is there did, or before that, behind something that another
// statement made, or the outermost module at a later line.
func (d *draft) repeats(g *leakedGraph, row int32) bool {
	now, last := d.t.Lives[row].Stack, d.t.Lives[g.rows[len(g.rows)-1]].Stack
	if around := d.around[now]; around == 0 || around != d.around[last] {
		return d.back(g.kind, d.code(row), false)
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

// graphEnds are events after which a graph may be gone.
type graphEnds struct {
	end    int32 // where a variable has its end
	sooner int32 // where none has
	later  int32 // where the caller of the function has, too, else end
	bound  bool  // at end the variable is bound anew
}

// graphLoops looks at graphs from the last to the first.
type graphLoops struct {
	*draft
	all    []leakedGraph
	goesOn func(row int32, depth int) bool
	next   map[snapshot.StackID]int // the next graph that has a row of some code
	last   map[graphLoop]int        // the last graph of a loop
	before map[int]trained          // by depth from outside
}

// graphLoop is a loop in the function at a depth from outside that makes a graph, and others behind it.
type graphLoop struct{ graph, depth int }

// ends says when a graph is gone that only variables hold. What comes out of a call is in a variable of the function that makes the
// call, up to where it is bound anew or the function is over. What a function makes last in its one statement is its caller's; with
// several, or a loop, it is taken to return no graph any more: it is there that too much is kept.
func (x *graphLoops) ends(at int) graphEnds {
	g := &x.all[at]
	own := x.stack(x.code(g.end))
	again, isAgain := x.next[x.code(g.end)]
	until := int32(len(x.t.Lives))
	if at+1 < len(x.all) {
		until = x.all[at+1].rows[0]
	}
	depth := x.outcome(own)
	if depth < 0 {
		over := x.returned(g.end)
		return graphEnds{end: over, sooner: over, later: over}
	}
	out := graphEnds{end: -1, sooner: x.returned(x.statement(g.end, until, own, depth))}
	for ; depth >= 0; depth = x.caller(own, depth) {
		last := x.lastIn(g.end, own, depth)
		switch {
		case isAgain && x.goOn(at, again, own, depth):
			out.later = x.t.Lives[x.endIn(&x.all[again], g.end)].Born
			if out.end >= 0 {
				return out
			}
			out.end, out.bound = out.later, true
			end, ok := x.last[graphLoop{again, depth}]
			if !ok {
				end = again
			}
			x.last[graphLoop{at, depth}] = end
			if end+1 < len(x.all) { // else it is all that the program does
				out.later = x.returned(x.lastIn(x.all[end].end, own, depth)) // where all are added up
			}
			return out
		case out.end >= 0:
		case at > 0 && x.goOn(at-1, at, own, depth):
			out.end, out.later = x.returned(last), x.returned(last)
			return out
		case x.keepsGraph(g, until, last, own, depth):
			out.end = x.returned(last)
		}
	}
	out.end = max(out.end, out.sooner)
	out.later = out.end
	return out
}

// goOn reports whether the function that has a row at a depth from outside goes on from the end of one graph to that of another, and is
// not called again. What nothing calls does.
func (x *graphLoops) goOn(from, to int, own []snapshot.FrameID, depth int) bool {
	a, b := &x.all[from], &x.all[to]
	return (a.step == b.step || x.caller(own, depth) < 0 || x.goesOn(b.end, depth)) && x.staysIn(a.end, b.end, own, depth)
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

// endIn is the last row of a graph that is made as another row is, -1 for none.
func (d *draft) endIn(g *leakedGraph, end int32) int32 {
	for _, row := range slices.Backward(g.rows) {
		if d.code(row) == d.code(end) {
			return row
		}
	}
	return -1
}

// outcome is the depth from outside of the function that gets what comes of something: of the outermost module that makes it.
func (d *draft) outcome(own []snapshot.FrameID) int {
	around := d.outside(own)
	if around == nil {
		return d.holder(own)
	}
	depth := len(around) - 1
	if c := frames.Of(d.s, around[0]); c.Origin() == frames.Plumbing || c.Part() == frames.Wrapper {
		depth = d.caller(own, depth)
	}
	return depth
}

// keepsGraph reports whether a function at a depth from outside has a graph that ends with a row in its variables: it calls the modules
// that make it, and goes on at other lines, as one that takes a loss from what a model gives, or trains too. Functions that losses come
// from alone return them.
func (x *graphLoops) keepsGraph(g *leakedGraph, until, last int32, own []snapshot.FrameID, depth int) bool {
	calls, several := false, x.statement(g.end, until, own, depth) < last
	for _, row := range g.rows {
		stack := x.stack(x.code(row))
		if same, _ := x.inside(own, stack, x.code(row), depth); same {
			calls = calls || x.outside(stack) != nil
			several = several || calls && x.line(stack, depth) != x.line(own, depth)
		}
	}
	return calls && (several || x.trainsBefore(g.rows[0], own, depth))
}

// trainsBefore reports whether a function at a depth from outside goes through a backward pass before a row, in the same call.
func (x *graphLoops) trainsBefore(row int32, own []snapshot.FrameID, depth int) (trains bool) {
	known := x.before[depth]
	if known.from < row && row <= known.to {
		return known.trains
	}
	at := row - 1
	for ; at >= int32(x.warm) && !trains; at-- {
		phase := x.phase(at)
		if trains = phase == inBackward; trains || phase == inNothing {
			continue
		}
		if same, _ := x.inside(own, x.stack(x.code(at)), x.code(at), depth); !same {
			break
		}
	}
	x.before[depth] = trained{span{at, row}, trains}
	return trains
}

// trained are rows that a function allocates in one call, and whether it went through a backward pass before.
type trained struct {
	span
	trains bool
}

// statement is the last row of the statement that allocates a row in the function at a depth from outside, before another row.
func (d *draft) statement(row, until int32, own []snapshot.FrameID, depth int) int32 {
	last := row
	for next := row + 1; next < until && d.phase(next) != inBackward; next++ {
		if d.phase(next) == inNothing {
			continue
		}
		stack := d.stack(d.code(next))
		if same, back := d.inside(own, stack, d.code(last), depth); !same || back || d.line(stack, depth) != d.line(own, depth) {
			break
		}
		last = next
	}
	return last
}

// staysIn reports whether nothing was allocated outside of a function from one row to another.
func (d *draft) staysIn(from, to int32, own []snapshot.FrameID, depth int) bool {
	for row := from; row <= to; row++ {
		if row > from && (d.phase(row) == inNothing || d.phase(row) == inBackward) {
			continue
		}
		if same, _ := d.inside(own, d.stack(d.code(row)), d.code(row), depth); !same {
			return false
		}
	}
	return true
}

// unsaved reports whether backward has no use for a row that it never lets go of: a loss reads it next, which saves
// what it makes of it, or the loss of the pass is made already.
func (d *draft) unsaved(row int32) bool {
	p := d.passOf(d.t.Lives[row].Born)
	if p == nil || d.t.Lives[row].Born >= p.begin {
		return true
	}
	first := true
	for next := row + 1; next < p.rows.to && d.t.Lives[next].Born < p.begin; next++ {
		switch {
		case d.worksIn(next) || d.phase(next) != inProgram:
		case d.inLoss(next):
			return first
		default:
			first = false
		}
	}
	for before := row - 1; before >= p.rows.from; before-- {
		if d.inLoss(before) {
			return true
		}
	}
	return false
}

// goesOn reports whether the function that has a row last goes on in the next step, as the body of a loop does: other
// variables of it are there until the same line has made what they are assigned anew.
func (d *draft) goesOn(leak int32) bool {
	_, depth := d.dropped(leak)
	return d.goesOnAt(leak, depth)
}

// goesOnAt reports whether the function that has a row at a depth from outside goes on in the step that has the next.
func (d *draft) goesOnAt(leak int32, depth int) bool {
	own := d.stack(d.t.Lives[leak].Stack)
	if depth < 0 || depth >= len(own) {
		return false
	}
	period, before := 1, -1 // steps until it leaks again: some programs have several optimizers
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		if at := d.steps.At(int(d.t.Lives[row].Born)); at >= 0 && at != before && d.code(row) == d.code(leak) {
			if before >= 0 {
				period = at - before
				break
			}
			before = at
		}
	}
	seen := 0
	for row := int32(d.warm); int(row) < len(d.t.Lives) && seen < 2; row++ {
		l := &d.t.Lives[row]
		end := d.end(row)
		if d.phase(row) != inProgram || int(end) >= d.t.Trace.Len() {
			continue
		}
		from, to := d.steps.At(int(l.Born)), d.steps.At(int(end))
		if from < 0 || to <= from || to > from+period {
			continue
		}
		stack, now := d.stack(l.Stack), d.stack(d.t.Lives[d.lastBefore(end)].Stack)
		same := func(stack []snapshot.FrameID) bool { ok, _ := d.inside(own, stack, l.Stack, depth); return ok }
		if same(stack) && same(now) && d.line(stack, depth) == d.line(now, depth) {
			seen++
		}
	}
	return seen == 2
}
