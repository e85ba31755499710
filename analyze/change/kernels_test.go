package change_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// inModel is the stack of code of a module of the program's, or of torch's code that it calls.
func inModel(line string, inner ...string) *build.Stack {
	return build.NewStack(slices.Concat(inner, []string{"/app/model.py:" + line + ":forward"}, called,
		[]string{"/app/train.py:3:main"})...)
}

func ofTorch(frame string) []string { return slices.Concat([]string{torch + frame}, called) }

// undo is a backward pass that lets go of what was kept, the last first.
func undo(d *build.Device, kept []*build.Block) {
	d.Stack = engine
	for _, b := range slices.Backward(kept) {
		g := d.Alloc(1 << 20)
		d.Free(b)
		d.Free(g)
	}
	d.Stack = after
	d.Free(d.Alloc(1 << 20))
}

// TestFactors holds that the first factor of a product waits for the second, which backward lets go of first.
func TestFactors(t *testing.T) {
	const size = 8 << 20
	linear := ofTorch("nn/modules/linear.py:134:forward")
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = inModel("9")
			x := d.Alloc(1 << 20)
			d.Stack = inModel("20", linear...)
			gate := d.Alloc(size)
			d.Stack = inModel("20", slices.Concat([]string{torch + "nn/functional.py:2397:silu"},
				ofTorch("nn/modules/activation.py:40:forward"))...)
			silu := d.Alloc(size)
			d.Stack = inModel("20", linear...)
			up := d.Alloc(size)
			d.Stack = inModel("20")
			product := d.Alloc(size)
			d.Stack = inModel("21", linear...)
			out := d.Alloc(1 << 20)
			d.Stack = engine
			for _, free := range [][]*build.Block{{out}, {product}, {up, silu}, {gate}, {x}} {
				g := d.Alloc(1 << 20)
				for _, b := range free {
					d.Free(b)
				}
				d.Free(g)
			}
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	if a := ask(t, in, "no-grad=train.py:3"); a.After.AllocatedPeak < 3*size {
		t.Errorf("without gradients %d, want %d at least: both factors and their product", a.After.AllocatedPeak, 3*size)
	}
}

// TestListHoldsItsInput holds that what a list of torch's modules is given stays until the list is over.
func TestListHoldsItsInput(t *testing.T) {
	const size, wide = 8 << 20, 32 << 20
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			alloc := func(n int64, stack *build.Stack) {
				d.Stack = stack
				kept = append(kept, d.Alloc(n))
			}
			list := func(frames ...string) *build.Stack {
				return inModel("20", slices.Concat(frames, called, ofTorch("nn/modules/container.py:253:forward"))...)
			}
			alloc(size, inModel("20", slices.Concat([]string{torch + "nn/functional.py:2935:layer_norm"},
				ofTorch("nn/modules/normalization.py:229:forward"))...))
			alloc(wide, list(torch+"nn/modules/linear.py:134:forward"))
			alloc(wide, list(torch+"nn/modules/activation.py:816:forward"))
			alloc(size, list(torch+"nn/modules/linear.py:134:forward"))
			alloc(size, inModel("20")) // the line's own sum
			undo(d, kept)
		}
	})
	if a := ask(t, in, "no-grad=train.py:3"); a.After.AllocatedPeak < size+2*wide {
		t.Errorf("without gradients %d, want %d at least", a.After.AllocatedPeak, size+2*wide)
	}
}

