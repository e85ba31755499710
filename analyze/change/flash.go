package change

import (
	"math"
	"slices"
	"sync"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// Attention of 32 bits is computed by the memory-efficient kernel, whose result lies by batches, tokens and heads
// (aten/src/ATen/native/transformers/cuda/attention.cu: _efficient_attention_forward), that of 16 bits which is given no
// mask by the flash kernel (sdp_utils.cpp: use_flash_attention), whose result lies as its queries do
// (flash_attn/flash_api.cpp: mha_fwd). That decides whether what puts the heads together again behind it copies the result.

// flash has attention that has 16 bits now, as a filter of its results says, be computed by the flash kernel.
func (d *draft) flash(narrow func(row int32) bool) {
	masks := sync.OnceValue(d.squares)
	saved := sync.OnceValue(d.bySaver)
	merges := map[int32]bool{} // rows that are copied no more
	for i := range d.passes {
		p := &d.passes[i]
		for out := p.rows.from; out < p.rows.to && d.t.Lives[out].Born < p.begin; out++ {
			if d.drop[out] || !narrow(out) || !d.attends(p, out) || d.isMasked(out, masks()) {
				continue
			}
			switch merged := d.operation(out).to; {
			case !d.inMultiHead(out):
				head := d.head(out)
				pads := head%headsOf != 0
				if pads || d.byHeads(out) {
					d.copyMerged(out, merged)
				}
				if pads {
					d.pad(p, out, head, slices.Concat(saved()[out], saved()[out+1]))
				}
			case d.inMultiHead(merged) && d.t.Lives[merged].Requested == d.t.Lives[out].Requested:
				// Its queries lie by tokens, batches and heads, as it puts these together.
				d.drop[merged], merges[merged] = true, true
			}
		}
	}
	d.added = slices.DeleteFunc(d.added, func(x extra) bool { return merges[x.Like] })
}

// headsOf is of how many elements the flash kernel takes a multiple for each head, and which it is given copies with more zeros for else
// (aten/src/ATen/native/transformers/attention.cpp: pad_last_dim).
const headsOf = 8

// head is how many elements each head of attention has, as its statistics tell, which are one number of each token and head where tokens
// are a multiple of 32, as the node's own of as many tell; 0 where they do not.
func (r *run) head(out int32) int64 {
	elements, statistics := r.t.Lives[out].Requested, r.t.Lives[out+1].Requested
	for row := range r.nodeRows(out) {
		if statistics > 0 && r.t.Lives[row].Requested == statistics && elements%statistics == 0 {
			return elements / statistics
		}
	}
	return 0
}

// nodeRows are what the node makes that lets go of a row, as far as C++ tells.
func (r *run) nodeRows(of int32) func(yield func(row int32) bool) {
	last := r.lastBefore(r.end(of))
	node, first := r.operator(last), max(of+1, last-longNode)
	if node.Node == "" {
		first = last + 1
	}
	return func(yield func(row int32) bool) {
		for row := last; row >= first && r.operator(row).Node == node.Node && r.operator(row).Name == node.Name && yield(row); row-- {
		}
	}
}

// bySaver are the rows that operations saved, by the row that saved them, see savedBy, in no order.
func (r *run) bySaver() map[int32][]int32 {
	by := map[int32][]int32{}
	for row, s := range r.savings {
		by[s.saver] = append(by[s.saver], row)
	}
	return by
}

// pad has the flash kernel be given copies of what attention saved, and give a result and gradients with as many elements, whose heads have
// so many without, see headsOf.
func (d *draft) pad(p *pass, out int32, head int64, saved []int32) {
	const element = 4 // bytes
	has := func(row int32) bool { return d.t.Lives[row].Requested%(head*element) == 0 }
	padded := func(row int32) int64 { return d.sizes[row] / head * ((head + headsOf - 1) / headsOf * headsOf) }
	slices.Sort(saved)
	for _, row := range saved {
		if row >= p.rows.from && row < out && has(row) {
			d.add(row, d.t.Lives[out].Born, d.end(row)).bytes = padded(row)
			d.until(row, d.leaves(row))
		}
	}
	for row := range d.nodeRows(out) {
		if has(row) && d.t.Lives[row].Requested <= d.t.Lives[out].Requested {
			d.sizes[row] = padded(row)
		}
	}
	d.sizes[out] = padded(out)
}

// inMultiHead reports whether torch's own function of attention with several heads makes a row itself.
func (r *run) inMultiHead(row int32) bool { return r.madeByTorch(row, "multi_head_attention_forward") }

// isSoftmax reports whether a softmax of torch's, or one that gives logarithms, makes a row itself.
func (r *run) isSoftmax(row int32) bool {
	return r.madeByTorch(row, "softmax") || r.madeByTorch(row, "log_softmax")
}

// madeByTorch reports whether a function of a library's makes a row itself, by its name.
func (r *run) madeByTorch(row int32, function string) bool {
	own := r.stack(r.code(row))
	return len(own) > 0 && frames.Of(r.s, own[0]).IsLibrary() && r.name(own[0]) == function
}

// attends reports whether a row is a result of attention that a pass goes back through: behind it statistics of each token and
// head lie, and before it nothing is made, as it would be of most masks, but numbers, as the seed and its offset are without dropout.
func (r *run) attends(p *pass, out int32) bool {
	const least, most = 4, 256 // elements of a head: the kernel takes no more (sdp_utils.cpp, check_head_dim_size_flash)
	o := r.operation(out)
	from := o.from
	for from < out && r.t.Lives[from].Requested <= number {
		from++
	}
	by := r.operator(out)
	told := r.inMultiHead(out) || by.Ruled == "scaled_dot_product_attention" || by.Name == "" && out == o.from+2
	if !told || from != out || o.to != out+2 || int(o.to) >= len(r.t.Lives) || !r.saved(p, out) || !r.saved(p, out+1) {
		return false
	}
	n, statistics := r.t.Lives[out].Requested, r.t.Lives[out+1].Requested
	return statistics*least <= n && n <= statistics*most && !r.worksIn(out+1) && !r.scratch(out+1)
}

// square is a row that may be a mask of 32 bits of all tokens with each other, of so many.
type square struct {
	row    int32
	tokens int64
}

// squares are those of a run, in the order of birth: what holds parameters, gradients and their like is none.
func (r *run) squares() (out []square) {
	for row := range int32(len(r.t.Lives)) {
		switch c, _ := r.uses.Of(row); c {
		case category.Parameter, category.Gradient, category.OptimizerState:
			continue
		}
		n := r.t.Lives[row].Requested / 4
		side := int64(math.Sqrt(float64(n)))
		if side > 1 && 4*side*side == r.t.Lives[row].Requested && !r.worksIn(row) && !r.scratch(row) {
			out = append(out, square{row, side})
		}
	}
	return out
}

// isMasked reports whether attention may be given a mask: torch makes one of another right before, or one is there of as many
// tokens as the statistics are of, which the kernel has for a multiple of 32 of them, if heads have a multiple of 8 elements.
// Torch's own stacks of layers look whether a mask is causal, and have the kernel know that instead
// (torch/nn/modules/transformer.py: _detect_is_causal_mask).
func (r *run) isMasked(out int32, squares []square) bool {
	const tile, of = 32, 8
	stack := r.stack(r.code(out))
	for row := out - 1; row >= 0 && r.inMultiHead(out); row-- { // of the same call
		own := r.stack(r.code(row))
		if len(own) < len(stack) || !slices.Equal(own[len(own)-len(stack)+1:], stack[1:]) {
			break
		}
		if r.inMultiHead(row) && r.t.Lives[row].Requested > number || r.isCanonicalMask(row) {
			return true
		}
	}
	n, statistics := r.t.Lives[out].Requested, r.t.Lives[out+1].Requested
	return statistics > 0 && !r.inStack(stack) && slices.ContainsFunc(squares, func(s square) bool {
		whole := (s.tokens + tile - 1) / tile * tile
		head := n * whole / (statistics * s.tokens) // elements
		return s.row < out && r.end(s.row) > r.t.Lives[out].Born && head%of == 0 && head*statistics*s.tokens == n*whole &&
			statistics/4%whole == 0
	})
}

// isCanonicalMask reports whether torch's attention makes numbers of a mask of what is true or not.
func (r *run) isCanonicalMask(row int32) bool {
	canonical := func(id snapshot.FrameID) bool { return r.name(id) == "_canonical_mask" }
	return slices.ContainsFunc(r.stack(r.code(row)), canonical)
}

// inStack reports whether code runs in a layer of one of torch's own encoders or decoders.
func (r *run) inStack(stack []snapshot.FrameID) bool {
	forwards := 0
	for _, id := range stack {
		if r.layerOfTorch(id) && r.name(id) == "forward" {
			forwards++
		}
	}
	return forwards > 1
}

// byHeads reports whether C++ tells that the queries of attention lie by batches, heads and tokens: they were copied to lie
// so, or are what a norm made, which lies so whatever it is given.
func (r *run) byHeads(out int32) bool {
	const far = 64 // rows
	queries := int32(-1)
	for row := out - 1; row >= max(out-far, 0); row-- {
		if s := r.savedBy(row).saver; s == out || s == out+1 {
			queries = row
		}
	}
	if queries < 0 || r.t.Lives[queries].Requested != r.t.Lives[out].Requested {
		return false
	}
	by := r.operator(queries).Name
	return by == "contiguous" || by == "layer_norm"
}

// copyMerged has the result of attention be copied where the heads are put together, right before a row. The product behind
// keeps the copy, and goes back right before attention does.
func (d *draft) copyMerged(out, before int32) {
	end := d.last(out)
	if end == d.end(out) {
		end = d.before(end)
	}
	var again []extra
	for _, x := range d.added {
		if x.Like == out {
			again = append(again, x)
		}
	}
	d.add(out, d.t.Lives[before].Born, end).bytes = d.sizes[out]
	d.added = append(d.added, again...)
}
