package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// What one call of a line allocates is told from what the next does by the code: it goes on within a call, and back where the next
// begins.

// order is, by the code that a call of a group is known to begin with, what comes behind it in such calls.
type order map[snapshot.StackID]map[snapshot.StackID]bool

// callsIn finds the calls on the way to a pass, and the orders of their code. With these, the second time, a call is over, too, where
// code comes that others have before what it began with.
func (r *run) callsIn(p *pass, ats []at, groups []group, orders []order, again bool) {
	open := int32(-1) // the group of the call that goes on
	var first, last snapshot.StackID
	known := false // the call that goes on began where the line, or its function, did
	runs := func(id snapshot.StackID) snapshot.FrameID { return r.runs(r.stack(id), int(ats[id].depth)) }
	comes := map[snapshot.StackID]int{} // how often each stack allocates
	for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
		if stack := r.code(row); ats[stack].group >= 0 {
			comes[stack]++
		}
	}
	for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
		stack := r.code(row)
		g := ats[stack].group
		if g < 0 {
			if r.phases[stack] == inProgram {
				open = -1
			}
			continue
		}
		began := g != open || stack != last && r.returns(runs(first), runs(last), runs(stack), stack)
		if began || stack != last && (r.backFrom(first, last, stack, comes[first] > 1) || r.apart(runs(last), runs(stack)) ||
			again && orders[g][stack][first] || r.restarts(runs(last), runs(stack), stack) ||
			runs(first) == runs(last) && r.branches(runs(last), runs(stack), first, stack)) {
			groups[g].calls = append(groups[g].calls, instance{pass: p, depth: int(ats[stack].depth), follows: g == open})
			open, first, known = g, stack, began
			if began && !again && orders[g][first] == nil {
				orders[g][first] = map[snapshot.StackID]bool{}
			}
		}
		if last = stack; known && !again && stack != first {
			orders[g][first][stack] = true
		}
		c := &groups[g].calls[len(groups[g].calls)-1]
		c.rows = append(c.rows, row)
	}
	if p.open && open >= 0 {
		g := &groups[open]
		g.calls = g.calls[:len(g.calls)-1] // it is not over
	}
}

// returns reports whether code has gone on to a later line of a function, and calls a module at that where it was first now. The first
// line of a statement is that of what it computes itself in the end, too.
func (r *run) returns(first, last, now snapshot.FrameID, stack snapshot.StackID) bool {
	if first == 0 || first != now || r.functions[last] != r.functions[now] {
		return false
	}
	on := r.s.Frames.Get(last).Line - r.s.Frames.Get(now).Line
	inside := r.stack(stack)
	inside = inside[:slices.Index(inside, now)]
	return on > longStatement || on > 0 && r.callsModule(inside)
}

// restarts reports whether code goes back to a line of a function that other calls of it begin with, which calls a layer there: blocks
// without a shortcut of their own, as those with one are, begin behind it.
func (r *run) restarts(last, now snapshot.FrameID, stack snapshot.StackID) bool {
	if now == 0 || !r.starts[now] || last == 0 || r.functions[last] != r.functions[now] ||
		r.s.Frames.Get(now).Line >= r.s.Frames.Get(last).Line {
		return false
	}
	inside := r.stack(stack)
	inside = inside[:slices.Index(inside, now)]
	_, others := r.callee(inside)
	return r.callsModule(inside) && !others
}

// branches reports whether code comes from one of two statements to the other, of which a module has one, as
// "return x + self.conv(x)" and "return self.conv(x)": calls of the function are seen to begin with the later one, and
// the earlier one runs over and over alone.
func (r *run) branches(last, now snapshot.FrameID, first, stack snapshot.StackID) bool {
	if now == last || now == 0 || last == 0 || r.functions[last] != r.functions[now] {
		return false
	}
	early, late := last, now
	if r.s.Frames.Get(early).Line > r.s.Frames.Get(late).Line {
		early, late = late, early
	}
	if !r.again[early] || r.starts[early] || !r.starts[late] {
		return false
	}
	a, b := r.stack(first), r.stack(stack)
	return slices.Equal(a[:slices.Index(a, last)], b[:slices.Index(b, now)])
}

