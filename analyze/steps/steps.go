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
	active := t.ActiveBytes()
	named, r := fromAnnotations(s, t), fromLoop(s, t, active)
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
	r.measure(t, active)
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

// measure fills in what each step did to memory.
func (r *Result) measure(t *timeline.Timeline, active []int64) {
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Start, s.Peak, s.End = active[s.First], slices.Max(active[s.First:s.Last+2]), active[s.Last+1]
		s.Growth = s.End - s.Start
	}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Freed >= 0 || l.FreeRequested >= 0 {
			continue
		}
		if at := r.At(int(l.Born)); at >= 0 {
			r.Steps[at].Survivors += l.Rounded
		}
	}
	grew := make([]bool, len(r.Steps))
	for i := range t.Changes {
		if at := r.At(t.Changes[i].Event); at >= 0 && t.Changes[i].Add {
			grew[at] = true
		}
	}
	for i := range r.Steps[:len(r.Steps)/2] {
		if !grew[i] {
			break
		}
		r.Steps[i].WarmUp = true
	}
}
