package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/whatif"
)

// draft is a program that changes are made to, one after another.
type draft struct {
	*run
	p       *whatif.Program
	after   *whatif.Program // what the changes come to, once that was replayed
	sizes   []int64         // by row, requested bytes
	drop    []bool          // by row, not asked for
	ends    []int32         // by row, see whatif.Edits
	added   []extra
	way     way
	settled map[int32]bool // rows whose types a change has settled

	underAutocast bool // it was recorded so, see convert
	weights16     bool // and weights have 16 bits now

	single bool // each parameter is stepped in backward, without foreach

	turns map[int32]int32 // by event, turns that are taken

	// remade tells by row of a module that is checkpointed when that makes it again. What comes behind the last row that backward needs is
	// not made again, but is given what it needs when that is.
	remade map[int32]remake

	// inLoops are rows that are gone at the end of a turn of a loop, or of a call in that, as nothing tells for sure.
	inLoops map[int32]ending

	lasts map[int]span // by depth from outside, the rows of the function that lastIn looked at last
}

// remake is an event and a turn at it; the event is -1 where the recording ends before.
type remake struct {
	event, turn int32
	life        int // 1 + the place in added of what is made then, 0 for nothing
}

// comesBefore reports whether that is within the recording, and before an event.
func (r remake) comesBefore(event int32) bool { return r.event >= 0 && r.event < event }

// extra is a life that comes in, of the size of a row divided by Parts.
type extra struct {
	whatif.Life
	parts int64
	bytes int64 // its size instead, unless 0
}

func newDraft(r *run, p *whatif.Program) *draft {
	e := p.Unchanged()
	return &draft{run: r, p: p, sizes: e.Sizes, ends: e.Ends, drop: make([]bool, len(e.Sizes)),
		settled: map[int32]bool{}, turns: map[int32]int32{}, remade: map[int32]remake{},
		inLoops: map[int32]ending{}, lasts: map[int]span{}}
}

// until ends a row after an event, unless it ends before. A workspace that a library keeps stays whatever the program
// does.
func (d *draft) until(row, event int32) bool {
	if event < d.t.Lives[row].Born || event >= d.last(row) || d.stands(row) {
		return false
	}
	d.ends[row] = event
	return true
}

// longer has a row that another change ended stay until an event, where that is later.
func (d *draft) longer(row, event int32) {
	if d.ends[row] != whatif.AsRecorded {
		d.ends[row] = max(d.ends[row], event)
	}
}

// last is the last event during which a row is there, as it is changed so far.
func (d *draft) last(row int32) int32 {
	if d.ends[row] != whatif.AsRecorded {
		return d.ends[row]
	}
	if e := d.t.Lives[row].GivenUp(); e != -1 {
		return e
	}
	return whatif.Never
}

// add puts a life like a row in, from an event to another.
func (d *draft) add(row, born, freed int32) *extra {
	d.added = append(d.added, extra{Life: whatif.Life{Born: born, Freed: freed, Like: row}, parts: 1})
	return &d.added[len(d.added)-1]
}

// turn gives the next of n turns at an event, from 1 on.
func (d *draft) turn(event, n int32) int32 {
	at := d.turns[event] + 1
	d.turns[event] += n
	return at
}

// turnFirst takes the first n turns at an event, from 1 on: those that are taken already come behind them.
func (d *draft) turnFirst(event, n int32) {
	for i := range d.added {
		if d.turns[event] == 0 {
			break // none is taken
		}
		x := &d.added[i]
		if x.Born == event && x.Turn > 0 {
			x.Turn += n
		}
		if x.Freed == event && x.Until > 0 {
			x.Until += n
		}
	}
	d.turns[event] += n
}

// ahead is the allocated memory that a pass with a request that failed needs if it goes on as the one before it went:
// the peak of that, with what came to stay since. It is 0 where there are no such passes.
func (d *draft) ahead() int64 {
	i := d.failedIn()
	if i < 1 {
		return 0
	}
	before, p := &d.passes[i-1], &d.passes[i]
	// each calls a function with what is there from an event up to another, that included.
	each := func(yield func(from, to int32, bytes int64)) {
		for row, n := range d.sizes[:len(d.t.Lives)] {
			if !d.drop[row] {
				yield(d.t.Lives[row].Born, d.last(int32(row)), n)
			}
		}
		for i := range d.added {
			if x := &d.added[i]; x.Until == 0 { // else it is gone within an event
				yield(x.Born, x.Freed, x.size(d))
			}
		}
	}
	change := make([]int64, before.end-before.first+2)
	each(func(from, to int32, bytes int64) {
		if from < before.end && to >= before.first {
			change[max(from-before.first, 0)] += bytes
			change[min(to, before.end)-before.first+1] -= bytes
		}
	})
	var level, most int64
	peak := before.first
	for k, c := range change {
		if level += c; level > most {
			most, peak = level, before.first+int32(k)
		}
	}
	each(func(from, to int32, bytes int64) {
		if from > peak && from < p.first && to >= p.stop {
			most += bytes
		}
	})
	return most
}

func (x *extra) size(d *draft) int64 {
	if x.bytes != 0 {
		return x.bytes
	}
	return max((d.sizes[x.Like]+x.parts-1)/x.parts, 1)
}

// edits are what the changes come to.
func (d *draft) edits() whatif.Edits {
	e := whatif.Edits{Sizes: slices.Clone(d.sizes), Ends: d.ends}
	for row, gone := range d.drop {
		if gone {
			e.Sizes[row] = whatif.Dropped
		}
	}
	for i := range d.added {
		x := &d.added[i]
		l := x.Life
		l.Bytes = x.size(d)
		e.Added = append(e.Added, l)
	}
	return e
}
