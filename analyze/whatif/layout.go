package whatif

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
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
		granule := x.p.Recorded.Conf.Granule(pl.Small)
		pl.Size = (int64(at-pl.Addr) + addressSpace) / granule * granule
		pl.gap(pl.Addr+uint64(pl.Size), at, allocator.Unmapped)
	}
	sorting.Stable(out, func(a, b place) int { return cmp.Compare(a.Addr, b.Addr) })
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
		at = l.End()
	}
	pl.gap(seg.End(), at, allocator.Free)
	return seg.End()
}

// privates follows which addresses belong to private pools.
type privates struct {
	changes []timeline.Change // still to come; none where there are no private pools
	ranges  timeline.Ranges
}

func newPrivates(t *timeline.Timeline) privates {
	private := func(r *timeline.Range) bool { return r.Pool != snapshot.PoolID{} }
	if slices.ContainsFunc(t.Changes, func(c timeline.Change) bool { return private(&c.Range) }) ||
		slices.ContainsFunc(t.Initially, func(r timeline.Range) bool { return private(&r) }) {
		return privates{t.Changes, slices.Clone(t.Initially)}
	}
	return privates{}
}

// advance makes the changes up to an event.
func (p *privates) advance(event int) {
	for ; len(p.changes) > 0 && p.changes[0].Event <= event; p.changes = p.changes[1:] {
		p.ranges.Apply(&p.changes[0])
	}
}

// holding gives the private pool that an address belongs to, the default one for none.
func (p *privates) holding(addr uint64) snapshot.PoolID {
	if i := p.ranges.Holding(addr); i >= 0 {
		return p.ranges[i].Pool
	}
	return snapshot.PoolID{}
}
