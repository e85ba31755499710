package timeline

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// match pairs allocations with frees and fills t.Lives, but for the rounded sizes of blocks
// that are not in the final state. The result says for which the size is recorded.
func match(s *snapshot.Snapshot, t *Timeline) []sizeSource {
	n, all := t.Trace.Len(), t.Trace.Sum()
	allocs, frees := all.Count[snapshot.Alloc], all.Count[snapshot.FreeCompleted]
	// What was freed or is live, and was not allocated, was there before: leave room for it.
	live := 0
	for seg := range s.SegmentsOf(t.Device) {
		live += int(seg.Blocks.Len)
	}
	missing := t.Recording.Unseen
	m := matcher{
		s: s, t: t,
		unseen: missing, early: missing.Has(freeCompleted) && !missing.Has(freeRequested),
		silent: missing.Has(freeRequested),
		born:   make([]Life, 0, allocs+max(live+frees-allocs, 0)),
		at:     newTable(min(allocs/4, 1<<20)),
	}
	if t.window != nil {
		for i := range t.window.Older {
			m.known(&t.window.Older[i])
		}
	}
	for i := range n {
		m.event(int32(i))
	}
	if !t.cut {
		m.final()
	}
	m.pending()
	return m.join()
}

// matcher is the state of match. Rows of born are kept as they are, rows of before as their
// complement.
type matcher struct {
	s      *snapshot.Snapshot
	t      *Timeline
	born   []Life
	before []Life
	at     *table // the last life at each address

	unseen  Kinds
	early   bool    // the trace leaves free_completed out, so that a block is taken to end when it is freed
	silent  bool    // the trace leaves free_requested out
	inFinal []int32 // rows whose size the final state gives
	sizes   []int64
}

func (m *matcher) life(row int32) *Life {
	if row < 0 {
		return &m.before[^row]
	}
	return &m.born[row]
}

func (m *matcher) event(i int32) {
	trace := m.t.Trace
	action := trace.Action(int(i))
	switch action {
	case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
	default:
		return
	}
	addr, size := trace.Block(int(i))
	if bad(addr, size) {
		return
	}
	switch action {
	case snapshot.Alloc:
		if row, ok := m.at.get(addr); ok {
			if l := m.life(row); l.Freed < 0 {
				m.t.Checks.UnmatchedAllocs++
				m.skipped(frees)
				l.Freed = i
				if l.FreeRequested < 0 {
					l.FreeRequested = i
				}
			}
		}
		m.at.put(addr, int32(len(m.born)))
		m.born = append(m.born, Life{Addr: addr, Requested: size, Born: i, FreeRequested: -1, Freed: -1,
			Stack: trace.Stack(int(i))})
	case snapshot.FreeRequested:
		if l := m.freed(addr, size); l != nil && l.FreeRequested < 0 {
			l.FreeRequested = i
			if m.early {
				l.Freed = i
			}
		} else if l != nil {
			m.t.Checks.UnmatchedFrees++
		}
	case snapshot.FreeCompleted:
		if l := m.freed(addr, size); l != nil {
			l.Freed = i
			if l.FreeRequested < 0 {
				l.FreeRequested = i
				if l.Born >= 0 {
					m.silent = true
					m.t.doubts.muted = true
					m.skipped(freeRequested)
				}
			}
		}
	}
}

// older adds a life from before the trace.
func (m *matcher) older(addr uint64, requested int64) int32 {
	row := ^int32(len(m.before))
	m.before = append(m.before, Life{Addr: addr, Requested: requested, Born: -1, FreeRequested: -1, Freed: -1})
	m.at.put(addr, row)
	return row
}

// known adds a block that was live as the window begins.
func (m *matcher) known(b *snapshot.OlderBlock) {
	l := m.life(m.older(b.Address, b.Requested))
	l.Rounded, l.Stack = b.Size, b.Stack
	if b.Waits {
		l.FreeRequested = PendingBefore
	}
}

// freed finds the block that a free is about, nil when the free makes no sense. A block that
// no event handed out was there before the trace; its stack is not known, since torch records
// the place of the free with a free.
func (m *matcher) freed(addr uint64, size int64) *Life {
	row, ok := m.at.get(addr)
	if !ok {
		row = m.older(addr, size)
	}
	l := m.life(row)
	if l.Freed >= 0 {
		m.t.Checks.UnmatchedFrees++
		m.skipped(alloc)
		return nil
	}
	return l
}

// skipped notes that events of these kinds happened for certain, as far as the trace has none of them.
func (m *matcher) skipped(k Kinds) { m.t.Recording.Skipped |= k & m.unseen }

