package timeline

import (
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// layout is the allocator's view of reserved memory: per range a ring of blocks by address,
// which tile it, live or free. Free neighbors are always merged (free_block).
type layout struct {
	blocks []block
	spare  []int32 // rows of blocks to use again
	starts *table  // block by its address
	ranges Ranges  // with the head block of each in heads
	heads  []int32
	split  int64 // bytes of the blocks for which inactiveSplit holds
}

// block is live when life is a row of Lives, free when life is none. prev and next close a
// ring per range, so the range's last block is its head's prev; where two blocks touch
// follows from their addresses.
type block struct {
	addr       uint64
	size       int64
	prev, next int32
	life       int32
	small      bool // splits by the small pool's rule
	expandable bool
}

const none = -1

func (l *layout) end(b int32) uint64 { return l.blocks[b].addr + uint64(l.blocks[b].size) }

// inactiveSplit gives the bytes of a block that count as inactive split, which are all of it or
// none: it is free, has neighbors, and is not expandable (analyze/allocator/SPEC.md 5.11).
func (l *layout) inactiveSplit(b int32) int64 {
	k := &l.blocks[b]
	if k.life == none && k.prev != b && !k.expandable {
		return k.size
	}
	return 0
}

// newBlock makes a free block in a ring of its own.
func (l *layout) newBlock(addr uint64, size int64, small, expandable bool) int32 {
	var b int32
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		b = int32(len(l.blocks))
		l.blocks = append(l.blocks, block{})
	}
	l.blocks[b] = block{addr: addr, size: size, prev: b, next: b, life: none, small: small, expandable: expandable}
	l.starts.put(addr, b)
	return b
}

// splitAt cuts a block in two at size bytes from its start and returns the second piece,
// which is free.
func (l *layout) splitAt(b int32, size int64) int32 {
	old := l.blocks[b]
	before := l.inactiveSplit(b)
	rest := l.newBlock(old.addr+uint64(size), old.size-size, old.small, old.expandable)
	l.blocks[b].size = size
	l.link(rest, l.blocks[b].next)
	l.link(b, rest)
	l.split += l.inactiveSplit(b) + l.inactiveSplit(rest) - before
	return rest
}

func (l *layout) link(a, b int32) { l.blocks[a].next, l.blocks[b].prev = b, a }

// absorb joins b into a, its left neighbor.
func (l *layout) absorb(a, b int32) {
	before := l.inactiveSplit(a) + l.inactiveSplit(b)
	l.blocks[a].size += l.blocks[b].size
	l.link(a, l.blocks[b].next)
	l.split += l.inactiveSplit(a) - before
	l.starts.drop(l.blocks[b].addr)
	l.spare = append(l.spare, b)
}

// touching reports whether b begins where a ends, in one range.
func (l *layout) touching(a, b int32) bool { return a != b && l.end(a) == l.blocks[b].addr }

// take gives the front of a free block to a life; whole blocks are taken when split is false.
func (l *layout) take(b, life int32, size int64, split bool) {
	if split {
		l.splitAt(b, size)
	}
	l.split -= l.inactiveSplit(b)
	l.blocks[b].life = life
}

// release frees a block and merges it with free neighbors.
func (l *layout) release(b int32) {
	l.blocks[b].life = none
	l.split += l.inactiveSplit(b)
	l.merge(b)
}

func (l *layout) merge(b int32) {
	if n := l.blocks[b].next; l.touching(b, n) && l.blocks[n].life == none {
		l.absorb(b, n)
	}
	if p := l.blocks[b].prev; l.touching(p, b) && l.blocks[p].life == none {
		l.absorb(p, b)
	}
}

// holding finds the block that has addr inside it, none when no range has it.
func (l *layout) holding(addr uint64) int32 {
	i := l.ranges.Holding(addr)
	if i < 0 {
		return none
	}
	b := l.heads[i]
	for l.end(b) <= addr {
		n := l.blocks[b].next
		if l.blocks[n].addr <= l.blocks[b].addr {
			return none
		}
		b = n
	}
	return b
}

// reserve adds a free range, false when it overlaps another.
func (l *layout) reserve(r Range) bool {
	i := l.ranges.after(r.Addr)
	n := len(l.ranges)
	if !l.ranges.add(r) {
		return false
	}
	b := l.newBlock(r.Addr, r.Size, r.splitsSmall(), r.Expandable)
	switch len(l.ranges) - n {
	case 1: // on its own
		l.heads = slices.Insert(l.heads, i, b)
		return true
	case 0: // joined the range before or after it
		if i > 0 && l.ranges[i-1].End() == r.End() {
			l.append(l.heads[i-1], b)
		} else {
			head := l.heads[i]
			l.append(b, head)
			l.heads[i] = b
		}
	case -1: // closed the gap between two
		l.append(l.heads[i-1], b)
		l.append(l.heads[i-1], l.heads[i])
		l.heads = slices.Delete(l.heads, i, i+1)
	}
	l.merge(b)
	return true
}

// append puts the ring of b behind the ring of a.
func (l *layout) append(a, b int32) {
	lastA, lastB := l.blocks[a].prev, l.blocks[b].prev
	l.link(lastA, b)
	l.link(lastB, a)
}

// unreserve takes a range away, which must be free, false when it is not.
func (l *layout) unreserve(addr uint64, size int64) bool {
	i := l.ranges.Holding(addr)
	b := l.holding(addr)
	if i < 0 || b == none || l.blocks[b].life != none || l.end(b) < addr+uint64(size) {
		return false
	}
	if l.blocks[b].addr < addr {
		b = l.splitAt(b, int64(addr-l.blocks[b].addr))
	}
	if l.blocks[b].size > size {
		l.splitAt(b, size)
	}
	l.split -= l.inactiveSplit(b)
	head := l.heads[i]
	before, after := l.blocks[b].prev, l.blocks[b].next
	last := l.blocks[head].prev
	leftPart, rightPart := b != head, b != last
	l.starts.drop(addr)
	l.spare = append(l.spare, b)
	l.ranges.cut(addr, size)
	switch {
	case leftPart && rightPart:
		l.link(before, head)
		l.link(last, after)
		l.heads = slices.Insert(l.heads, i+1, after)
	case leftPart:
		l.link(before, head)
	case rightPart:
		l.link(last, after)
		l.heads[i] = after
	default:
		l.heads = slices.Delete(l.heads, i, i+1)
	}
	return true
}

// splitsSmall reports whether blocks of the range split by the small pool's rule
// (analyze/allocator/SPEC.md 5.5 step 6).
func (r *Range) splitsSmall() bool { return r.Kind == snapshot.KindSmall || r.Expandable }
