package host_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// random is a program that does anything with pinned memory. Only where the trace is whole does other
// code register some: what that has from before a trace is neither in the trace nor in the state.
func random(seed uint64) func(*build.Device) {
	return func(d *build.Device) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var live []*build.Pinned
		for i := range 400 {
			if i == 60 {
				d.Record()
			}
			d.Stack = build.NewStack([]string{"/app/a.py:1:f", "/app/b.py:2:g", "/app/c.py:3:h"}[rng.IntN(3)],
				"/app/main.py:9:<module>")
			switch k := rng.IntN(20); {
			case k == 0:
				d.EmptyHostCache()
			case k == 1 && seed%3 == 0:
				live = append(live, d.Register(1+rng.Int64N(9*mib)))
			case k < 4:
				d.Settle()
			case k < 12 || len(live) == 0:
				live = append(live, d.Pin(1+rng.Int64N(1<<rng.IntN(24))))
			default:
				n := rng.IntN(len(live))
				d.Unpin(live[n], rng.IntN(3) == 0)
				live = append(live[:n], live[n+1:]...)
			}
		}
	}
}

// TestExact holds the sums at every event, the peaks and the end of random programs against the
// allocator that ran them.
func TestExact(t *testing.T) {
	for seed := range uint64(60) {
		opt := build.Options{Torch: 213, Late: seed%3 == 1}
		if seed%3 == 2 {
			opt.Ring = 150
		}
		made := build.Run(opt, func(d *build.Device) {
			if seed%3 != 1 {
				d.Record()
			}
			random(seed)(d)
		})
		s := buildtest.Read(t, made)
		m := host.BuildPinned(s)
		truth := &made.Host
		if got := m.Initial; got != host.Totals(truth.Initial) {
			t.Fatalf("seed %d: before the trace %+v, want %+v", seed, got, truth.Initial)
		}
		var peak build.HostTotals
		for e, want := range append([]build.HostTotals{truth.Initial}, truth.After...) {
			if got := m.At(e - 1); got != host.Totals(want) {
				t.Fatalf("seed %d, event %d: %+v, want %+v", seed, e-1, got, want)
			}
			peak = build.HostTotals{Reserved: max(peak.Reserved, want.Reserved), Active: max(peak.Active, want.Active),
				Allocated: max(peak.Allocated, want.Allocated)}
		}
		if got := (build.HostTotals{Reserved: m.PeakReserved.Bytes, Active: m.PeakActive.Bytes,
			Allocated: m.PeakAllocated.Bytes}); got != peak {
			t.Errorf("seed %d: peaks %+v, want %+v", seed, got, peak)
		}
		for _, p := range []int{m.PeakReserved.Event, m.PeakActive.Event, m.PeakAllocated.Event} {
			if p < -1 || p >= m.Trace.Len() {
				t.Errorf("seed %d: peak at event %d", seed, p)
			}
		}
		if !m.Checks.Balanced() || m.Registered != truth.Registered {
			t.Errorf("seed %d: %+v, registered %d of %d", seed, m.Checks, m.Registered, truth.Registered)
		}
		closes(t, m)
	}
}

// closes holds that every byte at the end lands in a named row.
func closes(t *testing.T, m *host.Pinned) {
	t.Helper()
	var held, cached int64
	for _, g := range m.Holders {
		held += g.Rounded
	}
	for _, c := range m.Cached {
		cached += c.Bytes
		if c.Spare > c.Bytes || m.Trace.Len() > 0 && c.Spare < 0 {
			t.Errorf("%+v", c)
		}
	}
	end := m.At(m.Trace.Len() - 1)
	if held != end.Active || held+cached != end.Reserved {
		t.Errorf("%d held and %d cached of %+v", held, cached, end)
	}
	if end != m.Final {
		t.Errorf("end %+v, final %+v", end, m.Final)
	}
}

