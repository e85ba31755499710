package change

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// FSDP2's streams beside that of the program (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, FSDPCommContext):
// what is gathered is allocated on one, the reduced gradients on another.
const (
	gathers  = 1
	scatters = 2
)

// sharded is what FSDP2 gathers and reduces together: a module of a loop, or what of the model is in none.
type sharded struct {
	part
	from, next int32   // the event of the first allocation of its forward, and of the first behind that
	grads      []int32 // rows of the gradients of its parameters, in the order in which backward makes them
	full       []int64 // bytes of its parameters, gathered
	shards     int64   // bytes of a rank's part of them

	gathered *extra // the buffer of the all-gather
	params   []*extra
	reduced  *extra // the input of the reduce-scatter
}

// sharder writes what FSDP2 does into a draft.
type sharder struct {
	*draft
	ranks int64
	keeps bool  // parameters stay gathered from forward to backward: reshard_after_forward=False
	like  int32 // a row on the program's stream
	steps []step
	made  []*extra
	known [][]int64 // by unit of the pass before, the root last: bytes of its parameters
	moved int64
}

// step is something done at an event, before the recorded operation.
type step struct {
	event int32
	do    func(turn int32)
}

func (d *draft) applyFSDP(c *Change, a *Applied, refuse refusal) error {
	switch {
	case !d.some(d.gradient):
		return refuse(NoGradients)
	case !d.has(category.Parameter):
		return refuse(NoParams)
	case !d.has(category.OptimizerState):
		return refuse(NoState)
	}
	s := &sharder{draft: d, ranks: c.n, keeps: c.stage == 2}
	full := slices.Clone(d.sizes)
	d.shareState(c.n, a)
	for row := range d.rows() {
		if d.gradient(row) {
			s.like = row
			break
		}
	}
	lists := d.lists()
	for i := range d.passes {
		s.pass(&d.passes[i], lists, full)
	}
	s.shard(a)
	s.write()
	a.moved = s.moved
	a.assume(FullyShard)
	if len(s.known) < 2 {
		a.assume(RootAlone)
	}
	return nil
}

// pass gathers and reduces in one pass.
func (s *sharder) pass(p *pass, lists []group, full []int64) {
	units, root := s.units(p, lists, full)
	if len(root.full) == 0 && len(units) == 0 {
		return
	}
	// Forward. The buffer of a unit goes when the one behind it has its own.
	var before *sharded
	gather := func(u *sharded, at int32) {
		s.gather(u, at)
		if before != nil {
			s.free(&before.gathered, at)
		}
		s.allocParams(u, at)
		before = u
	}
	gather(root, root.from)
	for i := range units {
		u := &units[i]
		gather(u, u.from)
		if !s.keeps {
			s.freeParams(u, u.next)
		}
	}
	s.free(&before.gathered, root.next)
	if p.open && int(p.stop) >= s.t.Trace.Len() {
		return
	}
	// Backward. Each unit gathers for the one whose turn is next.
	if n := len(units); n > 0 && !s.keeps {
		s.gather(&units[n-1], root.start+1)
	}
	var reduced *sharded
	reduce := func(u *sharded, at int32) {
		s.freeParams(u, at)
		if reduced != nil {
			s.free(&reduced.reduced, at)
		}
		if len(u.grads) > 0 {
			s.reduce(u, at)
			reduced = u
		}
	}
	for i := len(units) - 1; i >= 0; i-- {
		u := &units[i]
		if !s.keeps {
			s.allocParams(u, u.start+1)
			s.free(&u.gathered, u.start+1)
			if i > 0 {
				s.gather(&units[i-1], u.start+1)
			}
		}
		reduce(u, u.done+1)
	}
	end := min(p.end, int32(s.t.Trace.Len())-1)
	reduce(root, end)
	if reduced != nil {
		s.free(&reduced.reduced, end)
	}
}

