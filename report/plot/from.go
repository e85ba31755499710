package plot

import (
	"context"
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Into how many columns a trace is divided for a picture alone: more than for a report.
const (
	useColumns  = 1400
	freeColumns = 400
)

// From analyzes one device as far as a picture of that kind shows it, and draws that. Kinds AtMoment
// show m; nil is the peak, or for Stacks the peak and the end. rules say what memory is for, before
// it is inferred. The error says why there is nothing to draw, or is that of a canceled ctx.
func From(ctx context.Context, kind Kind, s *snapshot.Snapshot, t *timeline.Timeline, rules []category.Rule,
	m *attribution.Moment) (Plot, error) {
	r := &analyze.Result{Snapshot: s, Devices: []analyze.Device{{Timeline: t}}}
	d := &r.Devices[0]
	var shown *analyze.Moment
	for i := range kinds {
		switch k := &kinds[i]; {
		case k.Kind != kind:
		case k.analyze != nil:
			if err := k.analyze(ctx, s, d, rules); err != nil {
				return Plot{}, err
			}
		case k.AtMoment && m != nil:
			shown = new(analyze.NewMoment(s, t, m.Name, t.StateAt(m.Event)))
		case k.AtMoment:
			if t.HasHistory() {
				d.Moments = append(d.Moments, analyze.NewMoment(s, t, "peak", t.StateAt(t.PeakActive.Event)))
			}
			d.Moments = append(d.Moments, analyze.NewMoment(s, t, "end", t.StateAt(t.Trace.Len()-1)))
		}
	}
	p, err := Of(kind, r, d, shown)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Name, err)
	}
	return p, err
}

func addUses(_ context.Context, s *snapshot.Snapshot, d *analyze.Device, rules []category.Rule) error {
	found := steps.Find(s, d.Timeline)
	uses := category.Find(s, d.Timeline, &found, rules).Over(d.Timeline, useColumns)
	d.Uses = func() []category.Sample { return uses }
	return nil
}

func addFree(_ context.Context, _ *snapshot.Snapshot, d *analyze.Device, _ []category.Rule) error {
	free := fragmentation.Over(d.Timeline, freeColumns)
	d.Free = func() []fragmentation.Sample { return free }
	return nil
}

func replay(ctx context.Context, s *snapshot.Snapshot, d *analyze.Device, _ []category.Rule) error {
	p, v, err := whatif.Load(ctx, s, d.Timeline)
	if err == nil && p.Allocs+p.OOMs > 0 {
		d.WhatIf, err = whatif.Ask(ctx, s, p, v, whatif.Question{NoSearch: true})
	}
	return err
}
