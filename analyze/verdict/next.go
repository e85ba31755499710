package verdict

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// NoFix is what to do where nothing is wrong: a report may add what would use less.
const NoFix = "No fix needed."

// Advise says what to do next where no finding does. Most is the timeline of the device that reached most, nil without
// one; pinned says that there is pinned host memory.
func (v *Verdict) Advise(s *snapshot.Snapshot, most *timeline.Timeline, pinned bool) {
	v.Next, v.Fix = "", []string{}
	if v.Lead() != nil {
		return
	}
	onHost := slices.IndexFunc(v.Findings, func(f finding.Finding) bool {
		return f.Status == finding.Host && f.Severity == finding.Warning
	})
	switch {
	case s.Partial != nil:
		v.Next = "Get the whole file: copy it again after the program has finished writing it, or record it again."
	case onHost >= 0:
		v.Next = v.Findings[onHost].Next[0]
	case pinned && (len(s.UsedDevices()) == 0 || v.Status == finding.NoHistory && s.HostEvents() > 0):
		v.Next = "To judge the GPU's memory too, record without record_cuda=False."
	case v.Status == finding.NoData && most != nil && most.HasHistory():
		v.Next = `Record the stacks of Python too: context="all" and stacks="all", the defaults of ` +
			"_record_memory_history. A program without Python has none: compare two snapshots, of a short run and of a " +
			"long one, for what grows."
	case v.Status == finding.NoData:
		v.record(s, "Record", ", in the process that uses the GPU.")
	case v.Status == finding.NoHistory && most != nil && most.Recording.LeftOut() != 0:
		v.Next = "Record again without skip_actions, or skip fewer kinds of events."
	case v.Status == finding.NoHistory:
		v.again(s)
	default:
		v.Next = NoFix
	}
	here := platform.Of(s.Writer.Backend)
	v.Next = here.Say(v.Next)
	here.Says(v.Fix...)
}

// again says how to get the history that a file lacks.
func (v *Verdict) again(s *snapshot.Snapshot) {
	switch s.Recorded {
	case snapshot.RecordedCleared:
		v.record(s, "Dump the snapshot before recording is stopped: _record_memory_history(enabled=None) throws the "+
			"history away. If it was not stopped, record", ".")
	case snapshot.RecordedLeftOut:
		v.Next = "Dump it again with its traces (include_traces=True, the default)."
	case snapshot.RecordedOne, snapshot.RecordedLast:
		v.record(s, "Record every event, not only the last,", ".")
	default:
		v.record(s, "Record a trace too", ".")
	}
}

// record adds the two lines that record a trace.
func (v *Verdict) record(s *snapshot.Snapshot, what, where string) {
	v.Next = what + " with these two lines, the first when the program starts and the second after the work" + where
	call := s.RecordingCall()
	// Long ones are two lines, so that a terminal shows them whole.
	if at := strings.IndexByte(call, '(') + 1; len(call) > 60 {
		v.Fix = append(v.Fix, "torch.cuda.memory."+call[:at], "  "+call[at:])
	} else {
		v.Fix = append(v.Fix, "torch.cuda.memory."+call)
	}
	v.Fix = append(v.Fix, `torch.cuda.memory._dump_snapshot("snapshot.pickle")`)
}
