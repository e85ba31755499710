package allocator

// EmptyCache gives the cache back to the driver, as torch.cuda.empty_cache() does.
func (a *Allocator) EmptyCache() { a.releaseCached() }

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
	var age, count, reclaimed int64
	each := func(f func(i int32, age int64)) {
		for _, i := range a.cached(large) {
			if b := &a.blocks[i]; b.state == Free && !b.split() {
				f(i, int64(large.calls-b.since))
			}
		}
	}
	each(func(_ int32, since int64) {
		age += since
		count++
	})
	for freed := true; reclaimed < target && freed && count > 0; {
		threshold := float64(age) / float64(count)
		freed = false
		each(func(i int32, since int64) {
			if b := &a.blocks[i]; b.space == none && float64(since) >= threshold {
				freed = true
				reclaimed += b.size
				age -= since
				count--
				a.releaseBlock(i)
			}
		})
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
	for s, ok := q.free.last(); ok && released < want; {
		i := q.free.get(s).block
		size := a.blocks[i].size
		if size < a.maxSplit {
			break
		}
		// What comes before s keeps its place while s goes, unless runs are joined.
		s, ok = q.free.earlier(s)
		if a.unsplit(i) {
			var key entry
			if ok {
				key = *q.free.get(s)
			}
			a.releaseBlock(i)
			released += size
			if ok {
				s = q.free.seek(&key)
			}
		}
	}
	return released >= want
}

func (a *Allocator) unsplit(i int32) bool {
	return a.blocks[i].space == none && !a.blocks[i].split()
}

// releaseCached waits for all streams and gives back every free segment and granule (SPEC.md 5.10,
// release_cached_blocks).
func (a *Allocator) releaseCached() {
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
	kind := KindOf(a.queues[b.queue].small)
	a.remove(i)
	a.driver.Free(b.addr, b.size)
	a.stats.NumDeviceFree++
	a.stats.Segment.Sub(kind, 1)
	a.stats.ReservedBytes.Sub(kind, b.size)
	if b.size >= a.maxSplit {
		a.stats.OversizeSegments.sub(1)
	}
	a.dropBlock(i)
}
