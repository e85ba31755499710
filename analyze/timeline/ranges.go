package timeline

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Ranges are disjoint reserved ranges by address.
type Ranges []Range

// after is the place of the first range that begins above addr.
func (rs Ranges) after(addr uint64) int {
	return sort.Search(len(rs), func(i int) bool { return rs[i].Addr > addr })
}

// Holding is the place of the range that holds addr, -1 for none.
func (rs Ranges) Holding(addr uint64) int {
	if i := rs.after(addr) - 1; i >= 0 && addr < rs[i].End() {
		return i
	}
	return -1
}

// add puts in a range, false when it overlaps one that is there. An expandable range joins
// neighbors of its stream and pool (the allocator reports each mapped run as one segment).
func (rs *Ranges) add(r Range) bool {
	i := rs.after(r.Addr)
	list := *rs
	if i > 0 && list[i-1].End() > r.Addr || i < len(list) && r.End() > list[i].Addr {
		return false
	}
	if r.Expandable {
		if i > 0 && joins(&list[i-1], &r) {
			list[i-1].Size += r.Size
			if i < len(list) && joins(&list[i-1], &list[i]) {
				list[i-1].Size += list[i].Size
				*rs = slices.Delete(list, i, i+1)
			}
			return true
		}
		if i < len(list) && joins(&r, &list[i]) {
			list[i].Addr = r.Addr
			list[i].Size += r.Size
			return true
		}
	}
	*rs = slices.Insert(list, i, r)
	return true
}

// joins reports whether b continues a.
func joins(a, b *Range) bool { return a.Pool == b.Pool && touches(a, b) }

func touches(a, b *Range) bool {
	return a.Expandable && b.Expandable && a.End() == b.Addr && a.Stream == b.Stream
}

// cut takes [addr, addr+size) out, which must lie in one range, and returns that range as it
// was, false when no range has it.
func (rs *Ranges) cut(addr uint64, size int64) (Range, bool) {
	i := rs.Holding(addr)
	if i < 0 {
		return Range{}, false
	}
	list := *rs
	was := list[i]
	end := addr + uint64(size)
	if end > was.End() {
		return Range{}, false
	}
	rest := [2]Range{was, was} // before it and behind it
	rest[0].Size = int64(addr - was.Addr)
	rest[1].Addr, rest[1].Size = end, int64(was.End()-end)
	from, to := 0, 2
	if rest[0].Size == 0 {
		from++
	}
	if rest[1].Size == 0 {
		to--
	}
	*rs = slices.Replace(list, i, i+1, rest[from:to]...)
	return was, true
}

// Apply makes a change, false when it does not fit what is there.
func (rs *Ranges) Apply(c *Change) bool {
	if c.Add {
		return rs.add(c.Range)
	}
	_, ok := rs.cut(c.Range.Addr, c.Range.Size)
	return ok
}