// TestLeakThatIsSaved holds that what leaks stays until backward is over where that may need it, and goes with its
// function where a loss reads it, which keeps what it makes of it.
func TestLeakThatIsSaved(t *testing.T) {
	const leak, loss = 64 << 20, 16 << 20
	for _, c := range []struct {
		reader      string
		least, most int64
	}{
		{"/app/model.py:6:product", 2 * leak, 3 * leak},
		{torch + "nn/functional.py:3504:cross_entropy", leak, 2*leak - 1},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 12 {
				d.Stack = build.NewStack("/app/train.py:5:loss_of", "/app/train.py:50:main")
				d.Alloc(leak)
				d.Stack = build.NewStack(c.reader, "/app/train.py:6:loss_of", "/app/train.py:50:main")
				y := d.Alloc(loss)
				d.Stack = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
					"/app/train.py:51:main")
				g := d.Alloc(loss)
				d.Free(y)
				back := d.Alloc(leak)
				d.Free(g)
				d.Free(d.Alloc(1 << 20))
				d.Free(back)
				d.Stack = build.NewStack("/app/train.py:60:main")
				d.Free(d.Alloc(1 << 20))
			}
		})
		if a := ask(t, in, "free-leak=train.py:5"); a.After.AllocatedPeak < c.least || a.After.AllocatedPeak > c.most {
			t.Errorf("read by %s: %d, want %d to %d", c.reader, a.After.AllocatedPeak, c.least, c.most)
		}
	}
}

// TestChosenScratch holds that what cuDNN works in goes with the part of a batch, and an image that torch unfolds
// does not.
func TestChosenScratch(t *testing.T) {
	const result = 16 << 20 // 8 images of 32 channels, 128 by 128
	for _, c := range []struct {
		works       int64
		least, most int64
	}{
		{64<<20 + 5, result / 4, 40 << 20},
		{32 * 9 * 128 * 128 * 4, 32 * 9 * 128 * 128 * 4, 64 << 20},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				d.Stack = inModel("10")
				kept = append(kept, d.Alloc(result))
				d.Stack = inModel("20", slices.Concat([]string{torch + "nn/modules/conv.py:548:_conv_forward"},
					ofTorch("nn/modules/conv.py:553:forward"))...)
				kept = append(kept, d.Alloc(result))
				d.Free(d.Alloc(c.works))
				undo(d, kept)
			}
		})
		if a := ask(t, in, "accumulate=4"); a.After.AllocatedPeak < c.least || a.After.AllocatedPeak > c.most {
			t.Errorf("works in %d: %d, want %d to %d", c.works, a.After.AllocatedPeak, c.least, c.most)
		}
	}
}

// TestAutocastTypes holds which activations have 16 bits under torch.autocast: not what dropout makes of an embedding
// though the program made a mask in between, nor what is a patch embedding with a token of its own; but what a gate
// makes of a product.
func TestAutocastTypes(t *testing.T) {
	const size = 32 << 20
	code := func(line, function string) *build.Stack {
		return inModel(line, slices.Concat([]string{torch + "nn/functional.py:2000:" + function},
			ofTorch("nn/modules/activation.py:40:forward"))...)
	}
	linear := func(line string) *build.Stack { return inModel(line, ofTorch("nn/modules/linear.py:134:forward")...) }
	type row struct {
		bytes int64
		stack *build.Stack
		half  bool
	}
	for name, rows := range map[string][]row{
		"embedding": {{size, code("10", "embedding"), false}, {size / 256, inModel("11"), false},
			{size, code("12", "dropout"), false}, {size, linear("13"), true}},
		"patches": {{size, inModel("10", ofTorch("nn/modules/conv.py:553:forward")...), true},
			{size + size/32, inModel("11"), false}, {size + size/32, inModel("12"), false}},
		"gate": {{size, code("10", "layer_norm"), false}, {2 * size, linear("11"), true}, {size, code("12", "glu"), true}},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for _, r := range rows {
					d.Stack = r.stack
					kept = append(kept, d.Alloc(r.bytes))
				}
				undo(d, kept)
			}
		})
		a := ask(t, in, "dtype=bf16:activations")
		var want int64
		for _, r := range rows {
			if r.half {
				want += r.bytes
			}
		}
		if got := a.Changes[0].Bytes / 3; got < want-size/64 || got > want+size/64 {
			t.Errorf("%s: %d bytes narrowed a step, want %d", name, got, want)
		}
	}
}
