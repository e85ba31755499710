package fit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot/sorting"
)

// midway reports whether the trace begins with memory of work that was under way: blocks that it sees freed.
func (r *recording) midway() bool {
	return slices.ContainsFunc(r.Timeline.Lives[:r.warm], func(l timeline.Life) bool { return l.Freed >= 0 })
}

// cut is how a recording that begins in the middle of the run is replayed: without the part of a step that it begins with, and
// with a step before it in which there are no gradients yet, and the optimizer makes what it keeps. So a run begins.
type cut struct {
	event int32 // the first that is replayed, 0 for all
	from  int   // its row
	rows  int   // of the step that is made once more before it, from there on; 0 where none is known
}

func (r *recording) findCut() cut {
	if !r.midway() {
		return cut{}
	}
	const less = 20 // of what a step needs, how many times less the end of a whole one may have more than its beginning
	sums := r.sums()
	least, peak, event := quiet(sums)
	c := cut{event: int32(event), from: r.warm}
	for c.from < len(r.Timeline.Lives) && r.Timeline.Lives[c.from].Born < c.event {
		c.from++
	}
	rest := len(r.Timeline.Lives) - c.from
	switch period := r.period(); {
	case period > 0 && period <= rest:
		c.rows = period
	case less*(sums[len(sums)-1]-least) <= peak-least:
		c.rows = rest
	}
	return c
}

// sums are the requested bytes before each event, and at the end.
func (r *recording) sums() []int64 {
	out := make([]int64, len(r.gives)+1)
	lives := r.Timeline.Lives
	var sum int64
	for row := range r.warm {
		sum += lives[row].Requested
	}
	row := r.warm
	for e := range r.gives {
		out[e] = sum
		for row < len(lives) && int(lives[row].Born) == e {
			sum += lives[row].Requested
			row++
		}
		if g := r.gives[e]; g >= 0 {
			sum -= lives[g].Requested
		}
	}
	out[len(r.gives)] = sum
	return out
}

// quiet is the first event at which there is about as little as ever before the last peak: between two steps.
func quiet(sums []int64) (least, peak int64, event int) {
	const near = 50 // times less than what a step needs
	peak = slices.Max(sums)
	last := len(sums) - 1
	for sums[last] < peak {
		last--
	}
	least = slices.Min(sums[:last+1])
	event = slices.IndexFunc(sums, func(s int64) bool { return near*(s-least) <= peak-least })
	return least, peak, event
}

// request is what tells a request from others.
type request struct {
	stack int32
	size  int64
}

func (r *recording) request(row int) request {
	return request{r.stackOf(row), r.Timeline.Lives[row].Requested}
}

// period is after how many rows nine of ten come again, 0 where none does: the most usual distance of requests that are rare.
func (r *recording) period() int {
	const rare, tries = 8, 8
	n := len(r.Timeline.Lives)
	count, last := map[request]int{}, map[request]int{}
	for row := r.warm; row < n; row++ {
		count[r.request(row)]++
	}
	votes := map[int]int{}
	for row := r.warm; row < n; row++ {
		k := r.request(row)
		if was, ok := last[k]; ok && count[k] <= rare {
			votes[row-was]++
		}
		last[k] = row
	}
	tried := sorting.Of(maps.Keys(votes), func(a, b int) int { return cmp.Or(cmp.Compare(votes[b], votes[a]), a-b) })
	for _, period := range tried[:min(len(tried), tries)] {
		alike, all := 0, n-period-r.warm
		for row := r.warm; row+period < n; row++ {
			if r.alike(row, row+period) {
				alike++
			}
		}
		if 10*alike >= 9*all && 10*all >= period {
			return period
		}
	}
	return 0
}

// cutOff takes what is gone at the cut out of sizes.
func (m *model) cutOff(sizes []int64) {
	for row := range m.cut.from {
		if end := m.Timeline.Lives[row].GivenUp(); end >= 0 && end < m.cut.event {
			sizes[row] = whatif.Dropped
		}
	}
}

// moment is a place in the order in which edits are made.
type moment struct{ event, order, turn int32 }

const added, recorded, ends = 0, 1, 2 // orders

func (a moment) compare(b moment) int {
	return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.order, b.order), cmp.Compare(a.turn, b.turn))
}

// again is a request of the step that is made once more.
type again struct {
	like        int32
	bytes       int64
	born, freed moment
	kept        bool // it lives on behind the step
	becomes     int  // the row whose block it is, -1 for none
}

