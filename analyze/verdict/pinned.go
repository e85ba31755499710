package verdict

import (
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/platform"
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
	add := func(f *finding.Finding) {
		f.Status, f.Device = finding.Host, -1
		named(f, s.Writer.Backend)
		if f.Events == nil {
			f.Events = []int{}
		}
		out = append(out, *f)
	}
	if !m.Checks.Balanced() {
		add(pinnedInconsistent(m))
	}
	for i := range m.Growth {
		add(pinnedGrowth(s, m, i))
	}
	if f := pinnedSpare(s, m); f != nil {
		add(f)
	}
	return out
}

func pinnedInconsistent(m *host.Pinned) *finding.Finding {
	c := &m.Checks
	f := &finding.Finding{ID: "host-inconsistent", Severity: finding.Info, Confidence: finding.High,
		Bytes: c.Residual.Largest()}
	f.Evidence.Faults = c.Faults()
	f.Say("Pinned host memory is %s.", host.NotVerified(c))
	contradicts(f)
	if c.Residual != (host.Residual{}) {
		f.Because("The rebuilt end minus the recorded one: %v. The end shown is the recorded one.", c.Residual)
	}
	f.Because("The file does not tell why: recording may have been off for a while (nothing marks the gap), or " +
		"another thread went on while the snapshot was written.")
	f.Do("Read the peaks and the growth of pinned memory as estimates. For exact ones record in one piece: start " +
		"recording once, and write the snapshot while nothing else runs.")
	return f
}

// pinnedGrowth is a ghost on the host.
func pinnedGrowth(s *snapshot.Snapshot, m *host.Pinned, index int) *finding.Finding {
	g := &m.Growth[index]
	v := grown(s, index, g)
	v.InUse, v.Clock = units.Size(m.Final.Active), m.GPU
	f := &finding.Finding{ID: "host-pinned-growth", Severity: finding.Warning, Confidence: finding.Medium,
		Bytes: g.Bytes, Heuristic: true, Events: g.Events, Stack: attribution.Frames(s, g.Stack),
		Evidence: finding.Evidence{Growth: v}}
	f.Say("Leak of pinned host memory: %s retains %v more per iteration; most of it %s.", v.Call, v.PerUnit,
		attribution.Allocated(v.Site))
	if v.Iterations >= 6 && v.Regular && v.Chance < 0.01 {
		f.Confidence = finding.High
	}
	if !m.Checks.Balanced() {
		f.Confidence = finding.Low
		f.Because("Pinned memory is not verified: some of these blocks may have been freed while recording was off.")
	}
	if v.Bytes < smallPinned || v.Bytes < v.InUse/100 {
		f.Severity = finding.Info
	}
	f.Because("%s (%v) are still in use at the end of the trace; they were allocated over %d iterations of %s.",
		units.Plural(v.Blocks, "pinned block"), v.Bytes, v.Iterations, v.Loop)
	if v.Regular {
		f.Because(regular)
	}
	f.Because("%s of the allocations in these iterations are freed, so this is not a data set that is being "+
		"pinned.", percent(v.Freed))
	f.Because("It is %s of the pinned memory in use at the end (%v).", units.Percent(int64(v.Bytes), int64(v.InUse)),
		v.InUse)
	if v.Clock >= 0 {
		f.Because("Iterations are recognized by the allocations of GPU %d between them.", v.Clock)
	}
	f.Because("Pinned memory is RAM that cannot be swapped out.")
	f.Do("Find the list, queue or closure that keeps these tensors (batches of a loader with pin_memory=True, "+
		"results of .pin_memory() or of .to(\"cpu\", non_blocking=True)), and drop them when the iteration ends.",
		"For what must stay on the host, keep a copy that is not pinned (tensor.clone()), or write it into one "+
			"pinned buffer that is reused.")
	return f
}

// pinnedSpare reports a cache that nobody needs, nil for none. That is arithmetic, and no leak.
func pinnedSpare(s *snapshot.Snapshot, m *host.Pinned) *finding.Finding {
	v := &finding.Spare{Bytes: units.Size(m.Spare()), Reserved: units.Size(m.Final.Reserved),
		Bounded: host.BoundedRounding(s)}
	if v.Bytes < smallSpare || 4*v.Bytes < v.Reserved {
		return nil
	}
	f := &finding.Finding{ID: "host-pinned-cached", Severity: finding.Info, Confidence: finding.High,
		Bytes: int64(v.Bytes), Evidence: finding.Evidence{Spare: v}}
	f.Say("PyTorch keeps %v of pinned host memory (%s of %v) that was not needed in the second half of the trace.",
		v.Bytes, units.Percent(int64(v.Bytes), int64(v.Reserved)), v.Reserved)
	var sizes []string
	last := int32(-1)
	for i, c := range m.Cached {
		if c.Spare <= 0 || len(sizes) == 3 {
			continue
		}
		v.Sizes = append(v.Sizes, finding.OfSize{Size: units.Size(c.Size), Bytes: units.Size(c.Spare)})
		sizes = append(sizes, fmt.Sprintf("%s in blocks of %s", units.Bytes(c.Spare), units.Bytes(c.Size)))
		if i == 0 || last < 0 {
			last = m.LastUse(c.Size)
		}
	}
	f.Because("Unused since the middle of the trace: %s.", strings.Join(sizes, ", "))
	f.Because("A freed pinned block is kept for a request of the same size, and is never split for a smaller one.")
	if last >= 0 {
		l := &m.Lives[last]
		if l.Born >= 0 {
			f.Events = append(f.Events, int(l.Born))
			f.Stack = attribution.Frames(s, l.Stack)
		}
		if l.Freed >= 0 {
			f.Events = append(f.Events, int(l.Freed))
		}
		v.Site = attribution.Site(s, l.Stack)
		f.Because("The largest part last came from %s.", attribution.Placed(v.Site))
	}
	f.Do("If it comes from a phase that is over, such as loading or saving, torch._C._host_emptyCache() returns it " +
		"(torch 2.5 or later).")
	if !v.Bounded {
		f.Because("Sizes are rounded up to powers of two: a request for 1.1 GiB takes 2 GiB. The requested sizes are " +
			"not recorded.")
		const unrounded = "pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:64"
		if platform.Of(s.Writer.Backend).Reads(unrounded) {
			f.Do("PYTORCH_CUDA_ALLOC_CONF=" + unrounded + " neither rounds nor keeps blocks above 64 MiB; set both to " +
				"the same value. Or pin buffers just below a power of two, and reuse them.")
		} else {
			f.Do("Pin buffers just below a power of two, and reuse them.")
		}
	}
	f.Do("For a DataLoader with pin_memory=True: batches of one size, a lower prefetch_factor or fewer workers need " +
		"fewer blocks.")
	return f
}
