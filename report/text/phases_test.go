package text

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const phases = "../../fixtures/lab/phases/truth/2.15/"

// The phases of programs in the lab, of snapshots and of counters alone.
func TestPhases(t *testing.T) {
	var all bytes.Buffer
	print := func(f func(io.Writer) error) {
		t.Helper()
		if err := f(&all); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"rlhf", "failing"} {
		s, err := load.Open(t.Context(), phases+name+".pickle.xz", load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := sidecar.Open(t.Context(), phases+name+".snapana.xz", sidecar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := analyzetest.Run(t, s, analyze.Options{Recorder: f, NoReplay: true})
		print(func(w io.Writer) error { return Phases(w, r, Options{}) })
		if name == "rlhf" {
			print(func(w io.Writer) error { return Phases(w, r, Options{Width: 80}) })
			_, table, _ := strings.Cut(markdownOf(t, r), "| Phase")
			all.WriteString("\n| Phase" + table)
		}
		var stats analyze.Stats
		if err := stats.Add(t.Context(), phases+name+".counters.snapana.xz", nil, analyze.StatsOptions{}); err != nil {
			t.Fatal(err)
		}
		print(func(w io.Writer) error { return Stats(w, &stats, Options{}) })
	}
	golden.Check(t, "phases.txt", all.Bytes())
}
