package change_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// blockAt keeps what a block of two convolutions does, called from a line of the model, whose code begins at a line of its own.
func blockAt(d *build.Device, line, own int, n int64) (kept []*build.Block) {
	for _, inner := range []string{"1", "2"} {
		d.Stack = inModel(fmt.Sprint(line), slices.Concat(ofTorch("nn/modules/conv.py:"+inner+":forward"),
			[]string{fmt.Sprintf("/app/block.py:%d:forward", own)}, called)...)
		kept = append(kept, d.Alloc(n))
	}
	return kept
}

// TestTwoLists holds which of two lists of one module names mean: lists one after another, and lists that take turns.
func TestTwoLists(t *testing.T) {
	both := func(turns bool) func(d *build.Device) {
		return func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for i := range 6 {
					if list := map[bool]int{false: i / 3, true: i % 2}[turns]; list == 0 {
						kept = append(kept, blockAt(d, 7, 10, 3<<20)...)
					} else {
						kept = append(kept, blockAt(d, 8, 40, 2<<20)...)
					}
				}
				backward(d, kept, 1<<19)
			}
		}
	}
	first, second := "model.py:7 forward", "model.py:8 forward"
	for _, c := range []struct {
		turns       bool
		asked, line string
		want        int
	}{
		{false, "blocks1.*", first, 3}, {false, "blocks_2.*", second, 3}, {false, "blocks_token_only.*", second, 3},
		{false, "encoder.*,decoder.*", first + " and " + second, 6}, {false, "decoder.0,encoder.*", second + " and " + first, 4},
		{true, "layers.*", first, 3}, {true, "blocks2.*", second, 3}, {true, "decoder.*", second, 3},
		{true, "blocks.*.att", first, 3}, {true, "blocks.*.mlp", second, 3},
	} {
		got := ask(t, built(t, build.Options{}, both(c.turns)), "checkpoint="+c.asked).Changes[0]
		if got.Line != c.line || got.Modules != c.want {
			t.Errorf("turns %v, %s: %d modules of %s, want %d of %s", c.turns, c.asked, got.Modules, got.Line, c.want, c.line)
		}
	}
	mib := func(asked string) int64 {
		return ask(t, built(t, build.Options{}, both(true)), "checkpoint="+asked).Changes[0].Bytes >> 20
	}
	if turns, blocks := mib("layers.*"), mib("blocks1.*"); turns <= 2*blocks {
		t.Errorf("turns keep %d MiB and blocks of one list %d", turns, blocks)
	}
}

// TestStem holds that a list of torch's own layers before those of blocks is a stage, and that numbers are of those with blocks.
func TestStem(t *testing.T) {
	for _, stem := range []int64{128 << 10, 2 << 20} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for stage, blocks := range []int{2, 2, 3, 2} {
					for range blocks {
						for _, line := range []string{"1", "2"} {
							own, n := slices.Concat(called, []string{"/app/block.py:" + line + ":forward"}), int64(2<<20)
							if stage == 0 {
								own, n = nil, stem
							}
							d.Stack = inModel("7", slices.Concat([]string{torch + "nn/modules/conv.py:9:forward"}, own, called,
								ofTorch("nn/modules/container.py:250:forward"))...)
							kept = append(kept, d.Alloc(n))
						}
					}
					d.Stack = inModel("8")
					kept = append(kept, d.Alloc(1<<20))
				}
				backward(d, kept, 1<<20)
			}
		})
		for asked, want := range map[string]int{"blocks.*": 7, "stages.*": 4, "stages.1.blocks.*": 2, "stage2.*": 3, "layer1": 1} {
			if got := ask(t, in, "checkpoint="+asked).Changes[0].Modules; got != want {
				t.Errorf("stem of %d KiB, %s: %d modules, want %d", stem>>10, asked, got, want)
			}
		}
	}
}

// TestTied holds that blocks are not taken for one network that is called again because a large embedding's gradient is added to.
func TestTied(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 4 {
			var kept []*build.Block
			for range 4 {
				for range 2 {
					for _, line := range []string{"1", "2"} {
						d.Stack = inModel("7", slices.Concat(ofTorch("nn/modules/conv.py:9:forward"),
							[]string{"/app/sub.py:" + line + ":forward"}, called, []string{"/app/block.py:5:forward"}, called)...)
						kept = append(kept, d.Alloc(4<<20))
					}
				}
				d.Stack = inModel("7", slices.Concat([]string{"/app/block.py:8:forward"}, called)...)
				kept = append(kept, d.Alloc(7<<20), d.Alloc(7<<20))
			}
			d.Stack = engine
			grads := []*build.Block{d.Alloc(100 << 20)}
			for i, b := range slices.Backward(kept) {
				x := d.Alloc(1 << 20)
				if i%2 == 0 {
					grads = append(grads, d.Alloc(3<<20))
				}
				d.Free(x)
				d.Free(b)
			}
			d.Free(d.Alloc(100 << 20)) // added to the first
			d.Stack = build.NewStack(torch+"optim/adamw.py:6:_single_tensor_adamw", torch+"optim/optimizer.py:4:wrapper",
				"/app/train.py:10:main")
			for _, g := range grads {
				d.Free(d.Alloc(3 << 20))
				d.Free(g)
			}
		}
	})
	for asked, want := range map[string]int{"layers.*": 4, "layers.0": 1, "layers.0-1": 2} {
		if got := ask(t, in, "checkpoint="+asked).Changes[0]; got.Modules != want || got.OfThose != 4 {
			t.Errorf("%s: %d modules of %d, want %d of 4", asked, got.Modules, got.OfThose, want)
		}
	}
}

