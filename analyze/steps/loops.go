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
}

// fromLoop makes a step of each time that the program's loop begins up to the next; the last lasts to
// the trace's end. It is empty when there is no such loop.
func fromLoop(s *snapshot.Snapshot, t *timeline.Timeline, active []int64) Result {
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

// tree is the calling contexts of a trace, cut off where modules or torch begin.
type tree struct {
	s      *snapshot.Snapshot
	nodes  []node
	places []place
	index  map[nodeKey]int32
	paths  map[snapshot.StackID][]int32 // places, outermost first
}

type nodeKey struct {
	parent     int32 // place, -1 for the outermost
	file, name snapshot.StringID
}

// path gives the places of a stack. Frames of torch and of the standard library are passed
// over; the first function inside a module's forward is the last.
func (tr *tree) path(stack snapshot.StackID) []int32 {
	if p, ok := tr.paths[stack]; ok {
		return p
	}
	var path []int32
	parent := int32(-1)
	var walk frames.Walk
	for _, id := range slices.Backward(tr.s.Stacks.Get(stack)) {
		class := frames.Of(tr.s, id)
		walk.Enter(class)
		inside := walk.Phase() == frames.InForward || walk.Phase() == frames.InRecompute
		if class.IsLibrary() {
			continue
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
		if inside {
			break
		}
		parent = p
	}
	tr.paths[stack] = path
	return path
}

// insideModule is added to the depth of functions in a module's forward, which are looked at
// only when nothing outside repeats.
const insideModule = 1 << 10

// findLoop finds the loop whose iterations are the program's steps, nil when there is none.
func findLoop(s *snapshot.Snapshot, t *timeline.Timeline, active []int64) *loop {
	tr := &tree{s: s, index: map[nodeKey]int32{}, paths: map[snapshot.StackID][]int32{}}
	total := int64(0)
	each := func(f func(event int32, path []int32)) {
		last := snapshot.StackID(0)
		for i := range t.Lives {
			l := &t.Lives[i]
			if l.Born < 0 || l.Stack <= snapshot.EmptyStack || l.Stack == last {
				continue
			}
			last = l.Stack
			f(l.Born, tr.path(l.Stack))
		}
	}
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
		if 2*nd.allocs < total {
			continue
		}
		if head := tr.head(nd); head >= 0 {
			heads[head] = &loop{node: nd, line: tr.places[head].line}
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
	return choose(active, heads)
}

// head is the line at which a function's loop begins again: of those that were come back to,
// the one reached most often, the first of equals; -1 when the function has no loop.
func (tr *tree) head(n *node) int32 {
	best := int32(-1)
	for _, p := range n.lines {
		pl := &tr.places[p]
		if pl.landed < MinSteps-1 || pl.arrived < MinSteps {
			continue
		}
		if best < 0 || pl.arrived > tr.places[best].arrived || pl.arrived == tr.places[best].arrived &&
			pl.line < tr.places[best].line {
			best = p
		}
	}
	return best
}

// choose takes, of the loops that find memory as they left it, the one that begins most often,
// and the outermost of equals.
func choose(active []int64, heads map[int32]*loop) *loop {
	var loops []*loop
	for _, p := range slices.Sorted(maps.Keys(heads)) {
		loops = append(loops, heads[p])
	}
	regularity(active, loops)
	outside := slices.ContainsFunc(loops, func(l *loop) bool {
		return l.depth < insideModule &&
			l.irregular <= maxIrregular
	})
	var best *loop
	for _, l := range loops {
		if l.irregular > maxIrregular || outside && l.depth >= insideModule {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(len(l.starts), len(best.starts)), cmp.Compare(best.depth, l.depth)) > 0 {
			best = l
		}
	}
	return best
}

// maxIrregular is how much the active memory at the beginning of an iteration may differ from
// a steady growth, as a share of the trace's whole range.
const maxIrregular = 0.15

// regularity measures each loop: the median deviation of what an iteration adds from the
// median of that.
func regularity(active []int64, loops []*loop) {
	spread := max(slices.Max(active)-slices.Min(active), 1)
	for _, l := range loops {
		var diffs []int64
		for k := 1; k < len(l.starts); k++ {
			diffs = append(diffs, active[l.starts[k]]-active[l.starts[k-1]])
		}
		m := trend.Median(diffs)
		for k := range diffs {
			diffs[k] = max(diffs[k]-m, m-diffs[k])
		}
		l.irregular = float64(trend.Median(diffs)) / float64(spread)
	}
}
