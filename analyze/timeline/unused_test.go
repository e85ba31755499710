package timeline_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/load"
)

// TestUnused holds that of a device without memory the peak is known to be zero, as torch counts it, where another was
// recorded, and not known where none was.
func TestUnused(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/lab/devices/truth/one_of_four.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range []bool{false, true, true, true} {
		tl := timeline.Build(s, device)
		if tl.Unused() != want || want && (tl.PeakReserved.Bytes != 0 || tl.PeakActive.Bytes != 0) {
			t.Errorf("GPU %d: %v, peaks %+v", device, tl.Unused(), tl.Peaks)
		}
	}
	if timeline.Build(s, 4).Unused() {
		t.Error("a device that the file does not know is unused")
	}
	s.Traces[0] = s.Traces[1]
	if timeline.Build(s, 1).Unused() {
		t.Error("nothing was recorded, and GPU 1 is said to be unused")
	}
}
