package change

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// told finds the types of what is made on the way to a pass by the operators that make it, where C++ tells these. What an operator is
// given is not recorded: it is taken to be what was made last and was given to no other yet, as far as sizes allow that.
type told struct {
	*autocast
	made   []value
	alive  []int                      // places in made of what was there when some was left out last, and of what was made since
	most   int                        // how many those were
	took   int                        // the place in made of what an operator took last, -1 for nothing
	sums   map[int64]value            // by size, the last sum with what went around some operators
	paired map[snapshot.StackID]value // by code, what an operator of two made last
	// besides are gradients that backward makes for operators that are no products: of parameters, and of what has a smaller shape than
	// what it is added to or multiplied with.
	besides []int32
	claimed map[int32]bool // of these, those of what was multiplied: an addition behind that makes none
}

// value is what operators may be given.
type value struct {
	row   int32
	half  bool
	taken bool
	by    snapshot.StackID // the code that took it last, of operators of one
}

const (
	farAway  = 4096 // places in alive
	recently = 8    // places in made
	muchMore = 64   // times
	number   = 8    // bytes: it has no shape, and settles no type
)

// tells reports whether C++ tells the operators of most of what is made on the way to the pass.
func (x *autocast) tells() bool {
	known := 0
	for _, row := range x.forward {
		if x.operator(row).Name != "" {
			known++
		}
	}
	return 2*known > len(x.forward)
}

// typesTold finds the types of what is made on the way to the pass.
func (x *autocast) typesTold() {
	t := told{autocast: x, sums: map[int64]value{}, paired: map[snapshot.StackID]value{}, claimed: map[int32]bool{}}
	t.findBesides()
	t.powers()
	at := 0
	for row := x.pass.rows.from; row < x.pass.rows.to && x.t.Lives[row].Born < x.pass.begin; row++ {
		switch o := x.operator(row); {
		case at < len(x.forward) && x.forward[at] == row:
			at++
			t.find(row, o)
		case x.is(row, category.Input):
			t.give(value{row: row})
		case o.Copies && o.Precision != frames.AsGiven:
			x.narrow[row] = o.Precision != frames.Full
		}
	}
}

// findBesides finds them, but for those of biases, which products make.
func (t *told) findBesides() {
	for row := max(t.pass.rows.from, 1); row < t.pass.rows.to; row++ {
		o := t.operator(row)
		sum := o.SumsUp() && t.phase(row) == inBackward
		bias := sum && t.operator(row-1).GivesOn() == frames.Half
		_, part := t.partOf[row]
		if (t.gradient(row) || part || sum) && o.GivesOn() == frames.AsGiven && !bias && !t.partial(row) {
			t.besides = append(t.besides, row)
		}
	}
}

// find finds the type of a row.
func (t *told) find(row int32, o frames.Operator) {
	of, _ := t.precision(row)
	half := false
	switch {
	case o.Kind == frames.Counts, t.places(row, o), t.ofParameters(row):
		return // nothing computes with it, or torch.autocast does not see it
	case t.unfolds(row):
		t.narrow[row] = !t.outside[row]
		return
	case t.ofWeight(row, o.Name):
		half = true
	case t.masks(row), o.Kind == frames.Makes:
	case of == frames.Full:
		if t.take(row, o) && o.Precision == frames.Full {
			t.widened = append(t.widened, widened{t.made[t.took].row, row})
		}
	case of != frames.AsGiven:
		half = true
		if !o.Copies {
			t.takeAll(row, o)
			t.products = append(t.products, product16{row: row, weighs: of == frames.Weighs})
		}
	case o.Kind == frames.Alike:
		half = t.like(row)
	case o.Kind == frames.Joins:
		half = t.join(row, o)
	case o.Kind == frames.Pairs:
		half = t.pair(row, o)
	case !t.isParameter(t.besideOf(row, o)):
		half = t.take(row, o)
	}
	half = half && !t.wide[row] && !t.outside[row]
	t.own[row] = o.SavesResult() && (of == frames.AsGiven || !half)
	_, t.normed[row] = t.norm(row)
	if half {
		t.makeNarrow(row)
	}
	if !o.Copies || of == frames.AsGiven {
		t.give(value{row: row, half: half})
	}
}

