package attribution

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
)

// modulePath names the nn.Module calls that a stack lies in, outermost first. Stacks have no
// names of modules or classes, only co_name, so that a module is known by the line at which
// its forward was: "model.py:55" called what is next, and the last line is where the innermost
// module was itself. Modules of a list that one line calls in a loop look the same.
//
// Every call goes through module.py _call_impl (torch/nn/modules/module.py); the first frame
// called forward after it is the module's own. Where there is none, because a hook or a
// wrapper ran instead, the first other frame is taken, with its function's name.
func modulePath(all []frame) []string {
	var w moduleWalk
	for _, f := range slices.Backward(all) {
		w.enter(f)
	}
	return w.end()
}

// moduleWalk reads the frames of a stack, outermost first.
type moduleWalk struct {
	path          []string
	called, found bool   // a module was called; its forward was seen
	instead       string // the first other frame after the call
}

func (w *moduleWalk) enter(f frame) {
	at := frame{file: f.file, line: f.line}.base()
	switch {
	case f.class.IsModuleCall():
		w.end()
		w.called, w.found, w.instead = true, false, ""
	case !w.called || w.found || !f.class.Has(frames.Python):
	case f.name == "forward":
		w.path, w.found = append(w.path, at), true
	case w.instead == "" && !f.class.InModuleFile():
		w.instead = at + " " + f.name
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
