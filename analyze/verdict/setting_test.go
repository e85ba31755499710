package verdict

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/whatif"
)

// TestDefaultsWin holds that nobody is told to set nothing.
func TestDefaultsWin(t *testing.T) {
	v := finding.Setting{Proven: true, Gives: string(whatif.ServesAll), Peak: 1 << 30, Same: 9, Requests: 9}
	const unset = "Unset PYTORCH_CUDA_ALLOC_CONF (the defaults do better): every request is served"
	if got := settings(&v); len(got) != 1 || !strings.HasPrefix(got[0], unset) {
		t.Errorf("got %q", got)
	}
	v.Conf = "expandable_segments:True"
	const set = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts: every request is served"
	if got := settings(&v); len(got) != 1 || !strings.HasPrefix(got[0], set) {
		t.Errorf("got %q", got)
	}
}
