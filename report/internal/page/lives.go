package page

import (
	"slices"

	"github.com/snapana/snapana/analyze/timeline"
)

// kind is a row of Kinds.
type kind struct {
	rounded, requested int64
	stack, place       int32
	category, trust    uint8
}

// lifeList collects lives in order of birth, as Kinds and Lives have them.
type lifeList struct {
	rows  []int32 // of Timeline.Lives
	which []int32 // row of kinds by row of rows
	moved []int64 // by row of rows, the address less that of the kind's last
	kinds table[kind]
	last  []int64 // address by kind
}

func newLifeList(n int) *lifeList {
	return &lifeList{rows: make([]int32, 0, n), which: make([]int32, 0, n), moved: make([]int64, 0, n)}
}

func (a *lifeList) add(l *timeline.Life, i int32, k kind) {
	row, added := a.kinds.row(k)
	if added {
		a.last = append(a.last, 0)
	}
	a.rows, a.which = append(a.rows, i), append(a.which, row)
	a.moved = append(a.moved, int64(l.Addr)-a.last[row])
	a.last[row] = int64(l.Addr)
}

func (a *lifeList) write(w *writer, t *timeline.Timeline, h *held) (Kinds, Lives) {
	w.b = slices.Grow(w.b, 8*len(a.rows))
	of := func(i int) *timeline.Life { return &t.Lives[a.rows[i]] }
	kinds, n, rows := a.kinds.all, len(a.kinds.all), len(a.rows)
	return Kinds{
			Stack:     w.column(plain, n, func(i int) int64 { return int64(kinds[i].stack) }),
			Rounded:   w.column(plain, n, func(i int) int64 { return kinds[i].rounded }),
			Requested: w.column(plain, n, func(i int) int64 { return kinds[i].requested }),
			Category:  w.column(plain, n, func(i int) int64 { return int64(kinds[i].category) }),
			Trust:     w.column(plain, n, func(i int) int64 { return int64(kinds[i].trust) }),
			Place:     w.column(plain, n, func(i int) int64 { return int64(kinds[i].place) }),
		}, Lives{
			Kind:   w.column(plain, rows, func(i int) int64 { return int64(a.which[i]) }),
			Born:   w.column(deltas, rows, func(i int) int64 { return int64(of(i).Born) }),
			Life:   w.column(plain, rows, func(i int) int64 { return life(of(i).Born, of(i).Freed) }),
			Gap:    w.column(plain, rows, func(i int) int64 { return gap(of(i)) }),
			Addr:   w.column(zigzag, rows, func(i int) int64 { return a.moved[i] }),
			Holder: h.column(w, t, a.rows),
		}
}

// gap is when the program freed a block, as Lives.Gap has it.
func gap(l *timeline.Life) int64 {
	switch {
	case l.FreeRequested == timeline.PendingBefore:
		return 1
	case l.FreeRequested < 0 || l.FreeRequested == l.Freed:
		return 0
	case l.Freed < 0:
		return 2 + int64(l.FreeRequested) - int64(l.Born)
	}
	return 2 + int64(l.Freed) - int64(l.FreeRequested)
}
