package frames_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/frames"
)

// TestWalk tells what the program does at the innermost frame. Stacks are outermost first, "file name" each.
func TestWalk(t *testing.T) {
	const (
		call    = torch + "nn/modules/module.py _wrapped_call_impl|" + torch + "nn/modules/module.py _call_impl|"
		step    = torch + "optim/optimizer.py wrapper|"
		back    = torch + "_tensor.py backward|" + torch + "autograd/graph.py _engine_run_backward|"
		compile = torch + "_dynamo/eval_frame.py compile_wrapper|"
		closure = site + "lightning/pytorch/plugins/precision/precision.py _wrap_closure|" +
			site + "lightning/pytorch/loops/optimization/automatic.py closure|"
	)
	for _, tc := range []struct {
		what, stack string
		want        frames.Phase
	}{
		{"nothing", "", frames.InProgram},
		{"the program", "/w/train.py main|/w/train.py train", frames.InProgram},
		{"a module", "/w/train.py main|" + call + "/w/model.py forward", frames.InForward},
		{"an operator in it", "/w/train.py main|" + call + torch + "nn/functional.py relu", frames.InForward},
		{"a hook", "/w/train.py main|" + call + "/w/hooks.py keep", frames.InForward},
		{"an optimizer", "/w/train.py main|" + step + torch + "optim/adamw.py step|" + torch + "optim/adamw.py _init_group",
			frames.InOptimizer},
		{"an optimizer under a schedule", torch + "optim/lr_scheduler.py wrapper|" + site +
			"accelerate/optimizer.py step|" + step + torch + "optim/sgd.py step", frames.InOptimizer},
		{"an optimizer of one's own", step + "/w/lion.py step|/w/lion.py update", frames.InOptimizer},
		{"a closure", "/w/train.py main|" + step + torch + "optim/lbfgs.py step|" + torch +
			"utils/_contextlib.py decorate_context|/w/train.py closure", frames.InProgram},
		{"a closure of one's own optimizer", step + "/w/lion.py step|/w/train.py closure|/w/train.py loss",
			frames.InProgram},
		{"a framework's closure", step + torch + "optim/adam.py step|" + closure + "/w/train.py training_step",
			frames.InProgram},
		{"a module in a closure", step + torch + "optim/adam.py step|" + closure + "/w/train.py training_step|" + call +
			"/w/model.py forward", frames.InForward},
		{"backward in a closure", step + torch + "optim/adam.py step|" + closure + back, frames.InBackward},
		{"an optimizer in a hook of backward", back + "/w/train.py hook|" + step + torch + "optim/sgd.py step",
			frames.InOptimizer},
		{"a checkpoint", back + torch + "utils/checkpoint.py backward|" + call + "/w/model.py forward", frames.InRecompute},
		{"a checkpoint in the engine's thread", torch + "utils/checkpoint.py unpack_hook|" + torch +
			"utils/checkpoint.py recompute_fn|" + call + "/w/model.py forward", frames.InRecompute},
		{"another package's checkpoint", torch + "autograd/function.py apply|" + torch +
			"autograd/function.py backward|" + site + "megatron/core/tensor_parallel/random.py backward|" + call +
			"/w/model.py forward", frames.InRecompute},
		{"a function of one's own", torch + "autograd/function.py apply|/w/loss.py backward|/w/loss.py tile", frames.InBackward},
		{"that under native frames", "libc.so.6 __clone|?? ??|" + torch + "autograd/function.py apply|/w/loss.py backward",
			frames.InBackward},
		{"its forward", "/w/train.py main|" + call + "/w/model.py forward|" + torch + "autograd/function.py apply|/w/loss.py forward",
			frames.InForward},
		{"its forward outside of modules", "/w/train.py main|" + torch + "autograd/function.py apply|/w/loss.py forward",
			frames.InProgram},
		{"what save_on_cpu brings back", torch + "autograd/graph.py unpack_from_cpu", frames.InBackward},
		{"backward in forward", "/w/train.py main|" + call + "/w/model.py forward|" + torch + "autograd/__init__.py grad",
			frames.InBackward},
		{"a compiled module", "/w/train.py train|" + call + compile + "/w/model.py forward", frames.InForward},
		{"a compiled module of torch", "/w/train.py train|" + call + compile + torch + "nn/modules/linear.py forward",
			frames.InForward},
		{"a compiled module that calls", "/w/train.py train|" + call + compile + call + "/w/model.py forward",
			frames.InForward},
		{"a compiled function", "/w/train.py train|" + call + compile + "/w/train.py train_step", frames.InProgram},
		{"a module in a compiled function", call + compile + "/w/train.py train_step|" + call + "/w/model.py forward",
			frames.InForward},
		{"compiled backward code", torch + "autograd/function.py apply_boxed|" + torch +
			"_functorch/_aot_autograd/runtime_wrappers.py backward|" + torch + "_dynamo/eval_frame.py _fn|" +
			"<eval_with_key>.5 forward", frames.InBackward},
		{"the engine in C++", "engine.cpp torch::autograd::Engine::thread_main(int)", frames.InBackward},
	} {
		var w frames.Walk
		for f := range strings.SplitSeq(strings.Trim(tc.stack, "|"), "|") {
			if file, name, ok := strings.Cut(f, " "); ok {
				w.Enter(frames.Classify(file, name))
			}
		}
		if got := w.Phase(); got != tc.want {
			t.Errorf("%s: phase %d, want %d", tc.what, got, tc.want)
		}
	}
}
