package steps

import (
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// MinSteps is the smallest number of steps that is called a loop.
const MinSteps = 3

// Step is one step, of the events First..Last.
type Step struct {
	First int    `json:"first_event"`
	Last  int    `json:"last_event"`
	Name  string `json:"name"` // as the program called it, "" when it did not

	// Peak is the highest number of active bytes in the step, Start and End those before its
	// first event and after its last, Growth the difference.
	Peak   int64 `json:"peak"`
	Start  int64 `json:"start"`
	End    int64 `json:"end"`
	Growth int64 `json:"-"`
	// Survivors are rounded bytes that were allocated in the step and live at the trace's end.
	Survivors int64 `json:"survivors"`
	// WarmUp marks the leading steps in which reserved memory still grew.
	WarmUp bool `json:"warm_up"`
}

// Result is what is known about the steps of one device.
type Result struct {
	Unit   string `json:"unit"`   // what a step is: "ProfilerStep", "iteration of train (train.py:31)"
	Source string `json:"source"` // "annotations", "loop", "both", "" without steps
	// Confidence is High where the program named the steps, Medium where its stacks alone tell.
	Confidence finding.Confidence `json:"confidence"`
	Steps      []Step             `json:"list"`
}

// Find looks for the steps of one device. The result is empty when there are none, or too few
// to tell.
func Find(s *snapshot.Snapshot, t *timeline.Timeline) Result {
	if t.Trace.Len() == 0 {
		return Result{}
	}
	sw := newSweep(t)
	named, r := fromAnnotations(s, t), fromLoop(s, t, sw)
	switch apart := len(r.Steps) - len(named.Steps); {
	case len(named.Steps) == 0:
	case len(r.Steps) == 0 || apart < -1 || apart > 1: // at each end the trace may have a part of a step
		r = named
	default:
		r.Source, r.Confidence = "both", named.Confidence
		for i := range r.Steps {
			if apart == 0 {
				r.Steps[i].Name = named.Steps[i].Name
			}
		}
	}
	measure(t, sw, r.Steps)
	return r
}

// At is the step that an event belongs to, -1 for none.
func (r *Result) At(event int) int {
	i, found := slices.BinarySearchFunc(r.Steps, event, func(s Step, e int) int { return s.First - e })
	if !found {
		i--
	}
	if i < 0 || event > r.Steps[i].Last {
		return -1
	}
	return i
}

// sweep has what is needed to add up memory event by event: the row of the life that it ends, or -1.
type sweep []int32

func newSweep(t *timeline.Timeline) sweep {
	sw := sweep(slices.Repeat([]int32{-1}, t.Trace.Len()))
	for i := range t.Lives {
		if e := t.Lives[i].Freed; e >= 0 {
			sw[e] = int32(i)
		}
	}
	return sw
}

// walk calls f after each event with the active bytes and, where the event began a life, its
// row, else -1.
func (sw sweep) walk(t *timeline.Timeline, f func(event int, active int64, born int32)) {
	active := t.Initial.Active
	next := 0
	for next < len(t.Lives) && t.Lives[next].Born < 0 {
		next++
	}
	for e := range sw {
		if row := sw[e]; row >= 0 {
			active -= t.Lives[row].Rounded
		}
		born := int32(-1)
		if next < len(t.Lives) && int(t.Lives[next].Born) == e {
			born = int32(next)
			active += t.Lives[next].Rounded
			next++
		}
		f(e, active, born)
	}
}

// measure fills in what each step did to memory.
func measure(t *timeline.Timeline, sw sweep, steps []Step) {
	at, before := 0, t.Initial.Active
	sw.walk(t, func(e int, active int64, born int32) {
		for at < len(steps) && e > steps[at].Last {
			at++
		}
		if at < len(steps) && e >= steps[at].First {
			s := &steps[at]
			if e == s.First {
				s.Start, s.Peak = before, before
			}
			s.Peak = max(s.Peak, active)
			s.End = active
			if born >= 0 && t.Lives[born].Freed < 0 && t.Lives[born].FreeRequested < 0 {
				s.Survivors += t.Lives[born].Rounded
			}
		}
		before = active
	})
	grew := make([]bool, len(steps))
	i := 0
	for c := range t.Changes {
		for i < len(steps) && t.Changes[c].Event > steps[i].Last {
			i++
		}
		if i < len(steps) && t.Changes[c].Add && t.Changes[c].Event >= steps[i].First {
			grew[i] = true
		}
	}
	warm := true
	for i := range steps {
		steps[i].Growth = steps[i].End - steps[i].Start
		warm = warm && grew[i] && i < len(steps)/2
		steps[i].WarmUp = warm
	}
}
