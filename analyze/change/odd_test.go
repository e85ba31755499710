package change_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// built is the recording of a program.
func built(t *testing.T, opt build.Options, program func(*build.Device)) *change.Input {
	t.Helper()
	var b bytes.Buffer
	if err := build.Run(opt, program).Write(&b, pickler.Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := load.Read(t.Context(), &b, "x", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return known(t, s)
}

const torch = "/usr/lib/python3/dist-packages/torch/"

// called are the frames of a call of a module.
var called = []string{torch + "nn/modules/module.py:5:_call_impl", torch + "nn/modules/module.py:4:_wrapped_call_impl"}

// within is the stack of a module that a model's forward calls.
func within(module ...string) *build.Stack {
	return build.NewStack(slices.Concat(module, called, []string{"/app/model.py:7:forward"}, called,
		[]string{"/app/train.py:9:main"})...)
}

// loop is a program of two steps whose forward calls a module, and whose backward ends what that keeps.
func loop(d *build.Device, module ...string) {
	for range 2 {
		d.Stack = within(module...)
		var kept []*build.Block
		for range 4 {
			kept = append(kept, d.Alloc(4<<20))
		}
		d.Stack = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
			"/app/train.py:9:main")
		for _, b := range kept {
			d.Free(d.Alloc(1 << 20))
			d.Free(b)
		}
	}
}

var asked = []string{"accumulate=2", "checkpoint=blocks.*", "offload=activations", "offload=optimizer", "foreach=off",
	"optimizer-in-backward", "zero=2,4", "zero=torch,100000", "adam-8bit", "checkpoint=*",
	"fsdp=2,4", "fsdp=3,4", "dtype=bf16:all", "dtype=bf16:activations", "no-grad=model.py:7", "del=model.py:7", "free-leak=model.py:7"}

// TestOdd holds that each change is answered or refused for recordings that lack what programs have: without any block,
// with modules that are not Python, and ends in the midst of a pass at the end of a chunk of events.
func TestOdd(t *testing.T) {
	inputs := map[string]*change.Input{
		"nothing but a failure": built(t, build.Options{Capacity: 64 << 20}, func(d *build.Device) {
			d.Stack = build.NewStack("/app/train.py:9:main")
			d.Alloc(1 << 30)
		}),
		"modules of C++": built(t, build.Options{}, func(d *build.Device) { loop(d, "module.so:0:torch::jit::forward") }),
		"an open pass at the end of a chunk": built(t, build.Options{}, func(d *build.Device) {
			const chunk = 1 << 14
			loop(d, "/app/block.py:3:forward")
			d.Stack = within("/app/block.py:3:forward")
			for d.Events() < chunk-64 { // few live blocks, and few rows: most events are of segments
				d.Alloc(20 << 20)
			}
			for d.Events() < chunk {
				d.Alloc(512)
			}
		}),
	}
	for name, in := range inputs {
		for _, capacity := range []int64{0, 1 << 30} {
			in.Capacity = capacity
			for _, text := range asked {
				var refused *change.RefusedError
				var line *change.LineError
				_, err := change.Ask(t.Context(), in, []change.Change{parse(t, text)})
				if err != nil && !errors.As(err, &refused) && !errors.As(err, &line) {
					t.Errorf("%s: %s: %v", name, text, err)
				}
			}
			if capacity > 0 {
				if _, err := change.Search(t.Context(), in, nil, 0); err != nil {
					t.Errorf("%s: search: %v", name, err)
				}
			}
		}
	}
}

// train is a program of some steps with an optimizer, whose gradients go when it has stepped.
func train(d *build.Device) {
	backward := build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward", "/app/train.py:9:main")
	steps := build.NewStack(torch+"optim/adamw.py:6:_single_tensor_adamw", torch+"optim/optimizer.py:4:wrapper", "/app/train.py:10:main")
	for range 6 {
		var kept, gradients []*build.Block
		for layer := range int64(3) {
			d.Stack = within("/app/block.py:3:forward")
			kept = append(kept, d.Alloc((4+layer)<<20))
		}
		d.Stack = backward
		for i, b := range slices.Backward(kept) {
			gradients = append(gradients, d.Alloc(int64(2+i)<<20))
			d.Free(d.Alloc(1 << 20))
			d.Free(b)
		}
		d.Stack = steps
		for i := range gradients {
			d.Free(d.Alloc(int64(2+i) << 20))
		}
		for _, g := range gradients {
			d.Free(g)
		}
	}
}

// TestRing holds that each change is answered or refused wherever a recording begins, at a gradient too.
func TestRing(t *testing.T) {
	for ring := 20; ring < 150; ring++ {
		in := built(t, build.Options{Ring: ring}, train)
		for _, text := range asked {
			var refused *change.RefusedError
			var line *change.LineError
			_, err := change.Ask(t.Context(), in, []change.Change{parse(t, text)})
			if err != nil && !errors.As(err, &refused) && !errors.As(err, &line) {
				t.Errorf("the last %d events: %s: %v", ring, text, err)
			}
		}
	}
}

// TestNative holds that frames of C++ between those of Python, which differ from call to call, hide no call of a module.
func TestNative(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 2 {
			var kept []*build.Block
			for call := range 3 {
				native := []string{"libtorch.so:1:at::empty", "libpython.so:" + string(rune('1'+call)) + ":call"}
				for _, line := range []string{"/app/block.py:3:forward", "/app/block.py:4:forward"} {
					d.Stack = within(append(slices.Clone(native), line)...)
					kept = append(kept, d.Alloc(4<<20), d.Alloc(2<<20))
				}
			}
			d.Stack = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
				"/app/train.py:9:main")
			for _, b := range slices.Backward(kept) {
				d.Free(d.Alloc(1 << 20))
				d.Free(b)
			}
		}
	})
	a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint=model.py:7")})
	if err != nil {
		t.Fatal(err)
	}
	if c := &a.Changes[0]; c.Modules != 3 || c.OfThose != 3 {
		t.Errorf("%d of %d modules, want 3 of 3", c.Modules, c.OfThose)
	}
}

