package gate_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/timeline"
)

const mib = 1 << 20

// footprintOf is a run that peaks at so many requested bytes, all of one site.
func footprintOf(peak int64, steps ...int64) *footprint.Footprint {
	f := &footprint.Footprint{
		Name: "x.pickle", HasHistory: true, Totals: timeline.Totals{Reserved: 2 * peak, Active: peak, Requested: peak},
		Frames: []attribution.Frame{{File: "model.py", Name: "forward", Line: 7}}, Stacks: [][]int32{{0}},
		Groups: []footprint.Group{{
			Site: "model.py:7 forward", Known: true, Use: category.Activation,
			Sum:   attribution.Sum{Count: 1, Rounded: peak, Requested: peak},
			Sizes: []footprint.Size{{Requested: peak, Rounded: peak, Count: 1}},
		}},
	}
	f.Peaks.PeakRequested.Bytes, f.Peaks.PeakReserved.Bytes = peak, 2*peak
	for _, growth := range steps {
		f.Steps = append(f.Steps, footprint.Step{Peak: peak, Growth: growth})
	}
	return f
}

func size(n int64) *gate.Size { s := gate.Size(n); return &s }

func percent(p float64) *gate.Percent { v := gate.Percent(p); return &v }

func TestCheck(t *testing.T) {
	growing := footprintOf(100*mib, 0, 0, 5*mib, 5*mib, 5*mib, 5*mib)
	blind := footprintOf(100 * mib)
	blind.HasHistory = false
	leak := finding.Finding{Status: finding.Ghost, Severity: finding.Warning, Confidence: finding.High, Bytes: 9}
	hint := leak
	hint.Confidence = finding.Low
	match := gate.Pattern{Regexp: regexp.MustCompile(`model\.py:\d+ forward`)}
	low := leak
	low.Confidence, low.Bytes = finding.Low, 1<<40
	torn := footprintOf(100 * mib)
	torn.Bounds.AtLeast()
	most := footprintOf(100 * mib)
	most.Bounds.Requested = timeline.AtMost
	ran := []phase.Phase{{Name: "forward", List: []phase.Lap{{Peak: 10 * mib}}}}
	type limits = gate.Limits
	leaks := func(f *finding.Finding) gate.Subject {
		return gate.Subject{Footprint: growing, Findings: []finding.Finding{*f}}
	}
	free := func(split int64) gate.Subject {
		return gate.Subject{Footprint: growing, Frag: &fragmentation.Report{Reserved: 100, Split: split}}
	}
	of := func(f *footprint.Footprint) gate.Subject { return gate.Subject{Footprint: f, Phases: ran} }
	phases := func(name string) limits { return limits{Phases: []gate.Phase{{Name: name, Peak: size(mib)}}} }
	for name, c := range map[string]struct {
		q    gate.Subject
		l    gate.Limits
		base *footprint.Footprint
		want gate.Status
	}{
		"peak kept":      {of(growing), limits{Peak: size(100 * mib)}, nil, gate.Passed},
		"peak":           {of(growing), limits{Peak: size(100*mib - 1)}, nil, gate.Failed},
		"peak unknown":   {of(blind), limits{Peak: size(1)}, nil, gate.Unknown},
		"reserved":       {of(growing), limits{Reserved: size(199 * mib)}, nil, gate.Failed},
		"growth":         {of(growing), limits{Growth: size(0)}, nil, gate.Failed},
		"growth kept":    {of(growing), limits{Growth: size(5 * mib)}, nil, gate.Passed},
		"warm-up":        {of(footprintOf(mib, 9, 9, 0, 0, 0)), limits{Growth: size(0)}, nil, gate.Passed},
		"few steps":      {of(footprintOf(mib, 0, 0, 0)), limits{Growth: size(0)}, nil, gate.Unknown},
		"shrinks":        {of(footprintOf(mib, -1, -1, -1, -1)), limits{Growth: size(0)}, nil, gate.Passed},
		"leak":           {leaks(&leak), limits{NoGhosts: true}, nil, gate.Failed},
		"hint of a leak": {leaks(&hint), limits{NoGhosts: true}, nil, gate.Passed},
		"leak behind a hint": {gate.Subject{Footprint: growing, Findings: []finding.Finding{low, leak}}, limits{NoGhosts: true}, nil,
			gate.Failed},
		"contradicts itself": {gate.Subject{Footprint: growing, Findings: []finding.Finding{{Status: finding.Inconsistent}}},
			limits{NoGhosts: true}, nil, gate.Unknown},
		"blind":             {gate.Subject{Footprint: growing, Blind: true}, limits{NoGhosts: true}, nil, gate.Unknown},
		"at least, within":  {of(torn), limits{Peak: size(200 * mib)}, nil, gate.Unknown},
		"at least, beyond":  {of(torn), limits{Peak: size(50 * mib)}, nil, gate.Failed},
		"at most, within":   {of(most), limits{Peak: size(200 * mib)}, nil, gate.Passed},
		"at most, beyond":   {of(most), limits{Peak: size(50 * mib)}, nil, gate.Unknown},
		"baseline at least": {of(growing), limits{}, torn, gate.Unknown},
		"no leak":           {of(growing), limits{NoGhosts: true}, nil, gate.Passed},
		"leak unknown":      {of(blind), limits{NoGhosts: true}, nil, gate.Unknown},
		"fragmented":        {free(21), limits{Fragmentation: percent(20)}, nil, gate.Failed},
		"not fragmented":    {free(20), limits{Fragmentation: percent(20)}, nil, gate.Passed},
		"frag unknown":      {of(growing), limits{Fragmentation: percent(20)}, nil, gate.Unknown},
		"site":              {of(growing), limits{Sites: []gate.Site{{Match: match, Peak: size(mib)}}}, nil, gate.Failed},
		"phase":             {of(growing), phases("forward"), nil, gate.Failed},
		"no such phase":     {of(growing), phases("backward"), nil, gate.Unknown},
		"step":              {of(growing), limits{Steps: &gate.Steps{Peak: size(99 * mib), Skip: 5}}, nil, gate.Failed},
		"all steps left":    {of(growing), limits{Steps: &gate.Steps{Peak: size(99 * mib), Skip: 6}}, nil, gate.Unknown},
		"baseline":          {of(growing), limits{}, footprintOf(90 * mib), gate.Failed},
		"baseline kept":     {of(growing), limits{}, footprintOf(92 * mib), gate.Passed}, // + 8 MiB
		"baseline by 2%":    {of(footprintOf(1020 * mib)), limits{}, footprintOf(1000 * mib), gate.Passed},
		"tolerance":         {of(growing), limits{Tolerance: percent(50)}, footprintOf(70 * mib), gate.Passed},
		"less than it":      {of(growing), limits{}, footprintOf(500 * mib), gate.Passed},
		"unknown baseline":  {of(growing), limits{}, blind, gate.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := gate.Check(&c.q, &c.l, c.base)
			if len(got) != 1 || got[0].Status != c.want {
				t.Fatalf("%+v, want one that is %s", got, c.want)
			}
			if not := gate.NotKept(got); not != map[bool]int{true: 0, false: 1}[c.want == gate.Passed] {
				t.Errorf("%d not kept", not)
			}
		})
	}
}

