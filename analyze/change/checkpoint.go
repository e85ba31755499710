package change

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// checkpoint runs modules as torch.utils.checkpoint does with use_reentrant=False (torch/utils/checkpoint.py): forward
// keeps what goes in and what comes out; the rest of what backward needs is computed again right before it, up to the
// last of it. All modules of a model of transformers are those that it checkpoints itself, while it trains.
func (d *draft) checkpoint(calls []instance, all bool, e *Applied) {
	parts := make([]part, len(calls))
	for i := range calls {
		parts[i] = d.parts(&calls[i])
	}
	weights := d.cachedCopies()
	before := part{out: -1}
	var shared []int32
	inPass := map[*pass]int{}
	gone, stays := map[snapshot.StackID]bool{}, map[snapshot.StackID]bool{} // by stack inside of modules
	for i := range calls {
		c, x := &calls[i], parts[i]
		if c.ordinal == 0 {
			shared = nil // what another list shares, or this one for another pass
		}
		if len(x.saved) == 0 {
			before = part{out: -1}
			continue
		}
		// Where a request fails in backward, the call that is next is taken for the one whose turn it is.
		next := i+1 == len(calls) || calls[i+1].pass != c.pass || parts[i+1].last < c.pass.stop
		x.back = !c.pass.open && (x.first < c.pass.stop || next)
		var given []int32 // the checkpoint refers to what goes in
		switch {
		case i > 0 && calls[i-1].pass == c.pass && calls[i-1].ordinal+1 == c.ordinal && before.out >= 0:
			given = append(d.between(&calls[i-1], c, &before, &x), shared...)
		case c.ordinal == 0:
			given = append(d.given(c, &x), d.masks(c)...)
			shared = d.shared(calls[i:])
		}
		for _, in := range given {
			if d.end(in) < x.last {
				d.ends[in] = x.last
			}
		}
		d.recompute(c, &x, weights, e)
		var kept int64
		for _, row := range x.saved {
			gone[d.insides[d.t.Lives[row].Stack]] = true
			kept += d.sizes[row]
		}
		e.module = max(e.module, kept)
		if x.out >= 0 {
			stays[d.insides[d.t.Lives[x.out].Stack]] = true
		}
		inPass[c.pass]++
		e.Modules = max(e.Modules, inPass[c.pass])
		before = x
	}
	// The same modules keep as little for a graph that nothing goes back through. Of an evaluation transformers' models keep all,
	// where they checkpoint all.
	as := func(row int32) bool {
		inside := d.insides[d.t.Lives[row].Stack]
		return gone[inside] && !stays[inside]
	}
	marks := d.marks(calls, parts)
	for i := range d.passes {
		p := &d.passes[i]
		for row, keeps := range d.graphs(p) {
			if keeps && as(row) && d.savedBehind(p, row) == nil && d.until(row, d.leaves(row)) {
				e.count(d.run, row)
			}
		}
		turns := map[graphCode]int{} // rows of unused graphs by the code that makes them
		for row := p.rows.from; row < p.rows.to; row++ {
			if !d.unused[row] {
				continue
			}
			k := d.graphCode(row)
			of, turn := marks[k.inside], turns[k]
			turns[k]++
			switch {
			case len(of) == 0 || !of[turn%len(of)]:
			case all && d.trainsAlone(row):
				if end := d.leaves(row); end >= d.t.Lives[row].Born && end < d.last(row) && !d.stands(row) {
					d.mayEnd(e, row, end)
				}
				e.assumeOnce(TrainsAlone)
			default:
				if end := d.ends[row]; d.until(row, d.leaves(row)) {
					e.count(d.run, row)
					d.mayEnd(e, row, end)
					e.assumeOnce(EvaluatesToo)
				}
			}
		}
	}
}

// marks tells by the code inside of modules which of the rows that one pass keeps of it, in their order, are of calls that are
// checkpointed.
func (d *draft) marks(calls []instance, parts []part) map[snapshot.StackID][]bool {
	out := map[snapshot.StackID][]bool{}
	if len(calls) == 0 {
		return out
	}
	p := calls[0].pass
	chosen := map[int32]bool{}
	for i := range calls {
		if calls[i].pass == p {
			for _, row := range parts[i].saved {
				chosen[row] = true
			}
		}
	}
	for _, row := range d.savedRows(p) {
		inside := d.insides[d.t.Lives[row].Stack]
		out[inside] = append(out[inside], chosen[row])
	}
	return out
}

