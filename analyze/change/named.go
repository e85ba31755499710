package change

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// A user names lists of modules as the program does. Stacks have no such names: what lists there are is compared with the words, and
// which were taken is said with the answer.

// named takes modules for those that a change names, but for lines.
func (d *draft) named(c *Change, a *Applied, refuse refusal) (map[string][]group, error) {
	lists := *c
	lists.modules = slices.DeleteFunc(slices.Clone(c.modules), modules.isMiddle)
	out, err := d.namedLists(&lists, a, refuse)
	if err != nil || len(lists.modules) == len(c.modules) {
		return out, err
	}
	if out == nil {
		out = map[string][]group{}
	}
	for _, m := range c.modules {
		if !m.isMiddle() {
			continue
		}
		if out[m.name] = d.middle(m); out[m.name] == nil {
			return nil, refuse(NoName)
		}
		for name := range out {
			if name != m.name {
				out[name] = d.without(out[name], out[m.name])
			}
		}
		a.takenFor(m.name, &out[m.name][0])
	}
	a.assumeOnce(OneOfLists)
	return out, nil
}

// namedLists takes lists of modules for those that a change names, where there are as many of them as names.
func (d *draft) namedLists(c *Change, a *Applied, refuse refusal) (map[string][]group, error) {
	var names []string
	for _, m := range c.modules {
		if !strings.Contains(m.name, ":") && !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	lists, guess, err := d.nested(c, names, refuse)
	if err != nil {
		return nil, err
	}
	if lists == nil {
		lists, guess = d.towers(c, names), true
	}
	take := func(of map[string][]group) {
		for _, name := range names {
			for i := range of[name] {
				a.takenFor(name, &of[name][i])
			}
		}
	}
	if lists != nil {
		if take(lists); guess {
			a.assume(OneOfLists)
		}
		return lists, nil
	}
	everything := slices.Equal(names, []string{everyList})
	kept, guessed := d.candidates(names, everything)
	other := func(k keeper) bool {
		return slices.ContainsFunc(names, func(name string) bool { return !d.ofInner(&k.group, name) })
	}
	if !slices.ContainsFunc(kept, other) {
		kept = d.withLists(kept)
	}
	switch {
	case len(kept) == 0:
		return nil, refuse(NoModules)
	case slices.ContainsFunc(c.modules, modules.isEnd):
		return nil, refuse(NoName)
	case everything:
		return map[string][]group{everyList: d.allOf(kept, a)}, nil
	}
	if at := partOf(names[0]); at >= 0 && len(names) == 1 {
		parts := d.partsOf(kept, at)
		if outer, _ := through(names[0]); outer != "" || parts == nil && !strings.Contains(names[0], ".") {
			return nil, refuse(NoModules)
		}
		if guessed = true; parts != nil {
			kept = parts
		}
	}
	var named map[string][]keeper
	parts, guess := d.attributes(c, names), true
	if !d.haveAll(parts, kept) {
		named = d.ofParts(kept, names)
		if named == nil {
			named, guess = d.choose(kept, c, names)
		}
		if named == nil {
			named, guess = d.chooseTogether(kept, c, names), true
		}
		if named == nil {
			named, guess = d.numbered(d.within(kept), c, names), true
		}
	}
	if len(named) == 0 {
		if parts == nil {
			parts = d.inOneList(kept, c, names)
		}
		if parts == nil {
			return nil, d.ambiguous(c, kept)
		}
		take(parts)
		a.assume(OneOfLists)
		return parts, nil
	}
	guessed = guessed || guess
	out := map[string][]group{}
	for _, name := range names {
		for i := range named[name] {
			g, sure := d.modulesOf(&named[name][i].group, name)
			if c.itself(name) {
				g, sure = d.outermost(g, kept), false
			} else {
				g = d.withOthers(g, name)
			}
			guessed = guessed || !sure
			out[name] = append(out[name], g)
			a.takenFor(name, &g)
		}
	}
	if guessed {
		a.assume(OneOfLists)
	}
	return out, nil
}

// attributes takes modules that one call of a module makes, from a line each, for names that are as many, in that order: parts of a network
// with an attribute each, as the ways down and up of a U-Net often are. Of more they are those that call others, where these are as many,
// and not its last convolution. It is nil where there are not as many anywhere, of which most keep something, or several times. One that
// keeps nothing has a name, and no group.
func (d *draft) attributes(c *Change, names []string) map[string][]group {
	const least, deep = 3, 4 // names, and calls of modules around
	if len(names) < least || slices.ContainsFunc(c.modules, func(m modules) bool { return m.within || m.to >= 0 }) {
		return nil
	}
	for level := range deep {
		found := d.lines(func(stack []snapshot.FrameID, depth int) bool {
			calls := 0
			for _, id := range stack[depth+1:] {
				if frames.Of(d.s, id).IsModuleCall() {
					calls++
				}
			}
			return calls == level
		})
		for i, lines := range found {
			if len(lines) > len(names) {
				layer := func(groups []group) bool { return !slices.ContainsFunc(groups, func(g group) bool { return g.list }) }
				found[i] = slices.DeleteFunc(lines, layer)
			}
		}
		found = slices.DeleteFunc(found, func(lines [][]group) bool {
			keep := 0
			for _, groups := range lines {
				keep += min(len(groups), 1)
			}
			return len(lines) != len(names) || 2*keep <= len(names)
		})
		switch len(found) {
		case 0:
			continue
		case 1:
			out := map[string][]group{}
			for i, groups := range found[0] {
				out[names[i]] = groups
			}
			return out
		default:
			return nil
		}
	}
	return nil
}

// haveAll reports whether some of the attributes of a network are modules that have all of some lists.
func (d *draft) haveAll(parts map[string][]group, lists []keeper) bool {
	return len(parts) > 0 && !slices.ContainsFunc(lists, func(k keeper) bool {
		for _, groups := range parts {
			if slices.ContainsFunc(groups, func(g group) bool { return g.has(k.calls[0].rows[0]) }) {
				return false
			}
		}
		return true
	})
}

// inOneList are the modules of the only list that has so many, for names that differ in the numbers that they end with, from 0 or 1 on:
// they may be attributes that a loop goes through, as layers that torch.nn.Module.add_module has named (torch/nn/modules/module.py). It is
// nil where there is not one such list.
func (d *draft) inOneList(lists []keeper, c *Change, names []string) map[string][]group {
	first, most := counted(names)
	if first < 0 || slices.ContainsFunc(c.modules, func(m modules) bool { return m.within }) {
		return nil
	}
	least := min(first, 1)
	lists = slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool { return k.most != most-least+1 })
	if len(lists) != 1 {
		return nil
	}
	out := map[string][]group{}
	for _, name := range names {
		_, n := numberOf(name)
		list := &lists[0].group
		out[name] = []group{d.in(list, list, n-least)}
	}
	return out
}

