package fit_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/fixtures/build"
)

func layer(file, function string) *build.Stack {
	return build.NewStack("torch/nn/modules/"+file+":453:"+function, "torch/nn/modules/module.py:1751:_call_impl",
		"/app/model.py:20:forward", "torch/nn/modules/module.py:1751:_call_impl", "/app/train.py:9:<module>")
}

// TestTwoAlgorithms holds that what cuDNN works in for two sizes of a batch, by two algorithms, is no law that rises
// faster than the batch, and that another algorithm yet is within bounds.
func TestTwoAlgorithms(t *testing.T) {
	at := func(batch, works int64) *fit.Input {
		return record(t, batch, func(d *build.Device) {
			for range 3 {
				d.Stack = layer("conv.py", "_conv_forward")
				y := d.Alloc(batch << 20)
				d.Free(d.Alloc(works))
				d.Stack = build.NewStack("/app/train.py:10:<module>")
				z := d.Alloc(batch << 18)
				d.Stack = nil
				d.Free(d.Alloc(batch << 20))
				d.Free(y)
				d.Free(z)
			}
		})
	}
	const worksOf8 = 40<<20 + 4
	two := []*fit.Input{at(4, 10<<20+4), at(8, worksOf8)}
	r, err := fit.Ask(t.Context(), two, fit.Question{Names: []string{"batch"}, To: []fit.Point{{8}, {64}}})
	if err != nil {
		t.Fatal(err)
	}
	if p, most := &r.Predictions[1], int64(8*(worksOf8+8<<20)); p.ReservedPeak > most+most/20 || p.ReservedHigh < most {
		t.Errorf("at 64: %d, at most %d; in proportion it is %d", p.ReservedPeak, p.ReservedHigh, most)
	}
	if p, want := &r.Predictions[0], two[1].Timeline.PeakReserved.Bytes; p.ReservedPeak != want {
		t.Errorf("at 8: %d, recorded %d", p.ReservedPeak, want)
	}
}

// TestRecurrent holds that what cuDNN works in for a recurrent layer is mostly copies of weights, and that gates of
// torch's own layers, which are gone as well when it returns, go with the batch.
func TestRecurrent(t *testing.T) {
	const copies = 20 << 20
	for name, run := range map[string]func(d *build.Device, batch int64) (saved *build.Block){
		"cuDNN's": func(d *build.Device, batch int64) *build.Block {
			d.Alloc(batch << 14)
			works := d.Alloc(copies + batch<<16)
			saved := d.Alloc(batch << 16)
			d.Free(works)
			return saved
		},
		"torch's own": func(d *build.Device, batch int64) *build.Block {
			var last *build.Block
			for range 6 {
				gates := d.Alloc(batch << 20)
				next := d.Alloc(batch << 18)
				d.Free(gates)
				if last != nil {
					d.Free(last)
				}
				last = next
			}
			return last
		},
	} {
		got, want := predictAlone(t, "batch", 8, 64, func(d *build.Device, batch int64) {
			for range 4 {
				d.Stack = build.NewStack("/app/train.py:5:<module>")
				x := d.Alloc(batch << 16)
				d.Stack = layer("rnn.py", "forward")
				saved := run(d, batch)
				d.Stack = build.NewStack("/app/train.py:12:<module>")
				y := d.Alloc(batch << 16)
				d.Free(saved)
				d.Free(x)
				d.Free(y)
			}
		})
		if off := got.ReservedPeak - want; off > want/4 || off < -want/4 {
			t.Errorf("%s: %d, in truth %d", name, got.ReservedPeak, want)
		}
	}
}
