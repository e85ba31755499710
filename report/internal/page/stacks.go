package page

import (
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// longest bounds a text, in runes.
const longest = 300

// clean makes one line of bounded length of a text from the file.
func clean(s string) string { return chart.Line(s, longest) }

// stacks collects the stacks that are used, as a tree.
type stacks struct {
	s      *snapshot.Snapshot
	texts  table[string]
	rows   []int32 // by stack, one more than the row; 0 is none yet
	before int32   // the same of pre-trace blocks without a stack
	node   []int32 // by row
	site   []int32
	nodes  table[node]
	frames table[snapshot.FrameID]
	text   []int32 // by frame
	origin []frames.Origin
}

// node is a row of Nodes.
type node struct{ parent, frame int32 }

func newStacks(s *snapshot.Snapshot) *stacks {
	t := &stacks{s: s, rows: make([]int32, s.Stacks.Len()+2)}
	t.texts.row("")
	t.nodes.row(node{-1, 0}) // the root, which is nobody's child
	return t
}

// row is the row of a stack, which is added when it is new. A pre-trace block may have none
// because nobody recorded then.
func (t *stacks) row(id snapshot.StackID, preTrace bool) int32 {
	if int(id) >= len(t.rows) {
		id = 0
	}
	slot := &t.rows[id]
	g := attribution.Group{Stack: id}
	if preTrace && id == 0 {
		slot = &t.before
		g.PreTrace, g.Rounded = 1, 1
	}
	if *slot > 0 {
		return *slot - 1
	}
	g.Site = attribution.Site(t.s, id)
	*slot = int32(len(t.node)) + 1
	at := int32(0)
	for _, id := range slices.Backward(t.s.Stacks.Get(id)) {
		at, _ = t.nodes.row(node{at, t.frame(id)})
	}
	site, _ := t.texts.row(clean(g.Name()))
	t.node, t.site = append(t.node, at), append(t.site, site)
	return *slot - 1
}

func (t *stacks) frame(id snapshot.FrameID) int32 {
	row, added := t.frames.row(id)
	if added {
		text, _ := t.texts.row(clean(attribution.FrameText(t.s, id)))
		t.text, t.origin = append(t.text, text), append(t.origin, frames.Of(t.s, id).Origin())
	}
	return row
}

// write adds the tables to the data.
func (t *stacks) write(w *writer, d *Data) {
	d.Strings = t.texts.all
	d.Frames.Text = column(w, plain, t.text)
	d.Frames.Origin = column(w, plain, t.origin)
	nodes := t.nodes.all
	d.Nodes.Parent = w.column(deltas, len(nodes), func(i int) int64 { return int64(max(nodes[i].parent, 0)) })
	d.Nodes.Frame = w.column(plain, len(nodes), func(i int) int64 { return int64(nodes[i].frame) })
	d.Stacks.Node = column(w, plain, t.node)
	d.Stacks.Site = column(w, plain, t.site)
}