// TestOperators holds that C++ tells which of two operations in one line torch.autocast has compute in 32 bits, that it tells nothing
// where its symbols are missing, and that changes which types are nothing to answer the same with it.
func TestOperators(t *testing.T) {
	const size = 64 << 20
	peak := func(second, text string) int64 {
		in := built(t, build.Options{}, func(d *build.Device) {
			native := func(name string, stack []string) *build.Stack {
				switch second {
				case "":
					return build.NewStack(stack...)
				case "?":
					return build.NewStack(append([]string{"libtorch.so:1:??"}, stack...)...)
				}
				return build.NewStack(append([]string{"libtorch.so:1:" + name}, stack...)...)
			}
			model := slices.Concat([]string{"/app/model.py:7:forward"}, called, []string{"/app/train.py:9:main"})
			layer := slices.Concat([]string{torch + "nn/modules/linear.py:134:forward"}, called, model)
			for range 3 {
				d.Stack = native("at::_ops::linear::call(at::Tensor const&)", layer)
				first := d.Alloc(size)
				d.Stack = native("at::_ops::"+second+"::call(at::Tensor const&)", model)
				kept := d.Alloc(size)
				d.Stack = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
					"/app/train.py:9:main")
				d.Free(d.Alloc(1 << 20))
				d.Free(kept)
				d.Free(d.Alloc(2 << 20))
				d.Free(first)
			}
		})
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		return a.After.AllocatedPeak
	}
	const autocast = "dtype=bf16:activations"
	python, unknown := peak("", autocast), peak("?", autocast)
	follows, computes := peak("gelu", autocast), peak("exp", autocast)
	if unknown != python || computes < follows+size/2 {
		t.Errorf("allocated peak %d without C++, %d without its symbols; %d of a GELU, %d of an exponential", python, unknown,
			follows, computes)
	}
	if of, without := peak("exp", "dtype=bf16:all"), peak("", "dtype=bf16:all"); of != without {
		t.Errorf("of 16 bits throughout: allocated peak %d with C++, %d without", of, without)
	}
}

// TestTwice holds that a module which calls another twice in one statement, as in f(g(f(x))), is one module.
func TestTwice(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 2 {
			var kept []*build.Block
			for range 3 {
				for _, line := range []string{"/app/block.py:3:forward", "/app/block.py:3:forward", "/app/block.py:4:forward"} {
					conv := torch + "nn/modules/conv.py:5:forward"
					calls := []string{torch + "nn/modules/module.py:5:_call_impl", torch + "nn/modules/module.py:4:_wrapped_call_impl"}
					d.Stack = within(append(append([]string{conv}, calls...), line)...)
					kept = append(kept, d.Alloc(4<<20))
				}
			}
			d.Stack = build.NewStack(torch+"autograd/graph.py:8:_engine_run_backward", torch+"_tensor.py:7:backward",
				"/app/train.py:9:main")
			for _, b := range slices.Backward(kept) {
				d.Free(d.Alloc(1 << 20))
				d.Free(b)
			}
		}
	})
	a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint=model.py:7")})
	if err != nil {
		t.Fatal(err)
	}
	if c := &a.Changes[0]; c.Modules != 3 || c.OfThose != 3 {
		t.Errorf("%d of %d modules, want 3 of 3", c.Modules, c.OfThose)
	}
}

