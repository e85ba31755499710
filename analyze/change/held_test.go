package change_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/build"
)

// engine is the stack of what a backward pass does, and after that of what the program does behind it.
var (
	engine = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
		"/app/train.py:9:main")
	after = build.NewStack("/app/train.py:20:main")
)

// backward lets go of what was kept, the last first, each behind a request for so many bytes that goes at once.
func backward(d *build.Device, kept []*build.Block, gradient int64) {
	d.Stack = engine
	for _, b := range slices.Backward(kept) {
		d.Free(d.Alloc(gradient))
		d.Free(b)
	}
}

// ask makes one change.
func ask(t *testing.T, in *change.Input, text string) *change.Answer {
	t.Helper()
	a, err := change.Ask(t.Context(), in, []change.Change{parse(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// withLocal trains with a local variable that stays until after backward.
func withLocal(d *build.Device) {
	for range 3 {
		d.Stack = within("/app/block.py:3:forward")
		kept := []*build.Block{d.Alloc(8 << 20), d.Alloc(8 << 20), d.Alloc(8 << 20)}
		d.Stack = build.NewStack("/app/train.py:5:main")
		local := d.Alloc(32 << 20)
		d.Stack = build.NewStack("/app/train.py:6:main")
		kept = append(kept, d.Alloc(16<<20))
		backward(d, kept, 4<<20)
		d.Stack = after
		d.Free(local)
	}
}

// TestLocal holds that what a variable holds until after backward goes with the variable, and not with what a graph saves;
// that a graph may need it too is said.
func TestLocal(t *testing.T) {
	in := built(t, build.Options{}, withLocal)
	doubted := func(a *change.Answer) bool {
		return slices.ContainsFunc(a.Doubts, func(v change.Doubt) bool { return v.Kind == change.Held })
	}
	a := ask(t, in, "del=train.py:5")
	if a.After.AllocatedPeak >= a.Before.AllocatedPeak || !doubted(a) || a.Confidence == finding.High ||
		a.Band.High < a.Before.ReservedPeak {
		t.Errorf("without the variable %d, with it %d; %s confidence, band %+v, %+v", a.After.AllocatedPeak,
			a.Before.AllocatedPeak, a.Confidence, a.Band, a.Doubts)
	}
	a = ask(t, in, "offload=activations")
	if a.After.AllocatedPeak < 32<<20 || a.After.AllocatedPeak >= a.Before.AllocatedPeak || !doubted(a) {
		t.Errorf("offloaded %d, before %d, the variable is of %d; %+v", a.After.AllocatedPeak, a.Before.AllocatedPeak, 32<<20,
			a.Doubts)
	}
}

// TestRetained holds that what a graph that stays has saved is offloaded, though the program lets go of it.
func TestRetained(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = within("/app/block.py:3:forward")
			kept := []*build.Block{d.Alloc(8 << 20), d.Alloc(8 << 20), d.Alloc(8 << 20), d.Alloc(8 << 20)}
			d.Stack = engine
			d.Free(d.Alloc(4 << 20))
			d.Stack = after
			for _, b := range kept {
				d.Free(b)
			}
		}
	})
	if a := ask(t, in, "offload=activations"); a.After.AllocatedPeak > 24<<20 {
		t.Errorf("offloaded %d, before %d", a.After.AllocatedPeak, a.Before.AllocatedPeak)
	}
}

// TestNoGradients holds that code without gradients makes none for the parameters that only it uses.
func TestNoGradients(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		var stays []*build.Block
		for step := range 3 {
			var kept []*build.Block
			for _, line := range []string{"3", "4"} {
				for _, inner := range []string{"11", "12", "13"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:" + inner + ":forward"}, called,
						[]string{"/app/train.py:" + line + ":main"})...)
					kept = append(kept, d.Alloc(8<<20))
				}
			}
			d.Stack = engine
			var grads []*build.Block
			for i, b := range slices.Backward(kept) {
				if i > 2 || step == 0 {
					grads = append(grads, d.Alloc(16<<20))
				}
				d.Free(b)
			}
			if step == 0 {
				stays = grads[3:] // nobody sets them to none
				grads = grads[:3]
			}
			d.Stack = after
			for _, b := range grads {
				d.Free(b)
			}
		}
		for _, b := range stays {
			d.Free(b)
		}
	})
	a := ask(t, in, "no-grad=train.py:3")
	// What the code returns stays, and the gradient of its last node, which the other code's first may have made.
	if want := int64(4*8+4*16) << 20; a.After.AllocatedPeak > want {
		t.Errorf("without gradients %d, before %d, want %d at most", a.After.AllocatedPeak, a.Before.AllocatedPeak, want)
	}
}

// TestResultsWithoutGradients holds that what a program makes of the results of code without gradients is in no graph, up to the next
// module, unless a graph was there before.
func TestResultsWithoutGradients(t *testing.T) {
	for before, want := range map[bool]int64{false: 3 * 8, true: 3*8 + 16 + 3*8} {
		in := built(t, build.Options{}, func(d *build.Device) {
			module := func(line string) (kept []*build.Block) {
				for _, inner := range []string{"11", "12", "13"} {
					d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:" + inner + ":forward"}, called,
						[]string{"/app/train.py:" + line + ":main"})...)
					kept = append(kept, d.Alloc(8<<20))
				}
				return kept
			}
			for range 3 {
				var kept []*build.Block
				if before {
					kept = module("1")
				}
				kept = append(kept, module("3")...)
				d.Stack = build.NewStack(torch+"nn/functional.py:2200:log_softmax", "/app/loss.py:20:logps", "/app/train.py:4:main")
				kept = append(kept, d.Alloc(16<<20))
				for _, line := range []string{"21", "22"} {
					d.Stack = build.NewStack("/app/loss.py:"+line+":logps", "/app/train.py:4:main")
					kept = append(kept, d.Alloc(512))
				}
				kept = append(kept, module("5")...)
				backward(d, kept, 1<<20)
				d.Stack = after
				d.Free(d.Alloc(512))
			}
		})
		got := ask(t, in, "no-grad=train.py:3").After.AllocatedPeak >> 20
		if got < want || got > want+9 { // and what the code returns, and a gradient
			t.Errorf("a graph before %v: %d MiB, want %d", before, got, want)
		}
	}
}

