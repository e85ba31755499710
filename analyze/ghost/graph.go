package ghost

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// The limits of graph.
const (
	ofForward  = 0.05 // an autograd graph keeps more than this share of what its forward pass allocated
	byBackward = 0.25 // where a backward pass ran for it, fewer than this share of what it had saved are freed
)

// graph reports whether what each lap leaves of a forward pass is its autograd graph, and if so, whether a backward
// pass used it. Outputs that are kept without it are few of what the pass allocated, or were made under a decorator
// such as no_grad, or what was saved beside them is freed once a backward pass ran.
// Dense says that most of what the pass allocated from the first of them to the last is kept.
func (k *clock) graph(group []*candidate) (whole, used, dense bool) {
	top := group[0]
	if k.withoutGrad(top.stack) {
		return false, false, false
	}
	lead := top // what a lap's forward pass allocates first: laps are counted from there
	for _, c := range group {
		if 2*len(c.births) > len(top.births) && len(c.births) <= len(top.births) && c.births[0] < lead.births[0] &&
			k.code.sort(c.stack)&inModule != 0 {
			lead = c
		}
	}
	kept := map[int32]bool{}
	for _, c := range group {
		for _, i := range c.kept {
			kept[c.rows[i]] = true
		}
	}
	laps, few, most, spent, backward := 0, 0, 0, 0, 0
	for i := 0; i+1 < len(lead.births) && laps < sampled; i++ {
		first, last := k.lapRows(lead.births[i], lead.births[i+1], kept)
		if first < 0 {
			continue
		}
		laps++
		at, own := k.nextBackward(last, lead.births[i+1])
		all, stay, saved := 0, 0, 0
		for row := first; row <= last; row++ {
			l := &k.t.Lives[row]
			switch {
			case k.code.sort(l.Stack)&inModule == 0:
				continue
			case kept[row]:
				stay++
			case at < none && end(l, none-1) > at:
				saved++
			}
			all++
		}
		if float64(stay) < ofForward*float64(all) {
			few++
		}
		if 2*stay > all {
			most++
		}
		if float64(saved) >= byBackward*float64(saved+stay) && saved > 0 {
			spent++
		}
		if own {
			backward++
		}
	}
	return 2*few <= laps && 2*spent <= laps, 2*backward > laps, 2*most > laps
}

// withoutGrad reports whether a stack is inside a decorator such as no_grad, those of optimizers and closures aside.
func (k *clock) withoutGrad(stack snapshot.StackID) bool {
	var walk frames.Walk
	without, optimizer := false, false
	for _, id := range k.code.path(stack) {
		class := frames.Of(k.s, id)
		walk.Enter(class)
		if now := walk.Phase() == frames.InOptimizer; now || optimizer {
			without, optimizer = false, now
		} else if class.Has(frames.WithoutGrad) {
			without = true
		}
	}
	return without
}

// lapRows are the first and the last row of a lap that is kept and of a forward pass, -1 for none.
func (k *clock) lapRows(from, to int32, kept map[int32]bool) (first, last int32) {
	first, last = -1, -1
	row, _ := slices.BinarySearchFunc(k.t.Lives, from, bornAt)
	for ; row < len(k.t.Lives) && k.t.Lives[row].Born < to; row++ {
		if kept[int32(row)] && k.code.sort(k.t.Lives[row].Stack)&inModule != 0 {
			if first < 0 {
				first = int32(row)
			}
			last = int32(row)
		}
	}
	return first, last
}

// nextBackward is the event at which the next backward pass after a row begins, none for none up to an event. Own says
// that no other forward pass, called from elsewhere, came before: it is that of the row's.
func (k *clock) nextBackward(row, until int32) (at int32, own bool) {
	own = true
	call := k.code.call(k.t.Lives[row].Stack)
	for row++; int(row) < len(k.t.Lives) && k.t.Lives[row].Born < until; row++ {
		stack := k.t.Lives[row].Stack
		sort := k.code.sort(stack)
		if sort&(nameless|inBackward) != 0 {
			return k.t.Lives[row].Born, own
		}
		own = own && (sort&inModule == 0 || slices.Equal(call, k.code.call(stack)))
	}
	return none, false
}

// call is the outer part of a path, up to the first call of a module, nil for none.
func (c *code) call(stack snapshot.StackID) []snapshot.FrameID {
	path := c.path(stack)
	at := slices.IndexFunc(path, func(id snapshot.FrameID) bool { return c.kind(id) == moduleCall })
	return path[:at+1]
}
