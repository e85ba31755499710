package allocator

// Malloc serves a request of n bytes, n > 0, on a stream and pool. It is false when the device
// is full even though all that could be was given back (SPEC.md 5.5, DeviceCachingAllocator::malloc).
func (a *Allocator) Malloc(n int64, s Stream, p Pool) (Block, bool) {
	rounded := a.conf.Round(n)
	a.largest = max(a.largest, rounded)
	q := a.queueFor(a.conf.Small(rounded), s, p)
	if s, ok := a.find(q, rounded); ok {
		return Block(a.handOut(q, a.queues[q].free.get(s).block, s, rounded, n)), true
	}
	b := a.grow(q, rounded)
	if b == none {
		return none, false
	}
	return Block(a.handOut(q, b, unqueued, rounded, n)), true
}

// unqueued is the place of a block that is in no queue.
var unqueued = spot{run: none}

// grow gets a block from the driver, if need be after giving some back (SPEC.md 5.5 steps 4 and 5).
// The block is in no queue.
func (a *Allocator) grow(q int32, rounded int64) int32 {
	size := a.conf.SegmentSize(rounded)
	if a.collects {
		a.collect()
	}
	if a.conf.Reject && a.reserved()+size > a.allowed {
		a.stats.NumOOMRejections++
		return none
	}
	if b := a.allocBlock(q, rounded, size); b != none {
		return b
	}
	if a.releaseAvailable(q, rounded) {
		if b := a.allocBlock(q, rounded, size); b != none {
			return b
		}
	}
	a.EmptyCache()
	a.stats.NumAllocRetries++
	if b := a.allocBlock(q, rounded, size); b != none {
		return b
	}
	a.stats.NumOOMs++
	return none
}

// allocBlock makes a segment of a size, or extends an expandable one by what the rounded size
// needs (alloc_block).
func (a *Allocator) allocBlock(q int32, rounded, size int64) int32 {
	if a.reserved()+size > a.allowed {
		return none
	}
	if a.conf.Expandable {
		return a.extend(q, rounded)
	}
	addr, ok := a.driver.Malloc(size)
	if !ok {
		return none
	}
	a.countSegment(q, 1, size)
	a.stats.NumDeviceAlloc++
	return a.newBlock(addr, size, q, none, none, Free)
}

// handOut gives a block, which is at s in its queue, to the program. What is too much is split off:
// the front goes to the program, the rest stays (SPEC.md 5.5 steps 6 to 8, alloc_found_block).
func (a *Allocator) handOut(q, i int32, s spot, rounded, n int64) int32 {
	b := &a.blocks[i]
	small := a.queues[q].small
	kind := KindOf(small)
	wasSplit := b.split()
	switch {
	case a.conf.Splits(rounded, b.size-rounded, small):
		front := a.cut(i, b.addr, rounded, Live)
		if s == unqueued {
			a.insert(i)
		} else {
			a.move(i, s)
		}
		if b = &a.blocks[i]; b.space == none && wasSplit {
			a.stats.InactiveSplitBytes.sub(kind, rounded)
		} else if b.space == none {
			a.stats.split(kind, 1, b.size)
		}
		i = front
	default:
		if s != unqueued {
			a.queues[q].free.removeAt(s)
		}
		if wasSplit && b.space == none {
			a.stats.split(kind, -1, -b.size)
		}
	}
	b = &a.blocks[i]
	b.state = Live
	a.countBlock(b, kind, n)
	return i
}

// countBlock counts a block that the program gets for a request of n bytes.
func (a *Allocator) countBlock(b *block, kind int, n int64) {
	b.requested = n
	a.largest = max(a.largest, b.size)
	a.stats.Allocate(kind, b.size, n)
	if b.size >= a.maxSplit {
		a.stats.OversizeAllocations.add(1)
	}
}

// countSegment counts a segment of cudaMalloc that comes, n = 1, or goes, n = -1.
func (a *Allocator) countSegment(q int32, n, size int64) {
	kind := KindOf(a.queues[q].small)
	a.largest = max(a.largest, size)
	a.stats.Segment.Add(kind, n)
	a.stats.ReservedBytes.Add(kind, n*size)
	if size >= a.maxSplit {
		a.stats.OversizeSegments.add(n)
	}
}

// find gives the place of the free block that serves a rounded size in a queue, false when there is no
// such block (SPEC.md 5.4, get_free_block). It looks at one candidate: where a rule forbids that one,
// larger ones are not tried.
func (a *Allocator) find(qi int32, rounded int64) (s spot, ok bool) {
	q := &a.queues[qi]
	if a.collects {
		a.pools[q.pool].calls++
	}
	key := entry{size: rounded}
	if s = q.free.seek(&key); !q.free.valid(s) {
		return s, false
	}
	e := q.free.get(s)
	if a.blocks[e.block].space != none {
		if a.conf.Expandable {
			s = a.preferFixed(q, s)
		} else if s = a.skipExpandable(q, s); !q.free.valid(s) {
			return s, false
		}
		e = q.free.get(s)
	}
	return s, a.conf.Takes(rounded, e.size)
}

// preferFixed goes on to larger blocks as long as they could grow less: by fit, a hole at the
// end of an expandable segment counts with the address space behind it.
func (a *Allocator) preferFixed(q *queue, s spot) spot {
	reach := func(b int32) int64 {
		size := a.blocks[b].size
		if n := a.blocks[b].next; n != none && a.blocks[n].state == Unmapped {
			size += a.blocks[n].size
		}
		return size
	}
	for {
		b := q.free.get(s).block
		n := q.free.after(s)
		if a.blocks[b].space == none || !q.free.valid(n) || reach(q.free.get(n).block) >= reach(b) {
			return s
		}
		s = n
	}
}

// skipExpandable goes on to the first block of cudaMalloc; it may go past the last. Only where
// the setting was switched off while the program ran is there anything to skip.
func (a *Allocator) skipExpandable(q *queue, s spot) spot {
	for q.free.valid(s) && a.blocks[q.free.get(s).block].space != none {
		s = q.free.after(s)
	}
	return s
}
