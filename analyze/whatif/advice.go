package whatif

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// Advice is the setting that is worth a try.
type Advice struct {
	// Best is the place of the setting in the list, -1 when none wins by a margin over the
	// first one.
	Best int `json:"best"`
	// Text says what it gives, and Costs what it takes, each in a sentence.
	Text  string       `json:"advice"`
	Costs []string     `json:"costs"`
	Gain  finding.Gain `json:"-"` // of which Text is made
}

// A setting must lower the peak by this much to be worth changing anything.
const (
	marginBytes   = 64 << 20
	marginPercent = 5
)

// Advise compares the outcomes of settings with that of the first, which are those of the run. A
// setting under which requests fail that the run had served is not recommended: what follows
// the first of them is no longer a prediction.
func Advise(settings []Setting, outs []*Outcome) Advice {
	a := Advice{Best: -1, Costs: []string{}}
	base := outs[0]
	for i, o := range outs[1:] {
		if o.StartFailed || o.New > 0 {
			continue
		}
		saves := base.StartFailed || base.New > 0 || base.Failures > o.Failures ||
			base.Failures == o.Failures && (o.relieves(base) || base.ReservedPeak-o.ReservedPeak >= margin(base))
		if saves && (a.Best < 0 || o.better(outs[a.Best])) {
			a.Best = i + 1
		}
	}
	if a.Best < 0 {
		return a
	}
	o := outs[a.Best]
	a.Gain = finding.Gain{Kind: finding.LowersPeak, Peak: units.Size(o.ReservedPeak), Failures: o.Failures,
		PeakBefore: units.Size(base.ReservedPeak), FailuresBefore: base.Failures, Retries: o.Retries,
		RetriesBefore: base.Retries}
	switch {
	case o.Assumed != nil:
		a.Gain.Kind, a.Gain.Failures, a.Gain.Event = finding.ServesOne, -1, *o.Assumed
		a.Gain.First = base.First != nil && base.First.Event == *o.Assumed
	case o.Failures == 0 && (base.StartFailed || base.Failures > 0):
		a.Gain.Kind, a.Gain.Ends = finding.ServesAll, o.Served > 0
	case base.StartFailed || base.New > 0:
		a.Gain.Kind = finding.FailsNoNew
	case base.Failures > o.Failures:
		a.Gain.Kind = finding.FailsLess
	case o.relieves(base):
		a.Gain.Kind = finding.RetryLess
	}
	a.Text = "With " + cmp.Or(settings[a.Best].Text, "the default settings") + ", " + a.Gain.String()
	a.costs(&settings[0], &settings[a.Best], base, o)
	return a
}

// margin is how much lower than an outcome's the peak must be.
func margin(base *Outcome) int64 { return max(marginBytes, base.ReservedPeak*marginPercent/100) }

// relieves reports whether o spares at least half of the retries of a run that filled the device: each waits for all
// that the GPU has to do, and gives memory back that must be asked for again.
func (o *Outcome) relieves(base *Outcome) bool {
	return base.Retries > 0 && 2*o.Retries <= base.Retries
}

// better reports whether o beats another outcome that is better than the run's: by failures, then by retries if one
// has at most half, then by peak unless the two are within a hundredth, then by calls to the driver.
func (o *Outcome) better(other *Outcome) bool {
	if o.Failures != other.Failures {
		return o.Failures < other.Failures
	}
	if less, more := min(o.Retries, other.Retries), max(o.Retries, other.Retries); more > less+1 && more >= 2*less {
		return o.Retries == less
	}
	x, y := o.ReservedPeak, other.ReservedPeak
	if max(x, y)-min(x, y) > max(x, y)/100 {
		return x < y
	}
	return o.Calls() < other.Calls()
}

// costs names what a setting takes.
func (a *Advice) costs(from, to *Setting, base, o *Outcome) {
	add := func(format string, args ...any) { a.Costs = append(a.Costs, fmt.Sprintf(format, args...)) }
	calls, before := o.Calls(), base.Calls()
	if calls > before+before/10 {
		add("Calls to the driver: %s instead of %s; each can take milliseconds, and releasing memory waits for "+
			"the GPU.", units.Count(calls), units.Count(before))
	}
	if o.Retries > base.Retries {
		add("Retries: %s instead of %s.", units.Count(o.Retries), units.Count(base.Retries))
	}
	if more := o.AllocatedPeak - base.AllocatedPeak; more > marginBytes/8 {
		add("Rounding: blocks take up to %s more at their peak.", units.Bytes(more))
	}
	if to.Conf.Expandable && !from.Conf.Expandable {
		add("expandable_segments: tensors on the GPU can be shared with other processes (CUDA IPC) only since about " +
			"torch 2.5 and Linux 5.6; it needs a driver with virtual memory management (on AMD, ROCm 7 or later), " +
			"and has no effect on Windows.")
	}
	if to.Conf.MaxSplit >= 0 && from.Conf.MaxSplit < 0 {
		add("max_split_size_mb: cached blocks above it serve only requests of about their size, " +
			"so other request sizes than those seen here can cause many more calls to the driver.")
	}
}
