package phase_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const mib = 1 << 20

func find(t *testing.T, s *snapshot.Snapshot, records ...Map) []phase.Phase {
	t.Helper()
	var f *sidecar.File
	if records != nil {
		f = file(t, records...)
	}
	return phase.Find(s, timeline.Build(s, 0), f)
}

func file(t *testing.T, records ...Map) *sidecar.File {
	t.Helper()
	f, err := sidecar.Read(t.Context(), bytes.NewReader(Stream(append([]Map{Header()}, records...)...)), "run.snapana",
		sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// say is a phase in short: of each lap its number, start, peak, end and what it left, in MiB.
func say(p *phase.Phase) string {
	out := fmt.Sprintf("%s %d/%d %v", p.Name, p.Seen, p.Laps, p.Bound)
	for _, l := range p.List {
		out += fmt.Sprintf(" | %d: %s %s %s left %s %s", l.Number, in(l.Start), in(l.Peak), in(l.End), in(l.Left), l.How)
	}
	return out
}

func in(n int64) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n / mib)
}

func compare(t *testing.T, got []phase.Phase, want ...string) {
	t.Helper()
	var all []string
	for i := range got {
		all = append(all, say(&got[i]))
	}
	if fmt.Sprintf("%q", all) != fmt.Sprintf("%q", want) {
		t.Errorf("got\n%q\nwant\n%q", all, want)
	}
}

// trainer allocates 10 MiB, then in each of two laps 4 MiB that stay and 20 MiB that go, half of them in a scope within.
func trainer(d *build.Device) {
	d.Stack = build.NewStack("/app/train.py:3:main")
	d.Alloc(10 * mib)
	d.Wait(1000)
	for i := range 2 {
		d.Annotate(fmt.Sprintf("epoch %d", i), func() {
			d.Stack = build.NewStack("/app/train.py:7:keep", "/app/train.py:4:main")
			d.Alloc(4 * mib)
			d.Stack = build.NewStack("/app/train.py:9:work", "/app/train.py:5:main")
			a := d.Alloc(10 * mib)
			d.Wait(1000)
			d.Annotate("inner", func() { d.Free(d.Alloc(10 * mib)) })
			d.Wait(1000)
			d.Free(a)
		})
		d.Wait(1000)
	}
}

func TestScopes(t *testing.T) {
	got := find(t, buildtest.Read(t, build.Run(build.Options{}, trainer)))
	compare(t, got, "epoch 2/2 exact | 1: 10 34 14 left 4 trace | 2: 14 38 18 left 4 trace",
		"inner 2/2 exact | 1: 24 34 24 left 0 trace | 2: 28 38 28 left 0 trace")
	p := &got[0]
	if p.Peak().Number != 2 || p.Lowest != 34*mib || p.Last != 1 || p.Most != 0 || p.Open != 0 || p.Library ||
		p.Source != phase.Annotation {
		t.Errorf("%+v", p)
	}
	// Of two lives of one site that are there at the peak, one is of the scope within.
	if h := p.Holds; len(h) != 2 || h[0].Site != "train.py:9 work" || h[0].Bytes != 20*mib || h[0].Count != 2 ||
		h[1].Bytes != 4*mib {
		t.Errorf("at the peak: %+v", h)
	}
	if l := p.Leaves; len(l) != 1 || l[0].Site != "train.py:7 keep" || l[0].Bytes != 4*mib {
		t.Errorf("left: %+v", l)
	}
}

// A scope that is open when the dump is made, as one is in which an error is handled.
func TestOpen(t *testing.T) {
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Annotate("Optimizer.step#Adam.step", func() { d.Free(d.Alloc(2 * mib)) })
		d.Annotate("rollout", func() {
			for range 20 {
				d.Free(d.Alloc(2 * mib))
			}
			d.Alloc(6 * mib)
		})
	}))
	s.Annotations = s.Annotations[:len(s.Annotations)-1]
	got := find(t, s)
	compare(t, got, "rollout 1/1 exact | 1: 0 6 6 left ? trace", "Optimizer.step 1/1 exact | 1: 0 2 0 left 0 trace")
	if got[0].Open != 1 || got[0].List[0].Ended || got[0].Most != -1 || got[0].Leaves != nil || !got[1].Library {
		t.Errorf("%+v", got)
	}
}

// A recorded is a random program that names its phases, with what is true of each lap.
type recorded struct {
	records []Map
	laps    []truth
	final   Map // counters at the dump
}

type truth struct {
	name                   string
	start, peak, end, left int64
	born                   int // allocations when it began
	ended                  bool
}

