package category_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestOver holds that samples tile the trace, close to the sums of their moments, and have the
// peak.
func TestOver(t *testing.T) {
	for _, shape := range build.Shapes() {
		s := buildtest.Read(t, build.Random(7, shape.Options))
		tl := timeline.Build(s, 0)
		found := steps.Find(s, tl)
		table := category.Find(s, tl, &found, nil)
		samples := table.Over(tl, 40)
		if len(samples) != min(40, tl.Trace.Len()) {
			t.Fatalf("%s: %d samples", shape.Name, len(samples))
		}
		next, peak := 0, int64(0)
		for _, x := range samples {
			if x.First != next || x.Event < x.First || x.Event > x.Last {
				t.Fatalf("%s: sample %+v after event %d", shape.Name, x, next-1)
			}
			next = x.Last + 1
			st := tl.StateAt(x.Event)
			var sum int64
			for _, use := range table.Sums(tl, st) {
				if got := x.Bytes[use.Category]; got != use.Rounded {
					t.Errorf("%s, event %d: %d bytes of %s, want %d", shape.Name, x.Event, got, use.Category,
						use.Rounded)
				}
			}
			for _, n := range x.Bytes {
				sum += n
			}
			if sum != st.Totals.Active {
				t.Errorf("%s, event %d: %d bytes of %d active", shape.Name, x.Event, sum, st.Totals.Active)
			}
			peak = max(peak, sum)
		}
		if next != tl.Trace.Len() || tl.PeakActive.Event >= 0 && peak != tl.PeakActive.Bytes {
			t.Errorf("%s: up to event %d, peak %d of %d", shape.Name, next-1, peak, tl.PeakActive.Bytes)
		}
	}
}
