package change

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// accumulate makes each pass the last of several smaller ones, each with its part of the batch: what depends on the
// batch shrinks. The first of them is put in before it, and makes the gradients that the others add to; those between
// are like the last.
func (d *draft) accumulate(parts int64, e *Applied) {
	before := len(d.added)
	columns := d.columns()
	var open []int // what is put in and stays behind its pass, in added
	for i := range d.passes {
		p := &d.passes[i]
		first := d.loopOf(p)
		weights, sums := d.weights(p, first), d.divided(p, parts)
		copies, halves := d.weightCopies(p.rows, first)
		smaller := map[int32]bool{}
		for row := p.rows.from; row < p.rows.to; row++ {
			if l := &d.t.Lives[row]; l.Born < first || d.gradient(row) && l.Born >= p.begin {
				continue
			}
			if n := d.t.Lives[row].Requested; copies[row] || d.phase(row) == inBackward && (weights[n] || halves[n]) {
				continue // of the shape of a parameter: one of several that a gradient is the sum of, or what it is made from
			}
			if n, ok := sums[row]; ok {
				d.sizes[row], d.drop[row] = n, d.drop[row] || n == 0
				e.count(d.run, row)
				continue
			}
			if d.ofBatch(row) && !columns.own[row] && (columns.library[row] || d.sizes[row]%parts == 0) {
				d.sizes[row], smaller[row] = max(d.sizes[row]/parts, 1), true
				e.count(d.run, row)
			}
		}
		for i := range d.added[:before] {
			if x := &d.added[i]; smaller[x.Like] && x.bytes > 0 { // it has a size of its own
				x.bytes = max(x.bytes/parts, 1)
			}
		}
		if p.stop == whatif.Never {
			open = d.repeat(p, first, before, open)
		}
		for row := p.rows.from; row < p.rows.to; row++ {
			if d.gradient(row) && d.t.Lives[row].Born >= p.begin {
				d.pile(p, row)
			}
		}
		if p.stop != whatif.Never && first < p.begin {
			d.owe(i)
		}
	}
	d.mayDivide(parts, e)
	if d.p.OOMs == len(d.t.OOMs) { // their requests come behind the rows
		for i := range d.t.OOMs {
			row := len(d.t.Lives) + i
			if d.passOf(int32(d.t.OOMs[i].Event)) != nil && d.sizes[row]%parts == 0 {
				d.sizes[row] /= parts
			}
		}
	}
}

// mayDivide says how large what modules make between the passes is if the program has smaller batches there, too, as in an evaluation.
func (d *draft) mayDivide(parts int64, e *Applied) {
	begins := make([]int32, len(d.passes))
	for i := range d.passes {
		begins[i] = d.loopOf(&d.passes[i])
	}
	next, until := 0, int32(0) // the pass that comes next, and where the one before it ends
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		born := d.t.Lives[row].Born
		for next < len(begins) && born >= begins[next] {
			until = d.passes[next].end
			next++
		}
		if born >= until && d.around[d.t.Lives[row].Stack] != 0 && d.phase(row) == inProgram && d.ofBatch(row) &&
			d.sizes[row]%parts == 0 && !d.drop[row] {
			e.mayShrink(row, parts)
		}
	}
}