// program makes random allocations, frees and laps.
func (r *recorded) program(seed uint64, ops int) func(d *build.Device) {
	return func(d *build.Device) { // twice
		rng := rand.New(rand.NewPCG(seed, 2))
		*r = recorded{}
		type block struct {
			*build.Block
			number int
		}
		var live []block
		var open []int
		allocs, frees := 0, 0
		peak := int64(0)
		level := func() Map {
			return Map{"device", 0, "allocated", d.Now().Allocated, "peak", peak, "reserved", d.Now().Reserved,
				"reserved_peak", d.Now().Reserved, "allocs", allocs, "frees", frees}
		}
		end := func(k int) {
			at := open[k]
			open = append(open[:k:k], open[k+1:]...)
			l := &r.laps[at]
			l.end, l.ended = d.Now().Allocated, true
			for _, b := range live {
				if b.number >= l.born {
					l.left += b.Size()
				}
			}
			r.records = append(r.records, Map{"type", "phase", "time", 2 + len(r.records), "stage", "end", "id", at,
				"devices", []Map{level()}})
		}
		for range ops {
			switch n := rng.IntN(20); {
			case n < 9:
				live = append(live, block{d.Alloc(int64(1+rng.IntN(64)) * 300_000), allocs})
				allocs++
			case n < 17 && len(live) > 0:
				k := rng.IntN(len(live))
				if n == 9 {
					d.FreeLater(live[k].Block)
				} else {
					d.Free(live[k].Block)
				}
				live = append(live[:k:k], live[k+1:]...)
				frees++
			case n == 17:
				d.Complete(d.Waiting())
			case n == 18:
				at := len(r.laps)
				name := fmt.Sprint("phase ", rng.IntN(3))
				lap := 0
				for _, l := range r.laps {
					if l.name == name {
						lap++
					}
				}
				now := d.Now().Allocated
				r.laps = append(r.laps, truth{name: name, start: now, peak: now, born: allocs})
				r.records = append(r.records, Map{"type", "phase", "time", 2 + len(r.records), "stage", "begin", "id", at, "name", name,
					"lap", lap, "devices", []Map{level()}})
				open = append(open, at)
			case len(open) > 0:
				end(rng.IntN(len(open))) // threads need not end as they began
			}
			peak = max(peak, d.Now().Allocated)
			for _, at := range open {
				r.laps[at].peak = max(r.laps[at].peak, d.Now().Allocated)
			}
		}
		r.final = level()
	}
}

// What a trace has is exact, whatever the ring has lost; what it lacks is never more than the truth.
func TestRandomPrograms(t *testing.T) {
	whole, cut, before := 0, 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var r recorded
		opt := build.Options{}
		if rng.IntN(2) == 0 {
			opt.Ring = 50 + rng.IntN(400)
		}
		s := buildtest.Read(t, build.Run(opt, r.program(seed, 400)))
		r.records = append(r.records, Map{"type", "snapshot", "time", 9, "file", "made.pickle", "bytes", s.Bytes,
			"counters", []Map{r.final}})
		of := map[string][]truth{}
		for _, l := range r.laps {
			of[l.name] = append(of[l.name], l)
		}
		for _, p := range find(t, s, r.records...) {
			most := int64(0)
			for _, l := range of[p.Name] {
				most = max(most, l.peak)
			}
			if p.Bound == timeline.Exact && p.Peak().Peak != most || p.Peak().Peak > most {
				t.Errorf("seed %d: %s: %v %d, not %d", seed, p.Name, p.Bound, p.Peak().Peak, most)
			}
			for _, l := range p.List {
				w := of[p.Name][l.Number-1]
				if l.Ended != w.ended {
					t.Errorf("seed %d: %s lap %d: ended %v", seed, p.Name, l.Number, l.Ended)
				}
				switch {
				case l.How == phase.ByTrace:
					whole++
					end, left := w.end, w.left
					if !w.ended {
						end, left = l.End, -1
					}
					if l.Start != w.start || l.Peak != w.peak || l.End != end || l.Left != left {
						t.Errorf("seed %d: %s lap %d: %+v, want %+v", seed, p.Name, l.Number, l, w)
					}
					continue
				case l.Cut:
					cut++
				default:
					before++
				}
				exact := l.How == phase.ByCounter && l.Ended
				if l.Start != w.start || l.Peak > w.peak || exact && l.Peak != w.peak ||
					l.AtMost >= 0 && l.AtMost < w.peak || l.Left != -1 && l.Left != w.left || w.ended && l.End != w.end {
					t.Errorf("seed %d: %s lap %d: %+v, want %+v", seed, p.Name, l.Number, l, w)
				}
			}
		}
	}
	if whole < 500 || cut < 100 || before < 100 {
		t.Errorf("%d whole laps, %d cut, %d without a trace: too few to tell", whole, cut, before)
	}
}

