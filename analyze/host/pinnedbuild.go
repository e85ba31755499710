package host

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

const none = -1

const maxPoints = 512 // of the curve

// BuildPinned rebuilds the pinned host memory of a snapshot, nil when it has none. It never fails: what
// does not add up is counted in Checks.
func BuildPinned(s *snapshot.Snapshot) *Pinned {
	var trace snapshot.Trace
	var lists int64
	for _, t := range s.HostTraces {
		switch {
		case t.Len() == 0:
		case trace.Len() == 0:
			trace = t
		default:
			lists++
		}
	}
	if trace.Len() == 0 && len(s.HostSegments) == 0 {
		return nil
	}
	m := replay(s, trace)
	if seam, ok := findSeam(trace); ok {
		other := replay(s, seam.mend(trace))
		if a, b := m.Checks.Inconsistent(), other.Checks.Inconsistent(); b < a || b == a && seam.wide(trace) {
			m = other
			m.Checks.Moved, m.Checks.Left = seam.moved()
		}
	}
	m.Checks.Lists = lists
	m.hold(s)
	m.grow(s)
	return m
}

// replay goes over the events of a trace and holds the end against the state.
func replay(s *snapshot.Snapshot, trace snapshot.Trace) *Pinned {
	m := &Pinned{Stated: s.HasHostSegments && s.Partial == nil, Trace: trace, GPU: none}
	b := &builder{m: m, at: map[uint64]int32{}, gone: map[uint64]bool{}, late: map[spot]int64{}, powers: powersOnly(s)}
	for i := range m.Trace.Len() {
		b.event(s, int32(i))
	}
	for _, n := range b.late {
		m.Checks.Unmatched += n
	}
	if m.Stated {
		b.final(s)
	}
	b.join()
	m.sums()
	return m
}

// builder goes over the events. Blocks and lives are in the order in which they were met.
type builder struct {
	m      *Pinned
	blocks []Block
	lives  []timeline.Life
	at     map[uint64]int32 // the block that is at an address
	gone   map[uint64]bool  // addresses at which a block was released
	// late is how many releases of a block are still to come, although another was pinned at its address: a
	// thread records a release after the memory has gone back.
	late   map[spot]int64
	powers bool // all sizes of PyTorch are powers of two
}

type spot struct {
	addr uint64
	size int64
}

// make adds a block.
func (b *builder) make(blk Block) *Block {
	blk.Gone, blk.life = none, none
	blk.Registered = blk.Registered || b.powers && blk.Size&(blk.Size-1) != 0
	b.at[blk.Addr] = int32(len(b.blocks))
	b.blocks = append(b.blocks, blk)
	return &b.blocks[len(b.blocks)-1]
}

// use begins a use of a block.
func (b *builder) use(blk *Block, born int32, stack snapshot.StackID) *timeline.Life {
	blk.first = blk.life == none
	blk.life = int32(len(b.lives))
	b.lives = append(b.lives, timeline.Life{Addr: blk.Addr, Requested: blk.Size, Rounded: blk.Size, Born: born,
		FreeRequested: none, Freed: none, Stack: stack})
	if born < 0 {
		b.m.Checks.Before++
	}
	return &b.lives[blk.life]
}

// live is the use of a block that has not ended, nil for none.
func (b *builder) live(blk *Block) *timeline.Life {
	if blk.life == none || b.lives[blk.life].Freed >= 0 {
		return nil
	}
	return &b.lives[blk.life]
}

// end ends a use that is shown to be over by what came later. No event of the end is ever left out
// (skip_actions is for devices only) but while recording is off.
func (b *builder) end(l *timeline.Life, i int32) {
	b.m.Checks.Unmatched++
	if l.FreeRequested == none {
		l.FreeRequested = i
	}
	l.Freed = i
}

