package steps

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// fromAnnotations takes steps from the record_function scopes of the dump: from the profiler's
// own ProfilerStep#N, else from scopes of a name with a number that changes, else from the end
// of each optimizer step to the next (torch.optim.Optimizer.profile_hook_step names those).
// Scopes outside the trace's time are left out. It is empty without such scopes.
func fromAnnotations(s *snapshot.Snapshot, t *timeline.Timeline) Result {
	begin, end := t.Trace.At(0).Time, t.Trace.At(t.Trace.Len()-1).Time
	if begin == 0 || end < begin {
		return Result{}
	}
	type scope struct {
		name       string
		start, end int64
	}
	kinds := map[string][]scope{}
	open := map[snapshot.StringID]int64{}
	for i := range s.Annotations {
		a := &s.Annotations[i]
		if int(a.Device) != t.Device && a.Device > 0 {
			continue
		}
		if !a.End {
			open[a.Name] = a.Time
			continue
		}
		start, ok := open[a.Name]
		if !ok || a.Time < begin || a.Time > end+1 || a.Time < start {
			continue
		}
		delete(open, a.Name)
		name := s.Strings.Get(a.Name)
		kinds[kindOf(name)] = append(kinds[kindOf(name)], scope{name, start, a.Time})
	}
	best := ""
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
		return Result{}
	}
	scopes := kinds[best]
	slices.SortStableFunc(scopes, func(a, b scope) int { return cmp.Compare(a.end, b.end) })
	var found []Step
	from := 0
	for _, sc := range scopes {
		first := from
		if rank(best) > rankOptimizer {
			first = max(eventAt(t, sc.start), from)
		}
		last := eventAt(t, sc.end+1) - 1
		if last < first {
			continue // nothing was allocated or freed in it
		}
		name := sc.name
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

// kindOf is a scope's name without its number: "ProfilerStep#7" is a "ProfilerStep".
func kindOf(name string) string {
	if strings.HasPrefix(name, "Optimizer.") {
		kind, _, _ := strings.Cut(name, "#")
		return kind
	}
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "#_-: /")
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
	return sort.Search(t.Trace.Len(), func(i int) bool { return t.Trace.At(i).Time >= time })
}
