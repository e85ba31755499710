package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Modules are called without anything that goes back through them, too, as in an evaluation. What they make then shows its types less
// well: nothing is saved. The same code makes the same types as on the way to a pass.

// trainedRows is what modules make on the way to a pass, by their code, see findInsides, in the order of birth.
type trainedRows map[snapshot.StackID][]int32

// likenesses are, of rows before a pass, by those that modules make for nothing that goes back, those that the same code makes in the same
// turn on the way to the last pass that trains them: this one, or the one that last is of. It gives what is made on the way to that, too.
func (r *run) likenesses(p *pass, rows []int32, last trainedRows) (like map[int32]int32, now trainedRows) {
	trains := map[int32]bool{} // by the number of the frames around a call
	for row := p.rows.from; row < p.rows.to; row++ {
		if r.saved(p, row) {
			trains[r.around[r.code(row)]] = true
		}
	}
	delete(trains, 0)
	if now = last; len(trains) > 0 {
		now = trainedRows{}
	}
	var others []int32
	for _, row := range rows {
		code := r.code(row)
		switch around := r.around[code]; {
		case around == 0:
		case trains[around]:
			now[r.insides[code]] = append(now[r.insides[code]], row)
		default:
			others = append(others, row)
		}
	}
	like, turn := map[int32]int32{}, map[snapshot.StackID]int{}
	for _, row := range others {
		inside := r.insides[r.code(row)]
		if of := now[inside]; len(of) > 0 {
			like[row] = of[turn[inside]%len(of)]
			turn[inside]++
		}
	}
	return like, now
}

// saveUnused has what is made for graphs that nothing goes back through be saved by the operations that save what it is like.
func (r *run) saveUnused() {
	var like map[int32]int32
	made := trainedRows{}
	for i := range r.passes {
		p := &r.passes[i]
		var first []int32 // of operations
		for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row = r.operation(row).to {
			if r.phase(row) == inProgram {
				first = append(first, row)
			}
		}
		like, made = r.likenesses(p, first, made)
		next := map[int32]int32{} // the next of these by what it is like
		for _, from := range slices.Backward(first) {
			of, ok := like[from]
			if !ok {
				continue
			}
			next[of] = from
			for row := from; row < r.operation(from).to; row++ {
				s := r.savedBy(of + row - from)
				if s.saver < 0 || r.saved(p, row) {
					continue
				}
				by := r.operation(s.saver)
				if other, ok := next[by.from]; ok {
					r.savings[row] = saving{min(other+s.saver-by.from, r.operation(other).to-1), s.several}
				}
			}
		}
	}
}

// typesLike gives rows the types of those that they are like, and has products of them make copies of weights, which are kept until
// the modules are over, and of what they are given, until they are done. A graph that nothing goes back through keeps both while it is
// there, and what was given no longer.
func (x *autocast) typesLike(like map[int32]int32) {
	for from := 0; from < len(x.forward); {
		first := x.forward[from]
		to := from + 1
		if _, ok := like[first]; !ok {
			from = to
			continue
		}
		for to < len(x.forward) && x.around[x.code(x.forward[to])] == x.around[x.code(first)] {
			to++
		}
		last := x.forward[to-1]
		for last+1 < x.pass.rows.to && x.around[x.code(last+1)] == x.around[x.code(first)] {
			last++
		}
		over := x.returned(last)
		for _, row := range x.forward[from:to] {
			if x.unused[row] {
				over = max(over, x.end(row))
			}
		}
		var replaced []int32                             // what graphs keep copies of instead
		seen, now := map[int32]bool{}, map[int32]int32{} // now are the last rows by those that they are like
		for _, row := range x.forward[from:to] {
			of, ok := like[row]
			if !ok || x.wide[row] {
				continue
			}
			if x.narrow[of] {
				x.makeNarrow(row)
			} else {
				delete(x.narrow, row)
			}
			if grad, ok := x.weighed[of]; ok && x.hasTwin(grad) {
				x.add(grad, x.t.Lives[row].Born, x.returned(x.operation(row).to-1)).parts = 2
			} else if ok && !seen[grad] {
				x.add(grad, x.t.Lives[row].Born, over).parts = 2
				seen[grad] = true
			}
			now[of] = row
			if given, ok := x.given[of]; ok {
				copied, there := now[given]
				if !there && x.isDropout(given) {
					copied, there = x.undropped(given, now)
				}
				switch {
				case !there:
				case x.unused[copied] && x.last(copied) == x.end(copied):
					x.add(copied, x.t.Lives[row].Born, x.end(copied)).parts = 2
					if !x.own[like[copied]] {
						replaced = append(replaced, copied)
					}
				default:
					x.add(copied, x.t.Lives[row].Born, x.returned(x.operation(row).to-1)).parts = 2
				}
			}
		}
		for _, row := range replaced {
			x.until(row, x.leaves(row))
		}
		from = to
	}
}

// hasTwin reports whether another network has weights of a gradient's size that is not trained, as a teacher or a target that follows: it
// has as many of that size. A call that nothing goes back through is taken for one of that, of whose weights torch.autocast keeps no
// copies.
func (x *autocast) hasTwin(gradient int32) bool {
	n := x.t.Lives[gradient].Requested
	return x.weights[n] > 0 && x.ofSize[n] >= 2*x.weights[n]
}

