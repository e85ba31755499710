package page

import (
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
)

// Difference is all that the script of a diff's page knows. It is the contract with report/html/ui/changes.ts, and
// travels as Data does.
type Difference struct {
	Version int      `json:"version"`
	Strings []string `json:"strings"`
	Frames  Frames   `json:"frames"`
	Nodes   Nodes    `json:"nodes"`
	Pairs   Pairs    `json:"pairs"`
	Tables  []Table  `json:"tables"` // by diff.Kinds
	Sides   [2]Side  `json:"sides"`
	// Steps is how many steps of the sides can be compared by their numbers, 0 for none.
	Steps int  `json:"steps"`
	Same  bool `json:"same"` // both sides are moments of one trace
}

// Pairs are the memory of one code on both sides, largest differences first. What there is no room for is in the last
// two: what grew, and what did not.
type Pairs struct {
	A    Column `json:"a"` // rounded bytes
	B    Column `json:"b"`
	Node Column `json:"node"` // row of Nodes: the innermost call, on side B where that has it
	// CourseA and CourseB are one more than the rows of Side.Courses, 0 for none.
	CourseA Column `json:"course_a"`
	CourseB Column `json:"course_b"`
}

// Table is what the pairs sum up to by one kind, largest differences first. The last row has the others, where there are
// more than a page shows.
type Table struct {
	Kind  string       `json:"kind"`
	Name  Column       `json:"name"` // row of Strings
	A     Column       `json:"a"`    // rounded bytes
	B     Column       `json:"b"`
	State []diff.State `json:"state"`
	Noise Column       `json:"noise"` // 1 where the difference is no larger than those within a side
	// OfA and OfB are one more than the row that a pair's side is in, 0 where it has none.
	OfA Column `json:"of_a"`
	OfB Column `json:"of_b"`
	// OthersA and OthersB are the same of the courses behind those of pairs, of memory that there is at other moments.
	OthersA Column `json:"others_a"`
	OthersB Column `json:"others_b"`
	// Sure says that a side has nothing of a row at other moments either where no course is of it: names are of the same
	// code on both sides.
	Sure bool `json:"sure"`
}

// Side is one side's memory over its trace, as footprint.Course has it. Without one it has no samples, and the peaks of
// steps in their place where those are known: then it has steps and no events.
type Side struct {
	Events int    `json:"events"` // length of the trace
	At     int    `json:"at"`     // event of the moment that is compared, -1 before the trace
	Peak   int    `json:"peak"`   // event
	OOMs   []int  `json:"ooms"`   // events of requests that failed, the last ones
	Unit   string `json:"unit"`   // what a step is
	First  Column `json:"first"`  // of each sample's events
	Event  Column `json:"event"`  // the one after which most is active
	Active Column `json:"active"` // bytes after it
	// StepFirst and StepLast are the events of steps, StepPeak the highest active bytes in each.
	StepFirst Column `json:"step_first"`
	StepLast  Column `json:"step_last"`
	StepPeak  Column `json:"step_peak"`
	// Courses are the bytes at each sample: of the groups of pairs, then of the memory of stacks that have none at the moment
	// that is compared.
	Courses Column `json:"courses"`
	Pairs   int    `json:"pairs"` // how many courses are of pairs
	Left    int    `json:"left"`  // how many of others there is no room for
}

// Bounds of what a page of a diff has.
const (
	maxPairs   = 4000
	maxTable   = 2000 // rows
	maxCourses = 1500 // of each side
	maxSteps   = 30_000
	maxOOMs    = 100
)

