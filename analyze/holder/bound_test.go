package holder_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot"
)

// grown is a snapshot in which a loop leaves blocks of 1 MiB, at one site of train.py for each
// way, and their addresses lap by lap.
func grown(t testing.TB, laps int, ways ...int) (*snapshot.Snapshot, []uint64) {
	var blocks []uint64
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for range laps {
			for _, line := range ways {
				d.Stack = build.NewStack(fmt.Sprintf("/app/train.py:%d:store", line), "/app/train.py:9:main",
					"/app/train.py:20:<module>")
				blocks = append(blocks, d.Alloc(mib).Addr())
			}
			d.Stack = build.NewStack("/app/train.py:12:main", "/app/train.py:20:<module>")
			d.Free(d.Alloc(mib))
		}
	}))
	return s, blocks
}

// A container that is not full yet is no ghost, one that is full and grows is.
func TestBounds(t *testing.T) {
	const laps = 20
	s, blocks := grown(t, laps, 31)
	for _, c := range []struct {
		name       string
		limit      int
		hint       string
		free       int // MiB on the device, -1 unknown
		graph      bool
		status     finding.Status
		title, why string
		severity   finding.Severity
		confidence finding.Confidence
		elsewhere  bool
		logged     bool
		also       bool
	}{
		{name: "filling", limit: 500, free: -1, status: finding.Healthy, severity: finding.Info,
			confidence: finding.High,
			title: "Still filling (20 of 500 entries): deque `ring`, local of main (train.py:7) holds 20.0 MiB; when " +
				"full it takes 500 MiB.", why: "an entry takes 1.00 MiB now"},
		{name: "fits", limit: 500, free: 480, status: finding.Healthy, severity: finding.Info, confidence: finding.High,
			title: "Still filling"},
		{name: "does not fit", limit: 500, free: 100, status: finding.Capacity, severity: finding.Warning,
			confidence: finding.High,
			title: "It will not fit: deque `ring`, local of main (train.py:7) takes 500 MiB when full (20 of 500 " +
				"entries now)"},
		{name: "a hint", limit: 30, hint: "capacity", free: -1, status: finding.Healthy, severity: finding.Info,
			confidence: finding.Low,
			title:      "Still filling (20 of 30 entries)", why: "read from the attribute capacity"},
		{name: "full", limit: laps, free: -1, status: finding.Ghost, severity: finding.Warning,
			confidence: finding.Low,
			title:      "Possible leak, or a buffer still filling: main() retains 1.00 MiB more", why: "It is full, with 20 of 20 entries"},
		{name: "graphs", limit: 500, graph: true, free: -1, status: finding.Ghost, severity: finding.Warning,
			confidence: finding.Medium, title: "Leak: main() retains 1.00 MiB more", why: "full it takes 500 MiB"},
		{name: "a table that has the entries of a bounded one", limit: 500, also: true, free: -1, status: finding.Ghost,
			severity: finding.Warning, confidence: finding.Low, title: "Possible leak, or a buffer still filling: main()",
			why: "dict `priority`, local of main"},
		{name: "records of a handler that is full soon", limit: 30, hint: "capacity", logged: true, free: -1,
			status: finding.Ghost, severity: finding.Warning, confidence: finding.Low, title: "Possible leak",
			why: "until the handler is full and empties itself"},
		{name: "records of a handler that is full later", limit: 500, hint: "capacity", logged: true, free: -1,
			status: finding.Ghost, severity: finding.Warning, confidence: finding.Medium, title: "Possible leak",
			why: "until the handler is full and empties itself"},
		{name: "records of a handler that is never full", limit: 5000, hint: "capacity", logged: true, free: -1,
			status: finding.Ghost, severity: finding.Warning, confidence: finding.High, title: "Leak: main()",
			why: "Records of Python's logging have it"},
		{name: "a bound that is not of this container", limit: 500, elsewhere: true, free: -1, status: finding.Ghost,
			severity: finding.Warning, confidence: finding.Low, title: "Possible leak, or a buffer still filling: main()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &graphs{blocks: blocks}
			ring := g.Node(Node{Kind: "deque"})
			f := g.main()
			g.chain(f, "local", "ring", ring)
			bounded := ring
			if c.elsewhere {
				bounded = g.Node(Node{Kind: "deque"})
				g.chain(f, "local", "other", bounded)
			}
			g.Bound(bounded, laps, c.limit, c.hint)
			table := g.Node(Node{Kind: "dict"})
			if c.also {
				g.chain(f, "local", "priority", table)
			}
			for range laps {
				if c.also {
					entry := g.tensor(0)
					g.chain(ring, "index", "0", entry)
					g.chain(table, "dictkey", "", entry)
					continue
				}
				if c.logged {
					g.chain(ring, "index", "0", g.Node(Node{Kind: "object", Type: "logging.LogRecord"}), "attr", "args",
						g.Node(Node{Kind: "tuple"}), "index", "0", g.tensor(0))
					continue
				}
				if !c.graph {
					g.chain(ring, "index", "0", g.tensor(0))
					continue
				}
				loss := g.Tensor(1, 4, 1)
				g.chain(ring, "index", "0", loss, "grad_fn", "", g.Node(Node{Kind: "node", Type: "MulBackward0"}),
					"saved", "_saved_self", g.tensor(16))
			}
			records := []Map{g.Record(0, "step", laps)}
			if c.free >= 0 {
				reserved := 0
				for i := range s.Segments {
					reserved += int(s.Segments[i].TotalSize)
				}
				records = append(records, Map{"type", "snapshot", "time", 3, "file", "x.pickle", "bytes", 1, "holders",
					0, "devices", []Map{{"device", 0, "free", c.free*mib + laps*mib - reserved, "total", 80 << 30}}})
			}
			v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, records)}).Verdict
			if v.Status != c.status || len(v.Findings) != 1 {
				t.Fatalf("%s: %+v", v.Status, v.Findings)
			}
			got := v.Findings[0]
			if got.Severity != c.severity || got.Confidence != c.confidence || !strings.HasPrefix(got.Title, c.title) ||
				!strings.Contains(strings.Join(got.Why, "\n"), c.why) {
				t.Errorf("%s %s %q %q", got.Severity, got.Confidence, got.Title, got.Why)
			}
		})
	}
}

