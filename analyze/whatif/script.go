package whatif

import (
	"fmt"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// scripted is an allocator.Driver that does what the trace says: it fails where the trace does
// not go on with new memory, and gives the recorded addresses.
type scripted struct {
	t     *timeline.Timeline
	ask   ask
	fails bool    // the operation is a request that failed
	next  []int32 // segment events of this operation that are still to come
	later []int32 // those after it
	same  int     // segment events that were as in the trace

	kind disagreement // the first one in this operation
	what string
}

// disagreement is a way in which the replay and the trace differ.
type disagreement uint8

const (
	agrees        disagreement = iota
	otherBlock                 // another block was handed out
	otherFailure               // a request fails in one of them
	otherSegment               // memory is asked for in one of them, or other memory
	otherReleases              // memory is given back in one of them, or other memory
)

// begin starts an operation with its n events.
func (d *scripted) begin(k ask, fails bool, script []int32, n int) {
	d.ask, d.fails, d.next, d.later, d.same = k, fails, script[:n], script[n:], 0
}

// end finds what the trace has and the replay has not.
func (d *scripted) end() {
	if len(d.next) == 0 {
		return
	}
	i := int(d.next[0])
	if e := d.t.Trace.At(i); releases(d.t.Trace, i) {
		d.faultf(otherReleases, "The run released %s at %#x; the replay keeps it.", units.Bytes(e.Size), e.Addr)
	} else {
		d.faultf(otherSegment, "The run reserved %s at %#x; the replay serves the request from a free block.",
			units.Bytes(e.Size), e.Addr)
	}
}

func (d *scripted) faultf(kind disagreement, format string, args ...any) {
	if d.kind == agrees {
		d.kind, d.what = kind, fmt.Sprintf(format, args...)
	}
}

// take gives the next event if it is of an action.
func (d *scripted) take(action snapshot.Action) (e snapshot.Event, ok bool) {
	if len(d.next) == 0 || d.t.Trace.Action(int(d.next[0])) != action {
		return e, false
	}
	e = d.t.Trace.At(int(d.next[0]))
	d.next = d.next[1:]
	return e, true
}

// acquire gives the event that brings new memory. It notes that the replay asks for memory and the
// trace has none for it, which is as it should be when memory is given back next, or when the request
// fails.
func (d *scripted) acquire(action snapshot.Action, size int64) (e snapshot.Event, ok bool) {
	e, ok = d.take(action)
	if !ok && len(d.next) == 0 && !d.fails {
		d.faultf(otherSegment, "The run served %s from its cache; the replay has no free block for it and asks the "+
			"driver for %s.",
			units.Bytes(d.ask.bytes), units.Bytes(size))
	}
	return e, ok
}

// Malloc implements allocator.Driver.
func (d *scripted) Malloc(size int64) (uint64, bool) {
	switch e, ok := d.acquire(snapshot.SegmentAlloc, size); {
	case !ok:
		return 0, false
	case e.Size != size:
		d.faultf(otherSegment, "The run made a segment of %s; the replay asks for %s.", units.Bytes(e.Size),
			units.Bytes(size))
		return 0, false
	default:
		d.same++
		return e.Addr, true
	}
}

// Reserve implements allocator.Driver: address space begins where it is mapped first, which a
// full device may put off to a later request.
func (d *scripted) Reserve(int64) (uint64, bool) {
	small := d.t.Conf.Small(d.ask.bytes)
	for _, events := range [][]int32{d.next, d.later} {
		for _, i := range events {
			e := d.t.Trace.At(int(i))
			if e.Action == snapshot.SegmentMap && e.Stream == d.ask.id && (e.Size == allocator.SmallBuffer) == small {
				return e.Addr, true
			}
		}
	}
	return 1 << 62, true // nothing will be mapped there
}

// Map implements allocator.Driver.
func (d *scripted) Map(addr uint64, size int64) bool {
	switch e, ok := d.acquire(snapshot.SegmentMap, size); {
	case !ok:
		return false
	case e.Size != size || e.Addr != addr:
		d.faultf(otherSegment, "The run mapped %s at %#x; the replay maps %s at %#x.", units.Bytes(e.Size), e.Addr,
			units.Bytes(size), addr)
		return false
	}
	d.same++
	return true
}

// Free implements allocator.Driver.
func (d *scripted) Free(addr uint64, size int64) { d.release(snapshot.SegmentFree, addr, size) }

// Unmap implements allocator.Driver.
func (d *scripted) Unmap(addr uint64, size int64) { d.release(snapshot.SegmentUnmap, addr, size) }

func (d *scripted) release(action snapshot.Action, addr uint64, size int64) {
	if e, ok := d.take(action); !ok || e.Addr != addr || e.Size != size {
		d.faultf(otherReleases, "The replay releases %s at %#x; the run kept it.", units.Bytes(size), addr)
		return
	}
	d.same++
}