// lines are the modules that lines call which a filter takes, each line's as one, in the order of the calls, by the call of a module that
// they are made in; those of a line that keep nothing are none.
func (d *draft) lines(takes func(stack []snapshot.FrameID, depth int) bool) (out [][][]group) {
	groups, keeps := map[string][]group{}, map[string]bool{} // by line, and by what is around
	around := func(line []snapshot.FrameID) string { return fmt.Sprint(line[1+max(d.moduleCall(line[1:]), 0):]) }
	for _, g := range d.modules(false, takes) {
		line := fmt.Sprint(g.around)
		groups[line], keeps[around(g.around)] = append(groups[line], d.whole(g)), true
	}
	codes, seen, at := map[snapshot.StackID]bool{}, map[string]bool{}, map[string]int{} // and lines, and by what is around
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		code := d.code(row)
		if codes[code] || d.phase(row) != inProgram {
			continue
		}
		codes[code] = true
		stack := d.stack(code)
		depth := d.callIn(stack, takes)
		if depth < 0 {
			continue
		}
		of, line := around(stack[depth:]), fmt.Sprint(stack[depth:])
		if !keeps[of] || seen[line] {
			continue
		}
		if seen[line] = true; at[of] == 0 {
			out = append(out, nil)
			at[of] = len(out)
		}
		out[at[of]-1] = append(out[at[of]-1], append([]group{}, groups[line]...))
	}
	return out
}

// candidates are the lists that names may be of, and whether that is guessed: those that keep little are none, unless there are as many
// names as lists, or one name is of the second of two, or of one side of a retriever. Nor are modules that compute losses, as of outputs of
// several sizes.
func (d *draft) candidates(names []string, everything bool) (kept []keeper, guessed bool) {
	all := d.besidesLosses(d.keeping(d.lists()))
	if len(all) == 0 && !everything {
		all = d.keeping(d.outerLists())
	}
	if !everything {
		if all, guessed = d.ofMethods(all, names); !guessed {
			all = d.branched(all, names)
		}
	}
	if len(names) == 1 && len(all) == 2 {
		if at := side(names[0]); at >= 0 {
			return all[at : at+1], true
		}
		if isOther(names[0]) && d.ofOneModule(all) {
			return all[1:], true
		}
	}
	if kept = mainLists(slices.Clone(all)); len(kept) < len(names) && len(names) == len(all) {
		return all, guessed
	}
	return kept, guessed
}

