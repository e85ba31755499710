// Package chart prepares what several reports show in the same way: axis ticks, reduced
// curves, top rows with their remainder, names, pins with their sites, and segment maps. It
// draws nothing and knows no output format.
package chart

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Segment is a segment of a map with the pieces that cover it.
type Segment struct {
	*timeline.SegmentState
	Pieces []Piece // by address
}

// Piece is a stretch of a segment: a live block, or free memory of a class.
type Piece struct {
	At, Bytes int64               // At is from the start of the segment
	Life      int32               // row of Timeline.Lives, -1 for free memory
	Class     fragmentation.Class // of free memory
}

// Segments cuts the segments of a moment, by address, into pieces. What sticks out of its segment is
// cut; what lies outside, or takes nothing, is left out, and so are segments without any byte.
func Segments(t *timeline.Timeline, m *analyze.Moment) []Segment {
	st := m.State
	holes := make([][]fragmentation.Hole, len(st.Segments))
	for _, h := range fragmentation.FindHoles(t, st, m.Frag.Stream) {
		holes[h.Segment] = append(holes[h.Segment], h)
	}
	var out []Segment
	for i := range st.Segments {
		s := Segment{SegmentState: &st.Segments[i]}
		if s.Size <= 0 {
			continue
		}
		add := func(addr uint64, size int64, life int32, class fragmentation.Class) {
			if size > 0 && addr >= s.Addr && addr-s.Addr < uint64(s.Size) {
				at := int64(addr - s.Addr)
				s.Pieces = append(s.Pieces, Piece{at, min(size, s.Size-at), life, class})
			}
		}
		for _, h := range holes[i] {
			for part := range h.Cut() {
				add(part.Addr, part.Size, -1, part.Class)
			}
		}
		for _, row := range s.Live {
			add(t.Lives[row].Addr, t.Lives[row].Rounded, row, 0)
		}
		sorting.Stable(s.Pieces, func(a, b Piece) int { return cmp.Compare(a.At, b.At) })
		out = append(out, s)
	}
	return out
}

// Free is how much of the segment is free.
func (s *Segment) Free() int64 { return max(s.Size-s.Active, 0) }

// Title says what the segment is.
func (s *Segment) Title() string {
	return fmt.Sprintf("%#x: %s, %s; %s live in %s, %s free", s.Addr, units.Bytes(s.Size),
		Pool(s.Kind, s.Pool, s.Stream, s.Expandable), units.Bytes(s.Active), units.Plural(len(s.Live), "block"),
		units.Bytes(s.Free()))
}

// Row is a row of a map, of so many bytes: a segment, or several end to end.
type Row struct {
	Bytes int64
	Parts []Part
}

// Part is a segment in a row. It begins at byte At, which is below 0 where it began in a row before.
type Part struct {
	*Segment
	At int64
}

// Wrap lays segments end to end, as text wraps, in at most n rows of equally many bytes, a power of
// two. Equal areas are equal bytes, whatever the sizes of the segments.
func Wrap(segments []Segment, n int) []Row {
	total, size := int64(0), int64(1)
	for i := range segments {
		total += segments[i].Size
	}
	for size*int64(n) < total {
		size *= 2
	}
	rows := make([]Row, (total+size-1)/size)
	at := int64(0)
	for i := range segments {
		s := &segments[i]
		for k := at / size; k*size < at+s.Size; k++ {
			rows[k].Bytes, rows[k].Parts = size, append(rows[k].Parts, Part{s, at - k*size})
		}
		at += s.Size
	}
	return rows
}

// Place is where bytes from..to of a row lie when it is width wide. What lies outside of the row is
// cut off.
func (r *Row) Place(from, to int64, width float64) (x0, x1 float64) {
	size := float64(r.Bytes)
	return float64(max(from, 0)) / size * width, float64(min(to, r.Bytes)) / size * width
}

// Each calls f for each piece of a row with its place.
func (r *Row) Each(width float64, f func(s *Segment, p *Piece, x0, x1 float64)) {
	for _, s := range r.Parts {
		for i := range s.Pieces {
			p := &s.Pieces[i]
			if x0, x1 := r.Place(s.At+p.At, s.At+p.At+p.Bytes, width); x0 < x1 {
				f(s.Segment, p, x0, x1)
			}
		}
	}
}

// Cells divide a row where pieces may be too small to draw one by one: how much of each cell, of 1,
// is of each kind.
type Cells [][]float64

// NewCells makes n cells for a number of kinds.
func NewCells(n, kinds int) Cells {
	c := make(Cells, n)
	all := make([]float64, n*kinds)
	for i := range c {
		c[i] = all[i*kinds : (i+1)*kinds]
	}
	return c
}

// Add fills the places x0..x1, in cells, with a kind.
func (c Cells) Add(x0, x1 float64, kind int) {
	for i := int(x0); i < len(c) && float64(i) < x1; i++ {
		c[i][kind] += min(x1, float64(i+1)) - max(x0, float64(i))
	}
}

// Most is the kind that fills most of a cell, of those from first up to end, and how much these fill
// together: 0 where there is none of them.
func (c Cells) Most(i, first, end int) (kind int, sum float64) {
	kind = first
	for k := first; k < end; k++ {
		sum += c[i][k]
		if c[i][k] > c[i][kind] {
			kind = k
		}
	}
	return kind, sum
}
