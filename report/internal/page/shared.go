package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
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
	labels map[noted]int32 // rows of noted
	noted  []Label
	same   table[string] // rows of noted by what they say
}

// noted is what a label is made of.
type noted struct {
	label snapshot.LabelID
	stack snapshot.StackID // where it has FX nodes, else 0
}

// longestLabel bounds the text of a label, in runes: JSON that is cut has no keys any more.
const longestLabel = 2000

// labelOf is the row of what was noted beside an allocation, which is added when it is new.
func (t *stacks) labelOf(tl *timeline.Timeline, l *timeline.Life) int32 {
	var k noted
	if l.Born >= 0 && int(l.Born) < tl.Trace.Len() {
		k.label = tl.Trace.At(int(l.Born)).Label
	}
	if t.s.Frames.FX.Len() > 0 {
		k.stack = l.Stack
	}
	if k == (noted{}) {
		return 0
	}
	if row, ok := t.labels[k]; ok {
		return row
	}
	v := Label{Notes: []LabelNote{}}
	for _, n := range attribution.NotesOf(t.s, k.stack, k.label) {
		v.Notes = append(v.Notes, LabelNote{n.Kind, chart.Line(n.Text, longestLabel)})
	}
	row := int32(0) // most labels say nothing
	if len(v.Notes) > 0 {
		added := false
		if row, added = t.same.row(fmt.Sprint(v.Notes)); added {
			t.noted = append(t.noted, v)
		}
	}
	t.labels[k] = row
	return row
}

// node is a row of Nodes.
type node struct{ parent, frame int32 }

func newStacks(s *snapshot.Snapshot) *stacks {
	t := &stacks{s: s, rows: make([]int32, s.Stacks.Len()+2), labels: map[noted]int32{},
		noted: []Label{{Notes: []LabelNote{}}}}
	t.same.row("")
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
	d.Labels = t.noted
	d.Stacks.Node = column(w, plain, t.node)
	d.Stacks.Site = column(w, plain, t.site)
}

// Holder is what keeps memory at the dump, as the recorder saw it; sums are of all devices. Row 0
// of Data.Holders stands for the blocks that no tensor was seen in, and the last row for the
// holders that the page has no room for, if there are any: both have no Standing.
type Holder struct {
	Name     string   `json:"name"`
	Standing string   `json:"standing"` // as holder.Standing: "ghost" is a finding
	Chain    []string `json:"chain"`    // from the root to one of its tensors
	Bytes    int64    `json:"bytes"`    // rounded
	Blocks   int64    `json:"blocks"`
	Frees    int64    `json:"frees"`  // by letting go of it
	Shared   int64    `json:"shared"` // of Bytes, what something else keeps too
	With     []string `json:"with"`   // such as
	Grows    string   `json:"grows"`  // "" for what does not
	Fix      []string `json:"fix"`    // lines of Python, for what is a finding or may be one
}

// Held are the sums of the blocks of a device that the program has not freed at the dump, by row
// of Holders, whether the page has these blocks or not. It is empty without a recorder's file.
type Held struct {
	Bytes  Column `json:"bytes"` // rounded
	Blocks Column `json:"blocks"`
}

// Growth is the evidence of a finding on growth: what these stacks allocated in the trace, and
// the program has not freed after the event Horizon.
type Growth struct {
	Stacks  []int32 `json:"stacks"` // rows of Stacks
	Horizon int     `json:"horizon"`
}

// Bounds of what is told of one holder.
const (
	mostHops = 41 // a chain in words has no more
	mostWith = 3
)

// held numbers holders, and the blocks that they hold.
type held struct {
	all    []Holder
	row    map[holder.Block]int32 // of all
	unheld map[int]holder.Sum     // by ordinal
}

