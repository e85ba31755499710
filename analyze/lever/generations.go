package lever

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sorting"
)

// A result that is kept in a variable until the next one is assigned shows as two lives of one stack and size that
// overlap: the older is freed soon after the newer is made. Between them the program went around a loop outside of
// all modules, so that this is no chain of layers; what else the older result kept, such as its graph, goes with it.

// turn is a change of generations.
type turn struct {
	call        int32 // the event before the iteration that makes the newer
	freed, last int32 // the burst of frees in which the older goes
}

// Bounds on the stacks and sizes that are tried at a peak, and on the peaks: where a loop is cut, the same may be left
// in another.
const (
	mostKeys   = 8
	mostRounds = 6
)

func (f *finder) generations() {
	v := finding.Lever{Kind: finding.Generations, Confidence: finding.Medium, Inferred: true}
	tried := map[string]bool{}
	var done []bool // by row
	rows := f.rows
	for range mostRounds {
		_, event := f.measure()
		if len(tried) > 0 {
			rows = f.rows[:0:0]
			for row := range f.t.Lives {
				if f.t.Lives[row].LiveAfter(event) && (done == nil || !done[row]) {
					rows = append(rows, int32(row))
				}
			}
		}
		cut := false
		keys := f.keys(rows)
		for i := range keys {
			turns, site := f.turns(&keys[i])
			if tried[site] || !slices.ContainsFunc(turns, func(t turn) bool {
				return int(t.call) < event && event < int(t.last)
			}) {
				continue
			}
			tried[site], cut = true, true
			if done == nil {
				done = make([]bool, len(f.t.Lives))
			}
			f.cutTurns(&v, turns, done)
			if v.Sites++; v.Site == "" {
				v.Site = site
			}
		}
		if !cut {
			break
		}
	}
	f.weigh(v)
}

// key is blocks of one stack and size.
type key struct {
	stack snapshot.StackID
	size  int64
	bytes int64
	rows  []int32 // all of them in the trace
}

// keys are those of the rows that may be generations, most bytes first.
func (f *finder) keys(rows []int32) []key {
	var keys []key
	for _, row := range rows {
		l := &f.t.Lives[row]
		if l.Born < 0 || l.Freed < 0 || l.Rounded < f.least/16 {
			continue
		}
		if k := f.kind(l.Stack); k != forward && k != other {
			continue
		}
		k := slices.IndexFunc(keys, func(k key) bool { return k.stack == l.Stack && k.size == l.Requested })
		if k < 0 {
			k, keys = len(keys), append(keys, key{stack: l.Stack, size: l.Requested})
		}
		keys[k].bytes += l.Rounded
	}
	sorting.Stable(keys, func(a, b key) int { return cmp.Compare(b.bytes, a.bytes) })
	keys = keys[:min(len(keys), mostKeys)]
	if len(keys) == 0 {
		return nil
	}
	asked := make([]bool, f.s.Stacks.Len()+1)
	for i := range keys {
		asked[keys[i].stack] = true
	}
	for row := f.warm; row < len(f.t.Lives); row++ {
		l := &f.t.Lives[row]
		if !asked[l.Stack] {
			continue
		}
		for i := range keys {
			if k := &keys[i]; k.stack == l.Stack && k.size == l.Requested {
				k.rows = append(k.rows, int32(row))
			}
		}
	}
	return keys
}

// cutTurns ends each generation with the iteration that made it.
func (f *finder) cutTurns(v *finding.Lever, turns []turn, done []bool) {
	for row := f.warm; row < len(f.t.Lives); row++ {
		l := &f.t.Lives[row]
		if l.Freed < 0 || done[row] {
			continue
		}
		i, found := slices.BinarySearchFunc(turns, l.Freed, func(t turn, e int32) int { return cmp.Compare(t.freed, e) })
		if !found {
			i--
		}
		if i < 0 || l.Freed > turns[i].last || l.Born > turns[i].call {
			continue
		}
		if k := f.kind(l.Stack); k == forward || k == other {
			done[row] = true
			f.cut(l, turns[i].call+1, l.Freed)
			if f.atPeak(l) && int(turns[i].call) < f.event {
				count(v, l)
			}
		}
	}
}