// besidesLosses are lists but for those whose modules compute losses, unless all do.
func (d *draft) besidesLosses(lists []keeper) []keeper {
	out := slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool { return slices.ContainsFunc(k.calls[0].rows, d.inLoss) })
	if len(out) == 0 {
		return lists
	}
	return out
}

// ofMethods are lists, with those that a method goes through which no module calls, as log_prob of a flow, instead of the smaller part
// of these that each of their modules calls once; and whether there are such. The function that trains calls the method, and does not
// go through them itself: it may call one model of which a loop shows, as any may where calls don't begin and end alike. The lists are
// the method's own, so that their names are no paths.
func (d *draft) ofMethods(lists []keeper, names []string) (out []keeper, some bool) {
	if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, ".") }) {
		return lists, false
	}
	trains := map[int32]bool{} // by function
	for i := range d.phases {
		if d.phases[i] == inOptimizer {
			for _, id := range d.stack(snapshot.StackID(i)) {
				trains[d.functions[id]] = trains[d.functions[id]] || !frames.Of(d.s, id).IsLibrary()
			}
		}
	}
	ofTraining := func(id snapshot.FrameID) bool { return trains[d.functions[id]] }
	out = slices.Clone(lists)
	for _, outer := range d.keeping(d.outerLists()) {
		line := d.called(&outer.group)
		at := slices.IndexFunc(out, func(k keeper) bool { return d.callsOnce(&outer, &k) })
		if at < 0 || ofTraining(line[0]) || !slices.ContainsFunc(line, ofTraining) || d.comesAgain(&outer.group) {
			continue
		}
		out[at], some = outer, true
		out = slices.DeleteFunc(out, func(k keeper) bool { return k.inside(&outer.group) })
	}
	return out, some
}

// callsOnce reports whether each module of a list calls one of another itself, which keep clearly less, and all begin and end alike.
func (d *draft) callsOnce(outer, list *keeper) bool {
	if !list.inside(&outer.group) || list.most != outer.most || list.saved*5 >= outer.saved*4 {
		return false
	}
	between := list.around[:len(list.around)-len(outer.around)]
	ends := func(c *instance) [2]snapshot.StackID {
		return [2]snapshot.StackID{d.code(c.rows[0]), d.code(c.rows[len(c.rows)-1])}
	}
	like := ends(&outer.calls[0])
	return !d.callsModule(between[d.moduleCall(between)+1:]) &&
		!slices.ContainsFunc(outer.calls, func(c instance) bool { return ends(&c) != like })
}

// allOf are the modules of all lists, or the turns of the loops that those have.
func (d *draft) allOf(lists []keeper, a *Applied) (out []group) {
	for i := range lists {
		g := lists[i].group
		if g.bodies != nil {
			g.calls, g.most = g.bodies, 0
			d.number(&g)
		}
		out = append(out, g)
		if g.loops || g.bodies != nil {
			a.assumeOnce(OneOfLists)
		}
	}
	return out
}

// modulesOf are the modules of a list that a name means: the list's own, stages of it, or those of a list in it; and whether that is sure.
func (d *draft) modulesOf(list *group, name string) (g group, sure bool) {
	last, inList := strings.ToLower(lastPart(name)), ofListsInList(name)
	g, sure = d.meant(list, name)
	if strings.HasSuffix(name, ".*") { // of all in the modules of a list
		return *list, sure && list.outer != nil
	}
	if stages := d.bySize(&g, name); stages != nil && g.most == list.most {
		if sure = false; strings.Contains(last, "stage") || d.ofStages(&g, name) {
			g = d.withEnds(*stages)
		}
	}
	if g.outer != nil {
		if g.outer.most < g.most || !inList && g.outer.most > g.most {
			return g, sure && !inList
		}
		if g.outer.most > g.most {
			g = *g.outer
		}
		g.outer = nil // it is no list of lists of these
	}
	times := 1
	again := d.comesAgain(&g) // then it is all of a network
	if again {
		times = g.most
	}
	blocks := strings.Contains(last, "block")
	if !again && !inList && !blocks {
		return g, sure
	}
	// Modules that have lists may be blocks, or have some each.
	list, inside := d.nest(&g)
	if (again || g.loops || d.ofInner(&g, name)) && len(inside) == 1 && inside[0].most%times == 0 {
		return inside[0].each(times), false
	}
	return g, sure && !inList && list == nil
}

