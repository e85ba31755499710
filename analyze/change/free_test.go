package change_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/fixtures/build"
)

// TestLoopOfBlocks holds that what a block returns is there until the next one is over, and no longer, where nothing is kept: of six
// blocks called in a loop, whose functions make two results each.
func TestLoopOfBlocks(t *testing.T) {
	const result, blocks = 8 << 20, 6
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept, gradients []*build.Block
			for range blocks {
				for _, line := range []string{"11", "12"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/block.py:" + line + ":forward"}, called,
						[]string{"/app/model.py:5:forward"}, called, []string{"/app/train.py:3:main"})...)
					kept = append(kept, d.Alloc(result))
				}
			}
			d.Stack = engine
			for _, b := range slices.Backward(kept) {
				gradients = append(gradients, d.Alloc(1<<20))
				d.Free(b)
			}
			d.Stack = after
			for _, b := range gradients {
				d.Free(b)
			}
		}
	})
	a := ask(t, in, "no-grad=train.py:3")
	if want := int64(3 * result); a.After.AllocatedPeak > want+blocks<<20 || a.After.AllocatedPeak < want {
		t.Errorf("without gradients %d, before %d, want about %d", a.After.AllocatedPeak, a.Before.AllocatedPeak, want)
	}
}

// TestLoopBehindStatement holds that a variable that a loop of blocks assigns anew, as `x = block(x)`, lets go of what it had before the
// loop when the first block is over.
func TestLoopBehindStatement(t *testing.T) {
	const first, step, blocks = 32 << 20, 4 << 20, 6
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:4:forward"}, called, []string{"/app/train.py:3:main"})...)
			kept := []*build.Block{d.Alloc(first)}
			for i := range int64(blocks) {
				for _, line := range []string{"11", "12"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/block.py:" + line + ":forward"}, called,
						[]string{"/app/model.py:5:forward"}, called, []string{"/app/train.py:3:main"})...)
					kept = append(kept, d.Alloc((i+1)*step))
				}
			}
			backward(d, kept, 1<<20)
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	a := ask(t, in, "no-grad=train.py:3")
	if most := int64(3*blocks*step + first/2); a.After.AllocatedPeak > most {
		t.Errorf("without gradients %d, before %d, want %d at most", a.After.AllocatedPeak, a.Before.AllocatedPeak, most)
	}
}

// TestWorkspaceOfModule holds that a workspace which code that is no library's asks for behind a result of its own does not read that, so
// that a checkpoint that makes it again lets go of it when the next layer has read it, and not before.
func TestWorkspaceOfModule(t *testing.T) {
	const result, layers = 8 << 20, 6
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for range layers {
				for _, line := range []string{"11", "12", "13"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/linear.py:3:forward"}, called,
						[]string{"/app/block.py:" + line + ":forward"}, called,
						[]string{"/app/model.py:5:forward"}, called, []string{"/app/train.py:3:main"})...)
					kept = append(kept, d.Alloc(result))
					d.Free(d.Alloc(frames.WorkspaceSize))
				}
			}
			backward(d, kept, 1<<20)
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	a := ask(t, in, "no-grad=train.py:3")
	if want := int64(2*result + frames.WorkspaceSize); a.After.AllocatedPeak < want {
		t.Errorf("without gradients %d, before %d, want %d at least", a.After.AllocatedPeak, a.Before.AllocatedPeak, want)
	}
}

// TestListsOutside holds that a loop of modules in a function that no module calls, as of Lightning's modules, is a list by name,
// and that such a loop is none of the lists of checkpoint=*.
func TestListsOutside(t *testing.T) {
	const result, layers = 8 << 20, 5
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for range layers {
				for _, line := range []string{"11", "12", "13"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/inner.py:7:forward"}, called,
						[]string{"/app/layer.py:" + line + ":forward"}, called,
						[]string{"/app/lit.py:5:encode", "/app/lit.py:9:training_step", "/app/train.py:3:main"})...)
					kept = append(kept, d.Alloc(result))
				}
			}
			backward(d, kept, 1<<20)
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	a := ask(t, in, "checkpoint=encoder.*")
	if want := int64((layers + 3) * result); a.After.AllocatedPeak > want || a.Changes[0].Modules != layers {
		t.Errorf("%d modules, peak %d, before %d, want %d at most", a.Changes[0].Modules, a.After.AllocatedPeak,
			a.Before.AllocatedPeak, want)
	}
	if _, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint=*")}); err == nil {
		t.Error("checkpoint=* takes what no module calls")
	}
}

