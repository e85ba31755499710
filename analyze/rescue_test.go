package analyze_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot/load"
)

// failed is the verdict on a run that needs more than there is.
func failed(t *testing.T, file string) *finding.Finding {
	t.Helper()
	s, err := load.Open(t.Context(), file, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := analyze.Run(t.Context(), s, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Verdict.Lead()
	if f == nil || f.Status != finding.Capacity || f.Evidence.Rescue == nil {
		t.Fatalf("%s: %+v", r.Verdict.Headline, f)
	}
	return f
}

// TestRescue holds that the verdict on a run that needs more than there is ends with changes of the program, each of which
// was replayed. The recording is fixtures/lab/pairs/pairs.py base on a device of 672 MiB, by torch 2.15.
func TestRescue(t *testing.T) {
	f := failed(t, "testdata/full.pickle.xz")
	x := f.Evidence.Rescue
	if len(x.Fit) == 0 || !x.Ends || x.LeftOut {
		t.Fatalf("%+v", x)
	}
	for i := range x.Fit {
		if a := &x.Fit[i]; a.Saves <= 0 || a.Spare <= 0 || i > 0 && a.Slower < x.Fit[i-1].Slower {
			t.Errorf("%+v", a)
		}
	}
	if last := f.Next[len(f.Next)-1]; !strings.Contains(last, "makes it fit with") || !strings.Contains(last, "request that failed") {
		t.Errorf("the last advice is %q", last)
	}
}

// TestEarlyRescue holds that a failure before any backward pass ends with what changes leave up to it, and calls none of
// them enough.
func TestEarlyRescue(t *testing.T) {
	f := failed(t, "../fixtures/holders/genuine_oom/snapshot.pickle.zst")
	x := f.Evidence.Rescue
	if len(x.Fit) < 2 || !x.Early || !x.Ends {
		t.Fatalf("%+v", x)
	}
	for i := range x.Fit {
		if a := &x.Fit[i]; a.Spare <= 0 || i > 0 && a.Spare > x.Fit[i-1].Spare {
			t.Errorf("%+v", a)
		}
	}
	if first := f.Next[0]; !strings.Contains(first, x.Fit[0].Spare.String()) || strings.Contains(first, "makes it fit") {
		t.Errorf("the first advice is %q", first)
	}
}
