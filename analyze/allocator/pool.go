package allocator

import (
	"cmp"
	"slices"
)

// Block is a piece of a segment that was handed out. Numbers are used again.
type Block int32

// Stream is a CUDA stream that the allocator knows, see Allocator.Stream.
type Stream int32

// Pool is a memory pool, see Allocator.NewPool. The zero value is the default one.
type Pool int32

const none = -1

// block is a piece of a segment: live, free, or address space without memory. Pieces of a
// segment are linked in the order of their addresses.
type block struct {
	addr       uint64
	size       int64
	requested  int64
	prev, next int32  // none at the ends of the segment
	queue      int32  // of its pool and stream
	space      int32  // the expandable segment, none for memory of cudaMalloc
	tie        uint32 // its counter, or its segment's; 0 when addresses decide
	since      uint32 // calls of its pool when it became free, for garbage collection
	state      State
}

// State is what a block is used for.
type State uint8

const (
	unused   State = iota // a row without block
	Free                  // cached
	Live                  // handed out
	Pending               // freed by the program, still in use by other streams
	Unmapped              // address space of an expandable segment, without memory
)

// pool is a BlockPool of torch: the small or the large half of a memory pool.
type pool struct {
	small    bool
	owner    Pool
	freeable bool    // a private pool that no graph uses any more
	byStream []int32 // queue of each Stream, none when it has none
	queues   []int32 // in the order of stream handles
	calls    uint32  // searches, for garbage collection
}

// queue holds the blocks without owner of one pool and stream.
type queue struct {
	pool     int32
	stream   Stream
	small    bool
	counts   bool // ties are counters, of blocks or of segments
	free     order
	unmapped []int32 // by address
}

// Stream makes a stream known by its handle and gives its number.
func (a *Allocator) Stream(handle uint64) Stream {
	s, ok := a.byHandle[handle]
	if !ok {
		s = Stream(len(a.streams))
		a.streams = append(a.streams, handle)
		a.byHandle[handle] = s
	}
	return s
}

// NewPool adds a private pool, as a graph capture or torch.cuda.MemPool makes.
func (a *Allocator) NewPool() Pool {
	p := Pool(len(a.pools) / 2)
	a.pools = append(a.pools, pool{owner: p}, pool{owner: p, small: true})
	return p
}

// ReleasePool says that no graph uses a private pool any more: from now on its cache is given
// back like that of the default pool (SPEC.md 5.10).
func (a *Allocator) ReleasePool(p Pool) {
	a.pools[2*p].freeable, a.pools[2*p+1].freeable = true, true
}

// queueFor gives the queue of a pool and stream for requests of a rounded size.
func (a *Allocator) queueFor(small bool, s Stream, p Pool) int32 {
	half := 2 * int32(p)
	if small {
		half++
	}
	pl := &a.pools[half]
	if int(s) < len(pl.byStream) && pl.byStream[s] != none {
		return pl.byStream[s]
	}
	return a.newQueue(half, s)
}

func (a *Allocator) newQueue(half int32, s Stream) int32 {
	pl := &a.pools[half]
	q := int32(len(a.queues))
	a.queues = append(a.queues, queue{pool: half, stream: s, small: pl.small,
		counts: a.tie == TieCounter || a.tie == TieSegment || a.tie == TieCounterPrivate && pl.owner != 0})
	for len(pl.byStream) <= int(s) {
		pl.byStream = append(pl.byStream, none)
	}
	pl.byStream[s] = q
	at, _ := slices.BinarySearchFunc(pl.queues, a.streams[s], func(q int32, handle uint64) int {
		if a.streams[a.queues[q].stream] < handle {
			return -1
		}
		return 1
	})
	pl.queues = slices.Insert(pl.queues, at, q)
	return q
}

