package fit_test

import (
	"math"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
)

// TestLoops predicts runs of a network that is unrolled over time: its loop makes fewer and more passes than in the
// recordings of 8 and 16 steps.
func TestLoops(t *testing.T) {
	const batch, off = 8, 0.005
	var inputs []*fit.Input
	q := fit.Question{Names: []string{"seq"}}
	truth := map[int64]int64{}
	for _, f := range families(t) {
		for _, r := range f.Runs {
			switch seq := r.At["seq"]; {
			case f.Family != "lstm" || r.At["batch"] != batch:
			case seq == 8 || seq == 16:
				inputs = append(inputs, input(t, &r, "seq"))
			default:
				truth[seq] = r.Stats.Reserved
				q.To = append(q.To, fit.Point{seq})
			}
		}
	}
	got, err := fit.Ask(t.Context(), inputs, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Predictions) < 4 {
		t.Fatalf("%d runs to predict, want 4 or more", len(got.Predictions))
	}
	for _, p := range got.Predictions {
		if e := float64(p.ReservedPeak)/float64(truth[p.At]) - 1; math.Abs(e) > off {
			t.Errorf("seq %d: reserved %d, torch %d: off by %.1f%%", p.At, p.ReservedPeak, truth[p.At], 100*e)
		}
	}
}
