package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// holder is the function that gets what a stack allocates: outside of the innermost module call, or, of an operation
// that no module makes, the innermost function of the program's. Of torch's own modules, layers of transformers have variables
// as the program's have (torch/nn/modules/transformer.py). It is counted from outside; -1 for none.
func (r *run) holder(stack []snapshot.FrameID) int {
	python, module := -1, false
	for i, id := range stack {
		switch c := frames.Of(r.s, id); {
		case !c.Has(frames.Python), c.Part() == frames.Functional, c.Part() == frames.ModuleWrapper,
			c.Part() == frames.Wrapper, c.Origin() == frames.Plumbing && !c.IsModuleCall():
		case c.IsModuleCall() && python >= 0 && (module && !r.contains(stack[python]) || r.layerOfTorch(stack[python])):
			return len(stack) - 1 - python // of a module of torch's that calls others
		case c.IsModuleCall():
			python, module = -1, true // of a module of torch's: its caller gets it
		case c.Origin() > frames.Library:
			return len(stack) - 1 - i
		case python < 0:
			python = i
		}
	}
	if python < 0 {
		return -1
	}
	return len(stack) - 1 - python
}

// layerOfTorch reports whether a frame is of a layer of torch's transformer, which computes sums itself.
func (r *run) layerOfTorch(id snapshot.FrameID) bool {
	return r.file(id) == "torch/nn/modules/transformer.py"
}

// dropped is the event after which a row is gone that no graph keeps, and the depth from outside of the function that
// had it last, -1 for none. What a function gets and gives to another call on the same line is gone when that is over;
// what it keeps in a variable, when the statement behind it is; what it returns is its caller's.
func (d *draft) dropped(row int32) (event int32, depth int) { return d.goes(row, false) }

// stays is dropped of what a model of transformers may keep, too.
func (d *draft) stays(row int32) (event int32, depth int) { return d.goes(row, true) }

// goes finds when a row is gone as its last function lets go of it, by what models of transformers keep, or without that.
func (d *draft) goes(row int32, kept bool) (event int32, depth int) {
	own := d.stack(d.code(row))
	made := d.operation(row).to
	ofLoss := len(own) > 0 && frames.Of(d.s, own[0]).Part() == frames.Loss && row < made-1 // which the loss itself comes behind
	if ofLoss || d.byproduct(row) {
		return d.overAt(made - 1), len(own)
	}
	if depth = d.weighsFor(row, own); depth >= 0 {
		return d.returned(d.lastIn(row, own, depth)), depth
	}
	if depth = d.mapped(row, own); depth >= 0 {
		return d.returned(d.lastIn(row, own, depth)), depth
	}
	by := d.savedBy(row)
	at := row // or the last that was made where the functions are over that returned it
	for depth = d.holder(own); depth >= 0; depth = d.caller(own, depth) {
		if kept {
			if in := d.keptInModel(row, own, depth); in >= 0 {
				return d.returned(d.lastIn(at, own, in)), in
			}
		}
		if last := d.listed(at, depth); last >= 0 {
			return d.returned(last), depth
		}
		if of, ok := d.skips[row]; ok && of.depth == depth {
			if d.onLine(of.into, own, depth) { // it is handed on
				return d.callOver(of.into, own, depth), depth
			}
			// A loop that goes back to a line of its own is not over before the join.
			return d.returned(d.lastIn(max(at, of.into), own, depth)), depth
		}
		x := d.readAt(at, d.stack(d.code(at)), depth, true)
		if x.into >= 0 {
			if by.saver > x.into && d.onLine(by.saver, own, depth) {
				x.into = by.saver
			}
			if by.several && by.saver == x.into {
				// What is saved with what another call gives waits for an operation of the line's own.
				y := d.readAt(by.saver, own, depth, true)
				if y.into >= 0 && d.holder(d.stack(d.code(y.into))) == depth {
					x.into = y.into
				}
			}
			if next := d.nextOfList(row, x.into, depth); next >= 0 {
				return d.returned(next), depth
			}
			over := d.callOver(x.into, own, depth)
			if again := d.sumsAgain(row, x.into, depth); again >= 0 {
				return d.returned(again), depth
			}
			turn, likely := d.turnOver(x.into, own, depth)
			switch {
			case turn <= over, d.inList(row, depth) && d.inList(x.into, depth):
			case likely:
				d.inLoops[row] = ending{turn, over}
				over = turn
			default:
				d.inLoops[row] = ending{over, turn}
			}
			return over, depth
		}
		last := d.lastIn(at, own, depth)
		switch {
		case by.saver > last || x.last < made || x.last == last && d.inPlace(row, last) && !d.turnEnds(last, own, depth):
			at, made = last, max(made, last+1)
		case by.saver > x.last || by.several:
			return d.returned(last), depth
		case d.sums(row, depth) || d.untilSum(own, depth):
			return d.returned(d.addedTo(row, depth, x.last, last)), depth
		default:
			return d.returned(x.last), depth
		}
	}
	return d.returned(max(at, made-1)), -1
}

