package verdict

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// The limits of findings, in bytes: below them memory is not worth a word.
const (
	smallPinned = 1 << 20
	smallSpare  = 64 << 20
)

// JudgePinned says what there is to say of pinned host memory, most important first. None of them is an error,
// and none is the verdict: they stand beside that on the GPU's memory.
func JudgePinned(s *snapshot.Snapshot, m *host.Pinned) []finding.Finding {
	var out []finding.Finding
	if !m.Checks.Balanced() {
		out = append(out, pinnedInconsistent(m))
	}
	for i := range m.Growth {
		out = append(out, pinnedGrowth(s, m, &m.Growth[i]))
	}
	if f := pinnedSpare(s, m); f != nil {
		out = append(out, *f)
	}
	for i := range out {
		out[i].Status, out[i].Device = finding.Host, -1
		if out[i].Events == nil {
			out[i].Events = []int{}
		}
	}
	return out
}

func pinnedInconsistent(m *host.Pinned) finding.Finding {
	c := &m.Checks
	return finding.Finding{ID: "host-inconsistent", Severity: finding.Info, Confidence: finding.High,
		Bytes: max(c.Residual.Reserved, -c.Residual.Reserved),
		Title: fmt.Sprintf("Pinned host memory is not verified: the file contradicts itself %s, and the replay is off by %s.",
			units.Times(c.Inconsistent()), units.Bytes(c.Residual.Reserved)),
		Why: []string{fmt.Sprintf("Events that contradict the state before them, or blocks that contradict the final "+
			"state: %s; events of another size than their block: %s; events without address or size: %s.",
			units.Count(c.Unmatched), units.Count(c.Sizes), units.Count(c.Bad)),
			fmt.Sprintf("Rebuilt final state minus the recorded one: %s reserved, %s active, %s allocated.",
				units.Bytes(c.Residual.Reserved), units.Bytes(c.Residual.Active), units.Bytes(c.Residual.Allocated))},
		Next: []string{"Read the figures of pinned memory as estimates, and record the snapshot again with nothing else " +
			"running when it is dumped."}}
}

// pinnedGrowth is a ghost on the host.
func pinnedGrowth(s *snapshot.Snapshot, m *host.Pinned, g *ghost.Growth) finding.Finding {
	name := frames.Function(s, g.Loop)
	f := finding.Finding{ID: "host-pinned-growth", Severity: finding.Warning, Confidence: finding.Medium, Bytes: g.Bytes,
		Heuristic: true,
		Events:    g.Events, Stack: attribution.Frames(s, g.Stacks[0]),
		Title: fmt.Sprintf("Leak of pinned host memory: %s retains %s more per iteration; most of it %s.",
			frames.Call(s, g.Loop), units.Bytes(g.PerLap), attribution.Allocated(attribution.Site(s, g.Stacks[0])))}
	if g.Laps >= 6 && g.Regular && g.Chance < 0.01 {
		f.Confidence = finding.High
	}
	if g.Bytes < smallPinned || g.Bytes < m.Final.Active/100 {
		f.Severity = finding.Info
	}
	f.Why = append(f.Why, fmt.Sprintf("%s (%s) are still in use at the end of the trace; they were allocated over %d "+
		"iterations of %s.",
		units.Plural(g.Count, "pinned block"), units.Bytes(g.Bytes), g.Laps, name))
	if g.Regular {
		f.Why = append(f.Why, regular)
	}
	f.Why = append(f.Why, fmt.Sprintf("%.0f%% of the allocations in these iterations are freed, so this is not a "+
		"data set that is being pinned.", 100*g.FreedShare),
		fmt.Sprintf("It is %s of the pinned memory in use at the end (%s).", units.Percent(g.Bytes, m.Final.Active),
			units.Bytes(m.Final.Active)))
	if m.GPU >= 0 {
		f.Because("Iterations are recognized by the allocations of GPU %d between them.", m.GPU)
	}
	f.Why = append(f.Why, "Pinned memory is RAM that cannot be swapped out.")
	f.Next = []string{"Find the list, queue or closure that keeps these tensors (batches of a loader with " +
		"pin_memory=True, results of .pin_memory() or of .to(\"cpu\", non_blocking=True)), and drop them when the " +
		"iteration ends.",
		"For what must stay on the host, keep a copy that is not pinned (tensor.clone()), or write it into one pinned " +
			"buffer that is reused."}
	return f
}

// pinnedSpare reports a cache that nobody needs. That is arithmetic, and no leak.
func pinnedSpare(s *snapshot.Snapshot, m *host.Pinned) *finding.Finding {
	spare := m.Spare()
	if spare < smallSpare || 4*spare < m.Final.Reserved {
		return nil
	}
	f := &finding.Finding{ID: "host-pinned-cached", Severity: finding.Info, Confidence: finding.High, Bytes: spare,
		Title: fmt.Sprintf("PyTorch keeps %s of pinned host memory (%s of %s) that was not needed in the second half of "+
			"the trace.",
			units.Bytes(spare), units.Percent(spare, m.Final.Reserved), units.Bytes(m.Final.Reserved))}
	var sizes []string
	last := int32(-1)
	for i := range m.Cached {
		c := &m.Cached[i]
		if c.Spare > 0 && len(sizes) < 3 {
			sizes = append(sizes, fmt.Sprintf("%s in blocks of %s", units.Bytes(c.Spare), units.Bytes(c.Size)))
			if i == 0 || last < 0 {
				last = m.LastUse(c.Size)
			}
		}
	}
	f.Why = []string{"Reserved at the end beyond the peak of use since the middle of the trace: " + strings.Join(sizes,
		", ") + ".",
		"A freed pinned block is kept for a request of the same size, and is never split for a smaller one."}
	if last >= 0 {
		l := &m.Lives[last]
		if l.Born >= 0 {
			f.Events = append(f.Events, int(l.Born))
			f.Stack = attribution.Frames(s, l.Stack)
		}
		if l.Freed >= 0 {
			f.Events = append(f.Events, int(l.Freed))
		}
		f.Because("The largest part last came from %s.", attribution.Place(s, l.Stack))
	}
	if !host.BoundedRounding(s) {
		f.Why = append(f.Why, "Sizes are rounded up to powers of two: a request for 1.1 GiB takes 2 GiB. The requested "+
			"sizes are not recorded.")
	}
	f.Next = []string{"If it comes from a phase that is over, such as loading or saving, torch._C._host_emptyCache() " +
		"returns it (torch 2.5 or later)."}
	if !host.BoundedRounding(s) {
		f.Next = append(f.Next, "PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:64 "+
			"neither rounds nor keeps blocks above 64 MiB; set both to the same value. Or pin buffers just below a power "+
			"of two, and reuse them.")
	}
	f.Next = append(f.Next, "For a DataLoader with pin_memory=True: batches of one size, a lower prefetch_factor or "+
		"fewer workers need fewer blocks.")
	return f
}