// units are the modules of loops that a pass runs, and the rest of the model.
func (s *sharder) units(p *pass, lists []group, full []int64) (units []sharded, root *sharded) {
	root = &sharded{part: part{start: p.begin - 1, last: p.last}, from: p.first, next: p.begin}
	var first snapshot.StackID
	for _, u := range s.draft.units(p, lists) {
		last := u.call.rows[len(u.call.rows)-1]
		next := p.begin
		if int(last)+1 < len(s.t.Lives) {
			next = min(s.t.Lives[last+1].Born, max(p.begin, s.t.Lives[last].Born+1))
		}
		if len(units) == 0 {
			first = s.t.Lives[u.call.rows[0]].Stack
		}
		units = append(units, sharded{part: u.part, from: s.t.Lives[u.call.rows[0]].Born, next: next})
	}
	if len(units) > 0 {
		s.bounds(p, root, units, first)
	}
	for row := p.rows.from; row < p.rows.to; row++ {
		l := &s.t.Lives[row]
		if !s.gradient(row) || l.Born < p.begin || s.drop[row] {
			continue
		}
		of := root
		for i := range units {
			if u := &units[i]; l.Born > u.start && l.Born <= u.done {
				of = u
				break
			}
		}
		of.grads = append(of.grads, row)
		of.full = append(of.full, full[row])
	}
	all := make([]*sharded, 0, len(units)+1)
	for i := range units {
		all = append(all, &units[i])
	}
	all = append(all, root)
	for i, u := range all {
		// backward goes the other way; passes that add to gradients make none that stay
		if slices.Reverse(u.full); len(u.full) == 0 && len(s.known) == len(all) {
			u.full = s.known[i]
		}
		for _, n := range u.full {
			u.shards += s.part(n)
		}
	}
	s.known = s.known[:0]
	for _, u := range all {
		s.known = append(s.known, u.full)
	}
	return units, root
}

// bounds finds where the forward of the model begins and ends, and where its backward begins: when that of what comes
// behind, such as a loss, is over.
func (s *sharder) bounds(p *pass, root *sharded, units []sharded, first snapshot.StackID) {
	own := s.stack(first)
	outer := len(own) - 1 // of the outermost call of a module
	for outer >= 0 && !frames.Of(s.s, own[outer]).IsModuleCall() {
		outer--
	}
	around := own[outer+1:]
	root.from, root.next = units[0].from, units[len(units)-1].next
	for row := p.rows.from; row < p.rows.to && s.t.Lives[row].Born < p.begin; row++ {
		l := &s.t.Lives[row]
		stack := s.stack(l.Stack)
		at := len(stack) - len(around) // of the frame inside of them
		switch {
		case at > 0 && slices.Equal(stack[at:], around) && frames.Of(s.s, stack[at-1]).IsModuleCall():
			root.from = min(root.from, l.Born)
			if int(row)+1 < len(s.t.Lives) {
				root.next = max(root.next, min(s.t.Lives[row+1].Born, p.begin))
			}
		case l.Born >= root.next && s.saved(p, row) && s.end(row) < p.stop:
			root.start = max(root.start, s.end(row))
		}
	}
	root.start = min(root.start, units[len(units)-1].start)
}

// part is a rank's part of a parameter.
func (s *sharder) part(n int64) int64 { return max((n+s.ranks-1)/s.ranks, 1) }

// at does something at an event, behind what is done there already.
func (s *sharder) at(event int32, do func(turn int32)) {
	if int(event) < s.t.Trace.Len() {
		s.steps = append(s.steps, step{max(event, 0), do})
	}
}

// alloc asks for bytes at an event, on a stream of its own or, where that is 0, on that of a row.
func (s *sharder) alloc(like int32, bytes int64, stream uint8, event int32) *extra {
	x := &extra{Life: whatif.Life{Freed: whatif.Never, Like: like, Apart: stream}, parts: 1, bytes: max(bytes, 1)}
	s.at(event, func(turn int32) {
		x.Born, x.Turn = event, turn
		s.made = append(s.made, x)
	})
	return x
}

// free ends what alloc asked for.
func (s *sharder) free(x **extra, event int32) {
	if v := *x; v != nil {
		s.at(event, func(turn int32) { v.Freed, v.Until = event, turn })
	}
	*x = nil
}

