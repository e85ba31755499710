package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Note is what torch recorded beside the stacks of some of a row's blocks.
type Note struct {
	// Kind is "compile_context", "user_metadata", "internal_metadata", "category" (of files
	// made from a profiler), "fx_node" or "forward": the innermost frames of the forward call
	// whose backward allocated.
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"` // rounded
}

// maxNotes is how many notes a row keeps: those of the most bytes.
const maxNotes = 8

// noteKey is a row's label or FX node.
type noteKey struct {
	row   int32
	label snapshot.LabelID
	fx    int32 // id in Frames.FX
}

// notes collects what is known of blocks by row.
type notes struct {
	s   *snapshot.Snapshot
	sum map[noteKey]Sum
	fx  []int32 // by stack: id in Frames.FX, 0 not yet known, -1 none
}

func newNotes(s *snapshot.Snapshot) *notes {
	n := &notes{s: s, sum: map[noteKey]Sum{}}
	if s.Frames.FX.Len() > 0 {
		n.fx = make([]int32, s.Stacks.Len()+1)
	}
	return n
}

// add counts blocks of one stack and label for a row.
func (n *notes) add(row int32, stack snapshot.StackID, label snapshot.LabelID, sum Sum) {
	if label != 0 {
		n.count(noteKey{row: row, label: label}, sum)
	}
	if n.fx == nil {
		return
	}
	fx := &n.fx[stack]
	if *fx == 0 {
		*fx = -1
		for _, id := range n.s.Stacks.Get(stack) {
			if f := n.s.Frames.Get(id); f.FX > 0 {
				*fx = f.FX
				break
			}
		}
	}
	if *fx > 0 {
		n.count(noteKey{row: row, fx: *fx}, sum)
	}
}

func (n *notes) count(k noteKey, sum Sum) {
	v := n.sum[k]
	v.Add(sum)
	n.sum[k] = v
}

// texts says in words what a key stands for, as notes without sums.
func (n *notes) texts(k noteKey) []Note {
	get := n.s.Strings.Get
	if k.fx > 0 {
		fx := n.s.Frames.FX.Get(k.fx)
		text := strings.Join(strings.Fields(get(fx.Op)+" "+get(fx.Name)), " ")
		if target := get(fx.Target); target != "" {
			text += " (" + target + ")"
		}
		return []Note{{Kind: "fx_node", Text: strings.TrimSpace(text)}}
	}
	l := n.s.Labels.Get(k.label)
	var forward []string
	for _, f := range forwardFrames(get(l.ForwardFrames)) {
		forward = append(forward, f.base())
	}
	all := []Note{
		{Kind: "compile_context", Text: get(l.CompileContext)}, {Kind: "user_metadata", Text: get(l.UserMetadata)},
		{Kind: "internal_metadata", Text: get(l.InternalMetadata)}, {Kind: "category", Text: get(l.Category)},
		{Kind: "forward", Text: strings.Join(forward[:min(len(forward), 3)], " < ")},
	}
	return slices.DeleteFunc(all, func(n Note) bool {
		return n.Text == "" || n.Kind == "compile_context" && n.Text == "N/A"
	})
}

// perRow gives the notes of each row, most bytes first.
func (n *notes) perRow(rows int) [][]Note {
	type key struct {
		row  int32
		note Note
	}
	sums := map[key]Sum{}
	for k, v := range n.sum {
		for _, note := range n.texts(k) {
			sum := sums[key{k.row, note}]
			sum.Add(v)
			sums[key{k.row, note}] = sum
		}
	}
	out := make([][]Note, rows)
	for k, v := range sums {
		out[k.row] = append(out[k.row], Note{k.note.Kind, k.note.Text, v.Count, v.Rounded})
	}
	for i := range out {
		slices.SortFunc(out[i], func(a, b Note) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
		})
		out[i] = out[i][:min(len(out[i]), maxNotes)]
	}
	return out
}
