package load

import (
	"fmt"

	"github.com/snapana/snapana/snapshot"
)

// describe notes what the file lacks, and what that costs.
func describe(s *snapshot.Snapshot) {
	miss := func(format string, args ...any) { s.Missing = append(s.Missing, fmt.Sprintf(format, args...)) }
	var events, taken, stacked int
	for _, t := range s.Traces {
		events += t.Len()
		for i := range t.Len() {
			e := t.At(i)
			if e.Has&snapshot.EventHasTime != 0 {
				s.HasTimes = true
			}
			if e.Stack > snapshot.EmptyStack {
				stacked++
			}
			if e.Action == snapshot.SnapshotTaken {
				taken++
			}
		}
	}
	live, withStack, requestedKnown := liveBytes(s)
	s.HasStacks = stacked > 0 || withStack > 0
	for i := range s.Segments {
		s.HasStacks = s.HasStacks || s.Segments[i].Stack > snapshot.EmptyStack
	}

	switch {
	case s.Traces == nil:
		miss("the trace (no device_traces in the file): growth, peaks and causes are not to be seen, only the final state; " +
			"call torch.cuda.memory._record_memory_history() before the part of interest")
	case events == 0:
		miss("the trace (it is empty): growth, peaks and causes are not to be seen, only the final state; " +
			"call torch.cuda.memory._record_memory_history() before the part of interest")
	case events == taken || events == 1:
		miss("the trace (its only event is the dump itself): recording was on with enabled='state', or began too late; " +
			"only the final state is to be seen")
	}
	if events > 0 && !s.HasTimes {
		miss("event times (torch before 2.2 records none): plots run by event number")
	}
	switch {
	case !s.HasStacks && (events > 0 || live > 0):
		miss("call stacks: memory cannot be attributed to code; record with stacks='python' or 'all' and context='all'")
	case live > 0 && withStack < live-live/100:
		miss("call stacks of %.3g%% of the live bytes: that memory is shown as unattributed; "+
			"it was allocated before recording began, or on threads without Python frames",
			100*float64(live-withStack)/float64(live))
	}
	if live > 0 && !requestedKnown {
		miss("requested sizes (torch before 1.13 records none): the waste by rounding is not to be seen")
	}
	if !s.Settings.Present && s.Partial != nil {
		miss("allocator settings, annotations: they would come after the part that was read")
	} else if !s.Settings.Present && (s.Writer.Newest == 0 || s.Writer.Newest >= 200) {
		miss("allocator settings (torch before 2.3 records none): PYTORCH_CUDA_ALLOC_CONF at the time is not known")
	}
}

// liveBytes sums the active blocks, and those of them whose stack is known.
func liveBytes(s *snapshot.Snapshot) (live, withStack int64, requestedKnown bool) {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if !b.State.Active() {
			continue
		}
		live += b.Size
		if b.Stack > snapshot.EmptyStack {
			withStack += b.Size
		}
		if b.Has&snapshot.BlockHasRequested != 0 || b.History.Len > 0 {
			requestedKnown = true
		}
	}
	return live, withStack, requestedKnown
}

// describePage adds what is peculiar to snapshots out of HTML pages.
func describePage(s *snapshot.Snapshot) {
	if paired, pairless := freePairs(s); pairless && !paired {
		s.Missing = append(s.Missing, "memory that came and went: no allocation of the trace is freed in it, so this page was "+
			"probably made with trace_plot -f, which removes them; peaks are too low")
	}
}

// freePairs reports whether some device's trace frees what it allocated, and whether one
// allocates and never does.
func freePairs(s *snapshot.Snapshot) (paired, pairless bool) {
	for _, t := range s.Traces {
		live := make(map[uint64]bool)
		for i := range t.Len() {
			switch e := t.At(i); e.Action {
			case snapshot.Alloc:
				live[e.Addr] = true
			case snapshot.FreeRequested, snapshot.FreeCompleted:
				if live[e.Addr] {
					return true, false
				}
			}
		}
		pairless = pairless || len(live) > 1
	}
	return false, pairless
}
