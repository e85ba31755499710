package detail

import (
	"snapana/analyze/attribution"
	"snapana/report/internal/view"
	"snapana/snapshot"
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
	return view.Clip(view.Plain(s[:min(len(s), 4*longest)]), longest)
}

// stacks collects the stacks that are used, as a tree.
type stacks struct {
	s       *snapshot.Snapshot
	texts   texts
	rows    map[key]int32 // of a stack
	node    []int32       // by row
	site    []int64
	parents []int32
	frames  []int32
	child   map[[2]int32]int32
	frame   map[snapshot.FrameID]int32
	text    []int64 // by frame
	origin  []attribution.Origin
}

// key tells stacks apart; a pre-trace block may have none because nobody recorded then.
type key struct {
	id       snapshot.StackID
	preTrace bool
}

func newStacks(s *snapshot.Snapshot) *stacks {
	return &stacks{
		s: s, texts: texts{[]string{""}, map[string]int{"": 0}}, rows: map[key]int32{},
		parents: []int32{0}, frames: []int32{0}, child: map[[2]int32]int32{}, frame: map[snapshot.FrameID]int32{},
	}
}

// row is the row of a stack, which is added when it is new.
func (t *stacks) row(id snapshot.StackID, preTrace bool) int32 {
	k := key{id, preTrace && id == 0}
	if row, ok := t.rows[k]; ok {
		return row
	}
	row := int32(len(t.node))
	t.rows[k] = row
	g := attribution.Group{Stack: id, Site: attribution.Site(t.s, id)}
	if k.preTrace {
		g.PreTrace, g.Rounded = 1, 1
	}
	node := int32(0)
	ids := t.s.Stacks.Get(id)
	for i := len(ids) - 1; i >= 0; i-- {
		node = t.below(node, t.frameRow(ids[i]))
	}
	t.node, t.site = append(t.node, node), append(t.site, t.texts.add(view.Site(&g)))
	return row
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
		t.origin = append(t.origin, attribution.OriginOf(t.s, id))
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
