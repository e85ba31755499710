package gate

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/timeline"
)

// Outcome is what came of one limit on one device.
type Outcome struct {
	Gate   Gate   `json:"gate"`
	Name   string `json:"name"` // of the phase or the pattern of the site, else ""
	File   string `json:"file"`
	Device int    `json:"device"`
	Status Status `json:"status"`
	Why    Why    `json:"why"` // it is Unknown, else ""
	// Value and Limit are bytes, of Fragmentation percent. Value is 0 where it is not known.
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	// Diff says what changed since the baseline, and Finding what was found, of the gates that have one.
	Diff    *diff.Result     `json:"-"`
	Finding *finding.Finding `json:"-"`
	Site    string           `json:"site"` // the place in code that has most of the memory, "" unknown
	Path    string           `json:"path"` // of its file as it was recorded
	Line    int              `json:"line"`
}

// Gate is a kind of limit.
type Gate string

// The kinds of limits.
const (
	Peak          Gate = "max-peak"
	Reserved      Gate = "max-reserved"
	Growth        Gate = "max-growth"
	Fragmentation Gate = "max-fragmentation"
	Ghosts        Gate = "no-ghosts"
	Baseline      Gate = "baseline"
	OfPhase       Gate = "phase"
	OfSite        Gate = "site"
	OfStep        Gate = "step"
)

// Status is what came of a limit.
type Status string

// What can come of a limit. One that cannot be judged is not kept: nobody knows.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Unknown Status = "unknown"
)

// Why is the reason for which a limit cannot be judged.
type Why string

// Why limits cannot be judged.
const (
	NoHistory Why = "no-history" // the file has no events, or not enough
	NoSteps   Why = "no-steps"   // too few of them
	NoPhase   Why = "no-phase"   // none of that name
	Uncertain Why = "uncertain"  // the figure is a bound, on the wrong side of the limit
)

// Subject is one device of a run.
type Subject struct {
	File      string
	Findings  []finding.Finding     // of the file
	Footprint *footprint.Footprint  // at the peak
	Frag      *fragmentation.Report // at the peak, nil unknown
	Phases    []phase.Phase
	Blind     bool // leaks cannot be judged: no stacks, or a damaged file
}

// Check holds a device against limits, and against a baseline unless that is nil.
func Check(q *Subject, l *Limits, base *footprint.Footprint) []Outcome {
	c := &checker{q: q}
	f := q.Footprint
	known := f.HasHistory
	bound := func(b timeline.Bound) timeline.Bound {
		if !known {
			return timeline.Unknown
		}
		return b
	}
	if l.Peak != nil {
		c.atMost(Peak, "", float64(f.Peaks.PeakRequested.Bytes), float64(*l.Peak), bound(f.Bounds.Requested))
	}
	if l.Reserved != nil {
		c.atMost(Reserved, "", float64(f.Peaks.PeakReserved.Bytes), float64(*l.Reserved), bound(f.Bounds.Reserved))
	}
	if l.Growth != nil {
		growth, ok := f.Growth()
		exact := onlyIf(ok && f.Bounds.Active == timeline.Exact)
		o := c.atMost(Growth, "", float64(max(growth, 0)), float64(*l.Growth), exact)
		if !ok {
			o.Why = NoSteps
		}
	}
	if l.Fragmentation != nil {
		share := 0.0
		if q.Frag != nil && q.Frag.Reserved > 0 {
			share = 100 * float64(q.Frag.Split) / float64(q.Frag.Reserved)
		}
		c.atMost(Fragmentation, "", share, float64(*l.Fragmentation), onlyIf(q.Frag != nil))
	}
	if l.NoGhosts {
		c.ghosts(known)
	}
	for _, p := range l.Phases {
		c.phase(&p)
	}
	for _, s := range l.Sites {
		c.site(&s)
	}
	if l.Steps != nil {
		var most int64
		for _, s := range f.Steps[min(l.Steps.Skip, len(f.Steps)):] {
			most = max(most, s.Peak)
		}
		b := bound(f.Bounds.Active)
		if len(f.Steps) <= l.Steps.Skip {
			b = timeline.Unknown
		}
		o := c.atMost(OfStep, "", float64(most), float64(*l.Steps.Peak), b)
		if len(f.Steps) <= l.Steps.Skip {
			o.Why = NoSteps
		}
	}
	if base != nil {
		c.baseline(base, l)
	}
	return c.out
}

type checker struct {
	q   *Subject
	out []Outcome
}

// add adds an outcome.
func (c *checker) add(o Outcome) *Outcome {
	o.File, o.Device = c.q.File, c.q.Footprint.Device
	c.out = append(c.out, o)
	return &c.out[len(c.out)-1]
}

