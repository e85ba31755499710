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

// EachHole calls f for every hole of a state, by address. stream is the one in question.
func EachHole(t *timeline.Timeline, st *timeline.State, stream snapshot.StreamID, f func(Hole)) {
	edges := make([]edge, len(st.Segments))
	for i := range st.Segments {
		edges[i] = edgesOf(t, &st.Segments[i])
	}
	for i := range st.Segments {
		seg := &st.Segments[i]
		foreign := seg.Pool != (snapshot.PoolID{}) || seg.Stream != stream && len(seg.Live) > 0
		holes(t, seg, func(at uint64, size int64) {
			h := Hole{i, at, size, Hard}
			switch {
			case foreign:
				h.Class = Stream
			case len(seg.Live) == 0:
				h.Class = Releasable
			case at == seg.Addr && i > 0 && edges[i-1].continues(&st.Segments[i-1], seg),
				at+uint64(size) == seg.Addr+uint64(seg.Size) && i+1 < len(edges) && edges[i+1].precedes(&st.Segments[i+1], seg):
				h.Class = Soft
			}
			f(h)
		})
	}
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

// Hostage gives the free bytes that touch a live block of a segment, the i-th by address: one
// hole without it.
func Hostage(t *timeline.Timeline, seg *timeline.SegmentState, i int) int64 {
	l := &t.Lives[seg.Live[i]]
	from, to := seg.Addr, seg.Addr+uint64(seg.Size)
	if i > 0 {
		b := &t.Lives[seg.Live[i-1]]
		from = b.Addr + uint64(b.Rounded)
	}
	if i+1 < len(seg.Live) {
		to = t.Lives[seg.Live[i+1]].Addr
	}
	return max(int64(to-from)-l.Rounded, 0)
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