// newHeld takes at most n holders: ghosts, then those with the most bytes. They keep their order.
func newHeld(r *analyze.Result, n int) *held {
	h := &held{all: []Holder{}, row: map[holder.Block]int32{}, unheld: map[int]holder.Sum{}}
	if r.Holders == nil {
		return h
	}
	h.all = append(h.all, bare("no tensor was seen in it"))
	for i := range r.Holders.Devices {
		d := &r.Holders.Devices[i]
		h.unheld[d.Ordinal] = d.Unheld
		h.all[0].Bytes, h.all[0].Blocks = h.all[0].Bytes+d.Unheld.Bytes, h.all[0].Blocks+d.Unheld.Count
	}
	list := r.Holders.Holders
	keep := largest(list, n)
	for i := range list {
		if keep[i] {
			h.add(r.Snapshot, &list[i])
		}
	}
	if len(list) <= n {
		return h
	}
	rest := bare(units.Plural(len(list)-n, "more holder"))
	for i := range list {
		if x := &list[i]; !keep[i] {
			rest.Bytes, rest.Blocks = rest.Bytes+x.Bytes, rest.Blocks+x.Count
			h.number(x.Blocks)
		}
	}
	h.all = append(h.all, rest)
	return h
}

func bare(name string) Holder {
	return Holder{Name: name, Chain: []string{}, With: []string{}, Fix: []string{}}
}

// largest marks the n holders to keep.
func largest(list []holder.Holder, n int) []bool {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) int {
		if list[i].Standing == holder.Ghost {
			return 0
		}
		return 1
	}
	sorting.Stable(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(list[b].Bytes, list[a].Bytes))
	})
	keep := make([]bool, len(list))
	for _, i := range order[:min(n, len(order))] {
		keep[i] = true
	}
	return keep
}

// number gives blocks the row that comes next.
func (h *held) number(blocks []holder.Block) {
	for _, b := range blocks {
		h.row[b] = int32(len(h.all))
	}
}

func (h *held) add(s *snapshot.Snapshot, x *holder.Holder) {
	v := bare(clean(chart.HolderName(x)))
	v.Standing, v.Bytes, v.Blocks, v.Frees, v.Shared = string(x.Standing), x.Bytes, x.Count, x.Frees, x.Shared
	v.Chain, v.With = cleaned(x.Hops, mostHops), cleaned(x.SharedWith, mostWith)
	if x.Standing == holder.Ghost || x.Standing == holder.Other {
		v.Fix = cleaned(x.Fix(), mostHops)
	}
	if x.GrownBlocks > 0 && x.Loop != 0 && !x.Steady {
		v.Grows = clean(chart.HolderGrows(s, x))
	}
	h.number(x.Blocks)
	h.all = append(h.all, v)
}

func cleaned(list []string, n int) []string {
	out := []string{}
	for _, s := range list[:min(len(list), n)] {
		out = append(out, clean(s))
	}
	return out
}

// column is Lives.Holder of these rows.
func (h *held) column(w *writer, t *timeline.Timeline, rows []int32) Column {
	if len(h.all) == 0 {
		return column[int](w, plain, nil)
	}
	var of []int32
	for _, row := range rows {
		if t.Lives[row].Freed < 0 {
			of = append(of, h.row[holder.Block{Device: t.Device, Row: row}])
		}
	}
	return column(w, plain, of)
}

// write sums up the blocks of a device.
func (h *held) write(w *writer, t *timeline.Timeline) Held {
	sums := make([]holder.Sum, len(h.all))
	if len(sums) > 0 {
		sums[0] = h.unheld[t.Device]
	}
	for b, row := range h.row {
		if b.Device == t.Device {
			sums[row].Count++
			sums[row].Bytes += t.Lives[b.Row].Rounded
		}
	}
	return Held{
		Bytes:  w.column(plain, len(sums), func(i int) int64 { return sums[i].Bytes }),
		Blocks: w.column(plain, len(sums), func(i int) int64 { return sums[i].Count }),
	}
}

// growth is the evidence of the findings on growth, in their order.
func (src *source) growth(st *stacks) []Growth {
	out := []Growth{}
	for i := range src.Growth {
		g := &src.Growth[i]
		v := Growth{Stacks: []int32{}, Horizon: g.Horizon}
		for _, stack := range g.Stacks {
			v.Stacks = append(v.Stacks, st.row(stack, false))
		}
		out = append(out, v)
	}
	return out
}
