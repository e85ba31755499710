package change

import (
	"cmp"
	"slices"
)

// offloading has what the operations of a pass save go to the host's memory, and come back when their nodes begin
// (torch.autograd.graph.save_on_cpu): each has a copy of its own of what several of them save.
type offloading struct {
	nodes
	e       *Applied
	saved   []int32
	bySize  map[int64][]int32 // what is saved, by the requested size, and in the order of ends
	convs   map[int64]bool    // requested sizes of the results of convolutions
	gates   map[int32]gate    // by what goes in, and by what their activation functions make
	scaled  map[int32]bool    // by the event before them, nodes that bringScaled found
	brought []offloaded
	ends    []int32 // of these products, in order
	first   span    // the node of the first of what has weights, which backward comes to last; 0 for none
}

// offloaded is a product whose node brings its weight back behind its input, or before it: a node unpacks what it saved in the order
// of names (tools/autograd/gen_autograd_functions.py), as mat1 and mat2 of addmm, input and weight of a convolution, mat2 and self of mm.
type offloaded struct {
	product
	weightLast bool
}

// offloadSaved moves what backward needs to the host's memory, and back right before it is needed.
func (d *draft) offloadSaved(e *Applied) {
	for i := range d.passes {
		p := &d.passes[i]
		x := &offloading{nodes: nodes{d, p, d.weighing(p)}, e: e, bySize: map[int64][]int32{}, convs: map[int64]bool{},
			gates: map[int32]gate{}, scaled: map[int32]bool{}}
		x.saved = slices.DeleteFunc(d.savedRows(p), func(row int32) bool { return d.drop[row] })
		for _, row := range x.saved {
			x.bySize[d.sizes[row]] = append(x.bySize[d.sizes[row]], row)
		}
		for _, rows := range x.bySize {
			slices.SortFunc(rows, func(a, b int32) int { return cmp.Or(cmp.Compare(d.end(a), d.end(b)), cmp.Compare(a, b)) })
		}
		x.findProducts()
		x.findGates()
		x.bringWeights(false)
		x.moveSaved()
		x.bringScaled()
		x.bringFactors()
		x.bringInput()
		x.moveGraphs()
		x.bringWeights(true)
	}
}

// weighing gives a function that reports whether a row is the gradient of a parameter, or of one of several uses of it.
func (d *draft) weighing(p *pass) func(row int32) bool {
	added := map[int32]bool{}
	for row := p.rows.from; row < p.rows.to; row++ {
		if d.gradient(row) {
			for _, part := range d.addends(row) {
				added[part] = true
			}
		}
	}
	return func(row int32) bool {
		_, part := d.partOf[row]
		return part || added[row] || d.gradient(row)
	}
}

// bring has a copy of a row, which went to the host for one operation, come back after an event, and go after another.
func (x *offloading) bring(row, from, to int32) {
	x.add(row, from, max(to, from))
	x.e.moved += 2 * x.sizes[row]
}

// moveSaved moves what is saved, and brings it back for the node that lets go of it, and for others that read it before.
func (x *offloading) moveSaved() {
	before := x.freedBefore()
	next := int32(-1) // where a request fails in backward, the one that is back for the operation that needs it
	for _, row := range x.saved {
		if !x.p.open && x.end(row) >= x.p.stop {
			next = row
		}
	}
	var products []product
	for _, n := range x.brought {
		products = append(products, n.product)
	}
	uses, held := x.usesOf(products, x.saved), x.held(x.p)
	for k, row := range x.saved {
		end := x.last(row)
		if held[row] {
			for _, u := range uses[row] {
				x.add(row, u.from, u.to)
			}
			x.e.leaves = max(x.e.leaves, x.sizes[row])
			continue
		}
		over, _ := x.stays(row)
		// What was cloned is over with its operation, which works in the other.
		if of := x.cloneOf(row); of >= 0 {
			x.longer(of, over)
			over = x.operationOf(row)
		}
		if !x.until(row, over) {
			continue
		}
		x.e.count(x.run, row)
		from := max(before[k], x.begins(end))
		for _, u := range uses[row] {
			x.bring(row, u.from, x.unpacked(row, u.to))
			from = max(from, u.to)
		}
		switch {
		case row == next:
			from = x.overBefore(x.p.stop)
		case x.end(row) >= x.p.stop:
			x.e.moved += x.sizes[row]
			continue // the recording ends before it is needed
		}
		from = min(from+1, end)
		x.bringLogarithms(row, from)
		x.bringPooled(k, from, end)
		x.bringSaved(row, from, x.unpacked(row, end))
	}
}