// firstStep adds a step at the cut, before what was recorded there. What the recorded step finds of the one before it, such as
// gradients, is of this one.
func (m *model) firstStep(e *whatif.Edits) {
	if m.cut.rows == 0 {
		return
	}
	lives := m.Timeline.Lives
	start, end := lives[m.cut.from].Born, m.bornBy(m.cut.from+m.cut.rows)
	step, all := m.stepAgain(e, start, end)
	moments := []moment{step}
	for i := range all {
		moments = append(moments, all[i].born)
		if !all[i].kept {
			moments = append(moments, all[i].freed)
		}
	}
	sorting.By(moments, moment.compare)
	turn := func(at moment) int32 {
		i, _ := slices.BinarySearchFunc(moments, at, moment.compare)
		return int32(i) + 1
	}
	last := int32(len(moments)) + 1
	begin := func(row int, bytes int64, turn int32) {
		x := whatif.Life{Born: start, Turn: turn, Freed: lives[row].GivenUp(), Bytes: bytes, Like: int32(row)}
		if x.Freed < 0 {
			x.Freed = whatif.Never
		}
		e.Added = append(e.Added, x)
		e.Sizes[row] = whatif.Dropped
	}
	states, carried := m.notYet(e.Sizes, start, end)
	for _, row := range states {
		begin(row, e.Sizes[row], turn(step))
	}
	carried = m.carry(all, carried)
	for i := range all {
		c := &all[i]
		switch {
		case c.becomes >= 0:
			begin(c.becomes, c.bytes, turn(c.born))
			continue
		case c.kept:
			c.freed = moment{end, ends, 0} // behind all
		}
		x := whatif.Life{Born: start, Turn: turn(c.born), Freed: start, Until: turn(c.freed), Bytes: c.bytes, Like: c.like}
		e.Added = append(e.Added, x)
	}
	for _, row := range carried {
		begin(row, e.Sizes[row], last+1)
	}
}

// stepAgain are the requests between two events, and where the optimizer makes what it keeps among them.
func (m *model) stepAgain(e *whatif.Edits, start, end int32) (step moment, out []again) {
	lives := m.Timeline.Lives
	step = moment{end, added, 0}
	for row := m.cut.from; row < m.cut.from+m.cut.rows; row++ {
		l := &lives[row]
		if step.event == end && m.phase(l.Stack) == "optimizer" {
			step.event = l.Born
		}
		if gone := l.GivenUp(); e.Sizes[row] != whatif.Dropped {
			out = append(out, again{int32(row), e.Sizes[row], moment{l.Born, recorded, 0}, moment{gone, recorded, 0},
				gone < 0 || gone >= end, -1})
		}
	}
	for i := range e.Added {
		x := &e.Added[i]
		if x.Born < start || x.Born >= end {
			continue
		}
		c := again{x.Like, x.Bytes, moment{x.Born, added, x.Turn}, moment{x.Freed, ends, int32(i)}, x.Freed >= end, -1}
		if x.Until != 0 {
			c.freed = moment{x.Freed, added, x.Until}
		}
		out = append(out, c)
	}
	return step, out
}

// notYet are the rows that are there at the cut, and were not in the first step: what the optimizer keeps, in the order in which
// it makes it, and what the recorded step gives up.
func (m *model) notYet(sizes []int64, start, end int32) (states, carried []int) {
	of := map[int64][]int{} // states by size
	count := map[int64]int{}
	var params []int64
	for row := range m.cut.from {
		if sizes[row] == whatif.Dropped {
			continue
		}
		l := &m.Timeline.Lives[row]
		gone := l.GivenUp()
		use, _ := m.categories().Of(int32(row))
		switch {
		case gone >= start && gone < end:
			carried = append(carried, row)
		case use == category.OptimizerState:
			of[l.Requested] = append(of[l.Requested], row)
		case use == category.Parameter:
			params = append(params, l.Requested)
			count[l.Requested]++
		}
	}
	for _, n := range params { // what is kept of a parameter mostly has its size
		each := (len(of[n]) + count[n] - 1) / count[n]
		states, of[n] = append(states, of[n][:each]...), of[n][each:]
		count[n]--
	}
	rest := slices.Concat(slices.Collect(maps.Values(of))...)
	slices.Sort(rest)
	return append(states, rest...), carried
}

// carry finds what of a step is what the next one finds, by code and size, then by size alone; it gives the rows of which it
// does not know.
func (m *model) carry(all []again, rows []int) []int {
	for _, by := range []func(row int) request{m.request, func(row int) request { return request{0, m.request(row).size} }} {
		of := map[request][]int{}
		for _, row := range rows {
			of[by(row)] = append(of[by(row)], row)
		}
		for i := range all {
			if c := &all[i]; c.kept && c.becomes < 0 {
				if k := by(int(c.like)); len(of[k]) > 0 {
					c.becomes, of[k] = of[k][0], of[k][1:]
				}
			}
		}
		rows = slices.Concat(slices.Collect(maps.Values(of))...)
		slices.Sort(rows)
	}
	return rows
}