// Torch's own peak is a lap's where it rose in it; a program that sets it back leaves a bound.
func TestCounters(t *testing.T) {
	edge := func(stage string, id, allocated, peak int, more ...any) Map {
		return append(Map{"type", "phase", "time", 10 * (len(more) + id), "stage", stage, "id", id, "devices",
			[]Map{{"device", 0, "allocated", allocated * mib, "peak", peak * mib, "reserved", 50 * mib}}}, more...)
	}
	at := func(m Map, time int) Map { m[3] = time; return m }
	begin := func(time, id, lap, allocated, peak int) Map {
		return at(edge("begin", id, allocated, peak, "name", "rollout", "lap", lap), time)
	}
	end := func(time, id, allocated, peak int) Map { return at(edge("end", id, allocated, peak), time) }
	got := phase.OfRun(&file(t,
		begin(10, 0, 0, 5, 5), end(20, 0, 6, 20), // rises in it
		begin(30, 1, 1, 6, 20), end(40, 1, 7, 20), // does not
		begin(50, 2, 4, 7, 20), end(60, 2, 8, 9), // is set back in it
		begin(70, 3, 5, 8, 9), // the process is killed
		Map{"type", "names", "time", 75, "id", 0, "names", []string{"allocated_bytes.all.current",
			"allocated_bytes.all.peak", "reserved_bytes.all.current"}},
		Map{"type", "sample", "time", 80, "step", 1, "devices", []Map{{"device", 0, "names", 0, "stats",
			[]int{11 * mib, 12 * mib, 60 * mib}}}}).Runs[0])
	if len(got) != 1 || got[0].Device != 0 {
		t.Fatalf("%+v", got)
	}
	compare(t, got[0].Phases, "rollout 4/6 at_least | 1: 5 20 6 left ? counter | 2: 6 7 7 left ? samples | "+
		"5: 7 9 8 left ? samples | 6: 8 12 11 left ? samples")
	l := got[0].Phases[0].List
	if l[1].AtMost != 20*mib || l[2].AtMost != 20*mib || l[3].AtMost != -1 || l[3].Ended || l[3].Reserved != 60*mib {
		t.Errorf("%+v", l)
	}
	if phase.OfRun(&file(t).Runs[0]) != nil {
		t.Error("phases of a run without any")
	}
}

// Whatever a file claims, there is an answer.
func FuzzPhases(f *testing.F) {
	f.Add(uint64(1), 40, []byte("\x00\x01\x02"))
	f.Fuzz(func(t *testing.T, seed uint64, ops int, odd []byte) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var r recorded
		s := buildtest.Read(t, build.Run(build.Options{Ring: 1 + int(seed%100)}, r.program(seed, 1+(ops&0xff))))
		buildtest.Break(rng, s, 20)
		values := []int64{0, -1, 1 << 62, -1 << 63, 1<<63 - 1, 7}
		for i, b := range odd {
			if len(r.records) == 0 {
				break
			}
			m := r.records[i%len(r.records)]
			for k := 3; k < len(m); k += 2 {
				if _, number := m[k].(int); number && int(b)%5 == k%5 {
					m[k] = values[int(b)%len(values)]
				}
			}
			if levels, ok := m[len(m)-1].([]Map); ok && b%2 == 0 {
				levels[0][1+2*(int(b)%7)] = values[int(b)%len(values)]
			}
		}
		recording := file(t, append(r.records, Map{"type", "snapshot", "time", 9, "file", "made.pickle", "bytes", s.Bytes,
			"counters", []Map{r.final}})...)
		tl := timeline.Build(s, 0)
		phases := phase.Find(s, tl, recording)
		phase.FindRelease(tl, phases)
		for _, p := range phases {
			for _, l := range p.List {
				if l.Peak < 0 || l.At >= tl.Trace.Len() || l.Last >= tl.Trace.Len() {
					t.Errorf("%s: %+v", p.Name, l)
				}
			}
		}
		phase.OfRun(&recording.Runs[0])
	})
}

// What goes at once after it was there for long is a release, what goes in each step is not.
func TestFindRelease(t *testing.T) {
	model := func(d *build.Device) (out []*build.Block) {
		for range 20 {
			out = append(out, d.Alloc(10*mib))
		}
		return out
	}
	step := func(d *build.Device, n int) {
		var saved []*build.Block
		for range n {
			saved = append(saved, d.Alloc(20*mib))
		}
		for _, b := range saved {
			d.Free(b)
		}
	}
	release := func(program func(d *build.Device)) *phase.Release {
		s := buildtest.Read(t, build.Run(build.Options{}, program))
		tl := timeline.Build(s, 0)
		return phase.FindRelease(tl, phase.Find(s, tl, nil))
	}
	freed := release(func(d *build.Device) {
		weights := model(d)
		for range 10 {
			step(d, 5)
		}
		for _, b := range weights[2:] {
			d.Free(b)
		}
		d.Free(d.Alloc(mib))
	})
	if freed == nil || freed.Before != 200*mib || freed.Phase != "" || freed.Meant {
		t.Errorf("of weights that were freed: %+v", freed)
	}
	if r := release(func(d *build.Device) {
		for range 3 {
			step(d, 30)
		}
		step(d, 30)
	}); r != nil {
		t.Errorf("of steps: %+v", r)
	}
	if r := release(func(d *build.Device) { model(d); step(d, 100) }); r != nil {
		t.Errorf("of a step whose weights stay: %+v", r)
	}
	named := release(func(d *build.Device) {
		weights := model(d)
		d.Wait(1000)
		d.Annotate("engine.offload", func() { d.Free(weights[0]) })
		d.Wait(1000)
		d.Annotate("generate", func() { step(d, 10) })
	})
	if named == nil || named.Phase != "engine.offload" || named.Before != 200*mib || named.Lap != 1 || !named.Meant {
		t.Errorf("of a phase: %+v", named)
	}
}
