package load

import (
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// describe notes what the file lacks, and what that costs.
func (ev *evidence) describe(s *snapshot.Snapshot) {
	miss := func(format string, args ...any) { s.Missing = append(s.Missing, fmt.Sprintf(format, args...)) }
	events, live := ev.events, ev.live
	s.HasTimes, s.HasStacks = ev.time, ev.stacked || ev.withStack > 0

	switch {
	case s.Traces == nil:
		miss(noTrace, "no device_traces in the file")
	case events == 0 && s.HostEvents() > 0:
		miss("the trace of the GPU's memory: only pinned host memory was recorded, as with record_cuda=False; of the " +
			"GPU only the final state is known, not growth, peaks or causes")
	case events == 0:
		miss(noTrace, "it is empty")
	case events == ev.taken || events == 1:
		miss("the trace (its only event is the dump itself): recording used enabled='state', or began too late; " +
			"only the final state is known")
	}
	if events > 0 && !s.HasTimes {
		miss("event times (torch before 2.2 records none): plots show event numbers")
	}
	switch {
	case !s.HasStacks && (events > 0 || live > 0):
		miss("call stacks: memory cannot be attributed to code; record with stacks='python' or 'all' and context='all'")
	case live > 0 && ev.withStack < live-live/100:
		miss("call stacks of %.3g%% of the live bytes: the code that allocated them is unknown; "+
			"it ran before recording began, or on threads without Python frames",
			100*float64(live-ev.withStack)/float64(live))
	}
	if live > 0 && !ev.requested {
		miss("requested sizes (torch before 1.13 records none): the waste from rounding is unknown")
	}
	if !s.Settings.Present && s.Partial != nil {
		miss("allocator settings, annotations: they come after the part that could be read")
	} else if !s.Settings.Present && (s.Writer.Newest == 0 || s.Writer.Newest >= 200) {
		miss("allocator settings (torch before 2.3 records none): PYTORCH_CUDA_ALLOC_CONF at the time is unknown")
	}
}

const noTrace = "the trace (%s): only the final state is known, not growth, peaks or causes; " +
	"call torch.cuda.memory._record_memory_history() before the part of interest"

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