// weightCopies are the copies of 16 bits that products make of weights under torch.autocast, of rows from an event on,
// and their sizes, but for those of results: half of a parameter's, made by the code of a product before its result.
// The copy of what a product is given is made behind that of its weight (aten/src/ATen/autocast_mode.cpp:
// WrapFunction_, whose arguments are computed from the last to the first), and is alone where the weight was copied
// before, with its bias: what comes behind a copy of that is of the weight. Where few products of calls from one place
// make any, none there is one, but for those of code that made some before: torch.autocast keeps these, for the layers
// of a model that is called again, as with each token that it samples.
func (r *run) weightCopies(rows span, first int32) (copies map[int32]bool, sizes map[int64]bool) {
	const least, vector = 512, 64 << 10 // bytes
	copies, sizes = map[int32]bool{}, map[int64]bool{}
	products, with, sure := map[int32]int{}, map[int32]int{}, map[int32]int{} // by the number of the frames around a model's call
	other := map[int64]bool{}                                                 // sizes of results
	unsure := map[int32]bool{}                                                // copies of what may be given to the product
	firsts := map[int32]bool{}                                                // copies that such a one is behind, or that of a weight
	copied := map[snapshot.StackID]bool{}                                     // code of products that made some
	given := int64(0)                                                         // the size of the last result
	for row := rows.from; row < rows.to; {
		o := r.operation(row)
		from, result := max(row, o.from), o.to-1
		row = o.to
		for result > from && r.worksIn(result) {
			result--
		}
		if r.t.Lives[from].Born < first || len(r.stack(r.code(from))) == 0 {
			continue
		}
		other[r.t.Lives[result].Requested] = true
		if p, _ := r.precision(result); p != frames.Weighs {
			given = o.most
			continue
		}
		had, matrix := len(copies), false
		for k := from; k < result && !matrix; k++ {
			if n := r.t.Lives[k].Requested; n >= least && r.parameters[2*n] && !r.worksIn(k) {
				firsts[k], matrix = k < result-1 || len(copies) > had, n > vector
				copies[k], sizes[n] = true, true
				unsure[k] = given == 2*n && !firsts[k]
			}
		}
		given = r.t.Lives[result].Requested
		code := r.code(result)
		around := r.around[code]
		if len(copies) > had {
			copied[code] = true
			with[around]++
		}
		if len(copies) > had || !copied[code] {
			products[around]++
		}
	}
	maps.DeleteFunc(copies, func(row int32, _ bool) bool { return unsure[row] && other[r.t.Lives[row].Requested] })
	maps.DeleteFunc(sizes, func(n int64, _ bool) bool { return other[n] })
	for row := range copies {
		if firsts[row] || sizes[r.t.Lives[row].Requested] {
			sure[r.around[r.code(row)]]++
		}
	}
	maps.DeleteFunc(copies, func(row int32, _ bool) bool {
		around := r.around[r.code(row)]
		return with[around]*2 < products[around] || sure[around]*4 < products[around]
	})
	left := map[int64]bool{}
	for row := range copies {
		left[r.t.Lives[row].Requested] = true
	}
	maps.DeleteFunc(sizes, func(n int64, _ bool) bool { return !left[n] })
	return copies, sizes
}

// owe brings in the gradients of smaller batches before a pass that stops before it has made its own: those of the pass
// before it, or one for each parameter.
func (d *draft) owe(i int) {
	p := &d.passes[i]
	made := map[int64]int{} // by size
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.gradient(row) {
			made[d.sizes[row]]++
		}
	}
	all := span{0, p.rows.to}
	of := func(row int32) bool { return d.is(row, category.Parameter) }
	if i > 0 {
		all = d.passes[i-1].rows
		of = func(row int32) bool { return d.gradient(row) && d.end(row) <= p.first }
	}
	until := int32(whatif.Never)
	if int(p.end) < d.t.Trace.Len() {
		until = p.end
	}
	for row := all.from; row < all.to; row++ {
		switch n := d.sizes[row]; {
		case !of(row):
		case made[n] > 0:
			made[n]--
		default:
			d.add(row, p.first, until)
		}
	}
}

// ofBatch reports whether a row of a pass depends on the batch, as all does but for what steps share or the optimizer makes.
func (d *draft) ofBatch(row int32) bool {
	switch c, _ := d.uses.Of(row); c {
	case category.Parameter, category.OptimizerState, category.Workspace, category.Communication:
		return false
	}
	return d.phase(row) != inOptimizer && !d.scratch(row) && !d.ofParameters(row)
}

// pile has the gradient of the passes before there from the beginning of one, unless that is put in, and has the one
// go when it is added to that, or what another change has in its place, as where torch.autocast has it go over to 32 bits.
func (d *draft) pile(p *pass, row int32) {
	end := d.last(row)
	at := d.complete(row)
	if end <= at {
		return
	}
	if p.stop != whatif.Never {
		d.add(row, p.first, end)
	}
	d.ends[row] = at
	if !d.drop[row] {
		return
	}
	for i := range d.added {
		if x := &d.added[i]; x.Like == row && x.Born >= p.begin && x.Freed == end {
			x.Freed = max(at, x.Born)
		}
	}
}

// moment is something that begins or ends in a pass, in the order in which whatif.Edits are made.
type moment struct {
	event, part, turn int32 // part is 0 before the recorded operation, 1 for that, 2 behind it
	life              int   // of those that repeat adds, or ^ that of one added before
	ends              bool
}

