package change

import (
	"context"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Whether a graph or a variable keeps a block shows where it is freed: a pass lets go of what it saved on the autograd
// engine's thread, the program of what a variable was the last to hold. Of what both hold, only the last shows.

// byProgram reports whether the program's own code lets go of a row, and not a backward pass.
func (r *run) byProgram(row int32) bool {
	e := r.t.Lives[row].GivenUp()
	return e >= 0 && r.phases[r.t.Trace.Stack(int(e))] == inProgram
}

// byModule reports whether a module that code at a line calls lets go of a row itself while it runs, so that no graph had it then.
func (r *run) byModule(row int32, where *place) bool {
	if !r.byProgram(row) {
		return false
	}
	id := r.t.Trace.Stack(int(r.t.Lives[row].GivenUp()))
	stack, depth := r.stack(id), where.depth(id)
	return depth >= 0 && r.callsModule(stack[:len(stack)-1-depth])
}

// held are the rows of a pass that variables hold until after it, whether it saved them or not. Where most are, it is
// the graph that stays, as with retain_graph.
func (r *run) held(p *pass) map[int32]bool {
	out := map[int32]bool{}
	saved := 0
	for row := p.rows.from; row < p.rows.to; row++ {
		if r.saved(p, row) {
			if saved++; r.byProgram(row) {
				out[row] = true
			}
		}
	}
	if len(out)*2 > saved {
		return nil
	}
	return out
}

// tellsFrees reports whether stacks were recorded of what is freed.
func (r *run) tellsFrees() bool {
	return slices.ContainsFunc(slices.Collect(r.all()), r.byProgram)
}

func (r *run) all() func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for row := int32(r.warm); int(row) < len(r.t.Lives) && yield(row); row++ {
		}
	}
}

// del lets go of what code at a line got when the statement behind is over, of which is taken that it is the last to
// read it, or before a backward pass that follows at once. What a graph keeps for a backward pass stays.
func (d *draft) del(ctx context.Context, where *place, e *Applied) {
	known := map[int]reading{} // by depth: it is the same for all rows of a line, up to over
	stays := map[*pass]map[int32]bool{}
	bytes := map[*pass]int64{} // of what is let go of though a pass may need it
	tells := d.tellsFrees()
	for row := int32(d.warm); int(row) < len(d.t.Lives) && ctx.Err() == nil; row++ {
		stack := d.t.Lives[row].Stack
		depth := where.depth(stack)
		if depth < 0 || d.phase(row) != inProgram {
			continue
		}
		p := d.passOf(d.t.Lives[row].Born)
		graph := p // that may keep the row until its backward, as does not show where a variable has it for longer
		if p != nil && d.saved(p, row) {
			graph = nil
			if stays[p] == nil {
				stays[p] = d.staying(p)
			}
			if stays[p][row] {
				if !tells {
					e.stays = max(e.stays, d.sizes[row])
				}
				continue
			}
		} else {
			p = nil
		}
		own := d.stack(stack)
		for ; depth >= 0; depth = d.caller(own, depth) {
			x, ok := known[depth]
			if !ok || row >= x.over {
				x = d.readAt(row, own, depth, false)
				known[depth] = x
			}
			if x.last < row {
				continue
			}
			reads := d.line(own, depth) != d.line(d.stack(d.t.Lives[x.last].Stack), depth)
			if reads || graph != nil && d.goesBack(x.last) {
				end, event := d.last(row), d.t.Lives[x.last].Born
				if !reads {
					if event = graph.begin - 1; row >= d.operation(d.lastBefore(graph.begin)).from {
						break // what the pass is called on
					}
				}
				if graph != nil && end > graph.last && d.activates(row) {
					event = max(event, d.activatedBack(graph, row))
				}
				if d.until(row, event) {
					e.count(d.run, row)
					switch {
					case !reads && end > graph.last: // it may be read behind the pass
						e.mayEnd(row, event, end)
					case graph != nil && graph.begin <= end && d.ends[row] < graph.begin:
						d.mayEnd(e, row, min(end, graph.last))
					}
					if p != nil {
						bytes[p] += d.sizes[row]
						e.leaves = max(e.leaves, bytes[p])
					}
				}
				break
			}
		}
	}
}

// goesBack reports whether a backward pass comes right behind a row.
func (d *draft) goesBack(row int32) bool {
	for row++; int(row) < len(d.t.Lives); row++ {
		if of := d.phase(row); of != inNothing {
			return of == inBackward
		}
	}
	return false
}

