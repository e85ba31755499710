package change

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// run is a recorded run as changes need it. It is immutable once read.
type run struct {
	s     *snapshot.Snapshot
	t     *timeline.Timeline
	steps *steps.Result
	uses  *category.Table

	recorded  []timeline.Life      // as the timeline has them, whose stacks have C++ too
	operators []frames.Operator    // by stack, of C++; empty where none was recorded
	functions []int32              // by frame, see findFunctions
	starts    []bool               // by frame, whether calls of its function began with it, behind code of other functions
	again     []bool               // by frame, whether it calls something behind what it computes itself
	stacks    [][]snapshot.FrameID // by stack, its frames of Python; the others lie anywhere between where C++ was recorded too
	alike     []snapshot.StackID   // by stack, the first with the same frames of Python
	insides   []snapshot.StackID   // by stack, see findInsides
	around    []int32              // by stack, the number of the frames around the outermost call of a module, 0 for no call
	often     map[int32]bool       // by number in around, whether most passes of a network have that call
	phases    []phase              // by stack
	reweighs  []bool               // by stack, whether it makes weights of parameters that it is given
	trains    bool
	// accelerates says that accelerate runs the backward passes, which has models alone run under torch.autocast.
	accelerates bool
	warm        int // the first row that the trace allocated

	parameters map[int64]bool // sizes of what a trace knows as parameters

	passes []pass
	calls  []call // of optimizers

	kept []bool // by stack, whether a pass keeps what it allocates
	// outlives says by stack whether some of what it allocates on the way to a pass is there after that, and goes later, or never.
	outlives []bool
	// keptInside says the same as kept by what insides has.
	keptInside map[snapshot.StackID]bool
	unused     map[int32]bool // rows, see findUnused
	// guessed says that no backward pass told what is kept, see guess.
	guessed bool
	ended   []int32         // by event, 1 + the row that it ends
	nodes   []int32         // by event, the last event at which a node of a backward pass was over, see findNodes
	brief   map[int32]bool  // rows that look like gradients and are none, see findBrief
	parts   map[int32]int32 // by the row of a gradient, that of what is added to it last, see findParts
	partOf  map[int32]int32 // by what is added to a gradient, that

	operations  []operation
	operationAt []int32          // by row, in operations
	savings     map[int32]saving // by row, see findSavings
	skips       map[int32]skip   // by row, see findSkips
	lasting     []int32          // by row, see lastingFrom
}

// phase is what the program did where it allocated.
type phase uint8

const (
	inProgram phase = iota // anything else, most of it on the way to a loss
	inBackward
	inOptimizer
	inNothing // no stack was recorded
)

// span is a range of rows.
type span struct{ from, to int32 }

func read(s *snapshot.Snapshot, t *timeline.Timeline, st *steps.Result, uses *category.Table) *run {
	r := &run{s: s, t: t, recorded: t.Lives, steps: st, uses: uses, brief: map[int32]bool{}}
	r.warm, _ = slices.BinarySearchFunc(t.Lives, 0, func(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) })
	r.findStacks()
	r.accelerates = frames.Accelerates(s)
	r.phases, r.reweighs = make([]phase, len(r.stacks)), make([]bool, len(r.stacks))
	for i := range r.phases {
		r.phases[i] = r.phaseOf(snapshot.StackID(i))
		r.reweighs[i] = slices.ContainsFunc(r.stacks[i], func(id snapshot.FrameID) bool { return frames.Of(s, id).Has(frames.Reweighs) })
	}
	for row := r.warm; row < len(t.Lives); row++ {
		p := r.phases[t.Lives[row].Stack]
		r.trains = r.trains || p == inOptimizer || p == inBackward && t.Lives[row].Stack != snapshot.EmptyStack
	}
	for i := range r.phases {
		if r.trains && r.alike[i] == snapshot.EmptyStack {
			r.phases[i] = inBackward // the autograd engine's thread has no Python frames
		}
	}
	r.findFunctions()
	r.findInsides()
	r.findParameters()
	r.findPasses()
	r.findOften()
	r.findKeptInside()
	r.findUnused()
	r.findNodes()
	r.findBrief()
	r.findParts()
	r.findOperations()
	r.findSavings()
	r.saveUnused()
	r.findSkips()
	r.findLasting()
	return r
}