// runs is the frame of the function that is called at a depth of a stack, 0 for none.
func (r *run) runs(stack []snapshot.FrameID, depth int) snapshot.FrameID {
	for depth--; depth >= 0; depth-- {
		if r.isCode(stack, depth) {
			return stack[depth]
		}
	}
	return 0
}

// longFunction is how many lines a module's function may have without any that allocates: what is further away is of another
// class, where no frame of other functions tells.
const longFunction = 150

// apart reports whether two frames are of the functions of different classes.
func (r *run) apart(a, b snapshot.FrameID) bool {
	if a == 0 || b == 0 {
		return a != b
	}
	lines := r.s.Frames.Get(a).Line - r.s.Frames.Get(b).Line
	return r.functions[a] != r.functions[b] || max(lines, -lines) > longFunction
}

// first is the frame of the function that a call runs at its first row.
func (r *run) first(c *instance) snapshot.FrameID { return r.runs(r.stack(r.code(c.rows[0])), c.depth) }

// join puts calls together that are one: code that runs a function twice in one statement, as in f(g(f(x))), or modules of its own in
// a loop, is back where it began without a new call. Modules of one class have as many such parts each; those of a class of which
// nothing tells have as many as the others.
func (r *run) join(g *group) {
	r.giveFirst(g)
	r.joinTurns(g)
	var joined []instance
	var alone [][]instance
	most := 0
	for _, calls := range r.byClass(g.calls) {
		whole, parts := r.joinOne(calls)
		several := len(whole) > 1 && whole[1].pass == whole[0].pass
		if parts > 1 && (r.repeatsFirst(calls[:parts], several) || r.ofTorch(&calls[0])) {
			joined = append(joined, whole...)
			continue
		}
		if parts < 2 || !several {
			// One module of all calls may be a list whose last is another.
			alone = append(alone, calls)
			continue
		}
		joined = append(joined, whole...)
		most = max(most, parts)
	}
	if len(joined) == 0 {
		return
	}
	for _, calls := range alone {
		if most == 0 {
			joined = append(joined, calls...)
			continue
		}
		whole, parts := r.joinWhere(calls, func(k int) bool { return k%most < most-1 })
		if parts != most {
			whole = calls
		}
		joined = append(joined, whole...)
	}
	byBirth(joined)
	for i := 1; i < len(g.calls); i++ {
		a, b := &g.calls[i-1], &g.calls[i]
		if b.follows && r.inCallee(a, 0) == r.inCallee(b, 0) && r.inCallee(a, 0) < r.inCallee(a, -1) {
			g.bodies = g.calls
			break
		}
	}
	g.calls = joined
}

// ofTorch reports whether a call is of a module of torch's own, but for its lists: the class is one, as torch.nn.Transformer.
func (r *run) ofTorch(c *instance) bool {
	at := r.first(c)
	return at != 0 && !r.contains(at) && frames.Of(r.s, at).IsLibrary()
}

// repeatsFirst reports whether calls are one module's, whose first statement calls a list of torch's that runs the same code over and
// over, as convolutions before the layers of an encoder are: only the last goes on, to a statement behind that, or to two where a
// pass calls several such modules.
func (r *run) repeatsFirst(calls []instance, several bool) bool {
	least := 1
	if several {
		least = 2
	}
	last := len(calls) - 1
	began := r.inCallee(&calls[0], 0)
	for i := range calls[:last] {
		c := &calls[i]
		for k, row := range c.rows {
			inside := r.stack(r.t.Lives[row].Stack)[:r.depthAt(c, row)]
			if r.inCallee(c, k) != began || !slices.ContainsFunc(inside, r.contains) {
				return false
			}
		}
	}
	behind := map[int32]bool{}
	for k := range calls[last].rows {
		switch line := r.inCallee(&calls[last], k); {
		case line > began:
			behind[line] = true
		case !several && (line < began || len(behind) > 0):
			return false
		}
	}
	return len(behind) >= least
}

