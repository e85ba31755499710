package timeline_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

const mib = 1 << 20

// TestRepair is the one case in which the layout before the trace is guessed wrong: a block
// owns a piece in front of a neighbor that was freed before the trace began.
func TestRepair(t *testing.T) {
	made := build.Run(build.Options{Late: true}, func(d *build.Device) {
		first, second := d.Alloc(5*mib), d.Alloc(5*mib)
		d.Free(first)
		owner := d.Alloc(4*mib + mib/2) // takes all 5 MiB: half a MiB is not worth a split
		d.Free(second)
		d.Record()
		other := d.Alloc(5 * mib) // begins behind the 5 MiB, not behind the 4.5
		d.Free(owner)
		d.Free(other)
	})
	if n := made.Truth[0].Initial.Active; n != 5*mib {
		t.Fatalf("the case is wrong: %d bytes active at first", n)
	}
	checkTruth(t, 0, timeline.Build(buildtest.Read(t, made), 0), &made.Truth[0])
}

// TestLives follows blocks through the states of a free that waits for another stream.
func TestLives(t *testing.T) {
	made := build.Run(build.Options{Late: true}, func(d *build.Device) {
		old := d.Alloc(mib)
		d.Record()
		a := d.Alloc(3 * mib) // events 0 and 1: a segment, the block
		d.FreeLater(a)        // 2
		b := d.Alloc(2 * mib) // 3: completes nothing
		d.Complete(1)         // 4
		d.Free(old)           // 5, 6
		_ = b
	})
	tl := timeline.Build(buildtest.Read(t, made), 0)
	checkTruth(t, 0, tl, &made.Truth[0])
	type span struct{ born, requested, freed int32 }
	var got []span
	for _, l := range tl.Lives {
		got = append(got, span{l.Born, l.FreeRequested, l.Freed})
	}
	want := []span{{-1, 5, 6}, {1, 2, 4}, {3, -1, -1}}
	if len(got) != len(want) {
		t.Fatalf("lives %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("life %d: %v, want %v", i, got[i], want[i])
		}
	}
	for event, want := range map[int]timeline.Totals{
		-1: {Reserved: 2 * mib, Active: mib, Allocated: mib, Requested: mib},
		1:  {Reserved: 22 * mib, Active: 4 * mib, Allocated: 4 * mib, Requested: 4 * mib},
		2:  {Reserved: 22 * mib, Active: 4 * mib, Allocated: mib, Requested: 4 * mib},
		3:  {Reserved: 22 * mib, Active: 6 * mib, Allocated: 3 * mib, Requested: 6 * mib},
		4:  {Reserved: 22 * mib, Active: 3 * mib, Allocated: 3 * mib, Requested: 3 * mib},
		99: {Reserved: 22 * mib, Active: 2 * mib, Allocated: 2 * mib, Requested: 2 * mib},
	} {
		if st := tl.StateAt(event); st.Totals != want {
			t.Errorf("after event %d: %+v, want %+v", event, st.Totals, want)
		}
	}
}

// TestStates compares the state after every event with the curve, which a second replay made.
func TestStates(t *testing.T) {
	for _, shape := range build.Shapes() {
		made := build.Random(7, shape.Options)
		s := buildtest.Read(t, made)
		for d := range made.Truth {
			tl := timeline.Build(s, d)
			for _, p := range tl.Curve {
				if p.First != p.Last {
					t.Fatalf("%s: a short trace is sampled", shape.Name)
				}
				st := tl.StateAt(p.Last)
				if st.Totals != p.At || len(st.Outside) > 0 {
					t.Fatalf("%s: after event %d the layout has %+v, the curve %+v", shape.Name, p.Last, st.Totals,
						p.At)
				}
				for _, seg := range st.Segments {
					checkTiling(t, tl, &seg)
				}
			}
		}
	}
}

func checkTiling(t *testing.T, tl *timeline.Timeline, seg *timeline.SegmentState) {
	t.Helper()
	at := seg.Addr
	for _, row := range seg.Live {
		l := &tl.Lives[row]
		if l.Addr < at {
			t.Fatalf("block %#x of %d bytes begins before %#x", l.Addr, l.Rounded, at)
		}
		at = l.Addr + uint64(l.Rounded)
	}
	if end := seg.Addr + uint64(seg.Size); at > end {
		t.Fatalf("blocks reach %#x, the segment ends at %#x", at, end)
	}
}