// stack gives the frames of Python of a stack.
func (r *run) stack(id snapshot.StackID) []snapshot.FrameID { return r.stacks[id] }

// code is the stack of a row.
func (r *run) code(row int32) snapshot.StackID { return r.t.Lives[row].Stack }

// longGap is how many lines a function may have that allocate nothing, between others, where calls are seen to begin behind them.
const longGap = 12

// classGap is how many lines lie at least between what two classes' functions allocate: two that are empty, the class, its
// __init__ with the call of that around it and a module, an empty one, and the line of the function itself.
const classGap = 8

// findFunctions numbers the functions that frames are of. A class has a function of the same name as the class behind it in the
// file: where lines of another function lie between two lines, they are not of one, nor where many do and calls begin there, or where
// a class has room between and only some modules of a list go on to there.
func (r *run) findFunctions() {
	begins, optional := r.beginnings(), r.optional()
	all := make([]snapshot.FrameID, r.s.Frames.Len())
	for i := range all {
		all[i] = snapshot.FrameID(i + 1)
	}
	at := func(id snapshot.FrameID) snapshot.Frame { return r.s.Frames.Get(id) }
	sorting.By(all, func(a, b snapshot.FrameID) int {
		return cmp.Or(cmp.Compare(at(a).File, at(b).File), cmp.Compare(at(a).Line, at(b).Line), cmp.Compare(a, b))
	})
	r.functions = make([]int32, len(all)+1)
	var last snapshot.Frame // of a function with a name of its own
	around, n := int32(0), int32(0)
	inner := map[snapshot.Frame]int32{} // those without, by file, name and in Line the number of the function around them
	for _, id := range all {
		f := at(id)
		name := r.s.Strings.Get(f.Name)
		if !strings.HasPrefix(name, "<") {
			gap := f.Line - last.Line
			if f.File != last.File || f.Name != last.Name || gap > longGap && begins[id] || gap > classGap && optional[id] {
				n++
				around = n
			}
			last = f
			r.functions[id] = around
			continue
		}
		if f.Line = around; name == "<module>" {
			f.Line = 0
		}
		if inner[f] == 0 {
			n++
			inner[f] = n
		}
		r.functions[id] = inner[f]
	}
}

// beginnings says of each frame whether calls of its function were seen to begin with it: the frames around it, or its function, were
// others just before, or it was at a later line, of another statement.
func (r *run) beginnings() []bool {
	begins := make([]bool, r.s.Frames.Len()+1)
	r.starts, r.again = make([]bool, len(begins)), make([]bool, len(begins))
	for before, stack := range r.successions() {
		k := inCommon(before, stack)
		if 0 < k && k == len(before) && k < len(stack) {
			r.again[before[0]] = true
		}
		if k < min(len(stack), len(before)) {
			now, was := r.s.Frames.Get(stack[len(stack)-1-k]), r.s.Frames.Get(before[len(before)-1-k])
			switch {
			case now.File != was.File || now.Name != was.Name:
			case now.Line > was.Line-longStatement:
				k++ // it goes on
			default:
				begins[stack[len(stack)-1-k]] = true
				k++
			}
		}
		for ; k < len(stack); k++ {
			at := stack[len(stack)-1-k]
			begins[at], r.starts[at] = true, true
		}
	}
	return begins
}

