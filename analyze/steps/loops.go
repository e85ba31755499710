package steps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// loop is a loop that was seen in the stacks.
type loop struct {
	*node
	line      int32   // its first line that allocates
	starts    []int32 // alloc events at which it begins again
	irregular float64
	works     int64   // the working set: median bytes that an iteration needs beyond what was there, or stays
	filled    float64 // share of the events from its first beginning to its last that are of ordinary iterations
	most      bool    // it has most of the trace's allocations
	trains    bool    // most iterations have allocations of threads without frames of Python, as those of autograd
}

// fromLoop makes a step of each time that the program's loop begins up to the next; the last lasts to
// the trace's end. It is empty when there is no such loop.
func fromLoop(s *snapshot.Snapshot, t *timeline.Timeline, active *timeline.Levels) Result {
	l := findLoop(s, t, active)
	if l == nil {
		return Result{}
	}
	out := make([]Step, len(l.starts))
	for i, first := range l.starts {
		out[i] = Step{First: int(first), Last: t.Trace.Len() - 1}
		if i > 0 {
			out[i-1].Last = int(first) - 1
		}
	}
	unit := fmt.Sprintf("iteration of %s (%s:%d)", s.Strings.Get(l.name), frames.Base(s.Strings.Get(l.file)), l.line)
	return Result{Steps: out, Unit: unit, Source: "loop", Confidence: finding.Medium}
}

// node is a function in its calling context: the path of functions and call lines to it.
type node struct {
	nodeKey
	depth  int
	lines  map[int32]int32 // line -> place
	last   int32           // place where the function was last seen, -1 at first
	allocs int64
}

// place is a line of a node.
type place struct {
	node    int32
	line    int32
	arrived int // times that execution came here from another line of the function
	landed  int // those of them in which it came from a later line
}

// tree is the calling contexts of a trace, cut off inside of modules.
type tree struct {
	s      *snapshot.Snapshot
	nodes  []node
	places []place
	index  map[nodeKey]int32
	paths  map[snapshot.StackID][]int32 // places, outermost first
	python map[snapshot.StackID]bool    // stacks with frames of Python
	mixed  bool                         // some have them: others are of autograd's threads, and in no loop of the program
}

type nodeKey struct {
	parent     int32 // place, -1 for the outermost
	file, name snapshot.StringID
}

// path gives the places of a stack, up to where an optimizer steps. Frames of torch and of the standard library are passed over. Inside
// a module's call it goes on through what only hands on, as modules that wrap another do, and ends with the first function that
// allocates at several lines: what is further inside is a part of that. A container of torch's is such a function, too.
func (tr *tree) path(stack snapshot.StackID) []int32 {
	path, ok := tr.paths[stack]
	if !ok {
		path = tr.read(stack)
		tr.paths[stack] = path
		if slices.ContainsFunc(tr.s.Stacks.Get(stack), func(id snapshot.FrameID) bool {
			return frames.Of(tr.s, id).Has(frames.Python)
		}) {
			tr.python[stack] = true
		}
	}
	return path
}

// cut ends paths in modules, once all are read.
func (tr *tree) cut() {
	for stack, path := range tr.paths {
		for i, p := range path {
			if n := &tr.nodes[tr.places[p].node]; n.depth >= insideModule && len(n.lines) > 1 {
				tr.paths[stack] = path[:i+1]
				break
			}
		}
	}
}

func (tr *tree) read(stack snapshot.StackID) []int32 {
	var path []int32
	parent := int32(-1)
	var walk frames.Walk
	for _, id := range slices.Backward(tr.s.Stacks.Get(stack)) {
		class := frames.Of(tr.s, id)
		walk.Enter(class)
		inside := walk.Phase() == frames.InForward || walk.Phase() == frames.InRecompute
		if class.IsLibrary() {
			if inside && class.Has(frames.Forwards) && class.Part() != frames.Distributed {
				break
			}
			continue
		}
		if walk.Phase() == frames.InOptimizer {
			break // it may go over parameters
		}
		f := tr.s.Frames.Get(id)
		key := nodeKey{parent, f.File, f.Name}
		n, ok := tr.index[key]
		if !ok {
			n = int32(len(tr.nodes))
			depth := len(path)
			if inside {
				depth += insideModule
			}
			tr.nodes = append(tr.nodes, node{nodeKey: key, depth: depth, lines: map[int32]int32{}, last: -1})
			tr.index[key] = n
		}
		p, ok := tr.nodes[n].lines[f.Line]
		if !ok {
			p = int32(len(tr.places))
			tr.places = append(tr.places, place{node: n, line: f.Line})
			tr.nodes[n].lines[f.Line] = p
		}
		path = append(path, p)
		parent = p
	}
	return path
}