func (b *builder) event(s *snapshot.Snapshot, i int32) {
	e := b.m.Trace.At(int(i))
	switch e.Action {
	case snapshot.SegmentAlloc, snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted, snapshot.SegmentFree:
	case snapshot.SnapshotTaken, snapshot.Annotate, snapshot.UserDefined, snapshot.OOM:
		return
	default:
		b.m.Checks.Unknown++
		return
	}
	if e.Addr == 0 || e.Size <= 0 || e.Size > allocator.MaxRequest {
		b.m.Checks.Bad++
		return
	}
	var pool snapshot.PoolID
	if e.Label != 0 {
		pool = s.Labels.Get(e.Label).Pool
	}
	row, known := b.at[e.Addr]
	if e.Action == snapshot.SegmentAlloc {
		if known {
			old := &b.blocks[row]
			if b.live(old) == nil {
				b.late[spot{old.Addr, old.Size}]++
			} else {
				b.m.Checks.Unmatched++
			}
			b.release(old, i)
		}
		b.make(Block{Addr: e.Addr, Size: e.Size, Pool: pool, Stack: e.Stack, Made: i, bare: e.Stack <= snapshot.EmptyStack})
		return
	}
	if e.Action == snapshot.SegmentFree && b.releasedBefore(&e, known, row) {
		return
	}
	var blk *Block
	since := int32(none)
	switch {
	case known:
		blk = &b.blocks[row]
	case b.gone[e.Addr]: // pinned again while nothing was recorded
		b.m.Checks.Unmatched++
		since = i
		fallthrough
	default:
		blk = b.make(Block{Addr: e.Addr, Size: e.Size, Pool: pool, Made: since})
	}
	if blk.Size != e.Size {
		b.m.Checks.Sizes++
	}
	l := b.live(blk)
	switch e.Action {
	case snapshot.Alloc:
		if l != nil {
			b.end(l, i)
		}
		b.use(blk, i, e.Stack)
		blk.Registered = blk.Registered || blk.bare && blk.first && e.Stack > snapshot.EmptyStack
	case snapshot.FreeRequested, snapshot.FreeCompleted:
		if l == nil && known {
			b.m.Checks.Unmatched++
			return
		}
		if l == nil {
			l = b.use(blk, since, 0)
			if e.Action == snapshot.FreeCompleted && since < 0 {
				l.FreeRequested = timeline.PendingBefore
			}
		}
		if e.Action == snapshot.FreeCompleted {
			if l.FreeRequested == none {
				b.m.Checks.Unmatched++
			}
			l.Freed = i
		} else if l.FreeRequested != none {
			b.m.Checks.Unmatched++
			return
		}
		if l.FreeRequested == none {
			l.FreeRequested = i
		}
	case snapshot.SegmentFree:
		b.release(blk, i)
	}
}

// releasedBefore reports whether a segment_free is that of a block in whose place another was pinned before the event
// was recorded.
func (b *builder) releasedBefore(e *snapshot.Event, known bool, row int32) bool {
	p := spot{e.Addr, e.Size}
	if b.late[p] == 0 || known && b.blocks[row].Size == e.Size && b.live(&b.blocks[row]) == nil {
		return false
	}
	if b.late[p]--; b.late[p] == 0 {
		delete(b.late, p)
	}
	return true
}

// release gives a block back to the system.
func (b *builder) release(blk *Block, i int32) {
	if l := b.live(blk); l != nil {
		b.end(l, i)
	}
	blk.Gone = i
	delete(b.at, blk.Addr)
	b.gone[blk.Addr] = true
}

// final compares with the state of the file, learns from it what the trace does not mention, and then makes it the end:
// what the state shows to be over or begun, and the trace does not, is so from the last event on.
func (b *builder) final(s *snapshot.Snapshot) {
	m := b.m
	last := int32(m.Trace.Len() - 1)
	stated := map[uint64]*snapshot.HostSegment{}
	for i := range s.HostSegments {
		h := &s.HostSegments[i]
		if h.Address == 0 || h.Size <= 0 || h.Size > allocator.MaxRequest || stated[h.Address] != nil {
			m.Checks.Unmatched++
			continue
		}
		stated[h.Address] = h
		if _, known := b.at[h.Address]; known {
			continue
		}
		since := int32(none)
		if b.gone[h.Address] {
			m.Checks.Unmatched++
			since = last
			m.Checks.Residual.add(h.Size, h.State.Active(), h.State == snapshot.StateAllocated, -1)
		}
		b.begin(h, since)
	}
	addrs := slices.Sorted(maps.Keys(b.at))
	for _, addr := range addrs {
		b.compare(&b.blocks[b.at[addr]], stated[addr], last)
	}
	for addr := range b.at {
		blk := &b.blocks[b.at[addr]]
		l := b.live(blk)
		m.Final.add(blk.Size, l != nil, l != nil && l.FreeRequested == none, 1)
		m.FinalBlocks.add(l != nil, l != nil && l.FreeRequested == none, 1)
	}
}

// begin adds a block of the state that the trace does not have.
func (b *builder) begin(h *snapshot.HostSegment, since int32) {
	blk := b.make(Block{Addr: h.Address, Size: h.Size, Pool: h.Pool, Stack: h.Stack, Made: since})
	switch {
	case h.State.Active():
		b.beginUse(blk, h, since)
	case h.State != snapshot.StateInactive:
		b.m.Checks.Stateless++
		blk.unsure = true
	}
}

func (b *builder) beginUse(blk *Block, h *snapshot.HostSegment, since int32) {
	l := b.use(blk, since, h.Stack)
	switch {
	case h.State != snapshot.StatePendingFree:
	case since < 0:
		l.FreeRequested = timeline.PendingBefore
	default:
		l.FreeRequested = since
	}
}