// give has operators take a value.
func (t *told) give(v value) {
	born := t.t.Lives[v.row].Born
	if len(t.alive) > 2*t.most {
		t.alive = slices.DeleteFunc(t.alive, func(k int) bool { return t.end(t.made[k].row) <= born })
		t.most = max(len(t.alive), recently)
	}
	t.made = append(t.made, v)
	t.alive = append(t.alive, len(t.made)-1)
}

// like reports whether what was made last of those of the size of a row has 16 bits, as what is made like it.
func (t *told) like(row int32) bool {
	for k := range t.there(row) {
		if t.sizeAt(k) == t.size(row) {
			return t.made[k].half
		}
	}
	return false
}

// places reports whether a row are the places of what an operator picks, of 64 bits each.
func (t *told) places(row int32, o frames.Operator) bool {
	if len(t.made) == 0 || o.Kind != frames.Picks {
		return false
	}
	last := t.made[len(t.made)-1].row
	return t.operationAt[last] == t.operationAt[row] && t.size(row) == 2*t.size(last)
}

func (t *told) size(row int32) int64 { return t.t.Lives[row].Requested }

// sizeAt is the size of what is at a place.
func (t *told) sizeAt(k int) int64 { return t.size(t.made[k].row) }

// there are the places of what is there when a row is made and was made not too long before, the last first.
func (t *told) there(row int32) func(yield func(k int) bool) {
	born := t.t.Lives[row].Born
	return func(yield func(k int) bool) {
		for i := len(t.alive) - 1; i >= max(len(t.alive)-farAway, 0); i-- {
			if k := t.alive[i]; t.end(t.made[k].row) > born && !yield(k) {
				return
			}
		}
	}
}

// isRecent reports whether what is at a place was made not long ago.
func (t *told) isRecent(k int) bool { return len(t.made)-k <= recently }

// take has the operator that makes a row take what it is given, and reports whether that has 16 bits.
func (t *told) take(row int32, o frames.Operator) bool {
	if t.again(row, o) {
		return t.made[t.took].half
	}
	n := t.size(row)
	latest, same := -1, -1
	for k := range t.there(row) {
		size := t.sizeAt(k)
		if t.isForSum(k, row, o) {
			continue
		}
		if latest < 0 && !t.made[k].taken && t.mayTake(size, row, o) {
			latest = k
		}
		if size == n {
			same = k
			break
		}
	}
	t.took = latest
	if latest < 0 || same >= 0 && same == latest-1 && !(t.made[same].taken && t.isPart(n, latest)) {
		t.took = same
	}
	if o.Name == "repeat" {
		t.took = t.repeated(row)
	} else if k := t.savedFor(row, o); k >= 0 {
		t.took = k
	} else if o.IsElementwise() {
		if k := t.within(row); k >= 0 {
			t.took = k
		}
	}
	if t.took < 0 {
		return false
	}
	t.made[t.took].taken, t.made[t.took].by = true, t.code(row)
	return t.made[t.took].half
}

// mayTake reports whether the operator that makes a row may be given what has a size.
func (t *told) mayTake(size int64, row int32, o frames.Operator) bool {
	n := t.size(row)
	switch {
	case o.Precision == frames.Weighs, o.Precision == frames.Half:
		return true
	case strings.HasPrefix(o.Name, "upsample") && size >= n, size*muchMore < n:
		return false
	case o.IsCopy(): // of a part, or of what it repeats
		return size > n && size <= n*muchMore || size > 0 && n%size == 0
	}
	return true
}

// isForSum reports whether what is at a place is taken to be an operand of a sum behind a row, and not what that is made of: what no graph
// keeps, and a layer that is trained would save, or what a layer gives to peft, which adds to it what an adapter makes of the same that the
// layer was given (peft/tuners/lora/layer.py: Linear.forward).
func (t *told) isForSum(k int, row int32, o frames.Operator) bool {
	of := t.made[k].row
	sum := t.lastBefore(t.end(of))
	if sum <= row || t.size(sum) != t.size(of) || t.operator(sum).Name != "add" {
		return false
	}
	if t.adapter(t.stack(t.code(sum))) == 0 && t.adapter(t.stack(t.code(of))) > 0 && t.adapter(t.stack(t.code(row))) > 0 {
		return true
	}
	last := t.neededBefore(row)
	return o.Precision == frames.Weighs && !t.saved(t.pass, of) && last >= 0 && t.weightAt(t.end(last)) >= 0
}

