package whatif

import (
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Program is what a recorded run asked of the allocator of one device. It is immutable, and
// many goroutines may replay it.
type Program struct {
	Device int
	// Recorded are the settings of the run as far as the file tells, and Tie the order in which
	// its release takes blocks of the same size.
	Recorded allocator.Recorded
	Platform *platform.Platform
	// Given are the segments that the driver gave, if most have lower addresses than all before; else none.
	Given []allocator.Range
	// Capacity is the memory that the run could reserve, known from a request that failed, or
	// from one that was served only after memory was given back; 0 is unknown.
	Capacity int64
	// Allocs counts the requests that were served, OOMs those that failed.
	Allocs, OOMs int
	// Warm counts the blocks from before the trace, WarmBytes their rounded bytes, and
	// StartReserved what was reserved at that time.
	Warm          int
	WarmBytes     int64
	StartReserved int64

	t       *timeline.Timeline
	ops     []op
	asks    []ask    // by row of Timeline.Lives, then the failed requests
	streams []uint64 // handles of the streams, by allocator.Stream
	pools   []snapshot.PoolID
	start   []place // segments before the trace
	anew    bool    // they are not as they were recorded: a replay asks for their blocks
}

// op is one step of a program.
type op struct {
	event int32
	row   int32
	kind  opKind
}

type opKind uint8

const (
	opAlloc    opKind = iota
	opFree            // request and completion are one
	opRequest         // other streams still use the block
	opComplete        // the last stream is done with it
	opFail            // a request that failed in the run
	opEmpty           // empty_cache; its events are event to row
	opRelease         // no graph uses pool number row any more
)

// asks reports whether an operation is a request, which may have failed.
func (o *op) asks() bool { return o.kind == opAlloc || o.kind == opFail }

// last is the last event of an operation.
func (o *op) last() int32 {
	if o.kind == opEmpty {
		return o.row
	}
	return o.event
}

// ask is one request.
type ask struct {
	bytes  int64
	stream allocator.Stream
	id     snapshot.StreamID // of stream
	pool   allocator.Pool
}

// NewProgram extracts the program from a timeline of s.
func NewProgram(s *snapshot.Snapshot, t *timeline.Timeline) *Program {
	p := &Program{Device: t.Device, Platform: platform.Of(s.Writer.Backend), Recorded: allocator.RecordedIn(s),
		t: t, streams: []uint64{0},
		pools: []snapshot.PoolID{{}}}
	p.capacity()
	p.Given = givenDown(t)
	x := newExtractor(p, s)
	x.events()
	p.start = x.places(t.StateAt(-1))
	for i := range p.start {
		for k, row := range p.start[i].rows {
			if row >= 0 {
				p.Warm++
				p.WarmBytes += p.start[i].Pieces[k].Size
			}
		}
	}
	p.StartReserved = t.Initial.Reserved
	x.steps()
	for i := range p.start {
		for k, row := range p.start[i].rows {
			if row >= 0 {
				pl := &p.start[i]
				p.asks[row] = ask{bytes: pl.Pieces[k].Requested, stream: pl.Stream, pool: pl.Pool}
			}
		}
	}
	return p
}

// givenDown are the segments that the driver gave in a trace, where it gave most of them addresses below all others, rather than above.
func givenDown(t *timeline.Timeline) (given []allocator.Range) {
	lowest, highest := uint64(math.MaxUint64), uint64(0)
	lower, higher := 0, 0
	for i := range t.Changes {
		c := &t.Changes[i]
		if !c.Add || t.Trace.Action(c.Event) != snapshot.SegmentAlloc {
			continue
		}
		switch addr := c.Range.Addr; {
		case len(given) == 0:
		case addr < lowest:
			lower++
		case addr > highest:
			higher++
		}
		lowest, highest = min(lowest, c.Range.Addr), max(highest, c.Range.Addr)
		given = append(given, allocator.Range{Addr: c.Range.Addr, Size: uint64(c.Range.Size)})
	}
	if lower <= higher {
		return nil
	}
	return given
}

// goesOn reports whether requests follow one that failed in the run.
func (p *Program) goesOn() bool {
	failed := slices.IndexFunc(p.ops, func(o op) bool { return o.kind == opFail })
	return failed >= 0 && slices.ContainsFunc(p.ops[failed+1:], func(o op) bool { return o.asks() })
}

// extractor builds a Program.
type extractor struct {
	p      *Program
	s      *snapshot.Snapshot
	t      *timeline.Timeline
	stream map[uint64]int32 // allocator.Stream by handle
	pool   map[snapshot.PoolID]int32

	lows        map[spaceKey]uint64 // see lowest
	born, ended []int32             // the row that an event begins, or whose end it is; -1 for none
	private     privates
	retry       retry
	waits       bool // the trace says when frees are completed
}

func newExtractor(p *Program, s *snapshot.Snapshot) *extractor {
	return &extractor{p: p, s: s, t: p.t, stream: map[uint64]int32{}, pool: map[snapshot.PoolID]int32{}}
}

func (x *extractor) streamOf(id snapshot.StreamID) allocator.Stream {
	return allocator.Stream(number(&x.p.streams, x.stream, x.s.Streams.Handle(id)))
}

func (x *extractor) poolOf(id snapshot.PoolID) allocator.Pool {
	return allocator.Pool(number(&x.p.pools, x.pool, id))
}

// number is the place of a value in a list, to which it is added if need be; of are the places known so far.
func number[T comparable](list *[]T, of map[T]int32, v T) int32 {
	for i := len(of); i < len(*list); i++ {
		of[(*list)[i]] = int32(i)
	}
	n, ok := of[v]
	if !ok {
		n = int32(len(*list))
		*list = append(*list, v)
	}
	return n
}

// events finds the rows of the events.
func (x *extractor) events() {
	n := x.t.Trace.Len()
	x.born, x.ended = make([]int32, n), make([]int32, n)
	for i := range n {
		x.born[i], x.ended[i] = -1, -1
		x.waits = x.waits || x.t.Trace.Action(i) == snapshot.FreeCompleted
	}
	for row := range x.t.Lives {
		l := &x.t.Lives[row]
		if l.Born >= 0 {
			at, _ := x.t.Trace.Block(int(l.Born))
			if x.t.Trace.Action(int(l.Born)) == snapshot.Alloc && at == l.Addr && x.born[l.Born] < 0 {
				x.born[l.Born] = int32(row)
			}
		}
		if l.FreeRequested >= 0 {
			x.ended[l.FreeRequested] = int32(row)
		}
		if l.Freed >= 0 {
			x.ended[l.Freed] = int32(row)
		}
	}
}

// steps makes the operations.
func (x *extractor) steps() {
	p, n := x.p, x.t.Trace.Len()
	p.asks = make([]ask, len(x.t.Lives), len(x.t.Lives)+len(x.t.OOMs))
	p.ops = make([]op, 0, n) // a third is never touched, which costs less than to move it
	x.private = newPrivates(x.t)
	bursts := x.bursts()
	freeable := x.freeable()
	for i := range n {
		x.private.advance(i)
		if pool, ok := freeable[int32(i)]; ok {
			p.ops = append(p.ops, op{int32(i), int32(pool), opRelease})
		}
		if len(bursts) > 0 && int(bursts[0].first) == i {
			p.ops = append(p.ops, op{bursts[0].first, bursts[0].last, opEmpty})
		}
		switch x.t.Trace.Action(i) {
		case snapshot.Alloc:
			x.alloc(int32(i), x.t.Trace.At(i))
		case snapshot.FreeRequested, snapshot.FreeCompleted:
			x.free(int32(i))
		case snapshot.OOM:
			if e := x.t.Trace.At(i); e.Size > 0 && e.Size <= allocator.MaxRequest {
				x.request(op{int32(i), int32(len(p.asks)), opFail})
				p.asks = append(p.asks, ask{bytes: e.Size, stream: x.streamOf(e.Stream), id: e.Stream})
				p.OOMs++
			}
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			if len(bursts) == 0 || i < int(bursts[0].first) {
				x.retry.release(p.ops)
			} else if int(bursts[0].last) == i {
				bursts = bursts[1:]
			}
		}
	}
}

// request adds a request that was served or failed.
func (x *extractor) request(o op) {
	x.p.ops = append(x.p.ops, o)
	x.retry.end(x.p.ops)
}

func (x *extractor) alloc(i int32, e snapshot.Event) {
	p, row := x.p, x.born[i]
	if row < 0 {
		return
	}
	// Where the address was still live, its free is not in the trace.
	if old := x.ended[i]; old >= 0 && x.t.Lives[old].Freed == i {
		kind := opFree
		if x.t.Lives[old].FreeRequested != i {
			kind = opComplete
		}
		p.ops = append(p.ops, op{i, old, kind})
	}
	a := ask{bytes: e.Size, stream: x.streamOf(e.Stream), id: e.Stream}
	if l := x.s.Labels.Get(e.Label); l.HasPool {
		a.pool = x.poolOf(l.Pool)
	} else {
		a.pool = x.poolOf(x.private.holding(e.Addr))
	}
	p.asks[row] = a
	x.request(op{i, row, opAlloc})
	p.Allocs++
}

// free adds the end of a life. A completion that directly follows its request is one with it.
func (x *extractor) free(i int32) {
	row := x.ended[i]
	if row < 0 {
		return
	}
	l := &x.t.Lives[row]
	if l.Born < 0 && l.Rounded == 0 {
		return // of a block that has no place
	}
	switch {
	case l.FreeRequested == i && (l.Freed == i || l.Freed == i+1 || !x.waits):
		x.p.ops = append(x.p.ops, op{i, row, opFree})
	case l.FreeRequested == i:
		x.p.ops = append(x.p.ops, op{i, row, opRequest})
	case l.Freed == i && l.FreeRequested != i-1:
		x.p.ops = append(x.p.ops, op{i, row, opComplete})
	}
}
