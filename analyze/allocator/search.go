package allocator

// find takes the free block that serves a rounded size out of a queue, none when there is no
// such block (SPEC.md 5.4, get_free_block). It looks at one candidate: where a rule forbids that one,
// larger ones are not tried.
func (a *Allocator) find(qi int32, rounded int64) int32 {
	q := &a.queues[qi]
	if a.collects {
		a.pools[q.pool].calls++
	}
	key := entry{size: rounded}
	s := q.free.seek(&key)
	if !q.free.valid(s) {
		return none
	}
	e := q.free.get(s)
	if a.blocks[e.block].space != none {
		if a.conf.Expandable {
			s = a.preferFixed(q, s)
		} else if s = a.skipExpandable(q, s); !q.free.valid(s) {
			return none
		}
		e = q.free.get(s)
	}
	if rounded < a.maxSplit {
		if e.size >= a.maxSplit {
			return none // large blocks are kept for large requests
		}
	} else if e.size-rounded >= a.conf.MaxNonSplitRounding {
		return none // it would not be split
	}
	b := e.block
	q.free.removeAt(s)
	return b
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
