package diff

import (
	"cmp"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/footprint"
)

// piece is blocks of a pair that changed in one way.
type piece struct {
	*Pair
	law   law
	ratio float64        // of sizes, of counts, or of all bytes; 0 for none
	to    int64          // bytes on side B
	delta int64          // bytes, B less A
	size  footprint.Size // of its blocks, of those that are alone
}

// law says how blocks of one code differ from one side to the other.
type law uint8

const (
	mixed      law = iota // none of the others
	scaled                // as many blocks, each larger by the same factor
	multiplied            // blocks of the same sizes, more of each, or fewer
	rounding              // as many blocks of the same sizes, of which the allocator made others
	alone                 // only one side has any
)

// near is how far ratios may be apart that are taken for one: sizes have parts that do not grow, such as offsets.
const near = 0.01

func isNear(a, b float64) bool { return a > 0 && b > 0 && math.Abs(math.Log(a/b)) <= near }

// pieces splits a pair by what became of its blocks. What did not change is left out, the rest sums up to the pair's
// difference.
func (p *Pair) pieces() []piece {
	switch {
	case p.A == nil:
		return p.lonely(p.B.Sizes, 1)
	case p.B == nil:
		return p.lonely(p.A.Sizes, -1)
	case p.A.Count == p.B.Count:
		return p.aligned(p.A.Sizes, p.B.Sizes)
	}
	if slices.EqualFunc(p.A.Sizes, p.B.Sizes, sameSize) {
		return p.counted()
	}
	a, b := without(p.A.Sizes, p.B.Sizes), without(p.B.Sizes, p.A.Sizes)
	if count(a) == count(b) {
		return p.aligned(a, b)
	}
	v := piece{Pair: p, to: total(b), delta: p.Delta()}
	if p.A.Requested > 0 {
		v.ratio = float64(p.B.Requested) / float64(p.A.Requested)
	}
	return []piece{v}
}

// lonely are blocks that only one side has.
func (p *Pair) lonely(sizes []footprint.Size, sign int64) []piece {
	var out []piece
	for _, z := range sizes {
		n := z.Count * z.Rounded
		out = append(out, piece{Pair: p, law: alone, to: max(sign*n, 0), delta: sign * n, size: z})
	}
	return out
}

// aligned puts as many blocks of both sides side by side, smallest first.
func (p *Pair) aligned(a, b []footprint.Size) []piece {
	var out []piece
	a, b = slices.Clone(a), slices.Clone(b)
	for len(a) > 0 {
		x, y := &a[0], &b[0]
		n := min(x.Count, y.Count)
		if delta := n * (y.Rounded - x.Rounded); delta != 0 {
			v := piece{Pair: p, to: n * y.Rounded, delta: delta}
			switch {
			case x.Requested == y.Requested:
				v.law = rounding
			case 64*x.Requested > y.Requested && 64*y.Requested > x.Requested: // else they are not the same tensor
				v.law, v.ratio = scaled, float64(y.Requested)/float64(x.Requested)
			}
			out = append(out, v)
		}
		if x.Count -= n; x.Count == 0 {
			a = a[1:]
		}
		if y.Count -= n; y.Count == 0 {
			b = b[1:]
		}
	}
	return out
}

func sameSize(a, b footprint.Size) bool { return compareSizes(a, b) == 0 }

// counted compares how many blocks of each size there are, which both sides have.
func (p *Pair) counted() []piece {
	var out []piece
	for i, x := range p.A.Sizes {
		if y := p.B.Sizes[i]; x.Count != y.Count {
			out = append(out, piece{Pair: p, law: multiplied, ratio: float64(y.Count) / float64(x.Count),
				to: y.Count * y.Rounded, delta: (y.Count - x.Count) * y.Rounded})
		}
	}
	return out
}

// without takes away from a as many blocks of each size as b has.
func without(a, b []footprint.Size) []footprint.Size {
	var out []footprint.Size
	for _, x := range a {
		if at, ok := slices.BinarySearchFunc(b, x, compareSizes); ok {
			x.Count -= min(x.Count, b[at].Count)
		}
		if x.Count > 0 {
			out = append(out, x)
		}
	}
	return out
}

func compareSizes(a, b footprint.Size) int {
	return cmp.Or(cmp.Compare(a.Requested, b.Requested), cmp.Compare(a.Rounded, b.Rounded))
}

func count(sizes []footprint.Size) (n int64) {
	for _, s := range sizes {
		n += s.Count
	}
	return n
}

func total(sizes []footprint.Size) (n int64) {
	for _, s := range sizes {
		n += s.Count * s.Rounded
	}
	return n
}
