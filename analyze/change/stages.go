package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Stages of a network are modules with a list of blocks each. Where one line calls all of the blocks, what the blocks do tells where
// a stage begins.

// stages divides the calls of a list whose modules may have lists of their own by the function that these run: where it is
// another, or at an earlier line than before, or where the line calls something else between, the next has begun. Blocks of which
// nothing but their kinds tells that are divided by these. It is nil where that tells of none.
func (r *run) stages(g *group) *group {
	var parts []listed
	even := r.even(g) || r.inTurns(g)
	for i := range g.calls {
		c := &g.calls[i]
		for k, row := range c.rows {
			at := r.inListed(c, k)
			if n := len(parts); n == 0 || parts[n-1].call.pass != c.pass || k == 0 && !c.follows ||
				!even && r.begins(&parts[n-1], at) {
				call := instance{pass: c.pass, depth: r.depthAt(c, row), follows: k > 0 || c.follows}
				parts = append(parts, listed{call: call, at: at})
			}
			part := &parts[len(parts)-1]
			part.call.rows, part.last = append(part.call.rows, row), at
		}
	}
	out := *g
	out.calls, out.most, out.bodies = r.byKinds(parts), 0, nil
	if r.number(&out); out.most < 2 {
		return nil
	}
	return &out
}

// stagesAt are the modules that a line calls one after another, of its groups, where some are seen to be lists of blocks, and not
// all one list; else nil. They are numbered as the line calls them.
func (r *run) stagesAt(groups []group) *group {
	for i := range groups {
		g := &groups[i]
		if !g.list || !r.callsList(&g.calls[0]) {
			continue
		}
		stages := r.stages(g)
		if stages == nil {
			continue
		}
		ofBlocks, torchs := 0, false
		between := g.interrupted()
		for k := range stages.calls {
			switch c := &stages.calls[k]; {
			case r.isTorchs(r.inListed(c, 0)):
				torchs = true
			case c.pass == stages.calls[0].pass:
				ofBlocks++
			}
		}
		if !between && !torchs || ofBlocks < 2 {
			continue
		}
		stages.loops = !between // all of it may be one list
		var others []instance
		for k := range groups {
			if k != i && slices.Equal(groups[k].around, g.around) {
				others = append(others, groups[k].calls...)
			}
		}
		r.put(stages, others)
		return stages
	}
	return nil
}

// interrupted reports whether the line of a group calls something else between its modules.
func (g *group) interrupted() bool {
	return slices.ContainsFunc(g.calls, func(c instance) bool { return c.ordinal > 0 && !c.follows })
}

// even reports whether the line of a group calls something else between lists of torch's, each time behind as many modules.
func (r *run) even(g *group) bool {
	if !g.interrupted() || !r.callsList(&g.calls[0]) {
		return false
	}
	before, n := 0, 0 // modules
	for i := range g.calls {
		if !g.calls[i].follows {
			if n != before && before > 0 {
				return false
			}
			before, n = n, 0
		}
		n++
	}
	return n == before && n > 1
}

// inTurns reports whether an earlier line of the function is right before all lists of torch's that the line of a group calls, as a loop
// has that makes an image smaller before each of the stages of a network.
func (r *run) inTurns(g *group) bool {
	if !g.interrupted() || !r.callsList(&g.calls[0]) {
		return false
	}
	depth := len(g.around) - 1 - r.lineAt(g.around, 0)
	before := int32(0) // that line
	for i := range g.calls {
		first := g.calls[i].rows[0]
		if g.calls[i].follows || first == 0 {
			continue
		}
		stack := r.stack(r.code(first - 1))
		same, back := r.inside(g.around, stack, r.code(first), depth) // back at an earlier line
		if !same || !back {
			return false
		}
		of := r.line(stack, depth)
		if before == 0 {
			before = of
		}
		if of != before {
			return false
		}
	}
	return true
}

// listed is what a module in a list allocates, or several of torch's own, such as what comes before the first block.
type listed struct {
	call     instance
	at, last snapshot.FrameID // of the functions that the modules run, of the first and of the last row; 0 in a list in the list
}

// repeats reports whether a module of a list runs the same code over and over, and nothing tells of a list in it: several modules may
// have been taken for one.
func (r *run) repeats(g *group) bool {
	const often = 5
	if g.outer != nil && g.outer.most < g.most {
		return false
	}
	for i := range g.calls {
		c := &g.calls[i]
		times := map[snapshot.StackID]int{}
		for k, row := range c.rows {
			code := r.code(row)
			if k > 0 && code == r.code(c.rows[k-1]) {
				continue
			}
			if times[code]++; times[code] == often {
				return true
			}
		}
		if c.pass != g.calls[0].pass {
			break // the others do as these
		}
	}
	return false
}

