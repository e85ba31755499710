package ghost

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Late is memory of many steps that was given back at once, again and again, at places of the
// program that have nothing to do with it: garbage in reference cycles, which waits for
// Python's collector. A buffer that the program itself empties is emptied at one place, which
// is not inside a module's forward when the buffer was not filled there.
type Late struct {
	finding.Late
	Waited []snapshot.StackID // what waited, most bytes first
	Events []int              // the first frees of each, at most 8
}

// The limits of FindLate.
const (
	minReleases = 3    // times that memory is given back
	minWaiting  = 3    // steps of which it is, each time
	elsewhere   = 0.67 // share of the times that were inside a module, or had a place of their own
	together    = 0.8  // share of what outlives its step that goes so
)

// release is what one stack loses between two allocations of the main thread.
type release struct {
	steps map[int]bool
	bytes int64
	count int64
	event int32 // the first free
}

// releases are by place in the main thread's allocations.
type releases map[int]*release

// at is the release at a place, with one more event.
func (m releases) at(place int, event int32) *release {
	if m[place] == nil {
		m[place] = &release{steps: map[int]bool{}, event: event}
	}
	m[place].event = min(m[place].event, event)
	return m[place]
}

// FindLate looks for memory that is freed late, nil when there is none. It needs steps.
func FindLate(s *snapshot.Snapshot, t *timeline.Timeline, st *steps.Result) *Late {
	if len(st.Steps) < minReleases*minWaiting {
		return nil
	}
	c := newCode(s)
	at := func(e int32) int {
		return sort.Search(len(st.Steps), func(i int) bool { return st.Steps[i].First > int(e) }) - 1
	}
	type key struct {
		stack snapshot.StackID
		step  int // of the free
	}
	waited, bursts := map[key]int{}, map[snapshot.StackID]int{}
	lateOf := map[snapshot.StackID][]int32{}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Freed < 0 || l.Stack <= snapshot.EmptyStack ||
			l.Freed-l.Born < int32(st.Steps[0].Last-st.Steps[0].First) {
			continue
		}
		if from, to := at(l.Born), at(l.Freed); from >= 0 && to-from >= 2 && c.sort(l.Stack)&ofModel == 0 {
			k := key{l.Stack, to}
			if waited[k]++; waited[k] == minWaiting {
				bursts[l.Stack]++
			}
			lateOf[l.Stack] = append(lateOf[l.Stack], int32(i))
		}
	}
	maps.DeleteFunc(bursts, func(_ snapshot.StackID, n int) bool { return n < minReleases })
	if len(bursts) == 0 {
		return nil
	}
	k := newClock(s, t, c, survey(s, t, int32(t.Trace.Len()-1)), nil)
	all := releases{}
	var out Late
	bytes := map[snapshot.StackID]int64{}
	for _, stack := range slices.Sorted(maps.Keys(bursts)) {
		mine, ok := k.releases(stack, lateOf[stack], at)
		if !ok {
			continue
		}
		out.Waited = append(out.Waited, stack)
		for place, r := range mine {
			maps.Copy(all.at(place, r.event).steps, r.steps)
			all[place].bytes += r.bytes
			out.Blocks += r.count
			bytes[stack] += r.bytes
		}
	}
	if len(out.Waited) == 0 {
		return nil
	}
	sorting.Stable(out.Waited, func(a, b snapshot.StackID) int { return cmp.Compare(bytes[b], bytes[a]) })
	for _, r := range all {
		out.Moments++
		out.Steps, out.Bytes = max(out.Steps, len(r.steps)), max(out.Bytes, units.Size(r.bytes))
		out.Events = append(out.Events, int(r.event))
	}
	out.Stacks, out.Site = len(out.Waited), attribution.Site(s, out.Waited[0])
	out.Peak = units.Size(t.PeakActive.Bytes)
	slices.Sort(out.Events)
	out.Events = out.Events[:min(8, len(out.Events))]
	return &out
}

// releases groups the frees of a stack by where in the main thread's allocations they came,
// and reports whether they look like a collector's.
func (k *clock) releases(stack snapshot.StackID, rows []int32, at func(int32) int) (releases, bool) {
	q, t := k.main, k.t
	out := releases{}
	for _, row := range rows {
		l := &t.Lives[row]
		r := out.at(q.find(l.Freed), l.Freed)
		r.steps[at(l.Born)] = true
		r.bytes += l.Rounded
		r.count++
	}
	many, inMany := releases{}, int64(0)
	places := map[snapshot.StackID]bool{}
	foreign := 0
	for place, r := range out {
		if len(r.steps) < minWaiting || place == 0 {
			continue
		}
		many[place] = r
		inMany += r.count
		before := t.Lives[q.rows[place-1]].Stack
		places[before] = true
		if place < len(q.rows) && k.code.sort(stack)&inModule == 0 {
			if k.code.inForward(k.code.path(before)[:q.common[place-1]]) {
				foreign++
			}
		}
	}
	return many, len(many) >= minReleases && float64(max(len(places), foreign)) >= elsewhere*float64(len(many)) &&
		float64(inMany) >= together*float64(len(rows))
}

// OneOff is memory of one stack that was allocated in the trace and lives at its end, and that
// does not grow. It is no accusation: inputs, caches and results are of this kind.
type OneOff struct {
	Stack snapshot.StackID `json:"-"`
	Site  string           `json:"site"` // of Stack, "" without frames
	Count int64            `json:"count"`
	Bytes int64            `json:"bytes"`       // rounded
	First int              `json:"first_event"` // of the first birth
}

// The limits of OneOffs: how many there are at most, and the least share of the active memory.
const (
	maxOneOffs  = 10
	oneOffShare = 0.05
)

// OneOffs lists large survivors that no growth has and that do not wait for Python's collector
// (late, nil for none), most bytes first. Parameters, optimizer state and what was allocated
// without Python frames are left out.
func OneOffs(s *snapshot.Snapshot, t *timeline.Timeline, growths []Growth, late *Late) []OneOff {
	c := newCode(s)
	horizon := int32(t.Trace.Len() - 1)
	var accused []snapshot.StackID
	for i := range growths {
		accused = append(accused, growths[i].Stacks...)
	}
	if late != nil {
		accused = append(accused, late.Waited...)
	}
	byStack := map[snapshot.StackID]*OneOff{}
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born < 0 || l.Stack <= snapshot.EmptyStack || end(l, horizon) != none ||
			l.Requested == frames.WorkspaceSize {
			continue
		}
		o := byStack[l.Stack]
		if o == nil {
			o = &OneOff{Stack: l.Stack, First: int(l.Born)}
			byStack[l.Stack] = o
		}
		o.Count++
		o.Bytes += l.Rounded
	}
	out := []OneOff{}
	for stack, o := range byStack {
		if float64(o.Bytes) >= oneOffShare*float64(t.Final.Active) && !slices.Contains(accused, stack) &&
			c.sort(stack)&(ofModel|nameless) == 0 {
			out = append(out, *o)
		}
	}
	sorting.By(out, func(a, b OneOff) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.First, b.First))
	})
	out = out[:min(len(out), maxOneOffs)]
	for i := range out {
		out[i].Site = attribution.Site(s, out[i].Stack)
	}
	return out
}
