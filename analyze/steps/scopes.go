package steps

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Scope is a record_function scope of the program, or of torch: "ProfilerStep#3", "rollout" (snapshot/SPEC.md 2.7).
type Scope struct {
	Name   snapshot.StringID
	Device int32 // that the thread worked with, below 0 for none
	// Start and End are microseconds since the Unix epoch; 0 is an end that was not recorded, because it was not
	// reached, or lies before the recording.
	Start, End int64
}

// Scopes pairs the ends of the scopes that the dump has, as a stack by device and name, in the order of what comes
// last of each.
func Scopes(s *snapshot.Snapshot) []Scope {
	type key struct {
		name   snapshot.StringID
		device int32
	}
	var out []Scope
	open := map[key][]int{} // of starts
	closed := make([]bool, len(s.Annotations))
	for i := range s.Annotations {
		a := &s.Annotations[i]
		k := key{a.Name, a.Device}
		if !a.End {
			open[k] = append(open[k], i)
			continue
		}
		sc := Scope{Name: a.Name, Device: a.Device, End: a.Time}
		if n := len(open[k]); n > 0 {
			at := open[k][n-1]
			open[k], closed[at] = open[k][:n-1], true
			sc.Start = s.Annotations[at].Time
		}
		out = append(out, sc)
	}
	for i := range s.Annotations {
		if a := &s.Annotations[i]; !a.End && !closed[i] {
			out = append(out, Scope{Name: a.Name, Device: a.Device, Start: a.Time})
		}
	}
	return out
}

// Within gives the annotations of the scopes that lie between two times in part or in full, in their order.
func Within(all []snapshot.Annotation, begin, end int64) []snapshot.Annotation {
	type key struct {
		name   snapshot.StringID
		device int32
	}
	open := map[key][]int{} // of starts
	keep := make([]bool, len(all))
	for i := range all {
		a := &all[i]
		k := key{a.Name, a.Device}
		if !a.End {
			open[k] = append(open[k], i)
			continue
		}
		start := i
		if n := len(open[k]); n > 0 {
			start = open[k][n-1]
			open[k] = open[k][:n-1]
		}
		if a.Time >= begin && all[start].Time <= end {
			keep[i], keep[start] = true, true
		}
	}
	for _, starts := range open {
		for _, i := range starts {
			keep[i] = all[i].Time <= end
		}
	}
	var out []snapshot.Annotation
	for i := range all {
		if keep[i] {
			out = append(out, all[i])
		}
	}
	return out
}

// KindOf is a scope's name without its number: "ProfilerStep#7" is a "ProfilerStep".
func KindOf(name string) string {
	if strings.HasPrefix(name, "Optimizer.") {
		kind, _, _ := strings.Cut(name, "#")
		return kind
	}
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "#_-: /")
}
