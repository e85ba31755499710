package chart

import (
	"github.com/snapana/snapana/analyze/timeline"
)

// Check is one way in which a file can contradict itself.
type Check struct {
	Name  string
	Count int64
}

// Checks lists what was checked on one device, in the order in which a reader would ask.
func Checks(t *timeline.Timeline) []Check {
	c := &t.Checks
	return []Check{
		{"segments whose blocks do not cover them exactly", c.UntiledSegments},
		{"segments whose own sums differ from their blocks'", c.WrongSegmentTotals},
		{"allocations that clash with what lives at their address, or with the final state", c.UnmatchedAllocs},
		{"frees of what was not live", c.UnmatchedFrees},
		{"blocks that overlap", c.Overlaps},
		{"events outside of every known segment", c.OutsideSegments},
		{"events after which more is active than reserved", c.LiveOverReserved},
		{"earlier dumps that counted other active bytes", c.MarkerMismatches},
		{"events without the address or size that they need", c.BadEvents},
		{"bytes by which the rebuilt end differs from the recorded one", max(c.Residual, -c.Residual)},
	}
}