// ofParts takes the turns of code that calls one module of each of some lists for the modules of a name, or one of two lists for the part
// of blocks that it is of; nil where lists take no turns, or a name tells them apart.
func (d *draft) ofParts(lists []keeper, names []string) map[string][]keeper {
	if len(names) != 1 {
		return nil
	}
	name := names[0]
	if _, n := numberOf(name); n >= 0 || turn(name) >= 0 || half(name) >= 0 || isOther(name) {
		return nil
	}
	turns, at := d.ofTurns(lists), partOf(name)
	switch {
	case turns == nil:
		return nil
	case at < 0:
		return map[string][]keeper{name: {*turns}}
	case len(lists) == 2:
		return map[string][]keeper{name: lists[at : at+1]}
	}
	return nil
}

// choose takes lists for those of names, by name, and says whether that is guessed; nil where nothing tells which.
func (d *draft) choose(kept []keeper, c *Change, names []string) (named map[string][]keeper, guessed bool) {
	all := kept
	if named = d.numbered(kept, c, names); named != nil {
		if len(named) == 0 {
			return nil, true
		}
		return named, true
	}
	if len(names) == 1 && len(kept) > 1 && ofImages(names[0]) != nil { // which tells more than what they keep
		if tower := d.tower(kept, names[0]); tower != nil {
			return map[string][]keeper{names[0]: {*tower}}, true
		}
	}
	if len(kept) > len(names) {
		kept, guessed = d.outstanding(kept, c, names), true
		if ways := d.ways(all, names); ways != nil && len(kept) > len(names) {
			if kept = ways; len(ways) > len(names) {
				kept = d.outstanding(ways, c, names)
			}
		}
	}
	if len(names) == 1 && len(kept) > 1 && d.ofOneClass(kept) {
		if tower := d.tower(kept, names[0]); tower != nil {
			kept, guessed = []keeper{*tower}, true
		}
	}
	switch {
	case len(kept) == len(names):
		named = map[string][]keeper{}
		way := func(name string) int { return max(half(name), turn(name)) }
		back := len(names) == 2 && way(names[0]) == 1 && way(names[1]) == 0
		for i, name := range names {
			if back {
				i = 1 - i
			}
			named[name] = kept[i : i+1]
		}
		return named, guessed
	case len(names) == 1 && strings.Contains(names[0], ".") && !d.ofOneModule(kept) && !d.ofOneLine(kept) && d.ofOneName(kept):
		return map[string][]keeper{names[0]: mostOfLine(kept)}, true // a path is of one module
	case len(names) == 1 && c.wholeLists() && d.ofOneName(kept) && (turn(names[0]) < 0 || d.ofOneLine(kept)):
		return map[string][]keeper{names[0]: kept}, guessed
	}
	return nil, guessed
}

// chooseTogether is choose for lists of which some are one of the program's; nil where nothing tells which.
func (d *draft) chooseTogether(kept []keeper, c *Change, names []string) map[string][]keeper {
	named, _ := d.choose(d.together(kept), c, names)
	for name, of := range named {
		named[name] = slices.Clone(of)
		for _, k := range of {
			named[name] = append(named[name], k.also...)
		}
	}
	return named
}

// within are the lists in modules that a line calls several of, or one several times, as a network is given two views of an image: what is
// numbered there is in each call.
func (d *draft) within(kept []keeper) (out []keeper) {
	for i := range kept {
		k := &kept[i].group
		for _, in := range d.keeping(d.calledIn(k, true, d.contains)) {
			if in.list && in.most%k.most == 0 && k.has(in.calls[0].rows[0]) {
				in.group = in.each(k.most)
				out = append(out, in)
			}
		}
	}
	return out
}

// comesAgain reports whether the modules of a group are one, which a pass calls several times: most gradients are added to of those whose
// sizes tell, by number and by bytes.
func (d *draft) comesAgain(g *group) bool {
	if len(g.calls) == 0 {
		return false
	}
	p := g.calls[0].pass
	weights := d.weights(p, d.loopOf(p))
	var all, added int64
	more := 0 // are added to than are not
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.gradient(row) && d.t.Lives[row].Born >= p.begin && weights[d.t.Lives[row].Requested] {
			more--
			all += d.sizes[row]
			if _, ok := d.run.parts[row]; ok || len(d.addends(row)) > 1 {
				more += 2
				added += d.sizes[row]
			}
		}
	}
	return 2*added > all && more > 0 || d.copiesOnce(g)
}

