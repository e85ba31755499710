package whatif

import (
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
)

// replay is one run of a program on an allocator.
type replay struct {
	p *Program
	a *allocator.Allocator
	// held is by row: the block, or once its free was requested the ticket of the wait; gone for
	// what is not held.
	held []int32
}

const gone = -1

func (p *Program) newReplay() *replay {
	return &replay{p: p, held: slices.Repeat([]int32{gone}, len(p.asks))}
}

// begin makes the allocator, which knows the streams and pools of the program.
func (r *replay) begin(o allocator.Options) {
	r.a = allocator.New(o)
	for _, h := range r.p.streams {
		r.a.Stream(h)
	}
	for range r.p.pools[1:] {
		r.a.NewPool()
	}
}

// restore puts segments where they lay, or in the same order at addresses of a device, so that
// they are apart from all that it gives later. Blocks whose free had been requested wait for
// other streams.
func (r *replay) restore(places []place, event int, device *allocator.Device) {
	for i := range places {
		seg := places[i].Segment
		if device != nil {
			seg.Addr, _ = device.Reserve(seg.Size)
		}
		seg.Pieces = slices.Clone(seg.Pieces)
		r.a.Restore(&seg)
		for k, row := range places[i].rows {
			if row >= 0 {
				r.hold(row, seg.Pieces[k].Block, event)
			}
		}
	}
	r.a.Stats().ResetPeaks()
}

// hold notes the block of a row that lives after an event.
func (r *replay) hold(row int32, b allocator.Block, event int) {
	r.held[row] = int32(b)
	if r.p.t.Lives[row].Waits(event) {
		r.held[row] = int32(r.a.FreeRequested(b))
	}
}

// ask asks anew for the blocks from before the trace, by address. It is false when they do not
// fit.
func (r *replay) ask(places []place) bool {
	for i := range places {
		seg := &places[i]
		for k, row := range seg.rows {
			if row < 0 {
				continue
			}
			b, ok := r.a.Malloc(seg.Pieces[k].Requested, seg.Stream, seg.Pool)
			if !ok {
				return false
			}
			r.hold(row, b, -1)
		}
	}
	r.a.Stats().ResetPeaks()
	return true
}

// step makes one operation, false when it is a request that fails.
func (r *replay) step(o *op) bool {
	switch o.kind {
	case opAlloc:
		k := &r.p.asks[o.row]
		b, ok := r.a.Malloc(k.bytes, k.stream, k.pool)
		r.held[o.row] = int32(b)
		return ok
	case opFree:
		if b := r.held[o.row]; b != gone {
			r.held[o.row] = gone
			r.a.Free(allocator.Block(b))
		}
	case opRequest:
		if b := r.held[o.row]; b != gone {
			r.held[o.row] = int32(r.a.FreeRequested(allocator.Block(b)))
		}
	case opComplete:
		if t := r.held[o.row]; t != gone {
			r.held[o.row] = gone
			r.a.FreeCompleted(allocator.Ticket(t))
		}
	case opFail:
		k := &r.p.asks[o.row]
		b, ok := r.a.Malloc(k.bytes, k.stream, k.pool)
		if ok {
			// What the program would have done with it is not known.
			r.a.Free(b)
		}
		return ok
	case opEmpty:
		r.a.EmptyCache()
	case opRelease:
		r.a.ReleasePool(allocator.Pool(o.row))
	}
	return true
}
