package holder_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Programs of the lab (fixtures/holders/uses), of which the recorder saw who holds what grows: what is forgotten is
// called a leak with high confidence, what is kept for use is not.
func TestLabUses(t *testing.T) {
	for name, want := range map[string]struct {
		status     finding.Status
		confidence finding.Confidence // of the first finding
		holder     string
		why        string
	}{
		"hist_attr":    {finding.Ghost, finding.High, "list attribute `history` of Trainer", "only added to"},
		"returned":     {finding.Ghost, finding.High, "list `outs`, local of train", "only added to"},
		"handler":      {finding.Ghost, finding.High, "list attribute `buffer` of MemoryHandler", "logging"},
		"param_groups": {finding.Ghost, finding.High, "AdamW `opt`, local of main", "in no module any more"},
		"new_opt":      {finding.Ghost, finding.High, "list attribute `optimizers` of Fit", "state for the same parameters"},
		"sessions":     {finding.Ghost, finding.Low, "dict attribute `sessions` of Server", "reads it at"},
		"rollouts":     {finding.Ghost, finding.Low, "list attribute `", "empties it at"},
		"trials":       {finding.Ghost, finding.Low, "list attribute `prepared` of Launcher", "empties it at"},
		"pool_size":    {finding.Healthy, finding.Low, "list attribute `images` of ImagePool", "by pool_size"},
		"prealloc":     {finding.Healthy, finding.High, "list attribute `data` of Replay", "stops at its bound"},
		"dataset":      {finding.Healthy, finding.Low, "dict attribute `ready` of Cached", "by len paths"},
		"topk":         {finding.Healthy, finding.Low, "list attribute `states` of Best", "by keep"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(lab, "uses", name)
			f, err := sidecar.Open(t.Context(), filepath.Join(dir, "run.snapana"), sidecar.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle.zst"), load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s.Name = "run.pickle"
			r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f})
			if r.Verdict.Status != want.status {
				t.Errorf("%s: %s", r.Verdict.Status, r.Verdict.Headline)
			}
			if leaks := r.Verdict.Ghosts(r.Holders, ""); leaks.Status != want.status {
				t.Errorf("of leaks %s: %s", leaks.Status, leaks.Headline)
			}
			for i := range r.Verdict.Findings {
				got := &r.Verdict.Findings[i]
				if got.Evidence.Holder == nil {
					continue
				}
				if got.Confidence != want.confidence || !strings.HasPrefix(got.Evidence.Holder.Reference, want.holder) ||
					!strings.Contains(strings.Join(got.Why, "\n"), want.why) {
					t.Errorf("%s confidence, %s: %q", got.Confidence, got.Evidence.Holder.Reference, got.Why)
				}
				return
			}
			t.Errorf("no finding has a holder: %+v", r.Verdict.Findings)
		})
	}
}
