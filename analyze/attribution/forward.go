package attribution

import (
	"regexp"
	"strconv"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// forwardFrame is one entry of forward_frames: the traceback of the forward call whose
// backward allocates, as traceback.format_list writes it.
type forwardFrame struct {
	file, name string
	line       int
}

var forwardLine = regexp.MustCompile(`(?m)^\s*File "([^"\n]+)", line (\d+)(?:, in ([^\n]+))?`)

// forwardFrames reads the joined text of forward_frames, innermost first. Tracebacks have the
// innermost call last.
func forwardFrames(text string) []forwardFrame {
	found := forwardLine.FindAllStringSubmatch(text, -1)
	out := make([]forwardFrame, len(found))
	for i, m := range found {
		line, err := strconv.Atoi(m[2])
		if err != nil {
			line = 0
		}
		out[len(found)-1-i] = forwardFrame{m[1], m[3], line}
	}
	return out
}

// forwardSite is the frame that a forward traceback stands for, as siteFrame for stacks.
func forwardSite(forward []forwardFrame) (forwardFrame, bool) {
	best, rank := forwardFrame{}, frames.Plumbing
	for i, f := range forward {
		if o := frames.Classify(f.file, f.name).Origin(); i == 0 || o > rank {
			best, rank = f, o
		}
	}
	return best, len(forward) > 0
}

// text is a frame as "file:line function" with the file given.
func text(s *snapshot.Snapshot, f snapshot.Frame, file string) string {
	return forwardFrame{name: s.Strings.Get(f.Name), line: int(f.Line)}.text(orUnknown(file))
}

// text is the frame as "file:line function" with the file given.
func (f forwardFrame) text(file string) string {
	if f.line > 0 {
		file += ":" + strconv.Itoa(f.line)
	}
	if f.name != "" {
		file += " " + f.name
	}
	return file
}