// repeat puts a pass in before itself, from an event on, with the first of the lives that were added. Its gradients stay
// until those of the pass would end. Gradients of passes before that are open may go on the way to the loss. It gives what is
// open then.
func (d *draft) repeat(p *pass, first int32, added int, open []int) []int {
	var at []moment
	var made []extra
	goes, bound := d.replaced(p, added), d.boundAgain(p, first)
	takes := map[snapshot.StackID]bool{} // what goes in the repeated pass, in place of what was there before it
	put := func(x extra, born, dies moment) {
		born.life, dies.life, dies.ends = len(made), len(made), true
		made = append(made, x)
		at = append(at, born)
		if end := goes[d.t.Lives[x.Like].Stack]; dies.event >= p.end && end > born.event && end < p.end {
			dies = moment{end, 2, 0, dies.life, true}
			takes[d.t.Lives[x.Like].Stack] = true
		}
		switch {
		case d.gradient(x.Like) && d.t.Lives[x.Like].Born >= p.begin && dies.event >= p.end:
			made[len(made)-1].Freed = dies.event
		case dies.event >= p.end && bound[d.t.Lives[x.Like].Stack] > first:
			made[len(made)-1].Freed = bound[d.t.Lives[x.Like].Stack]
		case dies.event == whatif.Never:
			made[len(made)-1].Freed = whatif.Never
		default:
			dies.event = min(dies.event, p.end)
			at = append(at, dies)
		}
	}
	for i := range d.added[:added] {
		x := d.added[i]
		if x.Born < first || x.Born >= p.end {
			continue
		}
		dies := moment{event: x.Freed, part: 2, turn: int32(len(d.t.Lives) + i)}
		if x.Until != 0 {
			dies.part, dies.turn = 0, x.Until
		}
		put(x, moment{event: x.Born, turn: x.Turn}, dies)
	}
	for row := p.rows.from; row < p.rows.to; row++ {
		l := &d.t.Lives[row]
		if d.drop[row] || l.Born < first || l.Born >= p.end || d.is(row, category.Communication) {
			continue
		}
		stays := d.last(row) == whatif.Never && !d.gradient(row)
		again := goes[l.Stack] > l.Born
		if stays && !again && !d.is(row, category.Workspace) {
			continue // it is made once
		}
		dies := moment{event: d.last(row), part: 1}
		if d.ends[row] != whatif.AsRecorded {
			dies.part, dies.turn = 2, row
		}
		put(extra{Life: whatif.Life{Like: row}, parts: 1}, moment{event: l.Born, part: 1}, dies)
		d.drop[row] = d.drop[row] || stays && !again
	}
	for row := d.earlier(p).from; row < p.rows.from; row++ {
		l, end := &d.t.Lives[row], d.last(row)
		if end <= first || end >= p.begin || l.Born < 0 || takes[l.Stack] || d.drop[row] || d.gradient(row) {
			continue
		}
		at = append(at, moment{end, 2, 0, len(made), true})
		made = append(made, extra{Life: whatif.Life{Born: l.Born, Like: row}, parts: 1})
		d.drop[row] = true
	}
	open = slices.DeleteFunc(open, func(i int) bool {
		x := &d.added[i]
		ends := x.Born < first && x.Freed > first && x.Freed < p.begin
		if ends {
			at = append(at, moment{x.Freed, 2, 0, ^i, true})
		}
		return ends || x.Freed <= first
	})
	sorting.Stable(at, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.part, b.part), cmp.Compare(a.turn, b.turn))
	})
	d.turnFirst(first, int32(len(at)))
	for i, m := range at {
		var x *extra
		if m.life < 0 {
			x = &d.added[^m.life]
		} else {
			x = &made[m.life]
		}
		if turn := int32(i) + 1; m.ends {
			x.Freed, x.Until = first, turn
		} else {
			x.Born, x.Turn = first, turn
		}
	}
	for i := range made {
		if made[i].Until == 0 && d.gradient(made[i].Like) {
			open = append(open, len(d.added)+i)
		}
	}
	d.added = append(d.added, made...)
	return open
}