// TestFirstPass holds that nobody is told that a run fits whose recording ends in its first pass.
func TestFirstPass(t *testing.T) {
	in := input(t, lab+"llama_out_in_forward.pickle.xz")
	a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint=layers.*")})
	if err != nil {
		t.Fatal(err)
	}
	if o := &a.After; a.Early && (o.Fits != nil || o.Unknown != change.FirstPass || !*o.Served) || !a.Early && o.Fits == nil {
		t.Errorf("ends in the first pass: %v; fits %v, for %q", a.Early, o.Fits, o.Unknown)
	}
}

// TestEightBit holds the optimizer's state of 8 bits to its layout.
func TestEightBit(t *testing.T) {
	in := input(t, lab+"llama_offload_optimizer.pickle.xz")
	none, err := change.Ask(t.Context(), in, []change.Change{parse(t, "offload=optimizer")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "adam-8bit")})
	if err != nil {
		t.Fatal(err)
	}
	if a.After.AllocatedPeak >= a.Before.AllocatedPeak || a.After.AllocatedPeak <= none.After.AllocatedPeak {
		t.Errorf("allocated peak %d, without any state %d, as recorded %d", a.After.AllocatedPeak, none.After.AllocatedPeak,
			a.Before.AllocatedPeak)
	}
	for _, other := range []string{"foreach=off", "offload=optimizer", "optimizer-in-backward"} {
		if _, err := change.Ask(t.Context(), in, []change.Change{parse(t, "adam-8bit"), parse(t, other)}); err == nil {
			t.Errorf("made together with %s", other)
		}
	}
}

// TestBoundAgain holds that what a loop's variable keeps of a leak is there until the next step has made it anew, and
// that what a function keeps for itself is not.
func TestBoundAgain(t *testing.T) {
	const size = 32 << 20
	for _, loop := range []bool{true, false} {
		in := built(t, build.Options{}, func(d *build.Device) {
			at := func(line string) *build.Stack {
				if loop {
					return build.NewStack("/app/train.py:" + line + ":main")
				}
				return build.NewStack("/app/train.py:"+line+":step", "/app/train.py:50:main")
			}
			var before []*build.Block
			free := func() {
				for _, b := range before {
					d.Free(b)
				}
				before = nil
			}
			for range 12 {
				var now []*build.Block
				for _, line := range []string{"3", "4"} {
					d.Stack = at(line)
					now = append(now, d.Alloc(8<<20))
					if loop && len(before) > 0 {
						d.Free(before[0])
						before = before[1:]
					}
				}
				d.Stack = at("5")
				d.Alloc(size)
				d.Stack = at("6")
				graph := d.Alloc(4 << 20)
				d.Stack = build.NewStack(slices.Concat([]string{torch + "autograd/graph.py:8:_engine_run_backward",
					torch + "_tensor.py:7:backward"}, []string{"/app/train.py:9:main"})...)
				d.Free(d.Alloc(1 << 20))
				d.Free(graph)
				before = now
				if !loop {
					free()
				}
			}
			free()
		})
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "free-leak")})
		if err != nil {
			t.Fatal(err)
		}
		bound := slices.ContainsFunc(a.Changes[0].Assumptions, func(v change.Assumption) bool { return v.Kind == change.BoundAgain })
		if bound != loop || loop && a.After.AllocatedPeak < 2*size {
			t.Errorf("loop %v: bound again %v, allocated peak %d", loop, bound, a.After.AllocatedPeak)
		}
	}
}

// TestEmptyRows holds that statistics of norms and of attention may have no bytes: nothing is divided by these.
func TestEmptyRows(t *testing.T) {
	for file, ask := range map[string]string{"llama_checkpoint": "dtype=bf16:activations", "ref_logits_no_grad": "dtype=bf16:all"} {
		for below := int64(512); below <= 1<<20; below *= 2 {
			s, err := load.Open(t.Context(), lab+file+".pickle.xz", load.Options{})
			if err != nil {
				t.Fatal(err)
			}
			buildtest.Edit(s.Traces, func(e *snapshot.Event) bool {
				if e.Size < below {
					e.Size = 0
				}
				return true
			})
			if _, err := change.Ask(t.Context(), known(t, s), []change.Change{parse(t, ask)}); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
