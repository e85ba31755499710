package verdict

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/analyze/units"
)

// TestDefaultsWin holds that nobody is told to set nothing.
func TestDefaultsWin(t *testing.T) {
	v := finding.Setting{Proven: true, Same: 9, Requests: 9,
		Gain: finding.Gain{Kind: finding.ServesAll, Peak: 1 << 30}}
	const unset = "Unset PYTORCH_CUDA_ALLOC_CONF (the defaults do better): every request is served"
	if got := settings(&v); len(got) != 1 || !strings.HasPrefix(got[0], unset) {
		t.Errorf("got %q", got)
	}
	v.Conf = "expandable_segments:True"
	const set = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts: every request is " +
		"served"
	if got := settings(&v); len(got) != 1 || !strings.HasPrefix(got[0], set) {
		t.Errorf("got %q", got)
	}
}

// TestCauses holds that something is said of every kind of cause, with lines of Python.
func TestCauses(t *testing.T) {
	for kind, says := range map[ghost.Kind]string{
		ghost.Graph:    "from 3 places in a forward pass survive together, and no backward pass ran",
		ghost.Retained: "from 3 places in a forward pass survive together although a backward pass ran",
		ghost.Loss:     "single numbers", ghost.Output: "outputs are kept", ghost.Captured: "hook",
		ghost.Gradients: "No Python stack", ghost.Cached: "named like a cache", ghost.Batch: "batches are kept",
		ghost.Rebuilt: "made anew and larger each time", ghost.Models: "as in an ensemble",
		ghost.Object: "A hint only: the stack passes through next_batch(), <lambda>.",
	} {
		c := causeOf(&ghost.Cause{Kind: kind, Places: 3, Hints: []string{"next_batch", "<lambda>"}})
		if all := strings.Join(c.why, " "); !strings.Contains(all, says) || len(remedy.Lines(c.fix...)) == 0 || len(c.next) == 0 {
			t.Errorf("%s: got %+v", kind, c)
		}
	}
}

// TestFrees holds that nothing frees more than it holds without a reason.
func TestFrees(t *testing.T) {
	for gain, want := range map[units.Size]string{
		0:        "something else holds it too.",
		40 << 20: "releasing it frees 40.0 MiB.",
		41 << 20: "releasing it frees 41.0 MiB, as other objects that hold 1.00 MiB are reached through it alone.",
	} {
		if got := frees(40<<20, gain); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
