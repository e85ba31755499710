package fragmentation

import (
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

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
	Class   Class
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
				out = append(out, Hole{i, at, int64(l.Addr - at), class})
			}
			at = l.End()
		}
		if end := seg.End(); end > at {
			out = append(out, Hole{i, at, int64(end - at), class})
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
	l := &t.Lives[seg.Live[i]]
	from, to := seg.Addr, seg.End()
	if i > 0 {
		from = t.Lives[seg.Live[i-1]].End()
	}
	if i+1 < len(seg.Live) {
		to = t.Lives[seg.Live[i+1]].Addr
	}
	return max(int64(to-from)-l.Rounded, 0)
}