// nextOfList is the last row of the next module of a list of torch's, which goes by modules that have one line each at a depth from outside
// with a list of their own, where another row begins that: it comes again, and is what the outer list begins with. That has what the module
// before gave until then (torch/nn/modules/container.py: `input = module(input)`). It is -1 where that is not so.
func (d *draft) nextOfList(row, next int32, depth int) int32 {
	own := d.stack(d.code(row))
	outer := d.caller(own, depth)
	if outer < 0 || !d.contains(own[len(own)-1-outer]) || !d.contains(d.calledAt(own, depth)) {
		return -1
	}
	first, start := row, max(row-longNode, int32(d.warm))
	for first > start && d.onLine(first-1, own, depth) {
		first--
	}
	if d.code(first) != d.code(next) || first > start && d.onLine(first-1, own, outer) {
		return -1
	}
	for last := next; last < min(next+longNode, int32(len(d.t.Lives))) && d.onLine(last, own, depth); last++ {
		if d.code(last) == d.code(row) {
			return d.operation(last).to - 1
		}
	}
	return -1
}

// mapped is the depth from outside of the function that has what a lambda or a generator makes for each of several, as in `q, k, v =
// map(lambda t: ..., (q, k, v))`: no call reads that which was made before it, and each gets a variable of its own, until the function
// returns. It is -1 where one is made alone, or the line goes on with a call that is given all of them.
func (d *draft) mapped(row int32, own []snapshot.FrameID) int {
	const several = 2
	at := slices.IndexFunc(own, func(id snapshot.FrameID) bool {
		name := d.name(id)
		return (name == "<lambda>" || name == "<genexpr>" || name == "<listcomp>") && !frames.Of(d.s, id).IsLibrary()
	})
	o := d.operation(row)
	if at < 0 || o.to-o.from < several {
		return -1
	}
	outer := d.caller(own, len(own)-1-at)
	if outer < 0 || int(o.to) < len(d.t.Lives) && d.onLine(o.to, own, outer) {
		return -1
	}
	return outer
}

// weighsFor is the depth from outside of the layer of a model of transformers that gets a row with what its attention gives, and has it
// in a variable until it returns: the weights, where these are computed by hand (transformers/models/*/modeling_*.py:
// eager_attention_forward, `hidden_states, _ = self.self_attn(...)`); -1 for none.
func (d *draft) weighsFor(row int32, own []snapshot.FrameID) int {
	if !d.madeByTorch(row, "softmax") && !d.isDropout(row) {
		return -1
	}
	eager := slices.IndexFunc(own, func(id snapshot.FrameID) bool {
		return d.name(id) == "eager_attention_forward" && d.ofTransformers(id)
	})
	layer := slices.IndexFunc(own, func(id snapshot.FrameID) bool { return d.name(id) == wrapsForward })
	if eager < 0 || layer < eager {
		return -1
	}
	for next := row + 1; next <= d.lastIn(row, own, len(own)-1-eager); next++ {
		if d.sizes[next] == d.sizes[row] && d.isDropout(next) {
			return -1
		}
	}
	at := layer - 1
	for at > eager && frames.Of(d.s, own[at]).Part() == frames.Wrapper {
		at-- // a decorator, as of BERT's
	}
	return d.holder(own[at:])
}