// successions are the stacks with which the program allocates, each with the one before it, which the first has not.
func (r *run) successions() iter.Seq2[[]snapshot.FrameID, []snapshot.FrameID] {
	return func(yield func(before, stack []snapshot.FrameID) bool) {
		var before []snapshot.FrameID
		for _, l := range r.t.Lives[r.warm:] {
			if r.phases[l.Stack] != inProgram {
				continue
			}
			stack := r.stack(l.Stack)
			if !yield(before, stack) {
				return
			}
			before = stack
		}
	}
}

// optional are the frames of modules in torch's lists at a line that comes behind another of a function of that name in some modules, and
// not in others, where an earlier line comes: they may be of the next module, as of an attention behind some blocks of an encoder.
func (r *run) optional() map[snapshot.FrameID]bool {
	type lines struct{ from, to snapshot.FrameID }
	on, back := map[lines]bool{}, map[snapshot.FrameID]bool{}
	for before, stack := range r.successions() {
		k := inCommon(before, stack)
		was, now := len(before)-1-k, len(stack)-1-k
		if was >= 0 && now >= 0 && r.inTorchsList(stack[now+1:]) {
			a, b := r.s.Frames.Get(before[was]), r.s.Frames.Get(stack[now])
			switch {
			case a.File != b.File || a.Name != b.Name:
			case a.Line < b.Line:
				on[lines{before[was], stack[now]}] = true
			default:
				back[before[was]] = true
			}
		}
	}
	out := map[snapshot.FrameID]bool{}
	for l := range on {
		out[l.to] = out[l.to] || back[l.from]
	}
	return out
}

// inTorchsList reports whether the code around a call is a list of torch's.
func (r *run) inTorchsList(around []snapshot.FrameID) bool {
	for depth, id := range around {
		if r.isCode(around, depth) {
			return r.contains(id)
		}
	}
	return false
}

// findStacks finds what there is of Python in stacks, and has rows go by that: the same program is then the same run, whether or
// not C++ was recorded too, but for what C++ tells of operators, convolutions and the engine's thread. Where no stack has any Python, C++
// is all there is.
func (r *run) findStacks() {
	n := r.s.Stacks.Len() + 1
	r.stacks, r.alike = make([][]snapshot.FrameID, n), make([]snapshot.StackID, n)
	native := func(id snapshot.FrameID) bool { return !frames.Of(r.s, id).Has(frames.Python) }
	some, all := false, true // of Python
	for i := range r.stacks {
		stack := r.s.Stacks.Get(snapshot.StackID(i))
		r.stacks[i], r.alike[i] = stack, snapshot.StackID(i)
		if slices.ContainsFunc(stack, native) {
			all = false
			r.stacks[i] = slices.DeleteFunc(slices.Clone(stack), native)
		}
		some = some || len(r.stacks[i]) > 0
	}
	switch {
	case all:
		return
	case !some:
		for i := range r.stacks {
			r.stacks[i] = r.s.Stacks.Get(snapshot.StackID(i))
		}
		return
	}
	first := map[string]snapshot.StackID{"[]": snapshot.EmptyStack}
	for i := snapshot.EmptyStack; int(i) < n; i++ {
		key := fmt.Sprint(r.stacks[i])
		if other, ok := first[key]; ok {
			r.alike[i] = other
		} else {
			first[key] = i
		}
	}
	t := *r.t
	t.Lives = slices.Clone(t.Lives)
	for row := range t.Lives {
		t.Lives[row].Stack = r.alike[t.Lives[row].Stack]
	}
	r.t = &t
	of := frames.Operators(r.s)
	r.operators = make([]frames.Operator, n)
	for i := range r.operators {
		r.operators[i] = of(r.s.Stacks.Get(snapshot.StackID(i)))
	}
}

// operator is what C++ tells of what makes a row, the zero value where it was not recorded.
func (r *run) operator(row int32) frames.Operator {
	if len(r.operators) == 0 {
		return frames.Operator{}
	}
	return r.operators[r.recorded[row].Stack]
}

