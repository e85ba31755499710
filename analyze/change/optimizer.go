package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// foreachFunction begins the names of torch's functions that update all parameters at once (torch/optim).
const foreachFunction = "_multi_tensor_"

// list is the temporaries of one operation of an optimizer, one for each parameter.
type list []int32

// update is the temporaries of one update of an optimizer, and the function that made them.
type update struct {
	function string // "_multi_tensor_adam", "" for an optimizer of the program's own
	lists    []list
}

// updates finds the temporaries in a step of an optimizer: what is freed before other code allocates.
func (d *draft) updates(c *call) []update {
	var out []update
	var first, last snapshot.StackID
	for row := c.rows.from; row < c.rows.to; row++ {
		l := &d.t.Lives[row]
		end := l.GivenUp()
		if d.phase(row) != inOptimizer || end < 0 || end > c.next || d.is(row, category.OptimizerState) {
			continue
		}
		if len(out) == 0 || l.Stack == first && last != first {
			out = append(out, update{function: d.foreach(l.Stack)})
			first, last = l.Stack, 0
		}
		u := &out[len(out)-1]
		if l.Stack != last {
			u.lists = append(u.lists, nil)
			last = l.Stack
		}
		u.lists[len(u.lists)-1] = append(u.lists[len(u.lists)-1], row)
	}
	return out
}

// foreach is the foreach function that a stack is in, "" for none.
func (r *run) foreach(stack snapshot.StackID) string {
	for _, id := range r.stack(stack) {
		if name := r.name(id); strings.HasPrefix(name, foreachFunction) &&
			frames.Of(r.s, id).Part() == frames.Optimizer {
			return name
		}
	}
	return ""
}

// oneByOne updates one parameter after another. For each, Adam makes the square root of its second moment, then the
// quotient, while the quotient of the parameter before is still referred to, as the roots of others are; what other
// optimizers make for all they make for one, until its turn is over (torch/optim/adam.py, sgd.py and others,
// _single_tensor_*, 2.0 to 2.15).
func (d *draft) oneByOne(e *Applied) {
	for i := range d.calls {
		c := &d.calls[i]
		for _, u := range d.updates(c) {
			if u.function == "" {
				continue
			}
			d.dropAll(&u, e)
			if d.single {
				continue // each parameter has a step of its own, see inBackward
			}
			e.params = max(e.params, len(u.lists[0]))
			if !isAdam(u.function) {
				e.assumeOnce(SingleTensor)
			}
			d.singly(&u, d.states(c, &u), d.t.Lives[u.lists[0][0]].Born)
		}
	}
}

func (d *draft) dropAll(u *update, e *Applied) {
	for _, l := range u.lists {
		for _, row := range l {
			d.drop[row] = true
			e.count(d.run, row)
		}
	}
}

// states gives the state that the function of an update makes as it goes, one for each parameter, as SGD does with its
// momentum in the first step; nil for none.
func (d *draft) states(c *call, u *update) []int32 {
	var out []int32
	for row := c.rows.from; row < c.rows.to; row++ {
		if d.is(row, category.OptimizerState) && !d.drop[row] && d.foreach(d.t.Lives[row].Stack) == u.function {
			out = append(out, row)
		}
	}
	if len(out) != len(u.lists[0]) {
		return nil
	}
	return out
}

// singly adds what an update takes parameter by parameter, at an event. The states that it makes come behind the first
// temporary of each.
func (d *draft) singly(u *update, states []int32, at int32) {
	adam := isAdam(u.function)
	sgd := u.function == foreachFunction+"sgd"
	n := slices.MaxFunc(u.lists, func(a, b list) int { return len(a) - len(b) })
	u.lists = u.ofOne()
	named := referred[u.function]
	lists := int32(len(u.lists))
	stride := lists + 4
	base := d.turn(at, stride*int32(len(n)+2))
	for i, row := range states {
		d.drop[row] = true
		d.add(row, at, d.last(row)).Turn = base + int32(i)*stride + 1
	}
	for k, l := range u.lists {
		for i, row := range l {
			turn := base + int32(i)*stride + int32(k)
			if k > 0 {
				turn++ // behind the state
			}
			v := d.add(row, at, at)
			v.Turn, v.Until = turn, base+int32(i+1)*stride // until the next parameter's turn
			if k >= len(u.lists)-named {
				v.Until = turn + stride + 1 // until the next parameter's is made
			}
			if adam && k == len(u.lists)-1 {
				v.Until = turn + 2 // the square root, until the quotient is made
				v = d.add(row, at, at)
				v.Turn, v.Until = turn+1, turn+stride+2 // until the next parameter's is made
			}
			if sgd && k == len(u.lists)-1 {
				// Nesterov's form makes a second one. In a list of all parameters that shows nowhere, so it is taken for granted.
				v.Until = turn + 3
				v = d.add(row, at, at)
				v.Turn, v.Until = turn+2, base+int32(i+1)*stride
			}
		}
	}
}