// giveFirst gives calls what a first statement allocates that not all modules run, as that which widens an image in a
// block of a MobileNet: it comes at a line before that with which the call began, just ahead of where that comes again,
// and no call ends with it that something else comes behind.
func (r *run) giveFirst(g *group) {
	ahead := make([]int, len(g.calls)) // rows
	for i := range g.calls {
		c := &g.calls[i]
		for k := len(c.rows) - 1; k > 0 && r.inSame(c, 0, k) && r.inCallee(c, k) < r.inCallee(c, 0); k-- {
			ahead[i]++
		}
		again := i+1 < len(g.calls) && g.calls[i+1].follows && r.code(g.calls[i+1].rows[0]) == r.code(c.rows[0])
		if ahead[i] > 0 && !again {
			return
		}
	}
	for i, n := range ahead {
		if n == 0 {
			continue
		}
		c, next := &g.calls[i], &g.calls[i+1]
		at := len(c.rows) - n
		next.depth = r.depthAt(c, c.rows[at])
		next.rows, c.rows = slices.Concat(c.rows[at:], next.rows), c.rows[:at:at]
	}
}

// inSame reports whether two rows of a call are allocated in one function that the call runs.
func (r *run) inSame(c *instance, a, b int) bool {
	in := func(k int) snapshot.FrameID { return r.runs(r.stack(r.code(c.rows[k])), r.depthAt(c, c.rows[k])) }
	return in(a) != 0 && in(b) != 0 && r.functions[in(a)] == r.functions[in(b)]
}

// joinTurns puts calls together that begin where others have turns of a loop of their own, as the blocks of a first stage, which has
// nothing before them.
func (r *run) joinTurns(g *group) {
	turns := map[snapshot.StackID]bool{} // code that some call begins anew with
	for i := range g.calls {
		c := &g.calls[i]
		seen := map[snapshot.StackID]bool{}
		for k, row := range c.rows[1:] {
			if code := r.code(row); code != r.code(c.rows[k]) && code != r.code(c.rows[0]) {
				turns[code] = turns[code] || seen[code] && r.back(r.code(c.rows[k]), code)
				seen[code] = true
			}
		}
	}
	var joined []instance
	for i := range g.calls {
		c := &g.calls[i]
		if i > 0 && c.follows && turns[r.code(c.rows[0])] && r.code(c.rows[0]) == r.code(g.calls[i-1].rows[0]) {
			joined[len(joined)-1].rows = append(joined[len(joined)-1].rows, c.rows...)
			continue
		}
		joined = append(joined, *c)
	}
	g.calls = joined
}

// byClass tells calls of one line apart by the classes whose functions they run, up to so many. Those of each follow on one another
// where nothing else, another class neither, is between.
func (r *run) byClass(calls []instance) [][]instance {
	const many = 64
	var out [][]instance
	last := -1
	for _, c := range calls {
		k := slices.IndexFunc(out, func(of []instance) bool { return !r.apart(r.first(&of[0]), r.first(&c)) })
		if k < 0 && len(out) == many {
			k = many - 1
		} else if k < 0 {
			k, out = len(out), append(out, nil)
		}
		c.follows = c.follows && k == last
		out[k], last = append(out[k], c), k
	}
	return out
}

// byBirth sorts calls by what they allocate first.
func byBirth(calls []instance) {
	sorting.Stable(calls, func(a, b instance) int { return cmp.Compare(a.rows[0], b.rows[0]) })
}