// trainsAlone reports whether a row is of a model that is not checkpointed in an evaluation (transformers/modeling_layers.py).
func (d *draft) trainsAlone(row int32) bool {
	return slices.ContainsFunc(d.stack(d.code(row)), d.ofTransformers)
}

// between is what comes out of a call, or of the code between that and the next, and goes into the next, as far as is known: all that
// the next saves, and the last that is gone when that is over. Of several that come out of the call, of which the next saves none, it is
// taken to be the one of a size like that of what the next makes first, unless the code between makes something of it that the next saves.
func (d *draft) between(c, next *instance, x, of *part) []int32 {
	begins, over, behind := d.t.Lives[next.rows[0]].Born, d.returned(next.rows[len(next.rows)-1]), c.rows[len(c.rows)-1]
	is := func(row int32) bool {
		return d.phase(row) == inProgram && !d.drop[row] && d.end(row) > begins && !d.byproduct(row) &&
			d.sizes[row]*small >= d.sizes[x.out]
	}
	saves := func(row int32) bool { return d.saved(c.pass, row) && d.end(row) > of.start && d.end(row) < x.first }
	var out []int32
	last, bound := x.out, int32(-1)
	for row := next.rows[0] - 1; row > behind; row-- {
		switch {
		case !is(row):
			continue
		case saves(row):
			out = append(out, row)
		case bound < 0 && len(out) == 0 && d.end(row) <= over:
			bound = row
		}
		if last == x.out {
			last = row
		}
	}
	like, made := int32(-1), len(out) > 0
	away := func(row int32) int64 { return difference(d.sizes[row], d.sizes[next.rows[0]]) }
	for _, row := range slices.Backward(c.rows) {
		switch {
		case !is(row):
		case saves(row):
			out = append(out, row)
		case !made && !d.saved(c.pass, row) && d.end(row) <= over && (like < 0 || away(row) < away(like)):
			like = row
		}
	}
	for _, row := range []int32{bound, like} {
		if row >= 0 {
			out = append(out, row)
		}
	}
	if len(out) == 0 {
		return []int32{last}
	}
	return out
}

