package change_test

import (
	"fmt"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// linears is a program of layers whose gradients stay until the next step, and which breaks off right behind a gradient of the last.
func linears(last int) func(d *build.Device) {
	const steps, layers = 3, 4
	const activation, weight = 8 << 20, 1 << 20
	return func(d *build.Device) {
		d.Stack = build.NewStack("/app/model.py:3:__init__", "/app/train.py:1:main")
		for range layers {
			d.Alloc(weight)
		}
		var gradients []*build.Block
		for step := range steps {
			var kept []*build.Block
			for layer := range layers {
				d.Stack = inModel(fmt.Sprint(20+layer), ofTorch("nn/modules/linear.py:134:forward")...)
				kept = append(kept, d.Alloc(activation))
			}
			d.Stack = after
			for _, g := range gradients {
				d.Free(g)
			}
			d.Stack, gradients = engine, nil
			given := d.Alloc(activation)
			for layer := range layers {
				gradients = append(gradients, d.Alloc(weight))
				if step == steps-1 && layer == last {
					return
				}
				next := d.Alloc(activation)
				d.Free(kept[layers-1-layer])
				d.Free(given)
				given = next
			}
			d.Free(given)
		}
	}
}

// TestOffloadBreaksOff holds that activations are offloaded of a recording that ends within a backward pass, whatever comes last.
func TestOffloadBreaksOff(t *testing.T) {
	for last := range 4 {
		in := built(t, build.Options{}, linears(last))
		a := ask(t, in, "offload=activations")
		if a.After.AllocatedPeak >= a.Before.AllocatedPeak {
			t.Errorf("%d: %d bytes, %d before: nothing was moved", last, a.After.AllocatedPeak, a.Before.AllocatedPeak)
		}
	}
}
