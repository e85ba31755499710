package attribution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// place is the code that a group of blocks stands for.
type place struct {
	key   string // tells it from all others
	name  string // short
	long  string // for when short names coincide
	known bool
}

// named is a place that goes by its name alone.
func named(name string, known bool) place { return place{"\x00" + name, name, name, known} }

// placeOf says where the blocks of a class belong. The stack decides; where it has no code
// outside of torch, the forward traceback of a backward allocation does, if one was recorded.
func placeOf(s *snapshot.Snapshot, by Kind, c *class) place {
	if by == ByModule {
		if path := moduleNames(s, c.stack, c.forward); len(path) > 0 {
			return named(strings.Join(path, " > "), true)
		}
	}
	f, ok := site(framesOf(s, c.stack))
	prefix := ""
	if f.class.Origin() < frames.Other {
		if forward, has := site(slices.Values(c.forward)); has {
			f, ok, prefix = forward, true, backwardOf
		}
	}
	isNative := prefix == "" && f.class.Origin() <= frames.Native
	switch {
	case !ok:
		return named(c.noStack, false)
	case by == ByModule:
		return named("(outside of module calls)", false)
	case isNative && by == ByFile:
		return named("(C++)", true)
	case isNative:
		if name := nativeSite(s, c.stack); name != "" {
			return named(name, true)
		}
	case by == ByFile:
		file := cmp.Or(f.file, "?")
		return place{prefix + f.file, prefix + frames.Short(file), prefix + file, true}
	case by == ByFunction:
		f.line = 0
	}
	return place{
		key:  fmt.Sprintf("%s%s\x00%s\x00%d", prefix, f.file, f.name, f.line),
		name: prefix + f.base(), long: prefix + f.short(), known: true,
	}
}

// moduleNames is the path of module calls that a stack lies in, or the forward traceback.
func moduleNames(s *snapshot.Snapshot, stack snapshot.StackID, forward []frame) []string {
	path := modulePath(slices.Collect(framesOf(s, stack)))
	if len(path) == 0 {
		if path = modulePath(forward); len(path) > 0 {
			path[0] = backwardOf + path[0]
		}
	}
	return path
}

const backwardOf = "backward of "

// streamName names streams by their order of first appearance; handles are addresses that
// differ from run to run.
func streamName(s *snapshot.Snapshot, id snapshot.StreamID) string {
	if id == 0 {
		return "stream 0 (the default)"
	}
	return fmt.Sprintf("stream %d (0x%x)", id, s.Streams.Handle(id))
}

func poolName(r *timeline.Range) string {
	name := r.Pool.String()
	if r.Kind != snapshot.KindUnknown {
		name += ", " + r.Kind.String() + " requests"
	}
	if r.Expandable {
		name += ", expandable"
	}
	return name
}

// modulePath names the nn.Module calls that a stack lies in, outermost first. Stacks have no
// names of modules or classes, only co_name, so that a module is known by the line at which
// its forward was: "model.py:55" called what is next, and the last line is where the innermost
// module was itself. Modules of a list that one line calls in a loop look the same.
//
// Every call goes through module.py _call_impl (torch/nn/modules/module.py); the first frame
// called forward after it is the module's own. Where there is none, because a hook or a
// wrapper ran instead, the first other frame is taken, with its function's name.
func modulePath(all []frame) (path []string) {
	called := false // a module whose forward was not seen yet
	instead := ""   // the first other frame after the call
	end := func() {
		if called && instead != "" {
			path = append(path, instead)
		}
	}
	for _, f := range slices.Backward(all) {
		at := frame{file: f.file, line: f.line}.base()
		switch {
		case f.class.IsModuleCall():
			end()
			called, instead = true, ""
		case !called || !f.class.Has(frames.Python):
		case f.name == "forward":
			path, called = append(path, at), false
		case instead == "" && !f.class.InModuleFile():
			instead = at + " " + f.name
		}
	}
	end()
	return path
}
