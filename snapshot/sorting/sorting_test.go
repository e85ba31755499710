package sorting_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snapana/snapana/snapshot/sorting"
)

// Both sort as package slices does, what is equal included.
func TestSame(t *testing.T) {
	type pair struct{ key, at int }
	r := rand.New(rand.NewPCG(1, 2))
	byKey := func(a, b pair) int { return cmp.Compare(a.key, b.key) }
	for n := range 200 {
		s := make([]pair, n)
		for i := range s {
			s[i] = pair{r.IntN(1 + n/3), i}
		}
		for name, sorts := range map[string][2]func([]pair, func(a, b pair) int){
			"By":     {sorting.By[pair], slices.SortFunc[[]pair]},
			"Stable": {sorting.Stable[pair], slices.SortStableFunc[[]pair]},
		} {
			got, want := slices.Clone(s), slices.Clone(s)
			sorts[0](got, byKey)
			sorts[1](want, byKey)
			if !slices.Equal(got, want) {
				t.Fatalf("%s of %d: %v, want %v", name, n, got, want)
			}
		}
	}
}
