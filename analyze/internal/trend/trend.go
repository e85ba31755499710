// Package trend tells whether a series rises, and how fast, by methods that make no assumption on how
// its values are distributed.
package trend

import (
	"math"
	"math/bits"
	"slices"
)

type integer interface{ ~int | ~int32 | ~int64 }

// Median is the middle value, the upper one of two, 0 of none.
func Median[T integer](v []T) T {
	if len(v) == 0 {
		return *new(T)
	}
	return nth(slices.Clone(v), len(v)/2)
}

// nth is what would be at a place if the values were sorted; they are moved about.
func nth[T integer](v []T, at int) T {
	const few = 32
	for rounds := 4 * bits.Len(uint(len(v))); len(v) > few && rounds > 0; rounds-- {
		pivot := middle(v[0], v[len(v)/2], v[len(v)-1])
		i, j := 0, len(v)-1
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for pivot < v[j] {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		switch { // v[:j+1] are at most the pivot, v[i:] at least
		case at <= j:
			v = v[:j+1]
		case at >= i:
			v, at = v[i:], at-i
		default:
			return pivot
		}
	}
	slices.Sort(v)
	return v[at]
}

// middle is the second of three values.
func middle[T integer](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }

// MannKendall gives the test statistic S of a series, which is the number of pairs that rise less that of
// those that fall, its variance under no trend, and the one-sided probability of such a rise by chance.
// Up to 10 values without ties the distribution of S is exact, counting permutations by their
// inversions; else S is normal with variance
//
//	(n(n-1)(2n+5) - sum over ties of t(t-1)(2t+5)) / 18
//
// and 1 is taken off S for continuity (H. B. Mann, Nonparametric tests against trend,
// Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods, 4th ed., 1975).
func MannKendall(y []int64) (s, variance, p float64) {
	n := len(y)
	for i := range y {
		for j := i + 1; j < n; j++ {
			switch {
			case y[j] > y[i]:
				s++
			case y[j] < y[i]:
				s--
			}
		}
	}
	f := func(n float64) float64 { return n * (n - 1) * (2*n + 5) / 18 }
	variance = f(float64(n))
	tied := false
	sorted := slices.Sorted(slices.Values(y))
	for i := 0; i < n; {
		k := i + 1
		for k < n && sorted[k] == sorted[i] {
			k++
		}
		if k-i > 1 {
			tied = true
			variance -= f(float64(k - i))
		}
		i = k
	}
	if s <= 0 || variance <= 0 {
		return s, variance, 1
	}
	if n <= 10 && !tied {
		return s, variance, exact(n, int(s))
	}
	return s, variance, math.Erfc((s-1)/math.Sqrt(2*variance)) / 2
}

// exact is the probability that S is at least s for n values in random order: S is the number of
// pairs less twice the inversions, whose distribution is counted.
func exact(n, s int) float64 {
	pairs := n * (n - 1) / 2
	count := make([]float64, pairs+1) // permutations by inversions
	count[0] = 1
	total := 1.0
	for k := 2; k <= n; k++ {
		next := make([]float64, pairs+1)
		for inv := range count {
			for add := 0; add < k && inv+add <= pairs; add++ {
				next[inv+add] += count[inv]
			}
		}
		count = next
		total *= float64(k)
	}
	sum := 0.0
	for inv := 0; inv <= (pairs-s)/2; inv++ {
		sum += count[inv]
	}
	return sum / total
}

// TheilSen gives the median of the slopes of all pairs with different x, and its 95% interval for a
// variance of S (P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63,
// 1968). Up to 29% of the values may be anything without moving it far.
func TheilSen(x, y []int64, variance float64) (slope, low, high float64) {
	var all []float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			if x[j] != x[i] {
				all = append(all, float64(y[j]-y[i])/float64(x[j]-x[i]))
			}
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	at := func(r float64) float64 {
		return all[min(max(int(math.Round(r)), 0), len(all)-1)]
	}
	n := float64(len(all))
	c := 1.96 * math.Sqrt(max(variance, 0))
	slope = all[len(all)/2]
	if len(all)%2 == 0 {
		slope = (slope + all[len(all)/2-1]) / 2
	}
	return slope, at((n - c) / 2), at((n+c)/2 - 1)
}
