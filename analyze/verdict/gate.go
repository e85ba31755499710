package verdict

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/gate"
	"github.com/snapana/snapana/analyze/units"
)

// GateOf says in one sentence what came of a limit.
func GateOf(o *gate.Outcome) string {
	value, limit := units.Bytes(int64(o.Value)), units.Bytes(int64(o.Limit))
	what := ""
	unknown := map[gate.Why]string{
		gate.NoHistory: "the file has no history of events that tells", gate.NoSteps: "too few steps were found",
		gate.NoPhase: "no such phase was recorded", gate.Uncertain: "the file tells no more than a bound of the figure",
	}[o.Why]
	switch o.Gate {
	case gate.Peak:
		what = "the peak of requested memory"
	case gate.Reserved:
		what = "the peak of reserved memory"
	case gate.Growth:
		what = "what the median step leaves behind"
	case gate.Fragmentation:
		what = "reserved memory that is free in pieces, at the peak,"
		value, limit = fmt.Sprintf("%.1f%%", o.Value), fmt.Sprintf("%g%%", o.Limit)
	case gate.OfPhase:
		what = "the peak of phase " + o.Name
	case gate.OfSite:
		what = "memory of stacks that match " + o.Name + ", at the peak,"
	case gate.OfStep:
		what = "the highest peak of a step"
	case gate.Baseline:
		return baseline(o, value, limit)
	case gate.Ghosts:
		return ghosts(o)
	}
	switch o.Status {
	case gate.Unknown:
		return fmt.Sprintf("%s, so %s cannot be held against %s.", capital(unknown), strings.TrimSuffix(what, ","), limit)
	case gate.Failed:
		return fmt.Sprintf("%s is %s, more than the limit of %s.", capital(what), value, limit)
	}
	return fmt.Sprintf("%s is %s, within the limit of %s.", capital(what), value, limit)
}

func baseline(o *gate.Outcome, value, limit string) string {
	switch o.Status {
	case gate.Unknown:
		return "The exact peak of one of the sides is not known."
	case gate.Failed:
		return fmt.Sprintf("The peak of requested memory is %s; the baseline had %s, and allows %s. %s", value,
			units.Bytes(o.Diff.A.Peaks.PeakRequested.Bytes), limit, Difference(o.Diff))
	}
	return fmt.Sprintf("The peak of requested memory is %s, within what the baseline allows, %s.", value, limit)
}

func ghosts(o *gate.Outcome) string {
	switch {
	case o.Status == gate.Unknown:
		return "Leaks cannot be judged: the file lacks events or stacks, or contradicts itself."
	case o.Finding == nil:
		return "No loop leaves memory behind."
	case o.Status == gate.Passed:
		return "Not sure enough to fail: " + o.Finding.Title
	}
	return o.Finding.Title
}