// loopOf is the event at which a pass begins anew for the next batch. The first begins with the recording, and makes
// the model before, and what else no later pass makes and stays, as averages of parameters do; and what calls modules of
// which backward needs nothing, as an evaluation does, is not of it: what comes before the last input, or in few passes alone.
func (r *run) loopOf(p *pass) int32 {
	trains := map[int32]bool{} // by the code around the outermost call of a module, 0 for none
	// The first row that a module makes for it: what comes behind is of the pass, though it is made once and stays.
	until := p.rows.to
	graphs := r.graphs(p)
	for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
		if r.saved(p, row) || graphs[row] {
			around := r.around[r.t.Lives[row].Stack]
			if trains[around] = true; around != 0 {
				until = min(until, row)
			}
		}
	}
	if len(trains) == 0 {
		return p.begin
	}
	from := p.rows.from
	again := r.madeAgain(p)
	input := int32(-1) // the last that the pass is given: what comes before it and keeps nothing is an evaluation of another batch
	for row := from; row < until && int(until) < len(r.t.Lives); row++ {
		if r.is(row, category.Input) && r.end(row) > r.t.Lives[until].Born {
			input = row
		}
	}
	for row := from; row < until && r.t.Lives[row].Born < p.begin; row++ {
		stack := r.t.Lives[row].Stack
		around, once := r.around[stack], again != nil && !again[stack]
		evaluates := row < input || input < 0 && !trains[0] || !r.often[around]
		if r.is(row, category.Parameter) || around != 0 && !trains[around] && evaluates ||
			around == 0 && once && r.end(row) >= p.end && !r.is(row, category.Workspace) {
			from = row + 1
		}
	}
	if from > p.rows.from && int(until) < len(r.t.Lives) {
		from = r.overWith(from-1, until)
	}
	for row := from; row < p.rows.to; row++ {
		if r.phase(row) == inProgram {
			return r.t.Lives[row].Born
		}
	}
	return p.begin
}

// overWith is the row behind one that a module makes which is first not made by the same call of the program's own, as of a function
// that computes what a loss needs of what the module gives, and up to one that a module makes in another call.
func (r *run) overWith(row, until int32) int32 {
	own, other := r.outside(r.stack(r.code(row))), r.outside(r.stack(r.code(until)))
	same := inCommon(own, other)
	if row++; same == len(own) {
		return row
	}
	call := own[len(own)-1-same:]
	for row < until {
		stack := r.stack(r.code(row))
		if len(stack) < len(call) || !slices.Equal(stack[len(stack)-len(call):], call) {
			break
		}
		row++
	}
	return row
}

// findOften finds the calls of modules that most of the passes have that go back through the same one last: two networks that are
// trained in turn have passes of their own, while what generates before several updates, or evaluates behind some, is of few of one's.
func (r *run) findOften() {
	type turn struct{ last, around int32 } // by numbers of the frames around
	r.often = map[int32]bool{}
	all, in := map[int32]int{}, map[turn]int{}
	for i := range r.passes {
		p := &r.passes[i]
		calls, last := map[int32]bool{}, int32(0)
		for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
			if around := r.around[r.code(row)]; around != 0 {
				calls[around] = true
				if r.saved(p, row) {
					last = around
				}
			}
		}
		if last == 0 {
			continue // it trains nothing, as what comes behind the last step
		}
		all[last]++
		for around := range calls {
			in[turn{last, around}]++
		}
	}
	for t, n := range in {
		r.often[t.around] = r.often[t.around] || 2*n > all[t.last]
	}
}

// madeAgain are the stacks of the passes behind it where a pass is the first, nil for others and for the only one.
func (r *run) madeAgain(p *pass) map[snapshot.StackID]bool {
	if len(r.passes) < 2 || r.passes[0].first != p.first {
		return nil
	}
	out := map[snapshot.StackID]bool{}
	for row := r.passes[1].rows.from; int(row) < len(r.t.Lives); row++ {
		out[r.t.Lives[row].Stack] = true
	}
	return out
}

// outside are the frames around the outermost call of a module, nil for none.
func (r *run) outside(stack []snapshot.FrameID) []snapshot.FrameID {
	for depth, id := range slices.Backward(stack) {
		if frames.Of(r.s, id).IsModuleCall() {
			return stack[depth+1:]
		}
	}
	return nil
}

// earlier are the rows from the pass before one on that begins with the same code, up to it, as others come between where two networks
// are trained in turn; from the one right before it where none does, and of the first all before it.
func (r *run) earlier(p *pass) span {
	begins := func(p *pass) snapshot.StackID {
		for row := p.rows.from; row < p.rows.to; row++ {
			if r.phase(row) == inProgram {
				return r.code(row)
			}
		}
		return snapshot.EmptyStack
	}
	out, code := span{0, p.rows.from}, begins(p)
	before := r.passes[:sort.Search(len(r.passes), func(i int) bool { return r.passes[i].rows.to > p.rows.from })]
	if len(before) > 0 {
		out.from = before[len(before)-1].rows.from
	}
	const far = 64 // passes
	for i := len(before) - 1; i >= max(len(before)-far, 0); i-- {
		if begins(&before[i]) == code {
			out.from = before[i].rows.from
			break
		}
	}
	return out
}

