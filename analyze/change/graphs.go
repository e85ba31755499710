package change

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// Not all graphs are gone back through: a variable holds what another network made, or an evaluation makes with gradients.

func (r *run) findKeptInside() {
	r.keptInside = map[snapshot.StackID]bool{}
	for stack, is := range r.kept {
		if is && r.insides[stack] != 0 {
			r.keptInside[r.insides[stack]] = true
		}
	}
}

// graphs are the rows of a pass that a graph keeps which it does not go back through: a variable that came out of modules
// holds it until it is bound anew, as what one network makes while another is trained. Of a call whose graph is not there, or is gone back
// through, less than half stays, as features of an image at several depths that variables hold.
func (r *run) graphs(p *pass) map[int32]bool {
	out := r.graphsOf(p, func(row int32) bool { return r.end(row) >= p.end && r.outlives[r.t.Lives[row].Stack] })
	if len(out) == 0 {
		return out
	}
	stays, may := map[int32]int{}, map[int32]int{} // by the number of the frames around a call
	for row := range out {
		stays[r.around[r.code(row)]]++
	}
	for row := range r.graphsOf(p, func(row int32) bool { return !r.t.Lives[row].Passing() && !r.worksIn(row) }) {
		may[r.around[r.code(row)]]++
	}
	maps.DeleteFunc(out, func(row int32, _ bool) bool {
		at := r.around[r.code(row)]
		return 2*stays[at] < may[at]
	})
	return out
}

// findUnused finds the rows of graphs that are gone before a pass begins, as of an evaluation with gradients. They outlive the call
// that makes them, as most of its code does that keeps something in other passes: without gradients what comes out does alone, and
// what autocast has of weights.
func (r *run) findUnused() {
	copies := map[int64]bool{} // sizes of weights with half the bits
	for n := range r.parameters {
		copies[n/2] = true
	}
	r.unused = map[int32]bool{}
	for i := range r.passes {
		r.unusedIn(&r.passes[i], copies)
	}
}

func (r *run) unusedIn(p *pass, copies map[int64]bool) {
	over := make([]int32, p.rows.to-p.rows.from) // by row, the last that follows it with the same code around
	for row := p.rows.to - 1; row >= p.rows.from; row-- {
		at := row - p.rows.from
		over[at] = row
		if next := row + 1; next < p.rows.to && r.t.Lives[row].Born < p.begin && r.around[r.code(row)] == r.around[r.code(next)] {
			over[at] = over[at+1]
		}
	}
	stays := func(row int32) bool {
		next := over[row-p.rows.from] + 1
		return next < p.rows.to && r.end(row) <= p.begin && r.end(row) > r.t.Lives[next].Born &&
			!(copies[r.t.Lives[row].Requested] && r.code(row) == r.code(row+1))
	}
	codes, of, staying := map[graphCode]bool{}, map[int32]int{}, map[int32]int{}
	for row := range r.graphsOf(p, func(row int32) bool { return !r.saved(p, row) }) {
		k := r.graphCode(row)
		was, seen := codes[k]
		if !seen {
			of[k.around]++
		}
		if codes[k] = was || stays(row); codes[k] && !was {
			staying[k.around]++
		}
	}
	const few = 3
	// The last is gone with the function that made it, before anything else is made.
	for row, is := range r.graphsOf(p, func(row int32) bool {
		l := &r.t.Lives[row]
		return !r.saved(p, row) && !l.Passing() && r.end(row) <= p.begin && codes[r.graphCode(row)]
	}) {
		at := r.around[r.code(row)]
		if is && staying[at] > few && 2*staying[at] > of[at] {
			r.unused[row] = true
		}
	}
}

// graphCode is the code that makes rows of a graph.
type graphCode struct {
	around int32 // the outermost call of a module
	inside snapshot.StackID
}

func (r *run) graphCode(row int32) graphCode {
	return graphCode{r.around[r.code(row)], r.insides[r.t.Lives[row].Stack]}
}

// graphsOf are those rows of a pass that a filter takes which are where modules keep something in other passes, and more than one
// operation's of a call.
func (r *run) graphsOf(p *pass, takes func(row int32) bool) map[int32]bool {
	calls := map[int32][]int32{}
	for row := p.rows.from; row < p.rows.to && r.t.Lives[row].Born < p.begin; row++ {
		stack := r.t.Lives[row].Stack
		if r.keptInside[r.insides[stack]] && r.phase(row) == inProgram && takes(row) {
			calls[r.around[stack]] = append(calls[r.around[stack]], row)
		}
	}
	out := map[int32]bool{}
	for _, rows := range calls {
		several := slices.ContainsFunc(rows, func(row int32) bool {
			return r.insides[r.t.Lives[row].Stack] != r.insides[r.t.Lives[rows[0]].Stack]
		})
		for _, row := range rows {
			out[row] = several
		}
	}
	return out
}

// findInsides gives for each stack the first with the same frames from the outermost call of a module inward, for those without
// such a call none: the same work of the same modules, whoever calls them. It numbers the frames around, too.
func (r *run) findInsides() {
	r.insides, r.around = make([]snapshot.StackID, len(r.stacks)), make([]int32, len(r.stacks))
	first := map[string]snapshot.StackID{}
	arounds := map[string]int32{}
	for i, stack := range r.stacks {
		around := r.outside(stack)
		if around == nil {
			continue
		}
		text := fmt.Sprint(around)
		if arounds[text] == 0 {
			arounds[text] = int32(len(arounds)) + 1
		}
		r.around[i] = arounds[text]
		n := len(stack) - len(around)
		var key []byte
		for _, id := range stack[:n] {
			key = binary.AppendUvarint(key, uint64(id))
		}
		if first[string(key)] == 0 {
			first[string(key)] = snapshot.StackID(i)
		}
		r.insides[i] = first[string(key)]
	}
}
