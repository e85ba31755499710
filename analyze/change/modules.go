package change

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Stacks have no names of modules (snapshot/SPEC.md 2.9): a module is known by the line that calls it. One line in a
// loop calls many. What one call allocates is told from what the next does by the code: it goes on within a call, and
// back where the next begins.

// group is the modules that one line calls.
type group struct {
	key    string             // tells it from others
	around []snapshot.FrameID // the line's frame, and those outside of it
	line   string             // "model.py:43 forward"
	calls  []instance
	most   int  // calls in one pass
	list   bool // the modules call others, so that they are worth a checkpoint each
	// Outer is the list of which each module has such a list of its own, as the stages of a network, where a module of it is
	// seen to begin; else nil.
	outer *group
	loops bool // the modules call others in loops of their own, which may be meant
	turns bool // the modules are lists, see takeTurns
	// bodies are the turns of the loops that the modules have, where each is several statements; nil where they have none.
	bodies []instance
}

// instance is a module's call on the way to a pass.
type instance struct {
	rows    []int32 // that it allocated, in order of birth
	pass    *pass
	ordinal int  // of the group's in the pass
	depth   int  // of the line's frame in the stack of its first row, counted from the innermost
	follows bool // on another of the group, with nothing else between
}

// at is the place of a call in a stack: the frames above it are the module's.
type at struct {
	group int32 // -1 for none
	depth int32 // of the line's frame, counted from the innermost
}

// modules finds the calls of modules at lines that a filter takes, the outermost in each stack, those of one line told
// apart by the functions that run. Where it descends, a call of a list of modules (torch.nn.Sequential) is those of the
// modules in it.
func (r *run) modules(descend bool, takes func(stack []snapshot.FrameID, depth int) bool) []group {
	ats := make([]at, r.s.Stacks.Len()+1)
	var groups []group
	index := map[string]int32{}
	for i := range ats {
		ats[i].group = -1
		stack := r.stack(snapshot.StackID(i))
		if r.phases[i] != inProgram {
			continue
		}
		depth := r.callIn(stack, takes)
		if depth < 0 {
			continue
		}
		if descend {
			depth = r.within(stack, depth)
		}
		callee, inner := r.callee(stack[:depth])
		key := callee + fmt.Sprint(stack[depth:])
		g, ok := index[key]
		if !ok {
			g = int32(len(groups))
			index[key] = g
			groups = append(groups, group{key: key, around: stack[depth:], line: r.lineOf(stack, depth)})
		}
		groups[g].list = groups[g].list || inner
		ats[i] = at{g, int32(depth)}
	}
	r.nameApart(groups)
	orders := make([]order, len(groups))
	for i := range orders {
		orders[i] = order{}
	}
	for i := range r.passes {
		r.callsIn(&r.passes[i], ats, groups, orders, false)
	}
	if slices.ContainsFunc(orders, func(o order) bool { return len(o) > 1 }) {
		for i := range groups {
			groups[i].calls = nil
		}
		for i := range r.passes {
			r.callsIn(&r.passes[i], ats, groups, orders, true)
		}
	}
	for i := range groups {
		r.join(&groups[i])
		r.takeTurns(&groups[i])
		r.number(&groups[i])
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.calls) == 0 })
}

