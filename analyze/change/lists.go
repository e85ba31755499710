package change

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// A list of modules is what a program calls in a loop, or torch for it (torch.nn.Sequential). Lists may be in lists, as the blocks
// of a network's stages are; what tells them apart are the functions that run, and their lines.

// lists are the groups in modules of which a pass calls several that call others, the outermost in each stack, in the
// order of their first calls. Of a list of lists, such as the stages of a network, the inner one stands for it. Where modules of
// the outer one do nothing of their own no stack tells where they begin: then it was divided where those of the inner one do.
func (r *run) lists() []group { return r.listsIn(r.inModule) }

// outerLists are those that no module calls, but the functions that train, as in a module of Lightning's. They may be one module
// that is called several times, too.
func (r *run) outerLists() []group {
	return r.listsIn(func([]snapshot.FrameID, int) bool { return true })
}

// listsIn are the lists of lines that a filter takes.
func (r *run) listsIn(takes func(stack []snapshot.FrameID, depth int) bool) []group {
	single, known := map[string]bool{}, map[string]bool{}
	groups := r.listsBut(single, known, takes)
	for i := range groups {
		outer, but := groups[i], maps.Clone(single)
		stages, inner := r.stages(&outer), false
		if stages == nil && !r.callsList(&outer.calls[0]) {
			whole := outer
			stages = &whole // modules of the program's own, each with a list
		}
		own := false // modules with code of their own are passed
		same := func(inner group) bool {
			if own && r.ofTorchs(&inner) {
				return false // layers of theirs
			}
			// Of modules that lists have by turns each list is one; else a list may have been divided where kinds of modules come again.
			if !inner.inside(&outer) || !outer.has(inner.calls[0].rows[0]) ||
				inner.most > outer.most && (outer.turns || !r.callsList(&outer.calls[0])) {
				return false
			}
			part := r.keeps(&inner) * 5 // of torch's lists, of which a line may call several, the most
			return part >= r.keeps(&outer)*4 ||
				inner.list && part*2 >= r.keeps(&outer)*5 && r.calledBy(&inner, &outer) && !r.layered(&outer)
		}
		for k := 0; k >= 0; {
			but[outer.key] = true
			own = own || !r.callsList(&outer.calls[0])
			within := r.listsBut(but, known, takes)
			if k = slices.IndexFunc(within, same); k >= 0 {
				if outer = within[k]; r.contains(outer.around[0]) {
					groups[i], groups[i].outer, inner = outer, stages, true
				}
			}
		}
		if !inner && stages != nil && stages.most < groups[i].most {
			groups[i] = *stages
			groups[i].loops = true
		}
		groups[i].loops = groups[i].loops || r.goOn(&groups[i]) || r.repeats(&groups[i])
		if g := &groups[i]; (g.outer == nil || g.outer.most == g.most) && (r.contains(g.around[0]) || r.callsList(&g.calls[0])) {
			g.staged = r.staged(g)
		}
	}
	return groups
}

// listsBut are the lists but for those of some keys, to which it adds those of lines that call one module, or none that calls others.
// Whether the calls of a key are of one module, see goesOn, is looked at once.
func (r *run) listsBut(single, known map[string]bool, takes func(stack []snapshot.FrameID, depth int) bool) []group {
	for {
		before := len(single)
		groups := r.modules(false, func(stack []snapshot.FrameID, depth int) bool {
			callee, _ := r.callee(stack[:depth])
			return takes(stack, depth) && !single[callee+fmt.Sprint(stack[depth:])]
		})
		for i := range groups {
			g := &groups[i]
			several := g.most > 1 && g.list
			if _, ok := known[g.key]; !ok && several {
				known[g.key] = r.goesOn(g)
			}
			if !several || known[g.key] {
				single[g.key] = true
			}
		}
		if len(single) == before {
			sorting.Stable(groups, func(a, b group) int {
				return cmp.Compare(a.calls[0].rows[0], b.calls[0].rows[0])
			})
			return groups
		}
	}
}

// goesOn reports whether the calls of a group are one, in parts: what a line in it calls over and over is through before a later line of
// that function calls others over and over, or anything, where these are all that the function has in loops and call modules themselves,
// as the layers before an encoder's last norm.
func (r *run) goesOn(g *group) bool {
	type called struct {
		line        snapshot.FrameID
		first, last int32 // rows
		several     bool
		list        bool // they call others
	}
	p := g.calls[0].pass
	var all []called
	for _, in := range r.calledIn(g, false, r.contains) {
		c := called{line: in.around[r.lineAt(in.around, 0)], first: -1, several: in.most > 1, list: in.list}
		for i := range in.calls {
			if of := &in.calls[i]; of.pass == p {
				if c.first < 0 {
					c.first = of.rows[0]
				}
				c.last = of.rows[len(of.rows)-1]
			}
		}
		if c.first >= 0 {
			all = append(all, c)
		}
	}
	within := func(row int32) int {
		return slices.IndexFunc(g.calls, func(c instance) bool { return c.rows[0] <= row && row <= c.rows[len(c.rows)-1] })
	}
	loops := map[int32]int{} // lines that call others over and over, by function
	for _, c := range all {
		if c.several {
			loops[r.functions[c.line]]++
		}
	}
	for _, a := range all {
		layers := a.several && a.list && loops[r.functions[a.line]] == 1
		for _, b := range all {
			if r.functions[a.line] == r.functions[b.line] && r.s.Frames.Get(a.line).Line < r.s.Frames.Get(b.line).Line &&
				a.last < b.first && within(a.first) != within(a.last) && (b.several || layers) {
				return true
			}
		}
	}
	return false
}