// keptInModel is the depth from outside of a function of transformers' models that has a row until it returns, -1 for none: caches of
// keys and values, which a model's output refers to; what its embedding gives, which layers do not replace; and what the model in it
// gives, which is the first that the function calls. It is asked for each function that gets the row, from inside.
func (d *draft) keptInModel(row int32, own []snapshot.FrameID, depth int) int {
	first := depth == d.holder(own)
	at, outer := len(own)-1-depth, -1
	for i := range own {
		if d.ofTransformers(own[i]) {
			outer = i
		}
	}
	switch {
	case outer < 0:
	case first && slices.ContainsFunc(own, func(id snapshot.FrameID) bool { return frames.Of(d.s, id).Has(frames.KVCache) }):
		return len(own) - 1 - outer
	case !d.ofTransformers(own[at]):
	case first && d.name(own[0]) == "embedding":
		return depth
	case !first && at == outer:
		if p := d.passOf(d.t.Lives[row].Born); p != nil && d.beginsWith(p, own[at], depth) {
			return depth
		}
	}
	return -1
}

// beginsWith reports whether the first call of a function of transformers' models in a pass is at a frame, at a depth from outside.
func (d *draft) beginsWith(p *pass, frame snapshot.FrameID, depth int) bool {
	for row := p.rows.from; row < p.rows.to; row++ {
		stack := d.stack(d.code(row))
		if at := len(stack) - 1 - depth; d.phase(row) == inProgram && at >= 0 && d.functions[stack[at]] == d.functions[frame] {
			return stack[at] == frame
		}
	}
	return false
}

// listed is the last row that is made while a list has a row, -1 where none has: what each turn of one line of a function gives, at a
// depth from outside, as in `xs = [conv(x) for conv in self.convs]`. The next line puts all of that together, or goes over it in as many
// turns and binds the variable anew.
func (d *draft) listed(row int32, depth int) int32 {
	if d.inList(row, depth) {
		return -1
	}
	own := d.stack(d.code(row))
	turns, to := d.turnsOf(row, own, depth)
	if len(turns) < 2 || !slices.Contains(turns, row) || int(to) >= len(d.t.Lives) {
		return -1
	}
	next := d.stack(d.code(to))
	if same, back := d.inside(own, next, d.code(row), depth); !same || back {
		return -1
	}
	var all int64
	for _, of := range turns {
		all += d.sizes[of]
	}
	if d.sizes[to] == all && len(next)-1 == depth {
		return d.operation(to).to - 1
	}
	if d.line(next, depth) != d.line(own, depth)+1 {
		return -1
	}
	again, over := d.turnsOf(to, next, depth)
	if len(again) == len(turns) || len(again) == 1 && d.periodic(span{to, over}, int32(len(turns))) {
		return over - 1
	}
	return -1
}

// periodic reports whether rows are of so many operations that make the same, one after another.
func (d *draft) periodic(rows span, times int32) bool {
	n := (rows.to - rows.from) / times
	if n*times != rows.to-rows.from {
		return false
	}
	return slices.Equal(d.sizes[rows.from:rows.to-n], d.sizes[rows.from+n:rows.to])
}

// turnsOf are the rows that the turns of a line give which a function has at a depth from outside, where that of another row does one
// thing over and over, and the row behind them.
func (d *draft) turnsOf(row int32, own []snapshot.FrameID, depth int) (given []int32, to int32) {
	stays := func(row int32) bool { return d.phase(row) == inNothing || d.onLine(row, own, depth) }
	from := d.operation(row).from
	for n := 0; n < longNode && from > 0 && stays(from-1); n++ {
		from = d.operation(from - 1).from
	}
	last := int32(-1) // the first row of the operation before
	to = from
	for n := 0; n < longNode && int(to) < len(d.t.Lives) && stays(to); n++ {
		if d.phase(to) != inNothing {
			if last >= 0 && d.code(to) == d.code(from) {
				given = append(given, last)
			}
			last = to
		}
		to = d.operation(to).to
	}
	return append(given, last), to
}

// inList reports whether a function at a depth from outside calls a list of torch's, one module of which makes a row.
func (d *draft) inList(row int32, depth int) bool {
	return d.contains(d.calledAt(d.stack(d.code(row)), depth))
}