// Two lists that one loop fills are two findings, each with its own memory.
func TestTwoHoldersOfOneLoop(t *testing.T) {
	const laps = 20
	s, blocks := grown(t, laps, 31, 32, 33)
	g := &graphs{blocks: blocks}
	f, a, b := g.main(), g.Node(Node{Kind: "list"}), g.Node(Node{Kind: "list"})
	g.chain(f, "local", "losses", a)
	g.chain(f, "local", "features", b)
	for range laps {
		g.chain(a, "index", "0", g.tensor(0))
		g.chain(a, "index", "0", g.tensor(0))
		g.chain(b, "index", "0", g.tensor(0))
	}
	r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0)})})
	if len(r.Verdict.Findings) != 2 {
		t.Fatalf("%+v", r.Verdict.Findings)
	}
	for i, want := range []struct {
		per, holder string
		bytes       int64
	}{{"2.00 MiB more", "list `losses`", 2 * laps * mib}, {"1.00 MiB more", "list `features`", laps * mib}} {
		got := r.Verdict.Findings[i]
		if got.Bytes != want.bytes || !strings.Contains(got.Title, want.per) ||
			!strings.Contains(got.Why[0], want.holder) || r.Holders.Holders[i].PerLap != want.bytes/laps {
			t.Errorf("%d bytes, %q, %q, %d a lap", got.Bytes, got.Title, got.Why[0], r.Holders.Holders[i].PerLap)
		}
	}
}

// What is watched only shortly and gives memory back is not accused; what only collects is,
// with the reservation that it was watched shortly.
func TestWatchedShortly(t *testing.T) {
	const laps = 8
	s, blocks := grown(t, laps, 31)
	type change struct{ gone, ordered bool }
	dump := func(id, step int, c change) Map {
		g := &graphs{blocks: blocks}
		requests := g.Node(Node{Kind: "dict"})
		if c.ordered {
			requests = g.Node(Node{Kind: "dict", Type: "collections.OrderedDict"})
		}
		g.chain(g.main(), "local", "running", requests)
		if id == 0 {
			for range 3 {
				g.chain(requests, "key", "'a'", g.tensor(0))
			}
			if c.gone {
				g.chain(requests, "key", "'z'", g.Tensor(1<<40, mib, 0))
			}
		} else {
			for range laps {
				g.chain(requests, "key", "'a'", g.tensor(0))
			}
		}
		return g.Record(id, "step", step)
	}
	for _, c := range []change{{}, {gone: true}, {ordered: true}} {
		v := analyzetest.Run(t, s, analyze.Options{NoReplay: true,
			Recorder: recording(t, []Map{dump(0, 3, c), dump(1, 8, c)})}).Verdict
		f := v.Findings[0]
		status, severity, confidence := finding.Ghost, finding.Warning, finding.Medium
		if c.gone || c.ordered {
			status, severity, confidence = finding.Healthy, finding.Info, finding.Low
		}
		if v.Status != status || f.Severity != severity || f.Confidence != confidence ||
			!strings.Contains(f.Title, "or a buffer still filling") {
			t.Errorf("%+v: %s, %+v", c, v.Status, f)
		}
	}
}
