package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/whatif"
)

// draft is a program that changes are made to, one after another.
type draft struct {
	*run
	p     *whatif.Program
	sizes []int64 // by row, requested bytes
	drop  []bool  // by row, not asked for
	ends  []int32 // by row, see whatif.Edits
	added []extra

	turns map[int32]int32 // by event, turns that are taken
}

// extra is a life that comes in, of the size of a row divided by Parts.
type extra struct {
	whatif.Life
	parts int64
	bytes int64 // its size instead, unless 0
}

func newDraft(r *run, p *whatif.Program) *draft {
	e := p.Unchanged()
	return &draft{run: r, p: p, sizes: e.Sizes, ends: e.Ends, drop: make([]bool, len(e.Sizes)), turns: map[int32]int32{}}
}

// until ends a row after an event, unless it ends before.
func (d *draft) until(row, event int32) bool {
	if event < d.t.Lives[row].Born || event >= d.last(row) {
		return false
	}
	d.ends[row] = event
	return true
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

// program is what the changes come to.
func (d *draft) program() (*whatif.Program, error) {
	e := whatif.Edits{Sizes: slices.Clone(d.sizes), Ends: d.ends}
	for row, gone := range d.drop {
		if gone {
			e.Sizes[row] = whatif.Dropped
		}
	}
	for i := range d.added {
		x := &d.added[i]
		l := x.Life
		if l.Bytes = x.bytes; l.Bytes == 0 {
			l.Bytes = max((d.sizes[l.Like]+x.parts-1)/x.parts, 1)
		}
		e.Added = append(e.Added, l)
	}
	return d.p.Edited(e)
}
