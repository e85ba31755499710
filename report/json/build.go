package json

import (
	"fmt"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
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
			Name: s.Name, Bytes: s.Bytes, Container: list(s.Container), Writer: s.Writer.Text,
			HasTimes: s.HasTimes, HasStacks: s.HasStacks,
			Segments: len(s.Segments), Blocks: len(s.Blocks), Stacks: s.Stacks.Len(),
		},
		Verdict:  buildVerdict(r.Verdict),
		Devices:  []device{},
		Holders:  buildHolders(r),
		Pinned:   buildPinned(r.Pinned),
		Settings: finite(s.Settings),
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

// cut is the first n elements of s, never nil.
func cut[T any](s []T, n int) []T {
	return list(s[:min(len(s), n)])
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

// finite takes out what JSON has no words for.
func finite(s snapshot.Settings) snapshot.Settings {
	if math.IsNaN(s.GCThreshold) || math.IsInf(s.GCThreshold, 0) {
		s.GCThreshold = 0
	}
	s.Values = list(s.Values)
	return s
}

func buildDevice(s *snapshot.Snapshot, d *analyze.Device) device {
	t := d.Timeline
	out := device{
		Device: t.Device, Events: t.Trace.Len(), Initial: t.Initial, Final: t.Final,
		Curve: list(chart.Reduce(t.Curve, maxCurve)), Moments: []moment{},
		OOMs: cut(t.OOMs, maxOOMs), Retries: cut(t.Retries, maxRetries),
		OOMsN: len(t.OOMs), RetryN: len(t.Retries), Checks: checks{t.Checks.Inconsistent(), t.Checks},
	}
	if t.Trace.Len() > 0 {
		out.Peaks = &peaks{t.PeakReserved, t.PeakActive, t.PeakAllocated, t.PeakRequested, t.PeakInactiveSplit}
	}
	out.Free = buildFree(d.Free)
	out.Failure, out.Account = buildFailure(d.OOM), buildAccount(d.Account)
	out.Steps = stepList{d.Steps, len(d.Steps.Steps)}
	out.Steps.Steps = cut(d.Steps.Steps, maxSteps)
	out.Churn = churnSum{attribution.ShortLife, d.Turnover}
	out.Churn.Sites = cut(out.Churn.Sites, maxChurnSites)
	out.Growth, out.OneOffs = buildGrowth(s, d.Growth), list(d.OneOffs)
	for i := range d.Moments {
		if d.Moments[i].State != nil {
			out.Moments = append(out.Moments, buildMoment(t, &d.Moments[i]))
		}
	}
	return out
}

func buildMoment(t *timeline.Timeline, m *analyze.Moment) moment {
	f, site := &m.Frag, attribution.Names(m.Live)
	out := moment{
		Name: m.Name, State: *m.State, Stacks: stacks(m.Live), StacksN: len(m.Live), Uses: []use{},
		Fragmentation: fragmentation{
			Report: *f, Scatter: f.Scatter(), Pins: []pin{},
			Holes:   slices.DeleteFunc(slices.Clone(f.Holes[:]), func(h frag.Holes) bool { return h.Count == 0 }),
			Without: buildWithout(t, m, site),
		},
	}
	out.Fragmentation.Groups = cut(f.Groups, maxGroups)
	for _, x := range m.Uses {
		out.Uses = append(out.Uses, use{x, x.Trust[category.High], x.Trust[category.Medium], x.Trust[category.Low]})
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

// stacks are the groups with most bytes, each by its name, and a row for all others.
func stacks(groups []attribution.Group) []stack {
	out := []stack{}
	top, other, more := chart.Largest(groups, maxStacks)
	for _, g := range top {
		g.Site, g.Frames = g.Name(), cut(g.Frames, maxFrames)
		out = append(out, stack{"stack", g})
	}
	if more > 0 {
		other.Site, other.Frames = fmt.Sprintf("%d other stacks", more), []string{}
		out = append(out, stack{"other", other})
	}
	return out
}