// inListed is the frame of the function that the module of a call runs, or the module in a list of torch's that the call is of; 0
// where that is a list, too.
func (r *run) inListed(c *instance, k int) snapshot.FrameID {
	own := r.stack(r.t.Lives[c.rows[k]].Stack)
	lists := 0
	for depth := r.depthAt(c, c.rows[k]) - 1; depth >= 0 && lists < 2; depth-- {
		switch {
		case r.contains(own[depth]):
			lists++
		case r.isCode(own, depth):
			return own[depth]
		}
	}
	return 0
}

// begins reports whether another part than the last begins with what is allocated in a function.
func (r *run) begins(p *listed, at snapshot.FrameID) bool {
	if r.isTorchs(p.last) && r.isTorchs(at) {
		return false
	}
	return r.apart(at, p.last) || at != 0 && r.s.Frames.Get(at).Line < r.s.Frames.Get(p.last).Line
}

// isTorchs reports whether a frame is of a module of torch's own, as convolutions, norms, and activation functions are.
func (r *run) isTorchs(at snapshot.FrameID) bool { return at != 0 && frames.Of(r.s, at).IsLibrary() }

// byKinds puts the blocks of each stage together. Where torch's own modules are in the same list as the blocks, before the first
// or between, the list is one of lists. In one of several stages, blocks are of two kinds: the first makes the image smaller, or
// wider, or has no shortcut.
func (r *run) byKinds(parts []listed) []instance {
	var calls []instance
	torchs := func(p listed) bool { return r.isTorchs(p.at) }
	if !slices.ContainsFunc(parts, torchs) {
		for i := range parts {
			calls = append(calls, parts[i].call)
		}
		return calls
	}
	for from := 0; from < len(parts); {
		to := from + 1
		of := parts[from]
		for to < len(parts) && parts[to].call.follows && parts[to].call.pass == of.call.pass && !r.apart(parts[to].at, of.at) {
			to++
		}
		blocks := r.splitAlike(parts[from:to])
		for i, first := range r.firstOfStages(blocks) {
			if i == 0 || first {
				calls = append(calls, blocks[i])
				continue
			}
			stage := &calls[len(calls)-1]
			stage.rows = append(stage.rows, blocks[i].rows...)
		}
		from = to
	}
	return calls
}

// splitAlike splits what several blocks allocated, of which the first ended early: they end as others do.
func (r *run) splitAlike(parts []listed) (blocks []instance) {
	const many = 256                       // more are no blocks of a network
	lasting := make([][]int32, len(parts)) // rows but for what kernels work in, which differs by shape
	ends := map[snapshot.StackID]bool{}
	for i := range parts {
		blocks = append(blocks, parts[i].call)
		for _, row := range parts[i].call.rows {
			if !r.t.Lives[row].Passing() && !r.is(row, category.Workspace) {
				lasting[i] = append(lasting[i], row)
			}
		}
		if n := len(lasting[i]); n > 0 {
			ends[r.code(lasting[i][n-1])] = true
		}
	}
	if len(parts) > many {
		return blocks
	}
	same := func(a, b int32) bool { return r.code(a) == r.code(b) }
	for i := 0; i < len(blocks); {
		rows := lasting[i]
		at := slices.IndexFunc(lasting, func(other []int32) bool {
			k := len(rows) - len(other)
			return k > 0 && k < len(rows) && same(rows[0], rows[k]) && ends[r.code(rows[k-1])] &&
				slices.EqualFunc(rows[k:], other, same)
		})
		if at < 0 {
			i++
			continue
		}
		k := len(rows) - len(lasting[at])
		front, back := blocks[i], blocks[i]
		n := slices.Index(front.rows, rows[k])
		front.rows, back.rows, back.follows = front.rows[:n:n], back.rows[n:], true
		back.depth = r.depthAt(&front, back.rows[0])
		blocks, lasting = slices.Replace(blocks, i, i+1, front, back), slices.Replace(lasting, i, i+1, rows[:k:k], rows[k:])
		i = 0 // what is left of it may be how others end
	}
	return blocks
}

