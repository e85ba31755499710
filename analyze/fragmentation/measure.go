package fragmentation

import (
	"cmp"
	"math/bits"
	"slices"

	"snapana/analyze/allocator"
	"snapana/analyze/timeline"
	"snapana/snapshot"
)

// Measure sums up the free memory of a state. Free blocks are exactly the holes between live
// blocks, since the allocator merges free neighbours (specification 4.2).
func Measure(s *snapshot.Snapshot, t *timeline.Timeline, st *timeline.State) Report {
	r := Report{Stream: streamInQuestion(t, st)}
	r.Classes.Pending = pending(t, st)
	edges := make([]edge, len(st.Segments))
	for i := range st.Segments {
		edges[i] = edgesOf(t, &st.Segments[i])
	}
	for i := range st.Segments {
		seg := &st.Segments[i]
		r.Segments++
		r.Reserved += seg.Size
		r.Active += seg.Active
		free := seg.Size - seg.Active
		if len(seg.Live) == 0 {
			r.Releasable += free
		} else if free > 0 {
			r.Split += free
			r.PartlyUsed++
			r.Pins = append(r.Pins, Pin{Segment: i, Free: free, Live: seg.Active, Lives: seg.Live})
		}
		foreign := seg.Pool != (snapshot.PoolID{}) || seg.Stream != r.Stream && len(seg.Live) > 0
		holes(t, seg, func(at uint64, size int64) {
			r.LargestFree = max(r.LargestFree, size)
			h := &r.Holes[bits.Len64(uint64(size))-1]
			h.Count++
			h.Bytes += size
			if seg.Pool == (snapshot.PoolID{}) && seg.Stream == r.Stream {
				r.LargestUsable = max(r.LargestUsable, size)
			}
			switch {
			case foreign:
				r.Classes.Stream += size
			case len(seg.Live) == 0:
				r.Classes.Releasable += size
			case at == seg.Addr && i > 0 && edges[i-1].continues(&st.Segments[i-1], seg),
				at+uint64(size) == seg.Addr+uint64(seg.Size) && i+1 < len(edges) && edges[i+1].precedes(&st.Segments[i+1], seg):
				r.Classes.Soft += size
			default:
				r.Classes.Hard += size
			}
		})
		for _, row := range seg.Live {
			l := &t.Lives[row]
			r.Rounding += l.Rounded - l.Requested
			if rest := l.Rounded - allocator.RoundSize(min(max(l.Requested, 0), allocator.MaxRequest), (*allocator.Roundup)(&s.Settings.Roundup)); rest > 0 {
				r.Remainder += rest
			}
		}
	}
	slices.SortStableFunc(r.Pins, func(a, b Pin) int { return cmp.Compare(b.Free, a.Free) })
	return r
}

// streamInQuestion is the stream of the request that failed at this moment, else the one with
// the most reserved memory in the default pools.
func streamInQuestion(t *timeline.Timeline, st *timeline.State) snapshot.StreamID {
	if st.Event >= 0 && st.Event < t.Trace.Len() {
		if e := t.Trace.At(st.Event); e.Action == snapshot.OOM {
			return e.Stream
		}
	}
	reserved := map[snapshot.StreamID]int64{}
	for i := range st.Segments {
		if seg := &st.Segments[i]; seg.Pool == (snapshot.PoolID{}) {
			reserved[seg.Stream] += seg.Size
		}
	}
	var best snapshot.StreamID
	for id, n := range reserved {
		if m := reserved[best]; n > m || n == m && id < best {
			best = id
		}
	}
	return best
}

// pending adds up the blocks that only another stream still uses.
func pending(t *timeline.Timeline, st *timeline.State) int64 {
	var sum int64
	for i := range st.Segments {
		for _, row := range st.Segments[i].Live {
			l := &t.Lives[row]
			if l.FreeRequested == timeline.PendingBefore || l.FreeRequested >= 0 && int(l.FreeRequested) <= st.Event {
				sum += l.Rounded
			}
		}
	}
	return sum
}

// holes calls f for each free range of a segment, by address.
func holes(t *timeline.Timeline, seg *timeline.SegmentState, f func(at uint64, size int64)) {
	at := seg.Addr
	for _, row := range seg.Live {
		l := &t.Lives[row]
		if l.Addr > at {
			f(at, int64(l.Addr-at))
		}
		at = l.Addr + uint64(l.Rounded)
	}
	if end := seg.Addr + uint64(seg.Size); end > at {
		f(at, int64(end-at))
	}
}

// edge says whether a segment begins and ends with free memory.
type edge struct{ head, tail bool }

func edgesOf(t *timeline.Timeline, seg *timeline.SegmentState) edge {
	e := edge{true, true}
	if n := len(seg.Live); n > 0 {
		last := &t.Lives[seg.Live[n-1]]
		e.head = t.Lives[seg.Live[0]].Addr > seg.Addr
		e.tail = last.Addr+uint64(last.Rounded) < seg.Addr+uint64(seg.Size)
	}
	return e
}

// continues reports whether the free end of before lies right before seg, and could be one
// with it.
func (e edge) continues(before, seg *timeline.SegmentState) bool {
	return e.tail && before.Addr+uint64(before.Size) == seg.Addr && joinable(before, seg)
}

// precedes reports whether the free start of after lies right behind seg.
func (e edge) precedes(after, seg *timeline.SegmentState) bool {
	return e.head && seg.Addr+uint64(seg.Size) == after.Addr && joinable(after, seg)
}

func joinable(a, b *timeline.SegmentState) bool {
	return a.Stream == b.Stream && a.Pool == b.Pool && a.Kind == b.Kind
}
