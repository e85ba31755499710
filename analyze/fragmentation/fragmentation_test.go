package fragmentation_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

const mib = 1 << 20

func TestMeasure(t *testing.T) {
	made := build.Run(build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(40 * mib))
		first := d.Alloc(5 * mib) // from the 40 MiB, as is the next
		d.Alloc(5 * mib)
		d.Free(first)
		d.Alloc(1000)             // in a small segment of 2 MiB
		d.Free(d.Alloc(60 * mib)) // a segment with nothing in it
	})
	s := buildtest.Read(t, made)
	tl := timeline.Build(s, 0)
	got := fragmentation.Measure(tl, tl.StateAt(tl.Trace.Len()))
	pins := got.Pins
	groups := got.Groups
	got.Pins, got.Groups, got.Holes = nil, nil, [64]fragmentation.Holes{}
	want := fragmentation.Report{
		Reserved: 102 * mib, Active: 5*mib + 1024, Releasable: 60 * mib, Split: 35*mib + 2*mib - 1024,
		Rounding: 24, LargestFree: 60 * mib, Segments: 3, PartlyUsed: 2,
		LargestUsable: 60 * mib, Classes: fragmentation.Classes{Releasable: 60 * mib, Hard: 37*mib - 1024},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if want := []fragmentation.Group{{Segments: 3, Reserved: got.Reserved, Active: got.Active,
		Releasable: got.Releasable, Split: got.Split, Largest: got.LargestFree}}; !reflect.DeepEqual(groups, want) {
		t.Errorf("groups %+v", groups)
	}
	if len(pins) != 2 || pins[0].Free != 35*mib || pins[0].Live != 5*mib || len(pins[0].Lives) != 1 ||
		pins[1].Free != 2*mib-1024 {
		t.Errorf("pins %+v", pins)
	}
}

// made reads back what a program leaves.
func made(t *testing.T, opt build.Options, program func(d *build.Device)) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	return s, timeline.Build(s, 0)
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func(d *build.Device)
		want    fragmentation.Classes
	}{
		{"between live blocks", func(d *build.Device) {
			d.Alloc(6 * mib)
			hole := d.Alloc(5 * mib)
			d.Alloc(9 * mib)
			d.Free(hole)
		}, fragmentation.Classes{Hard: 5 * mib}},
		{"of another stream", func(d *build.Device) {
			d.Alloc(30 * mib)
			d.Stream = 0x70
			d.Alloc(5 * mib)
		}, fragmentation.Classes{Stream: 15 * mib}},
		{"another stream's empty segment can be returned", func(d *build.Device) {
			d.Alloc(30 * mib)
			d.Stream = 0x70
			d.Free(d.Alloc(15 * mib))
		}, fragmentation.Classes{Releasable: 16 * mib}},
		{"of a private pool", func(d *build.Device) {
			d.Alloc(30 * mib)
			d.Pool = build.Pool{A: 0, B: 1}
			d.Free(d.Alloc(15 * mib))
		}, fragmentation.Classes{Stream: 16 * mib}},
		{"waiting for another stream", func(d *build.Device) {
			d.Alloc(30 * mib)
			d.FreeLater(d.Alloc(20 * mib))
		}, fragmentation.Classes{Pending: 20 * mib}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, tl := made(t, build.Options{}, c.program)
			r := fragmentation.Measure(tl, tl.StateAt(tl.Trace.Len()))
			if r.Classes != c.want {
				t.Errorf("got %+v, want %+v", r.Classes, c.want)
			}
		})
	}
}

