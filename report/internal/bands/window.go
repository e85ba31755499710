package bands

import (
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
)

// Query says what a picture shows.
type Query struct {
	// Edges are the events where columns begin, and the one where the last ends: column i
	// covers Edges[i]..Edges[i+1]-1. They must not fall. A column without events shows the state
	// that the ones before it left. See Even.
	Edges []int
	// MinBytes is the size from which an allocation gets a band: what a pixel stands for.
	MinBytes int64
	// Bands bounds the bands: those with the most bytes times columns stay, to within
	// 2 %. 0 is no bound.
	Bands int
	// Group sorts what is merged, into 0..Groups-1. A nil Group puts all into one.
	Group  func(row int32) int
	Groups int
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

// Window is a picture: of each column the moment that it shows and what was live then.
type Window struct {
	Columns []Column
	Bands   []Band // by age, oldest first: the order in which they lie on each other
	// Merged is the bytes without a band, by group and column, and MergedCount of how many
	// allocations they are.
	Merged      [][]int64
	MergedCount int
}

// Column is one column of a picture.
type Column struct {
	Event  int   // the moment is right after this event; -1 is before the trace
	Active int64 // bytes active at that moment
}

// Band is an allocation in the columns First..Last.
type Band struct {
	Row         int32 // of Timeline.Lives
	First, Last int32
}

// Window draws a picture of a part of the trace. The trace must have the events of q.Edges.
func (x *Index) Window(q Query) *Window {
	w := &Window{Columns: x.columns(q.Edges)}
	var seen []Band
	from := 0
	x.alive(w.Columns[0].Event, w.Columns[len(w.Columns)-1].Event, func(row int32) {
		if b, ok := w.place(row, &x.t.Lives[row], &from); ok {
			seen = append(seen, b)
		}
	})
	own := make([]bool, len(seen))
	n := 0
	for i, b := range seen {
		if bytes(&x.t.Lives[b.Row]) >= q.MinBytes {
			own[i] = true
			n++
		}
	}
	if q.Bands > 0 && n > q.Bands {
		own = Largest(q.Bands, len(seen), func(i int) float64 {
			if !own[i] {
				return 0
			}
			return float64(bytes(&x.t.Lives[seen[i].Row])) * float64(seen[i].Last-seen[i].First+1)
		})
	}
	w.merge(x.t, seen, own, &q)
	return w
}

func (x *Index) columns(edges []int) []Column {
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

// alive calls f for each row, in order, that is live after any of the events first..last.
func (x *Index) alive(first, last int, f func(row int32)) {
	for _, row := range live(x.t, first) {
		f(row)
	}
	for row := x.bornFrom(first + 1); row < len(x.t.Lives) && int(x.t.Lives[row].Born) <= last; row++ {
		f(int32(row))
	}
}

// place finds the columns at whose moments a life was live, false for none. Lives must come in
// order; from is the first column that this one and later ones can have.
func (w *Window) place(row int32, l *timeline.Life, from *int) (Band, bool) {
	first, last := *from, len(w.Columns)-1
	for first <= last && w.Columns[first].Event < int(l.Born) {
		first++
	}
	*from = first
	if l.Freed >= 0 {
		if first > last || w.Columns[first].Event >= int(l.Freed) {
			return Band{}, false
		}
		last = first + sort.Search(last-first, func(i int) bool { return w.Columns[first+1+i].Event >= int(l.Freed) })
	}
	return Band{row, int32(first), int32(last)}, first <= last
}

// merge keeps the bands of their own and sums the others; a nil own sums all.
func (w *Window) merge(t *timeline.Timeline, seen []Band, own []bool, q *Query) {
	w.Merged = make([][]int64, max(q.Groups, 1))
	for g := range w.Merged {
		w.Merged[g] = make([]int64, len(w.Columns)+1)
	}
	for i, b := range seen {
		if own != nil && own[i] {
			w.Bands = append(w.Bands, b)
			continue
		}
		g := 0
		if q.Group != nil {
			g = q.Group(b.Row)
		}
		n := bytes(&t.Lives[b.Row])
		w.Merged[g][b.First] += n
		w.Merged[g][b.Last+1] -= n
		w.MergedCount++
	}
	for g, sums := range w.Merged {
		for i := 1; i < len(sums); i++ {
			sums[i] += sums[i-1]
		}
		w.Merged[g] = sums[:len(w.Columns)]
	}
}
