package ghost

import (
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// clock answers whether the program began a new lap of an outer loop between two allocations.
// Each thread has a sequence of its own: its stacks end in a function of their own.
type clock struct {
	s       *snapshot.Snapshot
	t       *timeline.Timeline
	code    *code
	threads map[function]*sequence
	main    *sequence                   // the thread that allocates most
	of      []*sequence                 // by stack; nil for a stack without Python frames
	only    func(snapshot.StackID) bool // may grow; nil for all

	backwards []int32         // births of backward passes, nil before rounds
	spans     map[int64]*span // by size, nil before there
}

// function is a function as far as frames tell.
type function struct{ file, name snapshot.StringID }

func functionOf(s *snapshot.Snapshot, id snapshot.FrameID) function {
	f := s.Frames.Get(id)
	return function{f.File, f.Name}
}

// sequence is the allocations of one thread by birth.
type sequence struct {
	rows   []int32  // of Lives
	events []int32  // their births
	common []uint16 // common[i]: outer Python frames shared by rows[i] and rows[i+1]
	blocks []uint16 // minima of common over blocks of blockLen
	last   snapshot.StackID
}

const blockLen = 64

// newClock reads the allocations that a census has.
func newClock(s *snapshot.Snapshot, t *timeline.Timeline, c *code, m *census, only func(snapshot.StackID) bool) *clock {
	k := &clock{s: s, t: t, code: c, only: only, threads: map[function]*sequence{},
		of: make([]*sequence, len(m.stacks)), main: &sequence{}}
	long := map[*sequence]int32{}
	for i := int(snapshot.EmptyStack) + 1; i < len(m.stacks); i++ {
		if n := m.stacks[i].born; n > 0 {
			k.of[i] = k.thread(snapshot.StackID(i))
			long[k.of[i]] += n
		}
	}
	for _, q := range k.threads {
		n := long[q]
		q.rows, q.events = make([]int32, 0, n), make([]int32, 0, n)
		q.common, q.blocks = make([]uint16, 0, n), make([]uint16, 0, n/blockLen+1)
	}
	type pair struct{ a, b snapshot.StackID }
	seen := map[pair]uint16{}
	latest := make([]struct { // by stack: the one that came before it the last time
		before snapshot.StackID
		shared uint16
	}, len(m.stacks))
	for i := range t.Lives {
		l := &t.Lives[i]
		if l.Born > m.horizon {
			break
		}
		if l.Born < 0 {
			continue
		}
		q := k.of[l.Stack]
		if q == nil {
			continue
		}
		if len(q.rows) > 0 {
			p := pair{q.last, l.Stack}
			was := &latest[l.Stack]
			if was.before != p.a {
				shared, ok := seen[p]
				if !ok {
					shared = k.sharedOuter(p.a, p.b)
					seen[p] = shared
				}
				was.before, was.shared = p.a, shared
			}
			q.link(was.shared)
		}
		q.rows, q.events, q.last = append(q.rows, int32(i)), append(q.events, l.Born), l.Stack
	}
	for _, q := range k.threads {
		if len(q.rows) > len(k.main.rows) || len(q.rows) == len(k.main.rows) && len(q.rows) > 0 &&
			q.rows[0] < k.main.rows[0] {
			k.main = q
		}
	}
	return k
}

// thread is the sequence of a stack's outermost Python function.
func (k *clock) thread(stack snapshot.StackID) *sequence {
	path := k.code.path(stack)
	if len(path) == 0 {
		return nil
	}
	if k.only != nil && k.only(stack) && !slices.ContainsFunc(path,
		func(id snapshot.FrameID) bool { return k.code.kind(id) == plain }) {
		return nil
	}
	root := functionOf(k.s, path[0])
	if k.threads[root] == nil {
		k.threads[root] = &sequence{}
	}
	return k.threads[root]
}

func (q *sequence) link(shared uint16) {
	if len(q.common)%blockLen == 0 {
		q.blocks = append(q.blocks, shared)
	} else {
		last := len(q.blocks) - 1
		q.blocks[last] = min(q.blocks[last], shared)
	}
	q.common = append(q.common, shared)
}

// sharedOuter counts the outermost frames that two stacks share. The last one counted may
// differ in its line: then the two went different ways inside that function.
func (k *clock) sharedOuter(a, b snapshot.StackID) uint16 {
	x, y := k.code.path(a), k.code.path(b)
	n, most := 0, min(len(x), len(y), 1<<16-1)
	for n < most && x[n] == y[n] {
		n++
	}
	if n < most && functionOf(k.s, x[n]) == functionOf(k.s, y[n]) {
		n++
	}
	return uint16(n)
}

// between reports whether a new lap of an outer loop began between the births of two lives,
// and the frame of the function that runs the loop. Allocations of one stack with no other in
// between are a list that is being filled, and of one lap. What has no Python frames, as in
// backward passes, goes by the main thread. Lives that are asked for in order are found from where
// the search before ended.
func (k *clock) between(from, to int32, at *int) (snapshot.FrameID, bool) {
	a, b := &k.t.Lives[from], &k.t.Lives[to]
	if to == from+1 && a.Stack == b.Stack {
		return 0, false
	}
	q := k.sequence(b.Stack)
	i := q.findFrom(*at, a.Born)
	j := q.findFrom(i, b.Born)
	*at = j
	j = min(j, len(q.rows)-1)
	if i >= j {
		return 0, false
	}
	n := q.least(i, j)
	path := k.code.path(k.t.Lives[q.rows[j]].Stack)
	if n == 0 || int(n) > len(path) {
		return 0, false
	}
	loop, ok := k.code.loop(path[:n])
	return loop, ok && (len(k.code.path(b.Stack)) > 0 || !k.goesForward(q, i, j, int(n)-1, functionOf(k.s, loop)))
}

// near bounds the allocations that goesForward looks at.
const near = 256

// goesForward reports whether a function, at a depth of a thread's stacks, only goes on to later lines from the
// allocation before a place to the one before another. Two backward passes of one lap are told so: they have no line of
// their own.
func (k *clock) goesForward(q *sequence, from, to, depth int, f function) bool {
	if from == 0 || to-from > near {
		return false
	}
	last := int32(0)
	for i := from - 1; i < to; i++ {
		path := k.code.path(k.t.Lives[q.rows[i]].Stack)
		if depth >= len(path) || functionOf(k.s, path[depth]) != f {
			return false
		}
		line := k.s.Frames.Get(path[depth]).Line
		if line < last || line == last && i == from {
			return false
		}
		last = line
	}
	return true
}

// sequence is that of a stack's thread.
func (k *clock) sequence(stack snapshot.StackID) *sequence {
	if q := k.of[stack]; q != nil {
		return q
	}
	return k.main
}

// find is the place of the first birth at or after event e.
func (q *sequence) find(e int32) int {
	at, _ := slices.BinarySearch(q.events, e)
	return at
}

// findFrom is find from a place on that is not behind what it finds.
func (q *sequence) findFrom(at int, e int32) int {
	step := 1
	for at+step <= len(q.events) && q.events[at+step-1] < e {
		at += step
		step *= 2
	}
	n, _ := slices.BinarySearch(q.events[at:min(at+step, len(q.events))], e)
	return at + n
}

// least is the minimum of common[i:j].
func (q *sequence) least(i, j int) uint16 {
	m := uint16(1<<16 - 1)
	for i < j {
		if i%blockLen == 0 && i+blockLen <= j {
			m = min(m, q.blocks[i/blockLen])
			i += blockLen
			continue
		}
		m = min(m, q.common[i])
		i++
	}
	return m
}
