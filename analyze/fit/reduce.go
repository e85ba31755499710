package fit

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/kernel"
	"github.com/snapana/snapana/analyze/whatif"
)

// reduction is a sum over the rows of a matrix that grows with the values.
type reduction struct {
	row     int32 // of the result
	event   int32 // at which that was allocated
	columns int64
	rows    *law // how many are summed
	// Recorded says that the next row is its scratch memory, and the one behind that its semaphores; convolves that
	// it may be of a convolution, which has a result of that size, and whose bias is summed in another way.
	recorded, convolves bool
}

// reductions finds the sums that make the gradients of biases, by the order and the sizes in which the backward pass of a
// linear layer allocates: the gradient of its input, which grows with the values, that of its weight, and that of its
// bias, neither of which does. Nothing else tells how many rows there are. Of other sums it finds those whose scratch memory
// is that of a matrix which is there.
func (m *model) reductions(others []*recording, partners [][]int32) {
	lives := m.Timeline.Lives
	constant := func(row int) bool { return isConstant(m.laws[m.of[row]]) }
	for row := m.warm; row < len(m.of); row++ {
		n := lives[row].Requested
		fixed := constant(row)
		if n%4 != 0 || n < 64 || m.isProduct(row) {
			continue
		}
		var r *reduction
		if fixed && m.backward(row) {
			r = m.sumAt(row, constant)
		}
		if r == nil && (fixed || len(others) == 0) { // of one recording, a result is taken to grow
			r = m.sumWith(row, constant)
		}
		if r != nil {
			m.sums = append(m.sums, *r)
		}
	}
	convolved, stacks := map[int64]bool{}, convolutions(m.Snapshot) // sizes of results
	for row := m.warm; row < len(m.of); row++ {
		if stacks[lives[row].Stack] {
			convolved[lives[row].Requested] = true
		}
	}
	for i := range m.sums {
		r := &m.sums[i]
		n := r.rows.at(m.At) * lives[r.row].Requested
		r.convolves = convolved[n] || convolved[n/2] // as under autocast, where the gradient has 32 bits
	}
	m.chooseGPU(others, partners)
	m.doubt = m.doubt || slices.ContainsFunc(m.sums, func(r reduction) bool { return !r.recorded })
}

// isProduct reports whether a row is the result of a product of matrices, for which a workspace is asked next, and given up
// before anything else happens.
func (m *model) isProduct(row int) bool {
	if row+1 == len(m.of) {
		return false
	}
	next := &m.Timeline.Lives[row+1]
	use, _ := m.categories().Of(int32(row + 1))
	return use == category.Workspace && next.Passing()
}

// sumAt is the sum that a row is the result of, nil where it is none. The gradients of the input and of the weight come
// before it (AddmmBackward0), or after it where the product and the bias were added apart.
func (m *model) sumAt(row int, constant func(row int) bool) *reduction {
	const near, next = 6, 3 // requests to either side: scratch memory lies between
	for weight := row - 1; weight >= max(row-near, m.warm); weight-- {
		if !m.weighs(weight, row, constant) {
			continue
		}
		for _, whole := range []bool{true, false} {
			for input := weight - 1; input >= max(row-near, m.warm); input-- {
				if r := m.sumOf(row, weight, input, 64, whole, constant); r != nil {
					return r
				}
			}
		}
		return m.firstSum(row, weight, constant)
	}
	for weight := row + 1; weight <= min(row+next, len(m.of)-1); weight++ {
		if !m.weighs(weight, row, constant) {
			continue
		}
		for input := weight + 1; input <= min(weight+next, len(m.of)-1); input++ {
			if r := m.sumOf(row, weight, input, next, true, constant); r != nil {
				return r
			}
		}
		break
	}
	return nil
}

// firstSum is the sum of a layer whose input needs no gradient: over what was allocated last before that of the weight.
func (m *model) firstSum(row, weight int, constant func(row int) bool) *reduction {
	const last = 3
	n := m.Timeline.Lives[row].Requested
	for k := weight - 1; k >= max(weight-last, m.warm); k-- {
		l := &m.Timeline.Lives[k]
		if constant(k) || l.Requested%n != 0 || !l.LiveAfter(int(m.Timeline.Lives[row].Born)) {
			continue
		}
		return &reduction{row: int32(row), event: m.Timeline.Lives[row].Born, columns: n / m.width(row, constant),
			rows: m.laws[m.of[k]].times(1 / float64(n))}
	}
	return nil
}

// sumWith is the sum that a row is the result of where scratch memory and semaphores for it come next: over the matrix that is there,
// and was allocated last, of those for which a device takes as much. It is nil where there is none.
func (m *model) sumWith(row int, constant func(row int) bool) *reduction {
	const near = 64 // requests
	lives := m.Timeline.Lives
	if row+2 >= len(m.of) || constant(row+1) {
		return nil
	}
	n, buffer, semaphores := lives[row].Requested, lives[row+1].Requested, lives[row+2].Requested
	if buffer <= n || buffer%n != 0 {
		return nil
	}
	columns, gpus := n/m.width(row, constant), kernel.GPUs(m.categories().Hopper())
	for k := row - 1; k >= max(row-near, m.warm); k-- {
		if constant(k) || lives[k].Requested%n != 0 || !lives[k].LiveAfter(int(lives[row].Born)) {
			continue
		}
		r := reduction{row: int32(row), event: lives[row].Born, columns: columns, rows: m.laws[m.of[k]].times(1 / float64(n))}
		for _, g := range gpus {
			if bytes, of := g.SumBuffer(r.rows.at(m.At), r.columns); bytes == buffer && of == semaphores {
				return &r
			}
		}
	}
	return nil
}

