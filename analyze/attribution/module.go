package attribution

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// modulePath names the nn.Module calls that a stack lies in, outermost first. Stacks have no
// names of modules or classes, only co_name, so that a module is known by the line at which
// its forward was: "model.py:55" called what is next, and the last line is where the innermost
// module was itself. Modules of a list that one line calls in a loop look the same.
//
// Every call goes through module.py _call_impl (torch/nn/modules/module.py); the first frame
// called forward after it is the module's own. Where there is none, because a hook or a
// wrapper ran instead, the first other frame is taken, with its function's name.
func modulePath(s *snapshot.Snapshot, stack snapshot.StackID) []string {
	ids := s.Stacks.Get(stack)
	var w moduleWalk
	for i := len(ids) - 1; i >= 0; i-- {
		f := s.Frames.Get(ids[i])
		w.enter(s.Strings.Get(f.File), s.Strings.Get(f.Name), int(f.Line))
	}
	return w.end()
}

// forwardModulePath is modulePath for a forward traceback.
func forwardModulePath(frames []forwardFrame) []string {
	var w moduleWalk
	for _, f := range slices.Backward(frames) {
		w.enter(f.file, f.name, f.line)
	}
	return w.end()
}

// moduleWalk reads the frames of a stack, outermost first.
type moduleWalk struct {
	path          []string
	called, found bool   // a module was called; its forward was seen
	instead       string // the first other frame after the call
}

func (w *moduleWalk) enter(file, name string, line int) {
	switch {
	case isModuleCall(file, name):
		if name == "_call_impl" {
			w.end()
			w.called, w.found, w.instead = true, false, ""
		}
	case !w.called || w.found || !IsPython(file):
	case name == "forward":
		w.path, w.found = append(w.path, moduleName(file, line)), true
	case w.instead == "" && !strings.HasSuffix(file, moduleFile):
		w.instead = moduleName(file, line) + " " + name
	}
}

// end closes the call that is open, and gives the path.
func (w *moduleWalk) end() []string {
	if w.called && !w.found && w.instead != "" {
		w.path = append(w.path, w.instead)
		w.found = true
	}
	return w.path
}

const moduleFile = "torch/nn/modules/module.py"

// isModuleCall recognises the two wrappers of torch 2.0 and later, or the one of before.
func isModuleCall(file, name string) bool {
	return (name == "_call_impl" || name == "_wrapped_call_impl") && strings.HasSuffix(file, moduleFile)
}

func moduleName(file string, line int) string {
	return forwardFrame{line: line}.text(Base(file))
}
