package frames_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

const (
	site  = "/env/lib/python3.12/site-packages/"
	torch = site + "torch/"
)

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		file, name string
		origin     frames.Origin
		part       frames.Part
		has, not   frames.Class
	}{
		{"/home/me/train.py", "main", frames.User, frames.None, frames.Python, frames.Constructor},
		{"/home/me/serve.py", "alloc_kv_cache", frames.User, frames.None, frames.KVCache, frames.LoadsModel},
		{torch + "utils/_contextlib.py", "decorate_context", frames.Library, frames.Wrapper, frames.WithoutGrad, 0},
		{torch + "utils/_contextlib.py", "no_grad", frames.Library, frames.Wrapper, frames.WithoutGrad, 0},
		{torch + "nn/utils/parametrizations.py", "forward", frames.Library, frames.None, frames.Reweighs, 0},
		{torch + "nn/utils/rnn.py", "pad_sequence", frames.Library, frames.None, 0, frames.Reweighs},
		{torch + "utils/_contextlib.py", "enable_grad", frames.Library, frames.Wrapper, 0, frames.WithoutGrad},
		{torch + "nn/modules/module.py", "_call_impl", frames.Plumbing, frames.ModuleCall, 0, frames.CallsOn},
		{torch + "nn/modules/module.py", "_wrapped_call_impl", frames.Plumbing, frames.ModuleWrapper, frames.Python, 0},
		{torch + "nn/modules/module.py", "to", frames.Library, frames.ModuleMove, frames.Python, frames.Copies},
		{torch + "nn/modules/linear.py", "__init__", frames.Library, frames.ModuleInit, 0, frames.Constructor},
		{torch + "nn/functional.py", "cross_entropy", frames.Library, frames.Loss, 0, frames.Workspace},
		{torch + "autograd/graph.py", "_engine_run_backward", frames.Library, frames.Backward, frames.Python,
			frames.CallsOn},
		{torch + "autograd/graph.py", "pack_to_cpu", frames.Library, frames.None, frames.Python, frames.CallsOn},
		{site + "transformers/models/bloom/modeling_bloom.py", "forward", frames.Other, frames.None, frames.UpcastsSoft, 0},
		{site + "transformers/models/llama/modeling_llama.py", "eager_attention_forward", frames.Other, frames.None,
			frames.UpcastsSoft, 0},
		{site + "transformers/models/gpt2/modeling_gpt2.py", "eager_attention_forward", frames.Other, frames.None, 0,
			frames.UpcastsSoft},
		{site + "bitsandbytes/optim/adam.py", "step", frames.Other, frames.Optimizer, frames.Python, 0},
		{"/usr/lib/python3.12/threading.py", "run", frames.Library, frames.None, frames.CallsOn, frames.Copies},
		{"<frozen runpy>", "_run_code", frames.Library, frames.None, frames.CallsOn, frames.Copies},
		{"/home/me/copy.py", "run", frames.User, frames.None, frames.Python, frames.Copies},
		{"engine.cpp", "torch::autograd::Engine::thread_main(std::shared_ptr<int> const&)", frames.Core,
			frames.Backward, 0, frames.Python},
		{"??", "at::cuda::getCUDABlasLtWorkspace()", frames.Core, frames.None, frames.Workspace, frames.Python},
		{"", "", frames.Native, frames.None, 0, frames.Python},
		{"ceval.c", "_PyEval_EvalFrameDefault", frames.Plumbing, frames.None, 0, frames.Python},

		// Torch's tree is known by what is in it, whatever is above; another folder of the name is not torch's.
		{"/src/pytorch/torch/optim/adam.py", "step", frames.Library, frames.Optimizer, frames.Python, 0},
		{"torch/optim/adam.py", "step", frames.Library, frames.Optimizer, frames.Python, 0},
		{"torch/nn/modules/module.py", "_wrapped_call_impl", frames.Plumbing, frames.ModuleWrapper, frames.Python, 0},
		{"torch/_dynamo/eval_frame.py", "compile_wrapper", frames.Library, frames.Wrapper, frames.Python, 0},
		{"torch/cuda/graphs.py", "replay", frames.Library, frames.None, frames.Python, 0},
		{"/home/me/torch/train.py", "__init__", frames.User, frames.None, frames.Constructor, 0},
		{"/home/me/torch/utils/batches.py", "fetch", frames.User, frames.None, frames.Python, 0},
		{"/home/me/torch/cuda/bench.py", "main", frames.User, frames.None, frames.Python, 0},
		{"/home/me/torch/nn/model.py", "forward", frames.User, frames.None, frames.Python, 0},
		{"torch/train.py", "main", frames.User, frames.None, frames.Python, 0},
		{site + "horovod/torch/optim/adam.py", "step", frames.Other, frames.None, frames.Python, 0},

		// Calls of modules are those of a few functions of module.py; a parameter is made as a module is.
		{torch + "nn/modules/module.py", "inner", frames.Plumbing, frames.ModuleWrapper, frames.Python, 0},
		{torch + "nn/modules/module.py", "_slow_forward", frames.Plumbing, frames.ModuleWrapper, frames.Python, 0},
		{torch + "nn/modules/module.py", "zero_grad", frames.Library, frames.None, frames.Python, 0},
		{torch + "nn/modules/module.py", "load_state_dict", frames.Library, frames.ModuleMove, frames.Python, 0},
		{torch + "nn/modules/module.py", "load", frames.Library, frames.ModuleMove, frames.Python, 0},
		{torch + "nn/parameter.py", "__deepcopy__", frames.Library, frames.ModuleInit, frames.Python, 0},
		{torch + "nn/modules/loss.py", "forward", frames.Library, frames.Loss, frames.Python, 0},
		{torch + "nn/modules/loss.py", "__init__", frames.Library, frames.ModuleInit, frames.Python, 0},

		// Optimizers, of whatever package.
		{torch + "optim/lr_scheduler.py", "wrapper", frames.Library, frames.Optimizer, frames.Python, 0},
		{torch + "optim/swa_utils.py", "update_parameters", frames.Library, frames.Optimizer, frames.Python, 0},
		{torch + "optim/swa_utils.py", "__init__", frames.Library, frames.None, frames.Constructor | frames.Python, 0},
		{site + "apex/optimizers/fused_adam.py", "step", frames.Other, frames.Optimizer, frames.Python, 0},

		// The backward pass, also by torch.autograd.grad, before torch 2.3 without _engine_run_backward.
		{torch + "autograd/__init__.py", "grad", frames.Library, frames.Backward, frames.Python, 0},
		{torch + "autograd/__init__.py", "_make_grads", frames.Library, frames.Backward, frames.Python, 0},
		{torch + "autograd/__init__.py", "variable", frames.Library, frames.None, frames.Python, 0},
		{torch + "autograd/function.py", "backward", frames.Library, frames.Backward, frames.Python, 0},
		{torch + "autograd/function.py", "apply", frames.Library, frames.None, frames.Python, 0},
		{"VariableType_1.cpp", "torch::autograd::VariableType::mm(at::Tensor&)", frames.Core,
			frames.Functional, 0, frames.Python},
		{"ProcessGroupNCCL.cpp", "c10d::ProcessGroupNCCL", frames.Native, frames.Distributed, 0, frames.Python},

		// What starts processes is around all that they do.
		{torch + "distributed/run.py", "main", frames.Library, frames.Wrapper, frames.Python, 0},
		{torch + "distributed/elastic/multiprocessing/errors/__init__.py", "wrapper", frames.Library, frames.Wrapper,
			frames.Python, 0},
		{torch + "distributed/distributed_c10d.py", "all_reduce", frames.Library, frames.Distributed, frames.Python, 0},

		// Names.
		{"/home/me/data.py", "__post_init__", frames.User, frames.None, frames.Constructor, frames.CallsOn},
		{"<string>", "__init__", frames.Library, frames.None, frames.CallsOn, frames.Constructor},
		{"<attrs generated init Batch>", "__init__", frames.Library, frames.None, frames.CallsOn, frames.Constructor},
		{"<string>", "<module>", frames.User, frames.None, 0, frames.CallsOn},
		{"<eval_with_key>.3", "forward", frames.Library, frames.None, frames.CallsOn, 0},
		{"fx_generated__2ab3c.py", "forward", frames.Library, frames.None, frames.Forwards, frames.CallsOn},
		{"/tmp/torchinductor_me/ab/cabc.py", "call", frames.Library, frames.None, frames.Python, frames.CallsOn},
		{"/home/me/t.py", "_load_state_dict_into_model", frames.User, frames.None, frames.LoadsModel, 0},
		{"/home/me/t.py", "_load_pretrained_model", frames.User, frames.None, frames.LoadsModel, 0},
		{"/home/me/t.py", "from_pretrained", frames.User, frames.None, frames.LoadsModel, frames.Initializes},
		{"/home/me/t.py", "init_hidden", frames.User, frames.None, frames.Initializes, frames.LoadsModel},
		{"/home/me/t.py", "step_init_fn", frames.User, frames.None, frames.Initializes, frames.Constructor},
		{"/home/me/cublas_workspace.py", "workspace", frames.User, frames.None, 0, frames.Workspace},
		{"/src/doublast.cpp", "make_workspace", frames.Native, frames.None, 0, frames.Workspace},
		{"CublasHandlePool.cpp", "at::cuda::(anonymous namespace)::getNewWorkspace()", frames.Core, frames.None,
			frames.Workspace, 0},
		{"CUDABlas.cpp", "bool at::cuda::blas::gemm_and_bias<float, float>(bool, bool, long)", frames.Core, frames.None,
			frames.Workspace, 0},
		{"Conv_v8.cpp", "at::native::(anonymous namespace)::run_conv_plan(cudnnContext*, at::Tensor const&)", frames.Core,
			frames.None, frames.Workspace, 0},
		{"Conv_v7.cpp", "at::native::(anonymous namespace)::Workspace::Workspace(unsigned long)", frames.Core, frames.None,
			0, frames.Python},
		{"Blas.cpp", "at::native::addmm_out_cuda_impl(at::Tensor&, at::Tensor const&)", frames.Core, frames.None,
			0, frames.Workspace},
		{"/usr/lib/python3/site-packages/transformers/cache_utils.py", "update", frames.Other, frames.None, frames.KVCache,
			0},
		{"/home/me/models/cache_utils_V2.py", "update", frames.User, frames.None, frames.KVCache, 0},
		{"/home/me/models/cache.py", "update", frames.User, frames.None, 0, frames.KVCache},
		{"/usr/lib/python3/site-packages/transformers/core_model_loading.py", "_materialize_copy", frames.Other, frames.None,
			frames.LoadsModel, frames.KVCache},
		{"/opt/rocm/lib/libhipblaslt.so", "getWorkspace", frames.Native, frames.None, frames.Workspace, 0},

		// Windows.
		{`C:\env\Lib\site-packages\torch\nn\functional.py`, "relu", frames.Library, frames.Functional, 0, 0},
		{`C:\env\Lib\site-packages\torch\optim\adam.py`, "step", frames.Library, frames.Optimizer, frames.Python, 0},
		{`C:\env\Lib\site-packages\vllm\worker\cache_engine.py`, "f", frames.Other, frames.None, frames.KVCache, 0},
		{`D:\src\torch\nn\modules\module.py`, "_call_impl", frames.Plumbing, frames.ModuleCall, frames.Python, 0},
		{`C:\Program Files\Python312\Lib\threading.py`, "run", frames.Library, frames.None, frames.CallsOn, 0},
		{`C:\Users\me\miniconda3\envs\ml\lib\copy.py`, "deepcopy", frames.Library, frames.None, frames.Copies, 0},
		{`C:\Users\me\lib\train.py`, "main", frames.User, frames.None, frames.Python, 0},
		{"/usr/lib64/python3.12/threading.py", "run", frames.Library, frames.None, frames.CallsOn, 0},

		// What is not Python.
		{"/usr/bin/python3.10", "Py_BytesMain", frames.Native, frames.None, 0, frames.Python},
		{"/opt/env/bin/python3", "Py_RunMain", frames.Native, frames.None, 0, frames.Python},
		{"/src/ext/layer.cxx", "forward", frames.Native, frames.None, 0, frames.Python},
		{"/src/ext/layer.cc", "forward", frames.Native, frames.None, 0, frames.Python},
		{"/src/ext/kernel.cu", "launch", frames.Native, frames.None, 0, frames.Python},
		{"/lib/x86_64-linux-gnu/libc.so.6", "clone", frames.Core, frames.None, 0, frames.Python},
		{"/home/me/bin/train", "main", frames.User, frames.None, frames.Python, 0},
	} {
		c := frames.Classify(tc.file, tc.name)
		if c.Origin() != tc.origin || c.Part() != tc.part || tc.has != 0 && !c.Has(tc.has) || c.Has(tc.not) {
			t.Errorf("%s %s: origin %d, part %d, %b", tc.file, tc.name, c.Origin(), c.Part(), c)
		}
	}
}

