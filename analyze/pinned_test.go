package analyze_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot/load"
)

func notes(r *analyze.Result) string {
	var all strings.Builder
	for _, n := range r.Quality {
		all.WriteString(n.Level + ": " + n.Text + "\n")
	}
	return all.String()
}

// TestPinnedNotes holds what is said of files that lack something of pinned host memory.
func TestPinnedNotes(t *testing.T) {
	for _, c := range []struct {
		opt  build.Options
		want string
	}{
		{build.Options{},
			"ok: Pinned host memory: verified: the replay matches the snapshot byte for byte (81 events)."},
		{build.Options{NoTrace: true}, "missing: Pinned host memory: only the final state was recorded"},
		{build.Options{NoStacks: true}, "missing: Pinned host memory: no recorded stacks"},
		{build.Options{Ring: 40}, "missing: Pinned host memory: 8 blocks in use before the first recorded event"},
	} {
		c.opt.Torch = 213
		made, _ := build.Named("pinned-leak", 1, build.RandomOptions{Options: c.opt, Events: 1200})
		r := analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true})
		if got := notes(r); !strings.Contains(got, c.want) {
			t.Errorf("%s lacks %q", got, c.want)
		}
	}
	const pin = `{"action": "segment_alloc", "addr": 4096, "size": 4096}, ` +
		`{"action": "alloc", "addr": 4096, "size": 4096}`
	for text, want := range map[string]string{
		`"host_traces": [` + pin + `]`: "missing: Pinned host memory: 2 " +
			"events, but no final state",
		`"host_traces": [` + pin + `, ` + pin + `], "host_segments": []`: "problem: Pinned host memory: not " +
			"verified: the file contradicts itself in 3 places",
		`"host_traces": [[` + pin + `], [` + pin + `]], "host_segments": []`: "missing: Pinned host memory: 1 " +
			"further lists of events were left out",
		`"host_segments": [{"address": 4096, "total_size": 4096, "state": "other"}]`: "missing: Pinned host memory: the " +
			"file " +
			"does not say whether 1 block is in use",
	} {
		s, err := load.Read(t.Context(), strings.NewReader(`{"segments": [], "device_traces": [], `+text+`}`), "x.json",
			load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := notes(analyzetest.Run(t, s, analyze.Options{})); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q", got, want)
		}
	}
}

// TestPinnedBeside holds that a finding about the host is no verdict on the GPU, also where both
// memories grow.
func TestPinnedBeside(t *testing.T) {
	at := func(d *build.Device, line string) { d.Stack = build.NewStack(line, "/app/train.py:9:<module>") }
	made := build.Run(build.Options{Torch: 213}, func(d *build.Device) {
		for range 20 {
			at(d, "/app/train.py:3:main")
			x := d.Alloc(8 << 20)
			at(d, "/app/train.py:4:main")
			d.Alloc(4 << 20)
			at(d, "/app/train.py:5:main")
			d.Pin(4 << 20)
			d.Free(x)
		}
	})
	r := analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true})
	v := &r.Verdict
	if v.Status != finding.Ghost || len(v.Findings) < 2 || v.Findings[0].ID != "growth" ||
		v.Headline != v.Findings[0].Title ||
		v.Findings[1].ID != "host-pinned-growth" || v.Findings[1].Status != "host" || v.Findings[1].Device != -1 {
		t.Errorf("%+v", v)
	}
}