// final matches the live blocks of the final state, which know their rounded size.
func (m *matcher) final() {
	last := int32(m.t.Trace.Len() - 1)
	found := 0
	for seg := range m.s.SegmentsOf(m.t.Device) {
		for j := seg.Blocks.Start; j < seg.Blocks.End(); j++ {
			b := &m.s.Blocks[j]
			if !b.State.Active() || !possible(b.Address, b.Size) {
				continue
			}
			found++
			row, ok := m.at.get(b.Address)
			switch {
			case !ok:
				row = m.older(b.Address, b.Requested)
			case m.early && b.State == snapshot.StatePendingFree && m.life(row).Freed >= 0:
				m.life(row).Freed = -1 // it waits to the end
			case m.life(row).Freed >= 0:
				// The trace freed it, the state has it: trust the state from the end on.
				m.t.Checks.UnmatchedAllocs++
				m.skipped(alloc)
				row = int32(len(m.born))
				m.born = append(m.born, Life{Addr: b.Address, Requested: b.Requested, Born: last, FreeRequested: -1,
					Freed: -1})
				m.at.put(b.Address, row)
			}
			l := m.life(row)
			if l.Stack == 0 {
				l.Stack = b.Stack
			}
			if l.FreeRequested == -1 && b.State == snapshot.StatePendingFree {
				switch {
				case l.Born >= 0:
					m.t.doubts.muted = true
					m.skipped(freeRequested)
				case m.silent && !m.unseen.Has(freeCompleted):
					l.FreeRequested = last // allocated is at most what it seems
				default:
					l.FreeRequested = PendingBefore
					m.t.doubts.hushed = true
				}
			}
			m.inFinal = append(m.inFinal, row)
			m.sizes = append(m.sizes, b.Size)
		}
	}
	m.t.Checks.UnmatchedAllocs += int64(max(m.open()-found, 0))
	switch {
	case m.open() > found:
		m.skipped(frees)
		if m.unseen.All(frees) {
			m.gone(last)
		}
	case m.early && m.open() < len(m.born)+len(m.before):
		m.skipped(freeCompleted)
	}
}

// gone ends the lives that the final state does not have, in a trace that has no frees: at the end at the latest.
func (m *matcher) gone(last int32) {
	there := make([]bool, len(m.born))
	for _, row := range m.inFinal {
		if row >= 0 {
			there[row] = true
		}
	}
	for i := range m.born {
		if l := &m.born[i]; l.Freed < 0 && !there[i] {
			l.FreeRequested, l.Freed = last, last
		}
	}
}

// open counts the lives that nothing has ended.
func (m *matcher) open() int {
	n := 0
	for _, lives := range [][]Life{m.born, m.before} {
		for i := range lives {
			if lives[i].Freed < 0 {
				n++
			}
		}
	}
	return n
}

// pending finds the pre-trace blocks whose only event is the completion of their free: the
// request came before the trace.
func (m *matcher) pending() {
	for i := range m.before {
		l := &m.before[i]
		if l.Freed < 0 || l.Freed != l.FreeRequested || m.early {
			continue
		}
		if m.t.window != nil && i < len(m.t.window.Older) {
			if m.t.window.Older[i].Waits {
				l.FreeRequested = PendingBefore
			}
			continue
		}
		m.t.doubts.hushed = true
		if !m.silent {
			l.FreeRequested = PendingBefore
		}
	}
}

// join makes one list of both kinds of lives, and says for which the size is recorded.
func (m *matcher) join() []sizeSource {
	order := make([]int32, len(m.before))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(m.before[a].Addr, m.before[b].Addr) })
	place := make([]int32, len(m.before))
	lives := slices.Grow(m.born, len(m.before))[:len(m.before)+len(m.born)]
	copy(lives[len(m.before):], m.born)
	for to, from := range order {
		place[from] = int32(to)
		lives[to] = m.before[from]
	}
	m.t.Lives = lives
	m.t.Checks.PreTraceBlocks = int64(len(m.before))

	source := make([]sizeSource, len(lives))
	for i := range m.before {
		if lives[i].Rounded > 0 {
			source[i] = corrected // by all events before the window
		}
	}
	for i, row := range m.inFinal {
		if row < 0 {
			row = place[^row]
		} else {
			row += int32(len(m.before))
		}
		lives[row].Rounded = m.sizes[i]
		source[row] = recorded
	}
	return source
}

// possible reports whether a block or a segment can be there: of at least a byte, and not beyond all addresses.
func possible(addr uint64, size int64) bool {
	return addr != 0 && size > 0 && size <= allocator.MaxRequest && addr+uint64(size) > addr
}

// bad reports whether an event lacks what its action needs.
func bad(addr uint64, size int64) bool {
	return addr == 0 || size < 0 || size > allocator.MaxRequest || addr+uint64(size) < addr
}