// shared is what the first call of a list makes for all others, which do not make it themselves, and no graph keeps: it is there until
// these are over, as the bias of positions in T5 (transformers/models/t5/modeling_t5.py: position_bias = self_attention_position_bias).
func (d *draft) shared(calls []instance) (rows []int32) {
	c, to := &calls[0], 1
	for to < len(calls) && calls[to].pass == c.pass && calls[to].ordinal == to {
		to++
	}
	if to < 3 {
		return nil // what the next call is given, see between
	}
	over, again := calls[to-1].rows[len(calls[to-1].rows)-1], map[snapshot.StackID]bool{}
	for i := range calls[1:to] {
		for _, row := range calls[1+i].rows {
			again[d.code(row)] = true
		}
	}
	for _, row := range c.rows {
		if !again[d.code(row)] && d.end(row) > d.t.Lives[over].Born && !d.saved(c.pass, row) && !d.byproduct(row) && d.byProgram(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// given is what goes into the first call of a list, where backward needs it for nothing else: what the program made last before it, and
// lets go of in it, or what it still has behind it, of the size of what the call makes first; none where it is not known.
func (d *draft) given(c *instance, of *part) []int32 {
	const near, far = 16, 4096 // rows
	begins, over := d.t.Lives[c.rows[0]].Born, d.returned(c.rows[len(c.rows)-1])
	is := func(row int32) bool {
		return d.phase(row) == inProgram && !d.drop[row] && d.end(row) > begins && (!d.byproduct(row) || d.resultOfProduct(row))
	}
	for row := c.rows[0] - 1; row >= max(c.rows[0]-near, c.pass.rows.from); row-- {
		switch end := d.end(row); {
		case !is(row) || d.sizes[row]*small < d.sizes[c.rows[0]]:
		case d.saved(c.pass, row) && end > of.start && end < of.last:
			return nil // it is there
		case end <= over:
			return []int32{row}
		}
	}
	first := c.rows[max(slices.IndexFunc(c.rows, func(row int32) bool { return !d.isCanonicalMask(row) }), 0)]
	for row := c.rows[0] - 1; row >= max(c.rows[0]-far, c.pass.rows.from); row-- {
		if !is(row) || d.sizes[row] != d.sizes[first] && !d.narrowed(row, first) {
			continue
		}
		if d.end(row) > c.pass.begin {
			return nil
		}
		return []int32{row}
	}
	return nil
}

// narrowed reports whether the product that makes a row first may make a copy of half the size of another, under torch.autocast: that of
// what it is given is the last before its result (aten/src/ATen/autocast_mode.cpp: WrapFunction_).
func (d *draft) narrowed(row, first int32) bool {
	if by, _ := d.precision(first); by != frames.Weighs {
		return false
	}
	of := d.operation(first)
	at := of.to - 2
	for at > of.from && d.worksIn(at+1) {
		at--
	}
	return at >= of.from && 2*d.sizes[at] == d.sizes[row]
}

// masks are those that a model of transformers makes for all its layers.
func (d *draft) masks(c *instance) (rows []int32) {
	over := d.returned(c.rows[len(c.rows)-1])
	for row := c.pass.rows.from; row < c.rows[0]; row++ {
		if d.end(row) > over && !d.saved(c.pass, row) && d.makesMask(row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// makesMask reports whether transformers makes a row on the way to a mask.
func (r *run) makesMask(row int32) bool {
	return slices.ContainsFunc(r.stack(r.code(row)), func(id snapshot.FrameID) bool {
		return r.file(id) == "transformers/masking_utils.py"
	})
}

func difference(a, b int64) int64 { return max(a-b, b-a) }

// part is what becomes of the rows of a module's call.
type part struct {
	saved []int32 // what backward needs, but for what comes out; in order of birth
	out   int32   // what comes out, -1 for nothing
	over  int32   // the event of the last allocation of the call
	first int32   // the event of the first free of saved
	start int32   // the event after which its backward begins
	last  int32   // the event of the last free of saved
	done  int32   // the event after which its backward is over, see follow
	inner bool    // what comes out is saved by the module too
	back  bool    // its backward begins before the recording stops
}

// small is how many times smaller than the largest block of a call what comes out may be, as by attention whose scores are kept:
// losses on the way are not it.
const small = 1024

// parts looks at a call. Of one of which backward needs nothing, nothing is saved.
func (d *draft) parts(c *instance) (x part) {
	p := c.pass
	lives := d.t.Lives
	x = part{out: d.resultOf(c), over: lives[c.rows[len(c.rows)-1]].Born, start: p.begin - 1, last: -1}
	first := p.end
	for _, row := range c.rows {
		if row != x.out && !d.drop[row] && d.saved(p, row) {
			x.saved = append(x.saved, row)
			first, x.last = min(first, d.end(row)), max(x.last, d.end(row))
		}
	}
	if len(x.saved) == 0 {
		return x
	}
	// Its backward begins when that of the code behind it is over.
	for row := c.rows[len(c.rows)-1] + 1; row < p.rows.to && lives[row].Born < p.begin; row++ {
		if e := d.end(row); e < min(first, p.stop) && e > x.start && d.saved(p, row) {
			x.start = e
		}
	}
	if x.out >= 0 && d.saved(p, x.out) && d.end(x.out) > x.start {
		at, begin := min(d.end(x.out), p.stop), int32(-1)
		if d.makesOne(at) {
			begin = d.before(at)
		} else {
			begin = d.acts(x.out, at)
		}
		if begin > x.start {
			// Its own last operation saves what comes out, as an activation function does: it ends no node of the code behind.
			x.saved = append(x.saved, x.out)
			slices.Sort(x.saved)
			first, x.last, x.inner = min(first, d.end(x.out)), max(x.last, d.end(x.out)), true
			x.start = begin
		}
	}
	x.first = first
	x.start = max(x.start, d.before(min(first, p.stop)))
	if x.start >= first {
		x.start = first - 1
	}
	return x
}

// resultOf is what comes out of a call, -1 for nothing: the last that outlives it, or what backward lets go of before that, as a block
// has whose shortcut is computed last. The code behind the call is gone back through first.
func (d *draft) resultOf(c *instance) int32 {
	next := int32(d.t.Trace.Len())
	if row := int(c.rows[len(c.rows)-1]) + 1; row < len(d.t.Lives) {
		next = d.t.Lives[row].Born
	}
	var most int64
	for _, row := range c.rows {
		if d.end(row) > next {
			most = max(most, d.sizes[row])
		}
	}
	out := int32(-1)
	for _, row := range slices.Backward(c.rows) {
		switch {
		case d.end(row) <= next || d.sizes[row]*small < most || d.byproduct(row):
		case out < 0:
			out = row
		case d.saved(c.pass, out) && !d.byProgram(out) && d.saved(c.pass, row) && d.end(row) < d.end(out):
			out = row
		}
	}
	return out
}

// before is the event after which the node begins that frees what was saved for it at an event: it allocates what it
// gives on, and frees what it got, before that.
func (d *draft) before(event int32) int32 {
	i, _ := slices.BinarySearchFunc(d.t.Lives, event, func(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) })
	if i == 0 || d.t.Lives[i-1].Born < 1 {
		return d.overBefore(event)
	}
	begin := d.overBefore(d.t.Lives[i-1].Born)
	// A product gets what the node before it made, where that had nothing to free: it goes when both gradients are there.
	// One that scales by a vector makes that itself.
	freed := int32(-1)
	if int(event) < len(d.ended) {
		freed = d.ended[event] - 1
	}
	gradient, given := false, false
	for row := i - 1; row >= max(i-longNode, 0) && d.t.Lives[row].Born > begin; row-- {
		switch end := d.end(int32(row)); {
		case d.gradient(int32(row)):
			gradient = freed < 0 || !d.ofScale(int32(row), freed)
		case end > event:
			given = true
		case gradient && given && end > d.t.Lives[i-1].Born && !d.is(int32(row), category.Workspace):
			return d.t.Lives[row].Born
		}
	}
	return begin
}

// unpacked is the event after which what a hook unpacked for a node is gone that lets go at an event of what it saved itself: the
// node is over before the gradient of a bias is summed up over the batch (torch/csrc/autograd/engine.cpp, validate_outputs). That
// of a convolution sums it up itself (aten/src/ATen/native/Convolution.cpp, convolution_backward).
func (d *draft) unpacked(row, end int32) int32 {
	next := d.lastingFrom(d.operation(row).to)
	if int(next) < len(d.t.Lives) && d.convolves(next) {
		return end
	}
	i, _ := slices.BinarySearchFunc(d.t.Lives, end, func(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) })
	if sum := int32(i) - 3; sum >= 0 && d.partialsAt(sum) && d.end(sum+1) < end && d.end(sum+2) < end {
		return d.t.Lives[sum].Born - 1
	}
	return end
}

// makesOne reports whether the node that frees what was saved for it at an event makes one block, as that of an activation
// function does, and not several, as that of a power.
func (d *draft) makesOne(event int32) bool {
	i, _ := slices.BinarySearchFunc(d.t.Lives, event, func(l timeline.Life, e int32) int { return cmp.Compare(l.Born, e) })
	return i < 2 || d.t.Lives[i-2].Born <= d.before(event)
}

// pooled is the event after which the node is over of a max_pool that comes behind a call: it saved what comes out, with the indices;
// whatif.Never where none comes.
func (d *draft) pooled(c *instance) int32 {
	row := c.rows[len(c.rows)-1] + 1
	for row < c.pass.rows.to && (d.phase(row) == inNothing || d.worksIn(row)) {
		row++
	}
	if row >= c.pass.rows.to || !d.pools(row) {
		return whatif.Never
	}
	for at := d.operation(row).from; at < d.operation(row).to; at++ {
		if d.byproduct(at) && d.saved(c.pass, at) {
			return d.end(at) - 1
		}
	}
	return whatif.Never
}

// acts is the event after which the node of an activation function begins that saved its result, and frees it at an event: it makes what
// it gives on, and frees what it got, which are of one size; -1 where it is no such node.
func (d *draft) acts(result, event int32) int32 {
	made, n := d.lastBefore(event), d.t.Lives[result].Requested
	born := d.t.Lives[made].Born
	own := d.stack(d.code(result))
	if d.t.Lives[made].Requested != n || d.phase(made) != inBackward || len(own) == 0 || !frames.Of(d.s, own[0]).IsLibrary() {
		return -1
	}
	for row := made - 1; row >= max(made-longNode, 0); row-- {
		if l := &d.t.Lives[row]; l.Requested == n && d.phase(row) == inBackward && d.end(row) > born && d.end(row) < event {
			return born - 2 // not the event before it: what is made again there is to be there before the node's own
		}
	}
	return -1
}

// cachedCopies are the copies of weights that torch.autocast keeps until it is over: none where it is told not to, as Lightning does
// (lightning/pytorch/plugins/precision/amp.py: cache_enabled=False), so that those of biases, which no graph keeps, go with their product.
func (d *draft) cachedCopies() map[int32]bool {
	copies, _ := d.weightCopies(span{0, int32(len(d.t.Lives))}, 0)
	kept, gone := 0, 0
	for row := range copies {
		switch p := d.passOf(d.t.Lives[row].Born); {
		case p == nil || d.saved(p, row):
		case d.end(row) > d.returned(d.operation(row).to-1):
			kept++
		default:
			gone++
		}
	}
	if gone > kept {
		return nil
	}
	return copies
}

// biases are, of copies of weights that torch.autocast keeps, those of biases, by the number of the frames around a model's call and in the
// order in which they go: a product copies its bias before its weight, and no graph keeps that, so that it goes as torch.autocast is over.
func (d *draft) biases(copies map[int32]bool) map[int32][]int32 {
	out := map[int32][]int32{}
	for row := range copies {
		if copies[row+1] && d.sizes[row] < d.sizes[row+1] && d.operation(row) == d.operation(row+1) {
			around := d.around[d.code(row)]
			out[around] = append(out[around], row)
		}
	}
	for _, rows := range out {
		sorting.By(rows, func(a, b int32) int { return cmp.Or(cmp.Compare(d.end(a), d.end(b)), cmp.Compare(a, b)) })
	}
	return out
}

// autocastOver is the event after which torch.autocast is over, under which a module makes a row: with the function that it wraps, as
// biases of the same calls tell, or, without such, with the call, which is a guess; -1 outside of modules.
func (d *draft) autocastOver(row int32, all map[int32][]int32) int32 {
	if over := d.decorated(row); over >= 0 {
		return over
	}
	around := d.around[d.code(row)]
	if around == 0 {
		return -1
	}
	biases := all[around]
	i, _ := slices.BinarySearchFunc(biases, d.t.Lives[row].Born, func(of, event int32) int { return cmp.Compare(d.end(of), event+1) })
	if i < len(biases) {
		return d.end(biases[i])
	}
	own := d.stack(d.code(row))
	return d.returned(d.lastIn(row, own, len(d.outside(own))))
}

// cleared is the event after which torch.autocast lets go of a copy of a weight that it keeps for a pass: right before backward, or as
// the function returns that it wraps.
func (d *draft) cleared(p *pass, row int32) int32 {
	over := d.uncached(p, row)
	if returned := d.decorated(row); returned >= 0 {
		return min(returned, over)
	}
	return over
}

// uncached is the event after which torch.autocast is over at the latest under which a row is made for a pass: it is left before any
// backward (torch.amp's notes: backward passes under autocast are not recommended), also before that of another network which runs
// between, as a critic's does before a generator's.
func (r *run) uncached(p *pass, row int32) int32 {
	born := r.t.Lives[row].Born
	next := sort.Search(len(r.passes), func(i int) bool { return r.passes[i].begin > born })
	if next == len(r.passes) {
		return p.begin - 1
	}
	return min(p.begin, r.passes[next].begin) - 1
}

// decorated is the event after which the function returns that makes a row under torch.autocast and is wrapped in that, as accelerate wraps
// a model's forward (torch/amp/autocast_mode.py: autocast_decorator); -1 for none.
func (d *draft) decorated(row int32) int32 {
	own := d.stack(d.code(row))
	for depth, id := range slices.Backward(own) {
		if d.name(id) == "decorate_autocast" && d.file(id) == "torch/amp/autocast_mode.py" {
			return d.returned(d.lastIn(row, own, len(own)-1-depth))
		}
	}
	return -1
}

// recompute checkpoints one call. Some rows are copies of weights, which torch.autocast keeps until it is over, before backward
// (aten/src/ATen/autocast_mode.cpp: clear_cache).
func (d *draft) recompute(c *instance, x *part, weights map[int32]bool, e *Applied) {
	for _, row := range x.saved {
		end := min(d.leaves(row), x.over)
		switch {
		case row == x.out:
			d.until(row, min(x.start, d.pooled(c)))
			continue
		case weights[row]:
			end = d.cleared(c.pass, row)
		}
		if d.until(row, end) {
			e.count(d.run, row)
			if over := min(d.untilReturn(row), x.over); over > end && !weights[row] {
				d.mayEnd(e, row, over)
			}
		}
	}
	if !x.back || int(x.start)+1 >= d.t.Trace.Len() { // the recording ends before that
		for _, row := range c.rows {
			d.remade[row] = remake{event: -1}
		}
		return
	}
	// Again, in the order of then, up to the operation that makes the last that backward needs, and to the last product, which keeps its
	// weight and what it is given before it computes anything (torch/utils/checkpoint.py: _StopRecomputationError, as the last is kept).
	from, to := d.t.Lives[c.rows[0]].Born, d.t.Lives[d.operation(x.saved[len(x.saved)-1]).to-1].Born
	for _, row := range slices.Backward(c.rows) {
		if of, _ := d.precision(row); of == frames.Weighs {
			if before := d.operation(row).from - 1; before >= c.rows[0] {
				to = max(to, d.t.Lives[before].Born)
			}
			break
		}
	}
	at := x.start + 1
	base := d.turn(at, 2*(to-from)+4)
	when := func(event int32) int32 { return base + 1 + 2*(event-from) }
	for _, row := range c.rows {
		l := &d.t.Lives[row]
		if l.Born > to {
			d.remade[row] = remake{event: at, turn: when(to) + 2}
			continue
		}
		d.remade[row] = remake{event: at, turn: when(l.Born)}
		if d.drop[row] || d.stands(row) { // autograd's thread has a workspace of its own
			continue
		}
		v, end := d.add(row, at, at), d.end(row)
		v.Turn = when(l.Born)
		d.remade[row] = remake{at, v.Turn, len(d.added)}
		switch {
		case d.saved(c.pass, row) && (row != x.out || x.inner): // what the module returns then, the checkpoint lets go of at once
			v.Freed = max(d.unpacked(v.Like, end), at)
		default:
			v.Until = when(min(end, to)) + 1
		}
		e.recomputed += d.sizes[row]
	}
}

// untilReturn is the event after which the function has returned that had a row last, where it may have that in a variable until then, as
// it has others that no graph keeps though nothing shows that it reads them as late; -1 else.
func (d *draft) untilReturn(row int32) int32 {
	const near, few = 64, 2
	event, depth := d.dropped(row)
	own := d.stack(d.code(row))
	if depth < 0 || depth >= len(own) {
		return -1
	}
	last := d.lastIn(row, own, depth)
	over, at, others := d.returned(last), d.t.Lives[last].Born, 0
	for of := max(row-near, int32(d.warm)); of < min(last, row+near) && over > event && others < few; of++ {
		if d.phase(of) != inProgram || d.end(of) <= at || d.end(of) > over {
			continue
		}
		if same, _ := d.inside(own, d.stack(d.code(of)), d.code(of), depth); !same {
			continue
		}
		if gone, by := d.dropped(of); by == depth && gone < at {
			others++
		}
	}
	if others < few {
		return -1
	}
	return over
}

// goesAgain has a row that a checkpoint makes again go then as the program lets go of it, as something else is saved in its place.
func (d *draft) goesAgain(row int32) {
	again := d.remade[row]
	if again.life == 0 || d.added[again.life-1].Like != row || d.added[again.life-1].Until != 0 {
		return
	}
	made, born := &d.added[again.life-1], d.t.Lives[row].Born
	made.Freed, made.Until = made.Born, again.turn+2*max(d.leaves(row)-born, 0)+1
}
