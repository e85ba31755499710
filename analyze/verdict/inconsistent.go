package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// inconsistent reports files whose parts contradict each other.
func (j *judge) inconsistent(e *Evidence) {
	c := &e.Timeline.Checks
	n := c.Inconsistent()
	if n == 0 && c.Residual == 0 {
		return
	}
	f := finding.Finding{
		ID: "inconsistent", Status: finding.Inconsistent, Severity: finding.Error, Confidence: finding.High, Device: e.Timeline.Device,
		Bytes: max(c.Residual, -c.Residual),
		Title: fmt.Sprintf("The file contradicts itself in %s places: do not trust its figures.", units.Count(n)),
		Next: []string{"Record the snapshot again, and keep the file as torch wrote it: trimmed, filtered or generated files look like this.",
			"Figures below are what can be rebuilt; read them as estimates."},
	}
	count := func(n int64, what string) {
		if n > 0 {
			f.Why = append(f.Why, units.Count(n)+" "+what)
		}
	}
	count(c.UntiledSegments, "segments whose blocks do not cover them exactly")
	count(c.WrongSegmentTotals, "segments whose own sums differ from their blocks'")
	count(c.UnmatchedAllocs, "allocations that clash with what lives at their address")
	count(c.UnmatchedFrees, "frees of addresses that were not live")
	count(c.Overlaps, "live blocks that overlap another")
	count(c.OutsideSegments, "events on addresses in no known segment")
	count(c.LiveOverReserved, "events after which live memory exceeds reserved memory")
	count(c.MarkerMismatches, "recorded totals that differ from the rebuilt ones")
	count(c.BadEvents, "events without the address or size that they need")
	if c.Residual != 0 {
		f.Why = append(f.Why, fmt.Sprintf("the rebuilt end differs from the recorded one by %s", units.Bytes(c.Residual)))
	}
	j.add(f)
}
