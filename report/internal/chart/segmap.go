package chart

import "github.com/snapana/snapana/analyze/timeline"

// Class is what a piece of reserved memory is used for.
type Class uint8

const (
	Live       Class = iota // a live block
	Split                   // free, in a segment that live blocks hold
	Releasable              // free, in a segment without live blocks
	NumClasses
)

// Piece is a run of one class within one row of a map. X and W are fractions of the row.
type Piece struct {
	X, W  float64
	Row   int32
	Class Class
}

// Map lays all segments of a state end to end, in address order, on a ribbon that wraps like
// text. Equal areas are equal bytes, whatever the sizes of the segments.
type Map struct {
	RowBytes int64 // bytes in a full row
	Rows     int
	Pieces   []Piece
	// Cell is the size of a cell in bytes when pieces were merged, 0 when the map is exact.
	// A merged cell shows the class that fills most of it.
	Cell int64
}

// maxRows keeps maps about as high as they are readable; a row is a power of two of bytes.
const maxRows = 32

// NewMap lays out a state. At most budget pieces are made; a layout that needs more is
// merged into cells.
func NewMap(t *timeline.Timeline, s *timeline.State, budget int) *Map {
	m := &Map{RowBytes: 1}
	var total int64
	for i := range s.Segments {
		total += max(s.Segments[i].Size, 0)
	}
	if total == 0 {
		return m
	}
	for m.RowBytes*maxRows < total {
		m.RowBytes *= 2
	}
	m.Rows = int((total + m.RowBytes - 1) / m.RowBytes)

	exact := 0
	runs(t, s, func(Class, int64, int64) { exact++ })
	if exact+m.Rows <= budget {
		runs(t, s, m.add)
		return m
	}
	m.merge(t, s, min(max(budget/m.Rows, 32), 1000))
	return m
}

// add appends a run, cut at the ends of rows.
func (m *Map) add(c Class, at, n int64) {
	for n > 0 {
		row := at / m.RowBytes
		k := min(n, (row+1)*m.RowBytes-at)
		m.Pieces = append(m.Pieces, Piece{
			X: float64(at-row*m.RowBytes) / float64(m.RowBytes), W: float64(k) / float64(m.RowBytes),
			Row: int32(row), Class: c,
		})
		at, n = at+k, n-k
	}
}

// merge fills Pieces from cells of equal size, cols to a row.
func (m *Map) merge(t *timeline.Timeline, s *timeline.State, cols int) {
	m.Cell = max((m.RowBytes+int64(cols)-1)/int64(cols), 1)
	perRow := (m.RowBytes + m.Cell - 1) / m.Cell
	sums := make([][NumClasses]int64, perRow*int64(m.Rows))
	runs(t, s, func(c Class, at, n int64) {
		for n > 0 {
			row := at / m.RowBytes
			off := at - row*m.RowBytes
			col := off / m.Cell
			k := min(n, min((col+1)*m.Cell, m.RowBytes)-off)
			sums[row*perRow+col][c] += k
			at, n = at+k, n-k
		}
	})
	for row := range int64(m.Rows) {
		for col := int64(0); col < perRow; {
			c, ok := largest(sums[row*perRow+col])
			end := col + 1
			for end < perRow {
				if d, same := largest(sums[row*perRow+end]); d != c || same != ok {
					break
				}
				end++
			}
			if ok {
				x := float64(col*m.Cell) / float64(m.RowBytes)
				m.Pieces = append(m.Pieces, Piece{
					X: x, W: min(float64(end*m.Cell)/float64(m.RowBytes), 1) - x, Row: int32(row), Class: c,
				})
			}
			col = end
		}
	}
}

// largest is the class that fills most of a cell, false for a cell past the end.
func largest(sum [NumClasses]int64) (Class, bool) {
	c := Live
	for d := range NumClasses {
		if sum[d] > sum[c] {
			c = d
		}
	}
	return c, sum[c] > 0
}

// Extent is where a block or a hole lies in its segment, in bytes from its start. What sticks out of
// the segment is cut; ok is false for what lies outside or takes nothing.
func Extent(addr uint64, size int64, s *timeline.SegmentState) (at, n int64, ok bool) {
	if size <= 0 || s.Size <= 0 || addr < s.Addr || addr-s.Addr >= uint64(s.Size) {
		return 0, 0, false
	}
	at = int64(addr - s.Addr)
	return at, min(size, s.Size-at), true
}

// runs calls f for every run of one class in ribbon order; together the runs cover the
// reserved bytes exactly. Blocks that overlap or stick out of their segment are cut.
func runs(t *timeline.Timeline, s *timeline.State, f func(c Class, at, n int64)) {
	var base int64
	for i := range s.Segments {
		seg := &s.Segments[i]
		if seg.Size <= 0 {
			continue
		}
		free := Split
		if len(seg.Live) == 0 {
			free = Releasable
		}
		end := int64(0) // of the last block, relative to the segment
		for _, row := range seg.Live {
			from, n, ok := Extent(t.Lives[row].Addr, t.Lives[row].Rounded, seg)
			to := from + n
			if from = max(from, end); !ok || to <= from {
				continue
			}
			if from > end {
				f(free, base+end, from-end)
			}
			f(Live, base+from, to-from)
			end = to
		}
		if end < seg.Size {
			f(free, base+end, seg.Size-end)
		}
		base += seg.Size
	}
}
