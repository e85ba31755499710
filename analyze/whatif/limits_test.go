package whatif_test

import (
	"math/rand/v2"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// The bounds of a ladder hold for the replay of any limit, and its rungs are such replays.
func TestLadder(t *testing.T) {
	failed, fits, between := 0, 0, 0
	for seed := range uint64(16) {
		opt := build.RandomOptions{Options: build.Options{Late: seed%2 == 1, Expandable: seed%5 == 4}, Events: 400, Live: 60}
		if seed%4 > 1 {
			opt.Capacity = 120 * mib << (seed % 3)
		}
		s := buildtest.Read(t, build.Random(seed, opt))
		tl := timeline.Build(s, 0)
		p, v, err := whatif.Load(t.Context(), s, tl)
		if err != nil {
			t.Fatal(err)
		}
		a, err := whatif.Ask(t.Context(), s, p, v, whatif.Question{NoSearch: true})
		if err != nil {
			t.Fatal(err)
		}
		steps := []int{1 << 20, 6 * tl.Trace.Len(), 0}[seed%3]
		if err := a.Climb(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
		if seed%3 == 0 && v.Trusted && (a.Rows[0].Ladder == nil || len(a.Rows[0].Ladder.Rungs) < 4) {
			t.Errorf("seed %d: the recorded settings have the ladder %+v", seed, a.Rows[0].Ladder)
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		for row := range a.Rows {
			l := a.Rows[row].Ladder
			if l == nil {
				continue
			}
			limits := []int64{}
			for i, r := range l.Rungs {
				if i > 0 && r.Limit <= l.Rungs[i-1].Limit {
					t.Errorf("seed %d, %s: rungs do not rise", seed, a.Rows[row].Text)
				}
				got, err := a.At(t.Context(), row, r.Limit)
				if err != nil || got != r {
					t.Errorf("seed %d, %s: rung %+v, the replay %+v %v", seed, a.Rows[row].Text, r, got, err)
				}
				limits = append(limits, r.Limit)
			}
			most := max(tl.PeakReserved.Bytes, 64*mib)
			for range 12 {
				limits = append(limits, rng.Int64N(most*5/4))
			}
			for _, limit := range limits {
				got, err := a.At(t.Context(), row, limit)
				if err != nil {
					t.Fatal(err)
				}
				event := got.Failed
				switch {
				case got.Start:
					event = -1
				case event < 0:
					event = tl.Trace.Len()
					fits++
				default:
					failed++
				}
				safe, sure := bounds(l, limit, tl.Trace.Len())
				if event < safe || event > sure {
					t.Errorf("seed %d, %s with %d bytes: fails at %d, bounds %d to %d", seed, a.Rows[row].Text, limit, event,
						safe, sure)
				}
				if safe > 0 && safe == sure {
					between++
				}
			}
		}
	}
	if failed < 50 || fits < 50 || between < 20 {
		t.Errorf("%d replays failed, %d did not, of %d both bounds were the same", failed, fits, between)
	}
}

// bounds are between which events the first request fails; the end of the trace is none, -1 before it.
func bounds(l *whatif.Ladder, limit int64, end int) (safe, sure int) {
	safe, sure = -1, end
	if l.Safe != nil && (l.SafeTo == 0 || limit <= l.SafeTo) {
		safe = end
		for _, b := range l.Safe {
			if limit < b.Bytes {
				safe = b.Event
				break
			}
		}
		if safe == 0 {
			safe = -1
		}
	}
	for _, b := range l.Sure {
		if limit < b.Bytes {
			return safe, b.Event
		}
	}
	return safe, sure
}
