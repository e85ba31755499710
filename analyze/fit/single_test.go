package fit_test

import (
	"fmt"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// record is the recording of a program at a value.
func record(t *testing.T, value int64, run func(d *build.Device)) *fit.Input {
	t.Helper()
	s := buildtest.Read(t, build.Run(build.Options{}, run))
	return &fit.Input{Snapshot: s, Timeline: timeline.Main(s), At: fit.Point{value}}
}

// predictAlone predicts a run at a value from one recording of a program.
func predictAlone(t *testing.T, name string, at, to int64, run func(d *build.Device, value int64)) (got fit.Prediction, want int64) {
	t.Helper()
	record := func(value int64) *fit.Input {
		return record(t, value, func(d *build.Device) { run(d, value) })
	}
	r, err := fit.Ask(t.Context(), []*fit.Input{record(at)}, fit.Question{Names: []string{name}, To: []fit.Point{{to}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Predictions[0], record(to).Timeline.PeakReserved.Bytes
}

// TestSmallValue holds that sizes which can be divided by the square of a small value do not grow with it for that.
func TestSmallValue(t *testing.T) {
	got, want := predictAlone(t, "shots", 4, 64, func(d *build.Device, shots int64) {
		for range 3 {
			d.Stack = build.NewStack("torch/nn/functional.py:2140:softmax", "/app/model.py:20:forward",
				"torch/nn/modules/module.py:1751:_call_impl", "/app/train.py:9:<module>")
			scores, kept := d.Alloc(shots<<20), d.Alloc(shots<<20)
			d.Stack = nil
			d.Free(d.Alloc(shots << 20))
			d.Free(scores)
			d.Free(kept)
		}
	})
	if got.ReservedPeak > want*11/10 || got.ReservedHigh < want || got.ReservedLow > want {
		t.Errorf("%+v, want %d", got, want)
	}
}

// TestCastsByCode holds that the copies of parameters that autocast makes are known where stacks have the frames of C++, which
// tell a copy from the product that it is made for.
func TestCastsByCode(t *testing.T) {
	const layers, param = 8, 3 << 20
	got, want := predictAlone(t, "batch", 4, 32, func(d *build.Device, batch int64) {
		under := func(layer int, native string) {
			d.Stack = build.NewStack(native, "torch/nn/modules/linear.py:134:forward", "torch/nn/modules/module.py:1751:_call_impl",
				fmt.Sprintf("/app/model.py:%d:forward", 20+layer), "torch/nn/modules/module.py:1751:_call_impl", "/app/train.py:9:<module>")
		}
		d.Stack = build.NewStack("torch/nn/modules/module.py:1340:convert", "/app/train.py:5:<module>")
		for range layers {
			d.Alloc(param)
		}
		for range 3 {
			var kept []*build.Block
			for layer := range layers {
				under(layer, "??:0:at::native::_to_copy")
				kept = append(kept, d.Alloc(param/2))
				under(layer, "??:0:at::native::addmm")
				kept = append(kept, d.Alloc(batch<<18))
			}
			d.Stack = build.NewStack("??:0:torch::autograd::Engine::evaluate_function")
			for i, b := range kept {
				if i%2 == 1 {
					d.Free(d.Alloc(b.Size()))
				}
				d.Free(b)
			}
		}
	})
	if got.ReservedPeak != want {
		t.Errorf("%d, want %d", got.ReservedPeak, want)
	}
}

// TestOneByOne holds that the bounds allow for the items of a batch to be worked on one by one, each in as much memory.
func TestOneByOne(t *testing.T) {
	got, want := predictAlone(t, "batch", 4, 16, func(d *build.Device, tasks int64) {
		for range 3 {
			d.Stack = build.NewStack("/app/train.py:7:<module>")
			d.Free(d.Alloc(7 << 9))
			for range tasks {
				d.Stack = build.NewStack("/app/model.py:20:forward", "torch/nn/modules/module.py:1751:_call_impl",
					"/app/train.py:9:<module>")
				var kept []*build.Block
				for i := range int64(40) {
					kept = append(kept, d.Alloc((2+i)<<18))
				}
				d.Stack = nil
				for _, b := range kept {
					d.Free(d.Alloc(b.Size()))
					d.Free(b)
				}
			}
		}
	})
	if got.ReservedLow > want || got.ReservedHigh < want {
		t.Errorf("%+v, want %d", got, want)
	}
}

// TestVolumes holds that what goes with the cube of a value is known from two recordings.
func TestVolumes(t *testing.T) {
	run := func(d *build.Device, side int64) {
		d.Stack = build.NewStack("/app/model.py:3:__init__")
		d.Alloc(5 << 20)
		for range 3 {
			d.Stack = build.NewStack("/app/data.py:5:patches")
			scan := d.Alloc(4 * side * side * side)
			var kept []*build.Block
			for layer := range int64(4) {
				d.Stack = build.NewStack(fmt.Sprintf("/app/model.py:%d:forward", 20+layer), "torch/nn/modules/module.py:1751:_call_impl",
					"/app/train.py:9:<module>")
				kept = append(kept, d.Alloc((128<<layer)*side*side*side))
			}
			for _, b := range kept {
				d.Free(b)
			}
			d.Free(scan)
		}
	}
	record := func(side int64) *fit.Input {
		return record(t, side, func(d *build.Device) { run(d, side) })
	}
	r, err := fit.Ask(t.Context(), []*fit.Input{record(16), record(32)}, fit.Question{Names: []string{"patch"}, To: []fit.Point{{96}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := record(96).Timeline.PeakReserved.Bytes; r.Predictions[0].ReservedPeak != want {
		t.Errorf("two recordings: %d, want %d", r.Predictions[0].ReservedPeak, want)
	}
}