// TestSoft builds two segments that lie side by side, with free memory on both sides of where
// they meet.
func TestSoft(t *testing.T) {
	base := uint64(0x7f0000000000)
	lives := []timeline.Life{
		{Addr: base, Rounded: 5 * mib, Requested: 5 * mib, FreeRequested: -1, Freed: -1},
		{Addr: base + 30*mib, Rounded: 10 * mib, Requested: 10 * mib, FreeRequested: -1, Freed: -1},
		{Addr: base + 45*mib, Rounded: 15 * mib, Requested: 15 * mib, FreeRequested: -1, Freed: -1},
	}
	tl := &timeline.Timeline{Lives: lives}
	seg := func(at uint64, live int32) timeline.SegmentState {
		return timeline.SegmentState{Range: timeline.Range{Addr: at, Size: 20 * mib}, Live: []int32{live},
			Active: lives[live].Rounded}
	}
	st := &timeline.State{Event: -1, Segments: []timeline.SegmentState{seg(base, 0), seg(base+20*mib, 1),
		seg(base+40*mib, 2)}}
	r := fragmentation.Measure(tl, st)
	if want := (fragmentation.Classes{Soft: 25 * mib, Hard: 5 * mib}); r.Classes != want {
		t.Errorf("got %+v, want %+v", r.Classes, want)
	}
	if r.Holes[23].Count != 2 || r.Holes[22].Count != 1 || r.Holes[23].Bytes != 25*mib {
		t.Errorf("holes %+v", r.Holes[20:26])
	}
	if got := r.Scatter(); got != 0.5 {
		t.Errorf("scatter %v", got)
	}
}

func TestRemainder(t *testing.T) {
	_, tl := made(t, build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(12 * mib))
		d.Alloc(11*mib + 100) // takes the 12 MiB: less than 1 MiB would be left
	})
	r := fragmentation.Measure(tl, tl.StateAt(tl.Trace.Len()))
	if r.Rounding != mib-100 || r.Remainder != mib-512 {
		t.Errorf("rounding %d, remainder %d", r.Rounding, r.Remainder)
	}
}

// pinned is a device of 20 MiB segments: of the blocks of 5 MiB in them, those live for which keep
// says so, by number, with the line that it gives as their stack.
func pinned(n int, keep func(i int) string) func(d *build.Device) {
	return func(d *build.Device) {
		var blocks []*build.Block
		for i := range n {
			line := keep(i)
			if line == "" {
				line = "gone"
			}
			d.Stack = build.NewStack("/app/a.py:1:" + line)
			blocks = append(blocks, d.Alloc(5*mib))
		}
		for i, b := range blocks {
			if keep(i) == "" {
				d.Free(b)
			}
		}
	}
}

func TestFree(t *testing.T) {
	_, tl := made(t, build.Options{}, pinned(40, func(i int) string { // one each in 9 segments, two in the last
		if i%4 == 0 || i == 37 {
			return "pins"
		}
		return ""
	}))
	st := tl.StateAt(tl.Trace.Len())
	for _, c := range []struct{ need, returned, blocks int64 }{
		{1, 20 * mib, 1}, {20 * mib, 20 * mib, 1}, {20*mib + 1, 40 * mib, 2},
		{190 * mib, 200 * mib, 11}, {201 * mib, 0, 0},
		{0, 0, 0},
	} {
		p := fragmentation.Free(tl, st, c.need)
		if p.Returned != c.returned || p.Blocks != c.blocks || p.Fewest != (c.blocks > 0) {
			t.Errorf("to return %d: %+v, want %d of %d blocks", c.need, p, c.returned, c.blocks)
		}
		if c.blocks > 0 && (len(p.Sites) != 1 || p.Sites[0].Blocks != c.blocks || p.Bytes != 5*mib*c.blocks) {
			t.Errorf("to return %d: sites %+v", c.need, p.Sites)
		}
	}
	for _, c := range []struct{ size, hole, blocks int64 }{{15 * mib, 20 * mib, 1}, {15*mib + 1, 20 * mib, 1},
		{20*mib + 1, 0, 0}} {
		p := fragmentation.Clear(tl, st, 0, c.size)
		if p.Hole != c.hole || p.Blocks != c.blocks {
			t.Errorf("for a hole of %d: %+v, want one of %d without %d blocks", c.size, p, c.hole, c.blocks)
		}
	}
}

