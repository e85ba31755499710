package category

import (
	"github.com/snapana/snapana/analyze/frames"
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
		saw[frameOrigin(frames.Of(s, id))] = true
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

// ofPart is what parts of torch are for; notYet is nothing that would tell.
var ofPart = [frames.NumParts]origin{
	frames.Optimizer:        optimizer,
	frames.OtherOptimizer:   optimizer,
	frames.Launcher:         distributed,
	frames.Distributed:      distributed,
	frames.ProcessGroup:     distributed,
	frames.ModuleMove:       loading,
	frames.ModuleInit:       building,
	frames.ModuleCall:       forward,
	frames.LossFunction:     forward,
	frames.Functional:       forward,
	frames.VariableType:     forward,
	frames.Recompute:        recompute,
	frames.Backward:         backward,
	frames.BackwardFunction: backward,
	frames.EngineThread:     backward,
	frames.Loader:           loader,
}

func frameOrigin(c frames.Class) origin {
	part := c.Part()
	switch {
	case c.Has(frames.Workspace):
		return scratch
	case c.Has(frames.Cublas):
	case ofPart[part] != notYet:
		return ofPart[part]
	case c.IsLibrary():
	case c.Has(frames.KVCache):
		return caching
	case c.Has(frames.LoadsModel):
		return loading
	case c.Has(frames.Constructor):
		return building
	}
	return program
}