// callIn is the depth of the outermost line in a stack that calls a module, -1 for none.
func (r *run) callIn(stack []snapshot.FrameID, takes func(stack []snapshot.FrameID, depth int) bool) int {
	line := -1
	for depth, id := range slices.Backward(stack) {
		switch {
		case frames.Of(r.s, id).IsModuleCall():
			if line >= 0 && takes(stack, line) {
				return line
			}
			line = -1
		case r.isCode(stack, depth):
			line = depth
		}
	}
	return -1
}

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
		if began || stack != last && (r.back(first, stack, comes[first] > 1) || r.apart(runs(last), runs(stack)) ||
			again && orders[g][stack][first]) {
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
	calls := slices.ContainsFunc(inside, func(id snapshot.FrameID) bool { return frames.Of(r.s, id).IsModuleCall() })
	return on > longStatement || on > 0 && calls
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

// join puts calls together that are one: code that runs a function twice in one statement, as in f(g(f(x))), or modules of its own in
// a loop, is back where it began without a new call. Modules of one class have as many such parts each; those of a class of which
// nothing tells have as many as the others.
func (r *run) join(g *group) {
	r.joinTurns(g)
	var joined []instance
	var alone [][]instance
	most := 0
	for _, calls := range r.byClass(g.calls) {
		whole, parts := r.joinOne(calls)
		if parts < 2 || len(whole) < 2 || whole[1].pass != whole[0].pass {
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

// joinTurns puts calls together that begin where others have turns of a loop of their own, as the blocks of a first stage, which has
// nothing before them.
func (r *run) joinTurns(g *group) {
	turns := map[snapshot.StackID]bool{} // code that some call begins anew with
	for i := range g.calls {
		c := &g.calls[i]
		seen := map[snapshot.StackID]bool{}
		for k, row := range c.rows[1:] {
			if code := r.code(row); code != r.code(c.rows[k]) && code != r.code(c.rows[0]) {
				turns[code] = turns[code] || seen[code] && r.back(r.code(c.rows[k]), code, false)
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

// first is the frame of the function that a call runs at its first row.
func (r *run) first(c *instance) snapshot.FrameID { return r.runs(r.stack(r.code(c.rows[0])), c.depth) }

// joinOne joins the calls of one class, and gives how many parts each then has. They begin in the same statement, and only the last
// of so many goes on to the end of the function, or of the statement where that is all of it.
func (r *run) joinOne(calls []instance) ([]instance, int) {
	var end int32
	for i := range calls {
		end = max(end, r.inCallee(&calls[i], -1))
	}
	joined, parts := r.joinWhere(calls, func(k int) bool { return r.inCallee(&calls[k], -1) < end })
	if parts < 2 {
		lastOf := func(c *instance) snapshot.StackID { return r.code(c.rows[len(c.rows)-1]) }
		over := lastOf(&calls[len(calls)-1])
		joined, parts = r.joinWhere(calls, func(k int) bool { return lastOf(&calls[k]) != over })
	}
	return joined, parts
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

// number counts the calls of a group in each pass that keep something for it, and drops the others, as those of an
// evaluation.
func (r *run) number(g *group) {
	g.calls = slices.DeleteFunc(g.calls, func(c instance) bool {
		return !slices.ContainsFunc(c.rows, func(row int32) bool { return r.saved(c.pass, row) })
	})
	for i := range g.calls {
		if c := &g.calls[i]; i > 0 && g.calls[i-1].pass == c.pass {
			c.ordinal = g.calls[i-1].ordinal + 1
		}
		g.most = max(g.most, g.calls[i].ordinal+1)
	}
}

// longStatement is how many lines a statement may have, of which the first is that of the outermost call in it.
const longStatement = 8

// back reports whether code is where a call began, or before that: at an earlier line of the same function. Of code
// that comes again, the lines of one statement are not before it.
func (r *run) back(first, now snapshot.StackID, again bool) bool {
	if first == now {
		return true
	}
	a, b := r.stack(first), r.stack(now)
	for len(a) > 0 && len(b) > 0 {
		x, y := a[len(a)-1], b[len(b)-1]
		if x != y {
			p, q := r.s.Frames.Get(x), r.s.Frames.Get(y)
			line := p.Line
			if again {
				line -= longStatement
			}
			return p.File == q.File && p.Name == q.Name && q.Line < line
		}
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return false
}

// within is the place of the call in a list of modules, where the line at depth calls such, else depth.
func (r *run) within(stack []snapshot.FrameID, depth int) int {
	inner := r.callIn(stack[:depth], func([]snapshot.FrameID, int) bool { return true })
	if inner >= 0 && r.contains(stack[inner]) {
		return inner
	}
	return depth
}

// callee is the function that a call of a module runs, of the frames inside of that, and whether it calls modules.
func (r *run) callee(inside []snapshot.FrameID) (name string, calls bool) {
	for depth := len(inside) - 1; depth >= 0; depth-- {
		c := frames.Of(r.s, inside[depth])
		switch {
		case c.IsModuleCall() && name != "":
			return name, true
		case name == "" && r.isCode(inside, depth):
			f := r.s.Frames.Get(inside[depth])
			name = fmt.Sprint(f.File, " ", f.Name)
		}
	}
	return name, false
}

// isCode reports whether a frame is of code, and not of what stands between a call and that.
func (r *run) isCode(stack []snapshot.FrameID, depth int) bool {
	id := stack[depth]
	c := frames.Of(r.s, id)
	return c.Has(frames.Python) && c.Origin() != frames.Plumbing && c.Part() != frames.ModuleWrapper &&
		c.Part() != frames.Wrapper && r.s.Strings.Get(r.s.Frames.Get(id).Name) != "__call__"
}

// contains reports whether a frame is in a list of modules that torch runs one after another (torch/nn/modules/container.py).
func (r *run) contains(id snapshot.FrameID) bool {
	return frames.Of(r.s, id).IsLibrary() && frames.Base(r.s.Strings.Get(r.s.Frames.Get(id).File)) == "container.py"
}

// called are the frames from the line on that a group goes by.
func (r *run) called(g *group) []snapshot.FrameID { return g.around[r.lineAt(g.around, 0):] }

// lineOf names a line that calls modules.
func (r *run) lineOf(stack []snapshot.FrameID, depth int) string {
	return frames.Bare(attribution.FrameText(r.s, stack[r.lineAt(stack, depth)]))
}

// lineAt is the depth of the line that a call of a module goes by: one in a list of torch's goes by the line that calls the list, with
// the modules.
func (r *run) lineAt(stack []snapshot.FrameID, depth int) int {
	if r.contains(stack[depth]) {
		for d := depth + 1; d < len(stack); d++ {
			if r.isCode(stack, d) && !r.contains(stack[d]) {
				return d
			}
		}
	}
	return depth
}

// byFunction is the depth of the line in the same module that called the function whose line at depth calls modules, -1 for none.
func (r *run) byFunction(stack []snapshot.FrameID, depth int) int {
	for d := depth + 1; d < len(stack) && !frames.Of(r.s, stack[d]).IsModuleCall(); d++ {
		if r.isCode(stack, d) {
			return d
		}
	}
	return -1
}

// nameApart has groups of one line, in a function that several lines of a module call, go by those.
func (r *run) nameApart(groups []group) {
	type named struct {
		around []snapshot.FrameID // from the line on
		by     int                // see byFunction
	}
	lines := make([]named, len(groups))
	for i := range groups {
		around := r.called(&groups[i])
		lines[i] = named{around, r.byFunction(around, 0)}
	}
	for i, a := range lines {
		apart := func(b named) bool {
			return a.by == b.by && a.around[a.by] != b.around[b.by] && slices.Equal(a.around[:a.by], b.around[:b.by])
		}
		if a.by >= 0 && slices.ContainsFunc(lines, apart) {
			groups[i].line = r.lineOf(a.around, a.by)
		}
	}
}

// inModule reports whether a frame runs in a call of a module.
func (r *run) inModule(stack []snapshot.FrameID, depth int) bool {
	isCall := func(id snapshot.FrameID) bool { return frames.Of(r.s, id).IsModuleCall() }
	return slices.ContainsFunc(stack[depth+1:], isCall)
}

// at gives the groups of a line; where it descends, those of the list that it calls, unless the line itself calls one such list
// after another: where that is seen, or the list has no modules that call others.
func (r *run) at(line string, descend bool) []group {
	there := func(stack []snapshot.FrameID, depth int) bool { return r.matches(stack[depth], line) }
	groups := r.modules(false, there)
	if len(groups) == 0 { // it may call a function that calls the modules of one line
		through := func(stack []snapshot.FrameID, depth int) bool {
			at := r.byFunction(stack, depth)
			return at >= 0 && r.matches(stack[at], line)
		}
		there, groups = through, r.modules(false, through)
		if slices.ContainsFunc(groups, func(g group) bool { return !slices.Equal(g.around, groups[0].around) }) {
			return nil
		}
	}
	if !descend {
		return groups
	}
	if stages := r.stagesAt(groups); stages != nil {
		return []group{*stages}
	}
	inner := r.modules(true, there)
	if len(inner) > 0 {
		for _, l := range r.lists() {
			if l.outer != nil && slices.Equal(r.called(l.outer), r.called(&inner[0])) {
				return []group{*l.outer}
			}
		}
	}
	if len(groups) == 1 && len(inner) == 1 && 1 < groups[0].most && groups[0].most < inner[0].most {
		return groups
	}
	follows := func(c instance) bool { return c.follows }
	if slices.ContainsFunc(inner, func(g group) bool { return g.list }) ||
		!slices.ContainsFunc(groups, func(g group) bool { return slices.ContainsFunc(g.calls, follows) }) {
		return inner
	}
	return groups
}

// matches reports whether a frame is at a line: "model.py:43", with folders before it and the function behind it.
func (r *run) matches(id snapshot.FrameID, line string) bool {
	text := frames.Bare(attribution.FrameText(r.s, id))
	if file, _, ok := strings.Cut(text, " "); ok && !strings.Contains(line, " ") {
		text = file
	}
	return text == line || strings.HasSuffix(text, "/"+line)
}

// place is a line of code.
type place struct {
	depths []int32 // by stack, 1 + the depth from outside of its outermost frame there
}

// depth is that of the outermost frame there, counted from outside, -1 for a stack that does not go through it.
func (p *place) depth(stack snapshot.StackID) int { return int(p.depths[stack]) - 1 }

// place finds a line in all stacks, nil where none goes through it.
func (r *run) place(line string) *place {
	return r.placeWhere(func(id snapshot.FrameID) bool { return r.matches(id, line) })
}

// callOf finds the calls of the program's functions of a name in all stacks, nil where none goes through one: the frame outside.
func (r *run) callOf(function string) *place {
	p := r.placeWhere(func(id snapshot.FrameID) bool {
		return r.s.Strings.Get(r.s.Frames.Get(id).Name) == function && !frames.Of(r.s, id).IsLibrary()
	})
	if p != nil {
		for i := range p.depths {
			p.depths[i] = max(p.depths[i]-1, 0)
		}
	}
	return p
}

// placeWhere finds frames in all stacks, nil where there are none.
func (r *run) placeWhere(is func(id snapshot.FrameID) bool) *place {
	at := make([]bool, r.s.Frames.Len()+1)
	found := false
	for id := 1; id < len(at); id++ {
		at[id] = is(snapshot.FrameID(id))
		found = found || at[id]
	}
	if !found {
		return nil
	}
	p := &place{make([]int32, r.s.Stacks.Len()+1)}
	for i := range p.depths {
		stack := r.stack(snapshot.StackID(i))
		for depth := range stack {
			if at[stack[len(stack)-1-depth]] {
				p.depths[i] = int32(depth) + 1
				break
			}
		}
	}
	return p
}
