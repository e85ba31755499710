package ghost

import (
	"slices"

	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// The limits of step 3.
const (
	maxChance = 0.05 // of a rise without a trend
	// slowing: what comes at a constant rate would come as early as this with less than that probability. Of leaks that
	// come by chance as many are missed; one that comes regularly never is. The package comment has what it costs.
	slowing = 0.2
	// steady: at least twice MinLaps, from the first to the last, come no earlier than half of all would.
	steady = 0.5
	// managed: more than this share of the survivors' number died at the median age of the
	// survivors, or older.
	managed = 0.05
	// replaced: in more than this share of the laps an old block of the same size died.
	replaced = 0.5
)

// candidate is a stack that grows.
type candidate struct {
	*population
	bytes  []int64 // left by each lap that left something
	births []int32 // the first of each
	until  int32   // the event up to which its loop is looked at
	// rebuilt is one tensor that grows: bytes are what each lap added, the first what there was.
	rebuilt bool
	over    bool  // its loop ended before the horizon
	beside  bool  // gradients of parameters that pile up
	age     int32 // the median age of the survivors in events
	chance  float64
	slope   float64
}

// grows applies step 3 to one stack, apart from what needs a look at others. It is nil for a
// stack that does not grow.
func (k *clock) grows(p *population, horizon int32) *candidate {
	c := &candidate{population: p, until: horizon}
	c.bytes, c.births = p.left(k.t)
	sets := k.threeSets(c, horizon)
	if len(c.births) < MinLaps && !sets {
		return nil
	}
	if !k.inTime(c) {
		return nil
	}
	from := p.lap[p.kept[0]]
	bytes, count := p.levels(k.t, p.rows, horizon)
	to := int(p.lapAt(c.until)) + 1
	c.chance = min(rises(bytes[from:to]), rises(count[from:to]))
	if c.chance >= maxChance && !sets {
		return nil
	}
	c.slope = slope(bytes[from:to])
	ages := make([]int32, len(p.kept))
	for n, i := range p.kept {
		ages[n] = c.until - k.t.Lives[p.rows[i]].Born
	}
	c.age = max(trend.Median(ages), 1)
	if died, at := k.late(c, p.rows, 2); float64(died) > managed*float64(len(p.kept)) &&
		!risesOn(count[:to], p.lapAt(at)) {
		return nil
	}
	return c
}

// inTime reports whether laps go on to leave something: their loop did not go on without, and they do not become rarer.
// It fills in when the loop ended.
func (k *clock) inTime(c *candidate) bool {
	// Time is counted in the thread's own allocations: a graph that grows makes each backward
	// pass longer.
	q := k.sequence(c.stack)
	n := len(c.births)
	at := make([]int, n)
	widest := 0
	for i, b := range c.births {
		at[i] = q.find(b)
		if i > 0 {
			widest = max(widest, at[i]-at[i-1])
		}
	}
	first, last, now := at[0], at[n-1], len(q.rows)
	if now-last > max(widest+widest/2, now/10) {
		now = last + widest
		if k.goesOn(c, q, now) {
			return false
		}
		c.over, c.until = true, q.events[now]
	}
	// What comes in bursts, as epochs have them, may pause at the end of the trace.
	heads := bursts(at, widest)
	if early(at[1:], first, now) < slowing && (n < 2*MinLaps || early(at[1:n-1], first, last) < steady) &&
		(heads == nil || early(heads[1:], first, now) < slowing) {
		return false
	}
	return true
}

// late counts the deaths at the age of the survivors or older, some laps at least after the birth,
// and gives the event of the first.
func (k *clock) late(c *candidate, rows []int32, laps int32) (died int, at int32) {
	at = none
	for _, row := range rows {
		l := &k.t.Lives[row]
		if e := end(l, c.until); e != none && e-l.Born >= c.age && c.lapAt(e)-c.lapAt(l.Born) >= laps {
			died++
			at = min(at, e)
		}
	}
	return died, at
}

// risesOn reports whether a level goes on to rise after the lap in which old blocks began to
// die, as that of a queue does that is filled faster than it is emptied: to half as much again
// at least, with significance, in its last quarter about as fast as before, and never falling
// by a quarter of what it reaches.
func risesOn(level []int64, lap int32) bool {
	if lap < 0 || int(lap) >= len(level) || len(level) < MinLaps {
		return false
	}
	end := level[len(level)-1]
	highest, fall := int64(0), int64(0)
	for i, v := range level {
		if i <= int(lap) && 2*end < 3*v {
			return false
		}
		highest = max(highest, v)
		fall = max(fall, highest-v)
	}
	recent := level[min(len(level)*3/4, len(level)-2):]
	return 4*fall <= end && rises(level[lap:]) < maxChance && slope(recent) >= 0.7*slope(level)
}

// goesOn reports whether the loop that left survivors runs on from a place in its thread:
// whether its function, called from where it was, still allocates at lines between those where
// it did.
func (k *clock) goesOn(c *candidate, q *sequence, after int) bool {
	loop := functionOf(k.s, c.loop())
	from, to := q.find(c.births[0]), q.find(c.births[len(c.births)-1])
	path := k.code.path(k.t.Lives[q.rows[min(from, len(q.rows)-1)]].Stack)
	depth := k.depth(path, loop)
	if depth < 0 {
		return false
	}
	line := func(stack snapshot.StackID) (int32, bool) {
		p := k.code.path(stack)
		if len(p) <= depth || !slices.Equal(p[:depth], path[:depth]) {
			return 0, false
		}
		return k.s.Frames.Get(p[depth]).Line, functionOf(k.s, p[depth]) == loop
	}
	low, high := int32(1<<31-1), int32(-1)
	for i := from; i <= to && i < len(q.rows); i++ {
		if n, ok := line(k.t.Lives[q.rows[i]].Stack); ok {
			low, high = min(low, n), max(high, n)
		}
	}
	for i := after; i < len(q.rows); i++ {
		if n, ok := line(k.t.Lives[q.rows[i]].Stack); ok && low <= n && n <= high {
			return true
		}
	}
	return false
}

// unreplaced drops the candidates that hold what others held before: those of which the same
// code, called from elsewhere, lost blocks as old as theirs, unless both together rise on, and
// those in whose laps old blocks of the same sizes died.
func (k *clock) unreplaced(found []*candidate, horizon int32) []*candidate {
	byCode := map[snapshot.FrameID][]*candidate{}
	bySize := map[int64][]*candidate{}
	siblings := map[*candidate][]int32{}
	freed := map[*candidate]map[int32]bool{} // laps in which old blocks died
	for _, c := range found {
		path := k.code.path(c.stack)
		if len(path) > 0 {
			byCode[path[len(path)-1]] = append(byCode[path[len(path)-1]], c)
		}
		freed[c] = map[int32]bool{}
		seen := map[int64]bool{}
		for _, i := range c.kept {
			if size := k.t.Lives[c.rows[i]].Rounded; !seen[size] {
				seen[size] = true
				bySize[size] = append(bySize[size], c)
			}
		}
	}
	alike := make([][]*candidate, k.s.Stacks.Len()+1)
	for stack := range alike {
		path := k.code.path(snapshot.StackID(stack))
		if len(path) == 0 {
			continue
		}
		for _, c := range byCode[path[len(path)-1]] {
			if snapshot.StackID(stack) != c.stack && k.sameInside(path, c) {
				alike[stack] = append(alike[stack], c)
			}
		}
	}
	for i := range k.t.Lives {
		l := &k.t.Lives[i]
		e := end(l, horizon)
		if l.Born > horizon {
			break
		}
		if k.only != nil && !k.only(l.Stack) {
			continue
		}
		for _, c := range alike[l.Stack] {
			if l.Born >= 0 {
				siblings[c] = append(siblings[c], int32(i))
			}
		}
		if e == none {
			continue
		}
		for _, c := range bySize[l.Rounded] {
			old := l.Born < c.births[0] && e > c.births[1] || e-l.Born >= c.age
			if l.Stack != c.stack && old && !slices.Contains(alike[l.Stack], c) && e > c.births[0] && e <= c.until {
				freed[c][c.lapAt(e)] = true
			}
		}
	}
	return slices.DeleteFunc(found, func(c *candidate) bool {
		if float64(len(freed[c])) > replaced*float64(len(c.births)) {
			return true
		}
		died, at := k.late(c, siblings[c], 0)
		if float64(died) <= managed*float64(len(c.kept)) {
			return false
		}
		_, count := c.levels(k.t, append(siblings[c], c.rows...), horizon)
		return !risesOn(count[:c.lapAt(c.until)+1], c.lapAt(at))
	})
}

// sameInside reports whether a path ends in the same frames as a candidate's: below the
// function that runs its loop, where code of the program's own is there, else with it.
func (k *clock) sameInside(path []snapshot.FrameID, c *candidate) bool {
	own := k.code.path(c.stack)
	depth := k.depth(own, functionOf(k.s, c.loop()))
	if depth < 0 {
		return false
	}
	inner := own[depth+1:]
	if !slices.ContainsFunc(inner, func(id snapshot.FrameID) bool { return k.code.kind(id) == plain }) {
		inner = own[depth:]
	}
	return len(inner) <= len(path) && slices.Equal(inner, path[len(path)-len(inner):])
}

// depth is where a function stands in a path, -1 for nowhere.
func (k *clock) depth(path []snapshot.FrameID, f function) int {
	return slices.IndexFunc(path, func(id snapshot.FrameID) bool { return functionOf(k.s, id) == f })
}

// lapTime is the median time between the births in microseconds, 0 unknown.
func lapTime(t *timeline.Timeline, births []int32) int64 {
	var gaps []int
	for i := 1; i < len(births); i++ {
		a, b := t.Trace.Time(int(births[i-1])), t.Trace.Time(int(births[i]))
		if a > 0 && b > a {
			gaps = append(gaps, int(b-a))
		}
	}
	if 2*len(gaps) < len(births) {
		return 0
	}
	return int64(trend.Median(gaps))
}
