package attribution

import (
	"fmt"
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

// placeOf says where the blocks of a class belong. The stack decides; where it has no code
// outside of torch, the forward traceback of a backward allocation does, if one was recorded.
func placeOf(s *snapshot.Snapshot, by Kind, c *class) place {
	stack, forward := c.stack, c.forward
	if by == ByModule {
		if path := moduleNames(s, stack, forward); len(path) > 0 {
			name := strings.Join(path, " > ")
			return place{name, name, name, true}
		}
	}
	f, rank, ok := siteFrame(s, stack)
	file, function := s.Strings.Get(f.File), s.Strings.Get(f.Name)
	line, prefix := int(f.Line), ""
	if rank < frames.Other {
		if fr, has := forwardSite(forward); has {
			file, function, line, ok, prefix = fr.file, fr.name, fr.line, true, backwardOf
		}
	}
	if !ok {
		return place{"\x00" + c.noStack, c.noStack, c.noStack, false}
	}
	at := forwardFrame{file, function, line}
	switch {
	case by == ByModule:
		const name = "(outside of module calls)"
		return place{"\x00" + name, name, name, false}
	case prefix == "" && rank <= frames.Native && by == ByFile:
		const name = "(C++)"
		return place{"\x00" + name, name, name, true}
	case prefix == "" && rank <= frames.Native:
		if name := nativeSite(s, stack); name != "" {
			return place{"\x00" + name, name, name, true}
		}
	case by == ByFile:
		short := frames.Short(orUnknown(file))
		return place{prefix + file, prefix + short, prefix + orUnknown(file), true}
	case by == ByFunction:
		at.line = 0
	}
	return place{
		key:  fmt.Sprintf("%s%s\x00%s\x00%d", prefix, file, function, at.line),
		name: prefix + at.text(frames.Base(orUnknown(file))), long: prefix + at.text(frames.Short(orUnknown(file))), known: true,
	}
}

// moduleNames is the path of module calls that a stack lies in, or the forward traceback.
func moduleNames(s *snapshot.Snapshot, stack snapshot.StackID, forward []forwardFrame) []string {
	path := modulePath(s, stack)
	if len(path) == 0 {
		if path = forwardModulePath(forward); len(path) > 0 {
			path[0] = backwardOf + path[0]
		}
	}
	return path
}

const backwardOf = "backward of "

func orUnknown(file string) string {
	if file == "" {
		return "?"
	}
	return file
}

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
