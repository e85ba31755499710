package ghost

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/internal/trend"
	"github.com/snapana/snapana/snapshot"
)

// Parameters and optimizer state are made to stay, but not set after set: a loop over folds, trials or epochs that
// makes a model anew each time, and keeps those before, grows as any other. Its laps are few and long.
//
// What looks alike and is none: models that are made one after the other before any of them runs; a model that gets
// larger, which its passes show; the state of parameters that are trained later than others; and an optimizer that adds
// to its state with each step.

// statesEach is how many states of its size an optimizer has of a parameter at most (torch/optim/adam.py, amsgrad).
const statesEach = 3

// work is what a program does between one model and the next.
type work struct {
	births    []int32 // in forward and backward passes
	passes    []pass
	backwards []int32 // where backward passes begin
}

// pass is allocations in a row that are of one forward or of one backward pass.
type pass struct {
	first  int32
	length int64
}

func (k *clock) work(horizon int32) *work {
	w := &work{}
	of := stackKind(0) // the last allocation's
	for i := range k.t.Lives {
		l := &k.t.Lives[i]
		if l.Born < 0 {
			continue
		}
		if l.Born > horizon {
			break
		}
		before := of
		switch kind := k.code.sort(l.Stack); {
		case l.Stack > 0 && kind&(nameless|inBackward) != 0:
			of = inBackward
		default:
			of = kind & inModule
		}
		if of == 0 {
			continue
		}
		w.births = append(w.births, l.Born)
		if of != before {
			w.passes = append(w.passes, pass{first: l.Born})
			if of == inBackward {
				w.backwards = append(w.backwards, l.Born)
			}
		}
		w.passes[len(w.passes)-1].length++
	}
	return w
}

// models are the candidates among stacks of parameters and of optimizer state, and the gradients of such parameters,
// which are of others.
func (k *clock) models(rows, others map[snapshot.StackID][]int32, horizon int32) []*candidate {
	if len(rows) == 0 {
		return nil
	}
	w := k.work(horizon)
	var found, states []*candidate
	for _, stack := range slices.Sorted(maps.Keys(rows)) {
		c := k.grows(k.population(stack, rows[stack], horizon), horizon)
		switch {
		case c == nil || !w.within(c):
		case k.code.sort(stack)&optimizing != 0:
			states = append(states, c)
		case !w.longer(c):
			found = append(found, c)
		}
	}
	made := slices.Clone(found)
	for _, c := range states {
		if like(k, made, c) != nil {
			found = append(found, c)
		} else if c = k.unexplained(c, horizon); c != nil && k.once(w, c) && !w.longer(c) {
			found = append(found, c)
		}
	}
	if len(made) == 0 {
		return found
	}
	if len(states) == 0 { // three sets of parameters alone are too little to tell by
		made = slices.DeleteFunc(made, func(c *candidate) bool { return len(c.births) < MinLaps })
		found = slices.Clone(made)
	}
	for _, stack := range slices.Sorted(maps.Keys(others)) {
		if k.code.sort(stack)&(nameless|inBackward) == 0 {
			continue
		}
		c := k.grows(k.population(stack, others[stack], horizon), horizon)
		if c == nil {
			continue
		}
		// Their laps are those of the steps: of the last one before the next model, gradients stay.
		for _, m := range made {
			if len(c.births) <= len(m.births)+1 && between(c.births, m.births[0], m.births[len(m.births)-1]) > 0 {
				c.loops, c.beside = m.loops, true
				found = append(found, c)
				break
			}
		}
	}
	return found
}

// threeSets reports whether a stack of a model left the same in each of three laps before memory ran out: as many models
// as fit may be no more.
func (k *clock) threeSets(c *candidate, horizon int32) bool {
	return len(c.births) == MinLaps-1 && k.code.sort(c.stack)&ofModel != 0 && c.bytes[0] == c.bytes[1] &&
		c.bytes[1] == c.bytes[2] && k.ranOut(int(horizon))
}

// like is the one of some candidates that grows in the same loop, nil for none.
func like(k *clock, among []*candidate, c *candidate) *candidate {
	at := slices.IndexFunc(among, func(m *candidate) bool {
		return functionOf(k.s, m.loop()) == functionOf(k.s, c.loop())
	})
	if at < 0 {
		return nil
	}
	return among[at]
}

// within reports whether something ran in each lap before the next made a model.
func (w *work) within(c *candidate) bool {
	for i := 1; i < len(c.births); i++ {
		if between(w.births, c.births[i-1], c.births[i]) == 0 {
			return false
		}
	}
	return true
}

// between counts those of some sorted events that are after one and before another.
func between(events []int32, from, to int32) int {
	a := sort.Search(len(events), func(i int) bool { return events[i] > from })
	b := sort.Search(len(events), func(i int) bool { return events[i] >= to })
	return max(b-a, 0)
}

// longer reports whether passes get longer with the laps, as those of a model do that all of it is part of.
func (w *work) longer(c *candidate) bool {
	var lengths []int64
	for i := range c.births {
		to := c.until + 1
		if i+1 < len(c.births) {
			to = c.births[i+1]
		}
		var mine []int64
		at, _ := slices.BinarySearchFunc(w.passes, c.births[i], func(p pass, e int32) int { return cmp.Compare(p.first, e) })
		for ; at < len(w.passes) && w.passes[at].first < to; at++ {
			mine = append(mine, w.passes[at].length)
		}
		if len(mine) > 0 {
			lengths = append(lengths, trend.Median(mine))
		}
	}
	return len(lengths) > 1 && lengths[len(lengths)-1] > lengths[0] && rises(lengths) < maxChance
}

// once reports whether most laps have several backward passes, of which one alone left something.
func (k *clock) once(w *work, c *candidate) bool {
	steps := make(map[int32]map[int]bool, len(c.births)) // by lap, the backward passes that left something
	for _, i := range c.kept {
		at, _ := slices.BinarySearch(w.backwards, k.t.Lives[c.rows[i]].Born)
		if steps[c.lap[i]] == nil {
			steps[c.lap[i]] = map[int]bool{}
		}
		steps[c.lap[i]][at] = true
	}
	n := 0
	for i, b := range c.births {
		to := c.until + 1
		if i+1 < len(c.births) {
			to = c.births[i+1]
		}
		if len(steps[c.lapAt(b)]) == 1 && between(w.backwards, b, to) > 1 {
			n++
		}
	}
	return 2*n > len(c.births)
}

// unexplained is a candidate without the states that the parameters there are may have, nil if it does not grow then.
func (k *clock) unexplained(c *candidate, horizon int32) *candidate {
	parameters, states := map[int64]int{}, map[int64]int{}
	for i := range k.t.Lives {
		l := &k.t.Lives[i]
		if l.Born <= horizon && end(l, horizon) == none && (l.Born < 0 ||
			k.code.sort(l.Stack)&(nameless|optimizing|inModule|inBackward) == 0) {
			parameters[l.Rounded]++
		}
	}
	for _, i := range c.kept {
		states[k.t.Lives[c.rows[i]].Rounded]++
	}
	c.kept = slices.DeleteFunc(c.kept, func(i int) bool {
		size := k.t.Lives[c.rows[i]].Rounded
		return states[size] <= statesEach*parameters[size]
	})
	if len(c.kept) == 0 {
		return nil
	}
	return k.grows(c.population, horizon)
}
