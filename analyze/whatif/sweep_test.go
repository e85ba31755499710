package whatif_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// warm is a program that was recorded from its middle on.
func warm(d *build.Device) {
	var held []*build.Block
	for i := range 40 {
		held = append(held, d.Alloc(int64(1+i%9)<<20))
	}
	for i := 0; i < 40; i += 2 {
		d.Free(held[i])
	}
	d.FreeLater(held[1])
	d.Record()
	for range 3 {
		x, y := d.Alloc(30*mib), d.Alloc(3*mib)
		d.Free(x)
		d.Free(y)
	}
	d.Complete(1)
	d.Free(held[3])
	d.Alloc(64 * mib)
}

func TestStart(t *testing.T) {
	for _, opt := range []build.Options{{Late: true}, {Late: true, Expandable: true}} {
		made := build.Run(opt, warm)
		s := buildtest.Read(t, made)
		tl := timeline.Build(s, 0)
		p, v := loaded(t, s, tl)
		exact(t, "recorded late", v, 7)
		if p.Warm != 20 || p.WarmBytes != made.Truth[0].Initial.Active ||
			p.StartReserved != made.Truth[0].Initial.Reserved {
			t.Errorf("%d blocks of %d bytes in %d: %+v", p.Warm, p.WarmBytes, p.StartReserved, made.Truth[0].Initial)
		}
		// Kept where they were, all is as recorded.
		o := run(t, p, p.Recorded.Text, whatif.Options{Start: whatif.Keep})
		if o.ReservedPeak != tl.PeakReserved.Bytes ||
			o.AllocatedPeak != tl.PeakAllocated.Bytes || o.ReservedEnd != tl.Final.Reserved ||
			o.Stats.AllocatedBytes[allocator.All].Current != tl.Final.Allocated {
			t.Errorf("kept: %+v, want %+v and %+v", o, tl.PeakReserved, tl.Final)
		}
		// Asked for anew they leave no holes.
		n := run(t, p, p.Recorded.Text, whatif.Options{Start: whatif.Anew})
		if n.ReservedPeak >= o.ReservedPeak ||
			n.Stats.AllocatedBytes[allocator.All].Current != o.Stats.AllocatedBytes[allocator.All].Current ||
			n.DeviceAllocs == 0 {
			t.Errorf("anew: %+v, kept %+v", n, o)
		}
		// What was reserved must fit, or be asked for anew.
		small := p.StartReserved - mib
		if o := run(t, p, "", whatif.Options{Capacity: small}); !o.StartFailed {
			t.Error("segments of before the trace are kept on a device that is too small for them")
		}
		if o := run(t, p, "", whatif.Options{Capacity: small, Start: whatif.Anew}); o.StartFailed {
			t.Error("blocks of before the trace do not fit anew")
		}
		if o := run(t, p, "", whatif.Options{Capacity: 20 * mib, Start: whatif.Anew}); !o.StartFailed {
			t.Error("blocks of before the trace fit on a device of 20 MiB")
		}
	}
}

func TestSettings(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, pieces))
	p := whatif.NewProgram(s, timeline.Build(s, 0))
	few, many := p.Settings(false), p.Settings(true)
	if few[0].Text != "" || few[0].Conf != p.Recorded.Conf || len(few) < 8 || len(many) < len(few)+10 {
		t.Errorf("%d and %d settings, the first %+v", len(few), len(many), few[0])
	}
	seen := make(map[allocator.Conf]string)
	for _, set := range many {
		c := set.Conf
		if c.Needs > p.Recorded.Release {
			t.Errorf("%q is not known to torch %v", set.Text, p.Recorded.Release)
		}
		c.Needs = 0
		if old, ok := seen[c]; ok {
			t.Errorf("%q is %q again", set.Text, old)
		}
		seen[c] = set.Text
	}
	s.Settings.ExpandableSegments = true // as where the setting was ignored, or changed later
	p = whatif.NewProgram(s, timeline.Build(s, 0))
	if got := p.Settings(false)[0]; got.Text != "expandable_segments:True" || !got.Conf.Expandable {
		t.Errorf("the recorded settings are %+v", got)
	}
	if _, err := p.Setting("max_split_size_mb:3"); err == nil {
		t.Error("wrong settings are taken")
	}
}