func (r *run) phaseOf(stack snapshot.StackID) phase {
	if stack <= snapshot.EmptyStack {
		return inNothing
	}
	switch frames.PhaseOf(r.s, stack) {
	case frames.InBackward, frames.InRecompute:
		return inBackward
	case frames.InOptimizer:
		return inOptimizer
	}
	return inProgram
}

// hasOperators reports whether C++ tells any operator.
func (r *run) hasOperators() bool {
	return slices.ContainsFunc(r.operators, func(o frames.Operator) bool { return o.Name != "" })
}

func (r *run) phase(row int32) phase { return r.phases[r.t.Lives[row].Stack] }

func (r *run) findParameters() {
	r.parameters = map[int64]bool{}
	for row := range int32(len(r.t.Lives)) {
		if r.is(row, category.Parameter) {
			r.parameters[r.t.Lives[row].Requested] = true
		}
	}
}

// end is the event that ends a life, or the trace's length.
func (r *run) end(row int32) int32 {
	if e := r.t.Lives[row].GivenUp(); e >= 0 {
		return e
	}
	return int32(r.t.Trace.Len())
}

// gradient reports whether a row is the gradient of a parameter: made by a backward pass, and there after it.
func (r *run) gradient(row int32) bool {
	c, trust := r.uses.Of(row)
	return c == category.Gradient && trust > category.Low && !r.brief[row]
}

// ofParameters reports whether a row is made of parameters alone, as torch's parametrizations make weights, and programs that have a batch
// norm standardize them, right before the same function goes on to its convolution.
func (r *run) ofParameters(row int32) bool {
	l := &r.t.Lives[row]
	if r.reweighs[l.Stack] {
		return true
	}
	own := r.stack(r.code(row))
	if !r.parameters[l.Requested] || len(own) < 2 || r.name(own[0]) != "batch_norm" || frames.Of(r.s, own[1]).IsLibrary() {
		return false
	}
	next := row + 1
	for int(next) < len(r.t.Lives) && r.code(next) == r.code(row) {
		next++
	}
	if int(next) == len(r.t.Lives) {
		return false
	}
	behind := r.stack(r.code(next))
	return len(behind) == len(own)-1 && r.functions[behind[0]] == r.functions[own[1]] && slices.Equal(behind[1:], own[2:])
}

// findBrief finds what a pass makes and lets go of before other code allocates, where gradients stay, or go at once, see
// goesAtOnce, as many do then. What goes behind all that the pass makes are gradients, too, where most do: an optimizer that allocates
// nothing stepped in between. What has no parameter's size is none.
func (r *run) findBrief() {
	const many = 4 // times less than all; else a hook steps with each, and has let go of what it worked in first
	for i := range r.passes {
		p := &r.passes[i]
		var brief []int32
		stay, all, swept := false, 0, 0
		for row := p.rows.from; row < p.rows.to; row++ {
			if r.gradient(row) && r.t.Lives[row].Born >= p.begin {
				all++
				if end := r.end(row); end >= p.end {
					stay = true
				} else {
					brief = append(brief, row)
					if end > p.last {
						swept++
					}
				}
			}
		}
		if 2*swept > all {
			brief = slices.DeleteFunc(brief, func(row int32) bool { return r.end(row) > p.last && r.parameters[r.t.Lives[row].Requested] })
		}
		added := map[int32]bool{} // to gradients of smaller batches before
		for _, row := range brief {
			if r.goesAtOnce(row) {
				added[row] = true
			}
		}
		for _, row := range brief {
			other := len(r.parameters) > 0 && !r.parameters[r.t.Lives[row].Requested]
			r.brief[row] = stay || !added[row] && (other || many*len(added) > len(brief) && r.end(row) <= p.last)
		}
	}
}

// goesAtOnce reports whether what a node of a backward pass makes goes as soon as that is over, as what is added in
// place to a gradient of a smaller batch before does (torch/csrc/autograd/functions/accumulate_grad.h): the next node
// has the gradient of a result until it is over.
func (r *run) goesAtOnce(row int32) bool {
	end := r.t.Lives[row].GivenUp()
	return end >= 0 && r.lastBefore(end) == r.lastBefore(r.nodeOver(row))
}

