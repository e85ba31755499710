package frames

import "strings"

// Part is a part of torch, or code elsewhere that takes its place.
type Part uint8

const (
	None          Part = iota
	ModuleCall         // torch.nn.Module._call_impl
	ModuleWrapper      // what calls it since torch 2.0, or stands between it and forward
	ModuleMove         // moving a module, or loading its state
	ModuleInit         // making a module, or a parameter
	Loss               // its module, or its function
	Functional         // an operator as forward code calls it
	Optimizer          // of torch or of another package, and what schedules its rate: that wraps its step
	Distributed
	Recompute // activation checkpoints, as they run forward again
	Backward  // a call of the autograd engine, its thread, or a function that it calls
	Wrapper   // decorators and starters of processes, as torchrun, which only call on
	Loader    // torch.utils.data
	NumParts
)

// torchFiles says which part of torch a file is, the first line that fits. The files are
// prefixes of paths below the folder torch, the names those of functions, any if there are
// none; *name* is any with that in it.
var torchFiles = [...]struct {
	file, names string
	part        Part
}{
	{"nn/modules/module.py", "_call_impl", ModuleCall},
	{"nn/modules/module.py", "_wrapped_call_impl inner _slow_forward", ModuleWrapper},
	{"nn/modules/module.py", "_apply to cuda convert to_empty load_state_dict load _load_from_state_dict", ModuleMove},
	{"nn/init.py", "", ModuleInit},
	{"nn/modules/", "__init__ reset_parameters", ModuleInit},
	{"nn/parameter.py", "", ModuleInit},
	{"nn/modules/loss.py", "", Loss},
	{"nn/functional.py", "*loss* *entropy*", Loss},
	{"nn/functional.py", "", Functional},
	{"nn/parallel/distributed.py", "", Distributed},
	{"optim/swa_utils.py", "__init__", None}, // averages of weights begin as models, and are no state of an optimizer's
	{"optim/", "", Optimizer},
	{"distributed/run.py", "", Wrapper},
	{"distributed/launch.py", "", Wrapper},
	{"distributed/launcher/", "", Wrapper},
	{"distributed/elastic/", "", Wrapper},
	{"distributed/", "", Distributed},
	{"_tensor.py", "backward", Backward},
	{"autograd/grad_mode.py", "", Wrapper},
	{"autograd/profiler.py", "", Wrapper},
	{"autograd/__init__.py", "grad _make_grads", Backward},
	{"autograd/", "*backward*", Backward},
	{"_functorch/_aot_autograd/", "*backward*", Backward},
	{"utils/checkpoint.py", "recompute_fn unpack_hook backward", Recompute},
	{"utils/data/", "", Loader},
	{"utils/_contextlib.py", "", Wrapper},
	{"amp/", "", Wrapper},
	{"_dynamo/", "", Wrapper},
	{"_compile.py", "", Wrapper},
	{"profiler/", "", Wrapper},
	{"multiprocessing/", "", Wrapper},
}

func partOf(p path, name string) Part {
	if p.torch != "" {
		for i := range torchFiles {
			if r := &torchFiles[i]; strings.HasPrefix(p.torch, r.file) && fits(r.names, name) {
				return r.part
			}
		}
	}
	switch {
	case containsAny(p.file, "/apex/optimizers/", "/bitsandbytes/optim/"):
		return Optimizer
	case strings.HasPrefix(p.installed, "transformers/utils/") && containsAny(name, "wrapper", "wrapped"): // as of deprecate_kwarg
		return Wrapper
	case strings.Contains(name, "ProcessGroupNCCL"):
		return Distributed
	case strings.HasPrefix(name, "torch::autograd::Engine"):
		return Backward
	case strings.HasPrefix(name, "torch::autograd::VariableType"):
		return Functional
	}
	return None
}

// fits matches a function against the names of a line of torchFiles.
func fits(names, name string) bool {
	for word := range strings.FieldsSeq(names) {
		if part, ok := strings.CutPrefix(word, "*"); word == name || ok && strings.Contains(name, part[:len(part)-1]) {
			return true
		}
	}
	return names == ""
}
