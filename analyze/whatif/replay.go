package whatif

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
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

func (p *Program) newReplay(a *allocator.Allocator) *replay {
	r := &replay{p: p, a: a, held: make([]int32, len(p.asks))}
	for i := range r.held {
		r.held[i] = gone
	}
	p.prepare(a)
	return r
}

// prepare makes the streams and pools of a program known.
func (p *Program) prepare(a *allocator.Allocator) {
	for _, h := range p.streams {
		a.Stream(h)
	}
	for range p.pools[1:] {
		a.NewPool()
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
		seg.Pieces = append([]allocator.Piece(nil), seg.Pieces...)
		r.a.Restore(&seg)
		for k, row := range places[i].rows {
			if row < 0 {
				continue
			}
			b := seg.Pieces[k].Block
			r.held[row] = int32(b)
			if waits(&r.p.t.Lives[row], event) {
				r.held[row] = int32(r.a.FreeRequested(b))
			}
		}
	}
	r.a.Stats().ResetPeaks()
}

// waits reports whether the free of a live block was requested at or before an event.
func waits(l *timeline.Life, event int) bool {
	return l.FreeRequested == timeline.PendingBefore || l.FreeRequested >= 0 && int(l.FreeRequested) <= event
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
			r.held[row] = int32(b)
			if waits(&r.p.t.Lives[row], -1) {
				r.held[row] = int32(r.a.FreeRequested(b))
			}
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