// isPart reports whether so many bytes may be a part of what is at a place, as queries are of what one layer makes with keys and values.
func (t *told) isPart(n int64, k int) bool {
	return n > number && t.sizeAt(k) > n && t.sizeAt(k)%n == 0
}

// repeated is the place of what was made last of what a row may be several times, -1 for none.
func (t *told) repeated(row int32) int {
	for k := range t.there(row) {
		if t.sizeAt(k) > number && t.sizeAt(k) < t.size(row) && t.size(row)%t.sizeAt(k) == 0 {
			return k
		}
	}
	return -1
}

// within is the place of what was made last of the size of a row that a function of the program's may have, and not only a graph: that
// was not given to the code of the row before, if there is such; -1 for none.
func (t *told) within(row int32) int {
	again, born := -1, t.t.Lives[row].Born
	for k := range t.there(row) {
		of := t.made[k].row
		if t.sizeAt(k) != t.size(row) || t.end(of) <= t.pass.last && t.saved(t.pass, of) && t.leaves(of) < born {
			continue
		}
		if t.made[k].by != t.code(row) {
			return k
		}
		if again < 0 {
			again = k
		}
	}
	return again
}

// savedFor is the place of what an operator's own node lets go of, of what no other took and of the size of a row: of several the one that
// goes last, for backward goes the other way; -1 for none.
func (t *told) savedFor(row int32, o frames.Operator) int {
	found := -1
	if o.SavesResult() || o.Precision == frames.Weighs {
		return found
	}
	for k := range t.there(row) {
		of := t.made[k].row
		if !t.made[k].taken && t.sizeAt(k) == t.size(row) && t.saved(t.pass, of) && t.nodeAt(t.end(of)).IsNodeOf(o.Name) &&
			(found < 0 || t.end(of) > t.end(t.made[found].row)) {
			found = k
		}
	}
	return found
}

// takeAll has a product take what it is given.
func (t *told) takeAll(row int32, o frames.Operator) {
	others := 1
	switch {
	case o.Precision == frames.Weighs:
		others = 0
	case o.Ruled == "scaled_dot_product_attention":
		others = 2
	}
	t.take(row, o)
	for k := range t.there(row) {
		if others == 0 || !t.isRecent(k) {
			break
		}
		if !t.made[k].taken {
			t.made[k].taken = true
			others--
		}
	}
}

// again reports whether an operator takes what the one before it took, or what is alike: of layers that are one product each, which make
// queries, keys and values, and of looking something up, in one statement.
func (t *told) again(row int32, o frames.Operator) bool {
	k := len(t.made) - 1
	if k < 0 || t.made[k].taken || t.took < 0 {
		return false
	}
	last := t.made[k].row
	was := t.operator(last)
	return o.Precision == frames.Weighs && was.Precision == frames.Weighs ||
		o.Name == was.Name && o.Kind == frames.LooksUp && t.code(row) == t.code(last)
}

// join has an operator put together what it is given, and reports whether all of that has 16 bits.
func (t *told) join(row int32, o frames.Operator) bool {
	const small = 8 // times smaller
	n := t.size(row)
	rest, half, parts := n, true, 0
	inner, both := false, false // whether the first part goes with one that stays in another function, and both have 16 bits
	for k := range t.there(row) {
		size := t.sizeAt(k)
		if t.made[k].taken || size > rest {
			continue
		}
		if parts++; parts == 1 { // with another of any time
			for other := range t.there(row) {
				switch {
				case other == k || t.sizeAt(other) != n-size:
				case t.isInner(t.made[other].row, row):
					inner, both = true, t.made[k].half && t.made[other].half
				default:
					t.made[k].taken, t.made[other].taken = true, true
					return t.made[k].half && t.made[other].half
				}
			}
		}
		t.made[k].taken = true
		half = half && t.made[k].half
		if rest -= size; rest == 0 {
			return half
		}
	}
	switch {
	case parts == 0:
		return t.take(row, o)
	case inner: // as large as what is joined, which may be taken already
		return both
	}
	return half && rest > n/small // else a parameter is in it
}

