package fragmentation

import (
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Step is one stack whose blocks are all freed, after those of the steps before it.
type Step struct {
	Stack    snapshot.StackID `json:"-"`
	Blocks   int64            `json:"blocks"`   // of this stack in segments that it keeps
	Bytes    int64            `json:"bytes"`    // their rounded bytes
	Hostage  int64            `json:"hostage"`  // free bytes in segments with a block of the stack; stacks share segments
	Returned int64            `json:"returned"` // bytes of segments that have gone back by then, all steps together
	Segments int              `json:"segments"` // their number
}

// Rank orders the stacks that keep segments by what doing without them returns: each step takes
// the stack that completes most bytes of segments, where a segment that n stacks keep counts as
// an n-th part for each. It gives at most n steps.
func Rank(t *timeline.Timeline, st *timeline.State, r *Report, n int) []Step {
	type pinned struct {
		size, free int64
		stacks     []snapshot.StackID // that still keep it
	}
	var segs []pinned
	in := map[snapshot.StackID][]int{} // rows of segs
	sums := map[snapshot.StackID]*Step{}
	for _, pin := range r.Pins {
		seg := &st.Segments[pin.Segment]
		if !returnable(seg) {
			continue
		}
		p := pinned{size: seg.Size, free: pin.Free}
		for _, row := range pin.Lives {
			l := &t.Lives[row]
			sum := sums[l.Stack]
			if sum == nil {
				sum = &Step{Stack: l.Stack}
				sums[l.Stack] = sum
			}
			sum.Blocks++
			sum.Bytes += l.Rounded
			if !slices.Contains(p.stacks, l.Stack) {
				p.stacks = append(p.stacks, l.Stack)
				in[l.Stack] = append(in[l.Stack], len(segs))
				sum.Hostage += pin.Free
			}
		}
		segs = append(segs, p)
	}
	var out []Step
	var returned int64
	count := 0
	for len(out) < n && len(sums) > 0 {
		best, credit := snapshot.StackID(0), math.Inf(-1)
		for stack := range sums {
			c := 0.0
			for _, i := range in[stack] {
				c += float64(segs[i].size) / float64(len(segs[i].stacks))
			}
			if c > credit || c == credit && stack < best {
				best, credit = stack, c
			}
		}
		for _, i := range in[best] {
			s := &segs[i]
			s.stacks = slices.DeleteFunc(s.stacks, func(id snapshot.StackID) bool { return id == best })
			if len(s.stacks) == 0 {
				returned += s.size
				count++
			}
		}
		step := *sums[best]
		step.Returned, step.Segments = returned, count
		out = append(out, step)
		delete(sums, best)
	}
	return out
}
