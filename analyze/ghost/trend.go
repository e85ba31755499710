package ghost

import (
	"math"
	"slices"
)

// maxPoints bounds the series that trends are computed of: pairs grow with its square.
const maxPoints = 200

// thin takes at most maxPoints values, evenly and with the last. It also gives how many places
// the values lie apart.
func thin(v []int64) ([]int64, float64) {
	if len(v) <= maxPoints {
		return v, 1
	}
	out := make([]int64, maxPoints)
	step := float64(len(v)-1) / float64(maxPoints-1)
	for i := range out {
		out[i] = v[int(math.Round(float64(i)*step))]
	}
	return out, step
}

// slope is the Theil-Sen estimate of the growth of a series per place: the median of the
// slopes of all pairs (P. K. Sen, Estimates of the regression coefficient based on Kendall's
// tau, JASA 63, 1968). Up to 29% of the values may be anything without moving it far.
func slope(v []int64) float64 {
	v, step := thin(v)
	if len(v) < 2 {
		return 0
	}
	all := make([]float64, 0, len(v)*(len(v)-1)/2)
	for i := range v {
		for j := i + 1; j < len(v); j++ {
			all = append(all, float64(v[j]-v[i])/(float64(j-i)*step))
		}
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// rises is the one-sided probability that a series without a trend would rise as much, by the
// test of Mann and Kendall: S is the number of pairs that rise less that of those that fall.
// Up to 10 values without ties the distribution of S is exact, counting permutations by their
// inversions; else S is normal with variance
//
//	(n(n-1)(2n+5) - sum over ties of t(t-1)(2t+5)) / 18
//
// and 1 is taken off S for continuity (H. B. Mann, Nonparametric tests against trend,
// Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods, 4th ed., 1975). Values of
// one series are not independent, so that the result ranks evidence and is no error rate.
func rises(v []int64) float64 {
	v, _ = thin(v)
	n := len(v)
	s := 0
	for i := range v {
		for j := i + 1; j < n; j++ {
			switch {
			case v[j] > v[i]:
				s++
			case v[j] < v[i]:
				s--
			}
		}
	}
	sorted := slices.Sorted(slices.Values(v))
	variance, tied := n*(n-1)*(2*n+5), false
	for i := 0; i < n; {
		j := i
		for j < n && sorted[j] == sorted[i] {
			j++
		}
		if t := j - i; t > 1 {
			variance, tied = variance-t*(t-1)*(2*t+5), true
		}
		i = j
	}
	switch {
	case n < 3 || s <= 0:
		return 1
	case n <= 10 && !tied:
		return fewInversions(n, (n*(n-1)/2-s)/2)
	}
	z := (float64(s) - 1) / math.Sqrt(float64(variance)/18)
	return math.Erfc(z/math.Sqrt2) / 2
}

// fewInversions is the share of the permutations of n with at most k inversions.
func fewInversions(n, k int) float64 {
	counts := []float64{1}
	all := 1.0
	for m := 2; m <= n; m++ {
		next := make([]float64, len(counts)+m-1)
		for i, c := range counts {
			for d := range m {
				next[i+d] += c
			}
		}
		counts, all = next, all*float64(m)
	}
	sum := 0.0
	for _, c := range counts[:k+1] {
		sum += c
	}
	return sum / all
}