// findGates finds gated units, which save halves of what they are given: such a view is copied on the way to the host, as its elements do
// not lie together (aten/src/ATen/native/cuda/Copy.cu: copy_requires_temporaries).
func (x *offloading) findGates() {
	for _, row := range x.saved {
		g, ok := x.gateAt(x.p, row)
		if !ok {
			continue
		}
		x.gates[g.halved], x.gates[g.activated] = g, g
		for _, made := range []int32{g.activated, g.product} {
			if made == g.activated && x.withProduct(g) == g.halved {
				continue // it saves its result
			}
			at := x.t.Lives[made].Born
			half := x.add(g.activated, at, at)
			half.Turn = x.turn(at, 2)
			half.Until = half.Turn + 1
		}
	}
}

// bringSaved brings a row back for the node that lets go of it. Where halves of it were saved, each comes back as a tensor of its own: one
// for the node of the product, with what is multiplied by that, the other, or that again, for the node of the activation function.
func (x *offloading) bringSaved(row, from, to int32) {
	g, ok := x.gates[row]
	if !ok {
		x.bring(row, from, to)
		return
	}
	x.bring(g.activated, from, to)
	if row == x.withProduct(g) {
		x.bring(g.activated, from, to)
	}
}

// freedBefore gives for each row that is saved when the last one of an earlier node of backward was freed: what one node lets go
// of together was back together.
func (x *offloading) freedBefore() []int32 {
	ends := []int32{x.p.begin - 1}
	for _, row := range x.saved {
		ends = append(ends, max(x.end(row), x.p.begin-1))
	}
	slices.Sort(ends)
	out := make([]int32, len(x.saved))
	for k, row := range x.saved {
		i, _ := slices.BinarySearch(ends, x.end(row))
		i--
		for i > 0 && !x.byProgram(row) && x.lastBefore(ends[i]) == x.lastBefore(x.end(row)) {
			i--
		}
		out[k] = ends[max(i, 0)]
	}
	return out
}

// begins is the event after which the node begins that lets go of a row at an event: those of products before it let go of nothing
// where another operation saved their input, too.
func (x *offloading) begins(end int32) int32 {
	begin := x.before(end)
	if last := x.lastBefore(end); int(last) < len(x.t.Lives) {
		i, _ := slices.BinarySearch(x.ends, x.t.Lives[last].Born)
		if i > 0 {
			begin = max(begin, x.ends[i-1])
		}
	}
	return x.behindSum(begin)
}

// behindSum is the event after which the gradient of a bias is summed up that comes first behind another: the node of a sum saved nothing,
// and a node that did sums up last.
func (x *offloading) behindSum(event int32) int32 {
	sum := x.lastBefore(event+1) + 1
	if event < x.p.begin || !x.partialsAt(sum) || x.end(sum+1) >= x.p.stop {
		return event
	}
	return max(event, x.end(sum+1), x.end(sum+2))
}

// bringLogarithms brings a row back for the node of a negative log-likelihood, too, where it is of the logarithms that a cross entropy
// gives that: a log-softmax saves its result, and that is its input (aten/src/ATen/native/LossNLL.cpp, cross_entropy_loss).
func (x *offloading) bringLogarithms(row, from int32) {
	own, over := x.stack(x.code(row)), from-1
	if len(own) == 0 || !x.isCrossEntropy(own, 0) || over <= x.p.begin {
		return
	}
	if last := x.lastBefore(over); x.sizes[last] == x.sizes[row] && x.t.Lives[last].Born >= x.p.begin {
		x.bring(row, max(x.before(over)+1, x.p.begin), over)
	}
}