// TestShared compares outcomes that settings share with those of replays of their own: where no block is as large as
// max_split_size, where one is, and where requests fail.
func TestShared(t *testing.T) {
	for seed := range uint64(12) {
		opt := build.RandomOptions{Options: build.Options{Late: seed%2 == 0, Expandable: seed%3 == 0}, Events: 300}
		if seed%4 > 0 {
			opt.Capacity = 100 * mib << (seed % 4)
		}
		s := buildtest.Read(t, build.Random(seed, opt))
		p := whatif.NewProgram(s, timeline.Build(s, 0))
		settings := p.Settings(true)
		for _, o := range []whatif.Options{{Curve: 16}, {Capacity: p.StartReserved + 64*mib},
			{Capacity: 100 * mib, Start: whatif.Anew}} {
			outs, err := p.Sweep(t.Context(), settings, o)
			if err != nil {
				t.Fatal(err)
			}
			for i := range outs {
				if alone := run(t, p, settings[i].Text, o); !reflect.DeepEqual(outs[i], alone) {
					t.Errorf("seed %d, %q: the sweep has %+v, alone %+v", seed, settings[i].Text, outs[i], alone)
				}
			}
		}
	}
}

func TestSweep(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{Capacity: 400 * mib}, pieces))
	p := whatif.NewProgram(s, timeline.Build(s, 0))
	settings := p.Settings(false)
	outs, err := p.Sweep(t.Context(), settings, whatif.Options{Capacity: p.Capacity})
	if err != nil || len(outs) != len(settings) {
		t.Fatalf("%d outcomes of %d settings, error %v", len(outs), len(settings), err)
	}
	for i := range outs {
		alone := run(t, p, settings[i].Text, whatif.Options{Capacity: p.Capacity})
		if outs[i].Stats != alone.Stats {
			t.Errorf("%q: the sweep has another outcome", settings[i].Text)
		}
	}
	a := whatif.Advise(settings, outs)
	if a.Best < 0 || !settings[a.Best].Conf.Expandable ||
		!strings.Contains(a.Text, "the request that failed is served (event 13)") ||
		!strings.Contains(strings.Join(a.Costs, " "), "CUDA IPC") {
		t.Errorf("advice: %+v", a)
	}
	if _, err := p.Sweep(t.Context(), []whatif.Setting{{Reading: allocator.Reading{Conf: allocator.Conf{Async: true}}}},
		whatif.Options{}); !errors.Is(err, whatif.ErrAsync) {
		t.Errorf("error %v", err)
	}
}

