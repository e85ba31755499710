package bands

import "math"

// Choose picks the n lives that a page without more room should keep: those that are live right
// after one of the events in must, as far as they fit, and then those with the most bytes
// times events lived. Of many alike it takes some from all over the trace. The result is by
// row; it is nil when all fit.
func (x *Index) Choose(n int, must []int) []bool {
	lives := x.t.Lives
	if len(lives) <= n {
		return nil
	}
	return Largest(n, len(lives), func(i int) float64 {
		l := &lives[i]
		for _, e := range must {
			if l.LiveAfter(e) {
				return math.MaxFloat64
			}
		}
		end := int(l.Freed)
		if end < 0 {
			end = x.events
		}
		return float64(bytes(l)) * float64(max(end-int(l.Born), 1))
	})
}

// Largest marks the n of count things that have the largest areas, to within 2 %. Things are
// sorted into classes of about one area, and the last class that fits in part is thinned out
// evenly: that needs no order of millions. Areas are not negative.
func Largest(n, count int, area func(i int) float64) []bool {
	const bits = 46 // of the mantissa that a class leaves out
	counts := make([]int32, math.Float64bits(math.MaxFloat64)>>bits+1)
	classes := make([]uint32, count)
	for i := range classes {
		classes[i] = uint32(math.Float64bits(area(i)) >> bits)
		counts[classes[i]]++
	}
	room, edge := n, uint32(len(counts)-1)
	for ; int(counts[edge]) <= room; edge-- {
		room -= int(counts[edge])
		if edge == 0 {
			break
		}
	}
	keep := make([]bool, count)
	share, have := int(counts[edge]), 0
	for i, c := range classes {
		keep[i] = c > edge
		if c == edge {
			if have += room; have >= share {
				have -= share
				keep[i] = true
			}
		}
	}
	return keep
}
