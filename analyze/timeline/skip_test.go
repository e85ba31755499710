package timeline_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// TestSkipped leaves random kinds of events out of random traces: a figure that is said to be exact is, and one that
// is said to be a bound bounds what happened.
func TestSkipped(t *testing.T) {
	seeds := uint64(150)
	if os.Getenv("SNAPANA_FULL") != "" {
		seeds = 1500
	}
	exact, wrong := 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 16))
		opt := build.RandomOptions{Events: 200 + rng.IntN(500), Live: 5 + rng.IntN(60), Streams: 1 + rng.IntN(3)}
		opt.Late, opt.Expandable, opt.Graphs = rng.IntN(2) == 0, rng.IntN(3) == 0, rng.IntN(3)
		if rng.IntN(3) == 0 {
			opt.Ring = 1 + rng.IntN(300)
		}
		if rng.IntN(3) == 0 {
			opt.Capacity = 192 << 20
		}
		made := build.Random(seed, opt)
		s := buildtest.Read(t, made)
		s.Writer.Skips = true
		var skip timeline.Kinds
		for range rng.IntN(4) {
			skip |= 1 << (1 + rng.IntN(int(snapshot.Annotate)))
		}
		dropped := drop(s, skip)
		tl, want := timeline.Build(s, 0), &made.Truth[0]
		if tl.Trace.Len() == 0 {
			continue
		}
		rec := &tl.Recording
		if n := rec.Skipped &^ (skip & dropped); n != 0 {
			t.Errorf("seed %d without %v: said to have skipped %v", seed, skip, n)
		}
		if tl.Final != timeline.Totals(want.Final) {
			t.Errorf("seed %d without %v: final %+v, want %+v", seed, skip, tl.Final, want.Final)
		}
		p, start := &rec.Peak, &rec.Start
		for _, f := range []struct {
			name  string
			bound timeline.Bound
			got   int64
			want  int64
		}{
			{"peak reserved", p.Reserved, tl.PeakReserved.Bytes, want.PeakReserved.Bytes},
			{"peak active", p.Active, tl.PeakActive.Bytes, want.PeakActive.Bytes},
			{"peak allocated", p.Allocated, tl.PeakAllocated.Bytes, want.PeakAllocated.Bytes},
			{"peak requested", p.Requested, tl.PeakRequested.Bytes, want.PeakRequested.Bytes},
			{"initial reserved", start.Reserved, tl.Initial.Reserved, want.Initial.Reserved},
			{"initial active", start.Active, tl.Initial.Active, want.Initial.Active},
			{"initial allocated", start.Allocated, tl.Initial.Allocated, want.Initial.Allocated},
			{"initial requested", start.Requested, tl.Initial.Requested, want.Initial.Requested},
		} {
			if f.bound == timeline.Exact {
				exact++
			}
			if !holds(f.bound, f.got, f.want) {
				wrong++
				t.Errorf("seed %d without %v: %s is said to be %v %d, but was %d; %+v", seed, skip, f.name, f.bound, f.got,
					f.want, *rec)
			}
		}
	}
	if wrong == 0 && exact < int(seeds) {
		t.Errorf("only %d figures are exact", exact)
	}
}

func holds(b timeline.Bound, got, want int64) bool {
	switch b {
	case timeline.Exact:
		return got == want
	case timeline.AtLeast:
		return got <= want
	case timeline.AtMost:
		return got >= want
	}
	return true
}

// drop takes kinds of events out of the first device's trace, and tells which it had.
func drop(s *snapshot.Snapshot, kinds timeline.Kinds) (had timeline.Kinds) {
	var kept snapshot.Events
	old := s.Traces[0]
	for i := range old.Len() {
		e := old.At(i)
		had |= 1 << e.Action
		if kinds&(1<<e.Action) == 0 {
			kept.Add(e)
		}
	}
	s.Traces[0] = snapshot.NewTrace(&kept, 0, kept.Len())
	return had
}
