package fragmentation

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Plan is which live blocks to free so that a request can be served.
type Plan struct {
	Blocks   int64 `json:"blocks"`   // live blocks to free, 0 when the plan cannot be had
	Bytes    int64 `json:"bytes"`    // their rounded bytes
	Returned int64 `json:"returned"` // bytes of segments that go back to the device, or 0
	Segments int   `json:"segments"`
	Hole     int64 `json:"hole"` // size of the free range that comes about inside a segment, or 0
	// Fewest says that no other choice frees fewer blocks; else, of whole segments, at most twice as many.
	Fewest bool       `json:"fewest"`
	Sites  []PlanSite `json:"sites"`
}

// PlanSite is the part of a plan that one stack allocated.
type PlanSite struct {
	Stack  snapshot.StackID `json:"-"`
	Site   string           `json:"site"` // of Stack, as Name gives it
	Blocks int64            `json:"blocks"`
	Bytes  int64            `json:"bytes"`
}

// Name gives the sites of a plan their names.
func (p *Plan) Name(site func(snapshot.StackID) string) {
	for i := range p.Sites {
		p.Sites[i].Site = site(p.Sites[i].Stack)
	}
}

// Free plans to return need bytes of segments by freeing all live blocks of some. Segments share
// no blocks, so that this is a knapsack: of segments that return need bytes, those with the fewest
// blocks. Expandable and private memory is left alone, since it is not returned by segment.
func Free(t *timeline.Timeline, st *timeline.State, need int64) Plan {
	if need <= 0 {
		return Plan{}
	}
	var lives [][]int32
	var items []item
	expandable := false
	for i := range st.Segments {
		seg := &st.Segments[i]
		if returnable(seg) && len(seg.Live) > 0 {
			lives = append(lives, seg.Live)
			items = append(items, item{len(seg.Live), seg.Size})
		}
		expandable = expandable || seg.Expandable
	}
	chosen, fewest := cover(items, need)
	if chosen == nil {
		return Plan{}
	}
	p := Plan{Segments: len(chosen), Fewest: fewest && !expandable}
	var rows []int32
	for _, i := range chosen {
		p.Returned += items[i].size
		rows = append(rows, lives[i]...)
	}
	p.frees(t, rows)
	return p
}

// Clear plans a hole of at least size bytes inside one segment of a stream's default pools, by
// freeing the fewest neighbors.
func Clear(t *timeline.Timeline, st *timeline.State, stream snapshot.StreamID, size int64) Plan {
	var best []int32
	var hole int64
	for i := range st.Segments {
		seg := &st.Segments[i]
		if seg.Pool != (snapshot.PoolID{}) || seg.Stream != stream || seg.Size < size {
			continue
		}
		to := 0
		for from := range seg.Live {
			for to = max(to, from+1); to < len(seg.Live) && room(t, seg, from, to) < size; to++ {
			}
			if n := room(t, seg, from, to); n >= size && (best == nil || to-from < len(best)) {
				best, hole = seg.Live[from:to], n
			}
		}
	}
	if best == nil {
		return Plan{}
	}
	p := Plan{Hole: hole, Fewest: true}
	p.frees(t, best)
	return p
}

// returnable reports whether a segment goes back to the device as one when nothing lives in it.
func returnable(seg *timeline.SegmentState) bool {
	return !seg.Expandable && seg.Pool == (snapshot.PoolID{})
}

func (p *Plan) frees(t *timeline.Timeline, rows []int32) {
	sites := map[snapshot.StackID]PlanSite{}
	for _, row := range rows {
		l := &t.Lives[row]
		site := sites[l.Stack]
		sites[l.Stack] = PlanSite{Stack: l.Stack, Blocks: site.Blocks + 1, Bytes: site.Bytes + l.Rounded}
		p.Blocks++
		p.Bytes += l.Rounded
	}
	p.Sites = sorting.Of(maps.Values(sites), func(a, b PlanSite) int {
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Stack, b.Stack))
	})
}

// item is a segment: what it costs in blocks to free it, and what it returns.
type item struct {
	blocks int
	size   int64
}

// maxSteps bounds the exact search: items times blocks, a byte each.
const maxSteps = 8 << 20

// cover chooses items that return need bytes together with the fewest blocks. Beyond maxSteps it
// is the greedy choice, which takes at most twice as many. nil is for items that are too few.
func cover(items []item, need int64) (chosen []int, fewest bool) {
	chosen, most := greedy(items, need)
	if chosen == nil || len(items)*(most+1) > maxSteps {
		return chosen, false
	}
	return exact(items, need, most), true
}

// greedy goes through the items by bytes for each block and keeps those that do not suffice; each
// that would complete them is a candidate, of which the cheapest is taken (Csirik and others,
// Heuristics for the 0-1 min-knapsack problem: at most twice the optimum).
func greedy(items []item, need int64) (chosen []int, blocks int) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	sorting.Stable(order, func(a, b int) int {
		return cmp.Compare(items[b].size*int64(items[a].blocks), items[a].size*int64(items[b].blocks))
	})
	var kept []int
	var size int64
	cost, best := 0, -1
	for _, i := range order {
		if size+items[i].size < need {
			kept = append(kept, i)
			size += items[i].size
			cost += items[i].blocks
			continue
		}
		if c := cost + items[i].blocks; best < 0 || c < best {
			best = c
			chosen = append(slices.Clone(kept), i)
		}
	}
	return chosen, best
}

// exact finds, for each number of blocks up to most, how much can be returned by freeing so many.
// Of equal choices it takes the one that comes first.
func exact(items []item, need int64, most int) []int {
	returned := make([]int64, most+1)
	taken := make([]bool, len(items)*(most+1))
	for i, it := range items {
		for k := most; k >= it.blocks; k-- {
			if n := returned[k-it.blocks] + it.size; n > returned[k] {
				returned[k] = n
				taken[i*(most+1)+k] = true
			}
		}
	}
	k := 0
	for returned[k] < need {
		k++
	}
	var chosen []int
	for i := len(items) - 1; i >= 0; i-- {
		if taken[i*(most+1)+k] {
			chosen = append(chosen, i)
			k -= items[i].blocks
		}
	}
	slices.Reverse(chosen)
	return chosen
}
