package json

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	frag "github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// Bounds on the lists of a report; what is left out is summed or counted.
const (
	maxCurve        = 512 // points, of up to eight devices; more share them
	minCurve        = 64
	maxStacks       = 50
	maxFrames       = 64
	maxPins         = 50
	maxOOMs         = 100
	maxRetries      = 100
	maxFindings     = 100
	maxEvents       = 1000
	maxGroups       = 64
	maxSampled      = 8 // groups of one sample over time
	maxWithout      = 5
	maxKeepers      = 16
	maxGrowthStacks = 50
	maxSteps        = 1000
	maxPhases       = 100
	maxChurnSites   = 50
)

// The types below are the schema; SCHEMA.md says what each field means.

type report struct {
	Source   source            `json:"source"`
	Verdict  verdict.Verdict   `json:"verdict"`
	Devices  []device          `json:"devices"`
	Holders  *holders          `json:"holders,omitempty"`
	Pinned   *pinnedMemory     `json:"pinned,omitempty"` // absent where none was recorded
	Settings snapshot.Settings `json:"settings"`
	Quality  []analyze.Note    `json:"quality"`
	Missing  []string          `json:"missing"`
}

type source struct {
	Name      string            `json:"name"`
	Bytes     int64             `json:"bytes"`
	Checksum  string            `json:"checksum"`
	Container []string          `json:"container"`
	Writer    string            `json:"writer"`
	Partial   string            `json:"partial"`
	HasTimes  bool              `json:"has_times"`
	HasStacks bool              `json:"has_stacks"`
	Events    int               `json:"events"`
	Segments  int               `json:"segments"`
	Blocks    int               `json:"blocks"`
	Stacks    int               `json:"stacks"`
	Resized   []snapshot.Resize `json:"resized"`
	Recorded  snapshot.Recorded `json:"recorded"`
	Part      *snapshot.Part    `json:"part,omitempty"`
	Window    *snapshot.Window  `json:"window,omitempty"` // absent where the whole trace was read
}

type device struct {
	Device  int              `json:"device"`
	Events  int              `json:"events"`
	Initial timeline.Totals  `json:"initial"`
	Final   timeline.Totals  `json:"final"`
	Peaks   *timeline.Peaks  `json:"peaks"` // null without a trace
	Curve   []timeline.Point `json:"curve"`
	Moments []moment         `json:"moments"`
	// Recording bounds initial and peaks.
	Recording *timeline.Recording `json:"recording"`
	OOMs      []timeline.OOMEvent `json:"ooms"`
	OOMsN     int                 `json:"ooms_total"`
	Retries   []timeline.Retry    `json:"retries"`
	RetryN    int                 `json:"retries_total"`
	Unsure    int                 `json:"retries_unsure"`
	Steps     stepList            `json:"steps"`
	Phases    []phase.Phase       `json:"phases"`
	PhasesN   int                 `json:"phases_total"`
	Churn     churnSum            `json:"churn"`
	Free      []frag.Sample       `json:"free"`
	Failure   *oom.Report         `json:"failure,omitempty"` // absent when no request failed
	Account   *account            `json:"ledger,omitempty"`  // absent without readings
	Growth    []growth            `json:"growth"`
	OneOffs   []ghost.OneOff      `json:"one_offs"`
	Before    attribution.Before  `json:"before"`
	Checks    checks              `json:"checks"`
	// Footprints are what can be compared with other runs, of each of Moments.
	Footprints []*footprint.Document `json:"footprints"`
}

type stepList struct {
	steps.Result
	Total int `json:"total"`
}

type churnSum struct {
	Within int `json:"within_events"`
	attribution.Turnover
}

type account struct {
	Why     string          `json:"why"`
	Device  int             `json:"driver_device"`
	PID     int64           `json:"pid"`
	Guessed bool            `json:"guessed"`
	Untold  int             `json:"untold"`
	Total   int64           `json:"total"`
	Rows    []oom.LedgerRow `json:"rows"`
}

