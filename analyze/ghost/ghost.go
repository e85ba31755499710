// Package ghost looks for memory that grows and is not given back: the trace of tensors
// that something forgotten still refers to.
//
// It works from the snapshot alone, so what it finds is an inference and is called one.
// The question is not "what is alive at the end" (weights are, and should be) but "what did
// each lap of the program's outermost loop add and never return". In steps:
//
//  1. Take the allocations that are alive at the end and were born inside the trace, by stack.
//  2. Between two births from one stack, find the innermost function that all allocations in
//     between have in common: the function that runs the loop. When it runs inside a module's
//     forward, a constructor or an optimizer, the loop is over layers or parameters, and the
//     two births belong to one lap. Otherwise a new lap began.
//  3. A stack grows when it left survivors in at least MinLaps laps up to the end of the
//     trace, and held next to nothing before the first of them. Buffers that fill up, caches
//     that are rebuilt, weights and optimizer state do not pass.
//  4. Stacks that grow in the same loop are one finding: a retained graph has dozens.
package ghost

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"snapana/analyze/attribution"
	"snapana/analyze/timeline"
	"snapana/snapshot"
)

// MinLaps is the number of laps that must each have left survivors.
const MinLaps = 4

// Growth is memory that one loop adds to and does not return.
type Growth struct {
	Loop     snapshot.FrameID   // the function that runs the loop, at one of its lines
	Stacks   []snapshot.StackID // what grows, most bytes first
	Laps     int                // laps that left survivors, of the stack with most bytes
	Count    int64              // survivors
	Bytes    int64              // rounded bytes of the survivors
	PerLap   int64              // median rounded bytes that a lap left
	Regular  bool               // laps left much the same
	Churn    float64            // share of the allocations since the first survivor that were freed
	InModule bool               // the survivors were made inside a module's forward
	Trains   bool               // the trace has a backward pass or an optimizer
	Events   []int              // births of survivors of the first stack, at most 8
}

// Find returns the growths of one device, most bytes first.
func Find(s *snapshot.Snapshot, t *timeline.Timeline) []Growth {
	byStack := survivors(t)
	if len(byStack) == 0 {
		return nil
	}
	laps := newLapFinder(s, t)
	var single []Growth
	for stack, lives := range byStack {
		if g, ok := laps.grows(stack, lives); ok {
			single = append(single, g)
		}
	}
	sortGrowths(single)
	trains := len(single) > 0 && trains(s)
	found := map[loopKey]*Growth{}
	for _, g := range single {
		f := s.Frames.Get(g.Loop)
		key := loopKey{f.File, f.Name}
		if have := found[key]; have == nil {
			found[key] = &g
		} else {
			have.join(g)
		}
	}
	out := make([]Growth, 0, len(found))
	for _, g := range found {
		g.Trains = trains
		out = append(out, *g)
	}
	sortGrowths(out)
	return out
}

// trains reports whether any stack is of a backward pass or of an optimizer.
func trains(s *snapshot.Snapshot) bool {
	for id := 1; id <= s.Frames.Len(); id++ {
		f := s.Frames.Get(snapshot.FrameID(id))
		file, name := s.Strings.Get(f.File), s.Strings.Get(f.Name)
		if strings.Contains(file, "torch/optim/") || name == "backward" && strings.Contains(file, "torch/") {
			return true
		}
	}
	return false
}

func sortGrowths(g []Growth) {
	slices.SortFunc(g, func(a, b Growth) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stacks[0], b.Stacks[0]))
	})
}

type loopKey struct{ file, name snapshot.StringID }

// join adds a stack that grows in the same loop. Stacks come by falling bytes.
func (g *Growth) join(other Growth) {
	g.Stacks = append(g.Stacks, other.Stacks...)
	g.Count += other.Count
	g.Bytes += other.Bytes
	g.PerLap += other.PerLap
	g.InModule = g.InModule || other.InModule
	g.Churn = max(g.Churn, other.Churn)
}

// survivors are the rows of Lives that were born in the trace and live at its end, by stack.
func survivors(t *timeline.Timeline) map[snapshot.StackID][]int32 {
	out := map[snapshot.StackID][]int32{}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born >= 0 && l.FreeRequested < 0 && l.Freed < 0 && l.Stack > snapshot.EmptyStack {
			out[l.Stack] = append(out[l.Stack], int32(i))
		}
	}
	for stack, lives := range out {
		if len(lives) < MinLaps {
			delete(out, stack)
		}
	}
	return out
}