// ofOne are the lists of which one parameter's update makes anything: of Adagrad the quotient is never there (torch/optim/adagrad.py).
func (u *update) ofOne() []list {
	if u.function == foreachFunction+"adagrad" && len(u.lists) > 1 {
		return u.lists[:len(u.lists)-1]
	}
	return u.lists
}

// referred are how many of the last lists of a foreach function variables refer to where one parameter comes after another: what
// is made for it goes when that for the next is there (torch/optim/adagrad.py, rmsprop.py: the root; adadelta.py: the step, too).
var referred = map[string]int{
	foreachFunction + "adagrad": 1, foreachFunction + "rmsprop": 1, foreachFunction + "adadelta": 2,
}

// isAdam tells Adam and those like it: for all parameters they make one list, the roots of the second moments; for one parameter
// they make two blocks, the root and then a quotient, or NAdam a quotient and then its root.
func isAdam(function string) bool {
	return slices.Contains([]string{"adam", "adamw", "nadam"}, strings.TrimPrefix(function, foreachFunction))
}

// inBackward steps each parameter as soon as its gradient is complete, and drops that
// (torch.Tensor.register_post_accumulate_grad_hook).
func (d *draft) inBackward(e *Applied) {
	// The temporaries of a parameter are those of its size.
	temps, adam := map[int64][]int32{}, map[int64]bool{} // by size; and whether Adam steps with foreach
	for i := range d.calls {
		for _, u := range d.updates(&d.calls[i]) {
			d.dropAll(&u, e)
			found := map[int64][]int32{} // of one update: one that takes each parameter in turn is several
			for _, l := range u.ofOne() {
				seen := map[int64]bool{}
				for _, row := range l {
					if n := d.sizes[row]; !seen[n] {
						seen[n] = true
						found[n] = append(found[n], row)
					}
				}
			}
			for n, rows := range found {
				if isAdam(u.function) {
					adam[n] = true
				}
				if len(rows) > len(temps[n]) {
					temps[n] = rows
				}
			}
		}
	}
	if len(adam) > 0 && !d.single {
		e.assumeOnce(StepsAlike)
	}
	defer func() { e.params /= max(len(d.passes), 1) }()
	states := d.statesOf()
	var of *pass
	var later map[int64]int32 // see addedLater
	for row := int32(d.warm); int(row) < len(d.t.Lives); row++ {
		if !d.gradient(row) {
			continue
		}
		at := d.complete(row)
		if at+1 < d.end(row) && d.t.Trace.Action(int(at)+1) == snapshot.FreeCompleted {
			at++ // what the node lets go of is given back before the step
		}
		was := d.last(row)
		if d.until(row, at) {
			e.count(d.run, row)
			e.params++
			if p := d.passOf(d.t.Lives[row].Born); p != of {
				if of, later = p, nil; p != nil {
					later = d.addedLater(p)
				}
			}
			if until := later[d.t.Lives[row].Requested]; until > at && d.run.parts[row] == 0 {
				e.mayEnd(row, at, min(until, was))
			}
		}
		turn := d.turn(at, int32(len(states[row])))
		for i, state := range states[row] {
			d.add(state, at, d.last(state)).Turn = turn + int32(i)
			d.drop[state] = true
		}
		if d.inTurn(temps[d.sizes[row]], adam[d.sizes[row]] && d.single, at); adam[d.sizes[row]] && !d.single {
			e.quotient = max(e.quotient, d.sizes[row])
		}
	}
}

// addedLater gives for sizes of gradients the event after which a pass is through all that may be added to those: of what has their
// size, and is gone again, there is as much as of gradients at least. Which parameters are used several times is not known then.
func (d *draft) addedLater(p *pass) map[int64]int32 {
	more, last := map[int64]int{}, map[int64]int32{} // than gradients
	for row := p.rows.from; row < p.rows.to; row++ {
		switch n := d.t.Lives[row].Requested; {
		case d.t.Lives[row].Born < p.begin || d.phase(row) != inBackward:
		case d.gradient(row):
			more[n]--
		default:
			more[n]++
			last[n] = d.end(row)
		}
	}
	maps.DeleteFunc(last, func(n int64, _ int32) bool { return more[n] < 0 })
	return last
}