// firstOfStages says of each block whether it is the first of a stage: of two kinds, that which never comes twice or does so less
// often. Blocks that take turns, as the windows of a Swin Transformer are shifted, are of one stage.
func (r *run) firstOfStages(blocks []instance) []bool {
	first := make([]bool, len(blocks))
	kinds := r.kinds(blocks)
	names := slices.Compact(slices.Sorted(slices.Values(kinds)))
	if len(names) != 2 {
		return first
	}
	again, turns := [2]int{}, true
	for i := 1; i < len(kinds); i++ {
		if kinds[i] == kinds[i-1] {
			again[slices.Index(names, kinds[i])]++
			turns = false
		}
	}
	begins := names[0]
	if again[0] > again[1] {
		begins = names[1]
	}
	for i := range first {
		first[i] = !turns && kinds[i] == begins
	}
	return first
}

// kinds tells calls of modules apart by the code that allocates in them.
func (r *run) kinds(calls []instance) []string {
	kinds := make([]string, len(calls))
	for i := range calls {
		var stacks []snapshot.StackID
		for _, row := range calls[i].rows {
			if !r.is(row, category.Workspace) {
				stacks = append(stacks, r.code(row))
			}
		}
		slices.Sort(stacks)
		kinds[i] = fmt.Sprint(slices.Compact(stacks))
	}
	return kinds
}

// staged puts the blocks of a list together that are of one stage by their kinds, as in the last pass with all of them; nil where these
// tell of none.
func (r *run) staged(g *group) *group {
	out := *g
	out.calls, out.most = nil, 0
	to := len(g.calls)
	for g.calls[to-1].ordinal < g.most-1 {
		to--
	}
	first := r.firstOfStages(g.calls[to-g.most : to])
	for i, c := range g.calls {
		if i == 0 || first[c.ordinal] || c.pass != g.calls[i-1].pass {
			c.rows = slices.Clone(c.rows)
			out.calls = append(out.calls, c)
			continue
		}
		stage := &out.calls[len(out.calls)-1]
		stage.rows = append(stage.rows, c.rows...)
	}
	if r.number(&out); out.most < 2 {
		return nil
	}
	return &out
}

// goOn reports whether some calls of a list go on to a line of their function that the first, and one behind them, do not come to.
// They may be the last of a loop of one module, such as a stage that has its blocks in a loop of its own, and then makes the image
// smaller.
func (r *run) goOn(g *group) bool {
	ends := map[int32][]int32{} // by function, the last lines of calls
	for i := range g.calls {
		c := &g.calls[i]
		if at := r.inListed(c, len(c.rows)-1); at != 0 && c.pass == g.calls[0].pass {
			f := r.functions[at]
			ends[f] = append(ends[f], r.s.Frames.Get(at).Line)
		}
	}
	for _, lines := range ends {
		most := slices.Max(lines)
		if i := slices.Index(lines, most); i > 0 && slices.ContainsFunc(lines[i:], func(line int32) bool { return line < most }) {
			return true
		}
	}
	return false
}

// stageEnds tells which calls of a list a stage ends with, where the function of stages goes on behind a loop to what makes images smaller:
// these come to a later line of it, where what they give gets another size than that of the call before. It is nil where that is so of
// none, or other calls come to a later line, too, or change sizes. It is given what each call gives.
func (d *draft) stageEnds(g *group, results []int32) []bool {
	around := d.stack(d.code(g.calls[0].rows[0]))
	for i := range g.calls {
		for _, row := range g.calls[i].rows {
			around = around[len(around)-inCommon(around, d.stack(d.code(row))):]
		}
	}
	line := func(row int32) int32 {
		stack := d.stack(d.code(row))
		if at := len(stack) - 1 - len(around); at >= 0 && d.isCode(stack, at) {
			return d.s.Frames.Get(stack[at]).Line
		}
		return -1
	}
	ends, some := make([]bool, len(g.calls)), false
	for i := range g.calls {
		c, block := &g.calls[i], g.calls[i]
		first := line(c.rows[0])
		block.rows = c.rows[:1]
		for _, row := range c.rows[1:] {
			if line(row) != first {
				break
			}
			block.rows = c.rows[:len(block.rows)+1]
		}
		if ends[i] = len(block.rows) < len(c.rows); ends[i] && line(c.rows[len(c.rows)-1]) < first {
			return nil
		}
		if c.ordinal > 0 && i > 0 {
			of := int64(-1)
			if result := d.resultOf(&block); result >= 0 {
				of = d.sizes[result]
			}
			if !ends[i-1] && of != d.sizes[results[i-1]] || (d.sizes[results[i]] != of) != ends[i] {
				return nil
			}
			some = some || ends[i] && !ends[i-1]
		}
	}
	if !some {
		return nil
	}
	return ends
}

