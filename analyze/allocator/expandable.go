package allocator

// space is the address range of one expandable segment. Its blocks tile it, mapped or not.
type space struct {
	base    uint64
	size    int64
	granule int64 // memory is mapped and unmapped in whole granules, counted from base
	dropped bool
}

func (s *space) down(addr uint64) uint64 {
	return s.base + (addr-s.base)/uint64(s.granule)*uint64(s.granule)
}

func (s *space) up(addr uint64) uint64 { return s.down(addr + uint64(s.granule) - 1) }

// extend maps memory behind a free block, or at the start of unmapped address space, until a
// block serves the rounded size (SPEC.md 5.6, try_allocate_expandable_block). It is none when the
// device is full; what was mapped until then stays, as a free block.
func (a *Allocator) extend(qi int32, rounded int64) int32 {
	b := a.findExpandable(qi, rounded)
	if b == none {
		return none
	}
	if a.blocks[b].state == Unmapped && !a.mapBlock(b, min(a.blocks[b].size, rounded)) {
		return none
	}
	for a.blocks[b].size < rounded {
		n := a.blocks[b].next
		if !a.mapBlock(n, min(rounded-a.blocks[b].size, a.blocks[n].size)) {
			return none
		}
		b = n
	}
	a.remove(b)
	return b
}

// findExpandable gives the lowest place in any expandable segment of a queue where free and
// unmapped blocks in a row are large enough, in a new segment if there is none
// (find_expandable_block). It is none when there are no addresses left.
func (a *Allocator) findExpandable(qi int32, rounded int64) int32 {
	for _, b := range a.queues[qi].unmapped {
		if p := a.blocks[b].prev; p != none && a.blocks[p].state == Free {
			b = p
		}
		if a.roomFrom(b, rounded) {
			return b
		}
	}
	g := a.conf.Granule(a.queues[qi].small)
	size := int64(unlimited)
	if a.total > 0 {
		size = a.total + a.total/8
	}
	size = roundUp(max(size, rounded), g) // torch has no room for more than the device, and need not
	base, ok := a.driver.Reserve(size)
	if !ok {
		return none
	}
	a.spaces = append(a.spaces, space{base: base, size: size, granule: g})
	b := a.newBlock(base, size, qi, int32(len(a.spaces)-1), none, Unmapped)
	a.insert(b)
	return b
}

func (a *Allocator) roomFrom(b int32, rounded int64) bool {
	sum := int64(0)
	for sum < rounded && b != none && (a.blocks[b].state == Free || a.blocks[b].state == Unmapped) {
		sum += a.blocks[b].size
		b = a.blocks[b].next
	}
	return sum >= rounded
}

// mapBlock puts memory behind the first size bytes of an unmapped block, rounded up to whole
// granules, and joins it with free neighbors (map_block). It is false when the device is full.
func (a *Allocator) mapBlock(i int32, size int64) bool {
	b := &a.blocks[i]
	addr := b.addr
	size = int64(a.spaces[b.space].up(addr+uint64(size)) - addr)
	if !a.driver.Map(addr, size) {
		return false
	}
	a.remove(i)
	if rest := b.size - size; rest > 0 {
		a.insert(a.cut(i, addr+uint64(size), rest, Unmapped))
	}
	b = &a.blocks[i]
	b.state = Free
	a.merge(i, b.prev)
	a.merge(i, b.next)
	a.insert(i)
	a.stats.ReservedBytes.Add(KindOf(a.queues[b.queue].small), size)
	a.stats.NumDeviceAlloc++
	return true
}

// unmap takes the memory from the whole granules inside a free block (unmap_block). A segment
// that has no memory left is dropped.
func (a *Allocator) unmap(i int32) {
	b := &a.blocks[i]
	sp := &a.spaces[b.space]
	from, to := sp.up(b.addr), sp.down(b.end())
	if from >= to {
		return
	}
	a.remove(i)
	left, right := int64(from-b.addr), int64(b.end()-to)
	if left > 0 {
		a.insert(a.cut(i, b.addr, left, Free))
	}
	if right > 0 {
		a.insert(a.cut(i, to, right, Free))
	}
	b = &a.blocks[i]
	b.state = Unmapped
	a.merge(i, b.prev)
	a.merge(i, b.next)
	size := int64(to - from)
	a.driver.Unmap(from, size)
	a.stats.ReservedBytes.Add(KindOf(a.queues[b.queue].small), -size)
	a.stats.NumDeviceFree++
	if b.split() {
		a.insert(i)
		return
	}
	sp.dropped = true
	a.dropBlock(i)
}
