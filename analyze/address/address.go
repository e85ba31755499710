package address

import (
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Status says what an address is at a moment.
type Status string

const (
	Allocated  Status = "allocated"  // in a live block
	Pending    Status = "pending"    // in a block that the program freed, and that waits for another stream
	Free       Status = "free"       // in a segment, where no block lives
	Unreserved Status = "unreserved" // in no segment
)

// Answer is who lives at an address, at a moment and at any other. Numbers of events are right after them, -1
// before the trace; times are microseconds since the Unix epoch, 0 unknown.
type Answer struct {
	File     string `json:"file"`
	Partial  string `json:"partial"` // why only a part of the file was read, empty for all of it
	Device   int    `json:"device"`
	Why      string `json:"-"` // why this device, empty when the file has no other
	Address  string `json:"address"`
	Headline string `json:"headline"`
	// Reasons are what else follows: what an access would have hit.
	Reasons  []string `json:"reasons"`
	Moment   string   `json:"moment"`
	Event    int      `json:"event"`
	Events   int      `json:"events"`
	Time     int64    `json:"time_us"`
	Balanced bool     `json:"balanced"` // the file does not contradict itself
	Status   Status   `json:"status"`
	// Timeline is what the answer was found in.
	Timeline *timeline.Timeline `json:"-"`
	// Beyond says that the address lies behind the bytes that its live block was asked for.
	Beyond bool `json:"beyond_requested"`
	// Segment is the one that has the address at the moment, nil for none.
	Segment *Segment `json:"segment"`
	// Below and Above are the live blocks next to the address, or to its block, at the moment: of the
	// segment that has it, else of any, but no more than 1 GiB away.
	Below *Neighbor `json:"below"`
	Above *Neighbor `json:"above"`
	// Host is the block of pinned host memory that has the address at the end, nil for none.
	Host *HostBlock `json:"host"`
	// Owners are the blocks that lived at the address, in order of birth: all, or those near the moment.
	Owners  []Owner `json:"owners"`
	OwnersN int     `json:"owners_total"`
	// Segments are those that had the address, in their order.
	Segments []Segment `json:"segments"`

	addr      uint64
	snapshot  *snapshot.Snapshot
	traced    bool
	last      *Owner // the last owner before the moment, nil for none
	next      *Owner // the first after it
	now       *Owner // the one at it
	firstTime int64
	offset    int64 // of the address in Segment
	nearest   *Segment
}

// Segment is a reserved range that has the address.
type Segment struct {
	Address    string `json:"address"`
	Size       int64  `json:"size"`
	Stream     string `json:"stream"`
	Pool       string `json:"pool"`
	Kind       string `json:"kind"`
	Expandable bool   `json:"expandable"`
	From       int    `json:"from"` // event, -1 when it was there before the trace
	To         *int   `json:"to"`   // event, nil for one that is still there at the end

	addr uint64
}

// HostBlock is a block of pinned host memory.
type HostBlock struct {
	Address string `json:"address"`
	Size    int64  `json:"size"`
	State   string `json:"state"`

	addr uint64
}

// Neighbor is a live block beside the address.
type Neighbor struct {
	attribution.Block
	// Distance is how many bytes lie between the address and the block.
	Distance int64  `json:"distance"`
	Site     string `json:"site"`
}

// Owner is a block that lived at the address.
type Owner struct {
	attribution.Block
	When   string `json:"when"`   // "before" the moment, "now", "after"
	Asked  bool   `json:"asked"`  // its generation was asked for
	Offset int64  `json:"offset"` // of the address in the block
	Beyond bool   `json:"beyond_requested"`

	BornTime int64 `json:"born_us"`
	// FreeRequested is when the program freed it and Freed when it went back to the pool: events, nil for not
	// yet, -1 before the trace.
	FreeRequested     *int  `json:"free_requested"`
	FreeRequestedTime int64 `json:"free_requested_us"`
	Freed             *int  `json:"freed"`
	FreedTime         int64 `json:"freed_us"`

	Category    string             `json:"category"` // what it is for, empty when not known
	Site        string             `json:"site"`     // the code that allocated it, never empty
	Frames      []string           `json:"frames"`   // innermost first
	FreeSite    string             `json:"free_site"`
	FreeFrames  []string           `json:"free_frames"` // of the code that freed it, where that was recorded
	Notes       []Note             `json:"notes"`
	Annotations []AnnotationOfText `json:"annotations"`

	row int32
}

// Note is what was recorded beside the stack of an allocation: a kind and a text as those of attribution.Note.
type Note struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// AnnotationOfText is what the program said of the block while it lived.
type AnnotationOfText struct {
	Event int    `json:"event"`
	Text  string `json:"text"`
}

const (
	maxFrames = 64 // of a stack
	// maxStray is how far from memory of the allocator an address has nothing to do with it.
	maxStray = 1 << 30
)

// Device says which of several devices knows an address, and which of the addresses that a query can mean: the
// first device and address with a block, else with a segment, else the first ones.
func Device(all []*timeline.Timeline, q Query) (*timeline.Timeline, uint64) {
	for _, known := range []func(*timeline.Timeline, uint64) bool{hasBlock, hasSegment} {
		for _, addr := range q.Addresses {
			for _, t := range all {
				if known(t, addr) {
					return t, addr
				}
			}
		}
	}
	return all[0], q.Addresses[0]
}

func holds(l *timeline.Life, addr uint64) bool { return addr-l.Addr < uint64(l.Rounded) }

func hasBlock(t *timeline.Timeline, addr uint64) bool {
	return slices.ContainsFunc(t.Lives, func(l timeline.Life) bool { return holds(&l, addr) })
}

func hasSegment(t *timeline.Timeline, addr uint64) bool {
	return timeline.Ranges(t.Initially).Holding(addr) >= 0 ||
		slices.ContainsFunc(t.Changes, func(c timeline.Change) bool { return addr-c.Range.Addr < uint64(c.Range.Size) })
}

// Ask finds who lives at an address of a device at a moment, and who did before and after. Of the owners at most
// top are told of, those nearest to the moment; 0 is all. Category names what a row of Timeline.Lives is for.
func Ask(s *snapshot.Snapshot, t *timeline.Timeline, m attribution.Moment, addr uint64, generation int32, top int,
	category func(row int32) string) *Answer {
	st := t.StateAt(m.Event)
	a := &Answer{
		File: s.Name, Device: t.Device, Address: attribution.Hex(addr), Moment: m.Name, Event: st.Event,
		Events: t.Trace.Len(), Time: st.Time, Balanced: t.Checks.Inconsistent() == 0 && t.Checks.Residual == 0,
		Timeline: t, addr: addr, snapshot: s, traced: t.Trace.Len() > 0,
	}
	if s.Partial != nil {
		a.Partial = s.Partial.Error()
	}
	if a.traced {
		a.firstTime = t.Trace.Time(0)
	}
	for i := range s.HostSegments {
		if h := &s.HostSegments[i]; addr-h.Address < uint64(h.Size) {
			a.Host = &HostBlock{attribution.Hex(h.Address), h.Size, h.State.String(), h.Address}
		}
	}
	a.segments(t)
	a.owners(t, generation, top, category)
	a.place(t, st)
	a.say()
	return a
}

// segments follows the range that has the address through the trace.
func (a *Answer) segments(t *timeline.Timeline) {
	now := slices.Clone(timeline.Ranges(t.Initially))
	open := false
	look := func(event int) {
		i := now.Holding(a.addr)
		switch {
		case i >= 0 && !open:
			a.Segments = append(a.Segments, segmentOf(&now[i], event))
		case i >= 0: // it may have grown
			last := &a.Segments[len(a.Segments)-1]
			*last = segmentOf(&now[i], last.From)
		case open:
			a.Segments[len(a.Segments)-1].To = &event
		}
		open = i >= 0
		if event <= a.Event {
			a.Segment = nil
			if open {
				seg := a.Segments[len(a.Segments)-1]
				a.Segment = &seg
			}
		}
	}
	look(-1)
	for i := range t.Changes {
		now.Apply(&t.Changes[i])
		look(t.Changes[i].Event)
	}
	if a.Segment != nil { // how long it lasts is known now
		for i := range a.Segments {
			if a.Segments[i].From == a.Segment.From {
				a.Segment.To = a.Segments[i].To
			}
		}
		a.offset = int64(a.addr - a.Segment.addr)
	}
}

func segmentOf(r *timeline.Range, from int) Segment {
	b := attribution.HomeOf(r)
	return Segment{Address: attribution.Hex(r.Addr), Size: r.Size, Stream: b.Stream, Pool: b.Pool,
		Kind: r.Kind.String(), Expandable: r.Expandable, From: from, addr: r.Addr}
}

// owners finds the blocks that lived at the address.
func (a *Answer) owners(t *timeline.Timeline, generation int32, top int, category func(int32) string) {
	var rows []int32
	for i := range t.Lives {
		if holds(&t.Lives[i], a.addr) {
			rows = append(rows, int32(i))
		}
	}
	a.OwnersN = len(rows)
	asked := int32(-1)
	if generation >= 0 {
		for i, n := range t.Names(rows) {
			if n.Addr == a.addr && n.Generation == generation {
				asked = rows[i]
			}
		}
	}
	if top > 0 && len(rows) > top {
		// The owner at the moment, else the last one before it, in the middle; that which was asked for too.
		mid := sort.Search(len(rows), func(i int) bool { return int(t.Lives[rows[i]].Born) > a.Event }) - 1
		from := min(max(mid-top/2, 0), len(rows)-top)
		near := slices.Clone(rows[from : from+top])
		if asked >= 0 && !slices.Contains(near, asked) {
			near = append(near, asked)
			slices.Sort(near)
		}
		rows = near
	}
	var texts map[int32][]AnnotationOfText
	for _, n := range attribution.Annotations(a.snapshot, t) {
		if n.Row >= 0 && holds(&t.Lives[n.Row], a.addr) {
			if texts == nil {
				texts = map[int32][]AnnotationOfText{}
			}
			texts[n.Row] = append(texts[n.Row], AnnotationOfText{n.Event, a.snapshot.Strings.Get(n.Text)})
		}
	}
	for i, b := range attribution.Blocks(t, rows, t.Homes(rows)) {
		o := a.owner(t, rows[i], b)
		o.Asked = rows[i] == asked
		o.Annotations = texts[rows[i]]
		if category != nil {
			o.Category = category(rows[i])
		}
		a.Owners = append(a.Owners, o)
	}
	for i := range a.Owners {
		switch o := &a.Owners[i]; o.When {
		case "before":
			a.last = o
		case "now":
			a.now = o
		default:
			if a.next == nil {
				a.next = o
			}
		}
	}
}

func (a *Answer) owner(t *timeline.Timeline, row int32, b attribution.Block) Owner {
	l := &t.Lives[row]
	o := Owner{Block: b, When: "after", Offset: int64(a.addr - l.Addr), row: row}
	o.Beyond = o.Offset >= l.Requested
	switch {
	case l.LiveAfter(a.Event):
		o.When = "now"
	case int(l.Born) <= a.Event:
		o.When = "before"
	}
	g := attribution.Group{Stack: l.Stack, Site: attribution.Site(a.snapshot, l.Stack)}
	if l.Born < 0 && a.traced {
		g.PreTrace, g.Rounded = 1, 1
	}
	o.Site = g.Name()
	o.Frames = firstFrames(a.snapshot, l.Stack)
	if l.Born >= 0 {
		e := t.Trace.At(int(l.Born))
		o.BornTime = e.Time
		for _, n := range attribution.NotesOf(a.snapshot, l.Stack, e.Label) {
			o.Notes = append(o.Notes, Note{n.Kind, n.Text})
		}
	}
	at := func(event int32) (*int, int64) {
		n := int(max(event, -1))
		if n < 0 {
			return &n, 0
		}
		e := t.Trace.At(n)
		if e.Action != snapshot.Alloc && o.FreeSite == "" { // else nothing recorded the end
			o.FreeSite, o.FreeFrames = attribution.Site(a.snapshot, e.Stack), firstFrames(a.snapshot, e.Stack)
		}
		return &n, e.Time
	}
	if l.FreeRequested != -1 {
		o.FreeRequested, o.FreeRequestedTime = at(l.FreeRequested)
	}
	if l.Freed >= 0 {
		o.Freed, o.FreedTime = at(l.Freed)
	}
	return o
}

func firstFrames(s *snapshot.Snapshot, stack snapshot.StackID) []string {
	all := attribution.Frames(s, stack)
	return all[:min(len(all), maxFrames)]
}

// place says what the address is at the moment, and what lies beside it.
func (a *Answer) place(t *timeline.Timeline, st *timeline.State) {
	switch {
	case a.now != nil && t.Lives[a.now.row].Waits(st.Event):
		a.Status = Pending
	case a.now != nil:
		a.Status = Allocated
	case a.Segment != nil:
		a.Status = Free
	default:
		a.Status = Unreserved
	}
	a.Beyond = a.now != nil && a.now.Beyond
	below, above := int32(-1), int32(-1)
	var homes [2]timeline.Range
	for i := range st.Segments {
		seg := &st.Segments[i]
		if a.Segment != nil && (a.addr < seg.Addr || a.addr >= seg.End()) {
			continue
		}
		for _, row := range seg.Live {
			switch l := &t.Lives[row]; {
			case l.End() <= a.addr:
				below, homes[0] = row, seg.Range
			case l.Addr > a.addr && above < 0:
				above, homes[1] = row, seg.Range
			}
		}
		if a.Segment == nil && seg.End() <= a.addr && a.addr-seg.End() < maxStray {
			near := segmentOf(&seg.Range, 0)
			a.nearest = &near
		}
	}
	stray := func(distance uint64) bool { return a.Segment == nil && distance >= maxStray }
	if below >= 0 && !stray(a.addr-t.Lives[below].End()) {
		a.Below = a.neighbor(t, below, homes[0], int64(a.addr-t.Lives[below].End()))
	}
	if above >= 0 && !stray(t.Lives[above].Addr-a.addr) {
		a.Above = a.neighbor(t, above, homes[1], int64(t.Lives[above].Addr-a.addr))
	}
}

func (a *Answer) neighbor(t *timeline.Timeline, row int32, home timeline.Range, distance int64) *Neighbor {
	g := attribution.Group{Stack: t.Lives[row].Stack, Site: attribution.Site(a.snapshot, t.Lives[row].Stack)}
	return &Neighbor{attribution.Blocks(t, []int32{row}, []timeline.Range{home})[0], distance, g.Name()}
}

// Asked reports whether the block whose generation was asked for is among the owners.
func (a *Answer) Asked() bool {
	return slices.ContainsFunc(a.Owners, func(o Owner) bool { return o.Asked })
}