// TestAdviceNeedsMargin holds that no setting is recommended for a little.
func TestAdviceNeedsMargin(t *testing.T) {
	outcome := func(reserved, allocated, calls int64, failures int) *whatif.Outcome {
		return &whatif.Outcome{ReservedPeak: reserved, AllocatedPeak: allocated, DeviceAllocs: calls,
			Failures: failures}
	}
	settings := []whatif.Setting{{Text: ""}, {Text: "a"}, {Text: "b"}, {Text: "c"}}
	for i := range settings {
		settings[i].Conf = allocator.Default()
	}
	settings[3].Conf.MaxSplit = 64 * mib
	for _, c := range []struct {
		name string
		outs []*whatif.Outcome
		best int
		text string
	}{
		{"nothing better", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 0), outcome(1000*mib, 900*mib, 50, 0)}, -1,
			""},
		{"too little", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 0), outcome(940*mib, 900*mib, 50, 0)}, -1, ""},
		{"less than a twentieth", []*whatif.Outcome{outcome(10000*mib, 900*mib, 50, 0),
			outcome(9600*mib, 900*mib, 50, 0)},
			-1, ""},
		{"the lowest", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 0), outcome(900*mib, 900*mib, 50, 0),
			outcome(800*mib, 900*mib, 90, 0)}, 2, "With b, the peak of reserved memory is 200 MiB lower (20%)."},
		{"of equals that with fewer calls", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 0),
			outcome(800*mib, 900*mib, 50, 0), outcome(799*mib, 900*mib, 90, 0)}, 1, ""},
		{"no lower peak for a failure", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 0),
			outcome(500*mib, 400*mib, 50, 1)}, -1, ""},
		{"a saved request", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 1), outcome(1001*mib, 900*mib, 50, 0)}, 1,
			"With a, every request is served"},
		{"fewer failures", []*whatif.Outcome{outcome(1000*mib, 900*mib, 50, 3), outcome(1001*mib, 900*mib, 50, 2)}, 1,
			"2 instead of 3"},
		{"trade-off", []*whatif.Outcome{outcome(1000*mib, 800*mib, 50, 0), outcome(999*mib, 800*mib, 50, 0),
			outcome(999*mib, 800*mib, 50, 0), outcome(900*mib, 890*mib, 500, 0)}, 3, "With c"},
	} {
		a := whatif.Advise(settings[:len(c.outs)], c.outs)
		if a.Best != c.best || !strings.Contains(a.Text, c.text) {
			t.Errorf("%s: %+v, want %d", c.name, a, c.best)
		}
		costs := strings.Join(a.Costs, "\n")
		if c.name == "trade-off" && (!strings.Contains(costs, "500 instead of 50") ||
			!strings.Contains(costs, "90.0 MiB more") || !strings.Contains(costs, "max_split_size_mb")) {
			t.Errorf("costs: %s", costs)
		}
	}
}

// TestSmallestCapacity searches on programs whose answer is known.
func TestSmallestCapacity(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{Capacity: 400 * mib}, pieces))
	p := whatif.NewProgram(s, timeline.Build(s, 0))
	for conf, want := range map[string]int64{
		"": 520 * mib, // 320 MiB in two segments and 200 more
		// One segment: 140 MiB are free at its end, and a hole of 100 MiB is moved there.
		"expandable_segments:True": 320 * mib,
	} {
		set, err := p.Setting(conf)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.SmallestCapacity(t.Context(), whatif.Options{Conf: set.Conf})
		if err != nil || got != want {
			t.Errorf("%q: %d MiB, want %d (error %v)", conf, got/mib, want/mib, err)
		}
		if o := run(t, p, conf, whatif.Options{Capacity: got}); o.First != nil || o.Served != 1 {
			t.Errorf("%q: %d failures with that much", conf, o.Failures)
		}
		if o := run(t, p, conf, whatif.Options{Capacity: got - 2*mib}); o.First == nil {
			t.Errorf("%q: 2 MiB less are enough too", conf)
		}
	}
	// The cache of a run without limit is given back on a smaller device.
	s = buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Free(d.Alloc(100 * mib))
		d.Free(d.Alloc(200 * mib))
	}))
	p = whatif.NewProgram(s, timeline.Build(s, 0))
	if got, err := p.SmallestCapacity(t.Context(), whatif.Options{Conf: p.Recorded.Conf}); err != nil ||
		got != 200*mib {
		t.Errorf("%d MiB, error %v", got/mib, err)
	}
	// Most is in use at the beginning, and pieces need more room later, early in the trace or late in it.
	for _, rest := range []int{0, 1, 30} {
		s = buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
			d.Alloc(20 * mib)
			d.Free(d.Alloc(300 * mib))
			for range 10 {
				d.Free(d.Alloc(200 * mib)) // of the 300
			}
			d.Alloc(40 * mib) // too
			d.Alloc(270 * mib)
			for range rest {
				d.Free(d.Alloc(10 * mib))
			}
		}))
		p = whatif.NewProgram(s, timeline.Build(s, 0))
		got, err := p.SmallestCapacity(t.Context(), whatif.Options{Conf: p.Recorded.Conf})
		if err != nil || got <= 330*mib {
			t.Errorf("with %d more: %d MiB, error %v", rest, got/mib, err)
		}
		if o := run(t, p, "", whatif.Options{Capacity: got}); o.First != nil {
			t.Errorf("with %d more: %d failures with that much", rest, o.Failures)
		}
		if o := run(t, p, "", whatif.Options{Capacity: got - 2*mib}); o.First == nil {
			t.Errorf("with %d more: 2 MiB less are enough too", rest)
		}
	}
	c := p.Recorded.Conf
	c.Async = true
	if _, err := p.SmallestCapacity(t.Context(), whatif.Options{Conf: c}); !errors.Is(err, whatif.ErrAsync) {
		t.Errorf("error %v", err)
	}
}

