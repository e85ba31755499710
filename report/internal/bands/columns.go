package bands

import "sort"

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
