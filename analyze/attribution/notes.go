package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Note is what torch recorded beside the stacks of some of a row's blocks.
type Note struct {
	// Kind is "compile_context", "user_metadata", "internal_metadata", "category" (of files
	// made from a profiler), "annotation" (the last of a block), "fx_node", "fx_trace" (the line of the
	// program that the node was traced from) or "forward": the innermost frames of the forward call whose
	// backward allocated.
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
	note  snapshot.StringID
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

// add counts blocks of one stack, label and annotation for a row.
func (n *notes) add(row int32, stack snapshot.StackID, label snapshot.LabelID, note snapshot.StringID, sum Sum) {
	if note != 0 {
		n.count(noteKey{row: row, note: note}, sum)
	}
	if label != 0 {
		n.count(noteKey{row: row, label: label}, sum)
	}
	if n.fx == nil {
		return
	}
	fx := &n.fx[stack]
	if *fx == 0 {
		if *fx = fxOf(n.s, stack); *fx == 0 {
			*fx = -1
		}
	}
	if *fx > 0 {
		n.count(noteKey{row: row, fx: *fx}, sum)
	}
}

// fxOf is the innermost FX node of a stack, 0 for none.
func fxOf(s *snapshot.Snapshot, stack snapshot.StackID) int32 {
	for _, id := range s.Stacks.Get(stack) {
		if f := s.Frames.Get(id); f.FX > 0 {
			return f.FX
		}
	}
	return 0
}

func (n *notes) count(k noteKey, sum Sum) {
	v := n.sum[k]
	v.Add(sum)
	n.sum[k] = v
}

// texts says in words what a key stands for, as notes without sums.
func (n *notes) texts(k noteKey) []Note {
	switch {
	case k.note != 0:
		return []Note{{Kind: "annotation", Text: n.s.Strings.Get(k.note)}}
	case k.fx > 0:
		return fxNotes(n.s, k.fx)
	}
	return labelNotes(n.s, k.label)
}

// NotesOf lists what torch and the program noted of a block when it was allocated, without sums.
func NotesOf(s *snapshot.Snapshot, stack snapshot.StackID, label snapshot.LabelID) []Note {
	return append(labelNotes(s, label), fxNotes(s, fxOf(s, stack))...)
}

func fxNotes(s *snapshot.Snapshot, id int32) []Note {
	if id == 0 {
		return nil
	}
	get := s.Strings.Get
	fx := s.Frames.FX.Get(id)
	text := strings.Join(strings.Fields(get(fx.Op)+" "+get(fx.Name)), " ")
	if target := get(fx.Target); target != "" {
		text += " (" + target + ")"
	}
	all := []Note{
		{Kind: "fx_node", Text: strings.TrimSpace(text)}, {Kind: "fx_trace", Text: lastLine(get(fx.OriginalTrace))},
	}
	return slices.DeleteFunc(all, func(n Note) bool { return n.Text == "" })
}

// lastLine is the innermost line of a traceback, which comes last, with the code that follows it.
func lastLine(trace string) string {
	at := strings.LastIndex(trace, "File \"")
	return strings.Join(strings.Fields(trace[max(at, 0):]), " ")
}

func labelNotes(s *snapshot.Snapshot, label snapshot.LabelID) []Note {
	get := s.Strings.Get
	l := s.Labels.Get(label)
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
		return n.Text == "" || n.Kind == "compile_context" && n.Text == NoRegion
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
		sorting.By(out[i], func(a, b Note) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
		})
		out[i] = out[i][:min(len(out[i]), maxNotes)]
	}
	return out
}