// TestCurve holds that a curve covers every event once and has the peaks.
func TestCurve(t *testing.T) {
	p, _ := program(t, "../../fixtures/healthy.pickle")
	for _, points := range []int{1, 7, 500, 100000} {
		o := run(t, p, "", whatif.Options{Curve: points})
		next, reserved, allocated := 0, int64(0), int64(0)
		for _, s := range o.Curve {
			if s.First != next || s.Last < s.First {
				t.Fatalf("%d points: a span from %d to %d after %d", points, s.First, s.Last, next)
			}
			next = s.Last + 1
			reserved, allocated = max(reserved, s.Reserved), max(allocated, s.Allocated)
		}
		if next != 10292 || len(o.Curve) > points || reserved != o.ReservedPeak || allocated != o.AllocatedPeak {
			t.Errorf("%d points: %d up to event %d, peaks %d and %d", points, len(o.Curve), next, reserved, allocated)
		}
	}
	if o := run(t, p, "", whatif.Options{}); o.Curve != nil {
		t.Error("a curve that nobody asked for")
	}
}

// TestEmptyCache replays releases that the program asked for under other settings.
func TestEmptyCache(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("a.py:1:f")
		x := d.Alloc(100 * mib)
		y := d.Alloc(30 * mib)
		d.Free(x)
		d.Stack = build.NewStack("a.py:2:f")
		d.EmptyCache()
		d.Stack = build.NewStack("a.py:3:f")
		d.Alloc(120 * mib)
		d.Free(y)
	}))
	p := whatif.NewProgram(s, timeline.Build(s, 0))
	for conf, want := range map[string]int64{"": 150 * mib, "expandable_segments:True": 160 * mib} {
		if o := run(t, p, conf, whatif.Options{}); o.ReservedPeak != want || o.DeviceFrees != 1 {
			t.Errorf("%q: peak %d MiB, %d releases", conf, o.ReservedPeak/mib, o.DeviceFrees)
		}
	}
}

// BenchmarkReplay measures the requests of the largest recording at hand.
func BenchmarkReplay(b *testing.B) {
	path := shared + "corpus/kv_cache_generation/snapshot.pickle"
	if !exists(path) {
		path = "../../fixtures/healthy.pickle"
	}
	p, _ := program(b, path)
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:32,roundup_power2_divisions:8"} {
		b.Run(conf, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				run(b, p, conf, whatif.Options{})
			}
			b.ReportMetric(float64(p.Allocs)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrequests/s")
		})
	}
}

// BenchmarkSweep is the default set on the largest recording, timeline and validation included.
func BenchmarkSweep(b *testing.B) {
	path := shared + "corpus/big/snapshot.pickle.zst"
	if !exists(path) {
		b.Skip("no large recording")
	}
	s := open(b, path)
	for range b.N {
		p, _ := loaded(b, s, timeline.Build(s, 0))
		if _, err := p.Sweep(b.Context(), p.Settings(false), whatif.Options{Curve: 1000}); err != nil {
			b.Fatal(err)
		}
	}
}
