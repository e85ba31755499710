package attribution_test

import (
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

const (
	torch  = "/usr/lib/python3/dist-packages/torch/"
	mib    = 1 << 20
	module = torch + "nn/modules/module.py:1750:_call_impl"
)

func read(t *testing.T, program func(d *build.Device)) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	s := readWith(t, build.Options{}, program)
	return s, timeline.Build(s, 0)
}

func readWith(t *testing.T, opt build.Options, program func(d *build.Device)) *snapshot.Snapshot {
	t.Helper()
	s := buildtest.Read(t, build.Run(opt, program))
	return s
}

func TestSite(t *testing.T) {
	for _, c := range []struct {
		name   string
		stack  []string
		site   string
		frames []string
	}{
		{"the user's frame below torch's",
			[]string{torch + "nn/functional.py:2910:layer_norm", module, "/home/me/model.py:38:forward",
				"/home/me/train.py:9:<module>"},
			"model.py:38 forward",
			[]string{"torch/nn/functional.py:2910 layer_norm", "/home/me/model.py:38 forward",
				"/home/me/train.py:9 <module>"}},
		{"another library before torch",
			[]string{torch + "nn/functional.py:1:f",
				"/venv/lib/python3.11/site-packages/transformers/cache.py:7:update"},
			"cache.py:7 update",
			[]string{"torch/nn/functional.py:1 f", "transformers/cache.py:7 update"}},
		{"the user before another library",
			[]string{"/venv/lib/python3.11/site-packages/transformers/cache.py:7:update", "/app/gen.py:3:main"},
			"gen.py:3 main",
			[]string{"transformers/cache.py:7 update", "/app/gen.py:3 main"}},
		{"torch from a checkout",
			[]string{"/src/pytorch/torch/optim/adam.py:5:step", "/src/app/t.py:6:main"},
			"t.py:6 main",
			[]string{"/src/pytorch/torch/optim/adam.py:5 step", "/src/app/t.py:6 main"}},
		{"a folder of the user's that is called torch",
			[]string{"/home/me/torch/train.py:5:step"},
			"train.py:5 step", []string{"/home/me/torch/train.py:5 step"}},
		{"C++ frames and the interpreter",
			[]string{"??:0:torch::unwind::unwind()", "/build/aten/src/ATen/native/Empty.cpp:12:at::empty",
				"Objects/call.c:5:_PyObject_Call", "/app/x.py:3:f"},
			"x.py:3 f", []string{"/build/aten/src/ATen/native/Empty.cpp:12 at::empty", "/app/x.py:3 f"}},
		{"nothing but plumbing", []string{module}, "module.py:1750 _call_impl",
			[]string{"torch/nn/modules/module.py:1750 _call_impl"}},
		{"a backward function in C++",
			[]string{"CUDACachingAllocator.cpp:0:Native::malloc(unsigned long)",
				"??:0:at::_ops::bmm::call(at::Tensor const&)",
				":0:torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)",
				"thread48.o:0:execute_native_thread_routine"},
			"BmmBackward0 (backward)",
			[]string{"CUDACachingAllocator.cpp Native::malloc(unsigned long)",
				"?? at::_ops::bmm::call(at::Tensor const&)",
				"? torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)",
				"thread48.o execute_native_thread_routine"}},
		{"an operator in C++",
			[]string{"??:0:at::_ops::empty::call(int)", "??:0:at::_ops::bmm::redispatch(at::Tensor const&)",
				"??:0:main"},
			"aten::bmm",
			[]string{"?? at::_ops::empty::call(int)", "?? at::_ops::bmm::redispatch(at::Tensor const&)", "?? main"}},
		{"a path of Windows", []string{`\\host\me\train.py:4:step`}, "train.py:4 step",
			[]string{`\\host\me\train.py:4 step`}},
		{"no frames", nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, tl := read(t, func(d *build.Device) {
				d.Stack = build.NewStack(c.stack...)
				d.Alloc(mib)
			})
			stack := tl.Lives[0].Stack
			if got := attribution.Site(s, stack); got != c.site {
				t.Errorf("site %q, want %q", got, c.site)
			}
			if got := attribution.Frames(s, stack); !slices.Equal(got, c.frames) {
				t.Errorf("frames %q, want %q", got, c.frames)
			}
		})
	}
}

func TestLive(t *testing.T) {
	s, tl := read(t, func(d *build.Device) {
		a, b := build.NewStack("/a.py:1:a"), build.NewStack("/b.py:2:b")
		d.Stack = a
		d.Alloc(100)
		x := d.Alloc(5 * mib)
		d.Stack = b
		d.Alloc(3 * mib)
		d.Free(x)
		d.Alloc(2 * mib)
	})
	got := attribution.Live(s, tl, tl.StateAt(tl.Trace.Len()))
	if len(got) != 2 || got[0].Site != "b.py:2 b" || got[1].Site != "a.py:1 a" {
		t.Fatalf("groups %+v", got)
	}
	if g := got[0]; g.Count != 2 || g.Rounded != 5*mib || g.Requested != 5*mib || g.PreTrace != 0 {
		t.Errorf("first group %+v", g)
	}
	if g := got[1]; g.Count != 1 || g.Rounded != 512 || g.Requested != 100 {
		t.Errorf("second group %+v", g)
	}
}
