package timeline_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestLevels holds that what is asked of parts of a trace is what their events show one by one.
func TestLevels(t *testing.T) {
	for _, events := range []int{0, 1, 63, 64, 65, 1000, 4096, 4100, 9000} {
		made := build.Random(uint64(events), build.RandomOptions{Events: events, Live: 60, Streams: 2})
		tl := timeline.Build(buildtest.Read(t, made), 0)
		n := tl.Trace.Len()
		for _, l := range []*timeline.Levels{tl.ActiveLevels(), tl.AllocatedLevels()} {
			all := l.Values() // that of event e at e+1
			if len(all) != n+1 {
				t.Fatalf("%d events: %d values", n, len(all))
			}
			rng := rand.New(rand.NewPCG(1, uint64(events)))
			for range 2000 {
				first := rng.IntN(n+1) - 1
				last := first + rng.IntN(n-first)
				if rng.IntN(4) == 0 {
					last = n - 1
				}
				part := all[first+1 : last+2]
				most := slices.Max(part)
				if bytes, event := l.Highest(first, last); bytes != most || event != first+slices.Index(part, most) {
					t.Fatalf("%d events: highest of %d to %d is %d after %d, want %d after %d", n, first, last, bytes, event,
						most, first+slices.Index(part, most))
				}
				if least := l.Lowest(first, last); least != slices.Min(part) {
					t.Fatalf("%d events: lowest of %d to %d is %d, want %d", n, first, last, least, slices.Min(part))
				}
				if l.At(last) != all[last+1] {
					t.Fatalf("%d events: %d after %d, want %d", n, l.At(last), last, all[last+1])
				}
				bound := all[rng.IntN(n+1)] + int64(rng.IntN(3)-1)
				rest := all[first+1:]
				want := slices.IndexFunc(rest, func(v int64) bool { return v >= bound })
				if event, ok := l.Reaches(first, bound); ok != (want >= 0) || ok && event != first+want {
					t.Fatalf("%d events: reaches %d from %d on at %d %v, want %d", n, bound, first, event, ok, first+want)
				}
				want = slices.IndexFunc(rest, func(v int64) bool { return v <= bound })
				if event, ok := l.FallsTo(first, bound); ok != (want >= 0) || ok && event != first+want {
					t.Fatalf("%d events: falls to %d from %d on at %d %v, want %d", n, bound, first, event, ok, first+want)
				}
				event, ok := l.LastReaching(bound)
				want = n
				for want >= 0 && all[want] < bound {
					want--
				}
				if ok != (want >= 0) || ok && event != want-1 {
					t.Fatalf("%d events: reaches %d last at %d %v, want %d", n, bound, event, ok, want-1)
				}
			}
		}
		stacks := make([]bool, 1000)
		for i := range stacks {
			stacks[i] = i%2 == 0
		}
		some := tl.LevelsOf(stacks)
		for e := -1; e < n; e++ {
			want := int64(0)
			for i := range tl.Lives {
				l := &tl.Lives[i]
				if end := l.GivenUp(); l.Born >= 0 && int(l.Born) <= e && stacks[l.Stack] && (end < 0 || int(end) > e) {
					want += l.Rounded
				}
			}
			if got := some.At(e); got != want {
				t.Fatalf("%d events: %d of some stacks after %d, want %d", n, got, e, want)
			}
		}
	}
}
