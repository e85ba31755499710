package attribution_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/fixtures/build"
)

// lines writes a tree with a node a line, indented, with bytes and self in MiB.
func lines(n *attribution.Node, depth int) []string {
	mark := ""
	if n.Unattributed {
		mark = "?"
	}
	out := []string{fmt.Sprintf("%s%s%s %d %d", strings.Repeat(" ", depth), mark, n.Name, n.Rounded/mib,
		n.Self().Rounded/mib)}
	for i := range n.Children {
		out = append(out, lines(&n.Children[i], depth+1)...)
	}
	return out
}

func TestTree(t *testing.T) {
	s, tl := read(t, func(d *build.Device) {
		main := "/app/train.py:5:main"
		d.Stack = build.NewStack("/app/data.py:3:load", main)
		d.Alloc(2 * mib)
		d.Stack = build.NewStack("CUDACachingAllocator.cpp:0:c10::malloc(int)", "??:0:PyEval_EvalFrameDefault",
			torch+"nn/functional.py:9:linear",
			module, "/app/model.py:38:forward", module, main)
		d.Alloc(3 * mib)
		d.Stack = build.NewStack("/app/model.py:38:forward", module, main)
		d.Alloc(4 * mib)
		d.Stack = build.NewStack("CUDACachingAllocator.cpp:0:c10::malloc(int)", "??:0:at::f<int>(long)",
			"clone.c:5:__clone")
		d.Alloc(5 * mib)
		d.Stack = nil
		d.Alloc(6 * mib)
	})
	for _, c := range []struct {
		q    attribution.Query
		want []string
	}{
		{attribution.Query{}, []string{
			" 20 0",
			" /app/train.py:5 main 9 0",
			"  /app/model.py:38 forward 7 4",
			"   torch/nn/functional.py:9 linear 3 3",
			"  /app/data.py:3 load 2 2",
			" ?(no Python stack) 6 6",
			" clone.c:5 __clone 5 0",
			"  at::f 5 0",
			"   CUDACachingAllocator.cpp c10::malloc 5 5",
		}},
		{attribution.Query{By: attribution.ByModule}, []string{
			" 20 0",
			" ?(outside of module calls) 7 7",
			" model.py:38 7 4",
			"  functional.py:9 linear 3 3",
			" ?(no Python stack) 6 6",
		}},
		{attribution.Query{Internals: true}, []string{
			" 20 0",
			" /app/train.py:5 main 9 0",
			"  torch/nn/modules/module.py:1750 _call_impl 7 0",
			"   /app/model.py:38 forward 7 4",
			"    torch/nn/modules/module.py:1750 _call_impl 3 0",
			"     torch/nn/functional.py:9 linear 3 0",
			"      PyEval_EvalFrameDefault 3 0",
			"       CUDACachingAllocator.cpp c10::malloc 3 3",
			"  /app/data.py:3 load 2 2",
			" ?(no Python stack) 6 6",
			" clone.c:5 __clone 5 0",
			"  at::f 5 0",
			"   CUDACachingAllocator.cpp c10::malloc 5 5",
		}},
	} {
		root, out := attribution.Tree(s, tl, end(tl), c.q)
		if got := lines(&root, 0); !slices.Equal(got, c.want) || out != (attribution.Sum{}) {
			t.Errorf("%+v:\n%s", c.q, strings.Join(got, "\n"))
		}
	}
}

// TestTreeOfBackward leaves the core of torch out of stacks of C++ alone, which name what runs and
// whatever is not torch's own.
func TestTreeOfBackward(t *testing.T) {
	engine := []string{":0:torch::autograd::Node::operator()(std::vector<at::Tensor>&&)",
		"??:0:torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
		"thread48.o:0:execute_native_thread_routine", "pthread_create.c:0:start_thread", "clone3.S:0:__clone3"}
	alloc := []string{"CUDACachingAllocator.cpp:0:c10::cuda::CUDACachingAllocator::Native::local_raw_alloc(unsigned " +
		"long)", "??:0:at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>)"}
	s, tl := read(t, func(d *build.Device) {
		d.Stack = build.NewStack(slices.Concat(alloc, []string{"??:0:at::_ops::bmm::redispatch(at::Tensor const&)",
			"VariableType_3.cpp:0:torch::autograd::VariableType::bmm(at::Tensor const&)",
			"??:0:at::_ops::bmm::call(at::Tensor " +
				"const&)", "??:0:torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)"},
			engine)...)
		d.Alloc(2 * mib)
		d.Stack = build.NewStack(slices.Concat(alloc, []string{"my_ext.cu:31:scan_backward(at::Tensor)"}, engine)...)
		d.Alloc(mib)
	})
	want := []string{
		" 3 0",
		" torch::autograd::generated::BmmBackward0::apply 2 0",
		"  at::_ops::bmm::call 2 2",
		" my_ext.cu:31 scan_backward 1 1",
	}
	root, _ := attribution.Tree(s, tl, end(tl), attribution.Query{})
	if got := lines(&root, 0); !slices.Equal(got, want) {
		t.Errorf("\n%s", strings.Join(got, "\n"))
	}
}