// bringPooled brings the input of a max_pool back with its indices, which are the k-th of what is saved: an activation function before
// it saved that as its result, and lets go of it.
func (x *offloading) bringPooled(k int, from, to int32) {
	indices := x.saved[k]
	made := x.operation(indices)
	if !x.indexes(indices) {
		return
	}
	for _, row := range slices.Backward(x.saved[:k]) {
		if row < made.from && x.sizes[row] >= made.least && !x.byproduct(row) {
			if x.end(row) > to {
				x.bring(row, from, to)
			}
			return
		}
	}
}

// bringScaled brings back what a node multiplies, behind which the gradient of a factor with fewer elements is summed up, as of the
// reciprocal of a norm: another node of the norm lets go of that later.
func (x *offloading) bringScaled() {
	const small, fewer = 4096, 16 // bytes, and times
	for row := x.p.rows.from; int(row)+2 < len(x.t.Lives) && row < x.p.rows.to; row++ {
		l, other, sum := &x.t.Lives[row], &x.t.Lives[row+1], &x.t.Lives[row+2]
		if l.Born < x.p.begin || l.Born >= x.p.stop || l.Requested != other.Requested || sum.Requested*fewer > l.Requested ||
			x.sizes[row] < small || slices.ContainsFunc([]int32{row, row + 1, row + 2}, x.gradient) {
			continue
		}
		begin, over := x.overBefore(l.Born), x.nodeOver(row+2)
		if x.overBefore(other.Born) != begin || x.end(row) > over && x.end(row+1) > over {
			continue
		}
		if rows := x.goesAfter(x.sizes[row], l.Born); len(rows) > 0 && x.before(x.end(rows[0])) > begin {
			x.bring(rows[0], begin+1, sum.Born-1)
			x.scaled[begin] = true
		}
	}
}

// bringFactors brings back what the node of a product of two reads, whose gradients it makes, where it lets go of one alone: the other
// is mostly the result of an activation function, whose node lets go of it later.
func (x *offloading) bringFactors() {
	const small, two = 4096, 2 // bytes, and rows
	from := x.lastBefore(x.p.begin) + 1
	for from < x.p.rows.to {
		begin, to := x.overBefore(x.t.Lives[from].Born), from+1
		for to < x.p.rows.to && x.overBefore(x.t.Lives[to].Born) == begin {
			to++
		}
		last, over := x.t.Lives[to-1].Born, x.p.stop
		if int(to) < len(x.t.Lives) {
			over = min(over, x.t.Lives[to].Born)
		}
		var made []int64 // sizes
		weighs := false
		for row := from; row < to; row++ {
			weighs = weighs || x.gradient(row)
			if x.sizes[row] >= small && x.end(row) > over && !x.works(row) {
				made = append(made, x.sizes[row])
			}
		}
		if from = to; weighs || x.scaled[begin] || len(made) != two {
			continue
		}
		gone, other := x.letGo(made[0], last, over), x.letGo(made[1], last, over)
		switch {
		case made[0] == made[1] && gone == 1, gone > 0 && other == 0:
			x.bringNext(made[1], begin+1, last, over)
		case other > 0 && gone == 0:
			x.bringNext(made[0], begin+1, last, over)
		}
	}
}

// goesAfter are the rows of a size that are saved and let go of after an event, in that order.
func (x *offloading) goesAfter(size int64, event int32) []int32 {
	rows := x.bySize[size]
	i, _ := slices.BinarySearchFunc(rows, event, func(of, event int32) int { return cmp.Compare(x.end(of), event+1) })
	return rows[i:]
}

// letGo counts the rows of a size that are let go of between two events.
func (x *offloading) letGo(size int64, from, to int32) (n int) {
	for _, row := range x.goesAfter(size, from) {
		if x.end(row) >= to {
			break
		}
		n++
	}
	return n
}

// bringNext brings the row of a size back that is let go of next after an event, for a node before that, unless it is a part of a larger
// one that goes earlier, as of a result that is split.
func (x *offloading) bringNext(size int64, from, to, over int32) {
	const parts = 4
	rows := x.goesAfter(size, over)
	if len(rows) == 0 || x.before(x.end(rows[0])) < to {
		return
	}
	for n := int64(2); n <= parts; n++ {
		if of := x.goesAfter(n*size, over); len(of) > 0 && x.end(of[0]) < x.end(rows[0]) {
			return
		}
	}
	x.bring(rows[0], from, to)
}