// copiesOnce reports whether torch.autocast copies weights for the first module of a group alone in a pass, and the others have as many
// products: they are one, whose copies it keeps (aten/src/ATen/autocast_mode.cpp: cached_cast). A gradient is then made of that of its
// copy, to which the calls have added theirs.
func (d *draft) copiesOnce(g *group) bool {
	products := 0 // the most of one so far, as copies are told by fewer than all in some
	for i := range g.calls {
		c, of := &g.calls[i], 0
		if c.pass != g.calls[0].pass {
			break
		}
		copies, _ := d.weightCopies(span{c.rows[0], c.rows[len(c.rows)-1] + 1}, 0)
		for _, row := range c.rows {
			if by, _ := d.precision(row); by == frames.Weighs && d.outlasts(row) && !copies[row] {
				of++
			}
		}
		if products = max(products, of); of < products || (len(copies) > 0) != (c.ordinal == 0) {
			return false
		}
	}
	return g.most > 1
}

// each numbers the calls of a list anew in each of so many calls of the network that has it.
func (g group) each(times int) group {
	g.calls = slices.Clone(g.calls)
	for i := range g.calls {
		g.calls[i].ordinal %= g.most / times
	}
	return g
}

// takenFor says that the modules of a group are taken for those of a name.
func (a *Applied) takenFor(name string, g *group) {
	if v := (Assumption{Kind: TakenFor, Name: name, Line: g.line}); !slices.Contains(a.Assumptions, v) {
		a.Assumptions = append(a.Assumptions, v)
	}
}

// ambiguous refuses a name of several lists, and names their lines.
func (d *draft) ambiguous(c *Change, lists []keeper) *RefusedError {
	no := &RefusedError{Change: c.Text, Lacks: ManyLines}
	for i := range lists {
		line, _, _ := strings.Cut(lists[i].line, " ")
		text := fmt.Sprintf("%s=%s.%s", Checkpoint, line, c.which())
		g, _ := d.meant(&lists[i].group, "")
		if at := slices.Index(no.Lines, text); at >= 0 {
			no.Counts[at] = max(no.Counts[at], g.most)
			continue
		}
		no.Lines, no.Counts = append(no.Lines, text), append(no.Counts, g.most)
	}
	return no
}

// meant is the list that a name means, of lists in a list: stages are the outer one, and blocks the inner. Of stages that nothing but
// kinds of blocks tells of that is not sure, nor of another name; where the program itself goes over lists, with something else
// between, it is taken for what it goes over.
func (d *draft) meant(g *group, name string) (list group, sure bool) {
	switch name = strings.ToLower(name); {
	case g.staged != nil && strings.Contains(lastPart(name), "stage") && d.ofOneSize(g, g.staged):
		return *g.staged, false
	case g.outer == nil:
		return *g, !g.loops
	case strings.Contains(lastPart(name), "block"):
		return *g, !g.loops || g.outer.most < g.most
	case strings.Contains(lastPart(name), "stage"):
		return *g.outer, !g.loops || g.outer.most < g.most
	case g.outer.interrupted(), g.outer.most < g.most && d.ofStages(g, name):
		return *g.outer, false
	}
	return *g, false
}

// wholeLists reports whether a change is of all modules of the lists that it names.
func (c *Change) wholeLists() bool {
	return !slices.ContainsFunc(c.modules, func(m modules) bool { return m.to >= 0 })
}

// ofAllModules reports whether a change is of all modules that are called in a loop, as far as its names tell: none numbers lists, or is
// of a part.
func (c *Change) ofAllModules() bool {
	return c.wholeLists() && !slices.ContainsFunc(c.modules, func(m modules) bool {
		outer, _ := through(m.name)
		_, n := numberOf(m.name)
		return outer != "" || n >= 0 || partOf(m.name) >= 0
	})
}

// itself reports whether a change names a part of a network that is a module of its own, and not those in it.
func (c *Change) itself(name string) bool {
	return slices.Contains([]string{"encoder", "decoder", "backbone"}, strings.ToLower(lastPart(name))) &&
		!slices.ContainsFunc(c.modules, func(m modules) bool { return m.name == name && m.within })
}

