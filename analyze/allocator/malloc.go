package allocator

// Malloc serves a request of n bytes, n > 0, on a stream and pool. It is false when the device
// is full even though all that could be was given back (SPEC.md 5.5, DeviceCachingAllocator::malloc).
func (a *Allocator) Malloc(n int64, s Stream, p Pool) (Block, bool) {
	rounded := a.conf.Round(n)
	q := a.queueFor(a.conf.Small(rounded), s, p)
	b := a.find(q, rounded)
	if b == none {
		if b = a.grow(q, rounded); b == none {
			return none, false
		}
	}
	return Block(a.handOut(q, b, rounded, n)), true
}

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
	a.releaseCached()
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
	kind := KindOf(a.queues[q].small)
	a.stats.Segment.Add(kind, 1)
	a.stats.ReservedBytes.Add(kind, size)
	if size >= a.maxSplit {
		a.stats.OversizeSegments.add(1)
	}
	a.stats.NumDeviceAlloc++
	return a.newSegment(addr, size, q, none, Free)
}

// handOut gives a block, which is in no queue, to the program. What is too much is split off:
// the front goes to the program, the rest stays (SPEC.md 5.5 steps 6 to 8, alloc_found_block).
func (a *Allocator) handOut(q, i int32, rounded, n int64) int32 {
	b := &a.blocks[i]
	small := a.queues[q].small
	kind := KindOf(small)
	st := &a.stats
	wasSplit := b.split()
	splits := a.conf.Splits(rounded, b.size-rounded, small)
	switch {
	case splits:
		front := a.piece(i, b.addr, rounded, Live)
		b = &a.blocks[i]
		a.link(b.prev, front, i)
		b.addr += uint64(rounded)
		b.size -= rounded
		a.insert(i)
		if b.space != none {
			break
		}
		if wasSplit {
			st.InactiveSplitBytes.Sub(kind, rounded)
		} else {
			st.InactiveSplitBytes.Add(kind, b.size)
			st.InactiveSplit.Add(kind, 1)
		}
	case wasSplit && b.space == none:
		st.InactiveSplitBytes.Sub(kind, b.size)
		st.InactiveSplit.Sub(kind, 1)
	}
	if splits {
		i = a.blocks[i].prev
		b = &a.blocks[i]
	}
	b.state = Live
	b.requested = n
	st.Allocate(kind, b.size, n)
	if b.size >= a.maxSplit {
		st.OversizeAllocations.add(1)
	}
	return i
}
