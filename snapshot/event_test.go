package snapshot_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snapana/snapana/snapshot"
)

// TestEvents holds that a table gives back what it was given: also what is too large for its columns, where chunks
// begin and end, and in rows that are used again.
func TestEvents(t *testing.T) {
	odd := []snapshot.Event{
		{},
		{Addr: math.MaxUint64, Size: math.MaxInt64, Time: math.MaxInt64, Stack: math.MaxInt32, Label: math.MaxInt32,
			Stream: math.MaxInt32, Action: snapshot.NumActions - 1, Has: 15},
		{Size: -1, Time: math.MinInt64, Action: snapshot.OOM, Has: snapshot.EventHasDeviceFree},
		{Size: math.MaxUint32, Stack: 1}, {Size: math.MaxUint32 + 1, Stack: 2},
		{Time: math.MaxInt32}, {Time: math.MaxInt32 + 1}, {Time: math.MinInt32}, {Time: math.MinInt32 - 1},
		{Label: math.MaxUint16}, {Label: math.MaxUint16 + 1}, {Stream: 254}, {Stream: 255}, {Stream: 256},
		{Addr: 1, Stream: 255, Time: 7, Action: snapshot.Alloc, Has: snapshot.EventHasTime},
	}
	const n = 70_000 // of each
	for _, start := range []int64{0, 1.7e15, math.MaxInt64, math.MinInt64} {
		want := func(i int) snapshot.Event {
			e := odd[i%len(odd)]
			if i%3 > 0 {
				e = snapshot.Event{Addr: uint64(i) << 9, Size: int64(i), Time: start - int64(i), Stack: snapshot.StackID(i),
					Action: snapshot.Action(i % int(snapshot.NumActions)), Has: snapshot.EventHas(i % 16)}
			}
			return e
		}
		var events snapshot.Events
		for i := range n {
			events.Add(want(i))
		}
		for half := range 2 {
			trace := snapshot.NewTrace(&events, half*n/2, events.Len()-half*n/2)
			var sum snapshot.Span
			for i := range trace.Len() {
				e := want(half*n/2 + i)
				if got := trace.At(i); got != e {
					t.Fatalf("from %d, event %d is %+v, want %+v", start, i, got, e)
				}
				addr, size := trace.Block(i)
				if addr != e.Addr || size != e.Size || trace.Action(i) != e.Action ||
					trace.Stack(i) != e.Stack || trace.Label(i) != e.Label || trace.Time(i) != e.Time {
					t.Fatalf("from %d, event %d is %+v by itself, and not by its parts", start, i, e)
				}
				sum.Add(&e)
			}
			if got := trace.Sum(); got != sum {
				t.Fatalf("from %d, the sum is %+v, want %+v", start, got, sum)
			}
			events.Forget(n / 2)
			for i := range n {
				events.Add(want(n + i))
			}
		}
	}
}

// TestSpans holds that runs of events sum up to the same as all their events, one by one: of traces that begin and end
// anywhere, with and without times, stacks and labels.
func TestSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		var events snapshot.Events
		timed, stacks, labels := rng.IntN(4) > 0, rng.IntN(3), rng.IntN(2)
		now := rng.Int64N(1 << 50)
		for range rng.IntN(100_000) {
			e := snapshot.Event{Addr: rng.Uint64(), Size: rng.Int64N(1 << 31), Stack: snapshot.StackID(rng.IntN(stacks + 1)),
				Action: snapshot.Action(rng.IntN(int(snapshot.NumActions)))}
			if common := rng.IntN(20_000) > 0; common && e.Action > snapshot.FreeCompleted {
				e.Action = snapshot.Alloc // whole chunks have no others
			}
			if timed {
				now += rng.Int64N(1000) - 10
				e.Time, e.Has = now, snapshot.EventHasTime
			}
			if rng.IntN(40_000) == 0 {
				e = snapshot.Event{Label: snapshot.LabelID(labels)}
			}
			events.Add(e)
		}
		start := rng.IntN(events.Len() + 1)
		trace := snapshot.NewTrace(&events, start, rng.IntN(events.Len()-start+1))
		next := 0
		for first, got := range trace.Spans() {
			var want snapshot.Span
			for i := range got.Events {
				e := trace.At(first + i)
				want.Add(&e)
			}
			if first != next || *got != want {
				t.Fatalf("from %d: %+v, want %+v from %d", first, *got, want, next)
			}
			next += got.Events
		}
		kinds := rng.Uint32() & rng.Uint32() & rng.Uint32()
		var want []int
		for i := range trace.Len() {
			if kinds>>trace.Action(i)&1 != 0 {
				want = append(want, i)
			}
		}
		var forward, backward []int
		for i := trace.Next(kinds, 0); i < trace.Len(); i = trace.Next(kinds, i+1) {
			forward = append(forward, i)
		}
		for i := trace.Last(kinds, trace.Len()); i >= 0; i = trace.Last(kinds, i) {
			backward = append(backward, i)
		}
		slices.Reverse(backward)
		if !slices.Equal(forward, want) || !slices.Equal(backward, want) {
			t.Fatalf("of kinds %x: %d forward, %d backward, want %d", kinds, len(forward), len(backward), len(want))
		}
		if sum := trace.Sum(); next != trace.Len() || sum.Events != next {
			t.Fatalf("%d events in spans, %d in their sum, of %d", next, sum.Events, trace.Len())
		}
	}
}
