package fragmentation_test

import (
	"reflect"
	"testing"

	"snapana/analyze/fragmentation"
	"snapana/analyze/timeline"
	"snapana/fixtures/build"
	"snapana/fixtures/build/buildtest"
	"snapana/snapshot"
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
	got := fragmentation.Measure(s, tl, tl.StateAt(tl.Trace.Len()))
	pins := got.Pins
	got.Pins, got.Holes = nil, [64]fragmentation.Holes{}
	want := fragmentation.Report{
		Reserved: 102 * mib, Active: 5*mib + 1024, Releasable: 60 * mib, Split: 35*mib + 2*mib - 1024,
		Rounding: 24, LargestFree: 60 * mib, Segments: 3, PartlyUsed: 2,
		LargestUsable: 60 * mib, Classes: fragmentation.Classes{Releasable: 60 * mib, Hard: 37*mib - 1024},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(pins) != 2 || pins[0].Free != 35*mib || pins[0].Live != 5*mib || len(pins[0].Lives) != 1 || pins[1].Free != 2*mib-1024 {
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
			s, tl := made(t, build.Options{}, c.program)
			r := fragmentation.Measure(s, tl, tl.StateAt(tl.Trace.Len()))
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
		return timeline.SegmentState{Range: timeline.Range{Addr: at, Size: 20 * mib}, Live: []int32{live}, Active: lives[live].Rounded}
	}
	st := &timeline.State{Event: -1, Segments: []timeline.SegmentState{seg(base, 0), seg(base+20*mib, 1), seg(base+40*mib, 2)}}
	r := fragmentation.Measure(&snapshot.Snapshot{}, tl, st)
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
	s, tl := made(t, build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(12 * mib))
		d.Alloc(11*mib + 100) // takes the 12 MiB: less than 1 MiB would be left
	})
	r := fragmentation.Measure(s, tl, tl.StateAt(tl.Trace.Len()))
	if r.Rounding != mib-100 || r.Remainder != mib-512 {
		t.Errorf("rounding %d, remainder %d", r.Rounding, r.Remainder)
	}
}

func TestFree(t *testing.T) {
	s, tl := made(t, build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/a.py:1:pins")
		var blocks []*build.Block
		for range 40 {
			blocks = append(blocks, d.Alloc(5*mib))
		}
		for i, b := range blocks {
			if i%4 != 0 && i < 36 || i%4 > 1 {
				d.Free(b)
			}
		}
	})
	st := tl.StateAt(tl.Trace.Len())
	r := fragmentation.Measure(s, tl, st)
	for _, c := range []struct{ need, returned, blocks int64 }{
		{1, 20 * mib, 1}, {20 * mib, 20 * mib, 1}, {20*mib + 1, 40 * mib, 2}, {190 * mib, 200 * mib, 11}, {201 * mib, 0, 0}, {0, 0, 0},
	} {
		p := fragmentation.Free(tl, st, &r, c.need)
		if p.Returned != c.returned || p.Blocks != c.blocks {
			t.Errorf("to return %d: %+v, want %d of %d blocks", c.need, p, c.returned, c.blocks)
		}
		if c.blocks > 0 && (len(p.Sites) != 1 || p.Sites[0].Blocks != c.blocks || p.Bytes != 5*mib*c.blocks) {
			t.Errorf("to return %d: sites %+v", c.need, p.Sites)
		}
	}
}
