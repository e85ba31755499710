package whatif_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

func edited(t testing.TB, p *whatif.Program, e whatif.Edits) *whatif.Program {
	t.Helper()
	q, err := p.Edited(e)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestEditNothing holds that edits which change nothing leave every replay as it was, to the byte.
func TestEditNothing(t *testing.T) {
	for _, shape := range build.Shapes() {
		o := shape.Options
		o.Events, o.Stacks = 800, 40
		made := build.Random(7, o)
		s := buildtest.Read(t, made)
		tl := timeline.Build(s, 0)
		p, _ := loaded(t, s, tl)
		for _, opt := range []whatif.Options{{}, {Start: whatif.Anew}, {Capacity: tl.PeakReserved.Bytes / 2}} {
			opt.Curve = 64
			for _, conf := range []string{p.Recorded.Text, "expandable_segments:True"} {
				want := run(t, p, conf, opt)
				for _, e := range []whatif.Edits{{}, p.Unchanged()} {
					if got := run(t, edited(t, p, e), conf, opt); !reflect.DeepEqual(got, want) {
						t.Errorf("%s, %q: %+v, want %+v", shape.Name, conf, got, want)
					}
				}
			}
		}
	}
}

// TestEditLevels holds that the requested bytes of an edited program are those of its lives, which are summed up here in
// the order that Edits tells.
func TestEditLevels(t *testing.T) {
	for seed := range uint64(20) {
		opt := build.RandomOptions{Options: build.Options{Late: seed%2 == 1}, Events: 400, Stacks: 10, Streams: 1}
		made := build.Random(seed, opt)
		s := buildtest.Read(t, made)
		tl := timeline.Build(s, 0)
		p, _ := loaded(t, s, tl)
		rng := rand.New(rand.NewPCG(seed, 1))
		e := p.Unchanged()
		n := int32(tl.Trace.Len())
		for row := range tl.Lives {
			l := &tl.Lives[row]
			switch rng.IntN(6) {
			case 0:
				e.Sizes[row] = whatif.Dropped
			case 1:
				e.Sizes[row] = 1 + rng.Int64N(8*mib)
			case 2:
				e.Ends[row] = l.Born + rng.Int32N(n-l.Born)
			case 3:
				e.Ends[row] = whatif.Never
			}
		}
		for range 50 {
			born := rng.Int32N(n)
			l := whatif.Life{Born: born, Freed: born + rng.Int32N(n-born), Bytes: 1 + rng.Int64N(8*mib),
				Like: rng.Int32N(int32(len(tl.Lives)))}
			if rng.IntN(4) == 0 {
				l.Freed = whatif.Never
			}
			e.Added = append(e.Added, l)
		}
		out := run(t, edited(t, p, e), p.Recorded.Text, whatif.Options{Start: whatif.Anew})
		if want := levels(tl, &e); out.Stats.RequestedBytes[allocator.All].Peak != want {
			t.Errorf("seed %d: requested peak %d, want %d", seed, out.Stats.RequestedBytes[allocator.All].Peak, want)
		}
	}
}

// levels is the highest sum of requested bytes of an edited program, event by event.
func levels(tl *timeline.Timeline, e *whatif.Edits) int64 {
	ends := make([]int32, len(tl.Lives))
	var sum, most int64
	add := func(n int64) {
		sum += n
		most = max(most, sum)
	}
	for row := range tl.Lives {
		if tl.Lives[row].Born < 0 {
			add(e.Sizes[row])
		}
		if ends[row] = e.Ends[row]; e.Ends[row] == whatif.AsRecorded {
			ends[row] = whatif.Never
		}
	}
	for at := int32(-1); at < int32(tl.Trace.Len()); at++ {
		for _, l := range e.Added {
			if l.Born == at {
				add(l.Bytes)
			}
		}
		for row := range tl.Lives {
			if l := &tl.Lives[row]; e.Ends[row] == whatif.AsRecorded && at >= 0 && l.GivenUp() == at {
				add(-e.Sizes[row])
			}
		}
		for row := range tl.Lives {
			if at >= 0 && tl.Lives[row].Born == at {
				add(e.Sizes[row])
			}
		}
		for row := range tl.Lives {
			if ends[row] == at {
				add(-e.Sizes[row])
			}
		}
		for _, l := range e.Added {
			if l.Freed == at {
				add(-l.Bytes)
			}
		}
	}
	return most
}

// TestEditDrops holds that what a stack asked for is gone with it, and no other request: what is left of the program runs
// as one that never asked for that.
func TestEditDrops(t *testing.T) {
	for seed := range uint64(6) {
		program := func(with bool) func(d *build.Device) {
			return func(d *build.Device) {
				rng := rand.New(rand.NewPCG(seed, 2))
				var held []*build.Block
				for range 200 {
					n := 1 + rng.Int64N(4*mib)
					if with {
						held = append(held, d.Alloc(n|1)) // odd sizes are those that go
					}
					held = append(held, d.Alloc(n&^1+2))
					if k := rng.IntN(100); k < 60 {
						for _, b := range held {
							d.Free(b)
						}
						held = held[:0]
					}
				}
			}
		}
		load := func(with bool) (*timeline.Timeline, *whatif.Program) {
			s := buildtest.Read(t, build.Run(build.Options{}, program(with)))
			tl := timeline.Build(s, 0)
			p, _ := loaded(t, s, tl)
			return tl, p
		}
		tl, p := load(true)
		e := p.Unchanged()
		for row := range tl.Lives {
			if tl.Lives[row].Requested%2 == 1 {
				e.Sizes[row] = whatif.Dropped
			}
		}
		_, never := load(false)
		got, want := run(t, edited(t, p, e), "", whatif.Options{}), run(t, never, "", whatif.Options{})
		if got.ReservedPeak != want.ReservedPeak || got.AllocatedPeak != want.AllocatedPeak || got.Stats != want.Stats {
			t.Errorf("seed %d: %+v, want %+v", seed, got.Stats, want.Stats)
		}
	}
}

// TestEditTurns holds that what is added at one event is done in turns: three blocks of which two are there at once.
func TestEditTurns(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) { d.Free(d.Alloc(30 * mib)) }))
	p, _ := loaded(t, s, timeline.Build(s, 0))
	tl := timeline.Build(s, 0)
	at := tl.Lives[0].Born
	life := func(turn, until int32) whatif.Life {
		return whatif.Life{Born: at, Freed: at, Turn: turn, Until: until, Bytes: 20 * mib}
	}
	for _, c := range []struct {
		added []whatif.Life
		want  int64
	}{
		{[]whatif.Life{life(0, 1), life(1, 2), life(2, 3)}, 30},
		{[]whatif.Life{life(0, 2), life(1, 3), life(2, 4)}, 40},
		{[]whatif.Life{life(2, 4), life(1, 3), life(0, 2)}, 40},
		{[]whatif.Life{life(0, 1), life(1, 0)}, 50},
	} {
		out := run(t, edited(t, p, whatif.Edits{Added: c.added}), "", whatif.Options{})
		if out.AllocatedPeak != c.want*mib {
			t.Errorf("%v: peak %d MiB, want %d", c.added, out.AllocatedPeak/mib, c.want)
		}
	}
}

