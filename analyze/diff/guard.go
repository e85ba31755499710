package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/snapshot"
)

// Guard is something else in which the sides differ, or what one of them lacks, so that the difference of their memory
// may not be that of their programs.
type Guard struct {
	Kind GuardKind `json:"kind"`
	A    string    `json:"a"` // what it is on each side, "" for nothing
	B    string    `json:"b"`
}

// GuardKind is what a guard is about.
type GuardKind string

const (
	Backend  GuardKind = "backend"   // the kind of device
	Writer   GuardKind = "writer"    // the release of torch
	Settings GuardKind = "settings"  // of the allocator
	Late     GuardKind = "late"      // memory from before the trace: the peak may have been earlier
	NoTrace  GuardKind = "no-trace"  // no history: the peak is unknown
	NoStacks GuardKind = "no-stacks" // most memory has no recorded stack
	Moment   GuardKind = "moment"    // another moment
	Place    GuardKind = "place"     // other code runs at the peak: a part of the program that was not the largest before
	Steps    GuardKind = "steps"     // another number of steps was recorded
)

func guards(r *Result) []Guard {
	a, b := r.A, r.B
	var out []Guard
	add := func(kind GuardKind, differ bool, x, y string) {
		if differ {
			out = append(out, Guard{kind, x, y})
		}
	}
	unlike := func(kind GuardKind, x, y string) { add(kind, x != y, x, y) }
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return ""
	}
	kind := func(at string) string { // "step" of step:3
		kind, _, _ := strings.Cut(at, ":")
		return kind
	}
	add(Moment, kind(a.At) != kind(b.At), a.At, b.At)
	unlike(Backend, a.Writer.Backend, b.Writer.Backend)
	unlike(Writer, a.Writer.Text, b.Writer.Text)
	x, y := settings(&a.Settings, &b.Settings)
	unlike(Settings, x, y)
	add(NoTrace, !a.HasHistory || !b.HasHistory, yes(!a.HasHistory), yes(!b.HasHistory))
	add(Late, a.At == "peak" && a.Late != b.Late, yes(a.Late), yes(b.Late))
	x, y = r.tops()
	add(Place, a.At == "peak" && b.At == "peak" && x != "", x, y)
	add(NoStacks, stackless(a) || stackless(b), yes(stackless(a)), yes(stackless(b)))
	add(Steps, len(a.Steps) > 0 && len(b.Steps) > 0 && len(a.Steps) != len(b.Steps), fmt.Sprint(len(a.Steps)),
		fmt.Sprint(len(b.Steps)))
	return out
}

// settings gives what differs, as "key:value" of each side. A file without settings is not compared.
func settings(a, b *snapshot.Settings) (x, y string) {
	if !a.Present || !b.Present {
		return "", ""
	}
	only := func(of, other []snapshot.Setting) string {
		var out []string
		for _, s := range of {
			if !slices.Contains(other, s) {
				out = append(out, s.Key+":"+s.Value)
			}
		}
		return strings.Join(out, ", ")
	}
	return only(a.Values, b.Values), only(b.Values, a.Values)
}

// stackless reports whether most of a side's memory has no stack. The backward pass has none with stacks="python".
func stackless(f *footprint.Footprint) bool {
	var with int64
	for i := range f.Groups {
		if g := &f.Groups[i]; g.Stack >= 0 {
			with += g.Rounded
		}
	}
	return with < f.Totals.Active/2
}

// tops are the places that run at the two moments, where they are not the same.
func (r *Result) tops() (a, b string) {
	if r.A.Top < 0 || r.B.Top < 0 || len(r.A.Groups) == 0 || len(r.B.Groups) == 0 {
		return "", ""
	}
	x, y := &r.A.Groups[r.A.Top], &r.B.Groups[r.B.Top]
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.A == x && p.B != nil && p.B.Stack == y.Stack {
			return "", ""
		}
	}
	at, there := r.A.Place(x.Stack), r.B.Place(y.Stack)
	if !x.Known || !y.Known || at == nil || there == nil || at.Name == there.Name {
		return "", ""
	}
	return x.Site, y.Site
}