// turns finds where one generation of blocks replaces another, in order, and the line of the loop that makes them; nil
// where this is no such thing.
func (f *finder) turns(k *key) (out []turn, site string) {
	before, older := int32(-1), int32(-1)
	var same []bool // by stack, whether it is of the same iteration up to that call
	frames := f.s.Stacks.Get(k.stack)
	pairs, overlaps := 0, 0
	for _, row := range k.rows {
		newer := &f.t.Lives[row]
		before, older = older, row
		if before < 0 {
			continue
		}
		pairs++
		l := &f.t.Lives[before]
		if l.Freed < newer.Born || f.rowAt(l.Freed)-row > max((row-before)/2, 4) {
			continue
		}
		if same == nil {
			depth, line, ok := f.loop(frames, before, row)
			if !ok {
				return nil, ""
			}
			site = line
			same = f.upTo(frames, depth)
		}
		overlaps++
		at := row - 1
		for at > before && same[f.t.Lives[at].Stack] {
			at--
		}
		if at <= before {
			continue
		}
		v := turn{call: f.t.Lives[at].Born}
		v.freed, v.last = f.burst(l.Freed)
		out = append(out, v)
	}
	if len(out) == 0 || overlaps < 2 && pairs > 1 || overlaps*2 < pairs {
		return nil, ""
	}
	if v, ok := f.lastTurn(before, older); ok {
		out = append(out, v)
	}
	return out, site
}

// upTo tells the stacks of a loop's body up to the call at a depth of one: in the call, or at a line above it.
func (f *finder) upTo(call []snapshot.FrameID, depth int) []bool {
	out := make([]bool, f.s.Stacks.Len()+1)
	id, _ := f.frameAt(call, depth)
	line := f.s.Frames.Get(id).Line
	for i := range out {
		st := f.s.Stacks.Get(snapshot.StackID(i))
		shared, sameFunction := f.fork(call, st)
		if out[i] = shared > depth; shared == depth && sameFunction {
			id, _ := f.frameAt(st, depth)
			out[i] = f.s.Frames.Get(id).Line < line
		}
	}
	return out
}

// lastTurn is where the last generation of a loop is replaced by one of the same size that other code makes, such as
// the same call in the loop that follows. Its life ends before the first code that the loop did not run.
func (f *finder) lastTurn(before, row int32) (v turn, ok bool) {
	lives := f.t.Lives
	l := &lives[row]
	if l.Freed < 0 {
		return v, false
	}
	ran := make([]bool, f.s.Stacks.Len()+1)
	for i := before; i <= row; i++ {
		ran[lives[i].Stack] = true
	}
	next := int(row) + 1
	for next < len(lives) && (ran[lives[next].Stack] || lives[next].Stack <= snapshot.EmptyStack) {
		next++
	}
	if next == len(lives) || lives[next].Born > l.Freed {
		return v, false
	}
	by := int(f.rowAt(l.Freed))
	const few = 8
	for at := by - 1; at >= max(by-few, next); at-- {
		if lives[at].Requested == l.Requested {
			v.call = lives[next].Born - 1
			v.freed, v.last = f.burst(l.Freed)
			return v, true
		}
	}
	return v, false
}

// loop says at which depth from outside two lives of a stack are parted by code that is not within the same call,
// and the line there; false where that is in a module or not the program's own code, or where nothing lies between.
func (f *finder) loop(stack []snapshot.FrameID, older, newer int32) (depth int, site string, ok bool) {
	depth = len(stack)
	for row := older + 1; row < newer; row++ {
		shared, same := f.fork(stack, f.s.Stacks.Get(f.t.Lives[row].Stack))
		if same {
			depth = min(depth, shared)
		}
	}
	site, ok = f.line(stack, depth)
	return depth, site, ok
}

// rowAt is that of the first life that begins at an event or later.
func (f *finder) rowAt(event int32) int32 {
	row, _ := slices.BinarySearchFunc(f.t.Lives, event, compareBirth)
	return int32(row)
}

// burst is the run of frees around one: from after the last allocation before it to before the first after it.
func (f *finder) burst(freed int32) (first, last int32) {
	lives := f.t.Lives
	at := f.rowAt(freed)
	first, last = lives[at-1].Born+1, int32(f.t.Trace.Len())
	if int(at) < len(lives) {
		last = lives[at].Born - 1
	}
	return first, last
}