// TestEditApart holds that a stream of added lives shares no memory with others: what they leave free is not reused.
func TestEditApart(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(30 * mib))
		d.Free(d.Alloc(30 * mib))
	}))
	tl := timeline.Build(s, 0)
	p, _ := loaded(t, s, tl)
	second := tl.Lives[1].Born
	for apart, want := range map[uint8]int64{0: 30, 1: 60, 2: 60} {
		e := whatif.Edits{Added: []whatif.Life{{Born: second, Freed: second, Turn: 1, Until: 2, Bytes: 30 * mib, Apart: apart}}}
		out := run(t, edited(t, p, e), p.Recorded.Text, whatif.Options{})
		if out.ReservedPeak != want*mib || out.AllocatedPeak != 30*mib {
			t.Errorf("stream %d: %d MiB reserved, %d allocated", apart, out.ReservedPeak/mib, out.AllocatedPeak/mib)
		}
	}
}

// TestEditRefuses holds that edits which contradict themselves are an error.
func TestEditRefuses(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Alloc(mib)
		d.Free(d.Alloc(2 * mib))
	}))
	p, _ := loaded(t, s, timeline.Build(s, 0))
	ends := func(of ...int32) whatif.Edits { return whatif.Edits{Ends: of} }
	life := func(l whatif.Life) whatif.Edits { return whatif.Edits{Added: []whatif.Life{l}} }
	for name, e := range map[string]whatif.Edits{
		"too few sizes": {Sizes: []int64{1}}, "a size below 0": {Sizes: []int64{-1, 1}},
		"too few ends": ends(0), "an end before the birth": ends(whatif.AsRecorded, 0),
		"an added life that ends before it begins": life(whatif.Life{Born: 1, Bytes: 1}),
		"a turn that ends before it begins":        life(whatif.Life{Born: 1, Freed: 1, Turn: 2, Until: 2, Bytes: 1}),
		"an added life of no bytes":                life(whatif.Life{Freed: 1}),
		"an added life like none":                  life(whatif.Life{Freed: 1, Bytes: 1, Like: 2}),
	} {
		if _, err := p.Edited(e); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := edited(t, p, life(whatif.Life{Freed: 1, Bytes: 1})).Edited(whatif.Edits{}); err == nil {
		t.Error("edited twice: no error")
	}
}