// TestFewest compares the plan with every choice of segments.
func TestFewest(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		st := &timeline.State{Event: -1}
		tl := &timeline.Timeline{}
		var total int64
		for range 9 {
			size := (1 + rng.Int64N(9)) * 2 * mib
			total += size
			seg := timeline.SegmentState{Range: timeline.Range{Size: size}}
			for range 1 + rng.IntN(6) {
				seg.Live = append(seg.Live, int32(len(tl.Lives)))
				tl.Lives = append(tl.Lives, timeline.Life{Rounded: 512})
			}
			st.Segments = append(st.Segments, seg)
		}
		need := 1 + rng.Int64N(total)
		fewest := 1 << 30
		for choice := range 1 << len(st.Segments) {
			var returned int64
			blocks := 0
			for i, seg := range st.Segments {
				if choice>>i&1 == 1 {
					returned += seg.Size
					blocks += len(seg.Live)
				}
			}
			if returned >= need {
				fewest = min(fewest, blocks)
			}
		}
		p := fragmentation.Free(tl, st, need)
		if p.Blocks != int64(fewest) || p.Returned < need || !p.Fewest {
			t.Errorf("seed %d: %+v returns %d, %d blocks are enough", seed, p, need, fewest)
		}
	}
}

// TestMany plans for more segments than every choice of which can be tried: then it is at most
// twice as many blocks as needed.
func TestMany(t *testing.T) {
	st := &timeline.State{Event: -1}
	tl := &timeline.Timeline{Lives: []timeline.Life{{Rounded: 512}}}
	for i := range 4000 {
		st.Segments = append(st.Segments, timeline.SegmentState{Range: timeline.Range{Size: 20 * mib},
			Live: make([]int32, 1+i%2)})
	}
	p := fragmentation.Free(tl, st, 3000*20*mib)
	if p.Fewest || p.Returned < 3000*20*mib || p.Blocks < 2000+2*1000 || p.Blocks > 2*(2000+2*1000) {
		t.Errorf("%+v", p)
	}
}

func TestRank(t *testing.T) {
	_, tl := made(t, build.Options{}, pinned(40, func(i int) string {
		switch {
		case i < 20 && i%4 == 0: // 5 segments by itself
			return "much"
		case i >= 20 && i < 28 && i%4 == 0: // 2 by itself
			return "some"
		case i >= 28 && i%4 == 0: // 3 that are shared
			return "some"
		case i >= 28 && i%4 == 1:
			return "more"
		}
		return ""
	}))
	st := tl.StateAt(tl.Trace.Len())
	r := fragmentation.Measure(tl, st)
	steps := fragmentation.Rank(tl, st, &r, 5)
	want := []fragmentation.Step{
		{Blocks: 5, Bytes: 25 * mib, Returned: 100 * mib, Segments: 5, Hostage: 75 * mib},
		{Blocks: 5, Bytes: 25 * mib, Returned: 140 * mib, Segments: 7, Hostage: 60 * mib},
		{Blocks: 3, Bytes: 15 * mib, Returned: 200 * mib, Segments: 10, Hostage: 30 * mib},
	}
	for i := range steps {
		steps[i].Stack = 0
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("got  %+v\nwant %+v", steps, want)
	}
}

func TestHostage(t *testing.T) {
	_, tl := made(t, build.Options{}, pinned(8, func(i int) string {
		if i == 1 || i == 3 || i == 6 {
			return "pins"
		}
		return ""
	}))
	st := tl.StateAt(tl.Trace.Len())
	var got []int64
	for i := range st.Segments {
		for k := range st.Segments[i].Live {
			got = append(got, fragmentation.Hostage(tl, &st.Segments[i], k)/mib)
		}
	}
	if want := []int64{10, 5, 15}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %d MiB, want %d", got, want)
	}
}

func TestSettled(t *testing.T) {
	for _, c := range []struct {
		name         string
		small, large int64
		want         bool
	}{{"small among large", mib + 512, 8 * mib, true}, {"all of a size", 4 * mib, 4 * mib, false}} {
		_, tl := made(t, build.Options{}, func(d *build.Device) {
			for range 40 {
				a, b := d.Alloc(c.large), d.Alloc(c.large/2+mib)
				d.Alloc(c.small)
				d.Free(a)
				d.Free(b)
			}
		})
		st := tl.StateAt(tl.Trace.Len())
		r := fragmentation.Measure(tl, st)
		if x, _ := fragmentation.FindSettled(tl, st, &r); (x != nil) != c.want {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}
