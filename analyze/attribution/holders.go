package attribution

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Row is one group of live blocks.
type Row struct {
	Name string `json:"name"` // never empty
	// Unattributed marks the rows of blocks of which the file does not say what was asked.
	Unattributed bool `json:"unattributed"`
	Sum
	// Pinned is the reserved bytes of all segments in which the row has a block: they cannot
	// be released while it lives. Rows share segments, so that these do not sum up.
	Pinned int64            `json:"pinned"`
	Stack  snapshot.StackID `json:"-"`      // only of ByStack
	Frames []string         `json:"frames"` // only of ByStack, innermost first; of the MaxFrames largest rows
	Notes  []Note           `json:"notes"`
	// Largest is the block with the most rounded bytes, the first of equal ones.
	Largest Block `json:"largest"`
}

// Holders are the live blocks of one moment, grouped.
type Holders struct {
	By   Kind
	Rows []Row // most rounded bytes first
	// LeftOut are the blocks that Match and Exclude took away. With the rows they sum up to
	// the state's active bytes.
	LeftOut Sum
}

// Kept sums the rows.
func (h *Holders) Kept() Sum {
	var sum Sum
	for i := range h.Rows {
		sum.Add(h.Rows[i].Sum)
	}
	return sum
}

// Hold groups the live blocks of a state.
func Hold(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State, q Query) *Holders {
	q.By = cmp.Or(q.By, ByStack)
	c := &collector{s: s, q: &q, t: t, notes: newNotes(s), labels: newLabels(s, q.By), index: map[string]int32{}}
	kept, leftOut := portions(s, t, st, &q)
	for i := range kept {
		g := &kept[i]
		var r *timeline.Range
		if g.Key.segment >= 0 {
			r = &st.Segments[g.Key.segment].Range
		}
		at := c.rowOf(&g.Key, r)
		p := &c.rows[at]
		p.Add(g.Sum)
		c.notes.add(at, g.Key.stack, g.Key.label, g.Key.note, g.Sum)
		if t.Lives[g.Largest].Rounded > t.Lives[c.largest[at]].Rounded || p.Count == g.Sum.Count {
			c.largest[at], c.homes[at] = g.Largest, timeline.Range{}
			if r != nil {
				c.homes[at] = *r
			}
		}
		if r != nil && c.last[at] != g.Key.segment {
			c.last[at] = g.Key.segment
			p.Pinned += r.Size
		}
	}
	return &Holders{By: q.By, Rows: c.finish(), LeftOut: leftOut}
}

// collector makes rows of places.
type collector struct {
	s      *snapshot.Snapshot
	t      *timeline.Timeline
	q      *Query
	notes  *notes
	labels *labels
	index  map[string]int32 // row by the key of its place
	rows   []Row
	long   []string // longer names, by row
	last   []int    // the last segment in which a row had a block, -1 for none
	// The largest block of each row, and the range that it lives in.
	largest []int32
	homes   []timeline.Range
}

// rowOf finds or makes the row of blocks in a range, nil for none.
func (c *collector) rowOf(p *portion, r *timeline.Range) int32 {
	switch c.q.By {
	case ByCategory:
		return c.row(named(p.category, p.category != ""))
	case ByStream, ByPool:
		switch {
		case r == nil:
			return c.row(named("(in no known segment)", false))
		case c.q.By == ByStream:
			return c.row(named(streamName(c.s, r.Stream), true))
		}
		return c.row(named(poolName(r), true))
	case ByBlock:
		at := placeOf(c.s, BySite, p.class)
		at.key = strconv.Itoa(int(p.life))
		return c.row(at)
	}
	if c.q.By.label() {
		return c.row(c.labels.place(p.label, p.note, p.born))
	}
	if p.row < 0 {
		var at place
		if c.q.By != ByStack {
			at = placeOf(c.s, c.q.By, p.class)
		} else if at = placeOf(c.s, BySite, p.alone()); at.known {
			at.key = strconv.Itoa(int(p.stack))
		}
		p.row = c.row(at)
		c.rows[p.row].Stack = p.stack
	}
	return p.row
}

// row finds or makes the row of a place.
func (c *collector) row(p place) int32 {
	if g, ok := c.index[p.key]; ok {
		return g
	}
	if p.name == "" {
		p.name, p.long = "(unknown)", "(unknown)"
	}
	g := int32(len(c.rows))
	c.index[p.key] = g
	c.rows = append(c.rows, Row{Name: p.name, Unattributed: !p.known})
	c.long, c.last = append(c.long, p.long), append(c.last, -1)
	c.largest, c.homes = append(c.largest, 0), append(c.homes, timeline.Range{})
	return g
}

