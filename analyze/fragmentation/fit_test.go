package fragmentation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// At random moments of random programs, with random blocks freed, a request is served in the way in which the simulated
// allocator serves it when it stands in the same state.
func TestServeAsTheAllocatorDoes(t *testing.T) {
	ways := map[fragmentation.Way]int{}
	for seed := range uint64(12) {
		opt := build.RandomOptions{Events: 900, Live: 60, Streams: 1 + int(seed%3), Graphs: int(seed % 2)}
		opt.Expandable = seed%3 == 2
		s := buildtest.Read(t, build.Random(seed, opt))
		tl := timeline.Build(s, 0)
		if seed%4 == 3 {
			tl.Conf.MaxSplit = 32 << 20
		}
		rng := rand.New(rand.NewPCG(seed, 5))
		for range 40 {
			st := tl.StateAt(rng.IntN(tl.Trace.Len()))
			share, gone := rng.Float64(), map[int32]bool{}
			for _, row := range st.Rows() {
				if l := &tl.Lives[row]; rng.Float64() < share && !l.Waits(st.Event) {
					gone[row] = true
				}
			}
			less := fragmentation.Without(tl, st, func(row int32) bool { return gone[row] })
			req := fragmentation.Request{Rounded: tl.Conf.Round(1 + rng.Int64N(64<<20>>rng.IntN(12))),
				DeviceFree: rng.Int64N(8) * mib * (1 + rng.Int64N(9))}
			if n := len(st.Segments); n > 0 {
				req.Stream = st.Segments[rng.IntN(n)].Stream
			}
			got := fragmentation.Serve(tl, less, req)
			want := simulated(s, tl, st, gone, req)
			if want == fragmentation.InHole && got.Way == fragmentation.New && got.Needs == 0 {
				continue // what max_split_size kept, an expandable segment gives without a call to the device
			}
			if got.Way != want {
				t.Fatalf("seed %d, after event %d without %d blocks, %+v: %+v, the allocator: %s", seed, st.Event, len(gone),
					req, got, want)
			}
			ways[got.Way]++
		}
	}
	for _, way := range []fragmentation.Way{"hole", "new", "release", "refused"} {
		if ways[way] < 5 {
			t.Errorf("%q came out %d times only: %v", way, ways[way], ways)
		}
	}
}

// simulated puts a state into an allocator, frees blocks, and asks for memory.
func simulated(s *snapshot.Snapshot, tl *timeline.Timeline, st *timeline.State, gone map[int32]bool,
	req fragmentation.Request) fragmentation.Way {
	var reserved int64
	for i := range st.Segments {
		reserved += st.Segments[i].Size
	}
	device := &allocator.Device{Total: max(reserved+req.DeviceFree, 1)}
	device.Hold(reserved)
	a := allocator.New(allocator.Options{Conf: tl.Conf, Driver: device})
	pools := map[snapshot.PoolID]allocator.Pool{{}: 0}
	spaces := map[string]*space{}
	var order []*space
	for i := range st.Segments {
		seg := &st.Segments[i]
		key := fmt.Sprint(i)
		if seg.Expandable {
			key = fmt.Sprint(seg.Stream, seg.Pool, seg.Kind)
		}
		sp := spaces[key]
		if sp == nil {
			pool, ok := pools[seg.Pool]
			if !ok {
				pool = a.NewPool()
				pools[seg.Pool] = pool
			}
			sp = &space{at: seg.Addr, Segment: allocator.Segment{Addr: seg.Addr, Pool: pool,
				Stream: a.Stream(s.Streams.Handle(seg.Stream)), Small: seg.Kind == snapshot.KindSmall, Expandable: seg.Expandable}}
			if seg.Expandable {
				for _, c := range tl.Changes {
					if r := &c.Range; r.Expandable && fmt.Sprint(r.Stream, r.Pool, r.Kind) == key {
						sp.Addr = min(sp.Addr, r.Addr)
					}
				}
				sp.at = sp.Addr
			}
			spaces[key], order = sp, append(order, sp)
		}
		sp.add(allocator.Unmapped, seg.Addr, -1, 0)
		for _, row := range seg.Live {
			l := &tl.Lives[row]
			sp.add(allocator.Free, l.Addr, -1, 0)
			sp.add(allocator.Live, l.End(), row, l.Requested)
		}
		sp.add(allocator.Free, seg.End(), -1, 0)
	}
	for _, sp := range order {
		if sp.Expandable {
			g := tl.Conf.Granule(sp.Small)
			sp.add(allocator.Unmapped, sp.Addr+uint64((int64(sp.at-sp.Addr)+1<<42)/g*g), -1, 0)
		}
		sp.Size = int64(sp.at - sp.Addr)
		a.Restore(&sp.Segment)
		for k, row := range sp.rows {
			switch {
			case row < 0:
			case gone[row]:
				a.Free(sp.Pieces[k].Block)
			case tl.Lives[row].Waits(st.Event):
				a.FreeRequested(sp.Pieces[k].Block)
			}
		}
	}
	before := *a.Stats()
	_, ok := a.Malloc(req.Rounded, a.Stream(s.Streams.Handle(req.Stream)), 0)
	after := a.Stats()
	switch {
	case !ok:
		return fragmentation.Refused
	case after.NumAllocRetries > before.NumAllocRetries || after.NumDeviceFree > before.NumDeviceFree:
		return fragmentation.Released
	case after.NumDeviceAlloc > before.NumDeviceAlloc:
		return fragmentation.New
	}
	return fragmentation.InHole
}

// space is a segment that is put together, up to at.
type space struct {
	allocator.Segment
	at   uint64
	rows []int32
}

// add adds a piece up to an address; free and unmapped neighbors are one.
func (sp *space) add(state allocator.State, to uint64, row int32, requested int64) {
	if to <= sp.at {
		return
	}
	size := int64(to - sp.at)
	sp.at = to
	if n := len(sp.Pieces); n > 0 && row < 0 && sp.Pieces[n-1].State == state {
		sp.Pieces[n-1].Size += size
		return
	}
	sp.Pieces = append(sp.Pieces, allocator.Piece{Size: size, Requested: requested, State: state})
	sp.rows = append(sp.rows, row)
}

func TestRelieve(t *testing.T) {
	var a, b, c *build.Block
	_, tl := made(t, build.Options{}, func(d *build.Device) {
		a = d.Alloc(8 * mib)
		b = d.Alloc(6 * mib)
		d.Alloc(30 * mib)
		c = d.Alloc(15 * mib)
		d.FreeLater(c)
	})
	st := tl.StateAt(tl.Trace.Len())
	row := func(block *build.Block) int32 {
		return int32(slices.IndexFunc(tl.Lives, func(l timeline.Life) bool { return l.Addr == block.Addr() }))
	}
	if got, want := fragmentation.Relieve(tl, st, []int32{row(a), row(a), row(c)}),
		(fragmentation.Relief{Blocks: 1, Bytes: 8 * mib, Waiting: 1, Largest: 8 * mib}); got != want {
		t.Errorf("one block: %+v, want %+v", got, want)
	}
	if got, want := fragmentation.Relieve(tl, st, []int32{row(a), row(b)}), (fragmentation.Relief{Blocks: 2,
		Bytes: 14 * mib, Returned: 20 * mib, Segments: 1, Largest: 20 * mib}); got != want {
		t.Errorf("both blocks of a segment: %+v, want %+v", got, want)
	}
}
