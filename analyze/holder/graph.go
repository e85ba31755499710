package holder

import (
	"container/heap"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// graph is a Holders with its memory: nodes are first the objects, then the pieces of memory,
// then the reference cycles, last the root above all of them.
type graph struct {
	h       *sidecar.Holders
	objects int
	memory  []memory
	ofStore []int32   // the piece of memory that each storage lies in
	cycles  [][]int32 // the members of each
	root    int32
	links   *links // tags are rows of h.Edges, or madeUp
	into    *links // the same the other way round

	cost []uint64 // of the easiest chain from the root
	from []int32  // the node before on it, -1 for what cannot be reached
	edge []int32  // the tag of that edge
	// Autograd graphs are deep, and thousands of tensors hang on one. Hops along them are
	// therefore taken together: top is the node of the graph that the chain enters it by, and
	// depth how many hops below that it is.
	top, depth []int32

	flags   []sidecar.TensorFlags // by object, of its tensor
	tensors []int32               // by object: the row of its tensor, -1 for none

	numbers  map[int32]map[string]int64 // by object: integers that it has, by their names
	bounds   map[int32]finding.Bound    // by object; Full is not known yet
	shadowed map[int32]bool             // containers with a bound that frees nothing
}

// madeUp is the tag of an edge that joins what the recorder lists apart: the root and the root
// objects, a cycle and its members, a tensor and its memory.
const madeUp = -1

// memory is a block with the storages in it, or a storage that is in no block.
type memory struct {
	device  int
	row     int32 // of Timeline.Lives, -1 for no block
	bytes   int64 // rounded bytes of the block, 0 for no block
	storage int64 // bytes of the largest storage in it
	count   int64 // of storages that it stands for, with all their bytes
	shown   int64 // bytes of storage that tensors have elements in
	kind    string
}

// newGraph makes the graph of a dump; join says in which memory its storages lie.
func newGraph(h *sidecar.Holders, join func(*sidecar.Holders) ([]memory, []int32)) *graph {
	mem, ofStore := join(h)
	g := &graph{
		h: h, objects: len(h.Nodes.Kind), memory: mem, ofStore: ofStore,
		flags: make([]sidecar.TensorFlags, len(h.Nodes.Kind)), bounds: map[int32]finding.Bound{},
		tensors: slices.Repeat([]int32{-1}, len(h.Nodes.Kind)), numbers: map[int32]map[string]int64{},
	}
	for i, v := range h.Numbers.Node {
		if g.numbers[int32(v)] == nil {
			g.numbers[int32(v)] = map[string]int64{}
		}
		g.numbers[int32(v)][h.String(h.Numbers.Name[i])] = h.Numbers.Value[i]
	}
	cycles := map[int64]int{}
	for v := range int32(g.objects) {
		if g.rootOf(v) != "cycle" {
			continue
		}
		number := h.Nodes.Cycle[v]
		at, ok := cycles[number]
		if !ok {
			at = len(g.cycles)
			cycles[number] = at
			g.cycles = append(g.cycles, nil)
		}
		g.cycles[at] = append(g.cycles[at], v)
	}
	g.root = int32(g.objects + len(mem) + len(g.cycles))
	b := linker{}
	for v := range int32(g.objects) {
		if r := g.rootOf(v); r != "" && r != "cycle" {
			b.add(g.root, v, madeUp)
		}
	}
	for i, members := range g.cycles {
		b.add(g.root, g.cycleNode(i), madeUp)
		for _, v := range members {
			b.add(g.cycleNode(i), v, madeUp)
		}
	}
	for e, from := range h.Edges.From {
		b.add(int32(from), int32(h.Edges.To[e]), int32(e))
	}
	for i, v := range h.Tensors.Node {
		b.add(int32(v), g.memoryNode(ofStore[h.Tensors.Storage[i]]), madeUp)
		g.flags[v] |= h.Tensors.Flags[i]
		g.tensors[v] = int32(i)
	}
	g.links = b.links(int(g.root) + 1)
	back := linker{from: b.to, to: b.from, tag: b.tag}
	g.into = back.links(int(g.root) + 1)
	for i, v := range h.Bounds.Node {
		g.bounds[int32(v)] = finding.Bound{Length: h.Bounds.Length[i], Limit: h.Bounds.Limit[i],
			Hint: bounded(h.String(h.Bounds.Hint[i]))}
	}
	g.shadow()
	g.chains()
	g.show()
	return g
}

func (g *graph) memoryNode(i int32) int32 { return int32(g.objects) + i }
func (g *graph) cycleNode(i int) int32    { return int32(g.objects + len(g.memory) + i) }

// word reads a column of the nodes or edges; it is empty for nodes that are no objects, and for madeUp.
func (g *graph) word(column []sidecar.StringID, row int32) string {
	if row < 0 || int(row) >= len(column) {
		return ""
	}
	return g.h.String(column[row])
}

func (g *graph) kind(v int32) string       { return g.word(g.h.Nodes.Kind, v) }
func (g *graph) rootOf(v int32) string     { return g.word(g.h.Nodes.Root, v) }
func (g *graph) name(v int32) string       { return bounded(g.word(g.h.Nodes.Name, v)) }
func (g *graph) typeName(v int32) string   { return bounded(g.word(g.h.Nodes.Type, v)) }
func (g *graph) edgeKind(tag int32) string { return g.word(g.h.Edges.Kind, tag) }
func (g *graph) label(tag int32) string    { return bounded(g.word(g.h.Edges.Label, tag)) }

// maxText bounds names and labels, in bytes.
const maxText = 300

func bounded(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "..."
	}
	return s
}

