package category

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// origin is the part of a program that a stack belongs to.
type origin uint8

const (
	notYet    origin = iota
	nowhere          // no stack was recorded
	frameless        // recorded, without frames: a thread without Python, mostly autograd's
	scratch          // cuBLAS
	optimizer
	distributed
	caching // key-value caches of inference servers
	loading // Module.to, checkpoints
	building
	backward
	recompute // forward code that runs again inside backward
	forward
	loader
	program
)

// originOf looks at all frames: the most telling one decides.
func originOf(s *snapshot.Snapshot, stack snapshot.StackID) origin {
	switch stack {
	case 0:
		return nowhere
	case snapshot.EmptyStack:
		return frameless
	}
	var saw [program + 1]bool
	for _, id := range s.Stacks.Get(stack) {
		f := s.Frames.Get(id)
		saw[frameOrigin(s.Strings.Get(f.File), s.Strings.Get(f.Name))] = true
	}
	if saw[recompute] && saw[forward] {
		return recompute
	}
	for o := scratch; o < program; o++ {
		if saw[o] && o != recompute {
			return o
		}
	}
	return program
}

func frameOrigin(file, name string) origin {
	torch := ""
	if i := strings.LastIndex(file, "/torch/"); i >= 0 {
		torch = file[i+len("/torch/"):]
	}
	has := strings.HasPrefix
	switch {
	case strings.Contains(name, "ublas") || strings.Contains(name, "CUDABlas") || strings.Contains(file, "ublas"):
		if strings.Contains(name, "orkspace") {
			return scratch
		}
	case has(torch, "optim/lr_scheduler"):
	case has(torch, "optim/"), strings.Contains(file, "/apex/optimizers/"), strings.Contains(file, "/bitsandbytes/optim/"):
		return optimizer
	case has(torch, "distributed/"), has(torch, "nn/parallel/distributed.py"), strings.Contains(name, "ProcessGroupNCCL"):
		return distributed
	case has(torch, "nn/modules/module.py"):
		switch name {
		case "_apply", "to", "cuda", "convert", "to_empty", "_load_from_state_dict", "load_state_dict":
			return loading
		case "_call_impl":
			return forward
		}
	case has(torch, "utils/checkpoint.py"):
		switch name {
		case "recompute_fn", "unpack_hook", "backward":
			return recompute
		}
	case has(torch, "_tensor.py") && name == "backward", has(torch, "autograd/") && strings.Contains(name, "backward"),
		strings.HasPrefix(name, "torch::autograd::Engine"):
		return backward
	case has(torch, "nn/functional.py"), strings.HasPrefix(name, "torch::autograd::VariableType"):
		return forward
	case has(torch, "nn/init.py"), has(torch, "nn/modules/") && (name == "__init__" || name == "reset_parameters"):
		return building
	case has(torch, "utils/data/"):
		return loader
	case torch != "":
	case strings.Contains(name, "kv_cache") && (strings.Contains(name, "alloc") || strings.Contains(name, "init") || strings.Contains(name, "create")),
		strings.HasSuffix(file, "/cache_engine.py"):
		return caching
	case name == "load_state_dict", name == "from_pretrained", strings.HasPrefix(name, "load_weights"), strings.HasPrefix(name, "_load_pretrained"):
		return loading
	case name == "__init__":
		return building
	}
	return program
}
