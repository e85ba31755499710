package attribution

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// frame is a frame of a stack, or of forward_frames: the traceback of the forward call whose
// backward allocates, as traceback.format_list writes it.
type frame struct {
	file, name string
	line       int
	class      frames.Class
}

func frameOf(s *snapshot.Snapshot, id snapshot.FrameID) frame {
	f := s.Frames.Get(id)
	return frame{s.Strings.Get(f.File), s.Strings.Get(f.Name), int(f.Line), frames.Of(s, id)}
}

// framesOf gives the frames of a stack, innermost first.
func framesOf(s *snapshot.Snapshot, stack snapshot.StackID) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		for _, id := range s.Stacks.Get(stack) {
			if !yield(frameOf(s, id)) {
				return
			}
		}
	}
}

var forwardLine = regexp.MustCompile(`(?m)^\s*File "([^"\n]+)", line (\d+)(?:, in ([^\n]+))?`)

// forwardFrames reads the joined text of forward_frames, innermost first. Tracebacks have the
// innermost call last.
func forwardFrames(text string) []frame {
	found := forwardLine.FindAllStringSubmatch(text, -1)
	out := make([]frame, len(found))
	for i, m := range found {
		line, err := strconv.Atoi(m[2])
		if err != nil {
			line = 0
		}
		out[len(found)-1-i] = frame{m[1], m[3], line, frames.Classify(m[1], m[3])}
	}
	return out
}

// text is the frame as "file:line function" with the file given.
func (f frame) text(file string) string {
	file = cmp.Or(file, "?")
	if f.line > 0 {
		file += ":" + strconv.Itoa(f.line)
	}
	if f.name != "" {
		file += " " + f.name
	}
	return file
}

func (f frame) base() string  { return f.text(frames.Base(f.file)) }
func (f frame) short() string { return f.text(frames.Short(f.file)) }

func (f frame) matches(re *regexp.Regexp) bool {
	return re.MatchString(f.text(f.file)) || re.MatchString(f.short())
}

// site is the frame that a stack stands for, as Site has it; false without frames.
func site(all iter.Seq[frame]) (best frame, ok bool) {
	for f := range all {
		if !ok || f.class.Origin() > best.class.Origin() {
			best, ok = f, true
		}
		if best.class.Origin() == frames.User {
			break
		}
	}
	return best, ok
}

// Site is the frame that a stack stands for: the innermost one of the user's own code, or
// else of another library than torch, or else the innermost one at all: "model.py:26
// forward". A stack of C++ alone goes by the backward function or the operator that it is in:
// "AddmmBackward0 (backward)". It is empty when the stack has no frames.
func Site(s *snapshot.Snapshot, stack snapshot.StackID) string {
	f, ok := site(framesOf(s, stack))
	if !ok {
		return ""
	}
	if f.class.Origin() <= frames.Native {
		if name := nativeSite(s, stack); name != "" {
			return name
		}
		f.name = frames.CppName(f.name)
	}
	return f.base()
}

// Line is where a stack is in a function of a file with this base name, "train.py:31", or else where its Site is. It is
// empty where that has no line.
func Line(s *snapshot.Snapshot, stack snapshot.StackID, function, file string) string {
	best, ok := site(framesOf(s, stack))
	for f := range framesOf(s, stack) {
		if f.name == function && frames.Base(f.file) == file {
			best, ok = f, true
			break
		}
	}
	if !ok || best.line <= 0 || !best.class.Has(frames.Python) {
		return ""
	}
	best.name = ""
	return best.base()
}

// Place is Site in a sentence: a stack without frames is "code with no recorded stack".
func Place(s *snapshot.Snapshot, stack snapshot.StackID) string { return Placed(Site(s, stack)) }

// Placed puts a site in a sentence: "from " + Placed(site).
func Placed(site string) string { return cmp.Or(site, "code with no recorded stack") }

// Allocated is what a sentence says of the memory of a site: "most of it " + Allocated(site).
func Allocated(site string) string {
	if site == "" {
		return "has no recorded stack"
	}
	return "was allocated at " + site
}

// nativeSite names a stack of nothing but C++, which threads of the backward pass have: by the
// backward function that it is in, else by the outermost operator. Symbols are those that the
// unwinder found, which without debug information may be of a neighbor. It is empty when
// neither is there.
func nativeSite(s *snapshot.Snapshot, stack snapshot.StackID) string {
	found := ""
	for _, id := range s.Stacks.Get(stack) {
		name := s.Frames.Text(snapshot.TextOperation, id, func() string {
			name, _ := frames.Operation(s.Strings.Get(s.Frames.Get(id).Name))
			return name
		})
		if strings.HasSuffix(name, " (backward)") {
			return name
		}
		found = cmp.Or(name, found)
	}
	return found
}

// Frames is a stack for people, innermost first: "file:line function". Frames that every
// stack has and that say nothing are left out (snapshot/SPEC.md 2.9), unless nothing else is
// there, and the folders above an installed package are cut off. The last line of a stack of more than maxFrames, or
// of texts of more than maxStackText bytes, says how many frames are left out.
func Frames(s *snapshot.Snapshot, stack snapshot.StackID) []string {
	ids := visible(s, stack, frames.Core)
	out := make([]string, 0, min(len(ids), maxFrames+1))
	bytes := 0
	for i, id := range ids {
		text := s.Frames.Text(snapshot.TextShort, id, func() string { return frameOf(s, id).short() })
		if bytes += len(text); i == maxFrames || bytes > maxStackText {
			return append(out, fmt.Sprintf("(%s left out)", units.Plural(len(ids)-i, "further frame")))
		}
		out = append(out, text)
	}
	return out
}

const (
	maxFrames    = 1000 // Python's own limit on recursion
	maxStackText = 64 << 10
)

// visible lists the frames of a stack from an origin on, innermost first; when there are none,
// those of the next lower one that it has.
func visible(s *snapshot.Snapshot, stack snapshot.StackID, least frames.Origin) []snapshot.FrameID {
	ids := s.Stacks.Get(stack)
	best := frames.Plumbing
	for _, id := range ids {
		best = max(best, frames.Of(s, id).Origin())
	}
	least = min(least, best)
	return slices.DeleteFunc(slices.Clone(ids), func(id snapshot.FrameID) bool {
		return frames.Of(s, id).Origin() < least
	})
}

// FrameText is a frame for people, "file:line function": without the folders above an
// installed package, and of C++ symbols only the name.
func FrameText(s *snapshot.Snapshot, id snapshot.FrameID) string {
	return s.Frames.Text(snapshot.TextPeople, id, func() string { return frameOf(s, id).forPeople() })
}

func (f frame) forPeople() string { return f.words(f.class.Has(frames.Python)) }

func (f frame) words(python bool) string {
	if python || f.name == "" {
		return f.short()
	}
	f.name = frames.CppName(f.name)
	if f.file == "" || f.file == "??" {
		return f.name
	}
	return f.base()
}

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
		case instead == "" && f.class.Origin() != frames.Plumbing:
			instead = at + " " + f.name
		}
	}
	end()
	return path
}
