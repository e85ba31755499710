package ghost

import (
	"math"
	"slices"
)

// early is the probability that places between two would be as far to the front as they are if they came at a constant
// rate: the test of Laplace for a trend in a rate, one-sided (D. R. Cox and P. A. W. Lewis, The Statistical Analysis of
// Series of Events, 1966, chapter 3.3). Given their number, places of a constant rate are uniform, so that their sum
// has the distribution of Irwin and Hall. It is 1 without places.
func early(places []int, from, to int) float64 {
	sum := 0.0
	for _, p := range places {
		sum += float64(p-from) / float64(to-from)
	}
	return irwinHall(len(places), sum)
}

// manyUniforms is from how many on a sum of uniform values counts as normal. Up to there the exact distribution loses
// no more than six digits.
const manyUniforms = 16

// irwinHall is the probability that the sum of n values, uniform from 0 to 1, is at most x.
func irwinHall(n int, x float64) float64 {
	if n == 0 {
		return 1
	}
	if n > manyUniforms {
		return math.Erfc((float64(n)/2-x)/math.Sqrt(float64(n)/6)) / 2
	}
	// The sum over k of (-1)^k (x-k)^n / (k! (n-k)!), for the k below x.
	p := 0.0
	for k := 0; k <= n && float64(k) < x; k++ {
		kk, _ := math.Lgamma(float64(k + 1))
		rest, _ := math.Lgamma(float64(n - k + 1))
		p += math.Pow(-1, float64(k)) * math.Exp(float64(n)*math.Log(x-float64(k))-kk-rest)
	}
	return min(max(p, 0), 1)
}

// bursts gives the first places of bursts: of places with gaps of no more than half the widest between them. It is nil
// for fewer than three bursts, and where those that are over are single places or differ by more than a factor of 2.
func bursts(places []int, widest int) []int {
	var heads, sizes []int
	for i, p := range places {
		if i == 0 || 2*(p-places[i-1]) > widest {
			heads, sizes = append(heads, p), append(sizes, 0)
		}
		sizes[len(sizes)-1]++
	}
	over := sizes[:len(sizes)-1]
	if len(heads) < 3 || slices.Min(over) < 2 || slices.Max(over) > 2*slices.Min(over) {
		return nil
	}
	return heads
}
