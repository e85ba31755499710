package ghost

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// code knows what kind of code frames and stacks are of.
type code struct {
	s       *snapshot.Snapshot
	running []bool               // frames.Running
	paths   [][]snapshot.FrameID // by stack: its Python frames, outermost first
	sorts   []stackKind          // by stack
}

func newCode(s *snapshot.Snapshot) *code {
	n := s.Stacks.Len() + 1
	return &code{s: s, running: frames.Running(s), paths: make([][]snapshot.FrameID, n), sorts: make([]stackKind, n)}
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

// ofPart is the kind of torch's parts; notYet is that of any of its code.
var ofPart = [frames.NumParts]frameKind{
	frames.ModuleCall:    moduleCall,
	frames.ModuleWrapper: moduleCall,
	frames.ModuleMove:    building,
	frames.ModuleInit:    building,
	frames.Loss:          lossCall,
	frames.Optimizer:     optimizer,
	frames.Backward:      backward,
	frames.Wrapper:       through,
}

func (c *code) kind(id snapshot.FrameID) frameKind {
	class := frames.Of(c.s, id)
	switch {
	case !class.Has(frames.Python):
		return native
	case ofPart[class.Part()] != notYet:
		return ofPart[class.Part()]
	case class.Has(frames.Copies):
		return copying
	case class.Has(frames.CallsOn):
		return through
	case class.IsLibrary():
		return inside
	case class.Has(frames.Constructor|frames.LoadsModel|frames.Initializes) && !c.running[id]:
		return parts
	}
	return plain
}

// path is the Python frames of a stack, outermost first.
func (c *code) path(stack snapshot.StackID) []snapshot.FrameID {
	if p := c.paths[stack]; p != nil {
		return p
	}
	ids := c.s.Stacks.Get(stack)
	p := make([]snapshot.FrameID, 0, len(ids))
	for _, id := range slices.Backward(ids) {
		if c.kind(id) != native {
			p = append(p, id)
		}
	}
	c.paths[stack] = p
	return p
}

// loop is the function that runs a loop in which everything has these outer frames in common,
// false when that is a loop over the parts of a model: over layers, parameters or states.
func (c *code) loop(outer []snapshot.FrameID) (snapshot.FrameID, bool) {
	var innermost snapshot.FrameID
	var walk frames.Walk
	overParts, inLibrary := false, false
	for _, id := range outer {
		if walk.Enter(frames.Of(c.s, id)) {
			overParts, inLibrary = false, false
		}
		switch c.kind(id) {
		case plain:
			if innermost == 0 || !c.byProtocol(id) {
				innermost = id
			}
			inLibrary = false
		case building, copying, parts:
			overParts = true
		case inside, lossCall:
			inLibrary = true // unless it only calls on
		}
	}
	return innermost, innermost != 0 && walk.Phase() == frames.InProgram && !overParts && !inLibrary
}

// byProtocol reports whether Python calls a function by itself, as __getitem__ and __call__: what repeats it is its
// caller.
func (c *code) byProtocol(id snapshot.FrameID) bool {
	name := c.s.Strings.Get(c.s.Frames.Get(id).Name)
	return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// stackKind is what a stack's frames say of the memory that it allocates.
type stackKind uint8

const (
	sorted     stackKind = 1 << iota // the others are known
	inModule                         // inside the forward of a module
	ofModel                          // parameters, buffers and optimizer state: made to stay
	ofLoss                           // inside a loss function
	nameless                         // no Python frames: mostly of a backward pass
	inBackward                       // inside a backward pass
	optimizing                       // inside an optimizer
	ofLoader                         // what torch's DataLoader runs
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
	var walk frames.Walk
	var own stackKind // by the code of the innermost phase
	for _, id := range path {
		class := frames.Of(c.s, id)
		if walk.Enter(class) {
			own = 0
		}
		if class.Part() == frames.Loader {
			k |= ofLoader
		}
		switch c.kind(id) {
		case building:
			own |= ofModel
		case lossCall:
			own |= ofLoss
		}
	}
	switch k |= own; walk.Phase() {
	case frames.InForward, frames.InRecompute:
		if k&ofLoader == 0 { // else a transform that is a module
			k |= inModule
		}
	case frames.InOptimizer:
		k |= ofModel | optimizing
	case frames.InBackward:
		k |= inBackward
	}
	c.sorts[stack] = k
	return k
}

// inForward reports whether outer frames end inside the forward of a module.
func (c *code) inForward(outer []snapshot.FrameID) bool {
	var walk frames.Walk
	for _, id := range outer {
		walk.Enter(frames.Of(c.s, id))
	}
	return walk.Phase() == frames.InForward || walk.Phase() == frames.InRecompute
}

// trains reports whether any stack is of a backward pass or of an optimizer, and whether one is of the latter.
func (c *code) trains() (any, optimizes bool) {
	for id := 1; id <= c.s.Frames.Len(); id++ {
		k := c.kind(snapshot.FrameID(id))
		optimizes = optimizes || k == optimizer
		any = any || k == backward || optimizes
	}
	return any, optimizes
}
