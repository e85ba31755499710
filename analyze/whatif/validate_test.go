package whatif_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// same reports whether everything was reproduced.
func same(v *whatif.Accuracy) bool {
	return v.SameRequests == v.Requests && v.SameSegments == v.Segments && v.SameBlocks == v.Blocks
}

// exact checks that a replay reproduces a trace of at least so many requests to the last block.
func exact(t *testing.T, name string, v *whatif.Accuracy, atLeast int) {
	t.Helper()
	if !same(v) {
		t.Errorf("%s: %d of %d requests, %d of %d segment events, %d of %d final blocks; first %+v",
			name, v.SameRequests, v.Requests, v.SameSegments, v.Segments, v.SameBlocks, v.Blocks, v.What)
	}
	if v.Requests < atLeast {
		t.Errorf("%s: %d requests, want at least %d", name, v.Requests, atLeast)
	}
}

func TestValidateFixtures(t *testing.T) {
	for name, allocs := range map[string]int{"healthy": 3548, "ghost": 500, "fragmentation": 2900} {
		_, v := program(t, "../../fixtures/"+name+".pickle")
		exact(t, name, v, allocs)
	}
}

// TestValidateCorpus replays every recording of a whole program, default and expandable, with
// one device, two, several streams, a graph's pool and failures. Those of a part of one must be
// reproduced as well.
func TestValidateCorpus(t *testing.T) {
	for _, pattern := range []string{"corpus/*/snapshot*.pickle", "corpus/whatif/*/*.pickle"} {
		for _, path := range glob(t, pattern) {
			s := open(t, path)
			for d := range s.NumDevices() {
				_, v := loaded(t, s, timeline.Build(s, d))
				exact(t, strings.TrimPrefix(path, shared), v, 0)
			}
		}
	}
}

// TestValidateReal replays what other people recorded on real GPUs, with torch 2.3 to 2.11.
func TestValidateReal(t *testing.T) {
	seen := 0
	for _, path := range append(glob(t, "real/*.pickle"), glob(t, "real/*.html")...) {
		s := open(t, path)
		for d := range s.NumDevices() {
			tl := timeline.Build(s, d)
			if tl.Trace.Len() <= 200 {
				continue
			}
			_, v := loaded(t, s, tl)
			if filepath.Base(path) == "random-inconsistent.pickle" {
				// Made by a generator that knows nothing of allocators.
				if v.Trusted || v.FirstEvent < 0 || !strings.Contains(v.Why, "no allocator wrote it") {
					t.Errorf("%s: %+v", path, v)
				}
				continue
			}
			exact(t, filepath.Base(path), v, 900)
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("only %d traces were long enough", seen)
	}
}

// TestValidateRandom holds that the simulator and the allocator of package build, which was
// written apart from it, agree about random programs of every kind.
func TestValidateRandom(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	total := 0
	for _, shape := range build.Shapes() {
		for seed := range seeds {
			o := shape.Options
			o.Events, o.Stacks = 1500, 1000 // else a request has empty_cache's stack by chance
			made := build.Random(seed, o)
			s := buildtest.Read(t, made)
			for d := range made.Truth {
				tl := timeline.Build(s, d)
				p, v := loaded(t, s, tl)
				exact(t, shape.Name, v, 0)
				total += v.Requests
				// And without its addresses the same peaks, where none was used again.
				out := run(t, p, p.Recorded.Text, whatif.Options{Capacity: o.Capacity})
				truth := made.Truth[d]
				if p.StartReserved > 0 || tl.Trace.Len() == 0 || out.DeviceFrees > 0 {
					continue
				}
				if out.ReservedPeak != truth.PeakReserved.Bytes || out.AllocatedPeak != truth.PeakAllocated.Bytes ||
					out.ReservedEnd != truth.Final.Reserved || out.Failures != truth.OOMs {
					t.Errorf("%s, seed %d: peaks %d and %d, end %d, %d failures; want %+v", shape.Name, seed,
						out.ReservedPeak, out.AllocatedPeak, out.ReservedEnd, out.Failures, truth)
				}
			}
		}
	}
	if total < 5000 {
		t.Errorf("only %d requests were compared", total)
	}
}

// TestDivergence changes recordings so that they disagree with the allocator, and looks for the
// likely reason. What follows a disagreement must agree again.
func TestDivergence(t *testing.T) {
	program := func(d *build.Device) {
		var held []*build.Block
		for i := range 60 {
			held = append(held, d.Alloc(int64(3+i%5)<<20))
			if i%10 == 9 {
				d.Free(d.Alloc(30 << 20))
			}
			if i%3 == 2 {
				d.Free(held[i/2])
			}
		}
		d.EmptyCache()
		d.Alloc(100 << 20)
	}
	for _, c := range []struct {
		name string
		opt  build.Options
		edit func(s *snapshot.Snapshot)
		why  string
		miss int // requests that are not reproduced, at most
	}{
		{"other settings", build.Options{}, func(s *snapshot.Snapshot) {
			s.Settings.MaxSplitSize = 21 << 20
		}, "Settings that changed", 20},
		{"unknown settings", build.Options{Expandable: true}, func(s *snapshot.Snapshot) {
			s.Settings = snapshot.Settings{}
		}, "does not record the allocator settings", 67},
		{"threads", build.Options{Expandable: true}, func(s *snapshot.Snapshot) {
			s.Settings.ExpandableSegments = false
			s.Settings.Conf = "release_lock_on_cudamalloc:True"
		}, "threads", 67},
		{"a free is missing", build.Options{}, func(s *snapshot.Snapshot) {
			n := 0
			buildtest.Edit(s.Traces, func(e *snapshot.Event) bool {
				if e.Action == snapshot.FreeRequested || e.Action == snapshot.FreeCompleted {
					n++
				}
				return n != 9 && n != 10
			})
		}, "edited or filtered", 15},
		{"a release is missing", build.Options{}, func(s *snapshot.Snapshot) {
			buildtest.Edit(s.Traces, func(e *snapshot.Event) bool { return e.Action != snapshot.SegmentFree })
		}, "edited or filtered", 15},
	} {
		s := buildtest.Read(t, build.Run(c.opt, program))
		c.edit(s)
		_, v := loaded(t, s, timeline.Build(s, 0))
		if same(v) || v.FirstEvent < 0 {
			t.Errorf("%s: nothing is noticed", c.name)
			continue
		}
		if !strings.Contains(v.Why, c.why) || v.What == "" {
			t.Errorf("%s: %+v, want %q", c.name, v, c.why)
		}
		if v.Requests-v.SameRequests > c.miss {
			t.Errorf("%s: %d of %d requests", c.name, v.SameRequests, v.Requests)
		}
	}
}

// TestTieOfUnknownRelease holds that the order of equal blocks is found where the file does not
// tell the release: the newest one's is tried first.
func TestTieOfUnknownRelease(t *testing.T) {
	found := 0
	for seed := range uint64(10) {
		s := buildtest.Read(t, build.Random(seed, build.RandomOptions{Events: 3000, Stacks: 1000,
			Options: build.Options{Capacity: 256 << 20}}))
		s.Writer = snapshot.Writer{}
		p, v := loaded(t, s, timeline.Build(s, 0))
		exact(t, "unknown writer", v, 100)
		if p.Recorded.Tie == allocator.TieAddress {
			found++
		}
	}
	if found == 0 {
		t.Error("no recording told the two orders apart")
	}
}