// staying are the rows that a pass saved, but for those that only variables are seen to hold: no node that makes a
// parameter's gradient reads them.
func (d *draft) staying(p *pass) map[int32]bool {
	out := map[int32]bool{}
	saved := d.savedRows(p)
	for _, row := range saved {
		out[row] = true
	}
	uses := d.usesOf(nodes{d, p, d.gradient}.products(), saved)
	for row := range d.held(p) {
		if len(uses[row]) == 0 && !d.activates(row) {
			delete(out, row)
		}
	}
	return out
}

// activatedBack is the event after which a pass is through the node of an activation function that made a row: such nodes make one of
// its size, and free the one that they got, those of the last functions first.
func (d *draft) activatedBack(p *pass, row int32) int32 {
	n := d.t.Lives[row].Requested
	behind := 0 // such functions
	for at := row + 1; at < p.rows.to && d.t.Lives[at].Born < p.begin; at++ {
		if d.t.Lives[at].Requested == n && d.activates(at) {
			behind++
		}
	}
	got := int32(-1)
	for at := p.rows.from; at < p.rows.to; at++ {
		if l := &d.t.Lives[at]; l.Born < p.begin || l.Requested != n {
			continue
		}
		if got >= 0 && d.end(got) > d.t.Lives[at].Born && d.end(got) <= d.returned(at) {
			if behind--; behind < 0 {
				return d.end(got)
			}
		}
		got = at
	}
	return -1
}

// activates reports whether an activation function made a row, and let go of what it got: its backward needs the result, as those of
// tanh, sigmoid and relu do.
func (d *draft) activates(row int32) bool {
	own := d.stack(d.code(row))
	if len(own) == 0 || row == 0 || !frames.Of(d.s, own[0]).IsLibrary() {
		return false
	}
	switch name := d.name(own[0]); name {
	case "relu", "sigmoid", "tanh", "softmax", "log_softmax":
	default:
		if frames.Base(d.s.Strings.Get(d.s.Frames.Get(own[0]).File)) != "activation.py" {
			return false
		}
	}
	of := row - 1
	for of > max(row-longNode, 0) && d.end(of) < d.t.Lives[row].Born {
		of--
	}
	end := d.end(of)
	return d.t.Lives[of].Requested == d.t.Lives[row].Requested && end > d.t.Lives[row].Born && end <= d.returned(row)
}

// noGrad keeps nothing for a backward of what code at a line calls, and makes no gradients there. What that returns lives
// as recorded, but for what the line gives to another call. Of a function that several lines call, those that nothing goes back
// through are meant, where there are such. What is decorated to keep nothing already is left. Copies of weights stay as torch.autocast
// keeps them.
func (d *draft) noGrad(ctx context.Context, where *place, e *Applied) {
	gone := map[int32]bool{}
	trained := d.trainedFrom(where)
	const several = 2
	kept, cached, gather := d.keptByProgram(where), d.cachedCopies(), map[gathered]int{}
	biases := d.biases(cached)
	others := map[made][]int32{} // events
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		if l := &d.t.Lives[row]; where.depth(l.Stack) >= 0 {
			gather[d.gathered(row)]++
		} else if d.phase(row) == inProgram {
			if function := d.maker(d.stack(l.Stack)); function != 0 {
				of := made{function, l.Requested}
				others[of] = append(others[of], l.Born)
			}
		}
	}
	for row := int32(d.warm); int(row) < len(d.t.Lives) && ctx.Err() == nil; row++ {
		depth := where.depth(d.t.Lives[row].Stack)
		if depth < 0 || d.phase(row) != inProgram {
			continue
		}
		own := d.stack(d.t.Lives[row].Stack)
		at := len(own) - 1 - depth
		if trained[own[at]] || slices.ContainsFunc(own[:at], d.keepsNothing) || kept[row] || d.byModule(row, where) {
			continue
		}
		end, holder := d.stays(row)
		if cached[row] {
			end = max(end, min(d.autocastOver(row, biases), d.last(row)-1))
		}
		sooner := end
		if holder > depth && d.givenByModel(row, own, holder) {
			end = max(end, min(d.boundUntil(row, own, holder), d.last(row)-1))
		}
		within := holder > depth || holder == depth && d.readAt(row, d.stack(d.code(row)), depth, true).into >= 0
		was := d.last(row)
		if within && d.until(row, end) {
			e.count(d.run, row)
			gone[row] = true
			if sooner < end {
				e.mayEnd(row, end, sooner)
			}
			// A list may have them, too: what the code makes itself, or what blocks give and its caller makes something of that size of.
			of := others[made{d.maker(own[at:]), d.t.Lives[row].Requested}]
			next, _ := slices.BinarySearch(of, end)
			read := d.sums(row, len(own)-1) && next < len(of) && of[next] < was
			if gather[d.gathered(row)] > several && (d.insides[d.t.Lives[row].Stack] == 0 || read) {
				e.mayEnd(row, end, was)
			}
			if of := d.cloneOf(row); of >= 0 {
				d.drop[row] = true
				d.longer(of, end)
			}
		}
	}
	for i := range d.passes {
		d.readsOnly(&d.passes[i], where, gone, e)
		d.noGradients(&d.passes[i], gone, e)
	}
	d.passOver(e)
	d.noLoss(where, gone, kept, e)
}