// turnOver is the event after which the turn of a loop is over that a row begins with the first call of its line, as that of
// `h = relu(layer(h))`: a variable holds until then what the turn before gave, and none what is given from one call of a turn to the
// next. A line that comes twice only may be one statement that nests its calls, and one that calls modules only may have each of them in a
// turn of its own: 0 for those. Others may, too, and a function of which no other line has come may be called in turn: that is less likely
// a loop.
func (d *draft) turnOver(first int32, own []snapshot.FrameID, depth int) (event int32, likely bool) {
	const least = 3
	code := d.code(first)
	module := func(row int32) bool {
		stack := d.stack(d.code(row))
		return d.callsModule(stack[:len(stack)-1-depth])
	}
	calls := module(first)
	stays := func(row int32) bool { return d.phase(row) == inNothing || d.onLine(row, own, depth) }
	turns, last, mixed := 1, int32(-1), false
	row := d.operation(first).to
	for row < min(first+longNode, int32(len(d.t.Lives))) && stays(row) {
		if d.code(row) != code {
			mixed = mixed || d.phase(row) != inNothing && module(row) != calls
			row++
			continue
		}
		if turns++; last < 0 {
			last = row - 1
		}
		row = d.operation(row).to
	}
	if last < 0 {
		last = row - 1
	}
	begins := first // the line, as far as that is looked for
	for row = first - 1; row >= max(first-longNode, 0) && stays(row); row-- {
		if d.code(row) == code {
			turns++
			row = d.operation(row).from
		}
		if d.phase(row) != inNothing {
			begins = row
		}
	}
	inTurn := row >= 0 && !stays(row) && d.code(begins) != code
	if turns < least || !mixed || inTurn {
		return 0, false
	}
	if row >= 0 {
		same, back := d.inside(own, d.stack(d.code(row)), d.code(first), depth)
		likely = same && back
	}
	return d.returned(last), likely
}

// comesTwice reports whether the code of a row, which has come before, does not come again on the line that a function has at a depth from
// outside: one statement that nests two calls, as in conv2(conv1(x)).
func (d *draft) comesTwice(row int32, own []snapshot.FrameID, depth int) bool {
	code, last := d.code(row), row
	line := d.line(d.stack(code), depth)
	for next := row + 1; next < min(row+longNode, int32(len(d.t.Lives))) && d.phase(next) != inBackward; next++ {
		if d.phase(next) == inNothing {
			continue
		}
		stack := d.stack(d.code(next))
		if same, _ := d.inside(own, stack, d.code(last), depth); !same || d.line(stack, depth) != line {
			return true
		}
		if d.code(next) == code && d.code(last) != code {
			return false
		}
		last = next
	}
	return true
}

// addedTo is the row that a function makes next as it made one, behind another up to the last: what adds two to make a row does so
// again, as the residual stream of a transformer, which a variable holds on the way, is added to. Where it does not, it is that other.
func (d *draft) addedTo(row int32, depth int, behind, last int32) int32 {
	const far = 4096 // rows
	module := false  // whether the function has called one on the way
	calls := slices.ContainsFunc(d.t.Lives[row+1:behind+1], func(l timeline.Life) bool { return len(d.stack(l.Stack))-1 > depth })
	line := d.line(d.stack(d.code(behind)), depth)
	callsModule := func(l timeline.Life) bool { // the statement behind
		stack := d.stack(l.Stack)
		return len(stack)-1 > depth && d.line(stack, depth) == line && d.callsModule(stack[:len(stack)-1-depth])
	}
	if d.sizes[behind] == d.sizes[row] && d.sums(behind, depth) && d.code(behind) != d.code(row) &&
		slices.ContainsFunc(d.t.Lives[row+1:behind+1], callsModule) {
		return behind // the statement behind adds to it, as in `x = self.attention(x) + x`; that of a loop may be of a turn much later
	}
	for next := behind + 1; next <= min(last, behind+far); next++ {
		if calls && d.sizes[next] == d.sizes[row] && d.sums(next, depth) {
			if module && d.scales(row) && d.scales(next+1) {
				next++
			}
			return next
		}
		stack := d.stack(d.code(next))
		calls = calls || len(stack)-1 > depth
		module = module || len(stack) > depth && d.callsModule(stack[:len(stack)-1-depth])
	}
	return behind
}

// sumsAgain is the row that a function makes in place of one that it adds to what a call gives, as in `return x + self.block(x)`: what
// comes behind that row is what its statement begins with, up to such a row again, so that it is a loop's turn, or another call whose
// caller has the row until that is over. It is -1 where nothing tells.
func (d *draft) sumsAgain(row, into int32, depth int) int32 {
	const far = 4096 // rows
	if !d.sums(row, depth) {
		return -1
	}
	own, first := d.stack(d.code(row)), row
	for first-1 >= max(row-far, int32(d.warm)) && d.onLine(first-1, own, depth) {
		first--
	}
	again := into + row - first
	alike := func(a, b int32) bool { return d.code(a) == d.code(b) }
	if alike(first, row) || int(again) >= len(d.t.Lives) || d.sizes[again] != d.sizes[row] {
		return -1
	}
	for of := first; of <= row; of++ {
		if !alike(of, into+of-first) {
			return -1
		}
	}
	return again
}