func named(t *testing.T, name string, opt build.Options) (*snapshot.Snapshot, *host.Pinned) {
	t.Helper()
	opt.Torch = 213
	made, ok := build.Named(name, 1, build.RandomOptions{Options: opt, Events: 1500})
	if !ok {
		t.Fatal("no such program")
	}
	s := buildtest.Read(t, made)
	return s, host.BuildPinned(s)
}

func said(all []finding.Finding) string {
	var out []string
	for _, f := range all {
		out = append(out, f.ID+" "+string(f.Severity)+" "+string(f.Confidence))
	}
	return strings.Join(out, ", ")
}

// TestFindings holds what is said of programs with everything recorded, and with less.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name    string
		opt     build.Options
		program string
		want    string // of the findings
		says    string // in the title, reasons and advice of the first
	}{
		{"reuse", build.Options{}, "loader", "", ""},
		{"reuse, ring", build.Options{Ring: 300}, "loader", "", ""},
		{"reuse, late", build.Options{Late: true}, "loader", "", ""},
		{"reuse, no trace", build.Options{NoTrace: true}, "loader", "", ""},
		{"training without pinned memory", build.Options{}, "training", "", ""},
		{"kept", build.Options{}, "pinned-leak", "host-pinned-growth warning high",
			"main() retains 4.00 MiB more per iteration; most of it was allocated at pin_memory.py:71 pin_memory"},
		{"kept, ring", build.Options{Ring: 1000}, "pinned-leak", "host-pinned-growth warning high",
			"Iterations are recognized by the allocations of GPU 0 between them"},
		{"kept, no trace", build.Options{NoTrace: true}, "pinned-leak", "", ""},
		{"kept, no stacks", build.Options{NoStacks: true}, "pinned-leak", "", ""},
		{"kept, no times", build.Options{NoTimes: true}, "pinned-leak", "", ""},
		{"cached", build.Options{}, "pinned-cache", "host-pinned-cached info high", "2.00 GiB in blocks of 2.00 GiB"},
		{"cached, ring", build.Options{Ring: 300}, "pinned-cache", "host-pinned-cached info high",
			"2.00 GiB in blocks of 2.00 GiB"},
		{"cached, no trace", build.Options{NoTrace: true}, "pinned-cache", "", ""},
		{"registered", build.Options{}, "registered", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, m := named(t, c.program, c.opt)
			if c.program == "training" {
				if m != nil {
					t.Errorf("%+v", m)
				}
				return
			}
			all := verdict.JudgePinned(s, m)
			if got := said(all); got != c.want {
				t.Fatalf("%q, want %q", got, c.want)
			}
			closes(t, m)
			if !m.Checks.Balanced() {
				t.Errorf("%+v", m.Checks)
			}
			if len(all) == 0 {
				return
			}
			f := &all[0]
			if text := strings.Join(slices.Concat([]string{f.Title}, f.Why, f.Next), "\n"); !strings.Contains(
				text, c.says) {
				t.Errorf("%s", text)
			}
			if len(f.Stack) == 0 || len(f.Events) == 0 || f.Device != -1 || f.Bytes <= 0 {
				t.Errorf("%+v", f)
			}
			for _, e := range f.Events {
				if a := m.Trace.Action(e); a != snapshot.Alloc && a != snapshot.FreeCompleted {
					t.Errorf("event %d is %s", e, a)
				}
			}
		})
	}
}