// givenByModel reports whether a function at a depth from outside, which no module calls, gets a row from a call that goes through modules:
// of a model, or of a function that calls such, as a method `predict` that makes scores of what its own modules give.
func (d *draft) givenByModel(row int32, own []snapshot.FrameID, depth int) bool {
	at := len(own) - 1 - depth
	if at <= 0 || d.callsModule(own[at:]) {
		return false
	}
	for of := row; of >= max(row-nearBy, int32(d.warm)) && (d.phase(of) == inNothing || d.onLine(of, own, depth)); of-- {
		if stack := d.stack(d.code(of)); len(stack)-1 > depth && d.callsModule(stack[:len(stack)-1-depth]) {
			return true
		}
	}
	return false
}

// boundUntil is the event after which a variable of a function at a depth from outside has no longer what a model gave it: one that loops
// has it until the next turn's call is over, and any until it returns. What another call on the line is given, none has.
func (d *draft) boundUntil(row int32, own []snapshot.FrameID, depth int) int32 {
	if d.readAt(row, own, depth, true).into >= 0 {
		return -1
	}
	last, again := row, false
	for next := d.operation(row).to; int(next) < len(d.t.Lives) && d.phase(next) != inBackward; next++ {
		if d.phase(next) == inNothing {
			continue
		}
		code := d.code(next)
		if same, _ := d.inside(own, d.stack(code), code, depth); !same || again && !d.onLine(next, own, depth) {
			break
		}
		again = again || code == d.code(row)
		last = next
	}
	return d.returned(last)
}

// made is what a function makes itself, of a size in requested bytes.
type made struct {
	function int32
	size     int64
}

// maker is the function of the program's that makes what frames allocate, and no module that it calls; 0 for none.
func (r *run) maker(stack []snapshot.FrameID) int32 {
	for depth, id := range stack {
		switch c := frames.Of(r.s, id); {
		case c.IsModuleCall():
			return 0
		case !c.IsLibrary() && r.isCode(stack, depth):
			return r.functions[id]
		}
	}
	return 0
}

// keepsNothing reports whether a frame is of what runs a function without autograd.
func (r *run) keepsNothing(id snapshot.FrameID) bool {
	return frames.Of(r.s, id).Has(frames.WithoutGrad)
}

// gathered is code of which rows are gone together, before another row is allocated.
type gathered struct {
	code snapshot.StackID
	last int32
}

func (d *draft) gathered(row int32) gathered { return gathered{d.code(row), d.lastBefore(d.end(row))} }

// trainedFrom are the frames at a place whose calls a backward pass goes through, where it goes through no call of others.
func (d *draft) trainedFrom(where *place) map[snapshot.FrameID]bool {
	trained, all := map[snapshot.FrameID]bool{}, map[snapshot.FrameID]bool{}
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		l := &d.t.Lives[row]
		depth := where.depth(l.Stack)
		if depth < 0 || d.phase(row) != inProgram {
			continue
		}
		own := d.stack(l.Stack)
		at := own[len(own)-1-depth]
		if p := d.passOf(l.Born); p != nil && d.saved(p, row) {
			trained[at] = true
		}
		all[at] = true
	}
	if len(trained) == len(all) {
		return nil
	}
	return trained
}

