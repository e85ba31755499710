package json

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/chart"
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
	Cached     []pinnedClass `json:"cached"`
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

type pinnedClass struct {
	Size   int64 `json:"size"`
	Blocks int   `json:"blocks"`
	Bytes  int64 `json:"bytes"`
	Spare  int64 `json:"spare"`
}

type pinnedChecks struct {
	Inconsistent int64       `json:"inconsistent"`
	Unmatched    int64       `json:"unmatched"`
	Sizes        int64       `json:"wrong_sizes"`
	Bad          int64       `json:"bad_events"`
	Unknown      int64       `json:"unknown_actions"`
	Stateless    int64       `json:"stateless_blocks"`
	Lists        int64       `json:"lists_left_out"`
	Before       int64       `json:"pre_trace_blocks"`
	Residual     host.Totals `json:"residual"`
}

func buildPinned(m *host.Pinned) *pinnedMemory {
	if m == nil {
		return nil
	}
	c := &m.Checks
	out := &pinnedMemory{Events: m.Trace.Len(), Stated: m.Stated, Initial: m.Initial, Final: m.Final, Curve: list(m.Curve), Registered: m.Registered,
		Unknown: m.Unknown, Rounding: m.AtMostRounding, Stacks: []pinnedStack{}, StacksN: len(m.Holders), Cached: []pinnedClass{},
		Checks: pinnedChecks{c.Inconsistent(), c.Unmatched, c.Sizes, c.Bad, c.Unknown, c.Stateless, c.Lists, c.Before, c.Residual}}
	if m.Trace.Len() > 0 {
		out.Peaks = &pinnedPeaks{m.PeakReserved, m.PeakActive, m.PeakAllocated}
	}
	add := func(kind, site string, g *attribution.Group) {
		out.Stacks = append(out.Stacks, pinnedStack{kind, site, g.Rounded, g.PreTrace, g.Count, list(g.Frames[:min(len(g.Frames), maxFrames)])})
	}
	top, other, more := chart.Top(m.Holders, maxStacks)
	for i := range top {
		add("stack", top[i].Name(), &top[i])
	}
	if more > 0 {
		add("other", fmt.Sprintf("%d other stacks", more), &other)
	}
	for _, x := range m.Cached {
		out.Cached = append(out.Cached, pinnedClass(x))
	}
	return out
}
