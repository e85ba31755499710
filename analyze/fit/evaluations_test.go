package fit_test

import (
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// TestEvaluations holds that a validation pass keeps its batch where that is not the one of training, that bounds are for both
// where it is, and that a teacher, which is called in every step, has the batch of training.
func TestEvaluations(t *testing.T) {
	const at, to, item = 8, 64, 4 << 20
	call := func(line string, d *build.Device) {
		d.Stack = build.NewStack("torch/nn/modules/linear.py:134:forward", "torch/nn/modules/module.py:1751:_call_impl",
			"/app/train.py:"+line, "/app/train.py:90:<module>")
	}
	unsaved := func(d *build.Device, line string, batch int64) {
		call(line, d)
		var kept []*build.Block
		for range 10 {
			kept = append(kept, d.Alloc(batch*item))
		}
		kept = append(kept, d.Alloc(item/8)) // else the last one above is gone before anything else is made, as scratch memory
		for _, b := range kept {
			d.Free(b)
		}
	}
	step := func(d *build.Device, batch int64) {
		call("20:train", d)
		saved := d.Alloc(batch * item / 2)
		d.Stack = nil
		d.Free(d.Alloc(item / 8))
		d.Free(saved)
		d.Free(d.Alloc(item / 4))
	}
	for _, c := range []struct {
		name string
		run  func(d *build.Device, batch int64)
		sure bool
	}{
		{"own batch", func(d *build.Device, batch int64) {
			for range 4 {
				step(d, batch)
			}
			unsaved(d, "60:evaluate", 50)
		}, true},
		{"before training", func(d *build.Device, batch int64) {
			unsaved(d, "60:evaluate", 50)
			for range 4 {
				step(d, batch)
			}
		}, true},
		{"as many as in training", func(d *build.Device, batch int64) {
			for range 4 {
				step(d, batch)
			}
			call("60:evaluate", d)
			for range 10 { // graphs that stay
				d.Alloc(at * item / 2)
			}
		}, false},
		{"teacher", func(d *build.Device, batch int64) {
			for range 4 {
				unsaved(d, "18:train", batch)
				step(d, batch)
			}
		}, true},
	} {
		got, want := predictAlone(t, "batch", at, to, c.run)
		if off := got.ReservedPeak - want; c.sure && max(off, -off) > want/20 || got.ReservedLow > want || got.ReservedHigh < want {
			t.Errorf("%s: %d to %d, %d, want %d", c.name, got.ReservedLow, got.ReservedHigh, got.ReservedPeak, want)
		}
	}
}
