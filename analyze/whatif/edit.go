package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Edits are the requests of another program that runs like a recorded one. Sizes and Ends are by row of
// Timeline.Lives and nil where nothing changes; Program.Unchanged makes both. A row may be resized and end at
// another time.
//
// At one event what is done comes in this order: added lives are asked for, then the recorded operation is made,
// then changed and added lives end. So a life from Born to Freed is there during the operations of both. Lives that
// begin at one event do so in the order of Turn, then of Added; of those that end at one, rows come in their order
// before Added in theirs. A life with Until ends before the recorded operation of Freed, among those that begin there:
// right before those whose Turn that is.
type Edits struct {
	// Sizes are requested bytes; Dropped are never asked for. Those of requests that failed in the run may follow.
	Sizes []int64
	// Ends are the last event during which a life is there: AsRecorded, Never, or -1 for a block from before the trace
	// that is freed before the first event. A block that waited for another stream does not with an end of its own.
	// One that the program had freed before the trace goes as recorded.
	Ends  []int32
	Added []Life
}

// Life is a request that the recorded run did not make.
type Life struct {
	Born, Freed int32 // the first and the last event during which it is there; Never
	Turn, Until int32 // its place among what is added at Born and, where it is not 0, at Freed
	Bytes       int64 // requested
	Like        int32 // the row of Timeline.Lives whose stream and pool it takes
	Apart       uint8 // where it is not 0: the number of a stream that only added lives use, in place of that of Like
}

const (
	Dropped    = 0             // as a size: no request
	AsRecorded = math.MinInt32 // as an end
	Never      = math.MaxInt32 // as an end: it lives to the end of the trace, and on
)

// Unchanged gives edits that change nothing, to be changed.
func (p *Program) Unchanged() Edits {
	e := Edits{Sizes: make([]int64, p.recorded()), Ends: slices.Repeat([]int32{AsRecorded}, len(p.t.Lives))}
	for row := range e.Sizes {
		e.Sizes[row] = p.asks[row].bytes
	}
	return e
}

// recorded is the number of requests of the recorded run: of the rows, and those that failed.
func (p *Program) recorded() int { return len(p.t.Lives) + p.OOMs }

// Edited is the recorded program with other requests. Its figures are still those of the recorded run. Where blocks
// from before the trace have other sizes it starts Anew, whatever Options say. Edits that contradict themselves are an
// error; edits do not add up: p must not be edited itself.
func (p *Program) Edited(e Edits) (*Program, error) {
	x := &editor{p: p, e: e}
	if err := x.check(); err != nil {
		return nil, err
	}
	q := *p
	q.asks = slices.Grow(slices.Clone(p.asks), len(e.Added))
	for row, n := range e.Sizes {
		q.asks[row].bytes = n
	}
	for i := range e.Added {
		k := p.asks[e.Added[i].Like]
		k.bytes = e.Added[i].Bytes
		if n := e.Added[i].Apart; n > 0 {
			k.stream, k.id = x.apart(&q, n), 0
		}
		q.asks = append(q.asks, k)
	}
	x.marks()
	q.ops = x.merge()
	x.resize(&q)
	return &q, nil
}

// turn is an operation before the recorded one of its event. Those that end something come before those that begin.
type turn struct {
	op
	turn int32
}

// editor makes an edited program.
type editor struct {
	p      *Program
	e      Edits
	before []turn // what is done before the recorded operations
	ends   []op   // what ends after them, by event
}

// apart is the stream of a number that only added lives use.
func (x *editor) apart(q *Program, n uint8) allocator.Stream {
	first := len(x.p.streams)
	if len(q.streams) == first {
		q.streams = slices.Clone(q.streams)
	}
	for len(q.streams) < first+int(n) {
		handle := uint64(1)
		for slices.Contains(q.streams, handle) {
			handle++
		}
		q.streams = append(q.streams, handle)
	}
	return allocator.Stream(first + int(n) - 1)
}

