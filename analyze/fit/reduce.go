package fit

import (
	"slices"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/whatif"
)

// gpu is what the kernels of reductions ask of a device.
type gpu struct{ processors, threads int64 } // multiprocessors, and threads of each at a time

// gpus are devices that a recording may be of: A100 first, H100, V100, L40, RTX 4090, A10, RTX 3090, T4, B200, RTX 5090.
// The stacks do not tell which; the buffers that were recorded do.
var gpus = []gpu{{108, 2048}, {132, 2048}, {80, 2048}, {142, 1536}, {128, 1536}, {72, 1536}, {82, 1536}, {40, 1024},
	{148, 2048}, {170, 1536}, {114, 2048}, {78, 2048}}

// buffer is the size of the scratch memory with which torch sums the rows of a matrix, as the gradient of a bias is made,
// and of its semaphores: 0 where so few are summed that each block of threads does it alone. The rules are those of
// setReduceConfig and ReduceConfig::global_memory_size in aten/src/ATen/native/cuda/Reduce.cuh, torch 2.1 to 2.15.
func (g gpu) buffer(rows, columns int64) (bytes, semaphores int64) {
	const maxThreads, warp, minValues, maxValues = 512, 32, 16, 256
	vec := int64(4)
	for columns%vec != 0 {
		vec /= 2
	}
	most := maxThreads / vec
	across, down := min(pow2(columns/vec), most), min(pow2(rows), most)
	width := min(across, warp)
	height := min(down, most/width)
	width = min(across, most/height)
	if rows < height*16 && rows < maxValues {
		return 0, 0
	}
	values := up(rows, height)
	grid := up(columns/vec, width)
	target := g.processors * (g.threads / (width * height))
	if values < maxValues || grid > target {
		return 0, 0
	}
	blocks := max(min(up(target, grid), up(values, minValues)), up(values, maxValues))
	if blocks <= 1 {
		return 0, 0
	}
	const sum = 4 // bytes of a partial one, of single precision for all smaller types
	return sum * columns * blocks * width * vec, 4 * grid
}

func up(a, b int64) int64 { return (a + b - 1) / b }

// pow2 is the highest power of two that is not above n.
func pow2(n int64) int64 {
	p := int64(1)
	for 2*p <= n {
		p *= 2
	}
	return p
}

// reduction is a sum over the rows of a matrix that grows with the values.
type reduction struct {
	row     int32 // of the result
	event   int32 // at which that was allocated
	columns int64
	rows    *law // how many are summed
	// Recorded says that the next row is its scratch memory, and the one behind that its semaphores.
	recorded bool
}

// reductions finds the sums that make the gradients of biases, by the order and the sizes in which the backward pass of a
// linear layer allocates: the gradient of its input, which grows with the values, that of its weight, and that of its
// bias, neither of which does. Nothing else tells how many rows there are.
func (m *model) reductions(others []*recording, partners [][]int32) {
	lives := m.Timeline.Lives
	constant := func(row int) bool { return isConstant(m.laws[m.of[row]]) }
	for row := m.warm; row < len(m.of); row++ {
		n := lives[row].Requested
		if !constant(row) || n%4 != 0 || n < 64 || !m.backward(row) || m.isProduct(row) {
			continue
		}
		if r := m.sumAt(row, constant); r != nil {
			m.sums = append(m.sums, *r)
		}
	}
	m.convolves = slices.Contains(convolutions(m.Snapshot), true)
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
	return use == category.Workspace && next.GivenUp() == next.Born+1
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
			rows: m.laws[m.of[k]].over(n)}
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
	rows := m.laws[m.of[input]].over(inner * width)
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
	agrees := func(g gpu, r *reduction, t *recording, row int32) bool {
		bytes, semaphores := g.buffer(r.rows.at(t.At), r.columns)
		l := t.Timeline.Lives[row:]
		return bytes == 0 || len(l) > 2 && l[1].Requested == bytes && l[2].Requested == semaphores
	}
	right := func(g gpu, r *reduction) bool {
		for k, o := range others {
			if j := partners[k][r.row]; j >= 0 && !agrees(g, r, o, j) {
				return false
			}
		}
		return agrees(g, r, m.recording, r.row)
	}
	most := -1
	for _, g := range gpus {
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
				_, n := m.gpu.buffer(r.rows.at(p), r.columns)
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
func (r *reduction) bytes(g gpu, p Point) int64 {
	n, _ := g.buffer(r.rows.at(p), r.columns)
	return n
}

func isConstant(l *law) bool { return len(l.parts) == 1 && l.parts[0].term == term{} }

// over is a law divided by a number.
func (l *law) over(n int64) *law {
	out := &law{kind: l.kind}
	for _, p := range l.parts {
		out.parts = append(out.parts, part{p.term, p.factor / float64(n)})
	}
	return out
}

func (m *model) backward(row int) bool {
	phase := m.phase(m.Timeline.Lives[row].Stack)
	return phase == "backward" || phase == ""
}

// counts reports whether a sum has scratch memory that no recording shows: in the lower bound none, in the upper bound all.
// The estimate leaves out what may be of a convolution, whose bias is summed in another way, unless recordings have such
// memory.
func (m *model) counts(r *reduction, s side) bool {
	return !r.recorded && (s == high || !s.bounds() && (m.buffered || !m.convolves))
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
