package counters_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/memstats"
)

// samples reads a file of counters.
func samples(t *testing.T, path string) []memstats.Sample {
	t.Helper()
	var out []memstats.Sample
	_, err := memstats.Open(t.Context(), path, nil, memstats.Options{},
		memstats.Handler{Sample: func(s *memstats.Sample) {
			c := *s
			c.Stats = append([]memstats.Stat(nil), s.Stats...)
			out = append(out, c)
		}})
	if err != nil && !strings.Contains(err.Error(), "empty") {
		t.Fatal(err)
	}
	return out
}

// TestCorpus holds every sample of every workload against its snapshot. Where the trace begins
// before the first allocation all that analyze/allocator/SPEC.md 5.11 lets one count again must be
// equal, at each step; where it does not, the current figures must be, at the moment of the dump.
func TestCheckCorpus(t *testing.T) {
	dirs, _ := filepath.Glob("../../../shared/corpus/*/memory_stats.jsonl")
	if len(dirs) == 0 {
		t.Skip("no corpus")
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle"), load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			lines := map[int]*timeline.Timeline{}
			check := func(sample *memstats.Sample, least int) *counters.Check {
				tl := lines[sample.Device]
				if tl == nil {
					tl = timeline.Build(s, max(sample.Device, 0))
					lines[sample.Device] = tl
				}
				c := counters.Compare(s, tl, sample)
				for _, r := range c.Rows {
					if r.Agreement == counters.Differs && (c.Whole || sample.Step.Known == false) {
						t.Errorf("GPU %d step %d: %s is %d, rebuilt %d (%s)", c.Device, sample.Step.N, r.Name, r.Stats,
							r.Snapshot, r.Why)
					}
				}
				if c.Whole && len(c.Rows) < least {
					t.Errorf("GPU %d step %d: only %d figures compared", c.Device, sample.Step.N, len(c.Rows))
				}
				if !c.Whole && len(c.Reasons) == 0 {
					t.Error("no reason why the trace does not cover everything")
				}
				return c
			}
			all := samples(t, path)
			for i := range all {
				if i%20 == 0 || i > len(all)-4 { // of 400 samples some
					check(&all[i], 95)
				}
			}
			for _, name := range []string{"truth.json", "memory_summary.txt"} { // of the moment of the dump
				for _, sample := range samples(t, filepath.Join(dir, name)) {
					c := check(&sample, 17)
					if c.Event != lines[sample.Device].Trace.Len()-1 {
						t.Errorf("%s: taken for the moment after event %d", name, c.Event)
					}
				}
			}
		})
	}
}

// TestReasons checks what is said where figures differ.
func TestReasons(t *testing.T) {
	s := buildtest.Read(t, build.Random(7, build.RandomOptions{}))
	tl := timeline.Build(s, 0)
	stat := func(name string, v, step int64) memstats.Stat {
		return memstats.Stat{Name: name, Figure: memstats.Figure{Value: v, Step: step}}
	}
	for name, c := range map[string]struct {
		stat memstats.Stat
		want counters.Agreement
		why  string
	}{
		"equal":   {stat("reserved_bytes.all.current", tl.Final.Reserved, 1), counters.Equal, ""},
		"rounded": {stat("reserved_bytes.all.current", tl.Final.Reserved-5, 1024), counters.Within, ""},
		"another moment": {stat("reserved_bytes.all.current", tl.Final.Reserved+2<<20, 1), counters.Differs,
			"another moment"},
		"peaks were reset": {stat("allocated_bytes.all.peak", tl.PeakAllocated.Bytes-512, 1), counters.Differs,
			"peaks were reset"},
		"counters reset": {stat("allocation.all.allocated", 0, 1), counters.Differs, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			got := counters.Compare(s, tl, &memstats.Sample{Stats: []memstats.Stat{c.stat, stat("zzz", 1, 1)}})
			if len(got.Rows) != 1 || got.Unchecked != 1 || got.Rows[0].Agreement != c.want ||
				!strings.Contains(got.Rows[0].Why, c.why) ||
				(c.want == counters.Differs) != (len(got.Reasons) > 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}