// TestFunctionWithoutGradients holds that a function runs without autograd as the line that calls it does.
func TestFunctionWithoutGradients(t *testing.T) {
	const result = 8 << 20
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for _, line := range []string{"11", "12", "13", "14"} {
				d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:" + line + ":forward"}, called,
					[]string{"/app/eval.py:5:evaluate", "/app/train.py:3:main"})...)
				kept = append(kept, d.Alloc(result))
			}
			backward(d, kept, 1<<20)
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	line, function := ask(t, in, "no-grad=train.py:3"), ask(t, in, "no-grad=evaluate")
	if line.After != function.After || line.After.AllocatedPeak >= line.Before.AllocatedPeak {
		t.Errorf("of the line %+v, of the function %+v, before %+v", line.After, function.After, line.Before)
	}
}

// TestDelBehindStatement holds that what a statement reads is there until all of it is over, though a function that it calls has an
// operation of one line twice.
func TestDelBehindStatement(t *testing.T) {
	const main, twice = "/app/train.py:4:main", "/app/losses.py:12:divergence"
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = build.NewStack("/app/train.py:3:main")
			variable := d.Alloc(32 << 20)
			var made []*build.Block
			for _, stack := range [][]string{{twice, main}, {torch + "nn/functional.py:7:log_softmax", twice, main}, {twice, main},
				{torch + "nn/functional.py:9:cross_entropy", main}} {
				d.Stack = build.NewStack(stack...)
				made = append(made, d.Alloc(8<<20))
			}
			backward(d, made, 1<<20)
			d.Stack = after
			d.Free(variable)
		}
	})
	if a := ask(t, in, "del=train.py:3"); a.After.AllocatedPeak < (32+4*8)<<20 {
		t.Errorf("without the variable %d, and the peak of %d is in the statement that reads it", a.After.AllocatedPeak,
			a.Before.AllocatedPeak)
	}
}

// needsWithout holds that a program, of which what it computes for a pass is given, needs so much at least where a line keeps no gradients.
func needsWithout(t *testing.T, least int64, forward func(d *build.Device) []*build.Block) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			backward(d, forward(d), 1<<20)
			d.Stack = after
			d.Free(d.Alloc(1 << 20))
		}
	})
	if a := ask(t, in, "no-grad=train.py:3"); a.After.AllocatedPeak < least {
		t.Errorf("without gradients %d, before %d, want %d at least", a.After.AllocatedPeak, a.Before.AllocatedPeak, least)
	}
}

// TestNormUntilSum holds that blocks of GPT-2's kind in transformers have what a norm gives until they add what is made of that.
func TestNormUntilSum(t *testing.T) {
	const result, model = 8 << 20, "/lib/site-packages/transformers/models/gpt2/modeling_gpt2.py:"
	needsWithout(t, 4*result, func(d *build.Device) []*build.Block {
		var kept []*build.Block
		for range 5 {
			for _, made := range [][]string{
				slices.Concat([]string{torch + "nn/functional.py:7:layer_norm", torch + "nn/modules/normalization.py:9:forward"},
					called, []string{model + "276:forward"}),
				slices.Concat([]string{torch + "nn/modules/linear.py:5:forward"}, called, []string{model + "277:forward"}),
				{model + "285:forward"},
			} {
				d.Stack = build.NewStack(slices.Concat(made, called, []string{model + "608:forward"}, called,
					[]string{"/app/train.py:3:main"})...)
				kept = append(kept, d.Alloc(result))
			}
		}
		return kept
	})
}

// TestBlockOfOneStatement holds that what a block adds its input to, as in `return x + self.block(x)`, is there until the next block has
// added its own, though the calls of both look like one.
func TestBlockOfOneStatement(t *testing.T) {
	const inner, sum, blocks = 1 << 20, 16 << 20, 6
	needsWithout(t, 2*sum, func(d *build.Device) []*build.Block {
		own := slices.Concat([]string{"/app/block.py:11:forward"}, called, []string{"/app/model.py:5:forward"}, called,
			[]string{"/app/train.py:3:main"})
		var kept []*build.Block
		for range blocks {
			for _, line := range []string{"3", "4"} {
				d.Stack = build.NewStack(slices.Concat([]string{"/app/inner.py:" + line + ":forward"}, called, own)...)
				kept = append(kept, d.Alloc(inner))
			}
			d.Stack = build.NewStack(own...)
			kept = append(kept, d.Alloc(sum))
		}
		return kept
	})
}

// TestLayerOfTorch holds that what a layer of torch's transformer adds up is its own, until it has added the next.
func TestLayerOfTorch(t *testing.T) {
	const inner, sum = 1 << 20, 16 << 20
	needsWithout(t, 2*sum, func(d *build.Device) []*build.Block {
		var kept []*build.Block
		for _, line := range []string{"946", "949"} {
			own := slices.Concat(ofTorch("nn/modules/transformer.py:"+line+":forward"), []string{"/app/model.py:5:forward"}, called,
				[]string{"/app/train.py:3:main"})
			d.Stack = build.NewStack(slices.Concat(ofTorch("nn/modules/normalization.py:9:forward"), own)...)
			kept = append(kept, d.Alloc(inner))
			d.Stack = build.NewStack(own...)
			kept = append(kept, d.Alloc(sum))
		}
		return kept
	})
}
