package fragmentation

import (
	"cmp"
	"slices"

	"snapana/analyze/timeline"
	"snapana/snapshot"
)

// Plan is what to free so that whole segments can go back to the device.
type Plan struct {
	Need     int64 // bytes to return
	Returned int64 // bytes of the segments that would be free, 0 when the plan cannot be had
	Segments int
	Blocks   int64 // live blocks to free
	Bytes    int64 // their rounded bytes
	Sites    []PlanSite
}

// PlanSite is the part of a plan that one stack allocated.
type PlanSite struct {
	Stack  snapshot.StackID
	Blocks int64
	Bytes  int64
}

// Free plans to return need bytes of segments by freeing live blocks. It takes the segments
// that give the most bytes for each block first and then drops those that turn out not to be
// needed: sound, though not always the fewest blocks. Expandable and private memory is left
// alone, since it is not returned by segment.
func Free(t *timeline.Timeline, st *timeline.State, r *Report, need int64) Plan {
	p := Plan{Need: need}
	if need <= 0 {
		return p
	}
	pins := make([]Pin, 0, len(r.Pins))
	for _, pin := range r.Pins {
		if seg := &st.Segments[pin.Segment]; !seg.Expandable && seg.Pool == (snapshot.PoolID{}) {
			pins = append(pins, pin)
		}
	}
	size := func(pin *Pin) int64 { return st.Segments[pin.Segment].Size }
	slices.SortStableFunc(pins, func(a, b Pin) int {
		// a gives more for each block: size(a)/blocks(a) > size(b)/blocks(b)
		return cmp.Compare(size(&b)*int64(len(a.Lives)), size(&a)*int64(len(b.Lives)))
	})
	n := 0
	for ; n < len(pins) && p.Returned < need; n++ {
		p.Returned += size(&pins[n])
	}
	if p.Returned < need {
		return Plan{Need: need}
	}
	pins = pins[:n]
	for i := len(pins) - 1; i >= 0; i-- {
		if s := size(&pins[i]); p.Returned-s >= need {
			p.Returned -= s
			pins = slices.Delete(pins, i, i+1)
		}
	}
	sites := map[snapshot.StackID]*PlanSite{}
	for _, pin := range pins {
		p.Segments++
		for _, row := range pin.Lives {
			l := &t.Lives[row]
			site := sites[l.Stack]
			if site == nil {
				site = &PlanSite{Stack: l.Stack}
				sites[l.Stack] = site
			}
			site.Blocks++
			site.Bytes += l.Rounded
			p.Blocks++
			p.Bytes += l.Rounded
		}
	}
	for _, site := range sites {
		p.Sites = append(p.Sites, *site)
	}
	slices.SortFunc(p.Sites, func(a, b PlanSite) int {
		return cmp.Or(cmp.Compare(b.Blocks, a.Blocks), cmp.Compare(a.Stack, b.Stack))
	})
	return p
}