// finalRanges are the segments of the dump. A segment whose size makes no sense, or that
// overlaps another, is left out and counted.
func finalRanges(s *snapshot.Snapshot, t *Timeline) Ranges {
	var rs Ranges
	for seg := range s.SegmentsOf(t.Device) {
		r := Range{Addr: seg.Address, Size: seg.TotalSize, Stream: seg.Stream, Kind: seg.Kind,
			Pool: seg.Pool, Expandable: seg.Expandable, Stack: seg.Stack}
		if possible(r.Addr, r.Size) {
			rs = append(rs, r)
		} else {
			t.Checks.UntiledSegments++
		}
	}
	sorting.Stable(rs, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	kept := rs[:0]
	for _, r := range rs {
		if n := len(kept); n > 0 && kept[n-1].End() > r.Addr {
			t.Checks.UntiledSegments++
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// changesBackward yields what the segment events say, the last first, with the pools of their labels. Events that
// cannot be are counted as bad and left out.
func (t *Timeline) changesBackward(s *snapshot.Snapshot) iter.Seq[Change] {
	return func(yield func(Change) bool) {
		const kinds = uint32(segmentKinds)
		for i := t.Trace.Last(kinds, t.Trace.Len()); i >= 0; i = t.Trace.Last(kinds, i) {
			e := t.Trace.At(i)
			if bad(e.Addr, e.Size) || e.Size == 0 {
				t.Checks.BadEvents++
				continue
			}
			c := Change{Event: i, Range: rangeOf(&e)}
			c.Add = e.Action == snapshot.SegmentAlloc || e.Action == snapshot.SegmentMap
			if e.Label != 0 {
				c.Range.Pool = s.Labels.Get(e.Label).Pool
			}
			if !yield(c) {
				return
			}
		}
	}
}

// unwind goes backward through the segment events from the final segments, and fills
// t.Initially and t.Changes (SPEC.md 4.2). Changes that contradict the state are
// counted and left out.
func unwind(s *snapshot.Snapshot, t *Timeline) {
	now := finalRanges(s, t)
	for c := range t.changesBackward(s) {
		r := &c.Range
		var fits bool
		if c.Add {
			var was Range
			was, fits = now.cut(r.Addr, r.Size)
			r.Kind, r.Pool = was.Kind, was.Pool
			r.Expandable, r.Stream = was.Expandable, was.Stream
		} else {
			if n := neighbor(now, r); n != nil {
				r.Kind, r.Pool = n.Kind, n.Pool
			}
			fits = now.add(*r)
		}
		if fits {
			t.Changes = append(t.Changes, c)
		} else {
			t.Checks.OutsideSegments++
		}
	}
	slices.Reverse(t.Changes)
	t.Initially = now
}

// windForward is unwind for a trace that ends before the state. A segment was there before the
// trace when the trace releases it, or uses it, without having made it. One that was released after the part
// that was read stays unknown.
func windForward(s *snapshot.Snapshot, t *Timeline) {
	var initial, now Ranges
	final := finalRanges(s, t)
	for i := range t.Trace.Len() {
		e := t.Trace.At(i)
		if bad(e.Addr, e.Size) {
			continue
		}
		r := rangeOf(&e)
		c := Change{Event: i, Range: r}
		switch e.Action {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			c.Add = true
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			if now.Holding(e.Addr) < 0 && initial.add(r) {
				now.add(r)
			}
		case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
			if now.Holding(e.Addr) < 0 {
				if k := final.Holding(e.Addr); k >= 0 && initial.add(final[k]) {
					now.add(final[k])
				}
			}
			continue
		default:
			continue
		}
		if e.Size == 0 || !now.Apply(&c) {
			continue // the state may show an expandable range longer than it was
		}
		t.Changes = append(t.Changes, c)
	}
	t.Initially = initial
}

// rangeOf is the range that an event makes or releases.
func rangeOf(e *snapshot.Event) Range {
	r := Range{Addr: e.Addr, Size: e.Size, Stream: e.Stream, Stack: e.Stack,
		Expandable: e.Action == snapshot.SegmentMap || e.Action == snapshot.SegmentUnmap}
	r.Kind = kindBySize(&r)
	return r
}

// kindBySize guesses the pool of a segment that is gone: the small pool takes segments of
// exactly 2 MiB, the large one none below 10 MiB (analyze/allocator/SPEC.md 5.1), and maps whole granules of those
// sizes.
func kindBySize(r *Range) snapshot.SegmentKind {
	if r.Size == allocator.SmallBuffer || r.Expandable && r.Size%allocator.LargeBuffer != 0 {
		return snapshot.KindSmall
	}
	return snapshot.KindLarge
}

// neighbor is a range of any pool that an expandable range continues, nil for none.
func neighbor(rs Ranges, r *Range) *Range {
	i := rs.after(r.Addr)
	switch {
	case i > 0 && touches(&rs[i-1], r):
		return &rs[i-1]
	case i < len(rs) && touches(r, &rs[i]):
		return &rs[i]
	}
	return nil
}