// PackDifference packs what a diff's page draws from in at most size bytes of text. It gives nil when nothing fits.
func PackDifference(r *diff.Result, size int) ([]byte, *Difference, error) {
	for courses := maxCourses; ; courses /= 2 {
		w := &writer{}
		d := &Difference{Version: Version, Steps: r.Steps(), Same: r.A.Course.IsSame(r.B.Course)}
		x := differing{Result: r, w: w, kept: min(len(r.Pairs), maxPairs), courses: courses}
		x.names.row("")
		x.nodes.row(node{-1, 0})
		x.pairs(d)
		for _, by := range diff.Kinds() {
			d.Tables = append(d.Tables, x.table(by))
		}
		d.Strings = x.names.all
		text, err := w.pack(d)
		switch {
		case err != nil:
			return nil, nil, err
		case len(text) <= size:
			return text, d, nil
		case courses == 0:
			return nil, nil, nil
		}
	}
}

// differing collects what the page of a diff has.
type differing struct {
	*diff.Result
	w       *writer
	kept    int // pairs
	courses int
	names   table[string]
	frames  table[call]
	nodes   table[node]
}

type call struct {
	text   string
	origin frames.Origin
}

// node is the row of a pair's innermost call.
func (x *differing) node(p *diff.Pair) int64 {
	at := int32(0)
	enter := func(c call) {
		row, _ := x.frames.row(c)
		at, _ = x.nodes.row(node{at, row})
	}
	for _, c := range slices.Backward(x.Stack(p)) {
		text := clean(c.Text())
		if c.OnlyA && x.Moved(attribution.BySite) {
			text += " (A)" // side B may have another line of that name
		}
		enter(call{text, c.Origin})
	}
	if at == 0 {
		g := p.B
		if g == nil {
			g = p.A
		}
		enter(call{clean(g.Site), frames.Plumbing})
	}
	return int64(at)
}

func (x *differing) pairs(d *Difference) {
	w, kept := x.w, x.Pairs[:x.kept]
	var a, b, at []int64
	for i := range kept {
		p := &kept[i]
		a, b = append(a, bytesOf(p.A)), append(b, bytesOf(p.B))
		at = append(at, x.node(p))
	}
	if rest := x.Pairs[x.kept:]; len(rest) > 0 {
		var sums [2][2]int64
		for i := range rest {
			k := 1
			if rest[i].Delta() > 0 {
				k = 0
			}
			sums[k][0] += bytesOf(rest[i].A)
			sums[k][1] += bytesOf(rest[i].B)
		}
		for k, name := range []string{"(smaller differences: grown)", "(smaller differences: shrunk or the same)"} {
			row, _ := x.frames.row(call{name, frames.Plumbing})
			n, _ := x.nodes.row(node{0, row})
			a, b = append(a, sums[k][0]), append(b, sums[k][1])
			at = append(at, int64(n))
		}
	}
	var of [2][]int64
	for side, f := range []*footprint.Footprint{x.A, x.B} {
		d.Sides[side], of[side] = x.side(f, side, len(a))
	}
	d.Pairs = Pairs{
		A: column(w, plain, a), B: column(w, plain, b), Node: column(w, plain, at),
		CourseA: column(w, plain, of[0]), CourseB: column(w, plain, of[1]),
	}
	d.Frames.Text = w.column(plain, len(x.frames.all), func(i int) int64 {
		row, _ := x.names.row(x.frames.all[i].text)
		return int64(row)
	})
	d.Frames.Origin = w.column(plain, len(x.frames.all), func(i int) int64 { return int64(x.frames.all[i].origin) })
	nodes := x.nodes.all
	d.Nodes.Parent = w.column(deltas, len(nodes), func(i int) int64 { return int64(max(nodes[i].parent, 0)) })
	d.Nodes.Frame = w.column(plain, len(nodes), func(i int) int64 { return int64(nodes[i].frame) })
}

