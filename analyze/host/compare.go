package host

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/snapshot/memstats"
)

// Compare checks a sample of host_memory_stats against the pinned memory of a snapshot. The names are those since
// torch 2.10: releases before do not record it. Memory that other code registered is not in the counters.
func Compare(m *Pinned, sample *memstats.Sample) *counters.Check {
	c := &counters.Check{Device: -1, Host: true, Sample: sample, Event: m.Trace.Len() - 1, Rows: []counters.Row{}, Reasons: []string{},
		Moment: "assumed to be that of the dump: the sample does not record its moment",
		Whole:  m.Trace.Len() > 0 && m.Checks.Balanced() && m.Checks.Before == 0 && m.Initial == (Totals{})}
	var blocks, pinned, released int64
	for i := range m.Blocks {
		b := &m.Blocks[i]
		switch {
		case b.Registered && b.Gone < 0:
			blocks++
		case !b.Registered && b.Gone >= 0:
			pinned, released = pinned+1, released+1
		case !b.Registered:
			pinned++
		}
	}
	figures := map[string]int64{
		counters.Pinned:             m.Final.Reserved - m.Registered,
		"host.allocations.current":  m.FinalBlocks.Reserved - blocks,
		"host.active_bytes.current": m.Final.Active - m.Registered,
		counters.PinnedUses:         m.FinalBlocks.Active - blocks,
	}
	if m.Unknown > 0 { // whether so much is in use the file does not say
		delete(figures, counters.PinnedUses)
		delete(figures, "host.active_bytes.current")
	}
	if c.Whole {
		figures["host.num_host_alloc"], figures["host.num_host_free"] = pinned, released
		if m.Registered == 0 && blocks == 0 {
			figures["host.allocated_bytes.peak"] = m.PeakReserved.Bytes
		}
	}
	differs := false
	for _, st := range sample.Stats {
		if !counters.OfHost(st.Name) {
			continue
		}
		v, ok := figures[st.Name]
		if !ok {
			c.Unchecked++
			continue
		}
		row := counters.Beside(st, v)
		if row.Agreement == counters.Differs {
			differs = true
			row.Why = "another moment, or another run"
			if !strings.HasSuffix(row.Name, ".current") && row.Residual() < 0 {
				row.Why = "counters were reset, or another moment"
			}
		}
		c.Rows = append(c.Rows, row)
	}
	if !c.Whole {
		c.Reasons = append(c.Reasons, "The snapshot does not have all of the host's history: only current figures can be "+
			"compared.")
	}
	if differs && m.Registered == 0 && !m.Checks.Balanced() {
		c.Reasons = append(c.Reasons, fmt.Sprintf("Pinned host memory is %s.", NotVerified(&m.Checks)))
	}
	return c
}
