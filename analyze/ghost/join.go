package ghost

import (
	"cmp"
	"iter"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// place is where growths are one finding: a loop, with what it leaves and what it rebuilds apart.
type place struct {
	function
	rebuilt bool
}

// join makes one finding of the stacks that grow in the same loop.
func (k *clock) join(found []*candidate, horizon int32) []Growth {
	groups := map[place][]*candidate{}
	var order []place
	for _, c := range found {
		key := place{functionOf(k.s, c.loop()), c.rebuilt}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	trains, optimizes := k.code.trains()
	var out []Growth
	for _, key := range order {
		group := groups[key]
		sorting.Stable(group, func(a, b *candidate) int {
			switch {
			case a.beside == b.beside:
				return cmp.Compare(sum(b.bytes), sum(a.bytes))
			case b.beside:
				return -1 // its laps are those of another loop
			}
			return 1
		})
		g := k.growth(group, horizon)
		g.Trains, g.Optimizes = trains, optimizes
		if g.Over && !g.Cause.sure() && !g.Cause.together && !k.backwardIn(group[0]) {
			continue // results that were made to be used: the loop did not train, and no pass is kept as a whole
		}
		out = append(out, g)
	}
	return out
}

// Rows gives the survivors, as rows of Timeline.Lives. They sum up to Bytes.
func (g *Growth) Rows() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for _, c := range g.group {
			for _, i := range c.kept {
				if !yield(c.rows[i]) {
					return
				}
			}
		}
	}
}

func sum(v []int64) int64 {
	total := int64(0)
	for _, x := range v {
		total += x
	}
	return total
}

func (k *clock) growth(group []*candidate, horizon int32) Growth {
	top := group[0]
	g := Growth{
		Loop: top.loop(), Laps: len(top.births), Regular: regular(top.bytes), Over: top.over, Horizon: int(horizon),
		First: int(top.births[0]), Last: int(k.t.Lives[top.rows[top.kept[len(top.kept)-1]]].Born),
		clock: k, group: group, LapTime: lapTime(k.t, top.births), Lifetimes: top.lifetimes(k.t, horizon),
	}
	for _, b := range top.births {
		g.Starts = append(g.Starts, int(b))
	}
	for i, c := range group {
		g.Stacks = append(g.Stacks, c.stack)
		g.Count += int64(len(c.kept))
		g.Bytes += sum(c.bytes)
		g.addPace(c)
		g.InModule = g.InModule || k.code.sort(c.stack)&inModule != 0
		g.Slope += c.slope * float64(len(c.starts)) / float64(len(top.starts))
		if i < 3 {
			g.Chance = max(g.Chance, c.chance)
		}
	}
	g.FreedShare = k.freedSince(top.births[0], horizon)
	most := k.mostOf(group)
	g.Stack = most.stack
	for _, i := range most.kept[:min(8, len(most.kept))] {
		g.Events = append(g.Events, int(k.t.Lives[most.rows[i]].Born))
	}
	for i := range k.t.Lives {
		l := &k.t.Lives[i]
		if l.Born >= 0 {
			break
		}
		if l.Stack > 0 && end(l, horizon) == none && k.code.sort(l.Stack)&nameless == 0 &&
			slices.Contains(g.Stacks, l.Stack) {
			g.OlderCount++
			g.OlderBytes += l.Rounded
		}
	}
	g.Cause, g.Trained, g.Rounds = k.cause(&g, group), k.backwardIn(top), k.rounds(top)
	g.Even = k.even(top)
	return g
}

// mostOf is the largest of those at the site that left most bytes.
func (k *clock) mostOf(group []*candidate) *candidate {
	bytes, sites := map[string]int64{}, make([]string, len(group))
	for i, c := range group {
		sites[i] = attribution.Site(k.s, c.stack)
		bytes[sites[i]] += sum(c.bytes)
	}
	best := 0
	for i, site := range sites {
		if bytes[site] > bytes[sites[best]] {
			best = i
		}
	}
	return group[best]
}

// addPace adds what a stack leaves with each lap to its pace. A stack that leaves
// something more often than the first runs several times in each lap; one that does half as often
// may do so because the first runs twice.
func (g *Growth) addPace(c *candidate) {
	n, perLap := len(c.births), trend.Median(c.bytes)
	for i := range g.Paces {
		if s := &g.Paces[i]; 3*n > s.Laps {
			s.PerLap += perLap
			if i == 0 {
				g.PerLap += perLap
			} else {
				g.PerLap += perLap * int64(s.Laps) / int64(g.Paces[0].Laps)
			}
			return
		}
	}
	g.Paces = append(g.Paces, Pace{Stack: c.stack, Laps: n, PerLap: perLap})
	g.PerLap += perLap * int64(n) / int64(g.Paces[0].Laps)
}

// Part is the growth of some of the stacks alone, nil when it has none of them.
func (g *Growth) Part(stacks map[snapshot.StackID]bool) *Growth {
	group := slices.DeleteFunc(slices.Clone(g.group), func(c *candidate) bool { return !stacks[c.stack] })
	if len(group) == 0 {
		return nil
	}
	part := g.clock.growth(group, int32(g.Horizon))
	part.Loop, part.Trains, part.Optimizes = g.Loop, g.Trains, g.Optimizes
	part.countSteps(g.steps)
	return &part
}

// CountSteps fills in how many steps lie between laps that left survivors.
func CountSteps(growths []Growth, st *steps.Result) {
	for i := range growths {
		growths[i].countSteps(st)
	}
}

func (g *Growth) countSteps(st *steps.Result) {
	g.steps = st
	if st == nil {
		return
	}
	var gaps []int
	last := -1
	for _, b := range g.group[0].births {
		at := st.At(int(b))
		if at >= 0 && last >= 0 {
			gaps = append(gaps, at-last)
		}
		last = at
	}
	if len(gaps) > 0 {
		g.Every = trend.Median(gaps)
	}
}

// even reports whether nearly all laps that left something came as long after the one before, by the allocations of their
// thread and to a factor of 2: not all laps allocate as much.
func (k *clock) even(c *candidate) bool {
	q := k.sequence(c.stack)
	var gaps []int64
	for i := 1; i < len(c.births); i++ {
		gaps = append(gaps, int64(q.find(c.births[i])-q.find(c.births[i-1])))
	}
	if len(gaps) == 0 {
		return false
	}
	m, near := trend.Median(gaps), 0
	for _, n := range gaps {
		if 2*n >= m && n <= 2*m {
			near++
		}
	}
	return 10*near >= 9*len(gaps)
}

// regular reports whether most laps left about the median.
func regular(perLap []int64) bool {
	m, near := trend.Median(perLap), 0
	for _, b := range perLap {
		if 4*b >= 3*m && 4*b <= 5*m {
			near++
		}
	}
	return 4*near >= 3*len(perLap)
}

func bornAt(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) }

// freedSince is the share of the allocations born from event e on that were freed.
func (k *clock) freedSince(e, horizon int32) float64 {
	born, freed := 0, 0
	from, _ := slices.BinarySearchFunc(k.t.Lives, e, bornAt)
	for i := from; i < len(k.t.Lives) && k.t.Lives[i].Born <= horizon; i++ {
		born++
		if end(&k.t.Lives[i], horizon) != none {
			freed++
		}
	}
	return float64(freed) / float64(max(born, 1))
}
