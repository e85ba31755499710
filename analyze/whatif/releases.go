package whatif

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// burst is a run of releases that the program asked for with empty_cache, by its first and last
// event.
type burst struct{ first, last int32 }

// bursts finds the releases that the program asked for. Releases also occur inside a request,
// by garbage collection or because the device was full: then the request's segment follows, or
// its failure, from the same stack (analyze/allocator/SPEC.md 5.12). Where no stacks are recorded the two
// cannot be told apart, and releases are taken to be the program's unless a failure follows.
func (x *extractor) bursts() []burst {
	var out []burst
	n := x.t.Trace.Len()
	for i := 0; i < n; i++ {
		if !releases(x.t.Trace, i) {
			continue
		}
		first, last := i, i
		for i++; i < n; i++ {
			if releases(x.t.Trace, i) {
				last = i
			} else if x.t.Trace.Action(i) != snapshot.FreeCompleted || !x.inside(i) {
				break
			}
		}
		if i < n {
			last = x.ownPart(first, last, i)
		}
		i = max(i-1, last)
		if last >= first {
			out = append(out, burst{int32(first), int32(last)})
		}
	}
	return out
}

// inside reports whether a completed free is one that the allocator waited for: its request
// came some events earlier.
func (x *extractor) inside(i int) bool {
	row := x.ended[i]
	return row >= 0 && int(x.t.Lives[row].FreeRequested) != i-1 && int(x.t.Lives[row].FreeRequested) != i
}

// ownPart takes from the end of first..last what belongs to the request of event next, which
// comes after it, and gives the new last, which is before first when nothing remains.
func (x *extractor) ownPart(first, last, next int) int {
	after := x.t.Trace.At(next)
	switch after.Action {
	case snapshot.OOM:
		if after.Stack <= snapshot.EmptyStack {
			return first - 1
		}
	case snapshot.SegmentAlloc, snapshot.SegmentMap:
		if after.Stack <= snapshot.EmptyStack {
			return last
		}
	case snapshot.Alloc: // what was unmapped around a free block left enough of it
		if after.Stack <= snapshot.EmptyStack || x.t.Trace.Action(last) != snapshot.SegmentUnmap {
			return last
		}
	default:
		return last
	}
	for ; last >= first; last-- {
		if releases(x.t.Trace, last) && x.t.Trace.Stack(last) != after.Stack {
			return last
		}
	}
	return last
}

func releases(t snapshot.Trace, i int) bool {
	a := t.Action(i)
	return (a == snapshot.SegmentFree || a == snapshot.SegmentUnmap) && ranges(t.At(i))
}

func acquires(t snapshot.Trace, i int) bool {
	a := t.Action(i)
	return (a == snapshot.SegmentAlloc || a == snapshot.SegmentMap) && ranges(t.At(i))
}

// ranges reports whether an event says where, and how much.
func ranges(e snapshot.Event) bool { return e.Addr != 0 && e.Size > 0 }

// freeable finds the private pools that give memory back, by the first event of the releases
// in which they first do: no graph uses them any more. Which pool a released segment was of is
// recorded since torch 2.12.
func (x *extractor) freeable() map[int32]allocator.Pool {
	out := make(map[int32]allocator.Pool)
	seen := make(map[snapshot.PoolID]bool)
	for i := range x.t.Changes {
		c := &x.t.Changes[i]
		if c.Add || c.Range.Pool == (snapshot.PoolID{}) || seen[c.Range.Pool] {
			continue
		}
		seen[c.Range.Pool] = true
		first := c.Event
		for first > 0 && releases(x.t.Trace, first-1) {
			first--
		}
		out[int32(first)] = x.poolOf(c.Range.Pool)
	}
	return out
}

// retry sorts out the completed frees in front of a request that made the allocator give memory
// back: those for which it waited belong behind the request, which had found nothing without
// them. Frees that are found complete when a request begins come first in the trace, those that
// are waited for after what garbage collection and max_split_size give back, and before all
// else. Where nothing parts the two, all are taken to be waited for: the request has found
// nothing with them either.
type retry struct {
	begun        bool
	first, later int // completed frees before the first release and after it
}

// trailing counts the completed frees at the end.
func trailing(ops []op) int {
	n := 0
	for n < len(ops) && ops[len(ops)-1-n].kind == opComplete {
		n++
	}
	return n
}

// release is told of a release inside a request.
func (r *retry) release(ops []op) {
	if n := trailing(ops); !r.begun {
		*r = retry{begun: true, first: n}
	} else {
		r.later = n - r.first
	}
}

// end moves the last operation, which is the request, in front of what it waited for.
func (r *retry) end(ops []op) {
	n := r.later
	if n == 0 {
		n = r.first
	}
	if r.begun && n > 0 {
		at := len(ops) - 1 - n
		request := ops[len(ops)-1]
		copy(ops[at+1:], ops[at:])
		ops[at] = request
		for i := range ops[at+1:] {
			ops[at+1+i].event = request.event
		}
	}
	*r = retry{}
}