// outermost is the module whose code, or list of torch's, a list is of, where that is a part of a network: another module calls it, or
// it has not all of the lists.
func (d *draft) outermost(list group, all []keeper) group {
	call := d.moduleCall(list.around)
	if call < 0 {
		return list
	}
	line := call
	for line < len(list.around) && !d.isCode(list.around, line) {
		line++
	}
	if line == len(list.around) {
		return list
	}
	around := list.around[line:]
	if !d.inModule(around, 0) && !slices.ContainsFunc(all, func(k keeper) bool { return !k.inside(&group{around: around}) }) {
		return list
	}
	row := list.calls[0].rows[0]
	for _, g := range d.modules(false, func(stack []snapshot.FrameID, depth int) bool { return slices.Equal(stack[depth:], around) }) {
		if g.has(row) {
			if g.most > 1 && d.callsList(&g.calls[0]) {
				g = d.whole(g)
			}
			g.line = d.lineOf(around, d.lineOfModule(around))
			return g
		}
	}
	return list
}

// which are the modules of a list that a change names, "*" for all and where it names several lists.
func (c *Change) which() string {
	switch m := c.modules[0]; {
	case len(c.modules) > 1 || m.to < 0:
		return "*"
	case m.from == m.to:
		return fmt.Sprint(m.from)
	default:
		return fmt.Sprintf("%d-%d", m.from, m.to)
	}
}

// ofListsInList reports whether a name is of the lists that each module of a list has, as stages.*.blocks.
func ofListsInList(name string) bool { return strings.Contains(name, ".*.") }

// ofInner reports whether a name is of lists in the modules of a list, if these have such: modules of timm's and of transformers' that
// have blocks have another name themselves.
func (r *run) ofInner(g *group, name string) bool {
	last := strings.ToLower(lastPart(name))
	return ofListsInList(name) || strings.Contains(last, "block") && r.inCode(g, timm) || last == "blocks" && r.inCode(g, transformers)
}

// withLists are those of some lists whose modules have lists, all where none have.
func (d *draft) withLists(lists []keeper) []keeper {
	out := slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool { list, _ := d.nest(&k.group); return list == nil })
	if len(out) == 0 {
		return lists
	}
	return out
}

// everyList stands for all lists of modules.
const everyList = "*"

// outstanding are, of more lists than are named, those that have as many modules as are named, or modules of the program's own, or
// that keep much more than the others; of two of one module, the one whose turn a name tells; those that make images smaller or
// larger as a name says; all where nothing tells.
func (d *draft) outstanding(kept []keeper, c *Change, names []string) []keeper {
	const more = 3 // times as much
	if d.ofOneLine(kept) && d.comesAgain(&kept[0].group) {
		return kept // of one network that is called from several lines
	}
	if len(names) == 1 {
		if kept = d.ofRival(kept, names[0]); len(kept) == 1 {
			return kept
		}
		if at := d.stream(names[0], kept[0].around[0]); at >= 0 && len(kept) == 2 && d.ofOneModule(kept) {
			return kept[at : at+1]
		}
		begins := func(k keeper) bool { return d.convolves(k.calls[0].rows[0]) }
		halves := slices.DeleteFunc(slices.Clone(kept), begins) // it comes before them
		if strings.HasPrefix(strings.ToLower(lastPart(names[0])), "conv") && len(halves) == len(kept)-1 {
			return slices.DeleteFunc(slices.Clone(kept), func(k keeper) bool { return !begins(k) })
		}
		if at := half(names[0]); at >= 0 && len(halves) == 2 && d.alongside(halves[0].around, halves[1].around) {
			return halves[at : at+1]
		} else if at >= 0 && len(halves) == 1 && !slices.ContainsFunc(halves[0].calls[0].rows, d.convolves) {
			return halves // as of Wav2Vec2, whose convolutions make features of a wave
		}
		for beyond := range 2 { // one module more may be called before the list, see withFirst
			long := slices.DeleteFunc(slices.Clone(kept), func(k keeper) bool {
				return slices.ContainsFunc(c.modules, func(m modules) bool { return m.to >= k.most+beyond })
			})
			if len(long) == 1 {
				return long
			}
		}
	}
	if own := slices.DeleteFunc(slices.Clone(kept), func(k keeper) bool { return d.ofTorchs(&k.group) }); len(own) == len(names) {
		return own
	}
	if len(names) == 1 && turn(names[0]) < 0 && half(names[0]) < 0 && d.ofOneModule(kept) && d.ofOneClass(kept) {
		if isOther(names[0]) {
			return kept[1:2]
		}
		return kept[:1]
	}
	by := slices.Clone(kept)
	sorting.Stable(by, func(a, b keeper) int { return cmp.Compare(b.saved, a.saved) })
	least := by[len(names)-1].saved
	if least < more*by[len(names)].saved {
		at := turn(names[0])
		if at < 0 || len(names) > 1 {
			return kept
		}
		if len(kept) == 2 && d.ofOne(kept[0].around, kept[1].around) {
			return kept[at : at+1]
		}
		right := slices.DeleteFunc(slices.Clone(kept), func(k keeper) bool { return !d.goesOneWay(&k, at == 1) })
		if len(right) > 0 {
			return right
		}
		return kept
	}
	return slices.DeleteFunc(slices.Clone(kept), func(k keeper) bool { return k.saved < least })
}

