package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
)

// A network that makes its images smaller and then larger again, as a U-Net does, joins to what it makes on the way up what it made on
// the way down. No graph keeps that for the join: CatBackward saves sizes alone (tools/autograd/derivatives.yaml). But the function
// that both are made for has it in a variable or in a list until it returns. Sizes tell of it: a join is as large as what was made right
// before it and the last of the rest's size, behind which something smaller was made, and a later join goes with an earlier one that
// is larger.

// skip is what a row is joined to.
type skip struct {
	depth int   // from outside, of the function that both are made for
	into  int32 // the row that they are joined in
}

// findSkips finds what networks join.
func (r *run) findSkips() {
	r.skips = map[int32]skip{}
	type join struct{ of, into int32 }
	var joins []join
	joined := map[int32]bool{} // rows that others are joined in, which a layer gets at once
	size := func(row int32) int64 { return r.t.Lives[row].Requested }
	over := func() {
		for _, j := range joins {
			// Where all is of one size, other operations make twice of that, too, as what gives each element twice as many bits.
			if size(joins[0].of) != size(joins[len(joins)-1].of) {
				r.skips[j.of] = skip{r.together(j.of, j.into), j.into}
			}
		}
		joins = joins[:0]
	}
	bySize := map[int64][]int32{} // rows on the way to a pass
	before := int32(-1)           // the one before a row
	for row := range int32(len(r.t.Lives)) {
		switch phase := r.phase(row); {
		case phase == inNothing || phase == inProgram && !r.outlasts(row):
			continue
		case phase != inProgram:
			over()
			clear(bySize)
			before = -1
			continue
		}
		if own := r.stack(r.code(row)); before >= 0 && len(own) > 0 && !frames.Of(r.s, own[0]).IsLibrary() {
			rest, of := size(row)-size(before), int32(-1)
			if len(joins) > 0 && rest >= size(joins[len(joins)-1].of) {
				of = r.joinedTo(row, bySize[rest], joined, joins[len(joins)-1].of)
			}
			if of < 0 {
				if of = r.joinedTo(row, bySize[rest], joined, before); of >= 0 {
					over()
				}
			}
			if of >= 0 {
				joins, joined[row] = append(joins, join{of, row}), true
			}
		}
		before = row
		bySize[size(row)] = append(bySize[size(row)], row)
	}
	over()
}

// outlasts reports whether a row is there behind the operation that makes it, and its result.
func (r *run) outlasts(row int32) bool {
	return !r.t.Lives[row].Passing() && !r.worksIn(row) && !r.byproduct(row)
}

// lastingFrom is the first row from one on that outlasts its operation, as many as there are for none.
func (r *run) lastingFrom(row int32) int32 { return r.lasting[row] }

// findLasting finds that of each row, for many may be asked of one long stretch of scratch memory.
func (r *run) findLasting() {
	n := len(r.t.Lives)
	r.lasting = make([]int32, n+1)
	r.lasting[n] = int32(n)
	for row := n - 1; row >= 0; row-- {
		if r.lasting[row] = r.lasting[row+1]; r.outlasts(int32(row)) {
			r.lasting[row] = int32(row)
		}
	}
}

// joinedTo is the last of some rows of a size, before another, that is still there where one is made, and has a smaller one behind it; -1
// for none. Rows that others were joined in are none.
func (r *run) joinedTo(into int32, same []int32, joined map[int32]bool, before int32) int32 {
	smaller := false
	end, _ := slices.BinarySearch(same, before)
	for _, of := range slices.Backward(same[:end]) {
		l := &r.t.Lives[of]
		for before--; before > of && !smaller; before-- {
			smaller = r.phase(before) == inProgram && r.outlasts(before) && r.t.Lives[before].Requested < l.Requested
		}
		if before = of; !smaller || joined[of] {
			continue
		}
		if gone := l.GivenUp(); gone >= 0 && gone <= r.t.Lives[into].Born {
			return -1
		}
		return of
	}
	return -1
}

// together is the depth from outside of the innermost function that two rows are made for.
func (r *run) together(a, b int32) int {
	x, y := r.stack(r.code(a)), r.stack(r.code(b))
	return max(min(inCommon(x, y), len(x)-1, len(y)-1), 0)
}
