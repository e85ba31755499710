package holder

// tree is the dominator tree of what can be reached from a root. Nodes are known by their
// number in a depth-first walk, the root is 0; a node's dominator has a smaller number.
type tree struct {
	number []int32 // by node, -1 for what cannot be reached
	node   []int32 // by number
	idom   []int32 // by number, of numbers; idom[0] is 0
	enter  []int32 // by number: the subtree of a node is enter..leave-1 of a walk of the tree
	leave  []int32
}

// dominators finds for each node the last one that all ways from the root to it go through,
// with the SEMI-NCA algorithm: L. Georgiadis, "Linear-time algorithms for dominators and
// related problems", 2005, section 2.3. It recurses nowhere, since autograd graphs are deep.
func dominators(g *links, root int32) *tree {
	t := &tree{number: make([]int32, g.nodes())}
	for i := range t.number {
		t.number[i] = -1
	}
	parent := t.walk(g, root)
	n := len(t.node)
	into := reverse(g, t.number, n)

	semi, label, ancestor := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range n {
		semi[i], label[i], ancestor[i] = int32(i), int32(i), -1
	}
	var path []int32
	// least is the number with the smallest semi on the way up from v, in the forest of the
	// nodes that are done. It shortens the way as it goes.
	least := func(v int32) int32 {
		if ancestor[v] < 0 {
			return v
		}
		path = path[:0]
		for ancestor[ancestor[v]] >= 0 {
			path = append(path, v)
			v = ancestor[v]
		}
		for i := len(path) - 1; i >= 0; i-- {
			w := path[i]
			if up := ancestor[w]; semi[label[up]] < semi[label[w]] {
				label[w] = label[up]
			}
			ancestor[w] = ancestor[v]
			v = w
		}
		return label[v]
	}
	for w := int32(n) - 1; w > 0; w-- {
		for _, v := range into.of(w) {
			if s := semi[least(v)]; s < semi[w] {
				semi[w] = s
			}
		}
		ancestor[w] = parent[w]
	}
	t.idom = parent
	for w := 1; w < n; w++ {
		d := t.idom[w]
		for d > semi[w] {
			d = t.idom[d]
		}
		t.idom[w] = d
	}
	t.intervals()
	return t
}

// walk numbers the nodes in the order of a depth-first walk, and gives their parents in it.
func (t *tree) walk(g *links, root int32) (parent []int32) {
	type place struct{ number, next int32 }
	visit := func(node, from int32) place {
		n := int32(len(t.node))
		t.number[node] = n
		t.node, parent = append(t.node, node), append(parent, from)
		return place{n, g.first[node]}
	}
	stack := []place{visit(root, 0)}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == g.first[t.node[top.number]+1] {
			stack = stack[:len(stack)-1]
			continue
		}
		to := g.to[top.next]
		top.next++
		if t.number[to] < 0 {
			stack = append(stack, visit(to, top.number))
		}
	}
	return parent
}

// reverse turns the edges between numbered nodes round.
func reverse(g *links, number []int32, n int) *links {
	b := linker{}
	for v := range g.nodes() {
		if number[v] < 0 {
			continue
		}
		for _, w := range g.of(int32(v)) {
			b.add(number[w], number[v], 0)
		}
	}
	return b.links(n)
}

func (t *tree) intervals() {
	n := len(t.node)
	size, next := make([]int32, n), make([]int32, n)
	for w := n - 1; w >= 0; w-- {
		size[w]++
		if w > 0 {
			size[t.idom[w]] += size[w]
		}
	}
	t.enter, t.leave = make([]int32, n), make([]int32, n)
	for w := range n {
		if w > 0 {
			d := t.idom[w]
			t.enter[w] = next[d]
			next[d] += size[w]
		}
		next[w], t.leave[w] = t.enter[w]+1, t.enter[w]+size[w]
	}
}

// over reports whether node a dominates node b, or is it. Both must be reachable.
func (t *tree) over(a, b int32) bool {
	x, y := t.number[a], t.number[b]
	return t.enter[x] <= t.enter[y] && t.enter[y] < t.leave[x]
}

// above is the dominator of a reachable node; the root is above itself.
func (t *tree) above(v int32) int32 { return t.node[t.idom[t.number[v]]] }

// sums adds up weights over the subtree of each node, 0 for what cannot be reached.
func (t *tree) sums(weight []int64) []int64 {
	out := make([]int64, len(t.number))
	for w := len(t.node) - 1; w >= 0; w-- {
		v := t.node[w]
		out[v] += weight[v]
		if w > 0 {
			out[t.node[t.idom[w]]] += out[v]
		}
	}
	return out
}

// links are the edges of a graph, by the node that they start from.
type links struct {
	first []int32 // one more than nodes
	to    []int32
	tag   []int32
}

func (g *links) nodes() int { return len(g.first) - 1 }

func (g *links) of(v int32) []int32 { return g.to[g.first[v]:g.first[v+1]] }

// tags are those of the edges that of gives.
func (g *links) tags(v int32) []int32 { return g.tag[g.first[v]:g.first[v+1]] }

// linker collects edges in any order; those of a node stay in the order that they came in.
type linker struct{ from, to, tag []int32 }

func (b *linker) add(from, to, tag int32) {
	b.from, b.to, b.tag = append(b.from, from), append(b.to, to), append(b.tag, tag)
}

func (b *linker) links(nodes int) *links {
	g := &links{first: make([]int32, nodes+1), to: make([]int32, len(b.to)), tag: make([]int32, len(b.to))}
	for _, v := range b.from {
		g.first[v+1]++
	}
	for v := range nodes {
		g.first[v+1] += g.first[v]
	}
	at := make([]int32, nodes)
	copy(at, g.first)
	for i, v := range b.from {
		g.to[at[v]], g.tag[at[v]] = b.to[i], b.tag[i]
		at[v]++
	}
	return g
}
