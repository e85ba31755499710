// Package steps finds the steps of a program in its trace: training steps, batches, prompts.
//
// Where the program named them, in record_function scopes that torch records beside the trace
// (ProfilerStep#N, or Optimizer.step), their number comes from there. But the loop itself shows
// in the stacks too: within one function, code runs from line to line, and when the line goes
// back, a loop has begun again. Find looks for the loop that
//
//   - runs in the program's own code and outside of modules, so that it is not one over layers,
//   - holds most of the trace's allocations, or a third of them where autograd works in it and none of those has more,
//   - finds memory much as it was each time it begins again, a steady growth aside,
//   - and begins most often among those.
//
// The loop gives exact places, the names only times. So where both agree on the number, the
// loop's are taken, and the finding is certain.
package steps

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
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
	active := t.ActiveLevels()
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
func (r *Result) measure(t *timeline.Timeline, active *timeline.Levels) {
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Start, s.End = active.At(s.First-1), active.At(s.Last)
		s.Peak, _ = active.Highest(s.First-1, s.Last)
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

// fromAnnotations takes steps from the record_function scopes of the dump: from the profiler's
// own ProfilerStep#N, else from scopes of a name with a number that changes, else from the end
// of each optimizer step to the next (torch.optim.Optimizer.profile_hook_step names those).
// Scopes outside the trace's time are left out. It is empty without such scopes.
func fromAnnotations(s *snapshot.Snapshot, t *timeline.Timeline) Result {
	begin, end := t.Trace.Time(0), t.Trace.Time(t.Trace.Len()-1)
	if begin == 0 || end < begin {
		return Result{}
	}
	scopes, best := named(s, t.Device, begin, end)
	var found []Step
	from := 0
	for _, sc := range scopes {
		first := from
		if rank(best) > rankOptimizer {
			first = max(eventAt(t, sc.Start), from)
		}
		last := eventAt(t, sc.End+1) - 1
		if last < first {
			continue // nothing was allocated or freed in it
		}
		name := sc.Name
		if rank(best) == rankOptimizer {
			name = ""
		}
		found = append(found, Step{First: first, Last: last, Name: name})
		from = last + 1
	}
	if len(found) < MinSteps {
		return Result{}
	}
	return Result{Steps: found, Unit: best, Source: "annotations", Confidence: finding.High}
}

// NamedScope is a scope that stands for a step, with its times in microseconds since the Unix epoch.
type NamedScope struct {
	Name       string
	Start, End int64
}

// Named lists the scopes that name the steps of a device between two times, in the order of their ends. Where they are
// the optimizer's, a step lasts from the end of one to that of the next.
func Named(s *snapshot.Snapshot, device int, begin, end int64) []NamedScope {
	scopes, best := named(s, device, begin, end)
	if rank(best) == rankOptimizer {
		from := begin
		for i := range scopes {
			scopes[i].Start, from = from, scopes[i].End+1
		}
	}
	return scopes
}

// named is Named with the scopes as they are, and their kind.
func named(s *snapshot.Snapshot, device int, begin, end int64) (scopes []NamedScope, best string) {
	kinds := map[string][]NamedScope{}
	for _, sc := range Scopes(s) {
		if int(sc.Device) != device && sc.Device > 0 || sc.Start == 0 || sc.End < begin || sc.End > end+1 ||
			sc.End < sc.Start {
			continue
		}
		name := s.Strings.Get(sc.Name)
		kinds[KindOf(name)] = append(kinds[KindOf(name)], NamedScope{name, sc.Start, sc.End})
	}
	for kind, scopes := range kinds {
		if len(scopes) < MinSteps || rank(kind) == 0 {
			continue
		}
		if cmp.Or(cmp.Compare(rank(kind), rank(best)), cmp.Compare(len(scopes), len(kinds[best])),
			strings.Compare(best, kind)) > 0 {
			best = kind
		}
	}
	if best == "" {
		return nil, ""
	}
	scopes = kinds[best]
	sorting.Stable(scopes, func(a, b NamedScope) int { return cmp.Compare(a.End, b.End) })
	return scopes, best
}

const (
	rankOptimizer = 1 + iota
	rankUser
	rankProfiler
)

// rank orders kinds of scopes by how well they name steps, 0 is not at all.
func rank(kind string) int {
	lower := strings.ToLower(kind)
	switch {
	case kind == "ProfilerStep":
		return rankProfiler
	case kind == "Optimizer.step":
		return rankOptimizer
	case strings.HasPrefix(kind, "Optimizer."), strings.Contains(lower, "epoch"):
		return 0
	case strings.Contains(lower, "step"), strings.Contains(lower, "batch"), strings.Contains(lower, "iter"):
		return rankUser
	}
	return 0
}

// eventAt is the first event at or after a time.
func eventAt(t *timeline.Timeline, time int64) int {
	return sort.Search(t.Trace.Len(), func(i int) bool { return t.Trace.Time(i) >= time })
}
