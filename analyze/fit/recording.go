package fit

import (
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// recording is one file, ready to be aligned with others.
type recording struct {
	*Input
	label     string // the file's name, see labels
	program   *whatif.Program
	stacks    []int32 // the number of each stack, which the same code has in every file
	rowStacks []int32 // see stackOf
	steps     steps.Result
	warm      int     // rows from before the trace
	bounds    []int   // rows with which steps begin, and the rows' end
	gives     []int32 // by event, the row that the program frees with it, -1 for none
	codes     *attribution.Codes
	uses      *category.Table // see categories
	phases    []string        // by stack, see phase
	cut       cut
}

// categories are what its memory is for.
func (r *recording) categories() *category.Table {
	if r.uses == nil {
		r.uses = category.Find(r.Snapshot, r.Timeline, &r.steps, nil)
	}
	return r.uses
}

func newRecording(in *Input, label string, c *codes) *recording {
	r := &recording{Input: in, label: label, program: whatif.NewProgram(in.Snapshot, in.Timeline), stacks: c.number(in.Snapshot)}
	r.prepare()
	return r
}

// labels are the files' names, with their places among the files where several have the same.
func labels(inputs []*Input) []string {
	count := map[string]int{}
	for _, in := range inputs {
		count[in.Snapshot.Name]++
	}
	out := make([]string, len(inputs))
	for i, in := range inputs {
		if out[i] = in.Snapshot.Name; count[out[i]] > 1 {
			out[i] = fmt.Sprintf("%s (file %d)", out[i], i+1)
		}
	}
	return out
}

// stackOf is the number of a row's code. Scratch memory of a sum has one of its own: it comes and goes with the values, and
// few other requests of the autograd engine tell by their stack what they are.
func (r *recording) stackOf(row int) int32 { return r.rowStacks[row] }

// isScratch reports whether a row is what a kernel sums in by several blocks of threads, told by what follows: it is asked for
// with semaphores, the row behind it, which are given up first, and then it is, with nothing between.
func (r *recording) isScratch(row int) bool {
	lives := r.Timeline.Lives
	if row+1 >= len(lives) {
		return false
	}
	sum, semaphores := &lives[row], &lives[row+1]
	const most, waits = 1 << 16, 2 // bytes of semaphores; events for each that is freed
	born, first, last := sum.Born, semaphores.GivenUp(), sum.GivenUp()
	return born >= 0 && semaphores.Born == born+1 && first == born+2 && first < last && last <= first+waits &&
		semaphores.Requested%4 == 0 && semaphores.Requested <= min(most, sum.Requested) && sum.Stack == semaphores.Stack
}

// codes numbers stacks of several files.
type codes struct {
	frames map[frameKey]int32
	stacks map[string]int32

	anyLine bool // a function's frames are the same, on whatever line
	python  bool // of stacks only the frames of Python count
}

type frameKey struct {
	file, name string
	line       int32
}

// number numbers the stacks of a file. Frames of the interpreter are left out: how it calls itself changes within a run.
func (c *codes) number(s *snapshot.Snapshot) []int32 {
	ids := make([]int32, s.Frames.Len()+1)
	for i := 1; i <= s.Frames.Len(); i++ {
		id := snapshot.FrameID(i)
		class := frames.Of(s, id)
		if class.Origin() == frames.Plumbing || c.python && !class.Has(frames.Python) {
			continue
		}
		f := s.Frames.Get(id)
		k := frameKey{frames.Short(s.Strings.Get(f.File)), s.Strings.Get(f.Name), f.Line}
		if c.anyLine && class.Has(frames.Python) {
			k.line = 0
		}
		n, ok := c.frames[k]
		if !ok {
			n = int32(len(c.frames)) + 1
			c.frames[k] = n
		}
		ids[i] = n
	}
	out := make([]int32, s.Stacks.Len()+1)
	var key []byte
	for i := range out {
		key = key[:0]
		for _, id := range s.Stacks.Get(snapshot.StackID(i)) {
			if n := ids[id]; n > 0 {
				key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
			}
		}
		n, ok := c.stacks[string(key)]
		if !ok {
			n = int32(len(c.stacks))
			c.stacks[string(key)] = n
		}
		out[i] = n
	}
	return out
}

// prepare finds the steps of a recording.
func (r *recording) prepare() {
	t := r.Timeline
	r.rowStacks = make([]int32, len(t.Lives))
	scratch := false
	for row := range t.Lives {
		behind := scratch
		n := r.stacks[t.Lives[row].Stack]
		if scratch = r.isScratch(row); scratch || behind {
			n = ^n
		}
		r.rowStacks[row] = n
	}
	for r.warm < len(t.Lives) && t.Lives[r.warm].Born < 0 {
		r.warm++
	}
	r.steps = steps.Find(r.Snapshot, t)
	row := r.warm
	for _, st := range r.steps.Steps {
		for row < len(t.Lives) && int(t.Lives[row].Born) < st.First {
			row++
		}
		r.bounds = append(r.bounds, row)
	}
	if len(r.bounds) == 0 {
		r.bounds = []int{r.warm}
	}
	r.bounds = append(r.bounds, len(t.Lives))
	r.gives = make([]int32, t.Trace.Len())
	for i := range r.gives {
		r.gives[i] = -1
	}
	for row := range t.Lives {
		if at := t.Lives[row].GivenUp(); at >= 0 {
			r.gives[at] = int32(row)
		}
	}
	r.cut = r.findCut()
}

// span is a range of rows.
type span struct{ from, to int }

func (r *recording) before() span    { return span{r.warm, r.bounds[0]} }
func (r *recording) step(i int) span { return span{r.bounds[i], r.bounds[i+1]} }
func (r *recording) numSteps() int   { return len(r.bounds) - 1 }

// stretches are what comes before the steps, and each of them.
func (r *recording) stretches() []span {
	out := []span{r.before()}
	for i := range r.numSteps() {
		out = append(out, r.step(i))
	}
	return out
}

// gatherSteps makes one step of as many as the value says where all recordings have so many times more of them as it is higher:
// what was found are the items of a batch that a step goes over one by one. A recording with steps of another kind than all others
// has one.
func gatherSteps(all []*recording) {
	first := all[0]
	for _, r := range all {
		alone := !slices.ContainsFunc(all, func(o *recording) bool { return o != r && o.steps.Unit == r.steps.Unit })
		if alone && len(all) > 1 && !r.failed() {
			r.bounds = []int{r.warm, len(r.Timeline.Lives)}
		}
	}
	if len(all) < 2 || len(first.At) > 1 || first.At[0] < 2 {
		return
	}
	steps := int64(first.numSteps()) / first.At[0]
	for _, r := range all {
		if r.At[0] < 2 || int64(r.numSteps()) != steps*r.At[0] {
			return
		}
	}
	for _, r := range all {
		var bounds []int
		for i := 0; i < r.numSteps(); i += int(r.At[0]) {
			bounds = append(bounds, r.bounds[i])
		}
		r.bounds = append(bounds, r.bounds[len(r.bounds)-1])
	}
}
