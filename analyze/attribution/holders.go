package attribution

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Sum is a number of live blocks.
type Sum struct {
	Count     int64
	Rounded   int64 // bytes taken in segments
	Requested int64 // bytes asked for
	PreTrace  int64 // rounded bytes of pre-trace blocks
}

func (s *Sum) add(l *timeline.Life) {
	s.Count++
	s.Rounded += l.Rounded
	s.Requested += l.Requested
	if l.Born < 0 {
		s.PreTrace += l.Rounded
	}
}

func (s *Sum) Add(o Sum) {
	s.Count += o.Count
	s.Rounded += o.Rounded
	s.Requested += o.Requested
	s.PreTrace += o.PreTrace
}

// Row is one group of live blocks.
type Row struct {
	Name string // never empty
	// Unattributed marks the rows of blocks of which the file does not say what was asked.
	Unattributed bool
	Sum
	// Pinned is the reserved bytes of all segments in which the row has a block: they cannot
	// be released while it lives. Rows share segments, so that these do not sum up.
	Pinned int64
	Stack  snapshot.StackID // only of ByStack
	Frames []string         // only of ByStack, innermost first; of the MaxFrames largest rows
	Notes  []Note
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
	if q.By == "" {
		q.By = ByStack
	}
	c := &collector{s: s, t: t, q: &q, classes: newClasses(s, t, &q), notes: newNotes(s, t), index: map[string]int32{}}
	for i := range st.Segments {
		seg := &st.Segments[i]
		c.segment(&seg.Range, seg.Live)
	}
	c.segment(nil, st.Outside)
	return c.finish()
}

// collector sums blocks by group.
type collector struct {
	s       *snapshot.Snapshot
	t       *timeline.Timeline
	q       *Query
	classes *classes
	notes   *notes

	index map[string]int32 // group by the key of its place
	rows  []Row
	long  []string // longer names, by group
	last  []int32  // the last segment in which a group had a block, from 1
	out   Sum
	seg   int32
}

// segment adds the blocks of one range; nil is of blocks in none.
func (c *collector) segment(r *timeline.Range, live []int32) {
	c.seg++
	here := int32(-1)
	for _, row := range live {
		l := &c.t.Lives[row]
		label := c.notes.label(l)
		class := c.classes.of(l, label)
		if !class.kept {
			c.out.add(l)
			continue
		}
		var g int32
		switch c.q.By {
		case ByStream, ByPool:
			if here < 0 {
				here = c.group(rangePlace(c.s, c.q.By, r))
			}
			g = here
		case ByCategory:
			name := c.q.Category(row)
			g = c.group(place{name, name, name, name != ""})
		default:
			if class.group < 0 {
				class.group = c.group(c.classPlace(class))
				c.rows[class.group].Stack = class.stack
			}
			g = class.group
		}
		p := &c.rows[g]
		p.add(l)
		c.notes.add(g, l, label)
		if r != nil && c.last[g] != c.seg {
			c.last[g] = c.seg
			p.Pinned += r.Size
		}
	}
}

func rangePlace(s *snapshot.Snapshot, by Kind, r *timeline.Range) place {
	name := "(in no known segment)"
	switch {
	case r == nil:
		return place{"\x00", name, name, false}
	case by == ByStream:
		name = streamName(s, r.Stream)
	default:
		name = poolName(r)
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

// group finds or makes the group of a place.
func (c *collector) group(p place) int32 {
	if g, ok := c.index[p.key]; ok {
		return g
	}
	if p.name == "" {
		p.name, p.long = "(unknown)", "(unknown)"
	}
	g := int32(len(c.rows))
	c.index[p.key] = g
	c.rows = append(c.rows, Row{Name: p.name, Unattributed: !p.known})
	c.long, c.last = append(c.long, p.long), append(c.last, 0)
	return g
}

func (c *collector) finish() *Holders {
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
		return cmp.Or(cmp.Compare(b.Rounded, a.Rounded), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Stack, b.Stack))
	})
	for i := range c.rows {
		r := &c.rows[i]
		if c.q.By != ByStack {
			r.Stack = 0
		} else if i < MaxFrames {
			r.Frames = frameTexts(c.s, r.Stack, c.q.Internals)
		}
	}
	return &Holders{By: c.q.By, Rows: c.rows, LeftOut: c.out}
}

func frameTexts(s *snapshot.Snapshot, stack snapshot.StackID, internals bool) []string {
	var out []string
	for _, id := range visible(s, stack, internals) {
		out = append(out, FrameText(s, id))
	}
	return out
}
