package attribution

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Node is live memory by call path: everything that was allocated in a call or below it.
type Node struct {
	Name string `json:"name"` // "file:line function", or of a module; empty at the root
	// Unattributed marks a node that stands for what has no path.
	Unattributed bool `json:"unattributed"`
	Sum
	Children []Node `json:"-"` // most rounded bytes first
}

// Self is what was allocated in the call itself.
func (n *Node) Self() Sum {
	self := n.Sum
	for i := range n.Children {
		c := &n.Children[i]
		self.Count -= c.Count
		self.Rounded -= c.Rounded
		self.Requested -= c.Requested
		self.PreTrace -= c.PreTrace
	}
	return self
}

// Tree lays the live blocks of a state out by call path, outermost frame first, or by path of
// module calls when the query is by module. The root's sum and leftOut, the blocks that
// Match and Exclude took away, make up the state's active bytes.
func Tree(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State, q Query) (root Node, leftOut Sum) {
	b := &treeBuilder{nodes: make([]Node, 1), children: make([][]int32, 1), index: map[edge]int32{}}
	kept, leftOut := portions(s, t, st, &q)
	for i := range kept {
		g := &kept[i]
		if g.Key.path == nil {
			g.Key.path, g.Key.known = treePath(s, g.Key.class, &q)
		}
		b.add(g.Key.path, g.Key.known, g.Sum)
	}
	return b.grow(), leftOut
}

// treePath is where the blocks of a class hang, outermost first.
func treePath(s *snapshot.Snapshot, c *class, q *Query) (path []string, known bool) {
	if q.By == ByModule {
		if path = moduleNames(s, c.stack, c.forward); len(path) > 0 {
			return path, true
		}
		return []string{placeOf(s, ByModule, c).name}, false
	}
	for _, id := range slices.Backward(visible(s, c.stack, q.least())) {
		path = append(path, FrameText(s, id))
	}
	if at, _ := site(framesOf(s, c.stack)); at.class.Origin() < frames.Other && len(c.forward) > 0 {
		back := []string{"(" + backwardOf + "these forward calls)"}
		for _, f := range slices.Backward(c.forward) {
			if q.Internals || f.class.Origin() != frames.Plumbing {
				back = append(back, f.short())
			}
		}
		return append(back, path...), true
	}
	if len(path) == 0 {
		return []string{c.noStack}, false
	}
	return path, true
}

// treeBuilder is a tree in a table: stacks share their outer frames.
type treeBuilder struct {
	nodes    []Node
	children [][]int32 // of each
	index    map[edge]int32
}

type edge struct {
	parent int32
	name   string
}

func (b *treeBuilder) add(path []string, known bool, sum Sum) {
	at := int32(0)
	b.nodes[0].Add(sum)
	for _, name := range path {
		e := edge{at, name}
		next, ok := b.index[e]
		if !ok {
			next = int32(len(b.nodes))
			b.index[e] = next
			b.nodes = append(b.nodes, Node{Name: name, Unattributed: !known})
			b.children[at] = append(b.children[at], next)
			b.children = append(b.children, nil)
		}
		at = next
		b.nodes[at].Add(sum)
	}
}

// grow hangs the nodes on each other. Children stand behind their parents in it: going backwards
// needs no recursion, which a file could drive deep.
func (b *treeBuilder) grow() Node {
	for i, children := range slices.Backward(b.children) {
		n := &b.nodes[i]
		for _, c := range children {
			n.Children = append(n.Children, b.nodes[c])
		}
		sorting.By(n.Children, func(a, b Node) int {
			return cmp.Or(a.compare(&b.Sum), cmp.Compare(a.Name, b.Name))
		})
	}
	return b.nodes[0]
}