func (r *run) is(row int32, of category.Category) bool {
	c, _ := r.uses.Of(row)
	return c == of
}

// findNodes finds where nodes of the backward passes end. A node allocates what it gives on, then frees what it got and
// what was saved for it. What is freed with nothing else freed since it was allocated was its own.
func (r *run) findNodes() {
	r.ended = make([]int32, r.t.Trace.Len())
	for row := range r.t.Lives {
		if e := r.t.Lives[row].GivenUp(); e >= 0 {
			r.ended[e] = int32(row) + 1
		}
	}
	r.nodes = make([]int32, len(r.ended))
	last, passes := int32(-1), r.passes
	for e, row := range r.ended {
		if len(passes) > 0 && int(passes[0].begin) == e {
			last, passes = int32(e)-1, passes[1:]
		}
		if row > 0 && r.t.Lives[row-1].Born <= last {
			last = int32(e)
		}
		r.nodes[e] = last
	}
}

// overBefore is the last event before another at which a node of a backward pass was over, -1 for none.
func (r *run) overBefore(event int32) int32 {
	if event < 1 {
		return -1
	}
	return r.nodes[event-1]
}

// complete is the event after which a gradient is added to its parameter's: the node that made it is over, and those that
// made others that are added to it. What that node lets go of is gone then, and no other has begun (torch/csrc/autograd/engine.cpp:
// evaluate_function, and the order of tasks).
func (r *run) complete(row int32) int32 {
	part, ok := r.parts[row]
	if ok {
		row = part
	}
	over := r.overBeforeNext(row, r.nodeOver(row))
	next := min(int32(r.t.Trace.Len()), r.end(row))
	if after := r.lastBefore(over) + 1; int(after) < len(r.t.Lives) {
		next = min(next, r.t.Lives[after].Born)
	}
	for e := over + 1; e < next; e++ {
		if r.nodes[e] == e {
			over = e
		}
	}
	if e := r.end(row); ok && e > over && e <= next {
		over = e // it is added in place, and gone then
	}
	return max(over, min(r.summedUp(row, over), r.end(row)))
}

// summedUp is the event after which what a node of a backward pass gives on, which makes a gradient too and is over, is added to what
// others gave on: the two go as soon as their sum is there; -1 where they are not. It comes before any gradient is added to its
// parameter's (evaluate_function).
func (r *run) summedUp(gradient, over int32) int32 {
	sum := r.lastBefore(over) + 1
	if int(sum) >= len(r.t.Lives) {
		return -1
	}
	begin, given := r.overBefore(r.t.Lives[gradient].Born), false
	added := r.addends(sum)
	for _, row := range added {
		given = given || r.t.Lives[row].Born > begin && r.t.Lives[row].Born < over
	}
	if !given {
		return -1
	}
	return r.end(added[1])
}

// addends are the two rows that a node of a backward pass added to make another, which go as soon as their sum is there; nil where it
// is none.
func (r *run) addends(sum int32) (out []int32) {
	const both, soon = 2, 16 // rows, and events
	l := &r.t.Lives[sum]
	for row := range r.goneBehind(sum) {
		if r.end(row) >= l.Born+soon {
			break
		}
		if row == sum || r.t.Lives[row].Requested != l.Requested || r.phase(row) != inBackward {
			continue
		}
		if out = append(out, row); len(out) == both {
			return out
		}
	}
	return nil
}

// goneBehind are the rows that are let go of between a row and the next: among them is what else a statement of Python's computed on
// the way, and what a variable held that has another value now.
func (r *run) goneBehind(row int32) func(yield func(of int32) bool) {
	next := int32(len(r.ended))
	if int(row)+1 < len(r.t.Lives) {
		next = r.t.Lives[row+1].Born
	}
	return func(yield func(of int32) bool) {
		for e := r.t.Lives[row].Born + 1; e < next; e++ {
			if of := r.ended[e] - 1; of >= 0 && !yield(of) {
				return
			}
		}
	}
}

