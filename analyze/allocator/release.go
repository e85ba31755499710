package allocator

import "slices"

// collect gives back free segments of the default pool that were not used for long, oldest
// first, when more than a share of the allowed memory is reserved (SPEC.md 5.8,
// garbage_collect_cached_blocks).
func (a *Allocator) collect() {
	limit := int64(a.conf.GCThreshold * float64(a.allowed))
	if a.reserved() <= limit {
		return
	}
	target := a.reserved() - limit
	large := &a.pools[0]
	whole := slices.DeleteFunc(a.cached(large), func(i int32) bool { return a.blocks[i].split() })
	since := func(i int32) int64 { return int64(large.calls - a.blocks[i].since) }
	var age, reclaimed int64
	for _, i := range whole {
		age += since(i)
	}
	count := len(whole)
	for freed := true; reclaimed < target && freed && count > 0; {
		threshold := float64(age) / float64(count)
		freed = false
		for _, i := range whole {
			if b := &a.blocks[i]; b.state == Free && b.space == none && float64(since(i)) >= threshold {
				freed = true
				reclaimed += b.size
				age -= since(i)
				count--
				a.releaseBlock(i)
			}
		}
	}
}

// releaseAvailable gives back just enough of the blocks that are never split to serve a
// request, and reports whether that was possible (SPEC.md 5.9, release_available_cached_blocks).
func (a *Allocator) releaseAvailable(qi int32, rounded int64) bool {
	if a.conf.MaxSplit < 0 {
		return false
	}
	q := &a.queues[qi]
	want := max(rounded, a.maxSplit)
	if s := q.free.seek(&entry{size: want}); q.free.valid(s) {
		if i := q.free.get(s).block; a.unsplit(i) {
			a.releaseBlock(i)
			return true
		}
	}
	var released int64
	for s, ok := q.free.before(q.free.end()); ok && released < want; s, ok = q.free.before(s) {
		e := *q.free.get(s)
		if e.size < a.maxSplit {
			break
		}
		if a.unsplit(e.block) {
			a.releaseBlock(e.block)
			released += e.size
			s = q.free.seek(&e) // runs may have been joined
		}
	}
	return released >= want
}

func (a *Allocator) unsplit(i int32) bool {
	return a.blocks[i].space == none && !a.blocks[i].split()
}

// EmptyCache waits for all streams and gives every free segment and granule back to the driver, as
// torch.cuda.empty_cache() does (SPEC.md 5.10, release_cached_blocks).
func (a *Allocator) EmptyCache() {
	a.synchronize()
	a.releasePool(&a.pools[0])
	a.releasePool(&a.pools[1])
	for i := 2; i < len(a.pools); i += 2 {
		if a.pools[i].freeable {
			a.releasePool(&a.pools[i+1])
			a.releasePool(&a.pools[i])
		}
	}
}

// releasePool gives back the free segments of one pool, then the free granules
// (release_blocks).
func (a *Allocator) releasePool(p *pool) {
	cached := a.cached(p)
	for _, i := range cached {
		if a.unsplit(i) {
			a.releaseBlock(i)
		}
	}
	for _, i := range cached {
		if b := &a.blocks[i]; b.state == Free && b.space != none {
			a.unmap(i)
		}
	}
}

// cached lists the free blocks of a pool in its order, without those that are too small to be
// a segment or to hold a granule. The list is valid until the next call.
func (a *Allocator) cached(p *pool) []int32 {
	a.scratch = a.scratch[:0]
	for _, q := range p.queues {
		free := &a.queues[q].free
		for s := free.seek(&entry{size: a.smallest}); free.valid(s); s = free.after(s) {
			a.scratch = append(a.scratch, free.get(s).block)
		}
	}
	return a.scratch
}

// releaseBlock gives one free segment back (release_block).
func (a *Allocator) releaseBlock(i int32) {
	b := &a.blocks[i]
	a.remove(i)
	a.driver.Free(b.addr, b.size)
	a.stats.NumDeviceFree++
	a.countSegment(b.queue, -1, b.size)
	a.dropBlock(i)
}
