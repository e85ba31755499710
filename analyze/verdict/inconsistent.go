package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// inconsistent reports files whose parts contradict each other.
func (j *judge) inconsistent(e *Facts) {
	c := &e.Timeline.Checks
	if c.Inconsistent() == 0 && c.Residual == 0 {
		return
	}
	faults := &finding.Faults{Places: c.Inconsistent(), Residual: units.Size(c.Residual)}
	f := &finding.Finding{
		ID: "inconsistent", Status: finding.Inconsistent, Severity: finding.Error, Confidence: finding.High,
		Device: e.Timeline.Device, Bytes: max(c.Residual, -c.Residual), Evidence: finding.Evidence{Faults: faults},
		Title: fmt.Sprintf("The file contradicts itself in %s: do not trust its figures.",
			units.Plural(faults.Places, "place")),
		Next: []string{"Record the snapshot again, and keep the file as torch wrote it: trimmed, filtered or " +
			"generated files look like this.",
			"Read all figures below as estimates."},
	}
	for _, fault := range []struct {
		count      int64
		kind, what string
	}{
		{c.UntiledSegments, "untiled_segments", "segments whose blocks do not cover them exactly"},
		{c.WrongSegmentTotals, "wrong_segment_totals", "segments whose totals differ from the sums of their blocks"},
		{c.UnmatchedAllocs, "unmatched_allocs", "allocations that clash with a live block at their address"},
		{c.UnmatchedFrees, "unmatched_frees", "frees of addresses that were not live"},
		{c.Overlaps, "overlaps", "live blocks that overlap another"},
		{c.OutsideSegments, "outside_segments", "events at addresses outside all known segments"},
		{c.LiveOverReserved, "live_over_reserved", "events after which live memory exceeds reserved memory"},
		{c.MarkerMismatches, "marker_mismatches", "recorded totals that differ from the rebuilt ones"},
		{c.BadEvents, "bad_events", "events that lack an address or a size"},
	} {
		if fault.count > 0 {
			faults.Kinds = append(faults.Kinds, finding.Fault{Kind: fault.kind, Count: fault.count})
			f.Because("%s %s", units.Count(fault.count), fault.what)
		}
	}
	if c.Residual != 0 {
		f.Because("the rebuilt final state differs from the recorded one by %v", faults.Residual)
	}
	j.add(f)
}