// overBeforeNext is the event after which the node is over that made the gradient of a parameter, at an event at the latest. Nodes that
// let go of nothing, as those of embeddings in one batch, do not show; but none makes two large gradients of one size.
func (r *run) overBeforeNext(row, latest int32) int32 {
	const large = 1 << 20
	n := r.t.Lives[row].Requested
	if n < large || !r.gradient(row) {
		return latest
	}
	for next := row + 1; int(next) < len(r.t.Lives) && r.t.Lives[next].Born < latest; next++ {
		if r.t.Lives[next].Requested == n && r.gradient(next) {
			return r.t.Lives[next].Born - 1
		}
	}
	return latest
}

// nodeOver is the event after which the node of a backward pass is over that made a row.
func (r *run) nodeOver(row int32) int32 {
	born := r.t.Lives[row].Born
	for e := born + 1; int(e) < len(r.nodes) && e < r.end(row); e++ {
		if r.nodes[e] == e {
			return e
		}
	}
	return min(born+1, int32(len(r.nodes))-1)
}

// gradientSizes are the requested sizes of the gradients of parameters that a pass makes.
func (r *run) gradientSizes(p *pass) map[int64]bool {
	out := map[int64]bool{}
	for n := range r.gradientCounts(p) {
		out[n] = true
	}
	return out
}

// gradientCounts says by requested size how many gradients of parameters a pass makes.
func (r *run) gradientCounts(p *pass) map[int64]int {
	out := map[int64]int{}
	for row := p.rows.from; row < p.rows.to; row++ {
		if r.gradient(row) {
			out[r.t.Lives[row].Requested]++
		}
	}
	return out
}

// ofScale reports whether a gradient is of a vector that scales the rows of something, and is summed up over these.
func (r *run) ofScale(gradient, scaled int32) bool {
	const vector, rows = 64 << 10, 64 // bytes of 16384 elements, and as many rows as what is no matrix has at least
	n := r.t.Lives[gradient].Requested
	return n <= vector && n*rows <= r.t.Lives[scaled].Requested
}

// weights are the sizes of a pass's gradients that nothing has on the way to its loss, from an event on: what backward
// makes of such a size is of the shape of a parameter.
func (r *run) weights(p *pass, first int32) map[int64]bool {
	out := r.gradientSizes(p)
	for row := p.rows.from; row < p.rows.to; row++ {
		if l := &r.t.Lives[row]; r.phase(row) == inProgram && l.Born >= first && !r.ofParameters(row) {
			delete(out, l.Requested)
		}
	}
	return out
}

// findParts finds the rows that are the last to be added to a gradient within its pass, where a parameter is used several
// times. Gradients of one size take turns.
func (r *run) findParts() {
	r.parts, r.partOf = map[int32]int32{}, map[int32]int32{}
	for i := range r.passes {
		p := &r.passes[i]
		gradients, parts := map[int64][]int32{}, map[int64][]int32{}
		weights := r.weights(p, r.loopOf(p))
		for row := p.rows.from; row < p.rows.to; row++ {
			switch n := r.t.Lives[row].Requested; {
			case !weights[n] || r.t.Lives[row].Born < p.begin:
			case r.gradient(row):
				gradients[n] = append(gradients[n], row)
				delete(parts, n)
			case r.phase(row) == inBackward:
				parts[n] = append(parts[n], row)
			}
		}
		for n, of := range gradients {
			if len(parts[n]) < len(of) {
				continue
			}
			for k, row := range parts[n][len(parts[n])%len(of):] {
				r.parts[of[k%len(of)]], r.partOf[row] = row, of[k%len(of)]
			}
		}
	}
}
