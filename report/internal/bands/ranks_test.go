package bands_test

import (
	"math/rand/v2"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/bands"
)

// A search finds, once each and in order, lives that are not kept and live in the window: all of
// them, or else as many as it may.
func TestWithin(t *testing.T) {
	each(t, func(t *testing.T, tl *timeline.Timeline, rng *rand.Rand) {
		kept := make([]bool, len(tl.Lives))
		for i := range kept {
			kept[i] = rng.IntN(3) == 0
		}
		ranks, events := bands.NewRanks(tl, kept), tl.Trace.Len()
		for range 30 {
			first := rng.IntN(events+1) - 1
			last, at, n := first+rng.IntN(events-first), rng.IntN(events+1)-1, 1+rng.IntN(len(kept)+1)
			want := map[int32]bool{} // by row, whether it lives after at
			atOnly := 0
			for i := range tl.Lives {
				l := &tl.Lives[i]
				if in := l.LiveAfter(first) || int(l.Born) > first && int(l.Born) <= last; !kept[i] &&
					(in || l.LiveAfter(at)) {
					want[int32(i)] = l.LiveAfter(at)
					if l.LiveAfter(at) {
						atOnly++
					}
				}
			}
			rows, all, allAt := ranks.Within(first, last, at, n)
			if all && len(rows) != len(want) || !all && len(want) <= n/2 || len(rows) > n {
				t.Fatalf("%d..%d and %d: %d rows of %d, at most %d, all is %v", first, last, at, len(rows), len(want),
					n, all)
			}
			found := 0
			for i, row := range rows {
				isAt, ok := want[row]
				if !ok || i > 0 && row <= rows[i-1] {
					t.Fatalf("%d..%d and %d: row %d is %+v", first, last, at, row, tl.Lives[row])
				}
				if isAt {
					found++
				}
			}
			if allAt != (found == atOnly) {
				t.Fatalf("%d of %d rows live after %d, all is %v", found, atOnly, at, allAt)
			}
		}
	})
}
