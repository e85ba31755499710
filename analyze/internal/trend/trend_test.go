package trend_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/internal/trend"
)

// TestMedian holds that the middle value is that of the sorted ones, in whatever order they come, and that they stay in
// that order.
func TestMedian(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	orders := map[string]func(i, n int) int64{
		"random": func(_, n int) int64 { return rng.Int64N(int64(10*n)) - int64(n) },
		"few":    func(int, int) int64 { return rng.Int64N(3) },
		"equal":  func(int, int) int64 { return 7 },
		"rising": func(i, _ int) int64 { return int64(i) },
		"falls":  func(i, n int) int64 { return int64(n - i) },
		"pipe":   func(i, n int) int64 { return int64(min(i, n-i)) },
		"saw":    func(i, _ int) int64 { return int64(i % 17) },
	}
	for name, of := range orders {
		for _, n := range []int{1, 2, 3, 31, 32, 33, 34, 100, 1000, 4097} {
			v := make([]int64, n)
			for i := range v {
				v[i] = of(i, n)
			}
			was := slices.Clone(v)
			got := trend.Median(v)
			if want := slices.Sorted(slices.Values(was))[n/2]; got != want {
				t.Errorf("%s, %d values: %d, want %d", name, n, got, want)
			}
			if !slices.Equal(v, was) {
				t.Errorf("%s, %d values: they were moved", name, n)
			}
		}
	}
	if got := trend.Median([]int(nil)); got != 0 {
		t.Errorf("of none: %d", got)
	}
}