// takeTurns puts the calls together that lists of modules make, which a line calls one after another: where the modules are of
// several kinds in turn, such as attention and an MLP in one wrapper, each list has one of each.
func (r *run) takeTurns(g *group) {
	if len(g.calls) == 0 || !r.callsList(&g.calls[0]) {
		return
	}
	kinds := r.kinds(g.calls)
	n := 1 // kinds
	for n < len(kinds) && kinds[n] != kinds[0] {
		n++
	}
	if n == 1 || len(kinds) < 2*n || len(kinds)%n != 0 || g.calls[n].pass != g.calls[0].pass {
		return
	}
	for i := range kinds {
		if kinds[i] != kinds[i%n] || g.calls[i].pass != g.calls[i-i%n].pass {
			return
		}
	}
	var lists []instance
	for i := range g.calls {
		if i%n == 0 {
			lists = append(lists, g.calls[i])
			lists[len(lists)-1].rows = slices.Clone(g.calls[i].rows)
			continue
		}
		l := &lists[len(lists)-1]
		l.rows = append(l.rows, g.calls[i].rows...)
	}
	g.calls, g.turns = lists, true
}

// together are lists of which those are one that the same lines call in the same functions, as of one network that is called from
// several lines, or of two of one class.
func (d *draft) together(lists []keeper) []keeper {
	var out []keeper
	index := map[string]int{}
	for _, k := range lists {
		key := fmt.Sprint(d.first(&k.calls[0]), k.around[:d.lineOfModule(k.around)+1])
		i, ok := index[key]
		if !ok {
			index[key] = len(out)
			out = append(out, k)
			continue
		}
		out[i].saved += k.saved
		out[i].also = append(out[i].also, k)
	}
	return out
}

// ofTurns are the turns of a function's code, each of which calls one module of each of some lists, as blocks that nothing else tells
// from one loop, or several of some, in loops of its own; nil where they do not take turns.
func (d *draft) ofTurns(lists []keeper) *keeper {
	if len(lists) < 2 {
		return nil
	}
	out := slices.MinFunc(lists, func(a, b keeper) int { return a.most - b.most })
	if out.most < 2 {
		return nil
	}
	out.saved = 0
	for _, k := range lists {
		times := k.most / out.most
		if k.list != out.list || len(k.calls) != times*len(out.calls) || !d.inOneCall(k.around, out.around) {
			return nil
		}
		out.saved += k.saved
	}
	for i := range out.calls {
		last := out.calls[i].rows[0]
		for _, k := range lists {
			times := len(k.calls) / len(out.calls)
			first, c := &k.calls[i*times], &k.calls[(i+1)*times-1]
			if first.pass != out.calls[i].pass || first.rows[0] < last || c.pass != first.pass ||
				i+1 < len(out.calls) && c.rows[0] > out.calls[i+1].rows[0] {
				return nil
			}
			last = first.rows[0]
		}
	}
	out.calls, out.outer, out.staged = slices.Clone(out.calls), nil, nil
	depth := len(out.around) - 1 - d.lineOfModule(out.around)
	ofFunction := func(row int32) bool {
		same, _ := d.inside(out.around, d.stack(d.code(row)), d.code(row), depth)
		return same && d.phase(row) == inProgram
	}
	for i := range out.calls {
		c := &out.calls[i]
		rows, to := []int32{}, c.pass.rows.to
		if i+1 < len(out.calls) && out.calls[i+1].pass == c.pass {
			to = out.calls[i+1].rows[0]
		}
		for row := c.rows[0]; row < to && (ofFunction(row) || d.phase(row) == inNothing); row++ {
			rows = append(rows, row)
		}
		c.rows = rows
	}
	return &out
}