// isInner reports whether a row stays in a function which is called by that in which it might be joined to another: it makes something
// else behind it before it returns.
func (t *told) isInner(row, into int32) bool {
	own := t.stack(t.code(row))
	at := t.holder(own)
	k, _ := slices.BinarySearch(t.forward, row)
	if at <= t.run.together(row, into) || k+1 >= len(t.forward) {
		return false
	}
	next := t.stack(t.code(t.forward[k+1]))
	same, _ := t.inside(own, next, t.code(row), at)
	return same && t.line(next, at) >= t.line(own, at)
}

// pair has an operator take two, and reports whether both have 16 bits.
func (t *told) pair(row int32, o frames.Operator) (half bool) {
	n, beside := t.size(row), t.besideOf(row, o)
	around := false // the row may be a sum with what went around some operators
	defer func() {
		if n > number {
			t.paired[t.code(row)] = value{row: row, half: half}
		}
		if around {
			t.sums[n] = value{row: row, half: half}
		}
	}()
	if t.takesWide(row) {
		return false
	}
	first, second, same := t.operands(row)
	if first < 0 {
		if was, ok := t.paired[t.code(row)]; ok && row-was.row < 2*recently {
			return was.half
		}
		return same >= 0 && t.made[same].half
	}
	t.made[first].taken = true
	if t.widens(row, t.made[first].row) {
		return t.otherIsNarrow(row)
	}
	half = t.made[first].half
	around = o.Name == "add" && beside < 0 && (second < 0 || first-second > recently/2)
	small := t.smaller(row, beside)
	switch {
	case t.isParameter(beside):
		return false
	case small >= 0:
		t.made[small].taken = true
		return half && t.made[small].half
	case second >= 0 && first-second <= recently/2:
		t.made[second].taken = true
		return half && t.made[second].half
	case o.Name == "add" && t.masksScores(row):
		return false
	case t.sizeAt(first) < n && same >= 0:
		return half && t.made[same].half
	case beside >= 0: // of what is not seen: it is taken to have the same type
	case o.Name == "mul" && t.saved(t.pass, t.made[first].row) && t.nodeAt(t.end(t.made[first].row)).IsNodeOf(o.Name):
		if k := t.takenBefore(row, first); k >= 0 {
			return half && t.made[k].half
		}
	case o.Name == "add": // of what went around some operators
		if was, ok := t.sums[n]; ok {
			half = half && was.half && !t.isNormed(row, first, was)
		} else if k := t.oldest(row); k == first {
			half = half && !t.addsFixed(row, t.made[first].row)
		} else if k >= 0 {
			half = half && t.made[k].half
		}
	}
	return half
}

// isNormed reports whether a row adds what is at a place not to the last sum, which no function has any more, but to what a norm of 32
// bits made of it, and a function has: as in blocks whose norms come behind sums, and not before what these go around.
func (t *told) isNormed(row int32, place int, sum value) bool {
	born := t.t.Lives[row].Born
	if !sum.half || t.leaves(sum.row) >= born {
		return false
	}
	for k := range t.there(row) {
		of := t.made[k]
		if of.row <= sum.row {
			break
		}
		if k != place && t.size(of.row) == t.size(row) && t.leaves(of.row) >= born {
			return !of.half
		}
	}
	return false
}

// takesWide is autocast's, of what operators may be given, and has the last of that taken.
func (t *told) takesWide(row int32) bool {
	wide := -1
	for _, of := range t.operandsBehind(row) {
		k, made := slices.BinarySearchFunc(t.made, of, func(v value, row int32) int { return cmp.Compare(v.row, row) })
		if made && !t.made[k].half {
			wide = max(wide, k)
		}
	}
	if wide >= 0 {
		t.made[wide].taken = true
	}
	return wide >= 0
}

// masksScores reports whether a sum goes to a softmax next and something smaller of 32 bits is there that nothing took, as masks are which
// programs add to the scores of attention.
func (t *told) masksScores(row int32) bool {
	k, _ := slices.BinarySearch(t.forward, row)
	if k+1 >= len(t.forward) || t.operator(t.forward[k+1]).Name != "softmax" || t.size(t.forward[k+1]) != t.size(row) {
		return false
	}
	for k := range t.there(row) {
		if size := t.sizeAt(k); !t.made[k].taken && !t.made[k].half && size > 0 && size < t.size(row) && t.size(row)%size == 0 {
			return true
		}
	}
	return false
}

