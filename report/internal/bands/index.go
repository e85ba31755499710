// Package bands cuts the history of a device down to what a picture of some width can show,
// without ever being wrong about the total.
//
// A picture has columns, and a column covers a run of events. It shows one true moment of them:
// the one after which the most bytes were active, so that no peak is lost however far one is
// zoomed out. A page keeps the allocations that matter most, and of the others the sums by group at
// every column. So at each column
//
//	kept + rest = active bytes of the timeline at that moment
//
// An Index takes a pass over the trace to make and a few bytes per event to keep. What a page
// leaves out, Ranks finds again for a part of the trace.
package bands

import (
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
)

// blockLen is how many events an entry of the index stands for.
const blockLen = 64

// Index finds the highest active bytes of any run of events, and the allocations that begin and
// end in it.
type Index struct {
	t      *timeline.Timeline
	events int
	blocks []block // the last one is behind the trace
	deaths []int32 // rows of Lives by the block of their end, then by row
}

type block struct {
	before, peak int64 // active bytes before the first event, and the most after one of them
	at           int32 // the first event after which it was the most
	born, died   int32 // the first row of Lives, and of deaths, that does not come before
}

// New makes the index of one device.
func New(t *timeline.Timeline) *Index {
	x := &Index{t: t, events: t.Trace.Len()}
	x.blocks = make([]block, (x.events+blockLen-1)/blockLen+1)
	for i := range t.Lives {
		if b := x.blockOf(t.Lives[i].Freed); b >= 0 {
			x.blocks[b].died++
		}
	}
	sum := int32(0)
	for b := range x.blocks {
		sum, x.blocks[b].died = sum+x.blocks[b].died, sum
	}
	x.deaths = make([]int32, sum)
	next := make([]int32, len(x.blocks))
	for b := range next {
		next[b] = x.blocks[b].died
	}
	for i := range t.Lives {
		if b := x.blockOf(t.Lives[i].Freed); b >= 0 {
			x.deaths[next[b]] = int32(i)
			next[b]++
		}
	}
	row := sort.Search(len(t.Lives), func(i int) bool { return t.Lives[i].Born >= 0 })
	now := int64(0)
	for i := range t.Lives[:row] {
		now += bytes(&t.Lives[i])
	}
	var after [blockLen]int64
	for b := range x.blocks {
		p := &x.blocks[b]
		p.born, p.before, p.peak, p.at = int32(row), now, now, int32(b*blockLen)
		if b+1 == len(x.blocks) {
			break
		}
		for row < len(t.Lives) && int(t.Lives[row].Born) < (b+1)*blockLen {
			row++
		}
		x.blocks[b+1].born = int32(row)
		n := x.scan(b, &after)
		p.peak = after[0]
		for i, v := range after[:n] {
			if v > p.peak {
				p.peak, p.at = v, int32(b*blockLen+i)
			}
		}
		now = after[n-1]
	}
	return x
}

// blockOf is the block of an event, -1 for an event that the trace does not have.
func (x *Index) blockOf(event int32) int {
	if event < 0 || int(event) >= x.events {
		return -1
	}
	return int(event) / blockLen
}

// bytes is what a life takes; only files that contradict themselves have lives of less than 0.
func bytes(l *timeline.Life) int64 { return max(l.Rounded, 0) }

// scan fills in the active bytes after each event of a block and says how many it has.
func (x *Index) scan(b int, after *[blockLen]int64) int {
	p, q := &x.blocks[b], &x.blocks[b+1]
	first := b * blockLen
	clear(after[:])
	for row := p.born; row < q.born; row++ {
		l := &x.t.Lives[row]
		after[int(l.Born)-first] += bytes(l)
	}
	for _, row := range x.deaths[p.died:q.died] {
		l := &x.t.Lives[row]
		after[int(l.Freed)-first] -= bytes(l)
	}
	n := min(blockLen, x.events-first)
	now := p.before
	for i := range n {
		now += after[i]
		after[i] = now
	}
	return n
}

// Highest is the first event in from..to-1 after which the most bytes were active, and the
// bytes. The trace must have these events.
func (x *Index) Highest(from, to int) (event int, active int64) {
	event, active = from, -1
	var after [blockLen]int64
	for at := from; at < to; {
		b := at / blockLen
		end := min((b+1)*blockLen, to)
		if at%blockLen == 0 && (end%blockLen == 0 || end == x.events) {
			if p := &x.blocks[b]; p.peak > active {
				event, active = int(p.at), p.peak
			}
		} else {
			x.scan(b, &after)
			for ; at < end; at++ {
				if v := after[at%blockLen]; v > active {
					event, active = at, v
				}
			}
		}
		at = end
	}
	return event, active
}

// Column is one column of a picture.
type Column struct {
	Event  int   // the moment is right after this event; -1 is before the trace
	Active int64 // bytes active at that moment
}

// Even are the edges of at most width columns over the events from..to-1, each as wide as the
// others to within an event.
func Even(from, to, width int) []int {
	width = max(min(width, to-from), 1)
	edges := make([]int, width+1)
	for i := range edges {
		edges[i] = from + i*(to-from)/width
	}
	return edges
}

// Columns finds the moments of a picture. Edges are the events where columns begin, and the one
// where the last ends: column i covers edges[i]..edges[i+1]-1. They must not fall, and the trace
// must have these events. A column without events shows the state that the ones before it left.
func (x *Index) Columns(edges []int) []Column {
	out := make([]Column, len(edges)-1)
	for i := range out {
		if edges[i] < edges[i+1] {
			out[i].Event, out[i].Active = x.Highest(edges[i], edges[i+1])
			continue
		}
		at := min(edges[i], x.events) - 1
		switch {
		case i > 0 && at <= out[i-1].Event:
			out[i] = out[i-1]
		case at < 0:
			out[i] = Column{-1, x.blocks[0].before}
		default:
			out[i].Event, out[i].Active = x.Highest(at, at+1)
		}
	}
	return out
}

// Rest sums, at the moments of columns, the lives that are not kept: by group, of 0..groups-1, and
// column. A nil keep keeps all.
func (x *Index) Rest(columns []Column, keep []bool, groups int, group func(row int32) int) [][]int64 {
	sums := make([][]int64, groups)
	for g := range sums {
		sums[g] = make([]int64, len(columns)+1)
	}
	first := 0 // column that lives from here on can have
	for row := range keep {
		l := &x.t.Lives[row]
		if keep[row] {
			continue
		}
		for first < len(columns) && columns[first].Event < int(l.Born) {
			first++
		}
		end := len(columns)
		if l.Freed >= 0 {
			end = first + sort.Search(end-first, func(i int) bool { return columns[first+i].Event >= int(l.Freed) })
		}
		g := group(int32(row))
		sums[g][first] += bytes(l)
		sums[g][end] -= bytes(l)
	}
	for g, by := range sums {
		for i := 1; i < len(by); i++ {
			by[i] += by[i-1]
		}
		sums[g] = by[:len(columns)]
	}
	return sums
}
