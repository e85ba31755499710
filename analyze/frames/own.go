package frames

import (
	"cmp"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// classify works out the classes of all frames. Where none is the user's, the program itself is an installed package,
// and that one's frames are the user's. Where the calls of modules are left out, as in the pages of torch's viewer
// (_memory_viz.py _frame_filter), a function of the name forward stands for one.
func classify(s *snapshot.Snapshot) {
	all := make([]Class, s.Frames.Len()+1)
	users := false
	type texts struct{ file, name snapshot.StringID }
	known := map[texts]Class{} // lines of one function are of one class
	for id := range all {      // the first is the empty frame
		f := s.Frames.Get(snapshot.FrameID(id))
		c, ok := known[texts{f.File, f.Name}]
		if !ok {
			c = Classify(s.Strings.Get(f.File), s.Strings.Get(f.Name))
			known[texts{f.File, f.Name}] = c
		}
		all[id] = c
		users = users || all[id].Origin() == User
	}
	if leavesOutCalls(s, all) {
		for id := range all {
			if all[id].Has(Forwards) && all[id].Origin() >= Library {
				all[id] |= Called
			}
		}
	}
	if !users {
		if own := ownPackage(s, all); own != "" {
			for id := range all {
				if all[id].Origin() == Other && packageOf(s, snapshot.FrameID(id)) == own {
					all[id] += Class(User - Other)
				}
			}
		}
	}
	notes := s.Frames.Notes()
	for id, c := range all {
		notes[id].Store(uint32(c))
	}
}

// isModules tells a module's own function by its name. Those of frameworks are mostly around a whole model.
func (c Class) isModules() bool {
	return c.Has(Forwards) && (c.Origin() == User || c.Origin() == Library)
}

// leavesOutCalls reports whether most stacks that are in a module's own function have no call of a module.
func leavesOutCalls(s *snapshot.Snapshot, all []Class) bool {
	with, without := 0, 0
	for stack := range s.Stacks.Len() {
		forward, call := false, false
		for _, id := range s.Stacks.Get(snapshot.StackID(stack + 1)) {
			forward = forward || all[id].isModules()
			call = call || all[id].Part() == ModuleCall || all[id].Part() == ModuleWrapper
		}
		switch {
		case call:
			with++
		case forward:
			without++
		}
	}
	return without > with
}

// ownPackage is the installed package that most stacks begin in, apart from those that only start programs; "" where
// there is none.
func ownPackage(s *snapshot.Snapshot, all []Class) string {
	counts := map[string]int{}
	names := make([]string, len(all))
	for id := range all {
		if all[id].Origin() == Other {
			names[id] = packageOf(s, snapshot.FrameID(id))
		}
	}
	best := ""
	for stack := range s.Stacks.Len() {
		for _, id := range slices.Backward(s.Stacks.Get(snapshot.StackID(stack + 1))) {
			if all[id].Origin() != Other {
				continue
			}
			if name := names[id]; name != "" && !slices.Contains(starters[:], name) {
				counts[name]++
				if name != best && cmp.Or(cmp.Compare(counts[name], counts[best]), strings.Compare(best, name)) > 0 {
					best = name
				}
				break
			}
		}
	}
	return best
}

// starters are packages that start programs of others: runners, servers, consoles, command lines, tests, debuggers.
var starters = [...]string{"IPython", "_pytest", "absl", "accelerate", "celery", "click", "colab", "dask", "debugpy",
	"distributed", "fire", "google", "gunicorn", "horovod", "hydra", "ipykernel", "ipykernel_launcher", "joblib",
	"line_profiler", "memory_profiler", "papermill", "pluggy", "pydevd", "pyspark", "pytest", "ray", "scalene",
	"starlette", "submitit", "tornado", "traitlets", "typer", "uvicorn", "viztracer"}

// packageOf names the installed package that a frame is of, "" for none.
func packageOf(s *snapshot.Snapshot, id snapshot.FrameID) string {
	name, _, _ := strings.Cut(cut(s.Strings.Get(s.Frames.Get(id).File)).installed, "/")
	return strings.TrimSuffix(name, ".py")
}