// onlyIf is the bound of a figure that is exact or not known.
func onlyIf(known bool) timeline.Bound {
	if known {
		return timeline.Exact
	}
	return timeline.Unknown
}

// atMost adds what came of an upper limit on a figure that is so exact.
func (c *checker) atMost(g Gate, name string, value, limit float64, b timeline.Bound) *Outcome {
	o := c.add(Outcome{Gate: g, Name: name, Value: value, Limit: limit, Status: Passed})
	switch {
	case b == timeline.Unknown:
		o.Value, o.Status, o.Why = 0, Unknown, NoHistory
	case value > limit && b == timeline.AtMost, value <= limit && b == timeline.AtLeast:
		o.Status, o.Why = Unknown, Uncertain
	case value > limit:
		o.Status = Failed
	}
	if f := c.q.Footprint; len(f.Groups) > 0 {
		o.at(f, &f.Groups[0])
	}
	return o
}

// at says where most of the memory is: in a group, nil for none known.
func (o *Outcome) at(f *footprint.Footprint, g *footprint.Group) {
	o.Site, o.Path, o.Line = "", "", 0
	if g == nil || !g.Known {
		return
	}
	o.Site = g.Site
	if at := f.Place(g.Stack); at != nil {
		o.Path, o.Line = at.File, int(at.Line)
	}
}

// ghosts fails for memory that only a forgotten reference keeps, where that is more than a hint.
func (c *checker) ghosts(known bool) {
	var hint *finding.Finding
	for i := range c.q.Findings {
		f := &c.q.Findings[i]
		switch {
		case f.Status == finding.Inconsistent:
			known = false
		case f.Status != finding.Ghost || f.Device >= 0 && f.Device != c.q.Footprint.Device:
		case f.Confidence != finding.Low && f.Severity != finding.Info:
			o := c.add(Outcome{Gate: Ghosts, Value: float64(f.Bytes), Finding: f, Status: Failed})
			if g := f.Evidence.Growth; g != nil {
				o.Site = g.Site
			}
			return
		case hint == nil:
			hint = f
		}
	}
	o := c.add(Outcome{Gate: Ghosts, Finding: hint, Status: Passed})
	if !known || c.q.Blind {
		o.Status, o.Why = Unknown, NoHistory
	}
}

func (c *checker) phase(p *Phase) {
	for i := range c.q.Phases {
		if v := &c.q.Phases[i]; v.Name == p.Name {
			peak := v.Peak().Peak
			c.atMost(OfPhase, p.Name, float64(peak), float64(*p.Peak), v.Bound)
			return
		}
	}
	c.atMost(OfPhase, p.Name, 0, float64(*p.Peak), timeline.Unknown).Why = NoPhase
}

func (c *checker) site(s *Site) {
	f := c.q.Footprint
	var sum, most int64
	var where *footprint.Group
	for i := range f.Groups {
		g := &f.Groups[i]
		if g.Stack < 0 || !slices.ContainsFunc(f.Stacks[g.Stack], func(row int32) bool {
			v := &f.Frames[row]
			return s.Match.MatchString(fmt.Sprintf("%s:%d %s", v.File, v.Line, v.Name))
		}) {
			continue
		}
		sum += g.Requested
		if g.Requested > most {
			most, where = g.Requested, g
		}
	}
	exact := onlyIf(f.HasHistory && f.Bounds.Active == timeline.Exact)
	o := c.atMost(OfSite, s.Match.String(), float64(sum), float64(*s.Peak), exact)
	o.at(f, where)
}

func (c *checker) baseline(base *footprint.Footprint, l *Limits) {
	tolerance := UsualTolerance
	if l.Tolerance != nil {
		tolerance = *l.Tolerance
	}
	was := base.Peaks.PeakRequested.Bytes
	limit := was + max(int64(float64(was)*float64(tolerance)/100), LeastTolerance)
	r := diff.Compare(base, c.q.Footprint)
	b := c.q.Footprint.Bounds.Requested
	if !c.q.Footprint.HasHistory || !base.HasHistory || base.Bounds.Requested != timeline.Exact {
		b = timeline.Unknown
	}
	o := c.atMost(Baseline, "", float64(c.q.Footprint.Peaks.PeakRequested.Bytes), float64(limit),
		b)
	o.Diff = r
	o.at(nil, nil)
	if len(r.Causes) > 0 && len(r.Causes[0].Sites) > 0 {
		f := c.q.Footprint
		site := r.Causes[0].Sites[0].Site
		if i := slices.IndexFunc(f.Groups, func(g footprint.Group) bool { return g.Site == site }); i >= 0 {
			o.at(f, &f.Groups[i])
		}
	}
}

// NotKept counts the limits that were not kept, or cannot be judged.
func NotKept(all []Outcome) (n int) {
	for i := range all {
		if all[i].Status != Passed {
			n++
		}
	}
	return n
}