// grows applies step 3 to one stack.
func (lf *lapFinder) grows(stack snapshot.StackID, lives []int32) (Growth, bool) {
	t := lf.t
	g := Growth{Stacks: []snapshot.StackID{stack}, Count: int64(len(lives))}
	var perLap []int64
	var starts []int32
	for i, row := range lives {
		l := &t.Lives[row]
		if i == 0 {
			perLap, starts = append(perLap, 0), append(starts, l.Born)
		} else if loop, ok := lf.lapBetween(t.Lives[lives[i-1]].Born, l.Born); ok {
			perLap, starts = append(perLap, 0), append(starts, l.Born)
			g.Loop = loop
		}
		perLap[len(perLap)-1] += l.Rounded
		g.Bytes += l.Rounded
	}
	g.Laps = len(perLap)
	if g.Laps < MinLaps {
		return g, false
	}
	gaps := make([]int32, 0, len(starts))
	for i := 1; i < len(starts); i++ {
		gaps = append(gaps, starts[i]-starts[i-1])
	}
	last := t.Lives[lives[len(lives)-1]].Born
	n := int32(t.Trace.Len())
	if n-last > max(2*median(gaps), n/10) {
		return g, false // it stopped growing: something that was built once
	}
	first := t.Lives[lives[0]].Born
	if lf.mostBefore(stack, first) > g.Bytes/4 {
		return g, false // it was as large before: something that is rebuilt
	}
	g.PerLap = median(perLap)
	g.Regular = regular(perLap)
	g.Churn = lf.churnSince(first)
	g.InModule = lf.insideModule(stack)
	for _, row := range lives[:min(8, len(lives))] {
		g.Events = append(g.Events, int(t.Lives[row].Born))
	}
	return g, true
}

func median[T cmp.Ordered](v []T) T {
	w := slices.Clone(v)
	slices.Sort(w)
	return w[len(w)/2]
}

// regular reports whether most laps left about the median.
func regular(perLap []int64) bool {
	m, near := median(perLap), 0
	for _, b := range perLap {
		if 4*b >= 3*m && 4*b <= 5*m {
			near++
		}
	}
	return 4*near >= 3*len(perLap)
}

// mostBefore is the most live bytes that stack held in the laps before the one of event e, up
// to that event.
func (lf *lapFinder) mostBefore(stack snapshot.StackID, e int32) int64 {
	lives := lf.byStack[stack]
	n := sort.Search(len(lives), func(i int) bool { return lf.t.Lives[lives[i]].Born >= e })
	for n > 0 {
		if _, ok := lf.lapBetween(lf.t.Lives[lives[n-1]].Born, e); ok {
			break
		}
		n--
	}
	type edge struct {
		at    int32
		bytes int64
	}
	var edges []edge
	for _, row := range lives[:n] {
		l := &lf.t.Lives[row]
		edges = append(edges, edge{l.Born, l.Rounded})
		if l.Freed >= 0 && l.Freed < e {
			edges = append(edges, edge{l.Freed, -l.Rounded})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var now, most int64
	for _, ed := range edges {
		now += ed.bytes
		most = max(most, now)
	}
	return most
}

// churnSince is the share of the allocations born from event e on that were freed.
func (lf *lapFinder) churnSince(e int32) float64 {
	born, freed := 0, 0
	for _, row := range lf.allocs {
		if l := &lf.t.Lives[row]; l.Born >= e {
			born++
			if l.Freed >= 0 {
				freed++
			}
		}
	}
	return float64(freed) / float64(max(born, 1))
}

func (lf *lapFinder) insideModule(stack snapshot.StackID) bool {
	for _, f := range lf.s.Stacks.Get(stack) {
		if lf.frameKind(f) == moduleCall {
			return true
		}
	}
	return false
}

// frameKind says whether a loop below this frame is over the parts of a model.
func (lf *lapFinder) frameKind(id snapshot.FrameID) frameKind {
	if k := lf.kinds[id]; k != notYet {
		return k
	}
	f := lf.s.Frames.Get(id)
	file, name := lf.s.Strings.Get(f.File), lf.s.Strings.Get(f.Name)
	k := plain
	switch {
	case strings.HasSuffix(file, "torch/nn/modules/module.py") && strings.HasSuffix(name, "_call_impl"):
		k = moduleCall
	case attribution.IsLibrary(lf.s, id),
		name == "__init__", strings.Contains(name, "load_state_dict"), strings.Contains(name, "load_weights"),
		strings.Contains(name, "_init_") || strings.HasPrefix(name, "init_"):
		k = partsLoop
	}
	lf.kinds[id] = k
	return k
}

type frameKind uint8

const (
	notYet frameKind = iota
	plain
	moduleCall // torch.nn.Module.__call__
	partsLoop  // constructors, loading, torch itself: loops over parameters
)