// TestEdited breaks good traces in many ways: nothing may fail, and what cannot be is counted.
func TestEdited(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	counted := 0
	tries := 60
	if os.Getenv("SNAPANA_FULL") != "" {
		tries = 300
	}
	for try := range tries {
		shapes := build.Shapes()
		s := buildtest.Read(t, build.Random(uint64(try%10), shapes[try%len(shapes)].Options))
		if len(s.Traces) == 0 || s.Traces[0].Len() < 20 {
			counted++ // no trace to break
			continue
		}
		buildtest.Break(rng, s, 40)
		events := s.Traces[0].Len()
		tl := timeline.Build(s, 0)
		if tl.Checks.Inconsistent() > 0 {
			counted++
		}
		if n := len(tl.Curve); n == 0 || tl.Curve[n-1].Last != events-1 {
			t.Errorf("try %d: the curve does not reach the end", try)
		}
		for _, e := range []int{-1, tl.PeakActive.Event, tl.PeakReserved.Event, events / 2, events} {
			st := tl.StateAt(e)
			for i := range st.Segments {
				checkTiling(t, tl, &st.Segments[i])
			}
		}
	}
	if counted < tries*95/100 {
		t.Errorf("only %d of %d broken traces were noticed", counted, tries)
	}
}

// TestCut rebuilds traces whose end is missing, as those of a file that was cut: the state in
// the file is then later than the trace, and may not disturb it.
func TestCut(t *testing.T) {
	for _, shape := range build.Shapes() {
		s := buildtest.Read(t, build.Random(11, shape.Options))
		if len(s.Traces) == 0 || s.Traces[0].Len() < 100 {
			continue
		}
		full := timeline.Build(s, 0)
		all := s.Traces[0]
		for n := 10; n < all.Len(); n += 37 {
			var events snapshot.Events
			for i := range n {
				events.Add(all.At(i))
			}
			s.Traces[0] = snapshot.NewTrace(&events, 0, n)
			s.Partial = errors.New("cut")
			cut := timeline.Build(s, 0)
			if cut.Checks.Inconsistent() != 0 || cut.Checks.Residual != 0 {
				t.Fatalf("%s, %d events: %+v", shape.Name, n, cut.Checks)
			}
			if full.Checks.PreTraceBlocks == 0 {
				if want := full.StateAt(n - 1).Totals; cut.Final != want {
					t.Fatalf("%s, %d events: final %+v, want %+v", shape.Name, n, cut.Final, want)
				}
			}
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	path := *snapshotFile
	if path == "" {
		path = "../../fixtures/healthy.pickle"
	}
	s := open(b, path)
	events := 0
	for _, tr := range s.Traces {
		events += tr.Len()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for d := range s.Traces {
			timeline.Build(s, d)
		}
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// TestWrap has blocks and segments that end beyond all addresses, or have less than no bytes: they count as no memory,
// and are told.
func TestWrap(t *testing.T) {
	const top = ^uint64(0)
	for _, c := range []struct {
		name           string
		addr           uint64
		segment, block int64
		want           timeline.Totals
	}{
		{"a block beyond its segment and all addresses", top - 40325, 27648, 62420, timeline.Totals{Reserved: 27648}},
		{"all wraps", top - 999, 4096, 2048, timeline.Totals{}},
		{"less than nothing", 1 << 20, -mib, -4096, timeline.Totals{}},
		{"the last address", top - 4095, 4095, 4095, timeline.Totals{Reserved: 4095, Active: 4095, Allocated: 4095,
			Requested: 4095}},
	} {
		s := &snapshot.Snapshot{
			Segments: []snapshot.Segment{{Address: c.addr, TotalSize: c.segment, AllocatedSize: c.block,
				ActiveSize: c.block, RequestedSize: c.block, Blocks: snapshot.Range{Len: 1}}},
			Blocks: []snapshot.Block{{Address: c.addr, Size: c.block, Requested: c.block,
				State: snapshot.StateAllocated}},
		}
		tl := timeline.Build(s, 0)
		st := tl.StateAt(0)
		if tl.Final != c.want || tl.Initial != c.want || st.Totals != c.want {
			t.Errorf("%s: %+v, %+v, %+v", c.name, tl.Final, tl.Initial, st.Totals)
		}
		if told := tl.Checks.Inconsistent() > 0; told != (c.name != "the last address") {
			t.Errorf("%s: %+v", c.name, tl.Checks)
		}
	}
}

// A device of an ordinal that no machine has still has a curve.
func TestFarDevice(t *testing.T) {
	s := &snapshot.Snapshot{Segments: []snapshot.Segment{{Address: 4096, TotalSize: 4096, Device: 1 << 16}}}
	events := new(snapshot.Events)
	events.Add(snapshot.Event{Action: snapshot.Alloc, Addr: 512, Size: 512})
	s.Traces = []snapshot.Trace{snapshot.NewTrace(events, 0, 1)}
	if tl := timeline.Build(s, 0); len(tl.Curve) != 1 {
		t.Errorf("%d points", len(tl.Curve))
	}
}