// compare holds the end of a block in the trace against the state, nil where that does not have it.
func (b *builder) compare(blk *Block, h *snapshot.HostSegment, last int32) {
	m := b.m
	l := b.live(blk)
	active, allocated := l != nil, l != nil && l.FreeRequested == none
	if h == nil || h.Size != blk.Size {
		r := &m.Checks.Residual
		r.add(blk.Size, active, allocated, 1)
		if l != nil {
			b.stop(l, last)
		}
		blk.Gone = last
		delete(b.at, blk.Addr)
		if h == nil {
			m.Checks.Unmatched++
			return
		}
		m.Checks.Sizes++
		r.add(h.Size, h.State.Active(), h.State == snapshot.StateAllocated, -1)
		b.begin(h, last)
		return
	}
	blk.Pool = h.Pool
	if l != nil && l.Stack == 0 {
		l.Stack = h.Stack
	}
	inUse := h.State == snapshot.StateAllocated
	if h.State == snapshot.StateUnknown || active == h.State.Active() && allocated == inUse {
		return // where the state does not know, the trace does
	}
	m.Checks.Unmatched++
	r := &m.Checks.Residual
	r.add(blk.Size, active, allocated, 1)
	r.add(blk.Size, h.State.Active(), inUse, -1)
	switch {
	case active && h.State == snapshot.StatePendingFree:
		l.FreeRequested = last
	case active:
		b.stop(l, last)
		fallthrough
	default:
		if h.State.Active() {
			b.beginUse(blk, h, last)
		}
	}
}

// stop ends a use that the state does not have.
func (b *builder) stop(l *timeline.Life, last int32) {
	if l.FreeRequested == none {
		l.FreeRequested = last
	}
	l.Freed = last
}

// add adds a block, or takes it away, where sign is -1.
func (t *Totals) add(size int64, active, allocated bool, sign int64) {
	t.Reserved += sign * size
	if active {
		t.Active += sign * size
	}
	if allocated {
		t.Allocated += sign * size
	}
}

func (c *Counts) add(active, allocated bool, sign int64) {
	(*Totals)(c).add(1, active, allocated, sign)
}

func (r *Residual) add(size int64, active, allocated bool, sign int64) {
	r.Totals.add(size, active, allocated, sign)
	r.Counts.add(active, allocated, sign)
}

// join puts blocks and lives in order.
func (b *builder) join() {
	order := func(bornA, bornB int32, a, c uint64) int { return cmp.Or(cmp.Compare(bornA, bornB), cmp.Compare(a, c)) }
	sorting.Stable(b.blocks, func(x, y Block) int { return order(x.Made, y.Made, x.Addr, y.Addr) })
	sorting.Stable(b.lives, func(x, y timeline.Life) int { return order(x.Born, y.Born, x.Addr, y.Addr) })
	b.m.Blocks, b.m.Lives = b.blocks, b.lives
}

// sums fills in the totals and peaks.
func (m *Pinned) sums() {
	n := m.Trace.Len()
	change := make([]Totals, n+1) // of event i in place i+1
	for i := range m.Blocks {
		b := &m.Blocks[i]
		change[b.Made+1].Reserved += b.Size
		if b.Gone >= 0 {
			change[b.Gone+1].Reserved -= b.Size
		}
	}
	for i := range m.Lives {
		l := &m.Lives[i]
		change[l.Born+1].Active += l.Rounded
		if l.FreeRequested != timeline.PendingBefore {
			change[l.Born+1].Allocated += l.Rounded
		}
		if l.Freed >= 0 {
			change[l.Freed+1].Active -= l.Rounded
		}
		if l.FreeRequested >= 0 {
			change[l.FreeRequested+1].Allocated -= l.Rounded
		}
	}
	var now Totals
	raise := func(p *timeline.Peak, bytes int64, event int) {
		if event < 0 || bytes > p.Bytes {
			*p = timeline.Peak{Bytes: bytes, Event: event}
		}
	}
	for i, c := range change {
		now.Reserved, now.Active, now.Allocated = now.Reserved+c.Reserved, now.Active+c.Active,
			now.Allocated+c.Allocated
		if i == 0 {
			m.Initial = now
		}
		if i > 0 {
			m.sample(i-1, now)
		}
		raise(&m.PeakReserved, now.Reserved, i-1)
		raise(&m.PeakActive, now.Active, i-1)
		raise(&m.PeakAllocated, now.Allocated, i-1)
	}
	if !m.Stated {
		m.Final = now
	}
}

// sample adds the sums after an event to the curve.
func (m *Pinned) sample(event int, now Totals) {
	span := max((m.Trace.Len()+maxPoints-1)/maxPoints, 1)
	if event%span == 0 {
		m.Curve = append(m.Curve, Point{First: event})
	}
	p := &m.Curve[len(m.Curve)-1]
	p.Last, p.Time, p.At = event, m.Trace.Time(event), now
	p.Max = Totals{max(p.Max.Reserved, now.Reserved), max(p.Max.Active, now.Active),
		max(p.Max.Allocated, now.Allocated)}
}