// joinOne joins the calls of one class, and gives how many parts each then has. They begin in the same statement, and only the last
// of so many goes on to the end of the function, as far as calls go that begin so, or of the statement where that is all of it.
func (r *run) joinOne(calls []instance) ([]instance, int) {
	lastOf := func(c *instance) snapshot.StackID { return r.code(c.rows[len(c.rows)-1]) }
	ends, over := map[int32]int32{}, map[int32]snapshot.StackID{} // by the line that calls begin at
	for i := range calls {
		began := r.inCallee(&calls[i], 0)
		ends[began], over[began] = max(ends[began], r.inCallee(&calls[i], -1)), lastOf(&calls[i])
	}
	joined, parts := r.joinWhere(calls, func(k int) bool { return r.inCallee(&calls[k], -1) < ends[r.inCallee(&calls[k], 0)] })
	if parts < 2 {
		joined, parts = r.joinWhere(calls, func(k int) bool {
			began := r.inCallee(&calls[k], 0)
			return r.inCallee(&calls[k], -1) == began && lastOf(&calls[k]) != over[began]
		})
	}
	if parts < 2 {
		if n := r.period(calls); n > 1 {
			joined, parts = r.joinWhere(calls, func(k int) bool { return k%n < n-1 })
		}
	}
	if parts < 2 {
		joined, parts = r.joinToEnds(calls, false)
	}
	if parts < 2 {
		joined, parts = r.joinToEnds(calls, true)
	}
	return joined, parts
}

// joinToEnds joins calls with those behind up to one that ends as calls do that are seen to be over: something else comes
// behind, or they have gone on to another statement. So a few modules of one class may have fewer parts, as the first
// block of a MobileNet widens nothing. Some may be over where those that go on leave
// their first statement, as blocks without a shortcut.
func (r *run) joinToEnds(calls []instance, leaving bool) (joined []instance, most int) {
	lastOf := func(c *instance) snapshot.StackID { return r.code(c.rows[len(c.rows)-1]) }
	ends := map[snapshot.StackID]bool{}
	for i := range calls {
		c := &calls[i]
		if i+1 == len(calls) || !calls[i+1].follows || r.inCallee(&calls[i+1], 0) != r.inCallee(c, 0) ||
			r.inCallee(c, -1) > r.inCallee(c, 0) {
			ends[lastOf(c)] = true
			k := len(c.rows) - 1
			for leaving && k > 0 && r.inCallee(c, k) > r.inCallee(c, 0) {
				k--
			}
			ends[r.code(c.rows[k])] = true
		}
	}
	parts, full := 0, 0 // of a module, and modules with most
	for i := range calls {
		c := &calls[i]
		if parts > 0 {
			last := &joined[len(joined)-1]
			last.rows = append(last.rows, c.rows...)
		} else {
			joined = append(joined, *c)
			joined[len(joined)-1].rows = slices.Clone(c.rows)
		}
		if parts++; ends[lastOf(c)] {
			if parts > most {
				most, full = parts, 0
			}
			if parts == most {
				full++
			}
			parts = 0
		}
	}
	if 2*full <= len(joined) {
		return nil, 0
	}
	return joined, most
}

// period is how many calls come again and again, where all are of a function's one statement, which calls modules of torch's: parts of
// that, as in drop(f(drop(g(f(x))))); 1 for none.
func (r *run) period(calls []instance) int {
	const most = 8
	began := r.inCallee(&calls[0], 0)
	for i := range calls {
		for k, row := range calls[i].rows {
			stack := r.stack(r.code(row))
			at := r.runs(stack, r.depthAt(&calls[i], row))
			inside := stack[:max(slices.Index(stack, at), 0)]
			others := func(id snapshot.FrameID) bool { return r.contains(id) || !frames.Of(r.s, id).IsLibrary() }
			if r.inCallee(&calls[i], k) != began || r.contains(at) || slices.ContainsFunc(inside, others) {
				return 1
			}
		}
	}
	alike := func(a, b *instance) bool {
		return slices.EqualFunc(a.rows, b.rows, func(x, y int32) bool { return r.code(x) == r.code(y) })
	}
	if len(calls) < 2 || alike(&calls[0], &calls[1]) {
		return 1
	}
	for n := 2; n <= min(most, len(calls)/2); n++ {
		if len(calls)%n != 0 {
			continue
		}
		comes := true
		for k := n; k < len(calls) && comes; k++ {
			comes = alike(&calls[k], &calls[k%n])
		}
		if comes {
			return n
		}
	}
	return 1
}

