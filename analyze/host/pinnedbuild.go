package host

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

const none = -1

const maxPoints = 512 // of the curve

// BuildPinned rebuilds the pinned host memory of a snapshot, nil when it has none. It never fails: what
// does not add up is counted in Checks.
func BuildPinned(s *snapshot.Snapshot) *Pinned {
	m := &Pinned{Stated: s.HasHostSegments && s.Partial == nil, GPU: none}
	for _, t := range s.HostTraces {
		switch {
		case t.Len() == 0:
		case m.Trace.Len() == 0:
			m.Trace = t
		default:
			m.Checks.Lists++
		}
	}
	if m.Trace.Len() == 0 && len(s.HostSegments) == 0 {
		return nil
	}
	b := &builder{m: m, at: map[uint64]int32{}, silent: true}
	for i := range m.Trace.Len() {
		b.silent = b.silent && m.Trace.At(i).Action != snapshot.FreeRequested
	}
	for i := range m.Trace.Len() {
		b.event(s, int32(i))
	}
	if m.Stated {
		b.final(s)
	}
	b.join()
	m.sums()
	m.hold(s)
	m.grow(s)
	return m
}

// builder goes over the events. Blocks and lives are in the order in which they were met.
type builder struct {
	m      *Pinned
	blocks []Block
	lives  []timeline.Life
	at     map[uint64]int32 // the block that is at an address
	silent bool             // the trace leaves free_requested out
}

// make adds a block.
func (b *builder) make(blk Block) *Block {
	blk.Gone, blk.life = none, none
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

// end ends a use that an event shows to be over. A trace may leave the event of the end out
// (skip_actions), which is no contradiction where the program had freed the block.
func (b *builder) end(l *timeline.Life, i int32) {
	if l.FreeRequested == none {
		b.m.Checks.Unmatched++
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
			b.m.Checks.Unmatched++
			b.release(&b.blocks[row], i)
		}
		b.make(Block{Addr: e.Addr, Size: e.Size, Pool: pool, Stack: e.Stack, Made: i})
		return
	}
	var blk *Block
	if known {
		blk = &b.blocks[row]
	} else {
		blk = b.make(Block{Addr: e.Addr, Size: e.Size, Pool: pool, Made: none})
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
	case snapshot.FreeRequested, snapshot.FreeCompleted:
		if l == nil && known {
			b.m.Checks.Unmatched++
			return
		}
		if l == nil {
			l = b.use(blk, none, 0)
			if e.Action == snapshot.FreeCompleted && !b.silent {
				l.FreeRequested = timeline.PendingBefore
			}
		}
		if e.Action == snapshot.FreeCompleted {
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

// release gives a block back to the system.
func (b *builder) release(blk *Block, i int32) {
	if l := b.live(blk); l != nil {
		b.end(l, i)
	}
	blk.Gone = i
	delete(b.at, blk.Addr)
}

// final compares with the state of the file, and learns from it what the trace does not mention.
func (b *builder) final(s *snapshot.Snapshot) {
	m := b.m
	released := map[uint64]bool{}
	for i := range b.blocks {
		if blk := &b.blocks[i]; blk.Gone >= 0 {
			released[blk.Addr] = true
		}
	}
	stated := map[uint64]bool{}
	for _, h := range s.HostSegments {
		if h.Address == 0 || h.Size <= 0 || h.Size > allocator.MaxRequest || stated[h.Address] {
			m.Checks.Unmatched++
			continue
		}
		stated[h.Address] = true
		m.Final.Reserved += h.Size
		if h.State.Active() {
			m.Final.Active += h.Size
		}
		if h.State == snapshot.StateAllocated {
			m.Final.Allocated += h.Size
		}
		row, known := b.at[h.Address]
		if !known {
			if released[h.Address] {
				m.Checks.Unmatched++
				continue
			}
			blk := b.make(Block{Addr: h.Address, Size: h.Size, Pool: h.Pool, Stack: h.Stack, Made: none})
			switch {
			case h.State.Active():
				l := b.use(blk, none, h.Stack)
				if h.State == snapshot.StatePendingFree {
					l.FreeRequested = timeline.PendingBefore
				}
			case h.State != snapshot.StateInactive:
				m.Checks.Stateless++
				blk.unsure = true
			}
			continue
		}
		blk := &b.blocks[row]
		if blk.Size != h.Size {
			m.Checks.Sizes++
		}
		blk.Pool = h.Pool
		if l := b.live(blk); l != nil && l.Stack == 0 {
			l.Stack = h.Stack
		}
		if h.State == snapshot.StateUnknown {
			// The trace knows.
			if l := b.live(blk); l != nil {
				m.Final.Active += h.Size
				if l.FreeRequested == none {
					m.Final.Allocated += h.Size
				}
			}
		}
	}
	for addr, row := range b.at {
		blk := &b.blocks[row]
		switch l := b.live(blk); {
		case stated[addr]:
		case blk.Made >= 0 && blk.first && l != nil && l.FreeRequested == none && l.Born == blk.Made+1:
			m.Registered += blk.Size // pinned, and in use since
		default:
			m.Checks.Unmatched++
		}
	}
}

// join puts blocks and lives in order.
func (b *builder) join() {
	order := func(bornA, bornB int32, a, c uint64) int { return cmp.Or(cmp.Compare(bornA, bornB), cmp.Compare(a, c)) }
	slices.SortStableFunc(b.blocks, func(x, y Block) int { return order(x.Made, y.Made, x.Addr, y.Addr) })
	slices.SortStableFunc(b.lives, func(x, y timeline.Life) int { return order(x.Born, y.Born, x.Addr, y.Addr) })
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
		return
	}
	m.Checks.Residual = Totals{now.Reserved - m.Final.Reserved - m.Registered,
		now.Active - m.Final.Active - m.Registered, now.Allocated - m.Final.Allocated - m.Registered}
}

// sample adds the sums after an event to the curve.
func (m *Pinned) sample(event int, now Totals) {
	span := max((m.Trace.Len()+maxPoints-1)/maxPoints, 1)
	if event%span == 0 {
		m.Curve = append(m.Curve, Point{First: event})
	}
	p := &m.Curve[len(m.Curve)-1]
	p.Last, p.Time, p.At = event, m.Trace.At(event).Time, now
	p.Max = Totals{max(p.Max.Reserved, now.Reserved), max(p.Max.Active, now.Active),
		max(p.Max.Allocated, now.Allocated)}
}