// branched are lists, of which those are one that a loop calls from several lines, by a condition, as the blocks with attention and
// those without of diffusers' UNets. A loop goes back from a later line to an earlier one. Lists from an earlier line to a later one may
// be of two loops: they are taken for one where names are of a way down or up, or there are none, and two lists are left. So are those
// whose modules a loop calls by turns, as a name of the whole way means all of them.
func (d *draft) branched(lists []keeper, names []string) []keeper {
	sure := d.joinLists(lists, func(a, b *group) bool { return d.fork(a, b) == forkBack && goesBefore(a, b) })
	if slices.ContainsFunc(names, func(name string) bool { return turn(name) < 0 }) {
		return sure
	}
	whole := !slices.ContainsFunc(names, func(name string) bool { return !ofWholeWay(name) })
	ways := slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool {
		return slices.ContainsFunc(lists, func(other keeper) bool { return d.fork(&other.group, &k.group) == forkInside })
	})
	ways = d.joinLists(ways, func(a, b *group) bool {
		switch of := d.fork(a, b); {
		case of != forkBack && of != forkOn:
			return false
		case !goesBefore(a, b):
			return whole
		default:
			return of == forkBack || d.adjoin(a, b) && d.twoClasses(a, b)
		}
	})
	if len(mainLists(slices.Clone(ways))) == 2 {
		return ways
	}
	return sure
}

// ofWholeWay reports whether a name is of all that a network has on its way down or up, and of no kind of modules.
func ofWholeWay(name string) bool {
	name = strings.ToLower(lastPart(name))
	return name == "downs" || name == "ups" || strings.HasSuffix(name, "blocks") || strings.HasSuffix(name, "layers")
}

// joinLists puts lists together that are one with those before them.
func (d *draft) joinLists(lists []keeper, one func(a, b *group) bool) (out []keeper) {
	last := -1 // of the lists, in the last of those put together
	for i, k := range lists {
		if last < 0 || !one(&lists[last].group, &k.group) {
			out, last = append(out, k), i
			continue
		}
		of := &out[len(out)-1]
		d.put(&of.group, k.calls)
		of.saved, last = of.saved+k.saved, i
		of.outer, of.staged, of.bodies = nil, nil, nil
	}
	return out
}

// fork is how the line of a list lies to that of another in the function from which both go different ways.
type fork int

const (
	forkNone   fork = iota // there is none
	forkOn                 // a later one of the same module
	forkBack               // an earlier one
	forkInside             // in a module that the function calls, as it does those of the other list
)

