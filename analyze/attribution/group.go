package attribution

import (
	"cmp"

	"github.com/snapana/snapana/analyze/timeline"
)

// Sum is a number of live blocks.
type Sum struct {
	Count     int64 `json:"count"`
	Rounded   int64 `json:"bytes"`     // taken in segments
	Requested int64 `json:"requested"` // bytes asked for
	PreTrace  int64 `json:"pre_trace"` // rounded bytes of pre-trace blocks
}

func (s *Sum) add(l *timeline.Life) {
	s.Count++
	s.Rounded += l.Rounded
	s.Requested += l.Requested
	if l.Born < 0 {
		s.PreTrace += l.Rounded
	}
}

// Add adds another sum.
func (s *Sum) Add(o Sum) {
	s.Count += o.Count
	s.Rounded += o.Rounded
	s.Requested += o.Requested
	s.PreTrace += o.PreTrace
}

// compare puts most rounded bytes first, then most blocks.
func (s *Sum) compare(o *Sum) int {
	return cmp.Or(cmp.Compare(o.Rounded, s.Rounded), cmp.Compare(o.Count, s.Count))
}

// Keyed is the sum of the blocks with one key.
type Keyed[K comparable] struct {
	Key K
	Sum
}

// GroupBy sums the live blocks of a state by a key of their segment's place in State.Segments,
// -1 for none, and their row of Timeline.Lives. Groups are in the order of their first blocks,
// and sum up to the state's active bytes.
func GroupBy[K comparable](t *timeline.Timeline, st *timeline.State, key func(segment int, row int32) K) []Keyed[K] {
	var out []Keyed[K]
	index := map[K]int{}
	for segment, row := range st.Rows() {
		k := key(segment, row)
		g, ok := index[k]
		if !ok {
			g = len(out)
			index[k] = g
			out = append(out, Keyed[K]{Key: k})
		}
		out[g].add(&t.Lives[row])
	}
	return out
}