func TestRead(t *testing.T) {
	l, err := gate.Read(strings.NewReader(`
max_peak: 60GiB      # requested
max_growth: 0
max_fragmentation: 20%
tolerance: 5
no_ghosts: true
sites:
  - match: 'attention\.py'
    max_peak: 4 GiB
steps: {max_peak: 1024, skip: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	if *l.Peak != 60<<30 || *l.Growth != 0 || *l.Fragmentation != 20 || *l.Tolerance != 5 || !l.NoGhosts ||
		*l.Sites[0].Peak != 4<<30 || !l.Sites[0].Match.MatchString("x/attention.py:3 f") || *l.Steps.Peak != 1024 || l.Steps.Skip != 2 {
		t.Errorf("%+v", l)
	}
	if l, err := gate.Read(strings.NewReader("# nothing\n")); err != nil || l.Peak != nil {
		t.Errorf("an empty file: %+v, error %v", l, err)
	}
	for _, wrong := range []string{"max_peek: 1", "max_peak: lots", "max_peak: -1", "tolerance: x", "sites: [{match: '('}]",
		"- a", "max_peak: [1]", "sites: [{max_peak: 1}]", "sites: [{match: x}]", "phases: [{name: x}]", "phases: [{max_peak: 1}]",
		"steps: {skip: 1}", "steps: {max_peak: 1, skip: -1}", "max_peak: 1\n---\nmax_peak: 2", "{", "max_peak: 1GiB\nmax_peak: 2GiB"} {
		if _, err := gate.Read(strings.NewReader(wrong)); err == nil || strings.Contains(err.Error(), "gate.") {
			t.Errorf("%q: error %v", wrong, err)
		}
	}
}