// untilSum reports whether a block has what its norm gives at a depth from outside until the sum behind the next layer.
func (d *draft) untilSum(own []snapshot.FrameID, depth int) bool {
	return depth == d.holder(own) && normalizes(d.name(own[0])) && frames.ReplacesAtSum(d.file(own[len(own)-1-depth]))
}

// scales reports whether the line that makes a row by an operation of the program's own scales what it adds before, as in
// `x + 0.5 * f(x)`: a sum saves nothing, so that this goes at once.
func (d *draft) scales(row int32) bool {
	return row > 0 && int(row) < len(d.t.Lives) && d.code(row-1) == d.code(row) && d.sizes[row-1] == d.sizes[row] &&
		slices.Contains(slices.Collect(d.goneBehind(row)), row-1)
}

// sums reports whether a function at a depth from outside makes a row by an operation of its own.
func (d *draft) sums(row int32, depth int) bool {
	own := d.stack(d.code(row))
	return len(own)-1 == depth && (!frames.Of(d.s, own[0]).IsLibrary() || d.layerOfTorch(own[0])) && d.phase(row) == inProgram
}

// onLine reports whether the line that a function has at a depth from outside allocates a row.
func (d *draft) onLine(row int32, own []snapshot.FrameID, depth int) bool {
	stack := d.stack(d.code(row))
	same, _ := d.inside(own, stack, d.code(row), depth)
	return same && d.line(stack, depth) == d.line(own, depth)
}

// inPlace reports whether a function that allocates up to a row returns one before that, as where it adds to that in place: what it
// makes last is gone then.
func (d *draft) inPlace(row, last int32) bool {
	result := last
	for result > row && (d.is(result, category.Workspace) || d.byproduct(result)) {
		result--
	}
	for of := result - 1; of > row && d.operationAt[of] == d.operationAt[result]; of-- {
		if d.t.Lives[of].GivenUp() > d.t.Lives[result].GivenUp() {
			result = of // and that what it works in, as a convolution unfolds images into more than the result has
		}
	}
	end := d.t.Lives[result].GivenUp()
	return result > row && end >= 0 && end <= d.returned(last)
}

// turnEnds reports whether a function at a depth from outside that no module calls is back where it was behind a row: a loop's turn is
// over then, and the function does not return.
func (d *draft) turnEnds(row int32, own []snapshot.FrameID, depth int) bool {
	next := row + 1
	for int(next) < len(d.t.Lives) && d.phase(next) == inNothing {
		next++
	}
	if int(next) == len(d.t.Lives) || d.callsModule(own[len(own)-1-depth:]) {
		return false
	}
	same, back := d.inside(own, d.stack(d.code(next)), d.code(row), depth)
	return same && back
}

// lastIn is the last row that a function allocates which has a row at a depth from outside, until it returns or is back where it was.
func (d *draft) lastIn(row int32, own []snapshot.FrameID, depth int) int32 {
	if known := d.lasts[depth]; known.from <= row && row <= known.to {
		return known.to
	}
	last := d.lastOf(row, int32(len(d.t.Lives)), own, depth, func([]snapshot.FrameID) bool { return true })
	d.lasts[depth] = span{row, last}
	return last
}

// lastOf is the last row that a function allocates which has a row at a depth from outside, before another row, and until it returns,
// is back where it was, or a filter does not take what it allocates next.
func (d *draft) lastOf(row, until int32, own []snapshot.FrameID, depth int, takes func(stack []snapshot.FrameID) bool) int32 {
	last := row
	for next := row + 1; next < until && d.phase(next) != inBackward; next++ {
		if d.phase(next) == inNothing {
			continue
		}
		stack := d.stack(d.code(next))
		if same, back := d.inside(own, stack, d.code(last), depth); !same || back || !takes(stack) {
			break
		}
		last = next
	}
	return last
}

// overAt is the event after which the operation is over of which a row is the last: what it works in is gone then.
func (d *draft) overAt(row int32) int32 {
	over, next := d.t.Lives[row].Born, d.returned(row)
	for of := max(d.operation(row).from, row-longNode); of <= row; of++ {
		if end := d.end(of); end < next {
			over = max(over, end+1)
		}
	}
	return over
}

