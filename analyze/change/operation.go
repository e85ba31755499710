package change

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot/sorting"
)

// operation is the range of rows that one operation allocates: those of the same code, and of one operator where C++ tells, up to where a
// workspace ends it.
type operation struct {
	from, to    int32
	least, most int64 // of the requested sizes, without workspaces, what convolutions unfold into and batch norms compute statistics in
}

// findOperations finds the operations that make what the trace allocates.
func (r *run) findOperations() {
	r.operations, r.operationAt = r.operations[:0], make([]int32, len(r.t.Lives))
	for row := range int32(len(r.t.Lives)) {
		if int(row) <= r.warm || r.code(row) != r.code(row-1) || r.worksIn(row-1) && !r.worksIn(row) ||
			r.phase(row) == inProgram && r.otherOperator(row, row-1) {
			r.operations = append(r.operations, operation{from: row})
		}
		n := len(r.operations) - 1
		o := &r.operations[n]
		r.operationAt[row], o.to = int32(n), row+1
		if l := &r.t.Lives[row]; !r.worksIn(row) && !((r.convolves(row) || r.normalizesBatch(row)) && r.alone(row)) {
			if o.most = max(o.most, l.Requested); o.least == 0 || l.Requested < o.least {
				o.least = l.Requested
			}
		}
	}
}

// normalizesBatch reports whether torch's batch norm makes a row.
func (r *run) normalizesBatch(row int32) bool { return r.madeByTorch(row, "batch_norm") }

// otherOperator reports whether C++ tells that two rows are of two operators.
func (r *run) otherOperator(a, b int32) bool {
	x, y := r.operator(a).Name, r.operator(b).Name
	return x != y && x != "" && y != ""
}

// worksIn reports whether a row is what an operation of a library works in: a workspace, or what a convolution gives
// back at once.
func (r *run) worksIn(row int32) bool {
	l := &r.t.Lives[row]
	return r.is(row, category.Workspace) || l.Passing() && r.convolves(row)
}

// operation is that which makes a row.
func (r *run) operation(row int32) *operation { return &r.operations[r.operationAt[row]] }

// byproduct reports whether an operation makes a row beside its result, such as the statistics of a normalization or the mask of a
// dropout: what is smaller than another that the same code allocates with it, but for the indices of a maximum, which are larger. Of
// code that is not torch's, which may be several operations, only what is much smaller counts.
func (r *run) byproduct(row int32) bool {
	const half, eighth = 2, 8
	own := r.stack(r.code(row))
	if len(own) == 0 {
		return false
	}
	o, n := r.operation(row), r.t.Lives[row].Requested
	switch {
	case !frames.Of(r.s, own[0]).IsLibrary():
		return o.most >= eighth*n
	case r.pools(row):
		return n >= half*o.least && o.least > 0
	}
	return o.most >= half*n
}

// resultOfProduct reports whether a product makes a row last but for what it works in: what comes before are copies of what it is given,
// which may be larger.
func (r *run) resultOfProduct(row int32) bool {
	if of, _ := r.precision(row); of != frames.Weighs && of != frames.Contracts || r.worksIn(row) {
		return false
	}
	for next := row + 1; next < r.operation(row).to; next++ {
		if !r.worksIn(next) {
			return false
		}
	}
	return true
}

// pools reports whether max_pool makes a row, its result or the indices.
func (r *run) pools(row int32) bool {
	own := r.stack(r.code(row))
	return len(own) > 0 && strings.Contains(r.name(own[0]), "max_pool")
}

// indexes reports whether a row is of the indices of a max_pool, which have 64 bits each whatever the type of its result is
// (aten/src/ATen/native/cuda/DilatedMaxPool2d.cu).
func (r *run) indexes(row int32) bool {
	return r.pools(row) && r.t.Lives[row].Requested == r.operation(row).most && r.operation(row).most > r.operation(row).least
}

// saving is how an operation saved a row: saver is the last row of it, as far as that is seen, -1 for none. It saved several where
// its own result is among them.
type saving struct {
	saver   int32
	several bool
}

// savedBy tells how a row was saved: what a node of a backward pass lets go of together, in the order in which it was made, one
// operation saved.
func (r *run) savedBy(row int32) saving {
	if s, ok := r.savings[row]; ok {
		return s
	}
	return saving{saver: -1}
}

// findSavings finds the operations that saved rows for each pass.
func (r *run) findSavings() {
	r.savings = map[int32]saving{}
	for i := range r.passes {
		p := &r.passes[i]
		rows := slices.DeleteFunc(r.savedRows(p), func(row int32) bool { return r.byProgram(row) || r.end(row) >= p.stop })
		sorting.By(rows, func(a, b int32) int { return cmp.Or(cmp.Compare(r.end(a), r.end(b)), cmp.Compare(a, b)) })
		node := func(k int) int32 { return r.lastBefore(r.end(rows[k])) }
		for from := 0; from < len(rows); {
			to := from + 1
			for to < len(rows) && node(to) == node(from) {
				to++
			}
			r.saveTogether(rows[from:to])
			from = to
		}
	}
}

// saveTogether notes what a node lets go of, in that order.
func (r *run) saveTogether(rows []int32) {
	results := map[int32]bool{} // by operation, whether its own is among them
	for _, row := range rows {
		results[r.operationAt[row]] = results[r.operationAt[row]] || !r.byproduct(row)
	}
	last := rows[len(rows)-1]
	for _, row := range slices.Backward(rows[:len(rows)-1]) {
		if last = max(last, row); last > row {
			r.savings[row] = saving{last, results[r.operationAt[last]] && r.operation(last).from > row}
		}
	}
	// A product of two lets go of the second factor before the first.
	for k := 1; k < len(rows); k++ {
		const next = 2 // events: freed, and given back
		row, other := rows[k], rows[k-1]
		if other < row || r.end(row)-r.end(other) > next || r.byproduct(row) || r.byproduct(other) {
			continue
		}
		if _, ok := r.savings[row]; !ok {
			r.savings[row] = saving{other, true}
		}
	}
}
