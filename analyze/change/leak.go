package change

import (
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// freeLeak lets go of what stacks leave behind, at the earliest of these: where the last statement is over that reads
// it, if backward does not save it as far as is known; where the step ends that allocated it; where they allocate
// again. Where the function that gets it goes on in the next step, and keeps other variables up to there, only the
// last of these counts. Graphs that nothing goes back through are gone with the variable that has their end.
func (d *draft) freeLeak(stacks []snapshot.StackID, e *Applied) {
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
	loops, seen := map[snapshot.StackID]bool{}, map[snapshot.StackID]bool{}
	for row := range d.all() { // of what one stack makes, not all may stay
		if id := d.t.Lives[row].Stack; !seen[id] && stays(row) {
			seen[id], loops[id] = true, d.goesOn(row)
		}
	}
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
		if stays(row) && !freed[row] && d.unsaved(row) {
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
		at, end := d.steps.At(int(l.Born)), next[l.Stack]
		if d.phase(row) == inBackward {
			end = d.last(row) // autograd allocates all that it does with one stack
		}
		sooner := end
		if at >= 0 {
			sooner = min(end, int32(d.steps.Steps[at].Last))
			if event, ok := gone[row]; ok {
				sooner = min(sooner, event)
			}
		}
		if !loops[l.Stack] {
			end = sooner
		} else if at >= 0 && !freed[row] {
			e.assumeOnce(BoundAgain)
		}
		if after[l.Stack] > 0 && d.steps.At(int(after[l.Stack])) != at {
			anew[l.Stack] = after[l.Stack]
		}
		after[l.Stack] = l.Born
		brief := at >= 0 && d.steps.At(int(d.end(row))) == at // what the same stack makes and frees in a step does not leak
		if !loops[l.Stack] || !brief {
			next[l.Stack] = l.Born
		}
		if was := d.last(row); !freed[row] && !brief && d.until(row, end) {
			e.count(d.run, row)
			if anew[l.Stack] > end {
				e.mayEnd(row, end, min(anew[l.Stack], was))
			}
			if sooner < end { // where no variable has it
				e.mayEnd(row, end, sooner)
			}
		}
	}
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
// variables of it are there until the same line has made what they are assigned anew, or one before it, as where a loss is added to.
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
		if same(stack) && same(now) && d.line(stack, depth) >= d.line(now, depth) {
			seen++
		}
	}
	return seen == 2
}