// callOver is the event after which the call that a function makes at a depth from outside is over, of which a row
// is: one of its own operations, or what another function does. A list of torch's holds what it is given while its
// modules run one after another; that they are of one call shows where the line goes on with what the list gives.
func (d *draft) callOver(row int32, own []snapshot.FrameID, depth int) int32 {
	stack := d.stack(d.code(row))
	callee := func(stack []snapshot.FrameID) snapshot.FrameID { return d.calledAt(stack, depth) }
	// What its modules make is gone with the next one's operation.
	list := d.contains(callee(stack)) && !d.contains(callee(own))
	if d.holder(stack) <= depth && !list {
		return d.operationOf(row)
	}
	last, turn := row, int32(-1) // turn is the last row before modules begin anew
	for next := row + 1; int(next) < len(d.t.Lives) && d.phase(next) != inBackward; next++ {
		if d.phase(next) == inNothing {
			continue
		}
		code := d.code(next)
		of := d.stack(code)
		same, _ := d.inside(own, of, d.code(last), depth)
		if !same || d.line(of, depth) != d.line(own, depth) {
			break
		}
		if list && !d.contains(callee(of)) {
			turn = -1
			break
		}
		if !list && (d.holder(of) <= depth || d.functions[callee(of)] != d.functions[callee(stack)]) {
			break
		}
		if turn < 0 && (d.anew(d.code(row), d.code(last), code) || d.callsAgain(d.code(row), d.code(last), code, depth)) {
			if turn = last; !list {
				break
			}
		}
		last = next
	}
	if turn >= 0 {
		last = turn
	}
	return d.returned(last)
}

// anew reports whether code begins again what began with the first: it is back there, and before what ran last. See back.
func (r *run) anew(first, last, now snapshot.StackID) bool {
	return now != last && r.back(last, now) && r.back(first, now)
}

// callsAgain reports whether a function that another calls at a depth from outside is called again: it has gone on to a later line, and
// is back at the one of the first code, but not with that, as a block without what another begins with.
func (r *run) callsAgain(first, last, now snapshot.StackID, depth int) bool {
	callee := func(code snapshot.StackID) snapshot.FrameID { return r.calledAt(r.stack(code), depth) }
	return now != first && r.returns(callee(first), callee(last), callee(now), now)
}

// beginsAgain reports whether a function that another calls at a depth from outside is called again: it has gone on to a later line, and
// is back at the first code.
func (r *run) beginsAgain(first, last, now snapshot.StackID, depth int) bool {
	from, to := r.calledAt(r.stack(last), depth), r.calledAt(r.stack(now), depth)
	return now == first && from != 0 && to != 0 && r.functions[from] == r.functions[to] &&
		r.s.Frames.Get(to).Line < r.s.Frames.Get(from).Line
}

// returned is the event after which the call that allocated a row last has let go of what it had, as nothing else has been
// allocated then.
func (d *draft) returned(row int32) int32 {
	if int(row)+1 < len(d.t.Lives) {
		return d.t.Lives[row+1].Born - 1
	}
	return d.t.Lives[row].Born
}

// operationOf is the event after which the operation is over that a row is the first of. Code that is not torch's may be several: of
// that only what comes beside the row is of the same.
func (d *draft) operationOf(row int32) int32 {
	own := d.stack(d.code(row))
	if len(own) == 0 {
		return d.t.Lives[row].Born
	}
	to := d.operation(row).to
	if !frames.Of(d.s, own[0]).IsLibrary() && !d.byproduct(row) {
		over := row + 1
		for over < to && (d.byproduct(over) || d.worksIn(over)) {
			over++
		}
		to = over
	}
	return d.overAt(to - 1)
}

// reading is what a function allocates after a row that it gets.
type reading struct {
	into int32 // the next operation on the same line, which reads the row; -1 for none
	over int32 // the first row that is not on the line
	last int32 // of the statement behind, or, where the function returns, of the line
}