// inCommon is how many frames two stacks have in common, from outside.
func inCommon(a, b []snapshot.FrameID) (n int) {
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// fork is how the line of b lies to that of a.
func (d *draft) fork(a, b *group) fork {
	x, y := d.called(a), d.called(b)
	same := inCommon(x, y)
	x, y = x[:len(x)-same], y[:len(y)-same]
	if len(x) == 0 || len(y) == 0 {
		return forkNone
	}
	from, to := x[len(x)-1], y[len(y)-1]
	switch {
	case d.functions[from] != d.functions[to] || d.callsModule(x):
		return forkNone
	case d.callsModule(y):
		return forkInside
	case d.s.Frames.Get(to).Line < d.s.Frames.Get(from).Line:
		return forkBack
	}
	return forkOn
}

// goesBefore reports whether each pass calls the modules of a list before those of another.
func goesBefore(a, b *group) bool {
	first := map[*pass]int32{} // of b
	for _, y := range slices.Backward(b.calls) {
		first[y.pass] = y.rows[0]
	}
	return !slices.ContainsFunc(a.calls, func(x instance) bool {
		row, ok := first[x.pass]
		return ok && x.rows[0] > row
	})
}

// adjoin reports whether the program allocates nothing between two lists.
func (d *draft) adjoin(a, b *group) bool {
	for i := range b.calls {
		c := &b.calls[i]
		row := c.rows[0] - 1
		if c.ordinal == 0 && (row < 0 || !a.has(row)) {
			return false
		}
	}
	return true
}

// twoClasses reports whether the modules of two lists are of two classes of one file.
func (d *draft) twoClasses(a, b *group) bool {
	x, y := d.first(&a.calls[0]), d.first(&b.calls[0])
	return x != 0 && y != 0 && d.file(x) == d.file(y) && d.apart(x, y)
}

// put adds calls to those of a group, and numbers all of them as a pass makes them.
func (r *run) put(g *group, calls []instance) {
	g.calls, g.most = slices.Concat(g.calls, calls), 0
	byBirth(g.calls)
	for i := range g.calls {
		g.calls[i].ordinal = 0
	}
	r.number(g)
}

// withOthers adds to a list of torch's the modules of other classes in it that call others, as the layers before and behind the
// blocks of a MobileNet's features; not to one of several lists of a name.
func (r *run) withOthers(list group, name string) group {
	outer, _ := through(name)
	_, n := numberOf(name)
	if outer != "" || n >= 0 || !r.contains(list.around[0]) || list.outer != nil && list.outer.most == list.most {
		return list
	}
	var others []instance
	inList := func(stack []snapshot.FrameID, depth int) bool { return slices.Equal(stack[depth:], list.around) }
	for _, other := range r.modules(false, inList) {
		if other.list && !list.has(other.calls[0].rows[0]) {
			others = append(others, other.calls...)
		}
	}
	if others != nil {
		r.put(&list, others)
	}
	return list
}

// withFirst adds to a list that a name numbers beyond its end the modules of its class which the same function calls before, each from a
// line of its own, as the first of a list whose others it goes over. It is the list alone where these are not enough.
func (d *draft) withFirst(list group, to int) group {
	at := d.lineOfModule(list.around)
	function, outside := d.functions[list.around[at]], list.around[at+1:]
	var first []instance
	for _, other := range d.modules(false, func(stack []snapshot.FrameID, depth int) bool {
		return slices.Equal(stack[depth+1:], outside) && d.functions[stack[depth]] == function && stack[depth] != list.around[at]
	}) {
		if d.first(&other.calls[0]) != d.first(&list.calls[0]) || !goesBefore(&other, &list) {
			continue
		}
		for _, c := range other.calls {
			if n := len(first); n > 0 && first[n-1].pass == c.pass && c.ordinal > 0 {
				first[n-1].rows = append(first[n-1].rows, c.rows...)
				continue
			}
			c.rows = slices.Clip(c.rows) // more rows are of this call alone
			first = append(first, c)
		}
	}
	all := list
	if d.put(&all, first); to < all.most {
		return all
	}
	return list
}

// withEnds adds to stages what the list of torch's that they are in calls before the first of them, and behind the last.
func (d *draft) withEnds(stages group) group {
	at := slices.IndexFunc(stages.around[1:], d.contains) + 1
	if at == 0 {
		return stages
	}
	outer := group{around: stages.around[at:]}
	var ends []instance
	add := func(p *pass, from, to int32) {
		if rows := d.rowsUnder(&outer, from, to); len(rows) > 0 {
			depth := len(d.stack(d.code(rows[0]))) - len(outer.around)
			ends = append(ends, instance{rows: rows, pass: p, depth: depth, follows: true})
		}
	}
	for i, c := range stages.calls {
		if c.ordinal == 0 {
			add(c.pass, c.pass.rows.from, c.rows[0])
		}
		if i+1 == len(stages.calls) || stages.calls[i+1].pass != c.pass {
			add(c.pass, c.rows[len(c.rows)-1]+1, d.lastBefore(c.pass.begin)+1)
		}
	}
	d.put(&stages, ends)
	return stages
}

// callsList reports whether a call is of a list of modules.
func (r *run) callsList(c *instance) bool {
	at := r.first(c)
	return at != 0 && r.contains(at)
}

// has reports whether some call of a group allocates a row.
func (g *group) has(row int32) bool {
	return slices.ContainsFunc(g.calls, func(c instance) bool {
		_, ok := slices.BinarySearch(c.rows, row)
		return ok
	})
}

// inside reports whether the line of a group runs in modules of another.
func (g *group) inside(other *group) bool {
	more := len(g.around) - len(other.around)
	return more > 0 && slices.Equal(g.around[more:], other.around)
}

// calledBy reports whether nothing but lists of torch's is between the line of a group and that of one that it is inside of.
func (r *run) calledBy(inner, outer *group) bool {
	for depth := range len(inner.around) - len(outer.around) {
		if r.isCode(inner.around, depth) && !r.contains(inner.around[depth]) {
			return false
		}
	}
	return true
}

// layered reports whether the modules of a group are lists of torch's that have layers beside modules which call others, so that each
// is one block.
func (r *run) layered(g *group) bool {
	const clearly = 10 // of so many bytes one
	var layers int64
	var first [2][]int32 // rows of layers, and of the others
	for _, in := range r.calledIn(g, false, r.contains) {
		of := 0
		if in.list {
			of = 1
		} else {
			layers += r.keeps(&in)
		}
		for i := range in.calls {
			first[of] = append(first[of], in.calls[i].rows[0])
		}
	}
	slices.Sort(first[0])
	slices.Sort(first[1])
	both := 0 // modules
	for i := range g.calls {
		c := &g.calls[i]
		has := func(rows []int32) bool {
			at, _ := slices.BinarySearch(rows, c.rows[0])
			return at < len(rows) && rows[at] <= c.rows[len(c.rows)-1]
		}
		if has(first[0]) && has(first[1]) {
			both++
		}
	}
	return layers*clearly >= r.keeps(g) && 2*both > len(g.calls)
}

// keeps is how much passes keep of a group.
func (r *run) keeps(g *group) (n int64) {
	for i := range g.calls {
		for _, row := range g.calls[i].rows {
			if r.saved(g.calls[i].pass, row) {
				n += r.t.Lives[row].Rounded
			}
		}
	}
	return n
}
