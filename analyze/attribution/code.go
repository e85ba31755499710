package attribution

import (
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Code is where memory comes from: a stack, or why there is none, and the forward traceback that torch noted beside it.
type Code struct{ classKey }

// Codes tells which code allocated the blocks of a device.
type Codes struct {
	classes
	t *timeline.Timeline
}

// NewCodes knows nothing yet of the blocks of t.
func NewCodes(s *snapshot.Snapshot, t *timeline.Timeline) *Codes {
	return &Codes{classes{s: s, q: &Query{}, traced: t.Trace.Len() > 0, all: map[classKey]*class{}}, t}
}

// Of gives the code of a row of Timeline.Lives.
func (c *Codes) Of(row int32) Code {
	l := &c.t.Lives[row]
	label := snapshot.LabelID(0)
	if l.Born >= 0 && c.s.Labels.Len() > 0 {
		label = c.t.Trace.At(int(l.Born)).Label
	}
	return Code{c.of(l, label).classKey}
}

// Names gives the site of a code and its path of module calls as Hold names them, the latter "" outside of any. Known is
// false for code of which nothing was recorded; the site says so then.
func (c *Codes) Names(code Code) (site, module string, known bool) {
	v := c.all[code.classKey]
	at := placeOf(c.s, BySite, v)
	return at.name, strings.Join(moduleNames(c.s, v.stack, v.forward), " > "), at.known
}

// Frame is a call in a stack. File is without the folders above an installed package, Line 0 where it is unknown.
type Frame struct {
	File, Name string
	Line       int32
	Origin     frames.Origin
}

// Text is the frame for people, as FrameText has it.
func (f Frame) Text() string {
	python := f.Origin != frames.Native && f.Origin != frames.Core && f.File != ""
	return frame{file: f.File, name: f.Name, line: int(f.Line)}.words(python)
}

// Frames are the calls of a code, innermost first, without those that say nothing: of a backward pass without frames of
// its own those of the forward traceback, below a frame of no file that is named Backward.
func (c *Codes) Frames(code Code) []Frame {
	var out []Frame
	for _, id := range visible(c.s, code.stack, frames.Core) {
		out = append(out, frameOf(c.s, id).public())
	}
	if v := c.all[code.classKey]; len(out) == 0 && len(v.forward) > 0 {
		out = append(out, Frame{Name: Backward})
		for _, f := range v.forward {
			out = append(out, f.public())
		}
	}
	return out
}

// Backward is the name of the frame that stands for a backward pass.
const Backward = "(backward)"

func (f frame) public() Frame {
	return Frame{frames.Short(f.file), f.name, int32(f.line), f.class.Origin()}
}

// SumOf is one block.
func SumOf(l *timeline.Life) (sum Sum) {
	sum.add(l)
	return sum
}
