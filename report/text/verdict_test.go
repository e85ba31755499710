package text

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/analyzetest"
)

// TestSavings checks that what would lower the peak comes in one list with what is largest there, also where memory
// ran out, and that nothing stands between them and the next step.
func TestSavings(t *testing.T) {
	setting := finding.Lever{Kind: finding.AllocatorSetting, Text: "Set it."}
	largest := finding.Lever{Kind: finding.LargestUse, Text: "The largest part of the peak: parameters."}
	r := analyzetest.Failed(t)
	top := r.Verdict.Findings
	for _, want := range []struct {
		failed bool
		levers []finding.Lever
		text   string
	}{
		{false, []finding.Lever{setting, largest},
			"Next No fix needed. To use less: Savings 1. Set it. 2. The largest part of the peak: parameters."},
		{false, []finding.Lever{largest},
			"Next No fix needed. To use less, start with the largest part of the peak: parameters."},
		{true, []finding.Lever{largest}, "Savings The largest part of the peak: parameters."},
	} {
		r.Verdict.Status, r.Verdict.Findings, r.Verdict.Levers = finding.Healthy, nil, want.levers
		r.Verdict.Advise(r.Snapshot, nil, false)
		if want.failed {
			r.Verdict.Status, r.Verdict.Findings = top[0].Status, top
		}
		if out := strings.Join(strings.Fields(verdictOf(t, r, Options{})), " "); !strings.Contains(out, want.text) {
			t.Errorf("no %q in:\n%s", want.text, out)
		}
	}
}