// readAt looks at what a function allocates after a row that it gets, up to the end of the statement behind that: in
// a loop of one line that is its next turn.
func (d *draft) readAt(row int32, own []snapshot.FrameID, depth int, direct bool) reading {
	at, behind, first := d.line(own, depth), int32(0), snapshot.EmptyStack
	x := reading{into: -1, over: row + 1, last: row}
	made := d.operation(row).to
	p := d.passOf(d.t.Lives[row].Born)
	aside := p == nil || !d.saved(p, row) // the statement behind makes masks, or only what is small, and calls no module
	for next := row + 1; int(next) < len(d.t.Lives); next++ {
		phase := d.phase(next)
		if phase == inNothing {
			continue
		}
		if phase == inBackward {
			break
		}
		code := d.code(next)
		stack := d.stack(code)
		same, back := d.inside(own, stack, d.t.Lives[x.last].Stack, depth)
		if !same || back {
			break
		}
		before, line, small := d.code(x.last), d.line(stack, depth), d.sizes[next]*8 < d.sizes[row]
		switch {
		case line == at && behind == 0:
			// One operation of a module of torch's asks for all that comes with its result, as a convolution that tries
			// algorithms does; of other code only workspaces, and what is small, are taken for that.
			other := next >= made || !small && !d.worksIn(next) && !frames.Of(d.s, own[0]).IsLibrary()
			if direct && other && d.holder(stack) >= depth {
				x.into = next
				return x
			}
			if code != before && d.back(d.code(row), code) {
				behind, first = line, code // the line comes again, in a loop
				break
			}
			x.over = next + 1
		case behind == 0, aside && line != behind:
			behind, first = line, code
		case line != behind || !d.contains(d.calledAt(stack, depth)) && (d.beginsAgain(first, before, code, depth) &&
			!d.comesTwice(next, own, depth) || d.callsAgain(first, before, code, depth)):
			return x
		}
		aside = aside && (behind == 0 || small && !d.callsModule(stack[:len(stack)-1-depth]) || d.makesMask(next))
		x.last = next
	}
	return x
}

// calledAt is runs for a depth from outside.
func (r *run) calledAt(stack []snapshot.FrameID, depth int) snapshot.FrameID {
	return r.runs(stack, len(stack)-1-depth)
}

// line is that of the frame at a depth from outside.
func (r *run) line(stack []snapshot.FrameID, at int) int32 {
	return r.s.Frames.Get(stack[len(stack)-1-at]).Line
}

// inside reports whether a stack is in the function that another has at a depth from outside, called by the same code,
// and whether it is back there: at a line before that of the stack last.
func (r *run) inside(own, stack []snapshot.FrameID, last snapshot.StackID, at int) (same, back bool) {
	if len(stack) <= at {
		return false, false
	}
	for i := range at {
		if stack[len(stack)-1-i] != own[len(own)-1-i] {
			return false, false
		}
	}
	a, b := own[len(own)-1-at], stack[len(stack)-1-at]
	return r.functions[a] == r.functions[b], r.s.Frames.Get(b).Line < r.line(r.stack(last), at)
}

// caller is the depth from outside of the function that called one, without what calls of modules go through; -1 for
// none.
func (r *run) caller(stack []snapshot.FrameID, at int) int {
	for at--; at >= 0; at-- {
		c := frames.Of(r.s, stack[len(stack)-1-at])
		if c.Has(frames.Python) && c.Origin() != frames.Plumbing && c.Part() != frames.Wrapper {
			return at
		}
	}
	return -1
}

// freeAt lets go of what code at a line got when a step ends. Where as many passes lie before the loop that was found, as those of a first
// phase, the step may be meant of those.
func (d *draft) freeAt(where *place, step int, e *Applied) {
	last := int32(d.steps.Steps[step].Last)
	sooner := int32(-1)
	if next := step + 1; next < len(d.passes) && int(d.passes[step].end) <= d.steps.Steps[0].First {
		sooner = d.passes[next].first - 1
	}
	for row := range d.rows() {
		l := &d.t.Lives[row]
		if where.depth(l.Stack) < 0 || l.Born > last {
			continue
		}
		before := l.Born <= sooner && sooner < d.last(row) && !d.stands(row)
		if d.until(row, last) {
			e.count(d.run, row)
		}
		if before {
			d.mayEnd(e, row, sooner)
			e.assumeOnce(FoundSteps)
		}
	}
}

// lastBefore is the row that was allocated last before an event.
func (r *run) lastBefore(event int32) int32 {
	i, _ := slices.BinarySearchFunc(r.t.Lives, event, func(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) })
	return int32(max(i-1, 0))
}

// leaves is the event after which a row is gone that no graph keeps.
func (d *draft) leaves(row int32) int32 {
	event, _ := d.dropped(row)
	return event
}
