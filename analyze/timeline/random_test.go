package timeline_test

import (
	"os"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// TestRandom holds that random programs are rebuilt exactly: the state before the trace, the
// peaks and where they are, and the end.
func TestRandom(t *testing.T) {
	seeds := uint64(8)
	if os.Getenv("SNAPANA_FULL") != "" {
		seeds = 40
	}
	for _, shape := range build.Shapes() {
		t.Run(shape.Name, func(t *testing.T) {
			for seed := range seeds {
				made := build.Random(seed, shape.Options)
				s := buildtest.Read(t, made)
				for d, want := range made.Truth {
					if shape.Options.Torch == 104 { // records no requested sizes
						want.Initial.Requested, want.Final.Requested = want.Initial.Active, want.Final.Active
						want.PeakRequested = want.PeakActive
					}
					tl := timeline.Build(s, d)
					checkTruth(t, seed, tl, &want)
					if seed < 4 && want.Events > 0 {
						checkEach(t, seed, tl, made)
					}
				}
			}
		})
	}
}

func checkTruth(t *testing.T, seed uint64, got *timeline.Timeline, want *build.Truth) {
	t.Helper()
	if n := got.Checks.Inconsistent(); n != 0 || got.Checks.Residual != 0 {
		t.Errorf("seed %d device %d: books do not balance: %+v", seed, got.Device, got.Checks)
	}
	if got.Final != timeline.Totals(want.Final) {
		t.Errorf("seed %d device %d: final %+v, want %+v", seed, got.Device, got.Final, want.Final)
	}
	if got.Initial != timeline.Totals(want.Initial) {
		t.Errorf("seed %d device %d: initial %+v, want %+v", seed, got.Device, got.Initial, want.Initial)
	}
	for _, p := range []struct {
		name string
		got  timeline.Peak
		want build.Peak
	}{
		{"reserved", got.PeakReserved, want.PeakReserved}, {"active", got.PeakActive, want.PeakActive},
		{"allocated", got.PeakAllocated, want.PeakAllocated}, {"requested", got.PeakRequested, want.PeakRequested},
	} {
		if p.got != timeline.Peak(p.want) {
			t.Errorf("seed %d device %d: peak %s %+v, want %+v", seed, got.Device, p.name, p.got, p.want)
		}
	}
	if int(got.Checks.PreTraceBlocks) < want.Before {
		t.Errorf("seed %d device %d: %d pre-trace blocks, want at least %d", seed, got.Device,
			got.Checks.PreTraceBlocks,
			want.Before)
	}
}

// TestRandomRing cuts the beginning of long histories off at random places.
func TestRandomRing(t *testing.T) {
	seeds := uint64(12)
	if os.Getenv("SNAPANA_FULL") != "" {
		seeds = 60
	}
	for seed := range seeds {
		opt := build.RandomOptions{Events: 3000, Live: 100, Streams: 3}
		opt.Ring = 1 + int(seed*977%3000)
		opt.Expandable = seed%3 == 0
		if seed%4 == 0 {
			opt.Capacity = 256 << 20
		}
		made := build.Random(seed, opt)
		tl := timeline.Build(buildtest.Read(t, made), 0)
		checkTruth(t, seed, tl, &made.Truth[0])
		if seed%6 == 0 {
			checkEach(t, seed, tl, made)
		}
	}
}

// checkEach compares the state after every event with the program's own.
func checkEach(t *testing.T, seed uint64, tl *timeline.Timeline, made *build.Snapshot) {
	t.Helper()
	n := 0
	active, allocated := tl.ActiveLevels(), tl.AllocatedLevels()
	made.Each(tl.Device, func(event int, after build.Totals) {
		n++
		if a, b := active.At(event), allocated.At(event); a != after.Active || b != after.Allocated {
			t.Errorf("seed %d device %d after event %d: levels %d and %d, want %d and %d", seed, tl.Device, event, a, b,
				after.Active, after.Allocated)
		}
		if got := tl.StateAt(event).Totals; got != timeline.Totals(after) {
			t.Errorf("seed %d device %d after event %d: %+v, want %+v", seed, tl.Device, event, got, after)
		}
	})
	if n != tl.Trace.Len() {
		t.Errorf("seed %d device %d: %d events, want %d", seed, tl.Device, tl.Trace.Len(), n)
	}
}