// growth is a growth with its loop and its stacks by their names.
type growth struct {
	Cause   ghost.Kind `json:"cause"`
	Loop    string     `json:"loop"`
	Sites   []string   `json:"sites"`
	StacksN int        `json:"stacks_total"`
	ghost.Growth
	Hints []string `json:"hints"`
}

type checks struct {
	Inconsistent int64 `json:"inconsistent"`
	timeline.Checks
}

type pinnedMemory struct {
	Events     int           `json:"events"`
	Stated     bool          `json:"stated"`
	Initial    host.Totals   `json:"initial"`
	Final      host.Totals   `json:"final"`
	Blocks     host.Counts   `json:"final_blocks"`
	Peaks      *host.Peaks   `json:"peaks"` // null without a trace
	Curve      []host.Point  `json:"curve"`
	Registered int64         `json:"registered"`
	Unknown    int64         `json:"unknown"`
	Rounding   int64         `json:"rounding_at_most"`
	Stacks     []pinnedStack `json:"stacks"`
	StacksN    int           `json:"stacks_total"`
	AtPeak     []pinnedStack `json:"peak_stacks"`
	AtPeakN    int           `json:"peak_stacks_total"`
	Cached     []host.Class  `json:"cached"`
	Checks     pinnedChecks  `json:"checks"`
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

// Checksum is that of a snapshot as report.json has it.
func Checksum(s *snapshot.Snapshot) string { return fmt.Sprintf("crc32c:%08x", s.Checksum) }

func build(r *analyze.Result) *report {
	s := r.Snapshot
	out := &report{
		Source: source{
			Name: s.Name, Bytes: s.Bytes, Checksum: Checksum(s), Container: s.Container, Writer: s.Writer.Text,
			HasTimes: s.HasTimes, HasStacks: s.HasStacks,
			Segments: len(s.Segments), Blocks: len(s.Blocks), Stacks: s.Stacks.Len(),
			Resized: append([]snapshot.Resize{}, s.Resized...), Recorded: s.Recorded, Part: s.Part,
			Window: s.Window,
		},
		Verdict: buildVerdict(r.Verdict), Holders: buildHolders(r), Pinned: buildPinned(r.Pinned),
		Settings: s.Settings, Quality: r.Quality, Missing: slices.Clone(s.Missing),
	}
	platform.Of(s.Writer.Backend).Says(out.Missing...)
	if v := &out.Settings.GCThreshold; math.IsNaN(*v) || math.IsInf(*v, 0) {
		*v = 0 // JSON has no words for it
	}
	if s.Partial != nil {
		out.Source.Partial = s.Partial.Error()
	}
	for _, t := range s.Traces {
		out.Source.Events += t.Len()
	}
	for i := range r.Devices {
		out.Devices = append(out.Devices, buildDevice(r, &r.Devices[i]))
	}
	return out
}

func buildVerdict(v verdict.Verdict) verdict.Verdict {
	v.Findings = append([]finding.Finding{}, cut(v.Findings, maxFindings)...)
	for i := range v.Findings {
		f := &v.Findings[i]
		f.Events = cut(f.Events, maxEvents)
	}
	return v
}

func buildDevice(r *analyze.Result, d *analyze.Device) device {
	s, t := r.Snapshot, d.Timeline
	out := device{
		Device: t.Device, Events: t.Trace.Len(), Initial: t.Initial, Final: t.Final,
		Curve:     chart.Reduce(t.Curve, min(maxCurve, max(8*maxCurve/len(r.Devices), minCurve))),
		Checks:    checks{t.Checks.Inconsistent(), t.Checks},
		Recording: &t.Recording,
		OOMs:      cut(t.OOMs, maxOOMs), OOMsN: len(t.OOMs), Retries: cut(t.Retries, maxRetries),
		Steps: stepList{d.Steps, len(d.Steps.Steps)}, Phases: cut(d.Phases, maxPhases), PhasesN: len(d.Phases),
		Churn:   churnSum{attribution.ShortLife, d.Turnover.Get()},
		Account: buildAccount(d.Account), Growth: buildGrowth(s, d.Growth), OneOffs: d.OneOffs, Before: d.Before,
	}
	out.RetryN, out.Unsure = t.CountRetries(t.Trace.Len())
	if t.HasHistory() || t.Unused() {
		out.Peaks = &t.Peaks
	}
	out.Steps.Steps = cut(d.Steps.Steps, maxSteps)
	out.Churn.Sites = cut(out.Churn.Sites, maxChurnSites)
	for _, x := range d.Free.Get() {
		if x.Groups = cut(x.Groups, maxSampled); len(x.Groups) == 1 {
			x.Groups = nil // it is the sample itself
		}
		out.Free = append(out.Free, x)
	}
	if d.OOM != nil {
		failure := *d.OOM
		failure.Plan.Sites = cut(failure.Plan.Sites, maxStacks)
		out.Failure = &failure
	}
	for i := range d.Moments {
		m := &d.Moments[i]
		if m.State == nil {
			continue
		}
		out.Moments = append(out.Moments, buildMoment(t, m))
		if f, err := r.Footprint(d, m.Name); err == nil {
			out.Footprints = append(out.Footprints, f.Compact().Document())
		}
	}
	return out
}

func buildAccount(a *analyze.Account) *account {
	switch {
	case a == nil:
		return nil
	case a.Ledger == nil:
		return &account{Why: a.Why, Device: -1}
	}
	l := a.Ledger
	return &account{a.Why, l.Device, l.PID, l.Guessed != 0, l.Untold, l.Total, l.Rows}
}

func buildGrowth(s *snapshot.Snapshot, all []ghost.Growth) []growth {
	var out []growth
	for _, g := range cut(all, maxFindings) {
		v := growth{
			Cause: g.Cause.Kind, Loop: attribution.FrameText(s, g.Loop), StacksN: len(g.Stacks),
			Growth: g, Hints: g.Cause.Hints,
		}
		for _, stack := range cut(g.Stacks, maxGrowthStacks) {
			v.Sites = append(v.Sites, attribution.Site(s, stack))
		}
		out = append(out, v)
	}
	return out
}

func buildPinned(m *host.Pinned) *pinnedMemory {
	if m == nil {
		return nil
	}
	out := &pinnedMemory{
		Events: m.Trace.Len(), Stated: m.Stated, Initial: m.Initial, Final: m.Final, Blocks: m.FinalBlocks, Curve: m.Curve,
		Registered: m.Registered, Unknown: m.Unknown, Rounding: m.AtMostRounding, StacksN: len(m.Holders),
		Stacks: pinnedStacks(m.Holders), AtPeak: pinnedStacks(m.AtPeak), AtPeakN: len(m.AtPeak), Cached: m.Cached,
		Checks: pinnedChecks{m.Checks.Inconsistent(), m.Checks},
	}
	if m.Trace.Len() > 0 {
		out.Peaks = &m.Peaks
	}
	return out
}

func pinnedStacks(holders []attribution.Group) []pinnedStack {
	out := []pinnedStack{}
	for _, g := range stacks(holders) {
		out = append(out, pinnedStack{g.Kind, g.Site, g.Rounded, g.PreTrace, g.Count, g.Frames})
	}
	return out
}

// ErrNoFootprint says of a report that it has nothing to compare.
var ErrNoFootprint = errors.New("this report was written before reports had what a comparison needs; write it again")

// ReadFootprints reads what a report that Write wrote has for comparisons: of each device its moments.
func ReadFootprints(r io.Reader) ([]*footprint.Footprint, error) {
	var doc struct {
		Devices []struct {
			Footprints []footprint.Document `json:"footprints"`
		} `json:"devices"`
	}
	if err := footprint.Decode(r, &doc); err != nil {
		return nil, err
	}
	var out []*footprint.Footprint
	for i := range doc.Devices {
		for k := range doc.Devices[i].Footprints {
			f, err := doc.Devices[i].Footprints[k].Footprint()
			if err != nil {
				return nil, fmt.Errorf("devices[%d].footprints[%d]: %w", i, k, err)
			}
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return nil, ErrNoFootprint
	}
	return out, nil
}
