package fragmentation

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Step is one stack whose blocks are all freed, after those of the steps before it.
type Step struct {
	Stack    snapshot.StackID `json:"-"`
	Blocks   int64            `json:"blocks"`   // of this stack in segments that it keeps
	Bytes    int64            `json:"bytes"`    // their rounded bytes
	Hostage  int64            `json:"hostage"`  // free bytes in segments with a block of it; stacks share segments
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
	sums := map[snapshot.StackID]Step{}
	for _, pin := range r.Pins {
		seg := &st.Segments[pin.Segment]
		if !returnable(seg) {
			continue
		}
		p := pinned{size: seg.Size, free: pin.Free}
		for _, row := range pin.Lives {
			l := &t.Lives[row]
			sum := sums[l.Stack]
			sum.Stack = l.Stack
			sum.Blocks++
			sum.Bytes += l.Rounded
			if !slices.Contains(p.stacks, l.Stack) {
				p.stacks = append(p.stacks, l.Stack)
				in[l.Stack] = append(in[l.Stack], len(segs))
				sum.Hostage += pin.Free
			}
			sums[l.Stack] = sum
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
		step := sums[best]
		step.Returned, step.Segments = returned, count
		out = append(out, step)
		delete(sums, best)
	}
	return out
}

// A pattern must be this clear to be named.
const (
	settledTimes = 10 // longer lives
	passedTimes  = 2  // larger blocks
)

// FindSettled looks for long-lived small blocks among short-lived large ones in the segments that
// cannot be returned, and gives the stack of most. It is nil where the trace does not show it.
func FindSettled(t *timeline.Timeline, st *timeline.State, r *Report) (*finding.Settled, snapshot.StackID) {
	type span struct {
		from, to uint64
		since    int32
	}
	var spans []span
	var sizes, passedSizes []int64
	var ages, lifes []int
	stacks := map[snapshot.StackID]int64{}
	for _, pin := range r.Pins {
		seg := &st.Segments[pin.Segment]
		first := int32(st.Event + 1)
		for _, row := range pin.Lives {
			l := &t.Lives[row]
			sizes = append(sizes, l.Rounded)
			ages = append(ages, st.Event-int(l.Born))
			stacks[l.Stack]++
			first = min(first, l.Born)
		}
		spans = append(spans, span{seg.Addr, seg.End(), first})
	}
	sorting.By(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Freed < 0 || int(l.Freed) > st.Event {
			continue
		}
		k := sort.Search(len(spans), func(k int) bool { return spans[k].to > l.Addr })
		if k < len(spans) && l.Addr >= spans[k].from && l.Freed > spans[k].since {
			passedSizes = append(passedSizes, l.Rounded)
			lifes = append(lifes, int(l.Freed-l.Born))
		}
	}
	found := &finding.Settled{Blocks: int64(len(sizes)), Passed: int64(len(passedSizes)),
		Size: units.Size(trend.Median(sizes)), PassedSize: units.Size(trend.Median(passedSizes)),
		PassedLife: trend.Median(lifes)}
	if found.Blocks == 0 || found.Passed < found.Blocks || found.PassedSize < passedTimes*found.Size ||
		trend.Median(ages) < settledTimes*max(found.PassedLife, 1) {
		return nil, 0
	}
	var most snapshot.StackID
	for id, n := range stacks {
		if m := stacks[most]; n > m || n == m && id < most {
			most = id
		}
	}
	return found, most
}

// Lasting sums the blocks that keep segments and are there to stay, and gives the stack whose share of them keeps most
// free memory; 0 blocks where the trace shows none. A block stays if it is from before the trace, or lives at least ten
// times as long as the blocks that came and went in the same segments. Stays tells of a row of Timeline.Lives whether
// what it is for lasts by nature.
func Lasting(t *timeline.Timeline, st *timeline.State, r *Report, stays func(row int32) bool) (finding.Share,
	snapshot.StackID) {
	asked := make([]bool, len(r.Pins))
	for i, pin := range r.Pins {
		asked[i] = slices.ContainsFunc(pin.Lives, func(row int32) bool { return t.Lives[row].Born >= 0 && stays(row) })
	}
	passed := passedLives(t, st, r, asked)
	free := make(map[snapshot.StackID]int64) // in the segments that a stack pins
	sums := make(map[snapshot.StackID]*finding.Share)
	for i, pin := range r.Pins {
		seen := map[snapshot.StackID]bool{}
		for _, row := range pin.Lives {
			l := &t.Lives[row]
			if !stays(row) || l.Born >= 0 && (passed[i] == 0 || l.Freed >= 0 && int(l.Freed-l.Born) < settledTimes*passed[i] ||
				l.Freed < 0 && t.Trace.Len()-int(l.Born) < settledTimes*passed[i]) {
				continue
			}
			sum := sums[l.Stack]
			if sum == nil {
				sum = &finding.Share{}
				sums[l.Stack] = sum
			}
			sum.Blocks++
			sum.Bytes += units.Size(l.Rounded)
			if !seen[l.Stack] {
				seen[l.Stack] = true
				free[l.Stack] += pin.Free
			}
		}
	}
	var most snapshot.StackID
	for st, n := range free {
		if m := free[most]; n > m || n == m && st < most {
			most = st
		}
	}
	if sum := sums[most]; sum != nil {
		return *sum, most
	}
	return finding.Share{}, 0
}

// passedLives is, for each segment that is kept and asked for, how many events the blocks lived that came and went in it
// before the state, the median; 0 for none.
func passedLives(t *timeline.Timeline, st *timeline.State, r *Report, asked []bool) []int {
	type segment struct {
		from, end uint64
		pin       int
		lives     []int32
	}
	var segs []segment
	for i := range r.Pins {
		if asked[i] {
			seg := &st.Segments[r.Pins[i].Segment]
			segs = append(segs, segment{from: seg.Addr, end: seg.End(), pin: i})
		}
	}
	out := make([]int, len(r.Pins))
	if len(segs) == 0 {
		return out
	}
	sorting.By(segs, func(a, b segment) int { return cmp.Compare(a.from, b.from) })
	k := 0 // most lives are in the segment of the one before
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Freed < 0 || int(l.Freed) > st.Event {
			continue
		}
		if l.Addr < segs[k].from || l.Addr >= segs[k].end {
			at := sort.Search(len(segs), func(k int) bool { return segs[k].end > l.Addr })
			if at == len(segs) || l.Addr < segs[at].from {
				continue
			}
			k = at
		}
		segs[k].lives = append(segs[k].lives, l.Freed-l.Born)
	}
	for i := range segs {
		if seg := &segs[i]; len(seg.lives) > 0 {
			out[seg.pin] = max(int(trend.Median(seg.lives)), 1)
		}
	}
	return out
}
