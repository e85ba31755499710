package change

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Stacks have no names of modules (snapshot/SPEC.md 2.9): a module is known by the line that calls it. One line in a
// loop calls many.

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
	// staged are the stages that blocks of a list of torch's may be of by their kinds, where nothing else tells; else nil.
	staged *group
	loops  bool // the modules call others in loops of their own, which may be meant
	turns  bool // the modules are lists, see takeTurns
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

// number counts the calls of a group in each pass that keep something for it, or for one behind it, and drops the others, as those of
// an evaluation.
func (r *run) number(g *group) {
	for i := range g.calls {
		c := &g.calls[i]
		if !slices.ContainsFunc(c.rows, func(row int32) bool { return r.saved(c.pass, row) }) {
			c.pass = r.goneThrough(c)
		}
	}
	g.calls = slices.DeleteFunc(g.calls, func(c instance) bool { return c.pass == nil })
	for i := range g.calls {
		if c := &g.calls[i]; i > 0 && g.calls[i-1].pass == c.pass {
			c.ordinal = g.calls[i-1].ordinal + 1
		}
		g.most = max(g.most, g.calls[i].ordinal+1)
	}
}

// goneThrough is the pass that goes back through a call which was made for another before it, nil for none.
func (r *run) goneThrough(c *instance) *pass {
	for _, row := range c.rows {
		if p := r.savedBehind(c.pass, row); p != nil {
			return p
		}
	}
	return nil
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

// wrapsForward is the function that stands between a layer of transformers' and its code
// (transformers/modeling_layers.py).
const wrapsForward = "forward_with_checkpointing"

// isCode reports whether a frame is of code, and not of what stands between a call and that.
func (r *run) isCode(stack []snapshot.FrameID, depth int) bool {
	id := stack[depth]
	c := frames.Of(r.s, id)
	return c.Has(frames.Python) && c.Origin() != frames.Plumbing && c.Part() != frames.ModuleWrapper &&
		c.Part() != frames.Wrapper && r.name(id) != "__call__" && r.name(id) != wrapsForward
}

// contains reports whether a frame is in a list of modules that torch runs one after another (torch/nn/modules/container.py).
func (r *run) contains(id snapshot.FrameID) bool {
	return frames.Of(r.s, id).IsLibrary() && frames.Base(r.s.Strings.Get(r.s.Frames.Get(id).File)) == "container.py"
}

// inModule reports whether a frame runs in a call of a module.
func (r *run) inModule(stack []snapshot.FrameID, depth int) bool {
	return r.callsModule(stack[depth+1:])
}

// callsModule reports whether frames go through a call of a module.
func (r *run) callsModule(stack []snapshot.FrameID) bool { return r.moduleCall(stack) >= 0 }

// moduleCall is the depth of the innermost call of a module that frames go through, -1 for none.
func (r *run) moduleCall(stack []snapshot.FrameID) int {
	return slices.IndexFunc(stack, func(id snapshot.FrameID) bool { return frames.Of(r.s, id).IsModuleCall() })
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
