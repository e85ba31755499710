package fragmentation

import (
	"cmp"
	"iter"
	"math/bits"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Measure sums up the free memory of a state. Free blocks are exactly the holes between live
// blocks, since the allocator merges free neighbors (analyze/timeline/SPEC.md 4.2).
func Measure(t *timeline.Timeline, st *timeline.State) Report {
	r := Report{Stream: streamInQuestion(t, st)}
	groups := map[groupKey]int{}
	of := make([]int, len(st.Segments))      // row of Groups by segment
	pages := make([]int64, len(st.Segments)) // bytes of whole pages that are free, by segment
	holes := FindHoles(t, st, r.Stream)
	for i := range holes {
		pages[holes[i].Segment] += holes[i].Pages
	}
	for i := range st.Segments {
		seg := &st.Segments[i]
		key := groupKey{seg.Stream, seg.Pool}
		g, ok := groups[key]
		if !ok {
			g = len(r.Groups)
			groups[key] = g
			r.Groups = append(r.Groups, Group{Stream: seg.Stream, Pool: seg.Pool})
		}
		of[i] = g
		r.segment(t, st, i, pages[i], &r.Groups[g])
	}
	for i := range holes {
		h := &holes[i]
		r.hole(h, &st.Segments[h.Segment], &r.Groups[of[h.Segment]])
	}
	sorting.Stable(r.Pins, func(a, b Pin) int { return cmp.Compare(b.Free, a.Free) })
	sorting.Stable(r.Groups, func(a, b Group) int { return cmp.Compare(b.Reserved, a.Reserved) })
	return r
}

type groupKey struct {
	stream snapshot.StreamID
	pool   snapshot.PoolID
}

// segment adds what does not depend on where holes lie, but for the bytes of whole pages among them.
func (r *Report) segment(t *timeline.Timeline, st *timeline.State, i int, pages int64, g *Group) {
	seg := &st.Segments[i]
	r.Segments++
	r.Reserved += seg.Size
	r.Active += seg.Active
	g.Segments++
	g.Reserved += seg.Size
	g.Active += seg.Active
	free := seg.Size - seg.Active
	if len(seg.Live) == 0 {
		pages = free
	}
	free -= pages
	r.Releasable += pages
	g.Releasable += pages
	if g.Split += free; free > 0 {
		r.Split += free
		r.PartlyUsed++
		r.Pins = append(r.Pins, Pin{Segment: i, Free: free, Live: seg.Active, Lives: seg.Live})
	}
	for _, row := range seg.Live {
		l := &t.Lives[row]
		r.Rounding += l.Rounded - l.Requested
		if rest := l.Rounded - t.Conf.Round(min(max(l.Requested, 0), allocator.MaxRequest)); rest > 0 {
			r.Remainder += rest
		}
		if l.Waits(st.Event) {
			r.Classes.Pending += l.Rounded
			g.Pending += l.Rounded
		}
	}
}

func (r *Report) hole(h *Hole, seg *timeline.SegmentState, g *Group) {
	r.LargestFree = max(r.LargestFree, h.Size)
	g.Largest = max(g.Largest, h.Size)
	size := bits.Len64(uint64(h.Size)) - 1
	n := &r.Holes[size]
	n.From = 1 << size
	n.Count++
	n.Bytes += h.Size
	private := seg.Pool != (snapshot.PoolID{})
	if !private && seg.Stream == r.Stream {
		r.LargestUsable = max(r.LargestUsable, h.Size)
	}
	switch h.Class {
	case Releasable:
		r.Classes.Releasable += h.Size
	case Hard:
		r.Classes.Releasable += h.Pages
		r.Classes.Hard += h.Size - h.Pages
	case Soft:
		r.Classes.Releasable += h.Pages
		r.Classes.Soft += h.Size - h.Pages
	case Stream:
		r.Classes.Releasable += h.Pages
		r.Classes.Stream += h.Size - h.Pages
		if private {
			r.Private += h.Size
		}
	}
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

// Sample is the free memory of a device right after one event.
type Sample struct {
	Event         int     `json:"event"`
	Time          int64   `json:"time_us"`
	Reserved      int64   `json:"reserved"`
	Allocated     int64   `json:"allocated"`
	LargestUsable int64   `json:"largest_usable"`
	Classes       Classes `json:"classes"`
	Groups        []Group `json:"groups"` // streams and pools, most reserved bytes first
}

// Over measures a device at up to n events, evenly spread over its trace, the last one
// included.
func Over(t *timeline.Timeline, n int) []Sample {
	last := t.Trace.Len() - 1
	n = min(n, last+1)
	var out []Sample
	for st := range t.States(func(yield func(int) bool) {
		for i := 1; i <= n && yield(last*i/n); i++ {
		}
	}) {
		r := Measure(t, st)
		out = append(out, Sample{st.Event, st.Time, st.Totals.Reserved, st.Totals.Allocated, r.LargestUsable, r.Classes,
			r.Groups})
	}
	return out
}

// Class is what keeps free memory from being used; see the package's documentation.
type Class uint8

const (
	Releasable Class = iota
	Hard
	Soft
	Stream
)

func (c Class) String() string { return [...]string{"releasable", "hard", "soft", "stream"}[c] }

// Hole is a free range between live blocks, or between one and the border of its segment.
type Hole struct {
	Segment int // row of State.Segments
	Addr    uint64
	Size    int64
	// Pages are the bytes of the whole pages in a hole of a partly used expandable segment, in one piece
	// from Page on: empty_cache unmaps them, whatever lives beside them (release_blocks and unmap_block in
	// c10/cuda/CUDACachingAllocator.cpp). The rest of the hole is of its Class.
	Page  uint64
	Pages int64
	Class Class
}

// Cut splits a hole where its whole pages begin and end, so that each part is of one class.
func (h *Hole) Cut() iter.Seq[Hole] {
	return func(yield func(Hole) bool) {
		part := func(from, to uint64, class Class) bool {
			return from >= to || yield(Hole{Segment: h.Segment, Addr: from, Size: int64(to - from), Class: class})
		}
		end := h.Addr + uint64(h.Size)
		if h.Pages == 0 {
			part(h.Addr, end, h.Class)
			return
		}
		behind := h.Page + uint64(h.Pages)
		_ = part(h.Addr, h.Page, h.Class) && part(h.Page, behind, Releasable) && part(behind, end, h.Class)
	}
}

// FindHoles lists the holes of a state, by address. stream is the one in question.
func FindHoles(t *timeline.Timeline, st *timeline.State, stream snapshot.StreamID) []Hole {
	var out []Hole
	for i := range st.Segments {
		seg := &st.Segments[i]
		class := Hard
		switch {
		case seg.Pool != (snapshot.PoolID{}) || seg.Stream != stream && len(seg.Live) > 0:
			class = Stream
		case len(seg.Live) == 0:
			class = Releasable
		}
		at := seg.Addr
		for _, row := range seg.Live {
			l := &t.Lives[row]
			if l.Addr > at {
				out = append(out, hole(t, st, i, at, l.Addr, class))
			}
			at = l.End()
		}
		if end := seg.End(); end > at {
			out = append(out, hole(t, st, i, at, end, class))
		}
	}
	for k := range out {
		if out[k].Class == Hard && (k > 0 && continues(st, &out[k-1], &out[k]) || k+1 < len(out) &&
			continues(st, &out[k], &out[k+1])) {
			out[k].Class = Soft
		}
	}
	return out
}

// Page is the size of the pages, counted from its start, of which empty_cache returns the free ones though others of
// a range are in use: 0 for ranges that go back as a whole.
func Page(t *timeline.Timeline, r *timeline.Range) int64 {
	if !r.Expandable || r.Pool != (snapshot.PoolID{}) {
		return 0
	}
	return t.Conf.Granule(r.Kind == snapshot.KindSmall)
}

// hole makes a hole of a free range in the i-th segment.
func hole(t *timeline.Timeline, st *timeline.State, i int, from, to uint64, class Class) Hole {
	h := Hole{Segment: i, Addr: from, Size: int64(to - from), Class: class}
	seg := &st.Segments[i]
	page := uint64(Page(t, &seg.Range))
	if page == 0 || len(seg.Live) == 0 {
		return h
	}
	first := seg.Addr + (from-seg.Addr+page-1)/page*page
	if last := seg.Addr + (to-seg.Addr)/page*page; last > first {
		h.Page, h.Pages = first, int64(last-first)
	}
	return h
}

// continues reports whether hole b lies right behind a in another segment, and could be one with it.
func continues(st *timeline.State, a, b *Hole) bool {
	if a.Segment == b.Segment || a.Addr+uint64(a.Size) != b.Addr {
		return false
	}
	x, y := &st.Segments[a.Segment], &st.Segments[b.Segment]
	return x.Stream == y.Stream && x.Pool == y.Pool && x.Kind == y.Kind
}

// Hostage gives the free bytes that touch a live block of a segment, the i-th by address: one
// hole without it.
func Hostage(t *timeline.Timeline, seg *timeline.SegmentState, i int) int64 {
	return max(room(t, seg, i, i+1)-t.Lives[seg.Live[i]].Rounded, 0)
}

// room gives the bytes that a segment has free or in the live blocks from the first up to before the last,
// by address: from the end of the block before them to the start of the one behind.
func room(t *timeline.Timeline, seg *timeline.SegmentState, first, last int) int64 {
	from, to := seg.Addr, seg.End()
	if first > 0 {
		from = t.Lives[seg.Live[first-1]].End()
	}
	if last < len(seg.Live) {
		to = t.Lives[seg.Live[last]].Addr
	}
	return int64(to - from)
}
