package fit_test

import (
	"math"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/fixtures/build"
)

// onData is a program whose steps have so many elements each: what it keeps, and twice that besides.
func onData(elements ...int64) func(d *build.Device) {
	const hidden = 48 << 10
	return func(d *build.Device) {
		d.Record()
		d.Stack = build.NewStack("/app/model.py:3:__init__", "/app/train.py:5:<module>")
		d.Alloc(4 << 20)
		for _, n := range elements {
			d.Stack = build.NewStack("/app/train.py:8:<module>")
			input := d.Alloc(n * 512)
			d.Stack = build.NewStack("/app/model.py:12:forward", "/app/train.py:9:<module>")
			kept := []*build.Block{d.Alloc(n * hidden), d.Alloc(2 * n * hidden)}
			d.Stack = nil
			d.Free(d.Alloc(3 * n * hidden))
			d.Free(kept[1])
			d.Free(kept[0])
			d.Free(input)
		}
	}
}

// TestData holds that steps which work on the same data are predicted as they come, so that what a growing one leaves behind is
// seen, that what is drawn anew is not taken for the square of a batch, and that what is of a width goes with its square though steps
// differ.
func TestData(t *testing.T) {
	lengths := func(most int64) (out []int64) {
		const multiple = 16
		for _, share := range []int64{52, 61, 70, 83, 91, 100} {
			out = append(out, (most*share/100+multiple-1)/multiple*multiple)
		}
		return out
	}
	times := func(batch int64, longest ...int64) (out []int64) {
		for _, n := range longest {
			out = append(out, batch*n)
		}
		return out
	}
	squares := func(width int64) []int64 {
		return times(width*width/256, 1, 3, 2, 3)
	}
	pairs := func(batch int64) []int64 { return times(2*batch*(2*batch-2)/1024, 1, 1, 1) }
	tests := []struct {
		name string
		at   []int64   // the last is predicted from the others
		runs [][]int64 // elements of each step
		off  float64   // by what share the reserved peak may be off
	}{
		{"length", []int64{256, 384, 1024}, [][]int64{lengths(256), lengths(384), lengths(1024)}, 0.03},
		// By chance the larger batch has items that are longer by as much, so that sizes differ by about the square.
		{"batch", []int64{4, 6, 32}, [][]int64{times(4, 90, 72, 80, 76), times(6, 120, 108, 130, 114),
			times(32, 103, 98, 106, 101)}, 0.3},
		// Pairs of all items but those of one with itself: by no single term, and the same in each step.
		{"batch", []int64{256, 512, 4096}, [][]int64{pairs(256), pairs(512), pairs(4096)}, 0.01},
		{"width", []int64{64, 96, 256}, [][]int64{squares(64), squares(96), squares(256)}, 0.01},
	}
	for _, tt := range tests {
		var ins []*fit.Input
		for i, at := range tt.at {
			ins = append(ins, record(t, at, onData(tt.runs[i]...)))
		}
		last := len(ins) - 1
		got, err := fit.Ask(t.Context(), ins[:last], fit.Question{Names: []string{tt.name}, To: []fit.Point{ins[last].At}})
		if err != nil {
			t.Fatal(err)
		}
		p, want := got.Predictions[0], ins[last].Timeline.PeakReserved.Bytes
		if off := float64(p.ReservedPeak)/float64(want) - 1; math.Abs(off) > tt.off || want > p.ReservedHigh || want < p.ReservedLow {
			t.Errorf("%s: predicted %d, between %d and %d, in truth %d: %+.1f%%", tt.name, p.ReservedPeak, p.ReservedLow,
				p.ReservedHigh, want, 100*off)
		}
	}
}

// TestCacheBySteps holds that what grows from step to step by as much in each recording, as a cache of keys and values does while a
// program generates, is no matter of the data.
func TestCacheBySteps(t *testing.T) {
	record := func(prompt int64) *fit.Input {
		return record(t, prompt, func(d *build.Device) {
			d.Stack = build.NewStack("/app/model.py:3:__init__")
			d.Alloc(4 << 20)
			for step := range int64(6) {
				d.Stack = build.NewStack("torch/nn/modules/linear.py:9:forward", "torch/nn/modules/module.py:1751:_call_impl",
					"/app/serve.py:9:generate")
				made := d.Alloc(1 << 16)
				d.Stack = build.NewStack("/app/model.py:20:forward", "torch/nn/modules/module.py:1751:_call_impl",
					"/app/serve.py:9:generate")
				keys := d.Alloc((prompt + step) << 13)
				values := d.Alloc((prompt + step) << 13)
				d.Free(made)
				d.Free(keys)
				d.Free(values)
			}
		})
	}
	got, err := fit.Ask(t.Context(), []*fit.Input{record(256), record(384)},
		fit.Question{Names: []string{"seq"}, To: []fit.Point{{640}, {2560}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Predictions {
		want := record(p.At).Timeline
		if p.ReservedPeak != want.PeakReserved.Bytes || p.AllocatedPeak != want.PeakAllocated.Bytes {
			t.Errorf("%d: reserved %d, allocated %d, want %d and %d", p.At, p.ReservedPeak, p.AllocatedPeak, want.PeakReserved.Bytes,
				want.PeakAllocated.Bytes)
		}
	}
}
