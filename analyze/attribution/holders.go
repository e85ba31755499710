package attribution

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
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
	classes := newClasses(s, t, &q)
	c := &collector{s: s, q: &q, notes: newNotes(s, t), index: map[string]int32{}}
	type key struct {
		class    *class
		label    snapshot.LabelID
		segment  int
		category string
	}
	h := &Holders{By: q.By}
	for _, g := range GroupBy(t, st, func(segment int, row int32) key {
		l := &t.Lives[row]
		k := key{label: c.notes.label(l), segment: segment}
		k.class = classes.of(l, k.label)
		if q.By == ByCategory && k.class.kept {
			k.category = q.Category(row)
		}
		return k
	}) {
		k := &g.Key
		if !k.class.kept {
			h.LeftOut.Add(g.Sum)
			continue
		}
		var r *timeline.Range
		if k.segment >= 0 {
			r = &st.Segments[k.segment].Range
		}
		var at int32
		switch q.By {
		case ByStream, ByPool:
			at = c.row(rangePlace(s, q.By, r))
		case ByCategory:
			at = c.row(place{k.category, k.category, k.category, k.category != ""})
		default:
			if k.class.row < 0 {
				k.class.row = c.row(c.classPlace(k.class))
				c.rows[k.class.row].Stack = k.class.stack
			}
			at = k.class.row
		}
		p := &c.rows[at]
		p.Add(g.Sum)
		c.notes.add(at, k.class.stack, k.label, g.Sum)
		if r != nil && c.last[at] != k.segment {
			c.last[at] = k.segment
			p.Pinned += r.Size
		}
	}
	h.Rows = c.finish()
	return h
}

// collector makes rows of places.
type collector struct {
	s     *snapshot.Snapshot
	q     *Query
	notes *notes
	index map[string]int32 // row by the key of its place
	rows  []Row
	long  []string // longer names, by row
	last  []int    // the last segment in which a row had a block, -1 for none
}

func rangePlace(s *snapshot.Snapshot, by Kind, r *timeline.Range) place {
	if r == nil {
		return named("(in no known segment)", false)
	}
	name := poolName(r)
	if by == ByStream {
		name = streamName(s, r.Stream)
	}
	return place{name, name, name, true}
}

func (c *collector) classPlace(class *class) place {
	if c.q.By != ByStack {
		return placeOf(c.s, c.q.By, class)
	}
	p := placeOf(c.s, BySite, class.alone())
	if p.known {
		p.key = strconv.Itoa(int(class.stack))
	}
	return p
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
	return g
}

func (c *collector) finish() []Row {
	if c.q.By != ByStack { // stacks of one site differ in their frames
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
	slices.SortFunc(c.rows, func(a, b Row) int {
		return cmp.Or(a.compare(&b.Sum), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Stack, b.Stack))
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
