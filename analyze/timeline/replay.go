package timeline

import (
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

const (
	maxPoints  = 2048 // points of a curve
	fewDevices = 8    // more have fewer points each
	minPoints  = 16
	maxRepairs = 4 // replays with corrected sizes
)

// replay goes forward over the trace and fills in rounded sizes, totals, peaks and the curve.
type replay struct {
	s        *snapshot.Snapshot
	t        *Timeline
	sizes    []sizeSource
	checks   Checks
	layout   layout
	now      Totals
	next     int              // row of Lives that the next alloc event begins
	change   int              // row of Changes that comes next
	due      int              // its event, MaxInt for none
	marked   int              // value of change at the last checkpoint that kept ranges
	unplaced map[uint64]int32 // live blocks that the layout has no place for

	repaired bool
}

// sizeSource says where the rounded size of a life comes from.
type sizeSource uint8

const (
	derived   sizeSource = iota // by the rules, from the layout
	corrected                   // a later event proved the derived one wrong
	recorded                    // the dump has it
)

// run replays the trace until no size had to be corrected.
func run(s *snapshot.Snapshot, t *Timeline, sizes []sizeSource) {
	r := &replay{s: s, t: t, sizes: sizes}
	base := t.Checks
	for range maxRepairs {
		r.checks = base
		r.once()
		if !r.repaired {
			break
		}
	}
	t.Checks = r.checks
	if t.cut {
		// Where segments were is then partly unknown, which is no contradiction.
		t.Checks.OutsideSegments, t.Checks.Overlaps, t.Checks.LiveOverReserved = 0, 0, 0
		t.Final = r.now
	}
	t.Checks.Residual = r.now.Active - t.Final.Active
}

func (r *replay) once() {
	t := r.t
	r.now, r.repaired, r.unplaced = Totals{}, false, map[uint64]int32{}
	r.begin()
	t.Initial = r.now
	t.PeakReserved, t.PeakActive = Peak{r.now.Reserved, -1}, Peak{r.now.Active, -1}
	t.PeakAllocated, t.PeakRequested = Peak{r.now.Allocated, -1}, Peak{r.now.Requested, -1}
	t.PeakInactiveSplit = Peak{r.layout.split, -1}
	t.OOMs = t.OOMs[:0]
	t.checkpoints, r.marked = t.checkpoints[:0], 0
	r.checkpoint(-1)

	n := t.Trace.Len()
	points := max(maxPoints*fewDevices/max(r.s.NumDevices(), fewDevices), minPoints)
	span := max((n+points-1)/points, 1)
	t.Curve = t.Curve[:0]
	for first := 0; first < n; first += span {
		last := min(first+span, n) - 1
		p := Point{First: first, Last: last}
		for i := first; i <= last; i++ {
			action := t.Trace.Action(i)
			grown := i == r.due && r.changes(i, action, true)
			r.event(i, action)
			if i == r.due {
				r.changes(i, action, false)
			}
			t.PeakInactiveSplit.raise(r.layout.split, i)
			if i == first {
				p.Min, p.Max = r.now, r.now
			}
			p.Min.Lower(&r.now)
			if i > first && !grown && (action == snapshot.FreeRequested || action == snapshot.FreeCompleted) {
				continue // frees raise nothing
			}
			p.Max.Raise(&r.now)
			r.raisePeaks(i)
		}
		p.At, p.Time = r.now, t.Trace.Time(last)
		t.Curve = append(t.Curve, p)
		if c := &t.checkpoints[len(t.checkpoints)-1]; last-int(c.event) >= max(minEvents, 2*len(c.live)) {
			r.checkpoint(last)
		}
	}
	for ; r.next < len(t.Lives); r.next++ { // live at the end without an allocation
		r.stray(int32(r.next))
	}
}

// Lower takes what is less, figure by figure.
func (t *Totals) Lower(v *Totals) {
	t.Reserved, t.Active = min(t.Reserved, v.Reserved), min(t.Active, v.Active)
	t.Allocated, t.Requested = min(t.Allocated, v.Allocated), min(t.Requested, v.Requested)
}

// Raise takes what is more.
func (t *Totals) Raise(v *Totals) {
	t.Reserved, t.Active = max(t.Reserved, v.Reserved), max(t.Active, v.Active)
	t.Allocated, t.Requested = max(t.Allocated, v.Allocated), max(t.Requested, v.Requested)
}

func (r *replay) raisePeaks(i int) {
	t := r.t
	t.PeakReserved.raise(r.now.Reserved, i)
	t.PeakActive.raise(r.now.Active, i)
	t.PeakAllocated.raise(r.now.Allocated, i)
	t.PeakRequested.raise(r.now.Requested, i)
}

func (p *Peak) raise(bytes int64, event int) {
	if bytes > p.Bytes {
		p.Bytes, p.Event = bytes, event
	}
}

// checkpoint keeps the present layout.
func (r *replay) checkpoint(event int) {
	c := checkpoint{event: int32(event), changes: int32(r.change)}
	for _, head := range r.layout.heads {
		b := head
		for {
			if row := r.layout.blocks[b].life; row != none {
				c.live = append(c.live, row)
			}
			if b = r.layout.blocks[b].next; b == head {
				break
			}
		}
	}
	if len(r.unplaced) > 0 {
		for _, row := range r.unplaced {
			c.live = append(c.live, row)
		}
		slices.SortFunc(c.live, r.t.byAddress)
	}
	if r.change-r.marked >= max(minChanges, 2*len(r.layout.ranges)) {
		c.ranges, r.marked = slices.Clone(r.layout.ranges), r.change
	}
	r.t.checkpoints = append(r.t.checkpoints, c)
}

// begin lays out the state before the trace.
func (r *replay) begin() {
	t := r.t
	r.advance(0)
	l := &r.layout
	*l = layout{
		blocks: l.blocks[:0], spare: l.spare[:0], starts: newTable(1024),
		ranges: append(l.ranges[:0], t.Initially...), heads: l.heads[:0],
	}
	row := int32(0)
	for i := range l.ranges {
		rg := &l.ranges[i]
		r.now.Reserved += rg.Size
		head := l.newBlock(rg.Addr, rg.Size, rg.splitsSmall(), rg.Expandable)
		l.heads = append(l.heads, head)
		row = r.strays(row, rg.Addr-1)
		b := head // the free rest of the range
		for r.isBefore(row) && t.Lives[row].Addr < rg.End() {
			b = r.place(row, b, rg)
			row++
		}
	}
	r.next = int(r.strays(row, math.MaxUint64))
}

// strays counts the pre-trace blocks from a row on up to an address, and gives the row after them.
func (r *replay) strays(row int32, last uint64) int32 {
	for ; r.isBefore(row) && r.t.Lives[row].Addr <= last; row++ {
		r.stray(row)
	}
	return row
}

func (r *replay) isBefore(row int32) bool {
	return int(row) < len(r.t.Lives) && r.t.Lives[row].Born < 0
}

// place gives a pre-trace block its place in rest, the free end of its range, and returns
// what is free behind it, none when nothing is.
func (r *replay) place(row, rest int32, rg *Range) int32 {
	l := &r.t.Lives[row]
	if rest == none || l.Addr < r.layout.blocks[rest].addr {
		r.checks.Overlaps++
		r.stray(row)
		return rest
	}
	if r.sizes[row] == derived {
		l.Rounded = r.t.Conf.Round(l.Requested)
		end := rg.End()
		if r.isBefore(row+1) && r.t.Lives[row+1].Addr < end {
			end = r.t.Lives[row+1].Addr
		}
		gap := int64(end-l.Addr) - l.Rounded
		if gap > 0 && !r.t.Conf.Splits(l.Rounded, gap, rg.splitsSmall()) {
			l.Rounded += gap
		}
	}
	if l.End() > rg.End() {
		r.checks.Overlaps++
		r.stray(row)
		return rest
	}
	if at := r.layout.blocks[rest].addr; l.Addr > at {
		rest = r.layout.splitAt(rest, int64(l.Addr-at))
	}
	split := l.Rounded < r.layout.blocks[rest].size
	r.layout.take(rest, row, l.Rounded, split)
	r.born(l)
	if !split {
		return none
	}
	return r.layout.blocks[rest].next
}

// stray counts a block that the layout has no place for.
func (r *replay) stray(row int32) {
	l := &r.t.Lives[row]
	if l.Rounded == 0 {
		l.Rounded = r.t.Conf.Round(l.Requested)
	}
	r.checks.OutsideSegments++
	r.unplaced[l.Addr] = row
	r.born(l)
}

func (r *replay) born(l *Life) {
	r.now.Active += l.Rounded
	r.now.Requested += l.Requested
	if l.FreeRequested != PendingBefore {
		r.now.Allocated += l.Rounded
	}
}

func (r *replay) event(i int, action snapshot.Action) {
	switch action {
	case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
		addr, size := r.t.Trace.Block(i)
		if bad(addr, size) {
			r.checks.BadEvents++
			return
		}
		if action != snapshot.Alloc {
			r.free(int32(i), addr)
			return
		}
		r.alloc(int32(i))
	case snapshot.SegmentAlloc, snapshot.SegmentFree, snapshot.SegmentMap, snapshot.SegmentUnmap:
	case snapshot.SnapshotTaken:
		if e := r.t.Trace.At(i); e.Has&snapshot.EventHasSize != 0 {
			r.checks.Markers++
			if e.Size != r.now.Active {
				r.checks.MarkerMismatches++
			}
		}
		return
	case snapshot.OOM:
		e := r.t.Trace.At(i)
		o := OOMEvent{Event: i, Requested: e.Size, DeviceFree: -1, Stack: e.Stack, After: r.now}
		if free, ok := e.DeviceFree(); ok {
			o.DeviceFree = free
		}
		r.t.OOMs = append(r.t.OOMs, o)
		return
	case snapshot.Annotate, snapshot.UserDefined, snapshot.WorkspaceSnapshot:
		return
	default:
		r.checks.UnknownActions++
		return
	}
	if r.now.Active > r.now.Reserved {
		r.checks.LiveOverReserved++
	}
}

// changes makes the changes of an event to the reserved memory, and reports whether it grew. Those before it are
// all of a segment's event, and of a block's those that add; what a block's event takes away goes after it.
func (r *replay) changes(i int, action snapshot.Action, before bool) (grown bool) {
	t := r.t
	ofBlock := action == snapshot.Alloc || action == snapshot.FreeRequested || action == snapshot.FreeCompleted
	for r.due == i {
		c := &t.Changes[r.change]
		if before && ofBlock && !c.Add {
			break
		}
		r.segment(c)
		r.advance(r.change + 1)
		if c.Add {
			grown = true
			t.PeakReserved.raise(r.now.Reserved, i)
		}
	}
	return grown
}

// advance goes to a row of Changes.
func (r *replay) advance(row int) {
	r.change, r.due = row, math.MaxInt
	if row < len(r.t.Changes) {
		r.due = r.t.Changes[row].Event
	}
}

func (r *replay) segment(c *Change) {
	var fits bool
	if c.Add {
		r.now.Reserved += c.Range.Size
		fits = r.layout.reserve(c.Range)
	} else {
		r.now.Reserved -= c.Range.Size
		fits = r.layout.unreserve(c.Range.Addr, c.Range.Size)
	}
	if !fits {
		r.checks.OutsideSegments++
	}
}

// alloc begins the life of the next row.
func (r *replay) alloc(i int32) {
	r.next++
	r.handOut(int32(r.next-1), i)
}

// handOut gives the life in a row the block at its address.
func (r *replay) handOut(row, i int32) {
	l := &r.t.Lives[row]
	lay := &r.layout
	b, ok := lay.starts.get(l.Addr)
	if ok && lay.blocks[b].life != none && r.t.Lives[lay.blocks[b].life].Freed == i {
		r.completed(&r.t.Lives[lay.blocks[b].life], i)
		lay.release(b)
		b, ok = lay.starts.get(l.Addr)
	}
	if !ok {
		b = r.startAt(l.Addr)
	}
	if b == none || lay.blocks[b].life != none {
		if old, ok := r.unplaced[l.Addr]; ok {
			r.completed(&r.t.Lives[old], i)
		}
		r.stray(row)
		return
	}
	have := lay.blocks[b].size
	if r.sizes[row] == derived {
		l.Rounded = r.t.Conf.Round(l.Requested)
		if rest := have - l.Rounded; rest > 0 && !r.t.Conf.Splits(l.Rounded, rest, lay.blocks[b].small) {
			l.Rounded = have
		}
	}
	if l.Rounded > have {
		r.checks.Overlaps++
		r.unplaced[l.Addr] = row
		r.born(l)
		return
	}
	lay.take(b, row, l.Rounded, l.Rounded < have)
	r.born(l)
}

// startAt makes a free block begin at addr, where the layout has another block, and returns
// it, none when that cannot be. Every address that was handed out is the start of a block, so
// the blocks around it have another size than it seemed (SPEC.md 4.2, repair rule).
func (r *replay) startAt(addr uint64) int32 {
	lay := &r.layout
	b := lay.holding(addr)
	if b == none {
		return none
	}
	offset := int64(addr - lay.blocks[b].addr)
	if row := lay.blocks[b].life; row != none {
		// The block is shorter than it seemed.
		if r.sizes[row] == recorded || offset < r.t.Conf.Round(r.t.Lives[row].Requested) {
			r.checks.Overlaps++
			return none
		}
		r.resize(row, offset)
		rest := lay.splitAt(b, offset)
		lay.merge(rest)
		return rest
	}
	rest := lay.splitAt(b, offset)
	p := lay.blocks[b].prev
	if owner := lay.blocks[p].life; lay.touching(p, b) && owner != none && offset <= allocator.SmallSize &&
		r.sizes[owner] != recorded && !r.t.Recording.Unseen.Has(freeCompleted) {
		// The gap belongs to the block before it.
		r.resize(owner, lay.blocks[p].size+offset)
		lay.absorb(p, b)
	}
	return rest
}

// resize corrects a size and asks for another replay, since earlier totals were wrong too.
func (r *replay) resize(row int32, rounded int64) {
	l := &r.t.Lives[row]
	r.now.Active += rounded - l.Rounded
	r.now.Allocated += rounded - l.Rounded
	l.Rounded = rounded
	r.sizes[row] = corrected
	r.repaired = true
}

// free ends a life, or a part of it.
func (r *replay) free(i int32, addr uint64) {
	lay := &r.layout
	b, ok := lay.starts.get(addr)
	if ok && lay.blocks[b].life != none {
		if r.ends(&r.t.Lives[lay.blocks[b].life], i) {
			lay.release(b)
		}
	} else if row, ok := r.unplaced[addr]; ok && r.ends(&r.t.Lives[row], i) {
		delete(r.unplaced, addr)
	}
}

// ends counts what an event ends of a life, and reports whether that is all of it.
func (r *replay) ends(l *Life, i int32) bool {
	if l.Freed == i {
		r.completed(l, i)
	} else if l.FreeRequested == i {
		r.now.Allocated -= l.Rounded
	}
	return l.Freed == i
}

func (r *replay) completed(l *Life, i int32) {
	r.now.Active -= l.Rounded
	r.now.Requested -= l.Requested
	if l.FreeRequested == i {
		r.now.Allocated -= l.Rounded
	}
}
