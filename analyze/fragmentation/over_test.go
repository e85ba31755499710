package fragmentation_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestOver holds that each sample closes, and that the last is the end.
func TestOver(t *testing.T) {
	for _, shape := range build.Shapes() {
		s := buildtest.Read(t, build.Random(5, shape.Options))
		tl := timeline.Build(s, 0)
		samples := fragmentation.Over(tl, 50)
		if want := min(50, tl.Trace.Len()); len(samples) != want {
			t.Fatalf("%s: %d samples, want %d", shape.Name, len(samples), want)
		}
		for i, x := range samples {
			if x.Classes.Sum() != x.Reserved-x.Allocated {
				t.Errorf("%s: sample %d does not close: %+v", shape.Name, i, x)
			}
			if i > 0 && x.Event <= samples[i-1].Event {
				t.Errorf("%s: sample %d is of event %d, after %d", shape.Name, i, x.Event, samples[i-1].Event)
			}
		}
		if n := len(samples); n > 0 && samples[n-1].Event != tl.Trace.Len()-1 {
			t.Errorf("%s: the last sample is of event %d", shape.Name, samples[n-1].Event)
		}
	}
}
