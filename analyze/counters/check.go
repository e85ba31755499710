package counters

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/memstats"
)

// Agreement is how two figures of one counter compare.
type Agreement string

const (
	Equal   Agreement = "equal"
	Within  Agreement = "within rounding" // of the printed figure
	Differs Agreement = "differs"
)

// Row is one counter in both.
type Row struct {
	Name      string    `json:"name"`
	Stats     int64     `json:"stats"`
	Step      int64     `json:"step"` // the precision of Stats, as in memstats.Figure
	Snapshot  int64     `json:"snapshot"`
	Agreement Agreement `json:"verdict"`
	Why       string    `json:"why"` // of a difference, where it shows
}

// Residual is the counter's value minus the snapshot's.
func (r *Row) Residual() int64 { return r.Stats - r.Snapshot }

// Check is one sample beside a snapshot.
type Check struct {
	Device int              `json:"device"` // -1 of the host
	Host   bool             `json:"host"`   // it is of pinned host memory, which all devices share
	Sample *memstats.Sample `json:"-"`
	Event  int              `json:"event"`  // the sample was taken after it, before the next allocation or free
	Moment string           `json:"moment"` // how that is known
	// Whole says that the trace goes back to the first allocation, so that peaks and accumulated
	// counters can be counted.
	Whole     bool     `json:"whole"`
	Rows      []Row    `json:"rows"`      // by name
	Unchecked int      `json:"unchecked"` // counters of the sample that the snapshot cannot tell
	Reasons   []string `json:"reasons"`
}

// Count is how many rows have a verdict.
func (c *Check) Count(v Agreement) int {
	n := 0
	for i := range c.Rows {
		if c.Rows[i].Agreement == v {
			n++
		}
	}
	return n
}

// Compare checks a sample against the snapshot's history of its device.
func Compare(s *snapshot.Snapshot, t *timeline.Timeline, sample *memstats.Sample) *Check {
	c := &Check{Device: t.Device, Sample: sample, Whole: whole(s, t), Rows: []Row{}, Reasons: []string{}}
	counted := &counter{s: s, t: t}
	end := t.Trace.Len() - 1
	c.Event, c.Moment = end, "assumed to be that of the dump: the sample does not record its moment"
	if c.Whole {
		if e, ok := counted.locate(sample); ok {
			c.Event, c.Moment = e, fmt.Sprintf("found by its %s allocations and %s frees",
				units.Count(sample.Get("allocation.all.allocated").Value),
				units.Count(sample.Get("allocation.all.freed").Value))
		} else if sample.Get("allocation.all.allocated").Step == 1 {
			c.Moment = "not in the trace (taken after the dump, in another run, or counters were reset); compared " +
				"with the dump"
		}
	}
	figures := counted.at(c.Event, c.Whole)
	for _, st := range sample.Stats {
		if OfHost(st.Name) {
			continue
		}
		v, ok := figures[st.Name]
		if !ok {
			c.Unchecked++
			continue
		}
		c.Rows = append(c.Rows, Beside(st, v))
	}
	c.explain(t)
	return c
}

// OfHost reports whether a counter is of host_memory_stats (snapshot/SPEC.md 6.2).
func OfHost(name string) bool { return strings.HasPrefix(name, "host.") }

// Beside is a counter with what the snapshot has for it.
func Beside(st memstats.Stat, v int64) Row {
	r := Row{Name: st.Name, Stats: st.Value, Step: st.Step, Snapshot: v, Agreement: Differs}
	switch d := v - st.Value; {
	case d == 0:
		r.Agreement = Equal
	case -st.Step < d && d < st.Step:
		r.Agreement = Within
	}
	return r
}

// whole reports whether the trace begins before the first allocation.
func whole(s *snapshot.Snapshot, t *timeline.Timeline) bool {
	return s.Partial == nil && t.Trace.Len() > 0 && t.Initial == (timeline.Totals{}) && len(t.Initially) == 0 &&
		t.Checks.PreTraceBlocks == 0 && t.Recording.LeftOut() == 0 &&
		t.Checks.Inconsistent() == 0 && t.Checks.Residual == 0
}

// explain gives reasons for what differs and for what could not be checked.
func (c *Check) explain(t *timeline.Timeline) {
	add := func(format string, args ...any) { c.Reasons = append(c.Reasons, fmt.Sprintf(format, args...)) }
	if !c.Whole {
		switch {
		case t.Trace.Len() == 0:
			add("The snapshot has no trace of this device: only current figures can be compared.")
		case t.Initial != (timeline.Totals{}):
			add("The trace begins with %s already reserved (recording began late, or its ring wrapped), so peaks and "+
				"accumulated counters cannot be recomputed.",
				units.Bytes(t.Initial.Reserved))
		default:
			add("The trace does not cover everything, so peaks and accumulated counters cannot be recomputed.")
		}
	}
	moment, peaks, sums := 0, 0, 0
	_, unsure := t.CountRetries(c.Event)
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Agreement != Differs {
			continue
		}
		switch kind := figureOf(r.Name); {
		case r.Name == Retries && r.Residual() > 0 && unsure > 0:
			r.Why = fmt.Sprintf("of %s the trace does not tell whether it was part of a retry",
				units.Plural(int64(unsure), "further release"))
		case kind == "current":
			r.Why, moment = "another moment", moment+1
		case kind == "peak" && r.Residual() < 0:
			r.Why, peaks = "peaks were reset", peaks+1
		case (kind == "allocated" || kind == "freed" || kind == "") && r.Residual() < 0:
			r.Why, sums = "counters were reset, or another moment", sums+1
		default:
			r.Why = "another moment, or another run"
		}
	}
	if moment > 0 {
		add("Current figures differ: the sample and the dump are from different moments.")
	}
	if peaks > 0 {
		add("Peaks of the sample are lower than those of the trace: reset_peak_memory_stats was called.")
	}
	if sums > 0 && moment == 0 {
		add("Accumulated counters are lower than those of the trace: reset_accumulated_memory_stats was called.")
	}
}