// weighs reports whether a row may be the gradient of a weight, of the same layer as that of a bias.
func (m *model) weighs(row, bias int, constant func(row int) bool) bool {
	l := &m.Timeline.Lives[row]
	n := m.Timeline.Lives[bias].Requested
	return constant(row) && l.Requested%n == 0 && l.Requested >= 2*n && l.LiveAfter(int(m.Timeline.Lives[bias].Born)) == (row < bias)
}

// sumOf is the sum of a layer of which the gradients are in those rows, where a matrix of the right size was allocated
// not many requests before, as a whole or as a part of a larger one: of what was stacked, each part has a layer of its own.
func (m *model) sumOf(row, weight, input, back int, whole bool, constant func(row int) bool) *reduction {
	lives := m.Timeline.Lives
	n := lives[row].Requested
	inner := lives[weight].Requested / n
	width := m.width(row, constant)
	if constant(input) || n%width != 0 || lives[input].Requested%(inner*width) != 0 {
		return nil
	}
	rows := m.laws[m.of[input]].times(1 / float64(inner*width))
	if !m.summed(row, back, rows.at(m.At)*n, whole) {
		return nil
	}
	return &reduction{row: int32(row), event: lives[row].Born, columns: n / width, rows: rows}
}

// width is how many bytes an element has of the gradient of a bias: half as many as usual where autocast makes one of
// single precision of it next.
func (m *model) width(row int, constant func(row int) bool) int64 {
	const next = 8
	lives := m.Timeline.Lives
	for k := row + 1; k <= min(row+next, len(m.of)-1); k++ {
		if constant(k) && lives[k].Requested == 2*lives[row].Requested {
			return 2
		}
	}
	return 4
}

// summed reports whether a block of that size is there when a row is allocated, and came at most so many requests before: the
// matrix that is summed.
func (m *model) summed(row, back int, size int64, whole bool) bool {
	born := int(m.Timeline.Lives[row].Born)
	for k := row - 1; k >= max(row-back, 0); k-- {
		if l := &m.Timeline.Lives[k]; (l.Requested == size || !whole && size > 0 && l.Requested%size == 0) &&
			l.LiveAfter(born) {
			return true
		}
	}
	return false
}

// chooseGPU takes the device of which the rules give most of the buffers that were recorded, and leaves out sums of which
// they do not.
func (m *model) chooseGPU(others []*recording, partners [][]int32) {
	agrees := func(g kernel.GPU, r *reduction, t *recording, row int32) bool {
		bytes, semaphores := g.SumBuffer(r.rows.at(t.At), r.columns)
		l := t.Timeline.Lives[row:]
		return bytes == 0 || len(l) > 2 && l[1].Requested == bytes && l[2].Requested == semaphores
	}
	right := func(g kernel.GPU, r *reduction) bool {
		for k, o := range others {
			if j := partners[k][r.row]; j >= 0 && !agrees(g, r, o, j) {
				return false
			}
		}
		return agrees(g, r, m.recording, r.row)
	}
	most := -1
	for _, g := range kernel.GPUs(m.categories().Hopper()) {
		n := 0
		for i := range m.sums {
			if right(g, &m.sums[i]) {
				n++
			}
		}
		if n > most {
			m.gpu, most = g, n
		}
	}
	m.sums = slices.DeleteFunc(m.sums, func(r reduction) bool { return !right(m.gpu, &r) })
	for i := range m.sums {
		r := &m.sums[i]
		r.recorded = r.bytes(m.gpu, m.At) > 0
		m.buffered = m.buffered || r.recorded
		if r.recorded {
			m.compute(r.row+1, func(p Point) int64 { return r.bytes(m.gpu, p) })
			m.compute(r.row+2, func(p Point) int64 {
				_, n := m.gpu.SumBuffer(r.rows.at(p), r.columns)
				return n
			})
		}
	}
}

// compute gives a row a law that is computed.
func (m *model) compute(row int32, size func(Point) int64) {
	m.laws, m.seen = append(m.laws, &law{kind: exact, size: size}), append(m.seen, m.seen[m.of[row]])
	m.of[row] = int32(len(m.laws)) - 1
}

// bytes is the scratch memory of a sum at a point.
func (r *reduction) bytes(g kernel.GPU, p Point) int64 {
	n, _ := g.SumBuffer(r.rows.at(p), r.columns)
	return n
}

func isConstant(l *law) bool { return len(l.parts) == 1 && l.parts[0].term == term{} }

func (m *model) backward(row int) bool {
	phase := m.phase(m.Timeline.Lives[row].Stack)
	return phase == "backward" || phase == ""
}

// counts reports whether a sum has scratch memory that no recording shows: in the lower bound none, in the upper bound all.
// The estimate leaves out what may be of a convolution, unless recordings have such memory.
func (m *model) counts(r *reduction, s side) bool {
	return !r.recorded && (s == high || !s.bounds() && (m.buffered || !r.convolves))
}

// edits are what a run at a point asks for.
func (m *model) edits(p Point, s side) whatif.Edits {
	e := whatif.Edits{Sizes: m.sizes(p, s)}
	m.left(p, e.Sizes)
	m.cutOff(e.Sizes)
	m.repeat(p, m.bySize(p, s), &e)
	for i := range m.sums {
		if r := &m.sums[i]; m.counts(r, s) {
			if n := r.bytes(m.gpu, p); n > 0 {
				e.Added = append(e.Added, whatif.Life{Born: r.event, Freed: r.event, Bytes: n, Like: r.row})
			}
		}
	}
	m.firstStep(&e)
	return e
}