// readsOnly lets go of what a pass makes of the results of code that keeps nothing, where nothing before that is of a graph: up to the
// next call of a module all of it comes of these, and is in no graph either.
func (d *draft) readsOnly(p *pass, where *place, gone map[int32]bool, e *Applied) {
	first := p.rows.from
	for first < p.rows.to && !d.saved(p, first) {
		first++
	}
	if first == p.rows.to || !gone[first] {
		return
	}
	for row := first; row < p.rows.to && d.t.Lives[row].Born < p.begin; row++ {
		stack := d.t.Lives[row].Stack
		switch {
		case where.depth(stack) >= 0 || d.phase(row) != inProgram:
		case d.insides[stack] != 0:
			return
		case d.saved(p, row):
			if end, _ := d.dropped(row); d.until(row, end) {
				e.count(d.run, row)
				gone[row] = true
			}
		}
	}
}

// cloneOf is what a function that works in place has cloned a row from, -1 for none: backward of some needs what they were given
// (tools/autograd/derivatives.yaml), which they clone where a graph is kept. Else they make their result, which the next node saved,
// and a graph lets go of that first; or a product behind it saved that, and lets go of its other factor first.
func (d *draft) cloneOf(row int32) int32 {
	own := d.stack(d.code(row))
	if len(own) == 0 || !frames.Of(d.s, own[0]).IsLibrary() {
		return -1
	}
	switch name := d.name(own[0]); name {
	case "hardswish", "hardsigmoid", "hardtanh", "mish", "silu":
	default:
		return -1
	}
	next := d.lastingFrom(row + 1)
	n := d.t.Lives[row].Requested
	if int(next) < len(d.t.Lives) && d.t.Lives[next].Requested == n {
		if by := d.stack(d.code(next)); len(by) > 0 && !frames.Of(d.s, by[0]).IsLibrary() {
			return -1 // a product
		}
	}
	for of := row - 1; of >= max(row-longNode, 0); of-- {
		if d.t.Lives[of].Requested == n && d.outlasts(of) {
			if e := d.t.Lives[of].GivenUp(); e < 0 || e >= d.end(row) {
				return -1
			}
			return of
		}
	}
	return -1
}

// noGradients drops what a pass makes in the nodes of code that keeps nothing: what comes between two blocks that it
// let go of there. Of what comes where such nodes meet others, nothing tells, so that it stays.
func (d *draft) noGradients(p *pass, gone map[int32]bool, e *Applied) {
	type freed struct {
		at   int32
		gone bool
	}
	var order []freed
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.saved(p, row) && !d.byProgram(row) {
			order = append(order, freed{d.end(row), gone[row]})
		}
	}
	sorting.By(order, func(a, b freed) int { return int(a.at - b.at) })
	if !slices.ContainsFunc(order, func(f freed) bool { return f.gone }) {
		return
	}
	// within says whether a row comes behind and before what is gone.
	within := func(row int32) (behind, before bool) {
		born := d.t.Lives[row].Born
		i, _ := slices.BinarySearchFunc(order, born, func(f freed, at int32) int { return int(f.at - at) })
		return i == 0 || order[i-1].gone, i == len(order) || order[i].gone
	}
	var border []int32 // rows between what is gone and what is not
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.t.Lives[row].Born < p.begin || d.phase(row) != inBackward || d.drop[row] {
			continue
		}
		behind, before := within(row)
		if part, ok := d.run.parts[row]; ok && behind && before {
			behind, before = within(part)
		}
		switch {
		case behind && before:
			d.drop[row] = true
			e.count(d.run, row)
		case behind != before:
			border = append(border, row)
		}
	}
	d.noGradientsFor(p, d.nearBorder(p, border), e)
	var unknown int64
	for _, row := range border {
		if d.gradient(row) && !d.drop[row] {
			unknown += d.sizes[row]
		}
	}
	e.stays = max(e.stays, unknown)
}

// nearBorder adds to the rows at the border those that nodes of a pass make right before and that are of no trained network, as those of a
// loss for both that it compares: what it keeps for the one is let go of behind them.
func (d *draft) nearBorder(p *pass, border []int32) (out []int32) {
	from := d.lastBefore(p.begin) + 1 // behind the last gradient of a parameter
	for _, at := range border {
		for row := at - 1; row >= max(from, at-longNode); row-- {
			if d.gradient(row) || d.end(row) > p.last {
				from = row + 1
				break
			}
			if d.phase(row) == inBackward && !d.drop[row] {
				out = append(out, row)
			}
		}
		out, from = append(out, at), max(from, at+1)
	}
	slices.Sort(out)
	return out
}

