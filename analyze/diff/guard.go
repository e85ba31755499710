package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/frames"
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
	Settings GuardKind = "settings"  // of the allocator
	Backend  GuardKind = "backend"   // the kind of device
	Writer   GuardKind = "writer"    // the release of torch
	Rank     GuardKind = "rank"      // another rank of a distributed run, by the names of the files
	Device   GuardKind = "device"    // another GPU of a process
	Moment   GuardKind = "moment"    // another moment
	NoTrace  GuardKind = "no-trace"  // no history: the peak is unknown
	Bound    GuardKind = "bound"     // events are missing, so that the peak is not exact
	Late     GuardKind = "late"      // memory from before the trace: the peak may have been earlier
	NoStacks GuardKind = "no-stacks" // most memory has no recorded stack
	Place    GuardKind = "place"     // other code runs at the peak: a part of the program that was not the largest before
	Cut      GuardKind = "cut"       // the smaller groups are summed up by purpose, as a report has them
	Steps    GuardKind = "steps"     // another number of steps was recorded
	Runs     GuardKind = "runs"      // of several runs of a side, some differ in rank, settings, moment or history
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
	number := func(n int) string {
		if n < 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	x, y := settings(&a.Settings, &b.Settings)
	unlike(Settings, x, y)
	unlike(Backend, a.Writer.Backend, b.Writer.Backend)
	unlike(Writer, a.Writer.Text, b.Writer.Text)
	x, y = number(snapshot.NamedRank(a.Name)), number(snapshot.NamedRank(b.Name))
	add(Rank, x != "" && y != "" && x != y, x, y)
	add(Device, a.Device != b.Device, number(a.Device), number(b.Device))
	add(Moment, kind(a.At) != kind(b.At), a.At, b.At)
	add(NoTrace, !a.HasHistory || !b.HasHistory, yes(!a.HasHistory), yes(!b.HasHistory))
	peaks := a.At == "peak" && b.At == "peak"
	x, y = yes(a.HasHistory && !a.Bounds.Exact()), yes(b.HasHistory && !b.Bounds.Exact())
	add(Bound, peaks && x+y != "", x, y)
	add(Late, peaks && (a.Late || b.Late), yes(a.Late), yes(b.Late))
	x, y = r.tops()
	add(Place, peaks && x != "", x, y)
	add(NoStacks, stackless(a) || stackless(b), yes(stackless(a)), yes(stackless(b)))
	add(Cut, a.IsCut() || b.IsCut(), yes(a.IsCut()), yes(b.IsCut()))
	add(Steps, len(a.Steps) > 0 && len(b.Steps) > 0 && len(a.Steps) != len(b.Steps), number(len(a.Steps)),
		number(len(b.Steps)))
	return out
}

// unlikeRuns are the numbers, from 1 on, of the runs of a side whose figures are not those of the run that stands for
// it: of another rank, with other settings, or of another kind of moment.
func unlikeRuns(runs []*footprint.Footprint, median *footprint.Footprint) string {
	var out []string
	for i, f := range runs {
		for _, g := range guards(&Result{A: median, B: f}) {
			if slices.Contains([]GuardKind{Settings, Backend, Rank, Moment}, g.Kind) ||
				g.Kind == NoTrace && f.HasHistory != median.HasHistory {
				out = append(out, strconv.Itoa(i+1))
				break
			}
		}
	}
	return strings.Join(out, ", ")
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

// tops are the places that run at the two moments, where they are not the same: other functions, or the same ones called
// from elsewhere, of which the callers are told.
func (r *Result) tops() (a, b string) {
	if r.A.Top < 0 || r.B.Top < 0 || r.partners == nil { // nil where the two have not been matched
		return "", ""
	}
	x, y := &r.A.Groups[r.A.Top], &r.B.Groups[r.B.Top]
	if !x.Known || !y.Known || x.Stack < 0 || y.Stack < 0 || r.partners[x.Stack] == y.Stack {
		return "", ""
	}
	const here, there = 1, 2
	sides := map[function]int{}
	for i := range r.A.Frames {
		sides[r.moves.function(placeOf(&r.A.Frames[i]).function)] |= here
	}
	for i := range r.B.Frames {
		sides[placeOf(&r.B.Frames[i]).function] |= there
	}
	both := func(f function) bool { return sides[f] == here|there }
	from := callers(r.A, x.Stack, func(v *attribution.Frame) bool { return both(r.moves.function(placeOf(v).function)) })
	to := callers(r.B, y.Stack, func(v *attribution.Frame) bool { return both(placeOf(v).function) })
	for i := range min(len(from), len(to)) {
		p, q := r.moves.of(placeOf(from[i])), placeOf(to[i])
		if p.function != q.function || i > 0 && p != q { // a function may peak at another of its lines
			if x.Site != y.Site {
				return x.Site, y.Site
			}
			return siteOf(from[i]), siteOf(to[i])
		}
	}
	return "", ""
}

// callers are the frames of a stack from the place on that it stands for, innermost first: of that, those of the same kind
// of code that are kept.
func callers(f *footprint.Footprint, stack int32, keep func(v *attribution.Frame) bool) []*attribution.Frame {
	at := f.Place(stack)
	out := []*attribution.Frame{at}
	for _, row := range f.Stacks[stack] {
		if v := &f.Frames[row]; v != at && v.Origin == at.Origin && keep(v) {
			out = append(out, v)
		}
	}
	return out
}

func siteOf(f *attribution.Frame) string {
	return fmt.Sprintf("%s:%d %s", frames.Base(f.File), f.Line, f.Name)
}