// bySize puts the blocks of a list together whose results are of one size, as those of a stage are, with what comes before the first;
// nil for a list whose modules have no list themselves, where sizes tell of no stages, or of which the name is of blocks, or of one stage.
func (d *draft) bySize(g *group, name string) *group {
	outer, _ := through(name)
	blocks := strings.Contains(strings.ToLower(lastPart(name)), "block")
	if g.most < 3 || outer != "" || blocks || g.outer != nil && g.outer.most < g.most {
		return nil
	}
	if out := d.sized(g); out != nil && d.deep(g) {
		return out
	}
	return nil
}

// sized puts the blocks of a list together whose results are of one size, with what comes before the first, or those up to where a stage
// ends; nil where that tells of no stages.
func (d *draft) sized(g *group) *group {
	out := *g
	out.calls, out.most, out.bodies, out.outer, out.staged = nil, 0, nil, nil, nil
	results := make([]int32, len(g.calls))
	for i := range g.calls {
		if results[i] = d.resultOf(&g.calls[i]); results[i] < 0 {
			return nil
		}
	}
	var size int64
	ends := d.stageEnds(g, results)
	for i, c := range g.calls {
		was := size
		if size = d.t.Lives[results[i]].Requested; len(out.calls) > 0 && c.ordinal > 0 && c.pass == out.calls[len(out.calls)-1].pass {
			stage := &out.calls[len(out.calls)-1]
			between := d.rowsUnder(g, stage.rows[len(stage.rows)-1]+1, c.rows[0])
			if ends == nil && size == was || ends != nil && !ends[i-1] {
				stage.rows = append(append(stage.rows, between...), c.rows...)
				continue
			}
			if len(between) > 0 {
				c.depth = len(d.stack(d.code(between[0]))) - len(g.around)
			}
			c.rows = slices.Concat(between, c.rows)
		}
		c.rows = slices.Clone(c.rows)
		out.calls = append(out.calls, c)
	}
	if d.number(&out); out.most < 2 || out.most == g.most {
		return nil
	}
	return &out
}

// ofOneSize reports whether the results of blocks that are of one stage have one size.
func (d *draft) ofOneSize(blocks, stages *group) bool {
	sizes := map[int]int64{} // by the stage's call
	at := -1
	for i := range blocks.calls {
		c := &blocks.calls[i]
		for at+1 < len(stages.calls) && stages.calls[at+1].rows[0] <= c.rows[0] {
			at++
		}
		result := d.resultOf(c)
		if at < 0 || result < 0 {
			continue
		}
		n := d.t.Lives[result].Requested
		if was, ok := sizes[at]; ok && was != n {
			return false
		}
		sizes[at] = n
	}
	return true
}

// rowsUnder are the rows from one up to another that the line of a group allocates.
func (d *draft) rowsUnder(g *group, from, to int32) (out []int32) {
	for row := from; row < to; row++ {
		stack := d.stack(d.code(row))
		if at := len(stack) - len(g.around); at > 0 && d.phase(row) == inProgram && slices.Equal(stack[at:], g.around) {
			out = append(out, row)
		}
	}
	return out
}

// deep reports whether what a line calls has lists of torch's in each other, or calls the modules of the list from another line itself.
func (r *run) deep(g *group) bool {
	if r.inLists(g) {
		return true
	}
	return slices.ContainsFunc(r.calledIn(g, false, r.contains), func(in group) bool {
		return in.list && in.most >= g.most && r.keeps(&in)*5 >= r.keeps(g)*4
	})
}

// inLists reports whether the modules of a group are in lists of torch's that are in others.
func (r *run) inLists(g *group) bool {
	lists := 0
	for depth, id := range g.around {
		switch {
		case r.contains(id):
			lists++
		case r.isCode(g.around, depth):
			return lists > 1
		}
	}
	return false
}

// ofStages reports whether a name is likely to be of all stages of a network of a library, where the modules of a list have lists of
// these: torchvision's lists of lists are features, of transformers' the way to them is named, and those of timm's that are no blocks
// are of stages, but for layers, whose blocks it checkpoints itself.
func (r *run) ofStages(g *group, name string) bool {
	switch last := lastPart(name); {
	case r.inCode(g, timm):
		return last != "layers"
	case r.inCode(g, "torchvision/models/"):
		return last == "features" && r.inLists(g)
	}
	return strings.Contains(name, ".") && r.inCode(g, transformers)
}

// Where libraries have their models.
const (
	timm         = "timm/models/"
	transformers = "transformers/models/"
)

// inCode reports whether the line of a group runs in a library's models.
func (r *run) inCode(g *group, models string) bool {
	return slices.ContainsFunc(g.around, func(id snapshot.FrameID) bool { return strings.HasPrefix(r.file(id), models) })
}
