package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
)

// setting is what a replay of the run proves of allocator settings, or the one that is worth a try without
// proof; nil where it is set already.
func (j *judge) setting(e *Facts) *finding.Setting {
	a := e.WhatIf
	if a == nil || !a.Accuracy.Trusted {
		if e.Timeline.Conf.Expandable {
			return nil
		}
		return &finding.Setting{Conf: "expandable_segments:True"}
	}
	v := &finding.Setting{Proven: true, Same: a.Accuracy.SameRequests, Requests: a.Accuracy.Requests}
	for i := range a.Rows {
		if row := &a.Rows[i]; row.Needs == "" {
			v.Tried++
			if row.Failures > 0 {
				v.Failed++
			}
		}
	}
	if a.Best > 0 {
		best := &a.Rows[a.Best]
		v.Conf, v.Needs, v.Gives = best.Text, best.Needs, string(a.Gain.Kind)
		v.PeakBefore, v.Peak = units.Size(a.Gain.PeakBefore), units.Size(a.Gain.Peak)
		v.FailuresBefore, v.Failures = a.Gain.FailuresBefore, a.Gain.Failures
	}
	return v
}

// settings says which allocator setting helps, as far as a replay of the run proves it.
func settings(v *finding.Setting) []string {
	switch {
	case v == nil:
		return nil
	case !v.Proven:
		return []string{"Try PYTORCH_CUDA_ALLOC_CONF=" + v.Conf + ". It is not proven to help here: the run cannot " +
			"be replayed accurately enough."}
	}
	none := fmt.Sprintf("No allocator setting fixes this in your torch version (%d replayed, including "+
		"expandable_segments): %s.", v.Tried, inVain(v))
	if v.Gives == "" {
		return []string{none}
	}
	proof := fmt.Sprintf("(Replay accuracy: %s.)", units.Percent(int64(v.Same), int64(v.Requests)))
	if v.Needs != "" {
		return []string{none, fmt.Sprintf("With torch %s or later, %s serves every request. %s", v.Needs, v.Conf,
			proof)}
	}
	gain := whatif.Gain{Kind: whatif.GainKind(v.Gives), Peak: int64(v.Peak), PeakBefore: int64(v.PeakBefore),
		Failures: v.Failures, FailuresBefore: v.FailuresBefore}
	change := "Set PYTORCH_CUDA_ALLOC_CONF=" + v.Conf + " before the program starts"
	if v.Conf == "" {
		change = "Unset PYTORCH_CUDA_ALLOC_CONF (the defaults do better)"
	}
	return []string{fmt.Sprintf("%s: %s %s", change, gain.String(), proof)}
}

// inVain says what came of the settings that were tried in vain.
func inVain(v *finding.Setting) string {
	if v.Failed == v.Tried {
		return "the request fails under all of them"
	}
	return "none lowers the peak by much"
}
