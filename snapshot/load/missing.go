package load

import (
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// describe notes what the file lacks, and what that costs.
func (ev *evidence) describe(s *snapshot.Snapshot) {
	miss := func(format string, args ...any) { s.Missing = append(s.Missing, fmt.Sprintf(format, args...)) }
	live, events := ev.live, ev.events.Events
	s.HasTimes, s.HasStacks = ev.timed(), ev.stacked || ev.events.Stacked || ev.withStack > 0

	if p := s.Part; p != nil && p.Certain {
		miss("the memory outside of %v: the segments are those of that pool alone, as MemPool.snapshot() gives them; "+
			"all figures are the pool's, not the process's", p.Pool)
	} else if p != nil {
		miss("the memory outside of %v, if there was any: all segments are of that pool, as MemPool.snapshot() gives "+
			"them; the figures are the process's only if it used no other memory", p.Pool)
	}
	s.Recorded = ev.recorded(s)
	if why := whyNoTrace(s); events == 0 && s.Traces != nil && s.HostEvents() > 0 {
		known := "of the GPU only the final state is known, not growth, peaks or causes"
		if len(s.Segments) == 0 {
			known = "nothing is known of the GPU's memory"
		}
		miss("the trace of the GPU's memory: only pinned host memory was recorded, as with record_cuda=False; %s", known)
	} else if why != "" {
		miss("the trace (%s): only the final state is known", why)
	}
	if events > 0 && !s.HasTimes {
		miss("event times (torch before 2.2 records none): plots show event numbers")
	}
	if !s.HasStacks && (events > 0 || live > 0) {
		miss("call stacks: memory cannot be attributed to code; record with stacks='python' or 'all' and context='all'")
	}
	if live > 0 && !ev.requested {
		miss("requested sizes (torch before 1.13 records none): the waste from rounding is unknown")
	}
	if !s.Settings.Present && s.Partial != nil {
		miss("allocator settings, annotations: they come after the part that could be read")
	} else if !s.Settings.Present && (s.Writer.Newest == 0 || s.Writer.Newest >= 200) {
		const none = "allocator settings (torch before 2.3 records none): "
		n := rounded(s)
		switch {
		case n > 0:
			miss(none+"roundup_power2_divisions was set, since live blocks (%d) are larger than by default; how much more "+
				"freed ones took is unknown, so peaks of active and allocated memory may be too low", n)
		case s.Recorded == snapshot.RecordedTrace:
			miss(none + "PYTORCH_CUDA_ALLOC_CONF at the time is unknown; peaks of active and allocated memory are right " +
				"for the default, and too low if roundup_power2_divisions was set")
		default:
			miss(none + "PYTORCH_CUDA_ALLOC_CONF at the time is unknown")
		}
	}
}

// recorded says what the file has of the past.
func (ev *evidence) recorded(s *snapshot.Snapshot) snapshot.Recorded {
	most, events, markers := ev.most, ev.events.Events, ev.events.Count[snapshot.SnapshotTaken]
	switch {
	case s.Traces == nil:
		return snapshot.RecordedNoKey
	case events == 0 && ev.lists == 0 && len(s.Segments) > 0:
		return snapshot.RecordedLeftOut
	case events == 0 && ev.withStack > 0 && s.Part == nil:
		return snapshot.RecordedCleared
	case events == 0:
		return snapshot.RecordedNothing
	case most == 1 && ev.stackedBlocks > events:
		return snapshot.RecordedOne
	case events == markers:
		return snapshot.RecordedMarkers
	case most == 1:
		return snapshot.RecordedLast
	}
	return snapshot.RecordedTrace
}

// whyNoTrace says why the past is not known, "" where it is.
func whyNoTrace(s *snapshot.Snapshot) string {
	few := "enabled='state', max_entries=1, or True without trace_alloc_max_entries"
	if n := s.Writer.Newest; n == 200 {
		few = "trace_alloc_max_entries=1, its default"
	} else if n == 201 {
		few = "enabled='state', max_entries=1 or enabled=True"
	}
	switch s.Recorded {
	case snapshot.RecordedNoKey:
		return "no device_traces in the file"
	case snapshot.RecordedLeftOut:
		return "device_traces is empty, as with include_traces=False"
	case snapshot.RecordedCleared:
		return "recording was on, since blocks have stacks, and was stopped or cleared before the snapshot"
	case snapshot.RecordedNothing:
		if s.Part != nil {
			return "the events do not say of which pool they are"
		}
		return "it is empty: recording was never on, or was stopped before the snapshot"
	case snapshot.RecordedOne:
		return "it has only the last event, as with " + few
	case snapshot.RecordedLast:
		return "it has one event: recording began right before, or kept only the last one, as with " + few
	case snapshot.RecordedMarkers:
		return "its only events are earlier snapshots"
	}
	return ""
}

// rounded counts the live blocks that only roundup_power2_divisions makes as large as they are: by default a block of
// the small pool is less than 1 KiB larger than what was requested (analyze/allocator/SPEC.md 5.3, 5.5).
func rounded(s *snapshot.Snapshot) int {
	n := 0
	for i := range s.Segments {
		for _, b := range blocksOf(s, &s.Segments[i]) {
			if s.Segments[i].Kind == snapshot.KindSmall && b.State.Active() && b.Has&snapshot.BlockHasRequested != 0 &&
				b.Size-(b.Requested+511)/512*512 >= 512 {
				n++
			}
		}
	}
	return n
}

// describePage adds what is peculiar to snapshots out of HTML pages.
func describePage(s *snapshot.Snapshot) {
	if neverFrees(s) {
		s.Missing = append(s.Missing, "short-lived allocations: no allocation of the trace is freed in it, so this "+
			"page was probably made with trace_plot -f, which removes them; peaks are too low")
	}
}

// neverFrees reports whether some device's trace allocates and none frees what it allocated.
func neverFrees(s *snapshot.Snapshot) bool {
	pairless := false
	for _, t := range s.Traces {
		live := make(map[uint64]bool)
		for i := range t.Len() {
			switch e := t.At(i); e.Action {
			case snapshot.Alloc:
				live[e.Addr] = true
			case snapshot.FreeRequested, snapshot.FreeCompleted:
				if live[e.Addr] {
					return false
				}
			}
		}
		pairless = pairless || len(live) > 1
	}
	return pairless
}
