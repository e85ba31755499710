package change_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// twoPasses trains a network with two backward passes in each step: the first lets go of what one call kept, or of the others' too, and
// makes something that the second lets go of.
func twoPasses(first, second int) func(d *build.Device) {
	return func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for _, line := range []string{"11", "12", "13", "14"} {
				d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:" + line + ":forward"}, called,
					[]string{"/app/train.py:3:main"})...)
				kept = append(kept, d.Alloc(16<<20))
			}
			d.Stack = engine
			made := d.Alloc(4096)
			for _, b := range kept[:first] {
				d.Free(d.Alloc(1 << 20))
				d.Free(b)
			}
			d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:21:forward"}, called, []string{"/app/train.py:5:main"})...)
			other := d.Alloc(int64(second) << 20)
			d.Stack = engine
			for _, b := range append(kept[first:], made, other) {
				d.Free(d.Alloc(1 << 20))
				d.Free(b)
			}
			d.Stack = after
			d.Free(d.Alloc(512))
		}
	}
}

// TestPassesBehind holds that calls are found of which a later pass is the one that goes back through them, as through a generator that
// its critic is trained with first, and that one small block which two passes have does not make them one.
func TestPassesBehind(t *testing.T) {
	for name, first := range map[string]int{"of which the first pass needs nothing": 0, "that the first pass goes back through": 4} {
		in := built(t, build.Options{}, twoPasses(first, 16))
		a := ask(t, in, "checkpoint=train.py:3")
		if a.Changes[0].Blocks == 0 || a.After.AllocatedPeak >= a.Before.AllocatedPeak {
			t.Errorf("%s: %d blocks, %d allocated, before %d", name, a.Changes[0].Blocks, a.After.AllocatedPeak, a.Before.AllocatedPeak)
		}
	}
}

// TestRoot holds that what a backward pass is called on is not deleted before that, and what else the line has is, of which the bounds
// say that it may be read later.
func TestRoot(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = within("/app/block.py:3:forward")
			kept := []*build.Block{d.Alloc(8 << 20), d.Alloc(8 << 20)}
			d.Stack = build.NewStack(torch+"nn/functional.py:7:linear", "/app/train.py:5:main")
			logits := d.Alloc(64 << 20)
			d.Stack = build.NewStack(torch+"nn/functional.py:9:mse_loss", "/app/train.py:5:main")
			loss := d.Alloc(32 << 20)
			backward(d, kept, 4<<20)
			d.Stack = after
			d.Free(d.Alloc(512))
			d.Free(logits)
			d.Free(loss)
		}
	})
	a := ask(t, in, "del=train.py:5")
	if a.Changes[0].Bytes != 3*64<<20 || a.Band.High < a.Before.ReservedPeak {
		t.Errorf("%d bytes deleted, up to %d reserved; before %d", a.Changes[0].Bytes, a.Band.High, a.Before.ReservedPeak)
	}
}
