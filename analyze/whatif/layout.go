package whatif

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// place is a segment as it lay at some moment, and the rows that live in it.
type place struct {
	allocator.Segment
	rows []int32 // by piece, -1 for one that is not live
}

// places gives the segments of a state. The address space of an expandable segment is not
// recorded, only its mapped ranges: it is taken to begin with the first range that the trace or
// the state has for its pool and stream, and to be large enough for all of them.
func (x *extractor) places(st *timeline.State) []place {
	var out []place
	spaces := make(map[spaceKey]int) // in out
	ends := make(map[int]uint64)
	for i := range st.Segments {
		seg := &st.Segments[i]
		if !seg.Expandable {
			pl := place{Segment: x.segment(&seg.Range)}
			pl.Size = seg.Size
			x.fill(&pl, seg, seg.Addr)
			out = append(out, pl)
			continue
		}
		key := keyOf(&seg.Range)
		k, ok := spaces[key]
		if !ok {
			k = len(out)
			spaces[key] = k
			pl := place{Segment: x.segment(&seg.Range)}
			pl.Addr = x.lowest(key)
			ends[k] = pl.Addr
			out = append(out, pl)
		}
		out[k].gap(seg.Addr, ends[k], allocator.Unmapped)
		ends[k] = x.fill(&out[k], seg, seg.Addr)
	}
	for k, at := range ends {
		pl := &out[k]
		granule := int64(allocator.SmallBuffer)
		if !pl.Small {
			granule = x.p.Recorded.Conf.LargeSegment
		}
		pl.Size = (int64(at-pl.Addr) + addressSpace) / granule * granule
		pl.gap(pl.Addr+uint64(pl.Size), at, allocator.Unmapped)
	}
	slices.SortStableFunc(out, func(a, b place) int { return cmp.Compare(a.Addr, b.Addr) })
	return out
}

// addressSpace is what an expandable segment can still grow by.
const addressSpace = 1 << 42

// spaceKey says which mapped ranges are of one expandable segment.
type spaceKey struct {
	stream snapshot.StreamID
	pool   snapshot.PoolID
	kind   snapshot.SegmentKind
}

func keyOf(r *timeline.Range) spaceKey { return spaceKey{r.Stream, r.Pool, r.Kind} }

// lowest is the lowest address that a pool and stream ever have mapped.
func (x *extractor) lowest(key spaceKey) uint64 {
	if x.lows == nil {
		x.lows = make(map[spaceKey]uint64)
		see := func(r *timeline.Range) {
			if low, ok := x.lows[keyOf(r)]; r.Expandable && (!ok || r.Addr < low) {
				x.lows[keyOf(r)] = r.Addr
			}
		}
		for i := range x.t.Initially {
			see(&x.t.Initially[i])
		}
		for i := range x.t.Changes {
			see(&x.t.Changes[i].Range)
		}
	}
	return x.lows[key]
}

func (x *extractor) segment(r *timeline.Range) allocator.Segment {
	return allocator.Segment{Addr: r.Addr, Stream: x.streamOf(r.Stream), Pool: x.poolOf(r.Pool),
		Small: r.Kind == snapshot.KindSmall, Expandable: r.Expandable}
}

// gap adds a piece from at up to addr, if there is room.
func (pl *place) gap(addr, at uint64, state allocator.State) {
	if addr <= at {
		return
	}
	size := int64(addr - at)
	if n := len(pl.Pieces); n > 0 && pl.Pieces[n-1].State == state {
		pl.Pieces[n-1].Size += size
		return
	}
	pl.Pieces = append(pl.Pieces, allocator.Piece{Size: size, State: state})
	pl.rows = append(pl.rows, -1)
}

// fill adds the pieces of a range and gives its end.
func (x *extractor) fill(pl *place, seg *timeline.SegmentState, at uint64) uint64 {
	for _, row := range seg.Live {
		l := &x.t.Lives[row]
		pl.gap(l.Addr, at, allocator.Free)
		pl.Pieces = append(pl.Pieces, allocator.Piece{Size: l.Rounded, Requested: l.Requested, State: allocator.Live})
		pl.rows = append(pl.rows, row)
		at = l.Addr + uint64(l.Rounded)
	}
	end := seg.Addr + uint64(seg.Size)
	pl.gap(end, at, allocator.Free)
	return end
}

// privates follows which addresses belong to private pools.
type privates struct {
	changes []timeline.Change
	spans   []timeline.Range // disjoint, by address
	any     bool
}

func (p *privates) begin(t *timeline.Timeline) {
	for i := range t.Initially {
		p.add(t.Initially[i])
	}
	for i := range t.Changes {
		p.any = p.any || t.Changes[i].Range.Pool != snapshot.PoolID{}
	}
	p.any = p.any || len(p.spans) > 0
	p.changes = t.Changes
}

// advance makes the changes up to an event.
func (p *privates) advance(event int) {
	if !p.any {
		return
	}
	for ; len(p.changes) > 0 && p.changes[0].Event <= event; p.changes = p.changes[1:] {
		if c := &p.changes[0]; c.Add {
			p.add(c.Range)
		} else {
			p.cut(c.Range.Addr, c.Range.Addr+uint64(c.Range.Size))
		}
	}
}

func (p *privates) add(r timeline.Range) {
	if r.Pool == (snapshot.PoolID{}) {
		return
	}
	p.spans = slices.Insert(p.spans, p.after(r.Addr), r)
}

// cut takes [from, to) out of the spans.
func (p *privates) cut(from, to uint64) {
	var kept []timeline.Range
	for _, r := range p.spans {
		end := r.Addr + uint64(r.Size)
		if end <= from || r.Addr >= to {
			kept = append(kept, r)
			continue
		}
		if r.Addr < from {
			left := r
			left.Size = int64(from - r.Addr)
			kept = append(kept, left)
		}
		if end > to {
			right := r
			right.Addr, right.Size = to, int64(end-to)
			kept = append(kept, right)
		}
	}
	p.spans = kept
}

func (p *privates) after(addr uint64) int {
	return sort.Search(len(p.spans), func(i int) bool { return p.spans[i].Addr > addr })
}

// holding gives the private pool that an address belongs to, the default one for none.
func (p *privates) holding(addr uint64) snapshot.PoolID {
	if i := p.after(addr) - 1; i >= 0 && addr < p.spans[i].Addr+uint64(p.spans[i].Size) {
		return p.spans[i].Pool
	}
	return snapshot.PoolID{}
}
