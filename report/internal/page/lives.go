package page

import (
	"fmt"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/report/internal/bands"
	"github.com/snapana/snapana/snapshot"
)

// kind is a row of Kinds.
type kind struct {
	rounded, requested int64
	stack, place       int32
	label              int32
	category, trust    uint8
}

// lifeList collects lives in order of birth, as Kinds and Lives have them.
type lifeList struct {
	rows  []int32 // of Timeline.Lives
	which []int32 // row of kinds by row of rows
	moved []int64 // by row of rows, the address less that of the kind's last
	kinds table[kind]
	of    []int32 // by stack, the row of kinds of its last life: most often that of the next
	last  []int64 // address by kind
	at    stretches
}

func newLifeList(n int, at stretches) *lifeList {
	return &lifeList{rows: make([]int32, 0, n), which: make([]int32, 0, n), moved: make([]int64, 0, n), at: at}
}

func (a *lifeList) add(l *timeline.Life, i int32, k kind) {
	row := a.row(k)
	a.rows, a.which = append(a.rows, i), append(a.which, row)
	at := a.at.of(l.Addr)
	a.moved = append(a.moved, at-a.last[row])
	a.last[row] = at
}

// row is the row of a kind, which is added when it is new.
func (a *lifeList) row(k kind) int32 {
	for len(a.of) <= int(k.stack) {
		a.of = append(a.of, 0)
	}
	if row := a.of[k.stack]; int(row) < len(a.last) && a.kinds.all[row] == k {
		return row
	}
	row, added := a.kinds.row(k)
	if added {
		a.last = append(a.last, 0)
	}
	a.of[k.stack] = row
	return row
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
			Label:     w.column(plain, n, func(i int) int64 { return int64(kinds[i].label) }),
		}, Lives{
			Kind:   w.column(plain, rows, func(i int) int64 { return int64(a.which[i]) }),
			Born:   w.column(deltas, rows, func(i int) int64 { return int64(of(i).Born) }),
			Life:   w.column(plain, rows, func(i int) int64 { return life(of(i).Born, of(i).Freed) }),
			Gap:    w.column(plain, rows, func(i int) int64 { return gap(of(i)) }),
			Addr:   w.column(zigzag, rows, func(i int) int64 { return a.moved[i] }),
			Older:  column(w, plain, older(t, a.rows)),
			Holder: h.column(w, t, a.rows),
		}
}

// older is Lives.Older of these rows, which rise.
func older(t *timeline.Timeline, rows []int32) []int32 {
	out := make([]int32, len(rows))
	if len(rows) == len(t.Lives) {
		return out
	}
	seen := make(map[uint64]int32, len(rows))
	for i, n := range t.Names(rows) {
		out[i] = n.Generation - seen[n.Addr]
		seen[n.Addr]++
	}
	return out
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

// piece is a run of reserved addresses from one event to another.
type piece struct {
	addr        uint64
	size        int64
	born, freed int32 // -1 before the trace; -1 never
	place       int32
}

// reserved follows the reserved ranges through the trace.
type reserved struct {
	t      *timeline.Timeline
	places table[Place] // row 0 is in no known segment
	all    []piece
	live   []int32 // rows of all by address
	change int
}

func newReserved(t *timeline.Timeline) *reserved {
	r := &reserved{t: t}
	r.places.row(Place{})
	for i := range t.Initially {
		r.began(&t.Initially[i], -1)
	}
	return r
}

// began notes a range that an event reserved.
func (r *reserved) began(x *timeline.Range, event int) {
	v := Place{Kind: x.Kind.String(), Stream: int(x.Stream), Expandable: x.Expandable,
		Page: fragmentation.Page(r.t, x)}
	if x.Pool != (snapshot.PoolID{}) {
		v.Pool = fmt.Sprintf("(%d, %d)", x.Pool.A, x.Pool.B)
	}
	place, _ := r.places.row(v)
	r.begin(x.Addr, x.Size, int32(event), place)
}

// after is the place in live of the first piece that begins above addr.
func (r *reserved) after(addr uint64) int {
	return sort.Search(len(r.live), func(i int) bool { return r.all[r.live[i]].addr > addr })
}

func (r *reserved) begin(addr uint64, size int64, event, place int32) {
	if size <= 0 {
		return
	}
	r.live = slices.Insert(r.live, r.after(addr), int32(len(r.all)))
	r.all = append(r.all, piece{addr, size, event, -1, place})
}

// to applies the changes up to an event.
func (r *reserved) to(event int) {
	for ; r.change < len(r.t.Changes) && r.t.Changes[r.change].Event <= event; r.change++ {
		c := &r.t.Changes[r.change]
		if c.Add {
			r.began(&c.Range, c.Event)
		} else {
			r.end(c.Range.Addr, c.Range.Addr+uint64(c.Range.Size), int32(c.Event))
		}
	}
}

// end takes the addresses from..to-1 away.
func (r *reserved) end(from, to uint64, event int32) {
	i := max(r.after(from)-1, 0)
	for i < len(r.live) {
		row := r.live[i]
		p := r.all[row]
		stop := p.addr + uint64(p.size)
		if p.addr >= to {
			return
		}
		if stop <= from {
			i++
			continue
		}
		r.all[row].freed = event
		r.live = slices.Delete(r.live, i, i+1)
		if p.addr < from {
			r.begin(p.addr, int64(from-p.addr), event, p.place)
			i++
		}
		if stop > to {
			r.begin(to, int64(stop-to), event, p.place)
			return
		}
	}
}

// placeOf is the place of the range that holds an address now.
func (r *reserved) placeOf(addr uint64) int32 {
	if i := r.after(addr) - 1; i >= 0 {
		if p := &r.all[r.live[i]]; addr-p.addr < uint64(p.size) {
			return p.place
		}
	}
	return 0
}

// write adds at most n ranges, those with the most bytes times events.
func (r *reserved) write(w *writer, d *Device, at stretches, n int) {
	r.to(d.Events)
	all := r.all
	if len(all) > n {
		keep := bands.Largest(n, len(all), func(i int) float64 {
			p := &all[i]
			return bands.Area(p.size, p.born, p.freed, d.Events)
		})
		d.LeftOut.Ranges = len(all) - n
		var some []piece
		for i := range all {
			if keep[i] {
				some = append(some, all[i])
			}
		}
		all = some
	}
	d.Places = r.places.all
	d.Ranges = Ranges{
		Addr:  w.column(deltas, len(all), func(i int) int64 { return at.of(all[i].addr) }),
		Size:  w.column(plain, len(all), func(i int) int64 { return all[i].size }),
		Born:  w.column(deltas, len(all), func(i int) int64 { return int64(all[i].born) }),
		Life:  w.column(plain, len(all), func(i int) int64 { return life(all[i].born, all[i].freed) }),
		Place: w.column(plain, len(all), func(i int) int64 { return int64(all[i].place) }),
	}
}

// life is how long something lived, as Lives.Life has it.
func life(born, freed int32) int64 {
	if freed < 0 {
		return 0
	}
	return int64(freed) - int64(born) + 1
}