// replaced tells by stack when in a pass what it allocated before is let go of: a variable that is assigned anew.
func (d *draft) replaced(p *pass, added int) map[snapshot.StackID]int32 {
	out, from := map[snapshot.StackID]int32{}, d.earlier(p).from
	goes := func(row, end int32) {
		if row >= from && row < p.rows.from && end >= p.first && end < p.end {
			out[d.t.Lives[row].Stack] = end
		}
	}
	for row := from; row < p.rows.from; row++ {
		goes(row, d.last(row))
	}
	for i := range d.added[:added] {
		goes(d.added[i].Like, d.added[i].Freed)
	}
	return out
}

// boundAgain tells by stack when in the first pass what it allocated from an event on would be let go of if another pass
// had come before: where the next pass lets go of that of the first.
func (d *draft) boundAgain(p *pass, first int32) map[snapshot.StackID]int32 {
	i := slices.IndexFunc(d.passes, func(q pass) bool { return q.first > p.first })
	if i < 0 {
		return nil
	}
	next := &d.passes[i]
	start := d.loopOf(next)
	// which tells a row of the next pass by its stack and how often that came before. Programs that train two networks in
	// turn call the same modules from several lines.
	type which struct {
		stack snapshot.StackID
		n     int
	}
	name := func(p *pass, from int32, each func(row int32, w which)) {
		seen := map[snapshot.StackID]int{}
		for row := p.rows.from; row < p.rows.to; row++ {
			if l := &d.t.Lives[row]; l.Born >= from {
				stack := cmp.Or(d.insides[l.Stack], l.Stack)
				each(row, which{stack, seen[stack]})
				seen[stack]++
			}
		}
	}
	names := map[int32]which{}
	name(next, start, func(row int32, w which) { names[row] = w })
	rows := map[which]int32{}
	name(p, first, func(row int32, w which) { rows[w] = row })
	out := map[snapshot.StackID]int32{}
	for row := p.rows.from; row < p.rows.to; row++ {
		l := &d.t.Lives[row]
		end := d.last(row)
		if l.Born < first || end < next.first || end >= next.end || d.gradient(row) {
			continue
		}
		if at, ok := rows[names[d.lastBefore(end)]]; ok && d.t.Lives[at].Born < p.end {
			out[l.Stack] = d.t.Lives[at].Born
		}
	}
	return out
}

// narrow makes the elements of a category half as large.
func (d *draft) narrow(of func(row int32) bool, e *Applied) {
	for row := range d.rows() {
		if of(row) && !d.beside(row) && !d.settled[row] && !d.scratch(row) && !d.partial(row) {
			d.sizes[row] = (d.sizes[row] + 1) / 2
			d.settled[row] = true
			e.count(d.run, row)
		}
	}
}

// convertParameters has parameters made with 32 bits for an element, and converted when all that a line of the program makes are there
// (torch.nn.Module.to).
func (d *draft) convertParameters() {
	s := &sharder{draft: d}
	recorded := d.p.Unchanged().Sizes
	line := func(row int32) snapshot.FrameID {
		stack := d.stack(d.t.Lives[row].Stack)
		own := func(id snapshot.FrameID) bool {
			c := frames.Of(d.s, id)
			return !c.IsLibrary() && !c.Has(frames.Constructor)
		}
		if i := slices.IndexFunc(stack, own); i >= 0 {
			return stack[i]
		}
		return 0
	}
	s.replace(line, func(row int32) (whole, part int64) { return recorded[row], d.sizes[row] })
	s.write()
}

// beside reports whether a row is what an operation of a pass makes beside its result, in a type of its own: the mask of
// a dropout has a byte for each element of 32 bits, and statistics of a normalization stay in 32 bits.
func (d *draft) beside(row int32) bool {
	const statistics = 32 // times smaller
	l := &d.t.Lives[row]
	if d.phase(row) != inProgram || int(row) < d.warm || d.is(row, category.Parameter) || l.Requested < 512 ||
		d.convolves(row) || d.resultOfProduct(row) { // which make none
		return false
	}
	same := func(other int32) int64 { // what the same operation asks for, 0 for another
		if int(other) < d.warm || int(other) >= len(d.t.Lives) || d.t.Lives[other].Stack != l.Stack ||
			d.is(other, category.Workspace) || d.otherOperator(other, row) {
			return 0
		}
		return d.t.Lives[other].Requested
	}
	before, behind := same(row-1), same(row+1)
	if before >= statistics*l.Requested || same(row-2) >= statistics*l.Requested {
		return true
	}
	if before == l.Requested || behind == l.Requested {
		return false
	}
	// A dropout makes its mask first. Other code makes one of what it has, and two results on one line are more often that.
	return before == 4*l.Requested || behind == 4*l.Requested && frames.Of(d.s, d.stack(l.Stack)[0]).IsLibrary()
}
