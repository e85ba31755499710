package gate

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/phase"
)

// Outcome is what came of one limit on one device.
type Outcome struct {
	Gate   Gate   `json:"gate"`
	Name   string `json:"name"` // of the phase or the pattern of the site, else ""
	File   string `json:"file"`
	Device int    `json:"device"`
	Status Status `json:"status"`
	// Value and Limit are bytes, of Fragmentation percent. Value is 0 where it is not known.
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	// Diff says what changed since the baseline, and Finding what was found, of the gates that have one.
	Diff    *diff.Result     `json:"-"`
	Finding *finding.Finding `json:"-"`
	Site    string           `json:"site"` // the place in code that has most of the memory, "" unknown
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

// Subject is one device of a run.
type Subject struct {
	File      string
	Findings  []finding.Finding     // of the file
	Footprint *footprint.Footprint  // at the peak
	Frag      *fragmentation.Report // at the peak, nil unknown
	Phases    []phase.Phase
}

// Check holds a device against limits, and against a baseline unless that is nil.
func Check(q *Subject, l *Limits, base *footprint.Footprint) []Outcome {
	c := &checker{q: q}
	f := q.Footprint
	known := f.HasHistory
	if l.Peak != nil {
		c.atMost(Peak, "", float64(f.Peaks.PeakRequested.Bytes), float64(*l.Peak), known)
	}
	if l.Reserved != nil {
		c.atMost(Reserved, "", float64(f.Peaks.PeakReserved.Bytes), float64(*l.Reserved), known)
	}
	if l.Growth != nil {
		growth, ok := f.Growth()
		c.atMost(Growth, "", float64(max(growth, 0)), float64(*l.Growth), ok)
	}
	if l.Fragmentation != nil {
		share := 0.0
		if q.Frag != nil && q.Frag.Reserved > 0 {
			share = 100 * float64(q.Frag.Split) / float64(q.Frag.Reserved)
		}
		c.atMost(Fragmentation, "", share, float64(*l.Fragmentation), q.Frag != nil)
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
		c.atMost(OfStep, "", float64(most), float64(l.Steps.Peak), len(f.Steps) > l.Steps.Skip)
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

// atMost adds what came of an upper limit.
func (c *checker) atMost(g Gate, name string, value, limit float64, known bool) *Outcome {
	o := c.add(Outcome{Gate: g, Name: name, Value: value, Limit: limit, Status: Passed})
	switch {
	case !known:
		o.Value, o.Status = 0, Unknown
	case value > limit:
		o.Status = Failed
	}
	if len(c.q.Footprint.Groups) > 0 && c.q.Footprint.Groups[0].Known {
		o.Site = c.q.Footprint.Groups[0].Site
	}
	return o
}

// ghosts fails for memory that only a forgotten reference keeps, where that is more than a hint.
func (c *checker) ghosts(known bool) {
	for i := range c.q.Findings {
		f := &c.q.Findings[i]
		if f.Status != finding.Ghost || f.Device >= 0 && f.Device != c.q.Footprint.Device {
			continue
		}
		o := c.add(Outcome{Gate: Ghosts, Value: float64(f.Bytes), Finding: f, Status: Passed})
		if f.Confidence != finding.Low && f.Severity != finding.Info {
			o.Status = Failed
		}
		if g := f.Evidence.Growth; g != nil {
			o.Site = g.Site
		}
		return
	}
	o := c.add(Outcome{Gate: Ghosts, Status: Passed})
	if !known {
		o.Status = Unknown
	}
}

func (c *checker) phase(p *Phase) {
	for i := range c.q.Phases {
		if v := &c.q.Phases[i]; v.Name == p.Name {
			peak := v.Peak().Peak
			c.atMost(OfPhase, p.Name, float64(peak), float64(p.Peak), peak >= 0)
			return
		}
	}
	c.atMost(OfPhase, p.Name, 0, float64(p.Peak), false)
}

func (c *checker) site(s *Site) {
	f := c.q.Footprint
	var sum, most int64
	where := ""
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
			most, where = g.Requested, g.Site
		}
	}
	c.atMost(OfSite, s.Match.String(), float64(sum), float64(s.Peak), f.HasHistory).Site = where
}

func (c *checker) baseline(base *footprint.Footprint, l *Limits) {
	tolerance := UsualTolerance
	if l.Tolerance != nil {
		tolerance = *l.Tolerance
	}
	was := base.Peaks.PeakRequested.Bytes
	limit := was + max(int64(float64(was)*float64(tolerance)/100), LeastTolerance)
	r := diff.Compare(base, c.q.Footprint)
	o := c.atMost(Baseline, "", float64(c.q.Footprint.Peaks.PeakRequested.Bytes), float64(limit),
		c.q.Footprint.HasHistory && base.HasHistory)
	o.Diff, o.Site = r, ""
	if len(r.Causes) > 0 && len(r.Causes[0].Sites) > 0 {
		o.Site = r.Causes[0].Sites[0].Site
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
