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
		{"convnet_out_in_first_backward", "checkpoint=blocks.*", "fits with 206 MiB to spare up to the request that failed",
			"The request came before anything tells what the rest of a step needs"},
		{"convnet_out_in_backward", "checkpoint=blocks.*", "fits with 170 MiB to spare.", "The cheapest that fits: with checkpoint"},
		{"llama_out_in_forward_1", "checkpoint=layers.0", "that is not enough", "None of these changes"},
	} {
		in, asked, a := answered(t, c.file, c.asked)
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

// answered asks for a change of a recording of the lab's.
func answered(t *testing.T, file, text string) (*change.Input, change.Change, *change.Answer) {
	t.Helper()
	s, err := load.Open(t.Context(), "../../fixtures/lab/changes/"+file+".pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := change.NewInput(t.Context(), s, timeline.Build(s, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := change.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a, err := change.Ask(t.Context(), in, []change.Change{asked})
	if err != nil {
		t.Fatal(err)
	}
	return in, asked, a
}

// TestWaysOfZero holds that the other way to share an optimizer's state is told beside the one that was asked for, and is in the band.
func TestWaysOfZero(t *testing.T) {
	_, _, cut := answered(t, "convnet_zero1_4", "zero=1,4")
	_, _, dealt := answered(t, "convnet_zero1_4", "zero=torch,4")
	verdict.SayChanges(cut)
	verdict.SayChanges(dealt)
	if want := "with torch's ZeroRedundancyOptimizer (zero=torch,4) it is 298 MiB."; !strings.HasSuffix(cut.Text, want) {
		t.Errorf("%q does not end with %q", cut.Text, want)
	}
	if n := dealt.After.ReservedPeak; cut.Instead == nil || cut.Instead.ReservedPeak != n || n < cut.Band.Low || n > cut.Band.High {
		t.Errorf("beside it %+v in %+v, by itself %d", cut.Instead, cut.Band, n)
	}
	if text := dealt.Changes[0].Text; dealt.Instead != nil || !strings.HasPrefix(text, "Rank 0 holds") {
		t.Errorf("%+v, %q", dealt.Instead, text)
	}
}