// ofTorchs reports whether the modules of a group are lists of torch's own modules, and of none of the program's.
func (r *run) ofTorchs(g *group) bool {
	return r.callsList(&g.calls[0]) && !slices.ContainsFunc(g.calls, func(c instance) bool {
		return slices.ContainsFunc(c.rows, func(row int32) bool {
			inside := r.stack(r.code(row))[:r.depthAt(&c, row)]
			own := func(id snapshot.FrameID) bool { return !frames.Of(r.s, id).IsLibrary() }
			return slices.ContainsFunc(inside, own)
		})
	})
}

// ofOneName reports whether lists are likely to have one name, since they have one class of modules, or are of one model of
// transformers'.
func (d *draft) ofOneName(lists []keeper) bool {
	same := func(a, b *group) bool {
		x, own := d.first(&a.calls[0]), d.file(a.around[0])
		ofProgram := x != 0 && !frames.Of(d.s, x).IsLibrary()
		return ofProgram && x == d.first(&b.calls[0]) || strings.HasPrefix(own, transformers) && own == d.file(b.around[0])
	}
	return !slices.ContainsFunc(lists, func(k keeper) bool { return !same(&lists[0].group, &k.group) })
}

// ofOneLine reports whether lists are of one line, that is called from several others.
func (d *draft) ofOneLine(lists []keeper) bool {
	return !slices.ContainsFunc(lists, func(k keeper) bool { return k.line != lists[0].line })
}

// goesOneWay reports whether the last module of a list keeps clearly more than the first, as of those that make images larger, or less.
func (d *draft) goesOneWay(k *keeper, more bool) bool {
	const clearly = 1.25
	at := slices.IndexFunc(k.calls, func(c instance) bool { return c.ordinal == k.most-1 }) // of a pass with all of them
	first, last := float64(d.keptOf(&k.calls[at-k.most+1])), float64(d.keptOf(&k.calls[at]))
	if more {
		return last > clearly*first
	}
	return first > clearly*last
}

// ofOne reports whether two lines run in one call of a module.
func (d *draft) ofOne(a, b []snapshot.FrameID) bool {
	for k := 1; k <= min(len(a), len(b)) && a[len(a)-k] == b[len(b)-k]; k++ {
		if frames.Of(d.s, a[len(a)-k]).IsModuleCall() {
			return true
		}
	}
	return false
}

// alongside reports whether two lines run in one call of a module, or in modules that one function of the program calls.
func (d *draft) alongside(a, b []snapshot.FrameID) bool {
	if d.ofOne(a, b) {
		return true
	}
	k := 1
	for k < min(len(a), len(b)) && a[len(a)-k] == b[len(b)-k] {
		k++
	}
	return d.functions[a[len(a)-k]] == d.functions[b[len(b)-k]]
}

// ofOneModule reports whether lists are called from one call of a module, which cannot have several of one name.
func (d *draft) ofOneModule(lists []keeper) bool {
	module := func(k *keeper) []snapshot.FrameID {
		return k.around[max(d.moduleCall(k.around), 0):]
	}
	return !slices.ContainsFunc(lists, func(k keeper) bool { return !slices.Equal(module(&k), module(&lists[0])) })
}

// mostOfLine are the lists of the line that keeps most.
func mostOfLine(lists []keeper) []keeper {
	saved := map[string]int64{}
	for _, k := range lists {
		saved[k.line] += k.saved
	}
	most := slices.MaxFunc(lists, func(a, b keeper) int { return cmp.Compare(saved[a.line], saved[b.line]) }).line
	return slices.DeleteFunc(slices.Clone(lists), func(k keeper) bool { return k.line != most })
}