func (x *editor) check() error {
	lives, asks := len(x.p.t.Lives), x.p.recorded()
	if len(x.p.asks) != asks {
		return fmt.Errorf("edit a program: it is edited already")
	}
	if n := len(x.e.Sizes); n != 0 && n != lives && n != asks {
		return fmt.Errorf("edit a program: %d sizes for %d rows and %d failed requests", n, lives, asks-lives)
	}
	if n := len(x.e.Ends); n != 0 && n != lives {
		return fmt.Errorf("edit a program: %d ends for %d rows", n, lives)
	}
	for row, n := range x.e.Sizes {
		if n < 0 {
			return fmt.Errorf("edit a program: row %d asks for %d bytes", row, n)
		}
	}
	for row, end := range x.e.Ends {
		if born := x.p.t.Lives[row].Born; end != AsRecorded && end < born && !x.dropped(int32(row)) {
			return fmt.Errorf("edit a program: row %d ends after event %d and begins at %d", row, end, born)
		}
	}
	for i := range x.e.Added {
		if l := &x.e.Added[i]; l.Born < 0 || l.Freed < l.Born || l.Turn < 0 || l.Bytes <= 0 || l.Like < 0 ||
			int(l.Like) >= lives || l.Until != 0 && (l.Freed == Never || l.Freed == l.Born && l.Until <= l.Turn) {
			return fmt.Errorf("edit a program: no such life can be added: %+v", *l)
		}
	}
	return nil
}

func (x *editor) dropped(row int32) bool {
	return int(row) < len(x.e.Sizes) && x.e.Sizes[row] == Dropped
}

// moved reports whether a recorded row has an end of its own.
func (x *editor) moved(row int32) bool {
	return int(row) < len(x.e.Ends) && x.e.Ends[row] != AsRecorded && !x.p.t.Lives[row].Waits(-1)
}

// marks lists the operations that come in.
func (x *editor) marks() {
	for row, end := range x.e.Ends {
		if x.moved(int32(row)) && end != Never && !x.dropped(int32(row)) {
			x.ends = append(x.ends, op{end, int32(row), opFree})
		}
	}
	x.before = make([]turn, 0, len(x.e.Added))
	for i := range x.e.Added {
		l, row := &x.e.Added[i], int32(len(x.p.asks)+i)
		x.before = append(x.before, turn{op{l.Born, row, opAlloc}, l.Turn})
		switch {
		case l.Freed == Never:
		case l.Until != 0:
			x.before = append(x.before, turn{op{l.Freed, row, opFree}, l.Until})
		default:
			x.ends = append(x.ends, op{l.Freed, row, opFree})
		}
	}
	sorting.By(x.before, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.turn, b.turn), cmp.Compare(b.kind, a.kind),
			cmp.Compare(a.row, b.row))
	})
	sorting.By(x.ends, func(a, b op) int { return cmp.Or(cmp.Compare(a.event, b.event), cmp.Compare(a.row, b.row)) })
}

// merge makes the operations.
func (x *editor) merge() []op {
	if len(x.before)+len(x.ends) == 0 && !slices.Contains(x.e.Sizes, Dropped) {
		return x.p.ops
	}
	out := make([]op, 0, len(x.p.ops)+len(x.before)+len(x.ends))
	before, ends := x.before, x.ends
	// upTo adds what comes before the recorded operation of an event.
	upTo := func(event int32) {
		for {
			switch {
			case len(ends) > 0 && ends[0].event < event && (len(before) == 0 || ends[0].event < before[0].event):
				out, ends = append(out, ends[0]), ends[1:]
			case len(before) > 0 && before[0].event <= event:
				out, before = append(out, before[0].op), before[1:]
			default:
				return
			}
		}
	}
	for _, o := range x.p.ops {
		upTo(o.event)
		if x.keeps(&o) {
			out = append(out, o)
		}
	}
	upTo(Never)
	return out
}

// keeps reports whether a recorded operation is still made.
func (x *editor) keeps(o *op) bool {
	switch o.kind {
	case opAlloc, opFail:
		return !x.dropped(o.row)
	case opFree, opRequest, opComplete:
		return !x.dropped(o.row) && !x.moved(o.row)
	}
	return true
}

// resize makes the blocks from before the trace.
func (x *editor) resize(q *Program) {
	if len(x.e.Sizes) == 0 {
		return
	}
	changed := func(row int32) bool { return row >= 0 && x.e.Sizes[row] != x.p.asks[row].bytes }
	if !slices.ContainsFunc(q.start, func(pl place) bool { return slices.ContainsFunc(pl.rows, changed) }) {
		return
	}
	q.anew = true
	q.start = slices.Clone(q.start)
	for i := range q.start {
		pl := &q.start[i]
		pl.rows, pl.Pieces = slices.Clone(pl.rows), slices.Clone(pl.Pieces)
		for k, row := range pl.rows {
			switch {
			case row < 0:
			case x.dropped(row):
				pl.rows[k] = -1
			default:
				pl.Pieces[k].Requested = x.e.Sizes[row]
			}
		}
	}
}
