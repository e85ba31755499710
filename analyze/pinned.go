package analyze

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// pinHost adds the pinned host memory and what there is to say of it: behind the finding on which the
// verdict rests, and before findings that matter less.
func (r *Result) pinHost() {
	m := host.BuildPinned(r.Snapshot)
	if m == nil {
		return
	}
	r.Pinned = m
	v := &r.Verdict
	at := 0
	if v.Lead() != nil {
		at = 1
	}
	for _, f := range verdict.JudgePinned(r.Snapshot, m) {
		for at < len(v.Findings) && (v.Findings[at].Severity != finding.Info || f.Severity == finding.Info) {
			at++
		}
		v.Findings = slices.Insert(v.Findings, at, f)
	}
	if v.Status == finding.NoData && len(r.Snapshot.UsedDevices()) == 0 && r.Snapshot.Partial == nil {
		v.Headline = fmt.Sprintf("Only pinned host memory was recorded, no GPU memory: %s in use of %s reserved at the "+
			"end.", units.Bytes(m.Final.Active), units.Bytes(m.Final.Reserved))
	}
}

// pinnedNotes says how far the figures of pinned host memory can be trusted, and what they lack.
func pinnedNotes(m *host.Pinned) []Note {
	if m == nil {
		return nil
	}
	var out []Note
	c := &m.Checks
	add := func(level string, count int64, format string, args ...any) {
		out = append(out, Note{Level: level, Count: count, Text: "Pinned host memory: " + fmt.Sprintf(format, args...)})
	}
	n := m.Trace.Len()
	switch {
	case !c.Balanced():
		add("problem", c.Inconsistent(), "%s.", Verified(c.Inconsistent(), c.Residual.Reserved))
	case n == 0:
		add("missing", 0, "only the final state was recorded, so its peak and its growth are unknown.")
	case !m.Stated:
		add("missing", 0, "%s, but no final state to compare with.", units.Plural(n, "event"))
	default:
		add("ok", 0, "%s (%s).", Verified(0, 0), units.Plural(n, "event"))
	}
	if c.Before > 0 && n > 0 {
		add("missing", c.Before, "in use before the first recorded event: %s; since when is unknown.",
			units.Plural(c.Before, "block"))
	}
	if c.Stateless > 0 {
		add("missing", c.Stateless, "the file does not say of %s whether it is in use.", units.Plural(c.Stateless, "block"))
	}
	if c.Unknown > 0 {
		add("missing", c.Unknown, "%s with an unknown action: left out.", units.Plural(c.Unknown, "event"))
	}
	if c.Lists > 0 {
		add("missing", c.Lists, "%s further lists of events were left out.", units.Count(c.Lists))
	}
	if n > 0 && len(m.Holders) == 1 && m.Holders[0].Stack <= snapshot.EmptyStack {
		add("missing", 0, "no recorded stacks, so who allocated it, and whether a loop keeps it, is unknown.")
	}
	return out
}