// bringInput brings back what a pass is given, for the node of the first product: it is no less saved for being there anyway.
func (x *offloading) bringInput() {
	in := x.floats(x.p)
	if in < 0 {
		return
	}
	if x.first != (span{}) {
		x.bring(in, x.first.from+1, x.first.to)
	}
}

// moveGraphs moves what graphs keep that no backward pass of the recording goes through.
func (x *offloading) moveGraphs() {
	for row, keeps := range x.graphs(x.p) {
		if !keeps || x.savedBehind(x.p, row) != nil {
			continue
		}
		if over, _ := x.stays(row); x.until(row, over) {
			x.e.count(x.run, row)
			x.e.moved += x.sizes[row]
		}
	}
}

// leastOffloaded is the size of a gradient from which on its weight is told from a vector: what is smaller hardly matters.
const leastOffloaded = 512

// findProducts finds the nodes of products, those of convolutions that have few channels too.
func (x *offloading) findProducts() {
	for row := x.p.rows.from; row < x.p.rows.to; row++ {
		if x.phase(row) == inProgram && x.convolves(row) {
			x.convs[x.t.Lives[row].Requested] = true
		}
	}
	for row, node := range x.weightGradients(leastOffloaded) {
		node.from = x.behindSum(node.from)
		if x.first = node; x.normalizes(row, node) {
			continue
		}
		given := int32(-1)
		conv := x.convolvesIn(node)
		if !conv {
			given = x.givenNext(row, node)
		}
		if given < 0 {
			given = x.givenOn(row, node, leastOffloaded)
		}
		if given < 0 {
			continue
		}
		to := node.to
		if !conv {
			to = x.silent(max(row, given), to)
		}
		n := x.product(row, given, node)
		n.to = to
		x.brought = append(x.brought, offloaded{n, conv || x.biasIn(node)})
		x.ends = append(x.ends, to)
	}
	slices.Sort(x.ends)
}

// convolvesIn reports whether the node of a convolution is at work, by the gradient that it was given.
func (x *offloading) convolvesIn(node span) bool {
	row := x.ended[node.to] - 1
	return row >= 0 && x.convs[x.t.Lives[row].Requested]
}

// normalizes reports whether the node of a gradient makes another of its size, as that of a normalization does of a weight and a bias.
func (x *offloading) normalizes(row int32, node span) bool {
	for _, other := range []int32{row - 1, row + 1} {
		if other < 0 || int(other) == len(x.t.Lives) {
			continue
		}
		l := &x.t.Lives[other]
		if l.Born > node.from && l.Born <= node.to && l.Requested == x.t.Lives[row].Requested && x.gradient(other) {
			return true
		}
	}
	return false
}

// biasIn reports whether a node makes the gradient of a bias, too.
func (x *offloading) biasIn(node span) bool {
	for row := x.lastBefore(node.to + 1); row >= 0 && x.t.Lives[row].Born > node.from; row-- {
		if x.gradient(row) && x.bias(row, node) {
			return true
		}
	}
	return false
}

// givenNext is what a product of matrices gives on right behind the gradient of its weight, -1 for none.
func (x *offloading) givenNext(gradient int32, node span) int32 {
	next := gradient + 1
	for int(next)+1 < len(x.t.Lives) && x.works(next) {
		next++
	}
	if int(next)+1 >= len(x.t.Lives) || !x.makes(next, node, leastOffloaded) || x.partialsAt(next) ||
		x.end(next) <= x.t.Lives[next+1].Born {
		return -1
	}
	return next
}

// silent is the event after which a product is over that has made all of its rows, before another, after which the next node that lets
// go of something is.
func (x *offloading) silent(last, over int32) int32 {
	for next := last + 1; int(next) < len(x.t.Lives) && x.t.Lives[next].Born <= over; next++ {
		if !x.works(next) && !x.gradient(next) && x.sizes[next] >= leastOffloaded && x.end(next) > over {
			return x.t.Lives[next].Born - 1
		}
	}
	return over
}

// bringWeights brings back the weights of products whose nodes unpack these last, or those of the others.
func (x *offloading) bringWeights(last bool) {
	for _, n := range x.brought {
		if n.weightLast == last {
			x.bring(n.gradient, n.from, x.unpacked(n.gradient, n.to))
		}
	}
}
