package whatif

import (
	"context"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Validation says how well the replay of a program agrees with its trace.
type Validation struct {
	// Allocs is the number of requests in the trace, SameAllocs of those whose block was
	// predicted at the recorded address.
	Allocs, SameAllocs int
	// Segments is the number of segment events, maps and unmaps included, SameSegments of those
	// that were predicted with their size, and at their address where the driver does not choose
	// it.
	Segments, SameSegments int
	// Blocks is the number of blocks in the final state or at the end of the replay, SameBlocks
	// of those that are in both.
	Blocks, SameBlocks int
	// First is the first disagreement, nil for none. After each the replay goes on from the
	// recorded state.
	First *Divergence
	// Unchecked counts requests after so many disagreements that the replay was given up; they
	// are in Allocs only.
	Unchecked int
}

// Share is the part of the requests that was reproduced, from 0 to 1; 1 when there were none.
func (v *Validation) Share() float64 {
	if v.Allocs == 0 {
		return 1
	}
	return float64(v.SameAllocs) / float64(v.Allocs)
}

// Exact reports whether everything was reproduced.
func (v *Validation) Exact() bool {
	return v.SameAllocs == v.Allocs && v.SameSegments == v.Segments && v.SameBlocks == v.Blocks
}

// Divergence is a place where the replay and the trace disagree.
type Divergence struct {
	Event int    // the number of events when it is the final state that differs
	What  string // a sentence
	Why   string // the likely reason, a sentence
}

// rebuilds bounds the work of going on after disagreements, in blocks that are put back.
const rebuilds = 20 << 20

// Validate replays a program under the recorded settings and compares it with its trace. It fails only
// when ctx ends.
func (p *Program) Validate(ctx context.Context, s *snapshot.Snapshot) (*Validation, error) {
	own := *p // which learns of streams and pools that only later states have
	own.streams, own.pools = slices.Clone(p.streams), slices.Clone(p.pools)
	p = &own
	v := &validator{p: p, v: &Validation{Allocs: p.Allocs}}
	v.x = newExtractor(p, s)
	for i := range p.t.Trace.Len() {
		if e := p.t.Trace.At(i); releases(e) || acquires(e) {
			v.script = append(v.script, int32(i))
		}
	}
	v.v.Segments = len(v.script)
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	return v.v, nil
}

// validator feeds a replay with the segments of the trace.
type validator struct {
	p      *Program
	x      *extractor
	v      *Validation
	script []int32 // segment events that are still to come
	d      scripted
	r      *replay
	work   int
	done   int // the event up to which the replay was put into the recorded state
}

func (v *validator) run(ctx context.Context) error {
	p := v.p
	v.r = &replay{p: p, held: make([]int32, len(p.asks))}
	for i := range v.r.held {
		v.r.held[i] = gone
	}
	v.restart(p.start, nil, -1)
	for i := range p.ops {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		o := &p.ops[i]
		if int(o.event) <= v.done {
			continue
		}
		was := v.v.First
		v.op(o)
		if v.d.kind == agrees {
			continue
		}
		if was == nil {
			v.v.First = &Divergence{Event: int(o.event), What: v.d.what, Why: v.reason(o)}
		}
		event := int(o.event)
		if o.kind == opEmpty {
			event = int(o.row)
		}
		st := p.t.StateAt(event)
		for _, seg := range st.Segments {
			v.work += len(seg.Live)
		}
		if v.work += len(st.Segments) + len(p.streams) + len(p.pools); v.work > rebuilds {
			for _, o := range p.ops[i+1:] {
				if o.kind == opAlloc {
					v.v.Unchecked++
				}
			}
			return nil
		}
		v.restart(v.x.places(st), st.Outside, event)
	}
	v.final()
	return nil
}

// restart makes a new allocator with the recorded state after an event. What the replay holds
// besides is never asked for again, but for the blocks that the state has no place for.
func (v *validator) restart(places []place, outside []int32, event int) {
	v.d = scripted{t: v.p.t}
	v.r.a = allocator.New(allocator.Options{Conf: v.p.Recorded.Conf, Tie: v.p.Recorded.Tie, Driver: &v.d})
	v.p.prepare(v.r.a)
	v.r.restore(places, event, nil)
	for _, row := range outside {
		v.r.held[row] = gone
	}
	v.done = event
	for len(v.script) > 0 && int(v.script[0]) <= event {
		v.script = v.script[1:]
	}
}

// op makes one operation with the segment events that belong to it: those before it that no
// other has used.
func (v *validator) op(o *op) {
	last := o.event
	if o.kind == opEmpty {
		last = o.row
	}
	n := 0
	var k ask
	if o.kind == opAlloc || o.kind == opFail || o.kind == opEmpty {
		for n < len(v.script) && v.script[n] <= last {
			n++
		}
		if o.kind != opEmpty {
			k = v.p.asks[o.row]
		}
	}
	v.d.begin(k, o.kind == opFail, v.script, n)
	ok := v.r.step(o)
	v.script = v.script[n:]
	v.d.end()
	v.v.SameSegments += v.d.same
	switch {
	case o.kind == opAlloc && ok:
		l := &v.p.t.Lives[o.row]
		if got := v.r.a.Addr(allocator.Block(v.r.held[o.row])); got != l.Addr {
			v.d.faultf(otherBlock, "%s were given at %#x; the replay gives them at %#x.", units.Bytes(l.Requested), l.Addr, got)
			break
		}
		v.v.SameAllocs++
	case o.kind == opAlloc:
		v.d.faultf(otherFailure, "%s were given; in the replay the request fails.", units.Bytes(v.p.asks[o.row].bytes))
	case o.kind == opFail && ok:
		v.d.faultf(otherFailure, "A request of %s failed; the replay serves it.", units.Bytes(v.p.asks[o.row].bytes))
	}
}

// final compares the end with the dump's state.
func (v *validator) final() {
	type key struct {
		addr uint64
		size int64
		live bool
	}
	got := make(map[key]bool)
	for _, seg := range v.r.a.Segments() {
		at := seg.Addr
		for _, p := range seg.Pieces {
			if p.State != allocator.Unmapped {
				got[key{at, p.Size, p.State != allocator.Free}] = true
			}
			at += uint64(p.Size)
		}
	}
	s := v.x.s
	for i := range s.Segments {
		if int(s.Segments[i].Device) != v.p.Device {
			continue
		}
		for j := s.Segments[i].Blocks.Start; j < s.Segments[i].Blocks.End(); j++ {
			b := &s.Blocks[j]
			v.v.Blocks++
			if k := (key{b.Address, b.Size, b.State.Active()}); got[k] {
				v.v.SameBlocks++
				delete(got, k)
			}
		}
	}
	v.v.Blocks += len(got)
	if n := v.v.Blocks - v.v.SameBlocks; n > 0 && v.v.First == nil {
		v.d.faultf(otherBlock, "%s of %s blocks at the end are only in the dump's state or only in the replay.", units.Count(int64(n)), units.Count(int64(v.v.Blocks)))
		v.v.First = &Divergence{Event: v.p.t.Trace.Len(), What: v.d.what, Why: v.reason(&op{kind: opEmpty})}
	}
}
