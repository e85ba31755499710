package allocator

// Ticket stands for a block whose free was requested while other streams still used it. Tickets
// count up from 0.
type Ticket int64

// Free frees a block that no other stream uses (SPEC.md 5.7).
func (a *Allocator) Free(b Block) {
	a.request(b)
	a.complete(b)
}

// FreeRequested frees a block that other streams still use: it stays active until
// FreeCompleted, or until the allocator waits for all streams.
func (a *Allocator) FreeRequested(b Block) Ticket {
	a.request(b)
	a.blocks[b].state = Pending
	a.waiting = append(a.waiting, b)
	return a.tickets + Ticket(len(a.waiting)) - 1
}

// FreeCompleted says that no stream uses the block of a ticket any more. It does nothing if
// the allocator has found that out itself, by waiting.
func (a *Allocator) FreeCompleted(t Ticket) {
	i := int(t - a.tickets)
	if i < 0 || a.waiting[i] == none {
		return
	}
	b := a.waiting[i]
	a.waiting[i] = none
	a.complete(b)
	done := 0
	for done < len(a.waiting) && a.waiting[done] == none {
		done++
	}
	if done > len(a.waiting)/2 {
		a.tickets += Ticket(done)
		a.waiting = a.waiting[:copy(a.waiting, a.waiting[done:])]
	}
}

// synchronize waits for all streams (synchronize_and_free_events).
func (a *Allocator) synchronize() {
	a.stats.NumSyncAllStreams++
	for i, b := range a.waiting {
		if b != none {
			a.waiting[i] = none
			a.complete(b)
		}
	}
	a.tickets += Ticket(len(a.waiting))
	a.waiting = a.waiting[:0]
}

// request is what a free changes at once (DeviceCachingAllocator::free).
func (a *Allocator) request(i Block) {
	b := &a.blocks[i]
	if b.state != Live {
		panic("allocator: a block is freed twice")
	}
	a.stats.Free(KindOf(a.queues[b.queue].small), b.size)
	if b.size >= a.maxSplit {
		a.stats.OversizeAllocations.add(-1)
	}
}

// complete puts a block back, joined with its free neighbors (free_block).
func (a *Allocator) complete(i Block) {
	b := &a.blocks[i]
	kind := KindOf(a.queues[b.queue].small)
	size := b.size
	b.state = Free
	var splits, splitBytes int64 // change of inactive_split
	free := &a.queues[b.queue].free
	var old entry // of a neighbor that is part of the block now, in the queue that both have
	joined := false
	for _, n := range [2]int32{b.prev, b.next} {
		if n == none || a.blocks[n].state != Free {
			continue
		}
		if joined {
			free.remove(&old)
		}
		old, joined = a.blocks[n].entry(n), true
		splits--
		splitBytes -= a.join(int32(i), n)
	}
	if joined {
		a.move(int32(i), free.place(&old))
	} else {
		a.insert(int32(i))
	}
	if b.space == none {
		if b.split() {
			splits++
			splitBytes += b.size
		}
		a.stats.split(kind, splits, splitBytes)
	}
	a.stats.Complete(kind, size, b.requested)
}
