package verdict_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot"
)

// TestAdvise checks that a file without history says how to get one, in its own release's words, and that what a
// finding says is not said twice.
func TestAdvise(t *testing.T) {
	for _, want := range []struct {
		recorded snapshot.Recorded
		newest   int
		backend  string
		next     string
		fix      string
	}{
		{snapshot.RecordedNothing, 0, "", "Record a trace too with these two lines",
			"torch.cuda.memory._record_memory_history(max_entries=100000)"},
		{snapshot.RecordedCleared, 209, "", "Dump the snapshot before recording is stopped",
			"torch.cuda.memory._record_memory_history(max_entries=100000)"},
		{snapshot.RecordedLeftOut, 211, "", "include_traces=True", ""},
		{snapshot.RecordedOne, 200, "", "not only the last, with these two lines",
			"torch.cuda.memory._record_memory_history(\n  True, trace_alloc_max_entries=100000, trace_alloc_record_context=True)"},
	} {
		s := &snapshot.Snapshot{Recorded: want.recorded}
		s.Writer.Newest, s.Writer.Backend = want.newest, want.backend
		v := verdict.Verdict{Status: finding.NoHistory}
		v.Advise(s, nil, false)
		fix := strings.Join(v.Fix, "\n")
		if !strings.Contains(v.Next, want.next) || !strings.HasPrefix(fix, want.fix) ||
			(want.fix != "") != strings.HasSuffix(fix, `torch.cuda.memory._dump_snapshot("snapshot.pickle")`) {
			t.Errorf("%v: %s\n%s", want.recorded, v.Next, fix)
		}
		for _, l := range v.Fix {
			if len(l) > 72 {
				t.Errorf("a narrow terminal cuts %q", l)
			}
		}
	}
	v := verdict.Verdict{Status: finding.Ghost, Findings: []finding.Finding{{Status: finding.Ghost}}}
	if v.Advise(new(snapshot.Snapshot), nil, false); v.Next != "" {
		t.Errorf("beside a finding: %q", v.Next)
	}
	v = verdict.Verdict{Status: finding.Healthy}
	if v.Advise(new(snapshot.Snapshot), nil, false); v.Next != "No fix needed." || len(v.Fix) > 0 {
		t.Errorf("healthy: %q", v.Next)
	}
}
