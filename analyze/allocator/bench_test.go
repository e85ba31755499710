package allocator

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkManyFree serves requests from a hundred thousand free blocks.
func BenchmarkManyFree(b *testing.B) {
	a := New(Options{Conf: Default()})
	rng := rand.New(rand.NewPCG(1, 1))
	var all []Block
	for range 200_000 {
		k, _ := a.Malloc(512*(1+rng.Int64N(2000)), 0, 0)
		all = append(all, k)
	}
	for i := 0; i < len(all); i += 2 {
		a.Free(all[i])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		k, _ := a.Malloc(512*(1+rng.Int64N(2000)), 0, 0)
		a.Free(k)
	}
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
}
