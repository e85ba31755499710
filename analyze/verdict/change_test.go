package verdict_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/load"
)

// TestPromises holds what is said of changes of a run that ran out of memory: in the first pass nothing is enough for
// sure, and later what the pass before tells is.
func TestPromises(t *testing.T) {
	for _, c := range []struct{ file, asked, answer, search string }{
		{"convnet_out_in_first_backward", "checkpoint=blocks.*", "fits with 186 MiB to spare up to the request that failed",
			"The request came before anything tells what the rest of a step needs"},
		{"convnet_out_in_backward", "checkpoint=blocks.*", "fits with 170 MiB to spare.", "The cheapest that fits: with checkpoint"},
		{"llama_out_in_forward_1", "checkpoint=layers.0", "that is not enough", "None of these changes"},
	} {
		s, err := load.Open(t.Context(), "../../fixtures/lab/changes/"+c.file+".pickle.xz", load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in, err := change.NewInput(t.Context(), s, timeline.Build(s, 0), nil)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := change.Parse(c.asked)
		if err != nil {
			t.Fatal(err)
		}
		a, err := change.Ask(t.Context(), in, []change.Change{asked})
		if err != nil {
			t.Fatal(err)
		}
		f, err := change.Search(t.Context(), in, []change.Change{asked}, 0)
		if err != nil {
			t.Fatal(err)
		}
		verdict.SayChanges(a)
		verdict.SaySearch(f)
		if !strings.Contains(a.Text, c.answer) || !strings.HasPrefix(f.Text, c.search) {
			t.Errorf("%s: %q, found %q", c.file, a.Text, f.Text)
		}
	}
}