// insideModule is added to the depth of functions in a module's forward, which are looked at
// only when nothing outside repeats.
const insideModule = 1 << 10

// findLoop finds the loop whose iterations are the program's steps, nil when there is none.
func findLoop(s *snapshot.Snapshot, t *timeline.Timeline, active *timeline.Levels) *loop {
	tr := &tree{s: s, index: map[nodeKey]int32{}, paths: map[snapshot.StackID][]int32{}, python: map[snapshot.StackID]bool{}}
	total := int64(0)
	each := func(f func(event int32, path []int32)) {
		last := snapshot.StackID(0)
		for i := range t.Lives {
			l := &t.Lives[i]
			if l.Born < 0 || l.Stack <= snapshot.EmptyStack || l.Stack == last {
				continue
			}
			last = l.Stack
			if path := tr.path(l.Stack); !tr.mixed || tr.python[l.Stack] {
				f(l.Born, path)
			}
		}
	}
	each(func(int32, []int32) {})
	tr.cut()
	tr.mixed = len(tr.python) > 0
	each(func(_ int32, path []int32) {
		total++
		for _, p := range path {
			pl := &tr.places[p]
			n := &tr.nodes[pl.node]
			n.allocs++
			if n.last == p {
				continue
			}
			pl.arrived++
			if n.last >= 0 && tr.places[n.last].line > pl.line {
				pl.landed++
			}
			n.last = p
		}
	})
	// Candidates by the place at which they begin again.
	heads := map[int32]*loop{}
	for n := range tr.nodes {
		nd := &tr.nodes[n]
		nd.last = -1
		most := 2*nd.allocs >= total
		if !most && (3*nd.allocs < total || nd.depth >= insideModule) {
			continue
		}
		for _, head := range tr.heads(nd) {
			heads[head] = &loop{node: nd, line: tr.places[head].line, most: most}
		}
	}
	if len(heads) == 0 {
		return nil
	}
	each(func(event int32, path []int32) {
		for _, p := range path {
			n := &tr.nodes[tr.places[p].node]
			if n.last == p {
				continue
			}
			n.last = p
			if l := heads[p]; l != nil {
				l.starts = append(l.starts, event)
			}
		}
	})
	aside := tr.aside(t)
	for _, l := range heads {
		l.trains = l.hasMost(aside)
	}
	maps.DeleteFunc(heads, func(_ int32, l *loop) bool { return !l.most && !l.trains })
	most, _ := active.Highest(-1, t.Trace.Len()-1)
	return choose(active, most-active.Lowest(-1, t.Trace.Len()-1), heads)
}

// aside are the births of blocks on threads without frames of Python, as those of autograd.
func (tr *tree) aside(t *timeline.Timeline) (out []int32) {
	for i := range t.Lives {
		if l := &t.Lives[i]; l.Born >= 0 && l.Stack > 0 && !tr.python[l.Stack] {
			out = append(out, l.Born)
		}
	}
	return out
}

// hasMost reports whether most iterations of a loop have some of these events.
func (l *loop) hasMost(events []int32) bool {
	with := 0
	for k, start := range l.starts {
		i, _ := slices.BinarySearch(events, start)
		if i < len(events) && (k+1 == len(l.starts) || events[i] < l.starts[k+1]) {
			with++
		}
	}
	return 2*with > len(l.starts)
}

// heads are the lines at which loops of a function may begin again: those that were come back to. A module's function
// runs once a step: of its lines only the first can be one, and others are of loops over layers.
func (tr *tree) heads(n *node) []int32 {
	var out []int32
	for line, p := range n.lines {
		pl := &tr.places[p]
		if pl.landed >= MinSteps-1 && pl.arrived >= MinSteps && (n.depth < insideModule || n.first(line)) {
			out = append(out, p)
		}
	}
	return out
}