// TestInPlace holds that what works in place clones nothing where no graph is kept, and is not taken for that where a product reads
// it, nor where nothing is let go of.
func TestInPlace(t *testing.T) {
	of := func(line string, frames ...string) *build.Stack {
		return build.NewStack(slices.Concat(frames, []string{"/app/model.py:" + line + ":forward"}, called,
			[]string{"/app/train.py:3:main"})...)
	}
	conv := slices.Concat([]string{torch + "nn/modules/conv.py:9:forward"}, called)
	for _, c := range []struct {
		name, function string
		product        bool
		order          []int // in which a graph lets go of what the function is given and of what it makes
		want           int64 // MiB
	}{
		{"in place", "silu", false, []int{0, 1}, 8 + 1},
		{"in place", "hardswish", false, []int{0, 1}, 8 + 1},
		{"not in place", "silu", false, []int{1, 0}, 8 + 8},
		{"of another function", "gelu", false, []int{0, 1}, 8 + 8 + 1},
		{"a factor", "silu", true, []int{0, 1}, 8 + 8 + 8},
		{"kept", "silu", false, nil, 8 + 8},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				d.Stack = of("11", conv...)
				blocks := []*build.Block{d.Alloc(8 << 20)}
				d.Stack = of("12", torch+"nn/functional.py:2450:"+c.function)
				blocks = append(blocks, d.Alloc(8<<20))
				var out *build.Block
				if d.Stack = of("13", conv...); c.product {
					d.Stack = of("13")
					out = d.Alloc(8 << 20)
				} else {
					out = d.Alloc(1 << 20)
				}
				d.Stack = engine
				d.Free(d.Alloc(1 << 20))
				if c.order != nil {
					d.Free(out)
				}
				for _, i := range c.order {
					d.Free(blocks[i])
					d.Free(d.Alloc(512))
				}
				d.Stack = after
				d.Free(d.Alloc(1 << 20))
			}
		})
		got := ask(t, in, "no-grad=train.py:3").After.AllocatedPeak >> 20
		if got < c.want || c.order != nil && got > c.want {
			t.Errorf("%s, %s: %d MiB, want %d", c.function, c.name, got, c.want)
		}
	}
}

// TestEachInTurn holds that a step in backward takes what an optimizer takes for one parameter, where that takes each
// parameter in turn, as one with state.setdefault(name, zeros_like(p)) does.
func TestEachInTurn(t *testing.T) {
	const parameters, size = 6, 16 << 20
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			d.Stack = within("/app/block.py:3:forward")
			var kept []*build.Block
			for range parameters {
				kept = append(kept, d.Alloc(2<<20))
			}
			d.Stack = engine
			var grads []*build.Block
			for _, b := range slices.Backward(kept) {
				grads = append(grads, d.Alloc(size))
				d.Free(b)
			}
			optimizer := func(line string) *build.Stack {
				return build.NewStack("/app/lion.py:"+line+":step", torch+"optim/optimizer.py:5:wrapper", "/app/train.py:10:main")
			}
			for range parameters {
				d.Stack = optimizer("26")
				d.Free(d.Alloc(size))
				d.Stack = optimizer("27")
				d.Free(d.Alloc(size))
			}
			d.Stack = after
			for _, b := range grads {
				d.Free(b)
			}
		}
	})
	a := ask(t, in, "optimizer-in-backward")
	if most := int64(parameters*2<<20 + 2*size); a.After.AllocatedPeak > most {
		t.Errorf("in backward %d, before %d, want %d at most", a.After.AllocatedPeak, a.Before.AllocatedPeak, most)
	}
}

// TestNoLoss holds that the loss of a validation without gradients keeps nothing, where a list of losses kept all of it;
// and that the same is left, with a doubt, where no loss function tells.
func TestNoLoss(t *testing.T) {
	for _, loss := range []string{torch + "nn/functional.py:9:cross_entropy", torch + "nn/functional.py:9:softmax"} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 4 {
				loop(d, "/app/block.py:3:forward")
				d.Stack = build.NewStack(slices.Concat([]string{"/app/model.py:11:forward"}, called, []string{"/app/train.py:30:main"})...)
				d.Alloc(8 << 20)
				d.Alloc(4 << 20)
				d.Stack = build.NewStack(loss, "/app/train.py:31:main")
				d.Alloc(32 << 20)
				d.Alloc(512)
			}
		})
		a := ask(t, in, "no-grad=train.py:30")
		doubted := slices.ContainsFunc(a.Doubts, func(v change.Doubt) bool { return v.Kind == change.Held })
		if left := a.After.AllocatedPeak; left < 80<<20 == doubted {
			t.Errorf("%s: %d are left of %d, doubted %v: %+v", loss, left, a.Before.AllocatedPeak, doubted, a.Doubts)
		}
	}
}