// side gives a side, and which course each of n pairs has.
func (x *differing) side(f *footprint.Footprint, side, n int) (Side, []int64) {
	w, of := x.w, make([]int64, n)
	v := Side{At: -1, Peak: -1, OOMs: []int{}, Unit: clean(f.Unit)}
	if len(f.Steps) <= maxSteps { // a part of them would look like all
		v.StepPeak = w.column(plain, len(f.Steps), func(i int) int64 { return f.Steps[i].Peak })
	}
	c := f.Course
	if c == nil {
		return v, of
	}
	v.Events, v.At, v.Peak = c.Events, c.At, c.Peak
	v.OOMs = append(v.OOMs, c.OOMs[max(len(c.OOMs)-maxOOMs, 0):]...)
	v.First = w.column(deltas, len(c.Samples), func(i int) int64 { return int64(c.Samples[i].First) })
	v.Event = w.column(deltas, len(c.Samples), func(i int) int64 { return int64(c.Samples[i].Event) })
	v.Active = w.column(deltas, len(c.Samples), func(i int) int64 { return c.Samples[i].Active })
	if v.StepPeak.Len > 0 {
		v.StepFirst = w.column(deltas, len(c.Steps), func(i int) int64 { return int64(c.Steps[i].First) })
		v.StepLast = w.column(deltas, len(c.Steps), func(i int) int64 { return int64(c.Steps[i].Last) })
	}
	rows := map[*footprint.Group]int{}
	for i := range c.Groups {
		rows[&f.Groups[i]] = i
	}
	var all []int64
	count := 0
	for i := range x.Pairs[:x.kept] {
		g := [2]*footprint.Group{x.Pairs[i].A, x.Pairs[i].B}[side]
		row, ok := rows[g]
		if g == nil || !ok || count == x.courses {
			continue
		}
		count++
		all, of[i] = append(all, c.Groups[row]...), int64(count)
	}
	others := c.Others[:min(len(c.Others), x.courses)]
	for i := range others {
		all = append(all, others[i].Bytes...)
	}
	v.Courses, v.Pairs, v.Left = column(w, deltas, all), count, c.Left+len(c.Others)-len(others)
	return v, of
}

func (x *differing) table(by attribution.Kind) Table {
	rows, of := x.Rows(by)
	t := Table{Kind: string(by), State: []diff.State{}, Sure: by != attribution.ByStack && !x.Moved(by)}
	shown := len(rows)
	if shown > maxTable {
		rest := diff.Row{Name: "(others)"}
		for _, v := range rows[maxTable:] {
			rest.A, rest.B = rest.A+v.A, rest.B+v.B
		}
		shown = maxTable
		rest.State = diff.StateOf(rest.A, rest.B)
		rows = append(slices.Clone(rows[:shown]), rest)
	}
	for i := range rows {
		t.State = append(t.State, rows[i].State)
	}
	number := func(mode byte, at func(v *diff.Row) int64) Column {
		return x.w.column(mode, len(rows), func(i int) int64 { return at(&rows[i]) })
	}
	t.Name = number(plain, func(v *diff.Row) int64 {
		row, _ := x.names.row(clean(v.Name))
		return int64(row)
	})
	t.A = number(plain, func(v *diff.Row) int64 { return v.A })
	t.B = number(plain, func(v *diff.Row) int64 { return v.B })
	t.Noise = number(plain, func(v *diff.Row) int64 {
		if v.Noise {
			return 1
		}
		return 0
	})
	for side, to := range []*Column{&t.OfA, &t.OfB} {
		*to = x.w.column(plain, x.kept, func(i int) int64 { return int64(min(of[i][side], int32(shown)) + 1) })
	}
	t.OthersA, t.OthersB = x.others(rows[:shown], by, 0), x.others(rows[:shown], by, 1)
	return t
}

// others says in which rows the courses of a side are that no pair has.
func (x *differing) others(rows []diff.Row, by attribution.Kind, side int) Column {
	f := [2]*footprint.Footprint{x.A, x.B}[side]
	if f.Course == nil {
		return column[int](x.w, plain, nil)
	}
	rowOf, list := x.RowOf(rows, by, side), f.Course.Others
	return x.w.column(plain, min(len(list), x.courses), func(i int) int64 {
		v := &list[i]
		return int64(rowOf(&footprint.Group{Stack: -1, Site: v.Site, Module: v.Module, Use: v.Use}) + 1)
	})
}

func bytesOf(g *footprint.Group) int64 {
	if g == nil {
		return 0
	}
	return g.Rounded
}
