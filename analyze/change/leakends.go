package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// A graph that leaks is gone, once that is repaired, with the variable that has its end.

// freeGraphs lets go of graphs, and says of which rows.
func (d *draft) freeGraphs(all []leakedGraph, e *Applied) map[int32]bool {
	freed := map[int32]bool{}
	d.findEnds(all)
	loops := &graphLoops{draft: d, all: all, next: map[snapshot.StackID]graphRow{}, last: map[graphLoop]int{},
		before: map[int]trainedIn{}, known: map[codeAt]bool{}}
	for i := range slices.Backward(all) {
		g := &all[i]
		x := loops.ends(i)
		for _, row := range g.rows {
			loops.next[d.code(row)] = graphRow{i, row}
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
	next   map[snapshot.StackID]graphRow // by code, the next graph that has a row of it
	last   map[graphLoop]int             // the last graph of a loop
	before map[int]trainedIn             // by depth from outside
	known  map[codeAt]bool               // see goesOnAt
}

// graphRow is a row of a graph, the last of its code.
type graphRow struct {
	graph int
	row   int32
}

// codeAt is a function that has a row, by the code that allocates it and the depth from outside.
type codeAt struct {
	code  snapshot.StackID
	depth int
}

// graphLoop is a loop in the function at a depth from outside that makes a graph, and others behind it.
type graphLoop struct{ graph, depth int }

// ends says when a graph is gone that only variables hold. What comes out of a call is in a variable of the function that makes the
// call, up to where it is bound anew or the function is over. What a function makes last in its one statement is its caller's; with
// several, or a loop, it is taken to return no graph any more: it is there that too much is kept.
func (x *graphLoops) ends(at int) graphEnds {
	g := &x.all[at]
	own := x.stack(x.code(g.end))
	next, isAgain := x.next[x.code(g.end)]
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
		case isAgain && x.goOn(at, next.graph, own, depth):
			out.later = x.t.Lives[next.row].Born
			if out.end >= 0 {
				return out
			}
			out.end, out.bound = out.later, true
			end, ok := x.last[graphLoop{next.graph, depth}]
			if !ok {
				end = next.graph
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
	return (a.step == b.step || x.caller(own, depth) < 0 || x.inLoop(b.end, depth)) && x.staysIn(a.end, b.end, own, depth)
}

// inLoop is goesOnAt, which is asked once of the same code.
func (x *graphLoops) inLoop(row int32, depth int) bool {
	at := codeAt{x.code(row), depth}
	is, ok := x.known[at]
	if !ok {
		is = x.goesOnAt(row, depth)
		x.known[at] = is
	}
	return is
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
	x.before[depth] = trainedIn{span{at, row}, trains}
	return trains
}

// trainedIn are rows that a function allocates in one call, and whether it went through a backward pass before.
type trainedIn struct {
	span
	trains bool
}

// statement is the last row of the statement that allocates a row in the function at a depth from outside, before another row.
func (d *draft) statement(row, until int32, own []snapshot.FrameID, depth int) int32 {
	return d.lastOf(row, until, own, depth, func(stack []snapshot.FrameID) bool {
		return d.line(stack, depth) == d.line(own, depth)
	})
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