func TestOf(t *testing.T) {
	s := &snapshot.Snapshot{}
	intern := func(file, name string) snapshot.FrameID {
		f := snapshot.Frame{File: s.Strings.Intern([]byte(file)), Name: s.Strings.Intern([]byte(name)), Line: 3}
		return s.Frames.Intern(f)
	}
	ids := []snapshot.FrameID{intern("/home/me/train.py", "main"), intern(site+"torch/optim/adam.py", "step")}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if frames.Of(s, ids[0]).Origin() != frames.User || frames.Of(s, ids[1]).Part() != frames.Optimizer ||
					frames.Of(s, 0).Origin() != frames.Native || frames.Of(s, 0).Has(frames.Python) {
					t.Error("a class changed")
				}
			}
		})
	}
	wg.Wait()
	if late := intern("/home/me/model.py", "forward"); frames.Of(s, late).Origin() != frames.User {
		t.Error("a frame that was added later is not known")
	}
	if got := frames.Function(s, ids[0]); got != "main (train.py)" {
		t.Errorf("Function is %q", got)
	}
}

func TestSymbols(t *testing.T) {
	for symbol, want := range map[string]string{
		"torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)": "AddmmBackward0 (backward)",
		"at::_ops::mm::call(at::Tensor const&, at::Tensor const&)":                     "aten::mm",
		"at::native::structured_mm::impl(int)":                                         "",
	} {
		if got, _ := frames.Operation(symbol); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}

// TestOwn takes an installed package for the program where no frame is of a user's file.
func TestOwn(t *testing.T) {
	for _, tc := range []struct {
		what  string
		stack []string // outermost first
		user  int      // which is the program's
	}{
		{"an entry point", []string{"/env/bin/acme-train <module>", site + "acme_train/cli.py main",
			site + "lightning/trainer.py fit"}, 1},
		{"a module that is run", []string{"<frozen runpy> _run_code", site + "acme/train.py <module>",
			site + "transformers/trainer.py train", torch + "nn/functional.py relu"}, 1},
		{"a worker", []string{site + "ray/_private/workers/default_worker.py <module>", site + "ray/train/f.py run",
			site + "acme/train.py main", site + "transformers/trainer.py train"}, 2},
		{"a package that a user's file calls", []string{"/w/train.py main", site + "acme/train.py main"}, 0},
		{"a server", []string{`C:\env\Scripts\vllm.exe main`, `C:\env\Lib\site-packages\vllm\engine\core.py step`}, 1},
	} {
		s := &snapshot.Snapshot{}
		var ids []snapshot.FrameID
		for _, text := range tc.stack {
			file, name, _ := strings.Cut(text, " ")
			ids = append(ids, s.Frames.Intern(snapshot.Frame{File: s.Strings.Intern([]byte(file)),
				Name: s.Strings.Intern([]byte(name)), Line: 1}))
		}
		inner := slices.Clone(ids)
		slices.Reverse(inner)
		s.Stacks.Intern(inner)
		for i, id := range ids {
			if got := frames.Of(s, id).Origin() == frames.User; got != (i == tc.user) {
				t.Errorf("%s: %s: the user's is %t", tc.what, tc.stack[i], got)
			}
		}
	}
}

// TestCallsLeftOut takes functions of the name forward for modules where their calls are in no stack, or in few.
func TestCallsLeftOut(t *testing.T) {
	const call = torch + "nn/modules/module.py _call_impl"
	for _, tc := range []struct {
		what   string
		stacks [][]string // outermost first; the last ends in a forward
		want   frames.Phase
	}{
		{"left out", [][]string{{"/w/train.py main", "/w/model.py forward"}}, frames.InForward},
		{"but for one", [][]string{{"/w/train.py main", call, "/w/head.py forward"},
			{"/w/train.py main", "/w/a.py forward"}, {"/w/train.py main", "/w/model.py forward"}}, frames.InForward},
		{"all there", [][]string{{"/w/train.py main", call, "/w/model.py forward"},
			{"/w/train.py main", "/w/agent.py forward"}}, frames.InProgram},
	} {
		s := &snapshot.Snapshot{}
		var last []snapshot.FrameID
		for _, stack := range tc.stacks {
			last = nil
			for _, text := range stack {
				file, name, _ := strings.Cut(text, " ")
				last = append(last, s.Frames.Intern(snapshot.Frame{File: s.Strings.Intern([]byte(file)),
					Name: s.Strings.Intern([]byte(name)), Line: 1}))
			}
			inner := slices.Clone(last)
			slices.Reverse(inner)
			s.Stacks.Intern(inner)
		}
		var w frames.Walk
		for _, id := range last {
			w.Enter(frames.Of(s, id))
		}
		if w.Phase() != tc.want {
			t.Errorf("%s: phase %d, want %d", tc.what, w.Phase(), tc.want)
		}
	}
}

// TestNorms tells models of transformers by how their norms by root mean squares compute.
func TestNorms(t *testing.T) {
	const models = "transformers/models/"
	for _, c := range []struct {
		file                   string
		wide, scales, atTheSum bool
	}{
		{models + "llama/modeling_llama.py", false, false, false},
		{models + "gemma2/modeling_gemma2.py", true, false, false},
		{models + "t5/modeling_t5.py", false, true, false},
		{models + "gpt2/modeling_gpt2.py", false, false, true},
		{"gemma2/modeling_gemma2.py", false, false, false},
	} {
		if atTheSum := frames.ReplacesAtSum(c.file); atTheSum != c.atTheSum {
			t.Errorf("%s: a norm's result goes at the sum %v, want %v", c.file, atTheSum, c.atTheSum)
		}
		if wide, scales := frames.WeighsWide(c.file), frames.ScalesGiven(c.file); wide != c.wide || scales != c.scales {
			t.Errorf("%s: weighs in 32 bits %v, scales what it is given %v, want %v and %v", c.file, wide, scales, c.wide, c.scales)
		}
	}
}