// first reports whether a line is the first of those at which the function allocates.
func (n *node) first(line int32) bool {
	for other := range n.lines {
		if other < line {
			return false
		}
	}
	return true
}

// choose takes, of the loops that find memory as they left it and are no part of a step, the one that begins most
// often, and the outermost of equals. Those that train go before others, as where a program evaluates for longer, then
// those with half of the allocations, then those outside of modules. The active memory of the trace is within a range
// of so many bytes.
func choose(active *timeline.Levels, spread int64, heads map[int32]*loop) *loop {
	var loops []*loop
	for _, p := range slices.Sorted(maps.Keys(heads)) {
		loops = append(loops, heads[p])
	}
	regularity(active, max(spread, 1), loops)
	loops = slices.DeleteFunc(loops, func(l *loop) bool { return l.irregular > maxIrregular })
	measureWork(active, loops)
	loops = slices.DeleteFunc(slices.Clone(loops), func(l *loop) bool {
		return slices.ContainsFunc(loops, l.isPartOf)
	})
	for _, better := range []func(*loop) bool{
		func(l *loop) bool { return l.trains }, func(l *loop) bool { return l.most }, func(l *loop) bool { return l.depth < insideModule },
	} {
		if slices.ContainsFunc(loops, better) {
			loops = slices.DeleteFunc(loops, func(l *loop) bool { return !better(l) })
		}
	}
	var best *loop
	for _, l := range loops {
		if best == nil || cmp.Or(cmp.Compare(len(l.starts), len(best.starts)), cmp.Compare(best.depth, l.depth),
			cmp.Compare(best.line, l.line)) > 0 {
			best = l
		}
	}
	return best
}

// maxIrregular is how much the active memory at the beginning of an iteration may differ from
// a steady growth, as a share of the trace's whole range.
const maxIrregular = 0.15

// regularity measures each loop: the median deviation of what an iteration adds from the median of that, as a share of the
// spread. Of two such the first may be what stays, as an optimizer's states do: then the second decides.
func regularity(active *timeline.Levels, spread int64, loops []*loop) {
	for _, l := range loops {
		var diffs []int64
		for k := 1; k < len(l.starts); k++ {
			diffs = append(diffs, active.At(int(l.starts[k])-1)-active.At(int(l.starts[k-1])-1))
		}
		second := diffs[1]
		m := trend.Median(diffs)
		for k := range diffs {
			diffs[k] = max(diffs[k]-m, m-diffs[k])
		}
		away := trend.Median(diffs)
		if len(diffs) == 2 {
			away = min(away, max(second, -second))
		}
		l.irregular = float64(away) / float64(spread)
	}
}

// measureWork measures what each iteration of each loop needs.
func measureWork(active *timeline.Levels, loops []*loop) {
	for _, l := range loops {
		var works []int64
		var lengths []int
		for k := 1; k < len(l.starts); k++ {
			from, to := int(l.starts[k-1])-1, int(l.starts[k])-1
			most, _ := active.Highest(from, to)
			works = append(works, most-max(active.At(from), active.At(to)))
			lengths = append(lengths, to-from)
		}
		l.works = trend.Median(works)
		ordinary, ofThem := 2*trend.Median(lengths), 0
		for _, n := range lengths {
			ofThem += min(n, ordinary)
		}
		l.filled = float64(ofThem) / float64(max(l.starts[len(l.starts)-1]-l.starts[0], 1))
	}
}

// isPartOf reports whether a loop is one over parts of each step of another, as over parameters or layers: it pauses
// for most of the time, and needs little of the memory that a step needs.
func (l *loop) isPartOf(step *loop) bool {
	if len(l.starts) <= len(step.starts) || 4*l.works >= step.works || l.filled >= 0.5 {
		return false
	}
	from, _ := slices.BinarySearch(l.starts, step.starts[0])
	to, _ := slices.BinarySearch(l.starts, step.starts[len(step.starts)-1])
	return 4*(to-from) >= 3*len(l.starts)*(len(step.starts)-1)/len(step.starts)
}
