package fragmentation

import (
	"cmp"
	"slices"

	"snapana/analyze/timeline"
)

// Measure sums up the free memory of a state. Free blocks are exactly the holes between live
// blocks, since the allocator merges free neighbours (specification 4.2).
func Measure(t *timeline.Timeline, st *timeline.State) Report {
	var r Report
	for i := range st.Segments {
		seg := &st.Segments[i]
		r.Segments++
		r.Reserved += seg.Size
		r.Active += seg.Active
		at := seg.Addr
		for _, row := range seg.Live {
			l := &t.Lives[row]
			r.LargestFree = max(r.LargestFree, int64(l.Addr-at))
			r.Rounding += l.Rounded - l.Requested
			at = l.Addr + uint64(l.Rounded)
		}
		r.LargestFree = max(r.LargestFree, int64(seg.Addr+uint64(seg.Size)-at))
		free := seg.Size - seg.Active
		switch {
		case len(seg.Live) == 0:
			r.Releasable += free
		case free > 0:
			r.Split += free
			r.PartlyUsed++
			r.Pins = append(r.Pins, Pin{Segment: i, Free: free, Live: seg.Active, Lives: seg.Live})
		}
	}
	slices.SortStableFunc(r.Pins, func(a, b Pin) int { return cmp.Compare(b.Free, a.Free) })
	return r
}