func (c *collector) finish() []Row {
	if c.q.By != ByStack && c.q.By != ByBlock { // stacks of one site differ in their frames
		same := map[string]int{}
		for i := range c.rows {
			same[c.rows[i].Name]++
		}
		for i := range c.rows {
			if same[c.rows[i].Name] > 1 {
				c.rows[i].Name = c.long[i]
			}
		}
	}
	for i, n := range c.notes.perRow(len(c.rows)) {
		c.rows[i].Notes = n
	}
	for i, b := range Blocks(c.t, c.largest, c.homes) {
		c.rows[i].Largest = b
	}
	sorting.By(c.rows, func(a, b Row) int {
		return cmp.Or(a.compare(&b.Sum), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Stack, b.Stack),
			cmp.Compare(a.Largest.Name.Addr, b.Largest.Name.Addr))
	})
	for i := range c.rows {
		r := &c.rows[i]
		if c.q.By != ByStack {
			r.Stack = 0
		} else if i < MaxFrames {
			for _, id := range visible(c.s, r.Stack, c.q.least()) {
				r.Frames = append(r.Frames, FrameText(c.s, id))
			}
		}
	}
	return c.rows
}

// class is all blocks with one stack and one forward traceback: what is worked out from
// frames is worked out once for each.
type class struct {
	classKey
	forward []frame
	kept    bool

	row   int32    // of Holders, -1 before its first block
	path  []string // in the tree, nil before its first block
	known bool     // path is not only what stands for an unknown one
}

type classKey struct {
	stack   snapshot.StackID // 0 without frames
	noStack string           // why there are no frames, empty when there are
	text    snapshot.StringID
}

// alone is the class without its forward traceback.
func (c *class) alone() *class { return &class{classKey: classKey{stack: c.stack, noStack: c.noStack}} }

// portion is the live blocks of a class that were born with one label and lie in one segment.
type portion struct {
	*class
	label    snapshot.LabelID
	segment  int               // its place in State.Segments, -1 for none
	category string            // only of ByCategory
	life     int32             // row of Timeline.Lives, only of ByBlock
	note     snapshot.StringID // what the block was last annotated as
	born     bool              // in the trace, only of labels
}

// portions groups the live blocks that a query is about; leftOut are those that its Match and
// Exclude take away.
func portions(
	s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State, q *Query,
) (kept []Keyed[portion], leftOut Sum) {
	c := &classes{
		s: s, q: q, traced: t.Trace.Len() > 0, all: map[classKey]*class{},
		matched: make([]int8, s.Frames.Len()+1), unmatched: make([]int8, s.Frames.Len()+1),
	}
	annotated, label := notesAt(s, t, st.Event), q.By.label()
	all := GroupBy(t, st, func(segment int, row int32) portion {
		l := &t.Lives[row]
		p := portion{segment: segment, note: annotated[row], born: label && l.Born >= 0}
		if q.By == ByBlock {
			p.life = row
		}
		if l.Born >= 0 && s.Labels.Len() > 0 { // nothing is known of pre-trace blocks
			p.label = t.Trace.At(int(l.Born)).Label
		}
		p.class = c.of(l, p.label)
		if q.By == ByCategory && p.kept {
			p.category = q.Category(row)
		}
		return p
	})
	kept = slices.DeleteFunc(all, func(p Keyed[portion]) bool {
		if !p.Key.kept {
			leftOut.Add(p.Sum)
		}
		return !p.Key.kept
	})
	return kept, leftOut
}

type classes struct {
	s         *snapshot.Snapshot
	q         *Query
	traced    bool
	matched   []int8 // by frame, for Match: 0 not yet known, 1 no, 2 yes
	unmatched []int8 // the same for Exclude
	all       map[classKey]*class
}

// of gives the class of a block that was born with a label.
func (c *classes) of(l *timeline.Life, label snapshot.LabelID) *class {
	k := classKey{stack: l.Stack}
	if len(c.s.Stacks.Get(l.Stack)) == 0 {
		k.stack, k.noStack = 0, c.noStack(l)
	}
	if label != 0 {
		k.text = c.s.Labels.Get(label).ForwardFrames
	}
	if v := c.all[k]; v != nil {
		return v
	}
	v := &class{classKey: k, row: -1}
	if k.text != 0 {
		v.forward = forwardFrames(c.s.Strings.Get(k.text))
	}
	v.kept = (c.q.Match == nil || c.any(c.q.Match, c.matched, v)) &&
		(c.q.Exclude == nil || !c.any(c.q.Exclude, c.unmatched, v))
	c.all[k] = v
	return v
}

// any reports whether a frame of a class matches.
func (c *classes) any(re *regexp.Regexp, known []int8, v *class) bool {
	for _, id := range c.s.Stacks.Get(v.stack) {
		if known[id] == 0 {
			known[id] = 1
			if f := frameOf(c.s, id); (c.q.Internals || f.class.Origin() != frames.Plumbing) && f.matches(re) {
				known[id] = 2
			}
		}
		if known[id] == 2 {
			return true
		}
	}
	return slices.ContainsFunc(v.forward, func(f frame) bool { return f.matches(re) })
}

// Lines that stand for a stack without frames.
const (
	NoFrames      = "(no Python stack)"
	NoStackBefore = "(before the trace, no recorded stack)"
	NoStack       = "(no recorded stack)"
)

// noStack says why a block has no frames. Blocks of a dump have a list of frames even when
// nothing was recorded, which for events is told apart (snapshot/SPEC.md 2.3, 2.4).
func (c *classes) noStack(l *timeline.Life) string {
	switch {
	case l.Born < 0 && c.traced:
		return NoStackBefore
	case l.Born >= 0 && l.Stack == snapshot.EmptyStack:
		return NoFrames
	}
	return NoStack
}