// statesOf gives for gradients the states that the first step makes for their parameters, as far as sizes tell: those of parameters of
// one size are alike.
func (d *draft) statesOf() map[int32][]int32 {
	out := map[int32][]int32{}
	const many = 16
	made := 0 // calls that make states: there are as many as optimizers, and first steps of what is added later
	for i := range d.calls {
		c := &d.calls[i]
		states := map[int64][]int32{}
		for row := c.rows.from; row < c.rows.to; row++ {
			if d.is(row, category.OptimizerState) && !d.drop[row] && d.last(row) > c.next {
				states[d.sizes[row]] = append(states[d.sizes[row]], row)
			}
		}
		if len(states) == 0 {
			continue
		}
		if made++; made > many {
			break
		}
		gradients := map[int64][]int32{}
		for row := int32(0); row < c.rows.from; row++ {
			if d.gradient(row) && d.end(row) >= c.first && out[row] == nil {
				gradients[d.sizes[row]] = append(gradients[d.sizes[row]], row)
			}
		}
		for n, of := range gradients {
			each := len(states[n]) / len(of)
			if each*len(of) != len(states[n]) {
				continue
			}
			for k, row := range of {
				out[row] = states[n][k*each : (k+1)*each]
			}
		}
	}
	return out
}

// inTurn puts lives like rows in at one event, which come and go in the order in which those do. Adam, which is given one parameter, makes
// a quotient of the last.
func (d *draft) inTurn(rows []int32, quotient bool, at int32) {
	var order []int32
	for _, row := range rows {
		order = append(order, d.t.Lives[row].Born, d.end(row))
	}
	slices.Sort(order)
	over := int32(len(order)) + 1
	base := d.turn(at, over+1)
	place := func(event int32) int32 { return base + int32(slices.Index(order, event)) }
	for k, row := range rows {
		v := d.add(row, at, at)
		v.Turn, v.Until = place(d.t.Lives[row].Born), place(d.end(row))
		if quotient && k == len(rows)-1 {
			v.Until = base + over
			v = d.add(row, at, at)
			v.Turn, v.Until = base+over-1, base+over
		}
	}
}

// eightBit keeps the optimizer's state in 8 bits, as bitsandbytes.optim.Adam8bit does (bitsandbytes/optim/optimizer.py,
// Optimizer2State, of 0.49.0): a byte for each element, and a scale of 32 bits for each block of 256; older releases have
// blocks of 2048. Parameters with fewer than 4096 elements keep 32 bits. One kernel updates a parameter in place.
func (d *draft) eightBit(e *Applied) {
	const least, block = 4096, 256 // elements
	for row := range d.rows() {
		n := d.sizes[row] / 4
		if !d.is(row, category.OptimizerState) || d.drop[row] {
			continue
		}
		if d.settled[row] = true; n < least {
			continue // 32 bits, whatever parameters have
		}
		e.count(d.run, row)
		d.sizes[row] = n
		if l := &d.t.Lives[row]; l.Born >= 0 {
			d.add(row, l.Born, d.last(row)).bytes = (n + block - 1) / block * 4
		} else {
			d.sizes[row] += (n + block - 1) / block * 4
		}
	}
	for i := range d.calls {
		for _, u := range d.updates(&d.calls[i]) {
			d.dropAll(&u, e)
		}
	}
}

// offloadState keeps the optimizer's state in the host's memory, and steps there. Gradients stay for as long as recorded, as torchao's
// CPUOffloadOptimizer has it by default; others let go of them when they are copied, as DeepSpeed does.
func (d *draft) offloadState(e *Applied) {
	for row := range d.t.Lives {
		if d.is(int32(row), category.OptimizerState) {
			d.drop[row] = true
			e.count(d.run, int32(row))
		}
	}
	for i := range d.calls {
		for _, u := range d.updates(&d.calls[i]) {
			d.dropAll(&u, e)
		}
	}
	next := 0 // in d.calls, the one that steps next
	for row := range d.rows() {
		if !d.gradient(row) {
			continue
		}
		e.moved += 2 * d.sizes[row] // down, and the parameter up
		for next < len(d.calls) && d.calls[next].first < d.t.Lives[row].Born {
			next++
		}
		if next < len(d.calls) && d.calls[next].first < d.last(row) {
			d.mayEnd(e, row, d.calls[next].first)
		}
	}
}
