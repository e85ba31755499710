package json

import (
	"fmt"
	"math"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

func build(r *analyze.Result) *report {
	s := r.Snapshot
	out := &report{
		Schema: Schema,
		Source: source{
			Name: s.Name, Bytes: s.Bytes, Container: list(s.Container), Writer: s.Writer,
			HasTimes: s.HasTimes, HasStacks: s.HasStacks,
			Segments: len(s.Segments), Blocks: len(s.Blocks), Stacks: s.Stacks.Len(),
		},
		Verdict:  buildVerdict(r.Verdict),
		Devices:  []device{},
		Holders:  buildHolders(r),
		Pinned:   buildPinned(r.Pinned),
		Settings: buildSettings(&s.Settings),
		Quality:  list(r.Quality),
		Missing:  list(s.Missing),
	}
	if s.Partial != nil {
		out.Source.Partial = s.Partial.Error()
	}
	for _, t := range s.Traces {
		out.Source.Events += t.Len()
	}
	for i := range r.Devices {
		out.Devices = append(out.Devices, buildDevice(r.Snapshot, &r.Devices[i]))
	}
	return out
}

// list is s, or an empty list for nil: arrays are never null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func buildVerdict(v verdict.Verdict) verdict.Verdict {
	findings := make([]finding.Finding, min(len(v.Findings), maxFindings))
	copy(findings, v.Findings)
	for i := range findings {
		f := &findings[i]
		f.Why, f.Next, f.Events = list(f.Why), list(f.Next), list(f.Events[:min(len(f.Events), maxEvents)])
	}
	v.Findings = findings
	return v
}

func buildSettings(s *snapshot.Settings) settings {
	out := settings{
		Present: s.Present, Conf: s.Conf, MaxSplitSize: s.MaxSplitSize, GCThreshold: s.GCThreshold,
		Expandable: s.ExpandableSegments, Values: []setting{},
	}
	if math.IsNaN(out.GCThreshold) || math.IsInf(out.GCThreshold, 0) { // JSON has no such numbers
		out.GCThreshold = 0
	}
	for _, v := range s.Values {
		out.Values = append(out.Values, setting(v))
	}
	return out
}

func buildDevice(s *snapshot.Snapshot, d *analyze.Device) device {
	t := d.Timeline
	out := device{
		Device: t.Device, Events: t.Trace.Len(), Initial: t.Initial, Final: t.Final,
		Curve: []point{}, Moments: []moment{}, OOMs: []oomEntry{}, Retries: []retry{},
		OOMsN: len(t.OOMs), RetryN: len(t.Retries), Checks: buildChecks(&t.Checks),
	}
	if t.Trace.Len() > 0 {
		out.Peaks = &peaks{t.PeakReserved, t.PeakActive, t.PeakAllocated, t.PeakRequested, t.PeakInactiveSplit}
	}
	out.Free = buildFree(d.Free)
	out.Failure, out.Account = buildFailure(d), buildAccount(d.Account)
	out.Steps, out.Churn = buildSteps(&d.Steps), buildTurnover(s, &d.Turnover)
	out.Growth, out.OneOffs = buildGrowth(s, d.Growth), buildOneOffs(s, d.OneOffs)
	for _, p := range chart.Reduce(t.Curve, maxCurve) {
		out.Curve = append(out.Curve, point(p))
	}
	for i := range d.Moments {
		if d.Moments[i].State != nil {
			out.Moments = append(out.Moments, buildMoment(t, &d.Moments[i]))
		}
	}
	for _, o := range t.OOMs[:min(len(t.OOMs), maxOOMs)] {
		out.OOMs = append(out.OOMs, oomEntry{o.Event, o.Requested, o.DeviceFree, o.After})
	}
	for _, y := range t.Retries[:min(len(t.Retries), maxRetries)] {
		out.Retries = append(out.Retries, retry{y.FirstEvent, y.LastEvent, y.Released})
	}
	return out
}

func buildChecks(c *timeline.Checks) checks {
	return checks{
		Inconsistent: c.Inconsistent(), UntiledSegments: c.UntiledSegments, WrongSegmentTotals: c.WrongSegmentTotals,
		UnmatchedAllocs: c.UnmatchedAllocs, UnmatchedFrees: c.UnmatchedFrees, Overlaps: c.Overlaps,
		OutsideSegments: c.OutsideSegments, LiveOverReserved: c.LiveOverReserved,
		MarkerMismatches: c.MarkerMismatches, Markers: c.Markers, BadEvents: c.BadEvents,
		UnknownActions: c.UnknownActions, PreTraceBlocks: c.PreTraceBlocks, Residual: c.Residual,
	}
}

func buildMoment(t *timeline.Timeline, m *analyze.Moment) moment {
	f, site := &m.Frag, chart.SiteOf(m)
	out := moment{
		Name: m.Name, Event: m.State.Event, Time: m.State.Time, Totals: m.State.Totals,
		Stacks: []stack{}, StacksN: len(m.Live), Uses: []use{},
		Fragmentation: fragmentation{
			Reserved: f.Reserved, Active: f.Active, Releasable: f.Releasable, Split: f.Split,
			Rounding: f.Rounding, LargestFree: f.LargestFree, Segments: f.Segments,
			PartlyUsed: f.PartlyUsed, Pins: []pin{}, Stream: int32(f.Stream), Classes: f.Classes,
			Remainder: f.Remainder, Usable: f.LargestUsable, Scatter: f.Scatter(), Holes: buildHoles(f),
			Private: f.Private, Groups: buildGroups(f.Groups), Without: buildWithout(t, m, site),
		},
	}
	top, other, more := chart.Top(m.Live, maxStacks)
	for i := range top {
		g := &top[i]
		out.Stacks = append(out.Stacks, stack{
			Kind: "stack", Site: chart.Site(g), Bytes: g.Rounded, Requested: g.Requested,
			PreTrace: g.PreTrace, Count: g.Count, Frames: list(g.Frames[:min(len(g.Frames), maxFrames)]),
		})
	}
	if more > 0 {
		out.Stacks = append(out.Stacks, stack{
			Kind: "other", Site: fmt.Sprintf("%d other stacks", more), Bytes: other.Rounded,
			Requested: other.Requested, PreTrace: other.PreTrace, Count: other.Count, Frames: []string{},
		})
	}
	for _, x := range m.Uses {
		out.Uses = append(out.Uses, use{x.Category.String(), x.Rounded, x.Requested, x.Count,
			x.Trust[category.High], x.Trust[category.Medium], x.Trust[category.Low]})
	}
	pins, _ := chart.Pins(t, m, maxPins)
	for _, p := range pins {
		out.Fragmentation.Pins = append(out.Fragmentation.Pins, pin{
			Address: fmt.Sprintf("0x%x", p.Segment.Addr), Size: p.Segment.Size, Free: p.Free, Live: p.Live,
			Blocks: p.Blocks, Stream: int32(p.Segment.Stream), Expandable: p.Segment.Expandable,
			Pool:    chart.Pool(p.Segment.Kind, p.Segment.Pool, 0, false),
			Largest: p.Largest, Site: p.Site, Keepers: buildKeepers(t, &m.State.Segments[p.Row], site),
		})
	}
	return out
}

func buildHoles(f *frag.Report) []hole {
	out := []hole{}
	for i, h := range f.Holes {
		if h.Count > 0 {
			out = append(out, hole{From: 1 << i, Count: h.Count, Bytes: h.Bytes})
		}
	}
	return out
}