// ofOneClass reports whether the modules of lists run one function.
func (d *draft) ofOneClass(lists []keeper) bool {
	return !slices.ContainsFunc(lists, func(k keeper) bool { return d.first(&k.calls[0]) != d.first(&lists[0].calls[0]) })
}

// isOther reports whether a name is of the second of two lists of a module, as blocks_token_only is beside blocks.
func isOther(name string) bool {
	name = strings.ToLower(lastPart(name))
	_, n := numberOf(name)
	return n < 0 && (strings.HasPrefix(name, "blocks_") || strings.HasPrefix(name, "layers_"))
}

// half is which half of a model that reads and then writes a list's name says that it is of: its encoder 0, its decoder 1; -1 for others.
func half(name string) int {
	return slices.IndexFunc([]string{"encoder", "decoder"}, func(part string) bool {
		return slices.Contains(strings.Split(strings.ToLower(name), "."), part)
	})
}

// turn is which of two lists a program runs first and then that one is named for: an encoder 0, a decoder 1; -1 for others.
func turn(name string) int {
	name = strings.ToLower(name)
	is := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return strings.HasPrefix(name, word) || strings.HasPrefix(lastPart(name), word)
		})
	}
	switch {
	case is("enc", "down"):
		return 0
	case is("dec", "up"):
		return 1
	}
	return -1
}

// partOf is which of the two parts of a block a name ends with: its attention 0, what comes behind that 1; -1 for other names.
func partOf(name string) int {
	switch strings.ToLower(lastPart(name)) {
	case "att", "attn", "attention", "self_attn", "self_attention", "mixer":
		return 0
	case "mlp", "ffn", "ff", "feed_forward", "feedforward":
		return 1
	}
	return -1
}

// partsOf are, of each list of blocks, the modules of one of the two parts that each block has; nil where some list has others.
func (d *draft) partsOf(lists []keeper, at int) []keeper {
	var out []keeper
	for i := range lists {
		list := &lists[i].group
		parts := d.calledIn(list, false, func(snapshot.FrameID) bool { return false })
		parts = slices.DeleteFunc(parts, func(g group) bool { return !g.list || g.most < list.most })
		if len(parts) != 2 {
			return nil
		}
		sorting.Stable(parts, func(a, b group) int { return cmp.Compare(a.calls[0].rows[0], b.calls[0].rows[0]) })
		out = append(out, d.keeping(parts[at:at+1])...)
	}
	return out
}

// calledIn are the modules that the modules of a group call themselves, from any function of theirs, or through modules whose code a
// filter takes; where it descends, those in a list of modules that they call.
func (r *run) calledIn(g *group, descend bool, through func(id snapshot.FrameID) bool) []group {
	return r.modules(descend, func(stack []snapshot.FrameID, depth int) bool {
		around := len(stack) - len(g.around)
		if depth >= around || !slices.Equal(stack[around:], g.around) {
			return false
		}
		calls := 0
		for k := around - 1; k > depth; k-- {
			switch {
			case frames.Of(r.s, stack[k]).IsModuleCall():
				calls++
			case calls > 1 && r.isCode(stack, k) && !through(stack[k]):
				return false
			}
		}
		return true
	})
}

// keeper is a group with what its calls keep for backward.
type keeper struct {
	group
	saved int64    // by those of also, too
	also  []keeper // lists that are the same of the program's, see together
}

// mainLists are lists but for those that keep so many times less than another that they are taken for none.
func mainLists(lists []keeper) []keeper {
	const small = 20
	var most int64
	for i := range lists {
		most = max(most, lists[i].saved)
	}
	return slices.DeleteFunc(lists, func(k keeper) bool { return k.saved*small < most })
}

// keeping are the groups that keep anything.
func (d *draft) keeping(groups []group) []keeper {
	var out []keeper
	for i := range groups {
		k := keeper{group: groups[i]}
		for i := range k.calls {
			k.saved += d.keptOf(&k.calls[i])
		}
		if k.saved > 0 {
			out = append(out, k)
		}
	}
	return out
}

// keptOf is what a pass keeps of a call for backward.
func (d *draft) keptOf(c *instance) (n int64) {
	for _, row := range c.rows {
		if d.saved(c.pass, row) {
			n += d.sizes[row]
		}
	}
	return n
}