// operands are the places of what an operator of two may take: what was given to no other yet, that of the size of the row first, which
// may be a part of what is larger; and of what has that size, whether it was taken or not; -1 for none.
func (t *told) operands(row int32) (first, second, same int) {
	n := t.size(row)
	first, second, same = -1, -1, -1
	whole := -1
	for k := range t.there(row) {
		size := t.sizeAt(k)
		if same < 0 && size == n {
			same = k
		}
		switch {
		case t.made[k].taken || size <= 0 || size <= number && n > number: // numbers settle no type
			continue
		case size > n:
			if first < 0 && whole < 0 && size <= muchMore*n {
				whole = k
			}
			continue
		case n%size != 0, t.weights16 && size < n && t.is(t.made[k].row, category.Input): // of numbers of tokens
			continue
		case first < 0:
			first = k
			continue
		}
		second = k
		if size == n && t.sizeAt(first) < n && first-k <= recently {
			first, second = k, first
		}
		break
	}
	if whole >= 0 && (first < 0 && t.isRecent(whole) || whole == len(t.made)-1 && same != first) {
		first = whole
	}
	return first, second, same
}

// oldest is the place of what was made first of those that are there and have the size of a row, -1 for none.
func (t *told) oldest(row int32) int {
	at := -1
	for k := range t.there(row) {
		if t.sizeAt(k) == t.size(row) {
			at = k
		}
	}
	return at
}

// takenBefore is the place of what was taken last of what has the size of a row, beside a place, -1 for none.
func (t *told) takenBefore(row int32, beside int) int {
	for k := range t.there(row) {
		if k != beside && t.made[k].taken && t.sizeAt(k) == t.size(row) {
			return k
		}
	}
	return -1
}

// smaller is the place of what an operator of two takes that has a smaller shape, as far as its gradient tells, see besideOf; -1 for none.
func (t *told) smaller(row, grad int32) int {
	if grad < 0 {
		return -1
	}
	for k := range t.there(row) {
		if len(t.made)-k > 2*recently {
			break
		}
		if !t.made[k].taken && t.sizeAt(k) == t.size(grad) {
			return k
		}
	}
	return -1
}

// besideOf is the gradient that backward makes, when an operator comes by, of a parameter that this takes, or of what has a smaller shape,
// -1 for none.
func (t *told) besideOf(row int32, o frames.Operator) int32 {
	from, to := t.pass.begin, t.pass.last+1
	if k, _ := slices.BinarySearch(t.needs, row); k < len(t.needs) {
		from = t.end(t.needs[k])
	}
	if last := t.neededBefore(row); last >= 0 {
		to = t.end(last)
	}
	k, _ := slices.BinarySearchFunc(t.besides, from+1, func(grad, e int32) int { return cmp.Compare(t.t.Lives[grad].Born, e) })
	for ; k < len(t.besides) && t.t.Lives[t.besides[k]].Born < to; k++ {
		grad := t.besides[k]
		of := t.operator(grad)
		if of.IsNodeOf(o.Name) || of.SumsUp() && o.Kind == frames.Pairs && (o.Name != "add" || !t.claimed[grad]) {
			t.claimed[grad] = t.claimed[grad] || o.Name == "mul"
			return grad
		}
	}
	return -1
}

// isParameter reports whether a gradient, if there is one, is of a parameter that has a shape, and 32 bits.
func (t *told) isParameter(grad int32) bool {
	if grad < 0 || !t.gradient(grad) {
		return false
	}
	n := t.size(grad)
	return !t.weights16 && n > number && (len(t.parameters) == 0 || t.parameters[n])
}

// nodeAt is the node that lets go of something at an event, the zero value where C++ does not tell.
func (r *run) nodeAt(event int32) frames.Operator {
	for row := r.lastBefore(event); int(row) >= r.warm && r.phase(row) == inBackward; row-- {
		o := r.operator(row)
		if o.Node != "" {
			return o
		}
		if o.Name == "" || len(r.stack(r.code(row))) > 0 {
			break // Python runs it
		}
	}
	return frames.Operator{}
}
