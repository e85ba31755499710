package ghost

import (
	"maps"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// The limits of rebuilt.
const (
	maxSurvivors = 2    // of the stack: the tensor, and its predecessor if that is not freed yet
	joined       = 0.75 // share of the laps in which what it grew by was there as a tensor of its own
	maxLooked    = 16   // laps that are looked at for it
)

// rebuilt finds, among rows of rising stacks, tensors that are made anew in each lap, larger by another tensor, as
// torch.cat does: the block of the lap before is freed once there is a new one, and one is left. What was ever made
// smaller again is bounded or emptied, and what a forward makes without training is the cache or the output of a
// running generation.
func (k *clock) rebuilt(rows map[snapshot.StackID][]int32, horizon int32) []*candidate {
	var out []*candidate
	for _, stack := range slices.Sorted(maps.Keys(rows)) {
		if c := k.rebuilds(k.population(stack, rows[stack], horizon), horizon); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// rebuilds is the candidate of a stack of which each block is larger than the one before, nil where they are not one
// tensor that is rebuilt.
func (k *clock) rebuilds(p *population, horizon int32) *candidate {
	c := &candidate{population: p, until: horizon, rebuilt: true}
	lives := k.t.Lives
	if len(p.starts) != len(p.rows) || end(&lives[p.rows[len(p.rows)-1]], horizon) != none {
		return nil
	}
	size := int64(0)
	for i, row := range p.rows {
		l := &lives[row]
		c.births = append(c.births, l.Born)
		c.bytes = append(c.bytes, l.Rounded-size)
		size = l.Rounded
		if i == 0 {
			continue
		}
		next := horizon
		if i+1 < len(p.rows) {
			next = lives[p.rows[i+1]].Born
		}
		if e := end(&lives[p.rows[i-1]], horizon); e < l.Born || e > next && e != none {
			return nil // not made of the one before
		}
	}
	p.kept = p.kept[len(p.kept)-1:]
	if !k.inTime(c) || c.over || !k.joins(p) {
		return nil
	}
	bytes, _ := p.levels(k.t, p.rows, horizon)
	c.chance, c.slope = rises(bytes), slope(bytes)
	return c
}

// joins reports whether what a tensor grew by was there as a tensor of its own when it was rebuilt.
func (k *clock) joins(p *population) bool {
	looked, found := 0, 0
	for i := max(1, len(p.rows)-maxLooked); i < len(p.rows); i++ {
		l, before := &k.t.Lives[p.rows[i]], &k.t.Lives[p.rows[i-1]]
		looked++
		if k.there(l.Requested-before.Requested, l.Born, p) {
			found++
		}
	}
	return float64(found) >= joined*float64(looked)
}

// span has the births and the ends of what was allocated with one size, each sorted.
type span struct{ births, ends []int32 }

// there reports whether a tensor of a size is alive at an event, other than those of a population with rising sizes.
func (k *clock) there(size int64, event int32, p *population) bool {
	if k.spans == nil {
		k.spans = map[int64]*span{}
		for i := range k.t.Lives {
			l := &k.t.Lives[i]
			s := k.spans[l.Requested]
			if s == nil {
				s = &span{}
				k.spans[l.Requested] = s
			}
			s.births, s.ends = append(s.births, l.Born), append(s.ends, end(l, none-1))
		}
		for _, s := range k.spans {
			slices.Sort(s.births)
			slices.Sort(s.ends)
		}
	}
	s := k.spans[size]
	if s == nil || size == frames.WorkspaceSize {
		return false
	}
	born, _ := slices.BinarySearch(s.births, event)
	ended, _ := slices.BinarySearch(s.ends, event+1)
	own := sort.Search(len(p.rows), func(i int) bool { return k.t.Lives[p.rows[i]].Requested >= size })
	if own < len(p.rows) {
		if l := &k.t.Lives[p.rows[own]]; l.Requested == size && l.Born < event && end(l, none-1) > event {
			born--
		}
	}
	return born > ended
}