// TestHealthy holds that what programs pin on purpose is no finding.
func TestHealthy(t *testing.T) {
	at := func(d *build.Device, line string) { d.Stack = build.NewStack(line, "/app/train.py:9:<module>") }
	for _, c := range []struct {
		name    string
		program func(d *build.Device)
	}{
		{"a model that is loaded, with a pinned copy of each part", func(d *build.Device) {
			for range 30 {
				at(d, "/app/load.py:3:load")
				d.Alloc(4 * mib)
				at(d, "/app/load.py:4:load")
				d.Pin(4 * mib)
			}
		}},
		{"a cache that is full", func(d *build.Device) {
			for i := range 60 {
				at(d, "/app/train.py:3:main")
				x := d.Alloc(4 * mib)
				if i < 12 {
					at(d, "/app/train.py:4:main")
					d.Pin(4 * mib)
				}
				at(d, "/app/train.py:5:main")
				d.Free(x)
			}
		}},
		{"a queue of bounded length", func(d *build.Device) {
			var queue []*build.Pinned
			for range 60 {
				at(d, "/app/train.py:3:main")
				x := d.Alloc(4 * mib)
				at(d, "/app/train.py:4:main")
				queue = append(queue, d.Pin(4*mib))
				at(d, "/app/train.py:5:main")
				d.Free(x)
				if len(queue) > 20 {
					d.Unpin(queue[0], false)
					queue = queue[1:]
				}
			}
		}},
		{"activations offloaded and fetched again", func(d *build.Device) {
			for range 10 {
				var saved []*build.Pinned
				for range 6 {
					at(d, "/app/train.py:3:main")
					x := d.Alloc(4 * mib)
					at(d, "/app/train.py:4:main")
					saved = append(saved, d.Pin(4*mib))
					d.Free(x)
				}
				at(d, "/app/train.py:6:main")
				for _, p := range saved {
					d.Unpin(p, true)
				}
				d.Settle()
			}
		}},
		{"batches of other lengths", func(d *build.Device) {
			for i := range 60 {
				at(d, "/app/train.py:3:main")
				x := d.Alloc(4 * mib)
				at(d, "/app/train.py:4:main")
				p := d.Pin(int64(1+i*7%20) * mib)
				d.Free(x)
				d.Unpin(p, false)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buildtest.Read(t, build.Run(build.Options{Torch: 213}, c.program))
			m := host.BuildPinned(s)
			if all := verdict.JudgePinned(s, m); len(all) != 0 || !m.Checks.Balanced() {
				t.Errorf("%s %+v", said(all), m.Checks)
			}
		})
	}
}

// TestRegistered holds that what other code pins is told apart.
func TestRegistered(t *testing.T) {
	_, m := named(t, "registered", build.Options{})
	if m.Registered != 200*mib+8192 {
		t.Errorf("registered %d", m.Registered)
	}
}

// TestUnverifiedGrowth holds that blocks which the state no longer has are no leak, and that what still grows in a file
// that contradicts itself is said with low confidence.
func TestUnverifiedGrowth(t *testing.T) {
	s, m := named(t, "pinned-leak", build.Options{})
	cached := slices.IndexFunc(s.HostSegments, func(h snapshot.HostSegment) bool {
		return h.State == snapshot.StateInactive
	})
	s.HostSegments[cached].State = snapshot.StateAllocated
	if got := said(verdict.JudgePinned(s, host.BuildPinned(s))); got !=
		"host-inconsistent info high, host-pinned-growth warning low" {
		t.Error(got)
	}
	for i := range s.HostSegments {
		s.HostSegments[i].State = snapshot.StateInactive
	}
	freed := host.BuildPinned(s)
	if got := said(verdict.JudgePinned(s, freed)); got != "host-inconsistent info high" {
		t.Error(got)
	}
	if r := freed.Checks.Residual; r.Totals.Active != m.Final.Active || r.Totals.Reserved != 0 || len(freed.Holders) > 0 {
		t.Errorf("%v, %+v", r, freed.Holders)
	}
}

func read(t *testing.T, text string) *host.Pinned {
	t.Helper()
	s, err := load.Read(t.Context(), bytes.NewReader([]byte(text)), "x.json", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return host.BuildPinned(s)
}

// TestPartial holds what little data gives, and that contradictions are counted.
func TestPartial(t *testing.T) {
	const (
		top   = `{"segments": [], "device_traces": [[]]`
		block = `{"address": 4096, "size": 2097152, "allocated": true, "active": true}`
		alloc = `{"action": "alloc", "addr": 4096, "size": 2097152}`
		pin   = `{"action": "segment_alloc", "addr": 4096, "size": 2097152}`
		ask   = `{"action": "free_requested", "addr": 4096, "size": 2097152}`
		done  = `{"action": "free_completed", "addr": 4096, "size": 2097152}`
		drop  = `{"action": "segment_free", "addr": 4096, "size": 2097152}`
	)
	for _, c := range []struct {
		name, text    string
		none          bool
		final         host.Totals
		contradictory int64
		balanced      bool
	}{
		{name: "nothing", text: `, "host_segments": [], "host_traces": []`, none: true, balanced: true},
		{name: "state only", text: `, "host_segments": [` + block + `]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib, Allocated: 2 * mib}, balanced: true},
		{name: "trace only", text: `, "host_traces": [` + pin + "," + alloc + "," + ask + `]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib}, balanced: true},
		{name: "lists in a list", text: `, "host_traces": [[` + pin + "," + alloc + `]], "host_segments": [` + block +
			`]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib, Allocated: 2 * mib}, balanced: true},
		{name: "freed and in the state", text: `, "host_traces": [` + pin + "," + alloc + "," + ask + "," + done + "," +
			drop + `], "host_segments": [` + block + `]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib, Allocated: 2 * mib}, contradictory: 1},
		{name: "cached in the trace and missing in the state", text: `, "host_traces": [` + pin + "," + alloc + "," +
			ask + "," + done + `], "host_segments": []`, contradictory: 1},
		{name: "allocated twice", text: `, "host_traces": [` + pin + "," + alloc + "," + alloc +
			`], "host_segments": [` + block + `]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib, Allocated: 2 * mib}, contradictory: 1},
		{name: "free_completed while recording was off", text: `, "host_traces": [` + pin + "," + alloc + "," + ask + "," +
			alloc + `], "host_segments": [` + block + `]`,
			final: host.Totals{Reserved: 2 * mib, Active: 2 * mib, Allocated: 2 * mib}, contradictory: 1},
		{name: "free_requested while recording was off", text: `, "host_traces": [` + alloc + "," + done + `]`,
			final: host.Totals{Reserved: 2 * mib}, contradictory: 1},
		{name: "released after another was pinned in its place", text: `, "host_traces": [` + strings.Join([]string{pin,
			alloc, ask, done, pin, alloc, drop, ask, done, drop}, ",") + `], "host_segments": []`, balanced: true},
		{name: "pinned again while recording was off", text: `, "host_traces": [` + strings.Join([]string{pin, alloc, ask,
			done, drop, ask, done}, ",") + `]`, final: host.Totals{Reserved: 2 * mib}, contradictory: 1},
		{name: "another size", text: `, "host_traces": [` + pin + "," + alloc + `], "host_segments": [` +
			strings.Replace(block, "2097152", "4096", 1) + `]`,
			final: host.Totals{Reserved: 4096, Active: 4096, Allocated: 4096}, contradictory: 1},
		{name: "no state of blocks", text: `, "host_segments": [` + strings.Replace(block,
			`"allocated": true, "active": true`, `"state": "odd", "total_size": 2097152`, 1) + `]`,
			final: host.Totals{Reserved: 2 * mib}, balanced: true},
		{name: "without sizes",
			text:          `, "host_traces": [{"action": "alloc", "addr": 4096}, {"action": "alloc", "size": 5}]`,
			contradictory: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := read(t, top+c.text+"}")
			if c.none != (m == nil) {
				t.Fatalf("%+v", m)
			}
			if m == nil {
				return
			}
			if m.Final != c.final || m.Checks.Inconsistent() != c.contradictory || m.Checks.Balanced() != c.balanced {
				t.Errorf("%+v %+v", m.Final, m.Checks)
			}
		})
	}
}