// TestUnfolded holds that gradients of the size that a convolution unfolds into, while smaller ones come and go, are divided with the
// batch, and that what each group of a convolution unfolds into is not.
func TestUnfolded(t *testing.T) {
	for _, groups := range []bool{false, true} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for range 4 {
					d.Stack = inModel("7", ofTorch("nn/modules/conv.py:9:forward")...)
					kept = append(kept, d.Alloc(16<<20))
					d.Free(d.Alloc(144 << 20)) // 3x3
				}
				d.Stack = engine
				for _, b := range slices.Backward(kept) {
					var parts []*build.Block
					for range 2 {
						column := d.Alloc(144 << 20)
						part := d.Alloc(36 << 20)
						if !groups {
							d.Free(part)
						} else {
							parts = append(parts, part)
						}
						d.Free(column)
					}
					for _, p := range parts {
						d.Free(p)
					}
					d.Free(b)
				}
			}
		})
		a := ask(t, in, "accumulate=2")
		if shrinks := a.After.AllocatedPeak*4 < a.Before.AllocatedPeak*3; shrinks == groups {
			t.Errorf("groups %v: %d MiB of %d", groups, a.After.AllocatedPeak>>20, a.Before.AllocatedPeak>>20)
		}
	}
}

// TestInner holds that a name with two stars is of the blocks in the lists of a list, of a library whose lists have stages, too.
func TestInner(t *testing.T) {
	list := slices.Concat([]string{torch + "nn/modules/container.py:250:forward"}, called)
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for _, size := range []int64{8 << 20, 8 << 20, 4 << 20, 4 << 20, 4 << 20, 2 << 20} {
				for _, code := range []string{"torch/nn/modules/conv.py:9", "torch/nn/functional.py:8"} {
					own := []string{"/lib/" + code + ":forward"}
					own = slices.Concat(own, called, []string{"/app/block.py:" + code[len(code)-1:] + ":forward"}, called)
					d.Stack = build.NewStack(slices.Concat(own, list, list,
						[]string{"/lib/site-packages/timm/models/net.py:7:forward"}, called, []string{"/app/train.py:9:main"})...)
					kept = append(kept, d.Alloc(size))
				}
			}
			backward(d, kept, 1<<20)
		}
	})
	for asked, want := range map[string]int{"stages.*": 3, "stages.*.*": 6, "blocks.*.*": 6, "blocks.*": 6} {
		if got := ask(t, in, "checkpoint="+asked).Changes[0].Modules; got != want {
			t.Errorf("%s: %d modules, want %d", asked, got, want)
		}
	}
}

// TestListsOfOneCall holds that the blocks of stages are found which one module calls that a line calls once, and does nothing else, beside
// another list without such.
func TestListsOfOneCall(t *testing.T) {
	lib := "/lib/site-packages/transformers/models/net/modeling_net.py:"
	of := func(frames ...string) (stack []string) {
		for _, f := range frames {
			stack = slices.Concat(stack, []string{lib + f + ":forward"}, called)
		}
		return append(stack, "/app/train.py:9:main")
	}
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for _, size := range []int64{8 << 20, 4 << 20, 2 << 20} {
				d.Stack = build.NewStack(slices.Concat(ofTorch("nn/modules/conv.py:9:forward"), of("40", "61", "81"))...)
				kept = append(kept, d.Alloc(size))
				for range 2 {
					for _, line := range []string{"21", "22"} {
						d.Stack = build.NewStack(slices.Concat(ofTorch("nn/modules/conv.py:9:forward"), of(line, "41", "61", "81"))...)
						kept = append(kept, d.Alloc(size))
					}
				}
			}
			for range 3 {
				for _, line := range []string{"201", "202"} {
					d.Stack = build.NewStack(slices.Concat(ofTorch("nn/modules/conv.py:9:forward"), of(line, "221", "82"))...)
					kept = append(kept, d.Alloc(3<<20))
				}
			}
			backward(d, kept, 1<<20)
		}
	})
	for _, asked := range []string{"net.stages.*.blocks.*", "blocks.*"} {
		if got := ask(t, in, "checkpoint="+asked).Changes[0]; got.Modules != 6 || got.Line != "modeling_net.py:41 forward" {
			t.Errorf("%s: %d modules of %s, want 6", asked, got.Modules, got.Line)
		}
	}
}