// gather asks for the buffer that a unit's parameters come into.
func (s *sharder) gather(u *sharded, at int32) {
	if len(u.full) > 0 {
		u.gathered = s.alloc(s.like, u.shards*s.ranks, gathers, at)
		s.moved += u.shards * s.ranks
	}
}

// allocParams asks for the parameters that are copied out of the buffer.
func (s *sharder) allocParams(u *sharded, at int32) {
	for _, n := range u.full {
		u.params = append(u.params, s.alloc(s.like, s.part(n)*s.ranks, 0, at))
	}
}

func (s *sharder) freeParams(u *sharded, at int32) {
	for i := range u.params {
		s.free(&u.params[i], at)
	}
	u.params = nil
}

// reduce copies the gradients of a unit into one buffer and frees them; what comes out of that is the rank's part.
func (s *sharder) reduce(u *sharded, at int32) {
	u.reduced = s.alloc(s.like, u.shards*s.ranks, 0, at)
	s.moved += u.shards * s.ranks
	until := int32(0)
	for i := range s.added { // what smaller batches before made
		if x := &s.added[i]; x.parts == 1 && slices.Contains(u.grads, x.Like) {
			x.parts, x.Apart = s.ranks, scatters
		}
	}
	for _, row := range u.grads {
		until = max(until, s.last(row))
		s.drop[row] = true
		whole := &extra{Life: whatif.Life{Born: s.t.Lives[row].Born, Freed: whatif.Never, Like: row}, parts: 1}
		s.made = append(s.made, whole)
		s.free(&whole, at)
	}
	mine := s.alloc(s.like, u.shards, scatters, at)
	mine.Freed = max(until, at)
}

// shard cuts the parameters into parts when all are made.
func (s *sharder) shard(a *Applied) {
	for row := range s.rows() {
		if s.is(row, category.Parameter) && !s.drop[row] {
			a.count(s.run, row)
		}
	}
	one := func(int32) snapshot.FrameID { return 0 }
	s.replace(one, func(row int32) (whole, part int64) { return s.sizes[row], s.part(s.sizes[row]) })
}

// replace has another block take the place of each parameter when all of its model are made, one after another. Those that
// are there before the recording begins are that block.
func (s *sharder) replace(model func(row int32) snapshot.FrameID, by func(row int32) (whole, part int64)) {
	made := map[snapshot.FrameID]int32{} // by model, the event that makes its last parameter
	for row := range s.rows() {
		if s.is(row, category.Parameter) && !s.drop[row] {
			made[model(row)] = max(made[model(row)], s.t.Lives[row].Born)
		}
	}
	for row := range s.rows() {
		if !s.is(row, category.Parameter) || s.drop[row] {
			continue
		}
		last := made[model(row)]
		n, part := by(row)
		until := s.last(row)
		if s.t.Lives[row].Born < 0 || until <= last+1 || int(last)+1 >= s.t.Trace.Len() {
			s.sizes[row] = part
			continue
		}
		mine := s.alloc(row, part, 0, last+1)
		mine.Freed = until
		whole := &extra{Life: whatif.Life{Born: s.t.Lives[row].Born, Freed: whatif.Never, Like: row}, parts: 1, bytes: n}
		s.made = append(s.made, whole)
		s.drop[row] = true
		s.free(&whole, last+1)
	}
}

// write puts all steps in, those of an event before what other changes do there.
func (s *sharder) write() {
	sorting.Stable(s.steps, func(a, b step) int { return cmp.Compare(a.event, b.event) })
	for from := 0; from < len(s.steps); {
		event, to := s.steps[from].event, from
		for to < len(s.steps) && s.steps[to].event == event {
			to++
		}
		s.turnFirst(event, int32(to-from))
		for i, x := range s.steps[from:to] {
			x.do(int32(i) + 1)
		}
		from = to
	}
	for _, x := range s.made {
		s.added = append(s.added, *x)
	}
}