// joinWhere joins calls that end early with those behind, and gives how many parts each then has at most, those that begin alike as
// many: 1 for none, 0 where some calls end elsewhere, so that nothing tells.
func (r *run) joinWhere(calls []instance, early func(k int) bool) (joined []instance, most int) {
	parts := 0                       // of the call
	of := map[snapshot.StackID]int{} // by what calls begin with
	over := func() bool {
		began := r.code(joined[len(joined)-1].rows[0])
		if of[began] == 0 {
			of[began] = parts
		}
		most = max(most, parts)
		return of[began] == parts
	}
	for i := range calls {
		c := &calls[i]
		if i > 0 {
			before := &calls[i-1]
			same := r.code(before.rows[0]) == r.code(c.rows[0])
			if same && c.follows && early(i-1) && r.inCallee(before, 0) == r.inCallee(c, 0) {
				parts++
				joined[len(joined)-1].rows = append(joined[len(joined)-1].rows, c.rows...)
				continue
			}
			if !over() || same && early(i-1) && c.follows {
				return nil, 0
			}
		}
		parts = 1
		joined = append(joined, instance{rows: slices.Clone(c.rows), pass: c.pass, depth: c.depth, follows: c.follows})
	}
	if !over() {
		return nil, 0
	}
	return joined, most
}

// inCallee is the line of the function that a call runs at one of its rows, the last for -1, 0 where it is not there.
func (r *run) inCallee(c *instance, k int) int32 {
	row := c.rows[(k+len(c.rows))%len(c.rows)]
	if at := r.runs(r.stack(r.t.Lives[row].Stack), r.depthAt(c, row)); at != 0 {
		return r.s.Frames.Get(at).Line
	}
	return 0
}

// depthAt is the depth of a call's line in the stack of one of its rows, counted from the innermost frame.
func (r *run) depthAt(c *instance, row int32) int {
	return len(r.stack(r.t.Lives[row].Stack)) - len(r.stack(r.t.Lives[c.rows[0]].Stack)) + c.depth
}

// longStatement is how many lines a statement may have, of which the first is that of the outermost call in it.
const longStatement = 8

// back reports whether code is where a call began, or before that: at an earlier line of the same function, or in a list
// of torch's at one of a function of that name, which is of the modules of another list.
func (r *run) back(first, now snapshot.StackID) bool { return r.backFrom(first, first, now, false) }

// backFrom is back for a call that has gone on to other code of the function: a statement that goes back has both lines. Of code that
// comes again, the lines of one statement are not before it.
func (r *run) backFrom(first, last, now snapshot.StackID, again bool) bool {
	if first == now {
		return true
	}
	a, b, on := r.stack(first), r.stack(now), r.stack(last)
	list := false
	for len(a) > 0 && len(b) > 0 {
		x, y := a[len(a)-1], b[len(b)-1]
		if x == y && r.isCode(a, len(a)-1) {
			list = r.contains(x)
		}
		if x != y {
			p, q := r.s.Frames.Get(x), r.s.Frames.Get(y)
			line := p.Line
			if again {
				end := line
				if at := len(on) - 1; at >= 0 && r.functions[on[at]] == r.functions[x] {
					end = max(end, r.s.Frames.Get(on[at]).Line)
				}
				line = min(line, end-longStatement)
			}
			same := r.functions[x] == r.functions[y] || list && p.File == q.File && p.Name == q.Name
			return same && q.Line < line
		}
		a, b, on = a[:len(a)-1], b[:len(b)-1], on[:max(len(on)-1, 0)]
	}
	return false
}
