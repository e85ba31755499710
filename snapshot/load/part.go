package load

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// part finds out whether the file has the segments of one private pool alone, as MemPool.snapshot() and
// torch._C._cuda_memorySnapshot(pool.id) give them (snapshot/SPEC.md 2.2). A trace beside them is of the whole process:
// its events of other pools are left out, and all of them where events do not name their pool (before 2.12).
func part(s *snapshot.Snapshot, pooled bool) {
	if len(s.Segments) == 0 || s.Partial != nil {
		return
	}
	pool := s.Segments[0].Pool
	other := func(seg snapshot.Segment) bool { return seg.Pool != pool }
	if pool == (snapshot.PoolID{}) || slices.ContainsFunc(s.Segments, other) {
		return
	}
	events, elsewhere := 0, false
	for device, t := range s.Traces {
		events += t.Len()
		elsewhere = elsewhere || liveElsewhere(s, device)
	}
	switch {
	case events == 0:
		s.Part = &snapshot.Part{Pool: pool}
	case elsewhere:
		s.Part = &snapshot.Part{Pool: pool, Certain: true}
		for device, t := range s.Traces {
			var order []int32
			for i := range t.Len() {
				// A failure is for want of the device's memory, most of which is not in the file.
				e := t.At(i)
				if pooled && s.Labels.Get(e.Label).Pool == pool && e.Action != snapshot.OOM {
					order = append(order, int32(i))
				}
			}
			s.Traces[device] = arrange(t, order)
		}
	}
}

// liveElsewhere reports whether a device's trace ends with live blocks outside of all segments.
func liveElsewhere(s *snapshot.Snapshot, device int) bool {
	t := s.Traces[device]
	live := make(map[uint64]bool)
	for i := range t.Len() {
		switch e := t.At(i); e.Action {
		case snapshot.Alloc:
			live[e.Addr] = true
		case snapshot.FreeCompleted:
			delete(live, e.Addr)
		}
	}
	segments := make([]*snapshot.Segment, 0, len(s.Segments))
	for seg := range s.SegmentsOf(device) {
		segments = append(segments, seg)
	}
	sorting.By(segments, func(a, b *snapshot.Segment) int { return cmp.Compare(a.Address, b.Address) })
	end, next := uint64(0), 0 // of the segments below an address, which may overlap
	for _, at := range slices.Sorted(maps.Keys(live)) {
		for ; next < len(segments) && segments[next].Address <= at; next++ {
			end = max(end, segments[next].Address+uint64(segments[next].TotalSize))
		}
		if at >= end {
			return true
		}
	}
	return false
}
