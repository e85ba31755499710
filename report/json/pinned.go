package json

import (
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/timeline"
)

type pinnedMemory struct {
	Events     int           `json:"events"`
	Stated     bool          `json:"stated"`
	Initial    host.Totals   `json:"initial"`
	Final      host.Totals   `json:"final"`
	Peaks      *pinnedPeaks  `json:"peaks"` // null without a trace
	Curve      []host.Point  `json:"curve"`
	Registered int64         `json:"registered"`
	Unknown    int64         `json:"unknown"`
	Rounding   int64         `json:"rounding_at_most"`
	Stacks     []pinnedStack `json:"stacks"`
	StacksN    int           `json:"stacks_total"`
	Cached     []host.Class  `json:"cached"`
	Checks     pinnedChecks  `json:"checks"`
}

type pinnedPeaks struct {
	Reserved  timeline.Peak `json:"reserved"`
	Active    timeline.Peak `json:"active"`
	Allocated timeline.Peak `json:"allocated"`
}

type pinnedStack struct {
	Kind     string   `json:"kind"`
	Site     string   `json:"site"`
	Bytes    int64    `json:"bytes"`
	PreTrace int64    `json:"pre_trace"`
	Count    int64    `json:"count"`
	Frames   []string `json:"frames"`
}

type pinnedChecks struct {
	Inconsistent int64 `json:"inconsistent"`
	host.Checks
}

func buildPinned(m *host.Pinned) *pinnedMemory {
	if m == nil {
		return nil
	}
	out := &pinnedMemory{
		Events: m.Trace.Len(), Stated: m.Stated, Initial: m.Initial, Final: m.Final, Curve: list(m.Curve),
		Registered: m.Registered, Unknown: m.Unknown, Rounding: m.AtMostRounding, Stacks: []pinnedStack{}, StacksN: len(m.Holders),
		Cached: list(m.Cached), Checks: pinnedChecks{m.Checks.Inconsistent(), m.Checks},
	}
	if m.Trace.Len() > 0 {
		out.Peaks = &pinnedPeaks{m.PeakReserved, m.PeakActive, m.PeakAllocated}
	}
	for _, g := range stacks(m.Holders) {
		out.Stacks = append(out.Stacks, pinnedStack{g.Kind, g.Site, g.Rounded, g.PreTrace, g.Count, g.Frames})
	}
	return out
}