func isContainer(kind string) bool {
	return slices.Contains([]string{"list", "dict", "tuple", "set", "deque", "array"}, kind)
}

// kept reports whether v is a frame that only a traceback keeps.
func (g *graph) kept(v int32) bool {
	k := g.kind(v)
	return k == "traceback" || k == "frame" && g.rootOf(v) != "frame"
}

// detour is how much an edge is to be avoided on the chain that names a holder.
func (g *graph) detour(from, to, tag int32) uint64 {
	if tag == madeUp {
		if from == g.root {
			switch g.rootOf(to) {
			case "interpreter":
				return 1
			case "unknown", "cpp":
				return 6
			case "":
				return 2 // a cycle
			}
		}
		return 0
	}
	switch g.edgeKind(tag) {
	case "local", "global":
		// A list that a closure or an object also has is better named by that, and a tensor in
		// a list by the list: what passes by in a variable is gone with the next assignment.
		switch kind := g.kind(to); {
		case g.kept(from), kind == "tensor":
			return 2
		case isContainer(kind):
			return 1
		}
	case "attr":
		if g.label(tag) == "param_groups" {
			return 1
		}
	case "grad_fn", "frame", "cause", "dictkey", "other":
		return 1
	case "variable":
		return 3
	case "saved":
		if g.flags[to]&sidecar.Parameter != 0 {
			return 3
		}
	}
	return 0
}

// shadow finds the containers with a bound of which one without has most of the entries, too: what they drop stays.
func (g *graph) shadow() {
	g.shadowed = map[int32]bool{}
	for v := range g.bounds {
		if !isContainer(g.kind(v)) {
			continue
		}
		entries, both := g.links.of(v), map[int32]int{}
		for _, entry := range entries {
			for i := g.into.first[entry]; i < min(g.into.first[entry+1], g.into.first[entry]+mostNamed); i++ {
				from := g.into.to[i]
				if _, bounded := g.bounds[from]; from == v || bounded || !isContainer(g.kind(from)) {
					continue
				}
				if both[from]++; 2*both[from] > len(entries) {
					g.shadowed[v] = true
				}
			}
		}
	}
	for v := range g.shadowed {
		delete(g.bounds, v)
	}
}

// chains finds the easiest chain to everything: detours count first, then length.
func (g *graph) chains() {
	n := g.links.nodes()
	g.cost, g.from, g.edge = make([]uint64, n), make([]int32, n), make([]int32, n)
	g.top, g.depth = make([]int32, n), make([]int32, n)
	for v := range int32(n) {
		g.from[v], g.cost[v], g.top[v] = -1, ^uint64(0), v
	}
	const step, aside = 1, 1 << 32
	q := &queue{{0, g.root}}
	g.cost[g.root] = 0
	for q.Len() > 0 {
		top := heap.Pop(q).(place)
		if top.cost > g.cost[top.node] {
			continue
		}
		if v := top.node; v != g.root && g.edgeKind(g.edge[v]) == "next" {
			g.top[v], g.depth[v] = g.top[g.from[v]], g.depth[g.from[v]]+1
		}
		for i := g.links.first[top.node]; i < g.links.first[top.node+1]; i++ {
			to, tag := g.links.to[i], g.links.tag[i]
			cost := top.cost + step + aside*g.detour(top.node, to, tag)
			if g.shadowed[to] {
				cost += 2 * aside
			}
			if cost < g.cost[to] {
				g.cost[to], g.from[to], g.edge[to] = cost, top.node, tag
				heap.Push(q, place{cost, to})
			}
		}
	}
}

type place struct {
	cost uint64
	node int32
}

// queue orders by cost, then by node, so that equal files give equal chains.
type queue []place

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].cost < q[j].cost || q[i].cost == q[j].cost && q[i].node < q[j].node
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(place)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// hop is one edge of a chain, or a run of them along an autograd graph.
type hop struct{ from, to, tag int32 }

// maxHops bounds chains: beyond it their beginning is missing.
const maxHops = 1000

// chain gives the edges from the root to a node; none when the node cannot be reached.
func (g *graph) chain(v int32) []hop {
	var out []hop
	for v != g.root && g.from[v] >= 0 && len(out) < maxHops {
		from := g.from[v]
		if g.top[v] != v {
			from = g.top[v]
		}
		out = append(out, hop{from, v, g.edge[v]})
		v = from
	}
	slices.Reverse(out)
	return out
}

// without lists the memory that can no longer be reached when some objects are gone.
func (g *graph) without(gone []int32) (bytes int64) {
	seen := make([]bool, g.links.nodes())
	for _, v := range gone {
		seen[v] = true
	}
	seen[g.root] = true
	todo := []int32{g.root}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, w := range g.links.of(v) {
			if !seen[w] {
				seen[w] = true
				todo = append(todo, w)
			}
		}
	}
	for i, m := range g.memory {
		if v := g.memoryNode(int32(i)); !seen[v] && g.from[v] >= 0 {
			bytes += m.bytes
		}
	}
	return bytes
}

// short is a class name without its module and the functions that it is defined in.
func short(class string) string {
	if i := strings.LastIndexByte(class, '.'); i >= 0 {
		class = class[i+1:]
	}
	return class
}
