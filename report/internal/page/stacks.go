package page

import (
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// longest bounds a text, in runes.
const longest = 300

// texts is a table of texts without repeats.
type texts struct {
	all   []string
	index map[string]int
}

func (t *texts) add(s string) int64 {
	s = clean(s)
	i, ok := t.index[s]
	if !ok {
		i = len(t.all)
		t.index[s] = i
		t.all = append(t.all, s)
	}
	return int64(i)
}

// clean makes one line of bounded length of a text from the file.
func clean(s string) string {
	return chart.Clip(chart.Plain(s[:min(len(s), 4*longest)]), longest)
}

// stacks collects the stacks that are used, as a tree.
type stacks struct {
	s       *snapshot.Snapshot
	texts   texts
	rows    []int32 // by stack, one more than the row; 0 is none yet
	before  int32   // the same of pre-trace blocks without a stack
	node    []int32 // by row
	site    []int64
	parents []int32
	frames  []int32
	child   map[[2]int32]int32
	frame   map[snapshot.FrameID]int32
	text    []int64 // by frame
	origin  []frames.Origin
}

func newStacks(s *snapshot.Snapshot) *stacks {
	return &stacks{
		s: s, texts: texts{[]string{""}, map[string]int{"": 0}}, rows: make([]int32, s.Stacks.Len()+2),
		parents: []int32{0}, frames: []int32{0}, child: map[[2]int32]int32{}, frame: map[snapshot.FrameID]int32{},
	}
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
	node := int32(0)
	ids := t.s.Stacks.Get(id)
	for i := len(ids) - 1; i >= 0; i-- {
		node = t.below(node, t.frameRow(ids[i]))
	}
	t.node, t.site = append(t.node, node), append(t.site, t.texts.add(g.Name()))
	return *slot - 1
}

func (t *stacks) below(parent, frame int32) int32 {
	k := [2]int32{parent, frame}
	node, ok := t.child[k]
	if !ok {
		node = int32(len(t.parents))
		t.child[k] = node
		t.parents, t.frames = append(t.parents, parent), append(t.frames, frame)
	}
	return node
}

func (t *stacks) frameRow(id snapshot.FrameID) int32 {
	row, ok := t.frame[id]
	if !ok {
		row = int32(len(t.text))
		t.frame[id] = row
		t.text = append(t.text, t.texts.add(attribution.FrameText(t.s, id)))
		t.origin = append(t.origin, frames.Of(t.s, id).Origin())
	}
	return row
}

// write adds the tables to the data.
func (t *stacks) write(w *writer, d *Data) {
	d.Strings = t.texts.all
	d.Frames.Text = w.plain(len(t.text), func(i int) int64 { return t.text[i] })
	d.Frames.Origin = w.plain(len(t.origin), func(i int) int64 { return int64(t.origin[i]) })
	d.Nodes.Parent = w.deltas(len(t.parents), func(i int) int64 { return int64(t.parents[i]) })
	d.Nodes.Frame = w.plain(len(t.frames), func(i int) int64 { return int64(t.frames[i]) })
	d.Stacks.Node = w.plain(len(t.node), func(i int) int64 { return int64(t.node[i]) })
	d.Stacks.Site = w.plain(len(t.site), func(i int) int64 { return t.site[i] })
}