// isDropout reports whether a row is made by torch's dropout, which makes nothing in an evaluation.
func (r *run) isDropout(row int32) bool { return r.madeByTorch(row, "dropout") }

// undropped is the row that takes the place of what a dropout makes where there is none: what is like its input.
func (x *autocast) undropped(dropped int32, now map[int32]int32) (row int32, ok bool) {
	const far = 8 // rows
	for of := dropped - 1; of >= max(dropped-far, x.pass.rows.from); of-- {
		if row, ok = now[of]; ok && x.t.Lives[of].Requested == x.t.Lives[dropped].Requested {
			return row, true
		}
	}
	return -1, false
}

// evaluated is what modules make beside training where that runs under torch.autocast.
type evaluated struct {
	wide        map[int32]bool // rows that keep 32 bits
	assumptions []AssumptionKind
}

// evaluated finds what a program makes by calls of modules that it trains by none, between its steps or behind them. No recording in 32
// bits tells whether that is under torch.autocast: most evaluate as they train, and sample, generate, or test, outside of it. In the other
// way all keep 32 bits or, where nothing is evaluated, none. What accelerate runs is under it whoever calls it.
func (d *draft) evaluated() (e evaluated) {
	e.wide = map[int32]bool{}
	if d.accelerates {
		return e
	}
	judged, sampled := d.besideTraining()
	if len(judged) > 0 {
		e.assumptions = append(e.assumptions, EvaluatesHalf)
	}
	if len(sampled) > 0 {
		e.assumptions = append(e.assumptions, SamplesFull)
	}
	if d.way.evaluates {
		maps.Copy(e.wide, judged)
	}
	if !d.way.evaluates || len(judged) > 0 {
		maps.Copy(e.wide, sampled)
	}
	return e
}

// besideTraining are the rows that modules make in calls by the program itself that no pass trains, and what comes of them until others are
// called, in few of the passes, as a teacher is called in most: those of an evaluation, which gets a batch of its own, has a loss before
// the program trains again, or is named for that, see evaluator, and others. Where the same statement calls what is trained, that is under
// torch.autocast, and so are modules that another package calls, as trainers do.
func (r *run) besideTraining() (judged, sampled map[int32]bool) {
	trains, callers := r.trainingCalls()
	judged, sampled = map[int32]bool{}, map[int32]bool{}
	var now between
	over := func() {
		of := sampled
		if now.judges && !now.tests {
			of = judged
		}
		for _, row := range now.rows {
			of[row] = true
		}
		now = between{}
	}
	for row := int32(r.warm); int(row) < len(r.t.Lives); row++ {
		code := r.code(row)
		around, caller := r.around[code], r.ownFrame(r.outside(r.stack(code)))
		switch {
		case r.phase(row) != inProgram || trains[around]:
			over()
			continue
		case r.is(row, category.Input):
			now.given = r.functions[r.ownFrame(r.stack(code))]
		case around != 0:
			now.calls = !r.often[around] && !callers[caller] && !r.calledByPackage(code)
		}
		if now.calls {
			now.rows = append(now.rows, row)
			judges, tests := r.evaluator(code)
			now.tests = now.tests || tests
			now.judges = now.judges || judges || r.inLoss(row) || now.given != 0 && now.given == r.functions[caller]
		}
	}
	over()
	return judged, sampled
}

// between is what a program makes from where it trains to where it does so again.
type between struct {
	rows   []int32
	given  int32 // the function that was given a batch last, 0 for none
	calls  bool  // such modules were called last
	judges bool
	tests  bool // a function does that is named for tests
}

// evaluator says what the innermost function around the call of a module is named for that has such a name: for an evaluation, as evaluate
// or validate, which mostly is under torch.autocast where a program trains under that, or for tests, which mostly are not, as in the
// examples of PyTorch (pytorch/examples, mnist/main.py) and what follows these.
func (r *run) evaluator(code snapshot.StackID) (judges, tests bool) {
	for _, id := range r.outside(r.stack(code)) {
		if frames.Of(r.s, id).IsLibrary() {
			continue
		}
		switch name := r.name(id); {
		case name == "test":
			return false, true
		case strings.HasPrefix(name, "evaluate"), strings.HasPrefix(name, "validate"):
			return true, false
		}
	}
	return false, false
}

// trainingCalls are the calls of modules that a pass trains, by the number of the frames around, and the statements that make them.
func (r *run) trainingCalls() (trains map[int32]bool, callers map[snapshot.FrameID]bool) {
	trains, callers = map[int32]bool{}, map[snapshot.FrameID]bool{}
	for i := range r.passes {
		for _, row := range r.savedRows(&r.passes[i]) {
			code := r.code(row)
			if around := r.around[code]; around != 0 && r.phase(row) == inProgram && !trains[around] {
				trains[around], callers[r.ownFrame(r.outside(r.stack(code)))] = true, true
			}
		}
	}
	return trains, callers
}

// ownFrame is the innermost frame of some that is not of torch or Python, 0 for none.
func (r *run) ownFrame(some []snapshot.FrameID) snapshot.FrameID {
	if k := r.ownDepth(some); k >= 0 {
		return some[k]
	}
	return 0
}

// ownDepth is the depth of that, -1 for none.
func (r *run) ownDepth(some []snapshot.FrameID) int {
	return slices.IndexFunc(some, func(id snapshot.FrameID) bool { return !frames.Of(r.s, id).IsLibrary() })
}
