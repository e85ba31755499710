package analyze_test

import (
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// TestVerified holds how far a replay is said to be right: never "off by 0 B", and never exact where nothing was
// replayed.
func TestVerified(t *testing.T) {
	reserved := timeline.Recording{Unseen: 1 << snapshot.SegmentFree, Partly: 1 << snapshot.SegmentAlloc,
		Peak: timeline.Bounds{Reserved: timeline.AtMost}}
	lost := reserved
	lost.Skipped = 1 << snapshot.SegmentFree
	for _, c := range []struct {
		name        string
		checks      timeline.Checks
		recording   timeline.Recording
		only        bool // the final state
		long, brief string
	}{
		{name: "sound", long: analyze.Exactly, brief: "verified"},
		{name: "final state", only: true, long: analyze.Agreed, brief: "none: only the final state was recorded"},
		{name: "contradicts", checks: timeline.Checks{Overlaps: 2}, brief: "not verified",
			long: "not verified: the file contradicts itself in 2 places"},
		{name: "residual", checks: timeline.Checks{Residual: -512}, brief: "not verified",
			long: "not verified: the replay is off by 512 B"},
		{name: "both", checks: timeline.Checks{Overlaps: 1, Residual: 2048}, brief: "not verified",
			long: "not verified: the file contradicts itself in 1 place, and the replay is off by 2.00 KiB"},
		{name: "possibly skipped", recording: reserved, brief: "verified, unless skip_actions was used",
			long: "verified, unless skip_actions left out segment_alloc or segment_free events: reserved memory would " +
				"then be wrong"},
		{name: "skipped", recording: lost, brief: "verified, except reserved memory",
			long: "verified, except reserved memory: the recording left out segment_free events (skip_actions)"},
	} {
		tl := &timeline.Timeline{Checks: c.checks, Recording: c.recording}
		if !c.only {
			var events snapshot.Events
			events.Add(snapshot.Event{Action: snapshot.Alloc})
			tl.Trace = snapshot.NewTrace(&events, 0, 1)
		}
		r := &analyze.Result{Devices: []analyze.Device{{Timeline: tl}}}
		if got := r.Verified(); got != c.long || analyze.Verified(tl) != c.long {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := r.VerifiedBriefly(); got != c.brief {
			t.Errorf("%s, in brief: %q", c.name, got)
		}
	}
}