// noGradientsFor drops of rows at the border of what a pass no longer makes what it made for that, or of that, alone, as the gradient of
// what a loss compares with: a node makes only the gradients that are asked for (task_should_compute_output in
// torch/csrc/autograd/function.h). What another is made of goes when that is made; what is added to another, before something is made of
// that; and what a node gives parameters it makes with what it gives on.
func (d *draft) noGradientsFor(p *pass, border []int32, e *Applied) {
	weights := d.weights(p, d.loopOf(p))
	needless := func(row int32) bool {
		made := func(of int32) bool { return of != row && d.phase(of) == inBackward }
		of := slices.DeleteFunc(slices.Collect(d.goneBehind(row)), func(of int32) bool { return !made(of) })
		before, last := d.drop[row-1], d.lastBefore(d.end(row))
		for last > row && d.t.Lives[last].Passing() {
			last--
		}
		switch {
		case len(of) > 0 && !slices.ContainsFunc(of, func(of int32) bool { return !d.drop[of] }):
			return true
		case weights[d.t.Lives[row].Requested]:
			return before
		case last == row:
			return before || d.drop[row+1] && d.sizes[row+1] == d.sizes[row]
		case !d.drop[last]:
			return false
		}
		more := 0 // others of its size, which may be made of it if they are of none that goes then
		for of := max(row-longNode, p.rows.from); of <= last; of++ {
			if !made(of) || d.drop[of] || d.sizes[of] != d.sizes[row] {
				continue
			}
			if of > row {
				more++
			}
			if end := d.end(of); end > d.t.Lives[row].Born && end < d.end(row) {
				more--
			}
		}
		return more <= 0
	}
	for again := true; again; {
		again = false
		for _, row := range slices.Backward(border) {
			if !d.drop[row] && int(row)+1 < len(d.t.Lives) && needless(row) {
				d.drop[row], again = true, true
				e.count(d.run, row)
			}
		}
	}
}

// inSameCall reports whether a function that no module calls makes a row, and goes on to make another, both in one call by the function at
// a depth from outside.
func (d *draft) inSameCall(row, other int32, depth int) bool {
	own := d.stack(d.code(row))
	for at := len(own) - 2 - depth; at >= 0 && !frames.Of(d.s, own[at]).IsModuleCall(); at-- {
		if d.isCode(own, at) {
			same, back := d.inside(own, d.stack(d.code(other)), d.code(row), len(own)-1-at)
			return same && !back
		}
	}
	return false
}

// noLoss lets go of what only a graph of code that keeps nothing still had, which backward never went through: what that
// gives on in its own line, and, of a loss that is made of its result, all but the loss.
func (d *draft) noLoss(where *place, gone, kept map[int32]bool, e *Applied) {
	const number = 512 // bytes, rounded
	type graph struct {
		pass *pass
		end  int32 // the row that was allocated last before it went
	}
	var unknown int64
	only := map[graph]bool{} // whether nothing but code that keeps nothing is in it so far
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		l := &d.t.Lives[row]
		if d.phase(row) != inProgram || l.GivenUp() >= 0 && !d.byProgram(row) {
			continue
		}
		of := graph{d.passOf(l.Born), d.lastBefore(d.end(row))}
		depth, own := where.depth(l.Stack), d.stack(l.Stack)
		switch {
		case gone[row]:
			only[of] = true
		case !only[of]:
		case depth >= 0:
			x := d.readAt(row, own, depth, true)
			if x.into >= 0 && !kept[row] && !d.inSameCall(row, x.into, depth) && d.until(row, d.operationOf(x.into)) {
				e.count(d.run, row)
			}
		case frames.Of(d.s, own[0]).Part() != frames.Loss:
			if only[of] = d.insides[l.Stack] == 0; only[of] && l.GivenUp() < 0 {
				unknown += d.sizes[row] // a variable's, or the graph's
			}
		default:
			last := row
			for int(last)+1 < len(d.t.Lives) && d.t.Lives[last+1].Stack == l.Stack {
				last++
			}
			if last > row && d.t.Lives[last].Rounded <= number && d.until(row, d.t.Lives[last].Born) {
				e.count(d.run, row)
			}
		}
	}
	e.stays = max(e.stays, unknown)
}
