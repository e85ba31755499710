package analyze_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// TestGhosts tells leaks from what only looks like one, in programs that ran with a real
// PyTorch (../fixtures/ghosts/programs.py): no finding about ghosts at all in those, and the
// site first in these.
func TestGhosts(t *testing.T) {
	data, err := os.ReadFile("../fixtures/ghosts/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth map[string]struct {
		Verdict finding.Status
		Site    string
	}
	if err := json.Unmarshal(data, &truth); err != nil {
		t.Fatal(err)
	}
	for name, want := range truth {
		v := run(t, "../fixtures/ghosts/"+name+".pickle.xz").Verdict
		if want.Verdict == finding.Healthy {
			for _, f := range v.Findings {
				if f.Status == finding.Ghost {
					t.Errorf("%s accuses: %s", name, f.Title)
				}
			}
			continue
		}
		if v.Status != want.Verdict || !strings.Contains(v.Headline, want.Site) {
			t.Errorf("%s: %s, want %s at %s: %s", name, v.Status, want.Verdict, want.Site, v.Headline)
			continue
		}
		if f := v.Findings[0]; f.Cause == "" || len(f.Fix) == 0 || !f.Heuristic {
			t.Errorf("%s: no cause, no remedy, or no heuristic: %+v", name, f)
		}
	}
}

// TestContradicted holds that a file which contradicts itself is not said to have no leak.
func TestContradicted(t *testing.T) {
	s, err := load.Open(t.Context(), "../fixtures/healthy.pickle", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Segments {
		s.Segments[i].Blocks = snapshot.Range{}
	}
	r, err := analyze.Run(t.Context(), s, analyze.Options{NoReplay: true})
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Verdict.Ghosts(nil, ""); r.Verdict.Status != finding.Inconsistent || g.Status != finding.NoData {
		t.Errorf("%s, and of leaks %s: %s", r.Verdict.Headline, g.Status, g.Headline)
	}
}

// TestLosses tells losses that may have their graphs behind them from those of validation without gradients: both are
// numbers, kept as tensors. The first is accused, in calm words, without the recorder, too.
func TestLosses(t *testing.T) {
	for name, want := range map[string]finding.Status{
		"holders/loss_list_train/snapshot.pickle.zst":          finding.Ghost,
		"lab/frameworks/truth/compile_train.healthy.pickle.xz": finding.Healthy,
	} {
		v := run(t, "../fixtures/"+name).Verdict
		if leaks := v.Ghosts(nil, ""); v.Status != want || leaks.Status != want {
			t.Errorf("%s: %s and of leaks %s, want %s: %s", name, v.Status, leaks.Status, want, v.Headline)
		}
		for _, f := range v.Findings {
			if f.Status == finding.Ghost && (f.Confidence != finding.Low || !strings.Contains(f.Title, " KiB in 1,000")) {
				t.Errorf("%s: %s confidence: %s", name, f.Confidence, f.Title)
			}
		}
	}
}
