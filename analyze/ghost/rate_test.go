package ghost_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// schedules say in which laps of a loop something is kept for good.
var schedules = []struct {
	name string
	keep func(r *rand.Rand, laps int) func(lap int) bool
	leak bool
	// rates are in how many of 100 runs of 8, 14, 20 and 40 laps it is found, of 150 with other chances.
	rates [4]int
}{
	{"in each lap", every(1), true, [4]int{100, 100, 100, 100}},
	{"in every second lap", every(2), true, [4]int{100, 100, 100, 100}},
	{"in every third lap", every(3), true, [4]int{0, 100, 100, 100}},
	{"in half of the laps, by chance", byChance(0.5), true, [4]int{94, 94, 97, 94}},
	{"in a third of the laps, by chance", byChance(1. / 3), true, [4]int{95, 88, 90, 94}},
	{"in 4 laps of 10, one after the other", inBursts(4, 10), true, [4]int{45, 69, 89, 100}},
	{"in 3 laps of 7, one after the other", inBursts(3, 7), true, [4]int{100, 100, 100, 100}},
	{"in the second half", func(_ *rand.Rand, laps int) func(int) bool {
		return func(lap int) bool { return lap >= laps/2 }
	}, true, [4]int{100, 100, 100, 100}},
	{"a cache of a third as many keys as laps", cache(3), false, [4]int{0, 17, 13, 1}},
	{"a cache of half as many keys", cache(2), false, [4]int{60, 45, 31, 7}},
	{"a cache of as many keys", cache(1), false, [4]int{78, 73, 67, 35}},
	{"ever more rarely", func(r *rand.Rand, laps int) func(int) bool {
		return func(lap int) bool { return r.IntN(laps) > lap }
	}, false, [4]int{47, 29, 9, 2}},
	{"until it is full", func(_ *rand.Rand, laps int) func(int) bool {
		return func(lap int) bool { return 3*lap < laps }
	}, false, [4]int{0, 0, 0, 0}},
	{"in the first four laps", func(*rand.Rand, int) func(int) bool {
		return func(lap int) bool { return lap < 4 }
	}, false, [4]int{0, 0, 0, 0}},
}

func every(n int) func(*rand.Rand, int) func(int) bool {
	return func(*rand.Rand, int) func(int) bool {
		return func(lap int) bool { return lap%n == n-1 }
	}
}

func byChance(p float64) func(*rand.Rand, int) func(int) bool {
	return func(r *rand.Rand, _ int) func(int) bool {
		return func(int) bool { return r.Float64() < p }
	}
}

func inBursts(n, of int) func(*rand.Rand, int) func(int) bool {
	return func(r *rand.Rand, _ int) func(int) bool {
		from := r.IntN(of)
		return func(lap int) bool { return (lap+from)%of < n }
	}
}

func cache(lapsPerKey int) func(*rand.Rand, int) func(int) bool {
	return func(r *rand.Rand, laps int) func(int) bool {
		seen := map[int]bool{}
		return func(int) bool {
			key := r.IntN(max(laps/lapsPerKey, 1))
			again := seen[key]
			seen[key] = true
			return !again
		}
	}
}

// TestRate publishes how often growth is seen that comes at a constant rate, in ways that programs have, and how often
// a cache that fills is taken for it: the table of the package comment.
func TestRate(t *testing.T) {
	const runs, tolerance = 30, 20
	for _, c := range schedules {
		var got [4]float64
		for i, laps := range []int{8, 14, 20, 40} {
			found, of := 0, 0
			for seed := range uint64(runs) {
				r := rand.New(rand.NewPCG(seed, uint64(laps)))
				keeps, n := make([]bool, laps), 0
				for lap, f := 0, c.keep(r, laps); lap < laps; lap++ {
					if keeps[lap] = f(lap); keeps[lap] {
						n++
					}
				}
				if n < ghost.MinLaps {
					continue
				}
				s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
					for lap := range laps {
						d.Free(alloc(d, input, mib))
						d.Free(alloc(d, other, mib))
						if keeps[lap] {
							alloc(d, keep, mib)
						}
						d.Free(alloc(d, layer, mib))
					}
				}))
				of++
				found += len(ghost.Find(s, timeline.Build(s, 0), nil))
			}
			got[i] = math.Round(100 * float64(found) / float64(max(of, 1)))
			off := got[i] - float64(c.rates[i])
			if of > 0 && (c.leak && off < -tolerance || !c.leak && off > tolerance) {
				t.Errorf("%s, %d laps: found in %v%%, not %d%%", c.name, laps, got[i], c.rates[i])
			}
		}
		t.Logf("%-38s %v", c.name, got)
	}
}

// TestShortSteady finds what is kept in each lap, however few laps there are and wherever the trace ends in the last.
func TestShortSteady(t *testing.T) {
	for laps := ghost.MinLaps; laps <= 12; laps++ {
		for rest := range 3 {
			s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
				for range laps {
					d.Free(alloc(d, input, mib))
					alloc(d, keep, mib)
					d.Free(alloc(d, other, mib))
				}
				for _, stack := range []*build.Stack{input, other}[:rest] {
					d.Free(alloc(d, stack, mib))
				}
			}))
			if n := len(ghost.Find(s, timeline.Build(s, 0), nil)); n != 1 {
				t.Errorf("%d laps and %d allocations: %d growths", laps, rest, n)
			}
		}
	}
}
