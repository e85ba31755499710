package whatif_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestBroken replays traces that are broken in many ways, and states too: nothing may fail, and
// what cannot be is no agreement.
func TestBroken(t *testing.T) {
	tries := 27
	if os.Getenv("SNAPANA_FULL") != "" {
		tries = 135
	}
	rng := rand.New(rand.NewPCG(3, 4))
	shapes := build.Shapes()
	inexact := 0
	for try := range tries {
		s := buildtest.Read(t, build.Random(uint64(try%7), shapes[try%len(shapes)].Options))
		if len(s.Traces) == 0 || s.Traces[0].Len() < 20 {
			continue
		}
		buildtest.Break(rng, s, 60)
		for i := range s.Segments {
			switch rng.IntN(40) {
			case 0:
				s.Segments[i].Expandable = !s.Segments[i].Expandable
			case 1:
				s.Segments[i].Address = rng.Uint64() >> rng.IntN(30)
			case 2:
				s.Segments[i].Pool.A++
			}
		}
		tl := timeline.Build(s, 0)
		if tl.Recording.BlocksUnknown() { // refused
			inexact++
			continue
		}
		p, v := loaded(t, s, tl)
		if !same(v) {
			inexact++
		}
		if v.SameRequests > v.Requests || v.SameSegments > v.Segments || v.SameBlocks > v.Blocks ||
			same(v) != (v.FirstEvent < 0) {
			t.Fatalf("try %d: %+v", try, v)
		}
		for _, start := range []whatif.Start{whatif.Keep, whatif.Anew} {
			for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:21"} {
				for _, capacity := range []int64{0, 50 << 20, 1 << 40} {
					run(t, p, conf, whatif.Options{Start: start, Capacity: capacity, Curve: 10})
				}
			}
		}
	}
	if inexact < tries*8/10 {
		t.Errorf("only %d of %d broken recordings were noticed", inexact, tries)
	}
}