// newBlock makes a block, which is in no queue and linked to nothing: the first of a segment, or like
// another of its segment.
func (a *Allocator) newBlock(addr uint64, size int64, queue, space, like int32, state State) int32 {
	var b int32
	if n := len(a.spare); n > 0 {
		b = a.spare[n-1]
		a.spare = a.spare[:n-1]
	} else {
		b = int32(len(a.blocks))
		a.blocks = append(a.blocks, block{})
	}
	a.blocks[b] = block{addr: addr, size: size, prev: none, next: none, queue: queue, space: space, state: state}
	if a.tie == TieSegment && like != none {
		a.blocks[b].tie = a.blocks[like].tie
	} else if a.queues[queue].counts {
		a.count++
		a.blocks[b].tie = a.count
	}
	return b
}

// cut makes a block of its own out of the front or the back of block i, and links it there. Neither is in a
// queue then.
func (a *Allocator) cut(i int32, addr uint64, size int64, state State) int32 {
	k := a.newBlock(addr, size, a.blocks[i].queue, a.blocks[i].space, i, state)
	b := &a.blocks[i]
	b.size -= size
	if addr == b.addr {
		a.link(b.prev, k, i)
		b.addr += uint64(size)
	} else {
		a.link(i, k, b.next)
	}
	return k
}

func (a *Allocator) dropBlock(b int32) {
	a.blocks[b].state = unused
	a.spare = append(a.spare, b)
}

// link puts b between two blocks, either of which may be none.
func (a *Allocator) link(before, b, after int32) {
	a.blocks[b].prev, a.blocks[b].next = before, after
	if before != none {
		a.blocks[before].next = b
	}
	if after != none {
		a.blocks[after].prev = b
	}
}

func (b *block) split() bool { return b.prev != none || b.next != none }

func (b *block) end() uint64 { return b.addr + uint64(b.size) }

func (b *block) entry(i int32) entry { return entry{b.size, b.addr, b.tie, i} }

// insert puts a free block into its queue, or an unmapped one into the list of those.
func (a *Allocator) insert(i int32) {
	b := &a.blocks[i]
	q := &a.queues[b.queue]
	if b.state == Free {
		a.largest = max(a.largest, b.size)
		b.since = a.pools[q.pool].calls
		q.free.insert(b.entry(i))
		return
	}
	at, _ := a.findUnmapped(q, i)
	q.unmapped = slices.Insert(q.unmapped, at, i)
}

// move puts a free block, which has changed, where it belongs now: at s its queue has an entry that is no more.
func (a *Allocator) move(i int32, s spot) {
	b := &a.blocks[i]
	q := &a.queues[b.queue]
	a.largest = max(a.largest, b.size)
	b.since = a.pools[q.pool].calls
	q.free.replace(s, b.entry(i))
}

// remove is the inverse of insert.
func (a *Allocator) remove(i int32) {
	b := &a.blocks[i]
	q := &a.queues[b.queue]
	if b.state == Free {
		e := b.entry(i)
		q.free.remove(&e)
		return
	}
	at, ok := a.findUnmapped(q, i)
	if !ok {
		panic("allocator: an unmapped block is not where it belongs")
	}
	q.unmapped = slices.Delete(q.unmapped, at, at+1)
}

func (a *Allocator) findUnmapped(q *queue, i int32) (int, bool) {
	return slices.BinarySearchFunc(q.unmapped, i, func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.blocks[x].addr, a.blocks[y].addr), cmp.Compare(x, y))
	})
}

// merge joins n, a neighbor of b or none, into b when it is of the same kind, and gives the
// bytes that b gained. b itself is in no queue (try_merge_blocks).
func (a *Allocator) merge(i, n int32) int64 {
	if n == none || a.blocks[n].state != a.blocks[i].state {
		return 0
	}
	a.remove(n)
	return a.join(i, n)
}

// join is what merge does where n may be merged, but for the queues.
func (a *Allocator) join(i, n int32) int64 {
	b, k := &a.blocks[i], &a.blocks[n]
	gained := k.size
	if b.prev == n {
		b.addr = k.addr
		if b.prev = k.prev; b.prev != none {
			a.blocks[b.prev].next = i
		}
	} else if b.next = k.next; b.next != none {
		a.blocks[b.next].prev = i
	}
	b.size += gained
	a.dropBlock(n)
	return gained
}