// TestModules reads paths of module calls from stacks as torch makes them.
func TestModules(t *testing.T) {
	wrapped := torch + "nn/modules/module.py:1739:_wrapped_call_impl"
	call := func(frames ...string) []string { return append(frames, module, wrapped) }
	main := []string{"/app/train.py:9:step", "/app/train.py:20:<module>"}
	for _, c := range []struct {
		name  string
		stack []string
		want  string
	}{
		{"no module", main, "(outside of module calls)"},
		{"one", slices.Concat(call("/app/m.py:5:forward"), main), "m.py:5"},
		{"nested, with functions between", slices.Concat(
			[]string{torch + "nn/functional.py:9:linear"}, call(torch+"nn/modules/linear.py:125:forward"),
			[]string{"/app/m.py:30:attend"}, call("/app/m.py:20:forward"), call("/app/m.py:5:forward"), main),
			"m.py:5 > m.py:20 > linear.py:125"},
		{"before torch 2.0", slices.Concat([]string{"/app/m.py:5:forward", module}, main), "m.py:5"},
		{"hooks go through a function of torch's", slices.Concat(
			call(torch+"nn/modules/container.py:250:forward", torch+"nn/modules/module.py:1793:inner"), main),
			"container.py:250"},
		{"a hook", slices.Concat(call("/app/hooks.py:3:save", torch+"nn/modules/module.py:1793:inner"),
			call("/app/m.py:5:forward"), main),
			"m.py:5 > hooks.py:3 save"},
		{"a wrapper around forward", slices.Concat(call("/app/m.py:5:forward",
			torch+"amp/autocast_mode.py:44:decorate_autocast"), main), "m.py:5"},
		{"a forward of something else inside", slices.Concat([]string{"/app/fn.py:7:forward"},
			call("/app/m.py:5:forward"),
			main), "m.py:5"},
		{"checkpointed", slices.Concat(call("/app/m.py:5:forward"),
			[]string{torch + "utils/checkpoint.py:496:checkpoint"},
			main), "m.py:5"},
		{"C++ between", slices.Concat(
			[]string{"??:0:at::empty"}, []string{"/app/m.py:5:forward", "??:0:_PyEval_EvalFrameDefault", module,
				"??:0:PyMethod_New", wrapped}, main), "m.py:5"},
		{"a call that has not come to code", slices.Concat(call(), main), "(outside of module calls)"},
	} {
		s, tl := read(t, func(d *build.Device) {
			d.Stack = build.NewStack(c.stack...)
			d.Alloc(mib)
		})
		h := attribution.Hold(s, tl, end(tl), attribution.Query{By: attribution.ByModule})
		if got := h.Rows[0].Name; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNativeNames(t *testing.T) {
	for symbol, want := range map[string]string{
		"torch::unwind::unwind()": "torch::unwind::unwind",
		"main":                    "main",
		"at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>, " +
			"c10::Allocator*)": "at::detail::_empty_generic",
		"void at::cuda::blas::gemm<float>(char, " +
			"at::OpMathType<float>::type)": "at::cuda::blas::gemm",
		"at::(anonymous namespace)::(anonymous " +
			"namespace)::wrapper_CUDA__empty(c10::ArrayRef<c10::SymInt>)": "at::wrapper_CUDA__empty",
		"std::error_code::default_error_condition() const": "std::error_code::default_error_condition",
		"torch::autograd::Node::operator()(int)":           "torch::autograd::Node::operator()(int)",
		"<lambda(int)>":                                    "<lambda(int)>",
	} {
		s, tl := read(t, func(d *build.Device) {
			d.Stack = build.NewStack("??:0:" + symbol)
			d.Alloc(mib)
		})
		if got := attribution.FrameText(s, s.Stacks.Get(tl.Lives[0].Stack)[0]); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}
