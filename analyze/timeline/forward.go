package timeline

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Forward rebuilds memory event by event from the start that a Survey found, as Build does with all events at hand, and
// keeps only what is live. It tells the state as a window begins and as it ends; a size that a later event corrects is
// corrected there too.
type Forward struct {
	s  *snapshot.Snapshot
	v  *Survey
	t  *Timeline // Lives are those that are live now, in rows that are used again
	r  replay
	at *table // row of the life that is live at an address

	spare  []int32
	fresh  Ranges // from before the trace, not used so far
	end    Ranges // at the window's end
	begins moment
	ends   moment
	out    snapshot.WindowTrace
}

// moment is what is live after an event.
type moment struct {
	taken bool
	list  []snapshot.OlderBlock
	place []int32 // in list by row of Lives, plus one; 0 for what is not in it
}

// NewForward begins before the first event. s is the snapshot of the pass that made the survey, which has the final
// state and no events.
func NewForward(s *snapshot.Snapshot, v *Survey, device int) *Forward {
	t := &Timeline{Device: device, Conf: allocator.RecordedIn(s).Conf}
	checkState(s, t)
	rs, older := v.settle(s, t)
	f := &Forward{s: s, v: v, t: t, at: newTable(len(older))}
	t.Initially = rs
	sizes, hushed := make([]sizeSource, 0, len(older)), false
	for _, x := range older {
		l := Life{Addr: x.addr, Requested: x.requested, Rounded: x.size, Born: -1, FreeRequested: -1, Freed: -1,
			Stack: x.stack}
		if x.waited {
			l.FreeRequested, hushed = PendingBefore, true
		}
		from := derived
		if x.size > 0 {
			from = recorded
		}
		f.at.put(x.addr, int32(len(t.Lives)))
		t.Lives, sizes = append(t.Lives, l), append(sizes, from)
	}
	f.r = replay{s: s, t: t, sizes: sizes, unplaced: map[uint64]int32{}}
	f.r.begin()
	f.out = snapshot.WindowTrace{Of: v.Events, Seen: v.Seen, Inferred: f.r.now.Reserved > 0,
		Blank: len(rs)+len(older) == 0, Hushed: hushed, Resized: v.Back > 0}
	for i := range f.r.layout.ranges {
		if head := f.r.layout.heads[i]; f.r.layout.blocks[head].life == none && f.r.layout.blocks[head].next == head {
			f.fresh = append(f.fresh, f.r.layout.ranges[i])
		}
	}
	return f
}

// Event goes on by event i.
func (f *Forward) Event(i int, e *snapshot.Event) {
	if bad(e.Addr, e.Size) {
		return
	}
	at := int32(i)
	switch e.Action {
	case snapshot.Alloc:
		old, over := f.at.get(e.Addr)
		if over {
			f.out.Unmatched++
			if l := &f.t.Lives[old]; l.FreeRequested == -1 {
				l.FreeRequested = at
			}
			f.t.Lives[old].Freed = at
		}
		row := f.row(Life{Addr: e.Addr, Requested: e.Size, Born: at, FreeRequested: -1, Freed: -1, Stack: e.Stack})
		if k, ok := f.v.at.get(e.Addr); ok {
			if x := &f.v.touches[k]; x.alloc == at && x.size > 0 { // the final state has it
				l := &f.t.Lives[row]
				l.Rounded, f.r.sizes[row] = x.size, recorded
				if l.Stack == 0 {
					l.Stack = x.stack
				}
			}
		}
		f.use(e)
		f.r.handOut(row, at)
		f.at.put(e.Addr, row)
		if over {
			f.gone(old)
		}
	case snapshot.FreeRequested:
		if row, ok := f.at.get(e.Addr); ok && f.t.Lives[row].FreeRequested == -1 {
			f.t.Lives[row].FreeRequested = at
			f.r.free(at, e.Addr)
		}
	case snapshot.FreeCompleted:
		row, ok := f.at.get(e.Addr)
		if !ok {
			f.out.Unmatched++
			return
		}
		l := &f.t.Lives[row]
		if l.Freed = at; l.FreeRequested == -1 {
			l.FreeRequested = at
			f.out.Muted = true
		}
		f.r.free(at, e.Addr)
		f.at.drop(e.Addr)
		f.gone(row)
	case snapshot.SegmentAlloc, snapshot.SegmentMap, snapshot.SegmentFree, snapshot.SegmentUnmap:
		if e.Size > 0 {
			f.change(at, e)
		}
	}
}

// row is a place for a life.
func (f *Forward) row(l Life) int32 {
	n := len(f.spare)
	if n == 0 {
		f.t.Lives, f.r.sizes = append(f.t.Lives, l), append(f.r.sizes, derived)
		return int32(len(f.t.Lives) - 1)
	}
	row := f.spare[n-1]
	f.spare = f.spare[:n-1]
	f.t.Lives[row], f.r.sizes[row] = l, derived
	return row
}

// gone gives up the row of a life that ended.
func (f *Forward) gone(row int32) {
	f.begins.settle(row, &f.t.Lives[row])
	f.ends.settle(row, &f.t.Lives[row])
	f.spare = append(f.spare, row)
}

// settle notes the size that a life turned out to have.
func (m *moment) settle(row int32, l *Life) {
	if int(row) < len(m.place) && m.place[row] > 0 {
		m.list[m.place[row]-1].Size = l.Rounded
		m.place[row] = 0
	}
}

