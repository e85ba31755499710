package fit_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// scan is a program that goes over a sequence in chunks, and over them in reverse for gradients, for which the autograd
// engine has no stack. Chunks keep a state and a mask.
func scan(d *build.Device, chunks int) {
	const state, mask, scratch = 3 << 20, 5 << 18, 7 << 20
	under := func(frames ...string) {
		d.Stack = build.NewStack(append(frames, "/app/train.py:9:<module>")...)
	}
	d.Record()
	under("/app/model.py:3:__init__")
	d.Alloc(4 << 20)
	for range 3 {
		under("/app/data.py:5:batch")
		batch := d.Alloc(2 << 20)
		var kept []*build.Block
		for range chunks {
			under("/app/model.py:20:scan", "/app/model.py:12:forward")
			tmp := d.Alloc(scratch)
			kept = append(kept, d.Alloc(state), d.Alloc(mask))
			d.Free(tmp)
		}
		d.Stack = nil
		grad := d.Alloc(6 << 20)
		for len(kept) > 0 {
			last := len(kept) - 2
			tmp := d.Alloc(scratch)
			next := d.Alloc(state)
			d.Free(tmp)
			again := d.Alloc(mask)
			more := d.Alloc(mask)
			d.Free(kept[last])
			d.Free(kept[last+1])
			d.Free(again)
			d.Free(more)
			d.Free(next)
			kept = kept[:last]
		}
		d.Free(grad)
		d.Free(batch)
	}
}

// TestPasses holds that a loop makes as many passes as the value says, below the lowest recorded one and above the highest:
// forward, and in the autograd engine, where each pass has requests of the same size.
func TestPasses(t *testing.T) {
	record := func(chunks int64) *fit.Input {
		s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) { scan(d, int(chunks)) }))
		return &fit.Input{Snapshot: s, Timeline: timeline.Main(s), At: fit.Point{chunks}}
	}
	q := fit.Question{Names: []string{"chunks"}, To: []fit.Point{{2}, {4}, {7}, {9}, {10}, {16}}}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(6), record(9)}, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Predictions {
		want := record(p.At).Timeline
		if p.AllocatedPeak != want.PeakAllocated.Bytes || p.ReservedPeak != want.PeakReserved.Bytes {
			t.Errorf("%d chunks: allocated %d, reserved %d, want %d and %d", p.At, p.AllocatedPeak, p.ReservedPeak,
				want.PeakAllocated.Bytes, want.PeakReserved.Bytes)
		}
	}
}
