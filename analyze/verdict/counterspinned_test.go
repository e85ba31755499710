package verdict_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/memstats"
)

// TestPinnedCounters holds what is said of host_memory_stats: kept blocks, new sizes, a data set that is pinned, and
// nothing where only the bytes in use of torch 2.7 to 2.11 rise, which are wrong.
func TestPinnedCounters(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name   string
		at     func(i int64) (pinned, active, uses, freed int64)
		status finding.Status
		trust  finding.Confidence
		says   string
	}{
		{"kept, others freed", func(i int64) (int64, int64, int64, int64) {
			return (8 + 4*i) * mib, (8 + 4*i) * mib, 2 + i, 3 * i
		}, finding.Growing, finding.High, "in use rises too, from 2 to 31"},
		{"pinned one after the other", func(i int64) (int64, int64, int64, int64) {
			return (8 + 4*i) * mib, (8 + 4*i) * mib, 2 + i, 0
		}, finding.Growing, finding.Low, "filled on purpose"},
		{"new sizes", func(i int64) (int64, int64, int64, int64) {
			return (8 + 4*i) * mib, 4 * mib, 2, 3 * i
		}, finding.Growing, finding.Medium, "does not rise (2 at the end)"},
		{"level, with copies", func(i int64) (int64, int64, int64, int64) {
			return 64 * mib, 4*mib*i + i, 2, i
		}, finding.Flat, "", ""},
	} {
		col := counters.NewCollector()
		for i := range int64(30) {
			s := memstats.Sample{Device: -1, Rank: -1}
			pinned, active, uses, freed := c.at(i)
			s.Set("host.reserved_bytes.current", pinned)
			s.Set("host.segment.current", 9)
			s.Set("host.allocated_bytes.current", active)
			s.Set("host.allocation.current", uses)
			s.Set("host.allocation.freed", freed)
			s.Complete()
			col.Add(&s)
		}
		j := verdict.JudgeCounters(col.Series[0], 0)
		if j.Status != c.status || len(j.Findings) > 0 != (c.says != "") {
			t.Errorf("%s: %s %+v", c.name, j.Status, j.Findings)
			continue
		}
		if c.says == "" {
			continue
		}
		f := &j.Findings[0]
		if f.Confidence != c.trust || !strings.Contains(strings.Join(f.Why, "\n"), c.says) || len(f.Next) < 2 {
			t.Errorf("%s: %s %q %q", c.name, f.Confidence, f.Why, f.Next)
		}
	}
}
