package ghost

import (
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/snapshot"
)

// code knows what kind of code frames and stacks are of. Frames have no module and no class
// (snapshot/SPEC.md 2.9), so that all of it goes by file and function names.
type code struct {
	s     *snapshot.Snapshot
	kinds []frameKind          // by frame
	paths [][]snapshot.FrameID // by stack: its Python frames, outermost first
	sorts []stackKind          // by stack
}

func newCode(s *snapshot.Snapshot) *code {
	return &code{s: s, kinds: make([]frameKind, s.Frames.Len()+1), paths: make([][]snapshot.FrameID, s.Stacks.Len()+1),
		sorts: make([]stackKind, s.Stacks.Len()+1)}
}

type frameKind uint8

const (
	notYet     frameKind = iota
	native               // C++, or the interpreter
	plain                // the program's own code, or a library's
	through              // decorators and thread starters, which only call on
	moduleCall           // torch.nn.Module.__call__
	backward             // a call of the autograd engine
	optimizer            // inside an optimizer
	building             // torch making or moving a module
	copying              // deepcopy and pickle, which loop over parts
	lossCall             // a loss function of torch
	inside               // any other code of torch or of the standard library
	parts                // a constructor or a loader, which loop over parts
)

func (c *code) kind(id snapshot.FrameID) frameKind {
	k := c.kinds[id]
	if k == notYet {
		k = c.frameKind(id)
		c.kinds[id] = k
	}
	return k
}

func (c *code) frameKind(id snapshot.FrameID) frameKind {
	f := c.s.Frames.Get(id)
	file, name := c.s.Strings.Get(f.File), c.s.Strings.Get(f.Name)
	torch := ""
	if i := strings.LastIndex(file, "torch/"); i >= 0 && (i == 0 || file[i-1] == '/') {
		torch = file[i+len("torch/"):]
	}
	has := func(prefix string) bool { return strings.HasPrefix(torch, prefix) }
	switch {
	case !attribution.IsPython(file):
		return native
	case has("nn/modules/module.py"):
		switch name {
		case "_apply", "to", "cuda", "convert", "to_empty", "_load_from_state_dict", "load_state_dict", "load":
			return building
		}
		return moduleCall
	case has("nn/init.py"), has("nn/modules/") && (name == "__init__" || name == "reset_parameters"), has("nn/parameter.py"):
		return building
	case has("nn/modules/loss.py"), has("nn/functional.py") && (strings.Contains(name, "loss") || strings.Contains(name, "entropy")):
		return lossCall
	case has("optim/"):
		return optimizer
	case has("autograd/graph.py"), has("autograd/__init__.py"), has("_tensor.py") && name == "backward":
		return backward
	case has("utils/_contextlib.py"), has("autograd/grad_mode.py"), has("amp/"), has("_dynamo/"), has("_compile.py"), has("profiler/"),
		has("autograd/profiler.py"), has("distributed/run.py"), has("distributed/launcher/"), has("distributed/elastic/"), has("multiprocessing/"):
		return through
	case attribution.IsLibrary(c.s, id):
		switch attribution.Base(file) {
		case "copy.py", "pickle.py":
			return copying
		case "threading.py", "thread.py", "runpy.py", "contextlib.py", "functools.py", "base_events.py", "events.py", "runners.py", "process.py", "popen_fork.py":
			return through
		}
		if strings.HasPrefix(file, "<frozen") {
			return through
		}
		return inside
	case name == "__init__", strings.Contains(name, "load_state_dict"), strings.Contains(name, "load_weights"),
		strings.Contains(name, "_init_") || strings.HasPrefix(name, "init_"):
		return parts
	}
	return plain
}

// path is the Python frames of a stack, outermost first.
func (c *code) path(stack snapshot.StackID) []snapshot.FrameID {
	if p := c.paths[stack]; p != nil {
		return p
	}
	frames := c.s.Stacks.Get(stack)
	p := make([]snapshot.FrameID, 0, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		if c.kind(frames[i]) != native {
			p = append(p, frames[i])
		}
	}
	c.paths[stack] = p
	return p
}

// loop is the function that runs a loop in which everything has these outer frames in common,
// false when that is a loop over the parts of a model: over layers, parameters or states.
func (c *code) loop(outer []snapshot.FrameID) (snapshot.FrameID, bool) {
	var innermost snapshot.FrameID
	for _, id := range outer {
		switch c.kind(id) {
		case plain:
			innermost = id
		case through:
		default:
			return 0, false
		}
	}
	return innermost, innermost != 0
}

// stackKind is what a stack's frames say of the memory that it allocates.
type stackKind uint8

const (
	inModule stackKind = 1 << iota // inside the forward of a module
	ofModel                        // parameters, buffers and optimizer state: made to stay
	ofLoss                         // inside a loss function
	nameless                       // no Python frames: mostly of a backward pass
	sorted                         // the others are known
)

func (c *code) sort(stack snapshot.StackID) stackKind {
	k := c.sorts[stack]
	if k != 0 {
		return k
	}
	k = sorted
	path := c.path(stack)
	if len(path) == 0 {
		k |= nameless
	}
	for _, id := range path {
		switch c.kind(id) {
		case moduleCall:
			k |= inModule
		case optimizer, building:
			k |= ofModel
		case lossCall:
			k |= ofLoss
		}
	}
	c.sorts[stack] = k
	return k
}

// trains reports whether any stack is of a backward pass or of an optimizer.
func (c *code) trains() bool {
	for id := 1; id <= c.s.Frames.Len(); id++ {
		if k := c.kind(snapshot.FrameID(id)); k == backward || k == optimizer {
			return true
		}
	}
	return false
}
