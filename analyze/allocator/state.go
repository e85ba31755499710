package allocator

import (
	"cmp"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Segment is one cudaMalloc'ed range, or the whole address space of an expandable segment, with
// the pieces that tile it.
type Segment struct {
	Addr       uint64
	Size       int64
	Stream     Stream
	Pool       Pool
	Small      bool
	Expandable bool
	Pieces     []Piece
}

// Piece is a part of a segment.
type Piece struct {
	Size      int64
	Requested int64 // of live and pending ones
	State     State
	Block     Block // set by Segments and Restore; only live and pending ones can be used
}

// Segments lists everything that is reserved, by address.
func (a *Allocator) Segments() []Segment {
	var out []Segment
	for i := range a.blocks {
		b := &a.blocks[i]
		if b.state == unused || b.prev != none {
			continue
		}
		q := &a.queues[b.queue]
		seg := Segment{Addr: b.addr, Stream: q.stream, Pool: a.pools[q.pool].owner, Small: q.small,
			Expandable: b.space != none}
		for k := int32(i); k != none; k = a.blocks[k].next {
			b := &a.blocks[k]
			p := Piece{Size: b.size, State: b.state, Block: Block(k)}
			if b.state == Live || b.state == Pending {
				p.Requested = b.requested
			}
			seg.Size += b.size
			seg.Pieces = append(seg.Pieces, p)
		}
		out = append(out, seg)
	}
	sorting.By(out, func(x, y Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	return out
}

// Restore adds a segment that exists already, with its pieces, of which Free neighbors must be
// one, and fills in their blocks. Pending pieces are not possible: pass them as live ones and
// call FreeRequested. The statistics count the segment, but neither calls to the driver nor
// anything that has led to it. Segments should come in the order in which they were made.
func (a *Allocator) Restore(seg *Segment) {
	qi := a.queueFor(seg.Small, seg.Stream, seg.Pool)
	kind := KindOf(seg.Small)
	a.smallest = min(a.smallest, seg.Size)
	sp := int32(none)
	if seg.Expandable {
		sp = int32(len(a.spaces))
		a.spaces = append(a.spaces, space{base: seg.Addr, size: seg.Size, granule: a.conf.Granule(a.queues[qi].small)})
	} else {
		a.countSegment(qi, 1, seg.Size)
	}
	last, addr := int32(none), seg.Addr
	for i := range seg.Pieces {
		p := &seg.Pieces[i]
		b := a.newBlock(addr, p.Size, qi, sp, last, p.State)
		a.link(last, b, none)
		p.Block = Block(b)
		last, addr = b, addr+uint64(p.Size)
		if seg.Expandable && p.State != Unmapped {
			a.stats.ReservedBytes.Add(kind, p.Size)
		}
		switch p.State {
		case Live:
			a.countBlock(&a.blocks[b], kind, p.Requested)
		case Free, Unmapped:
			a.insert(b)
			if p.State == Free && !seg.Expandable && len(seg.Pieces) > 1 {
				a.stats.split(kind, 1, p.Size)
			}
		default:
			panic("allocator: a segment is restored with a pending piece")
		}
	}
}