// use notes the first request in a range that was there before the trace and unused: one for its base would have made
// it, if that event was left out (SPEC.md 4.4).
func (f *Forward) use(e *snapshot.Event) {
	if k := f.fresh.Holding(e.Addr); k >= 0 {
		f.out.Young = f.out.Young || f.fresh[k].Addr == e.Addr
		f.fresh = slices.Delete(f.fresh, k, k+1)
	}
}

// change makes the change of a segment's event, if it fits.
func (f *Forward) change(i int32, e *snapshot.Event) {
	lay := &f.r.layout
	r := eventRange(f.s, e)
	if e.Action == snapshot.SegmentFree || e.Action == snapshot.SegmentUnmap {
		if !lay.unreserve(r.Addr, r.Size) {
			f.out.Outside++
			return
		}
		f.r.now.Reserved -= r.Size
		if k := f.fresh.Holding(r.Addr); k >= 0 {
			f.fresh = slices.Delete(f.fresh, k, k+1)
		}
		return
	}
	if last, ok := f.v.lastly[r.Addr]; ok && last == i {
		for seg := range f.s.SegmentsOf(f.t.Device) {
			if r.Addr >= seg.Address && r.Addr-seg.Address < uint64(seg.TotalSize) {
				r.Kind, r.Pool, r.Stream, r.Expandable = seg.Kind, seg.Pool, seg.Stream, seg.Expandable
				break
			}
		}
	} else if n := neighbor(lay.ranges, &r); n != nil {
		r.Kind, r.Pool = n.Kind, n.Pool
	}
	if !lay.reserve(r) {
		f.out.Outside++
		return
	}
	f.r.now.Reserved += r.Size
}

// Begin says that the window begins with event i, which comes next.
func (f *Forward) Begin(i int) {
	f.out.First = i
	f.take(&f.begins)
}

// End says that it ends before the event that comes next.
func (f *Forward) End(i int) {
	f.out.Events = i - f.out.First
	f.take(&f.ends)
	f.end = slices.Clone(f.r.layout.ranges)
}

// take lists what is live.
func (f *Forward) take(m *moment) {
	m.taken = true
	m.place = make([]int32, len(f.t.Lives))
	for row := range f.t.Lives {
		l := &f.t.Lives[row]
		if l.Freed >= 0 {
			continue // and its row is spare
		}
		m.list = append(m.list, snapshot.OlderBlock{Address: l.Addr, Size: l.Rounded, Requested: l.Requested,
			Stack: l.Stack, Waits: l.FreeRequested != -1})
		m.place[row] = int32(len(m.list))
	}
}

// Finish is told after the last event. It gives the window, and puts the state at its end in the place of the device's
// segments and blocks of into, where the trace goes on behind it.
func (f *Forward) Finish(into *snapshot.Snapshot) snapshot.WindowTrace {
	if !f.begins.taken {
		f.Begin(f.v.Events)
	}
	if !f.ends.taken {
		f.End(f.v.Events)
	}
	for row := range f.t.Lives {
		f.begins.settle(int32(row), &f.t.Lives[row])
		f.ends.settle(int32(row), &f.t.Lives[row])
	}
	for _, m := range []*moment{&f.begins, &f.ends} {
		sorting.By(m.list, func(a, b snapshot.OlderBlock) int { return cmp.Compare(a.Address, b.Address) })
	}
	f.out.Older = f.begins.list
	f.out.Overlaps, f.out.Outside = f.r.checks.Overlaps, f.out.Outside+f.r.checks.OutsideSegments
	f.out.Residual = f.r.now.Active - f.t.Final.Active
	if !f.out.AtEnd() {
		f.rebuild(into)
	}
	return f.out
}

// rebuild makes segments and blocks of the state at the window's end.
func (f *Forward) rebuild(into *snapshot.Snapshot) {
	device := int32(f.t.Device)
	into.Segments = slices.DeleteFunc(into.Segments, func(seg snapshot.Segment) bool { return seg.Device == device })
	live := f.ends.list
	for _, r := range f.end {
		seg := snapshot.Segment{Address: r.Addr, TotalSize: r.Size, Pool: r.Pool, Stack: r.Stack, Stream: r.Stream,
			Device: device, Kind: r.Kind, Expandable: r.Expandable, Has: snapshot.SegmentHasRequested |
				snapshot.SegmentHasStream | snapshot.SegmentHasExpandable | snapshot.SegmentHasTotals}
		seg.Blocks.Start = int32(len(into.Blocks))
		at := r.Addr
		add := func(b snapshot.Block) {
			b.Has = snapshot.BlockHasAddress | snapshot.BlockHasRequested
			into.Blocks = append(into.Blocks, b)
			seg.Blocks.Len++
			at = b.Address + uint64(b.Size)
		}
		free := func(end uint64) {
			if at < end {
				add(snapshot.Block{Address: at, Size: int64(end - at), State: snapshot.StateInactive})
			}
		}
		for len(live) > 0 && live[0].Address < r.End() {
			b := live[0]
			live = live[1:]
			if b.Address < at || b.Address+uint64(b.Size) > r.End() {
				f.out.Outside++
				continue
			}
			free(b.Address)
			state := snapshot.StateAllocated
			if b.Waits {
				state = snapshot.StatePendingFree
			} else {
				seg.AllocatedSize += b.Size
			}
			seg.ActiveSize += b.Size
			seg.RequestedSize += b.Requested
			add(snapshot.Block{Address: b.Address, Size: b.Size, Requested: b.Requested, Stack: b.Stack, State: state})
		}
		free(r.End())
		into.Segments = append(into.Segments, seg)
	}
	f.out.Outside += int64(len(live))
}
