package holder_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const mib = 1 << 20

// memory is a snapshot with n live blocks of 1 MiB, and their addresses.
func memory(t testing.TB, n int) (*snapshot.Snapshot, []uint64) {
	var blocks []uint64
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/train.py:3:load", "/app/train.py:9:<module>")
		for range n {
			blocks = append(blocks, d.Alloc(mib).Addr())
		}
	}))
	return s, blocks
}

// find joins a file of these records with a snapshot.
func find(t *testing.T, s *snapshot.Snapshot, records ...Map) (*holder.Result, []string) {
	t.Helper()
	devices := lines(s)
	r, notes := holder.Choose(s, devices, recording(t, records), nil)
	if r != nil {
		closes(t, "made up", r, devices)
	}
	return r, notes
}

func recording(t *testing.T, records []Map) *sidecar.File {
	t.Helper()
	f, err := sidecar.Read(t.Context(), bytes.NewReader(Stream(append([]Map{Header()}, records...)...)), "run.snapana",
		sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// graphs builds the objects around tensors on the blocks of a snapshot.
type graphs struct {
	Graph
	blocks []uint64
}

func (g *graphs) tensor(flags int) int {
	a := g.blocks[0]
	g.blocks = g.blocks[1:]
	return g.Tensor(a, mib, flags)
}

func (g *graphs) main() int {
	return g.Node(Node{Kind: "frame", Name: "main", File: "/app/train.py", Line: 7, Root: "frame"})
}

// chain makes objects refer to one another: node, kind of edge, label, node, ...
func (g *graphs) chain(parts ...any) {
	for i := 0; i+3 < len(parts); i += 3 {
		g.Edge(parts[i].(int), parts[i+3].(int), parts[i+1].(string), parts[i+2].(string))
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(g *graphs)
		want string
		also string
	}{
		{"a local", func(g *graphs) {
			g.chain(g.main(), "local", "x", g.tensor(0))
		}, "running: tensor `x`, local of main (train.py:7)", ""},
		{"a list in a local", func(g *graphs) {
			g.chain(g.main(), "local", "kept", g.Node(Node{Kind: "list"}), "index", "3", g.tensor(0))
		}, "other: list `kept`, local of main (train.py:7)", ""},
		{"a tuple in a list in a dict of a module", func(g *graphs) {
			m := g.Node(Node{Kind: "module", Name: "app.cache", Root: "module"})
			g.chain(m, "global", "SEEN", g.Node(Node{Kind: "dict"}), "key", "'a'", g.Node(Node{Kind: "list"}), "index",
				"0", g.Node(Node{Kind: "tuple"}), "index", "1", g.tensor(0))
		}, "other: dict `SEEN`, global of module app.cache", ""},
		{"a closure rather than a local", func(g *graphs) {
			f := g.main()
			list := g.Node(Node{Kind: "list"})
			fn := g.Node(Node{Kind: "function", Name: "make.<locals>.step", File: "/app/train.py", Line: 20})
			g.chain(f, "local", "losses", list, "index", "0", g.tensor(0))
			g.chain(f, "local", "step", fn, "closure", "history", g.Node(Node{Kind: "cell"}), "contents", "", list)
		}, "other: closure cell `history` of make.<locals>.step (train.py:20)",
			"list `losses`, local of main (train.py:7)"},
		{"a list rather than the variable that passes by", func(g *graphs) {
			f, x := g.main(), g.tensor(0)
			g.chain(f, "local", "loss", x)
			g.chain(f, "local", "losses", g.Node(Node{Kind: "list"}), "index", "0", x)
		}, "other: list `losses`, local of main (train.py:7)", ""},
		{"an attribute of an object deep in others", func(g *graphs) {
			trainer := g.Node(Node{Kind: "object", Type: "app.Trainer"})
			meter := g.Node(Node{Kind: "object", Type: "app.meters.Meter"})
			g.chain(g.main(), "local", "trainer", trainer, "attr", "meter", meter, "attr", "values",
				g.Node(Node{Kind: "deque"}), "index", "0", g.tensor(0))
		}, "other: deque attribute `values` of Meter (local `trainer.meter` of main)", ""},
		{"an attribute of many objects in a list", func(g *graphs) {
			o := g.Node(Node{Kind: "object", Type: "app.Sample"})
			g.chain(g.main(), "local", "samples", g.Node(Node{Kind: "list"}), "index", "0", o, "attr", "image",
				g.tensor(0))
		}, "other: list `samples`, local of main (train.py:7)", ""},
		{"a list of one of few objects in a list", func(g *graphs) {
			handlers, records := g.Node(Node{Kind: "list"}), g.Node(Node{Kind: "list"})
			keep := g.Node(Node{Kind: "object", Type: "app.Keep"})
			g.chain(g.main(), "local", "handlers", handlers, "index", "0", keep, "attr", "records", records, "index",
				"0", g.tensor(0))
			g.chain(records, "index", "1", g.Node(Node{Kind: "object", Type: "app.Record"}))
		}, "other: list attribute `records` of Keep (local `handlers[*]` of main)", ""},
		{"partials in a list", func(g *graphs) {
			g.chain(g.main(), "local", "callbacks", g.Node(Node{Kind: "list"}), "index", "0",
				g.Node(Node{Kind: "partial", Name: "step"}), "args", "0", g.tensor(0))
		}, "other: list `callbacks`, local of main (train.py:7)", ""},
		{"a context variable", func(g *graphs) {
			g.chain(g.Node(Node{Kind: "object", Type: "_contextvars.Context", Root: "unknown"}), "context", "trace",
				g.Node(Node{Kind: "tuple"}), "index", "0", g.tensor(0))
		}, "other: tuple in context variable `trace`", ""},
		{"an attribute of a submodule", func(g *graphs) {
			model, block := g.Node(Node{Kind: "object", Type: "app.GPT"}),
				g.Node(Node{Kind: "object", Type: "app.Block"})
			modules := g.Node(Node{Kind: "dict"})
			g.chain(g.main(), "local", "model", model, "attr", "_modules", modules, "key", "'3'", block, "attr", "last",
				g.tensor(0))
		}, "other: tensor attribute `last` of Block (local `model[*]` of main)", ""},
		{"a class", func(g *graphs) {
			g.chain(g.Node(Node{Kind: "class", Name: "app.Registry", Root: "class"}), "attr", "items",
				g.Node(Node{Kind: "set"}), "element", "", g.tensor(0))
		}, "other: set attribute `items` of class Registry", ""},
		{"a default", func(g *graphs) {
			m := g.Node(Node{Kind: "module", Name: "__main__", Root: "module"})
			g.chain(m, "global", "f", g.Node(Node{Kind: "function", Name: "f", File: "a.py", Line: 2}), "default",
				"acc", g.Node(Node{Kind: "list"}), "index", "0", g.tensor(0))
		}, "other: list, default of parameter `acc` of f (a.py:2)", ""},
		{"a partial", func(g *graphs) {
			g.chain(g.main(), "local", "run", g.Node(Node{Kind: "partial", Name: "step"}), "args", "0", g.tensor(0))
		}, "other: argument `0` of functools.partial(step)", ""},
		{"an lru_cache", func(g *graphs) {
			m := g.Node(Node{Kind: "module", Name: "__main__", Root: "module"})
			g.chain(m, "global", "embed", g.Node(Node{Kind: "lru_cache", Name: "embed", File: "e.py", Line: 4}),
				"cache", "", g.tensor(0))
		}, "other: lru_cache of embed (e.py:4)", ""},
		{"a bound method as a hook", func(g *graphs) {
			layer, grab := g.Node(Node{Kind: "object", Type: "torch.nn.Linear"}),
				g.Node(Node{Kind: "object", Type: "app.Grab"})
			g.chain(g.main(), "local", "model", layer, "hook", "_forward_hooks", g.Node(Node{Kind: "dict"}), "key", "0",
				g.Node(Node{Kind: "method"}), "self", "", grab, "attr", "seen", g.Node(Node{Kind: "list"}), "index",
				"0", g.tensor(0))
		}, "other: list attribute `seen` of Grab (local `model._forward_hooks[*]` of main)", ""},
		{"an object as a hook", func(g *graphs) {
			layer, grab := g.Node(Node{Kind: "object", Type: "torch.nn.Linear"}),
				g.Node(Node{Kind: "object", Type: "app.Grab"})
			g.chain(g.main(), "local", "model", layer, "hook", "_forward_hooks", g.Node(Node{Kind: "dict"}), "key", "0",
				grab, "attr", "seen", g.Node(Node{Kind: "list"}), "index", "0", g.tensor(0))
		}, "other: list attribute `seen` of Grab (local `model._forward_hooks[*]` of main)", ""},
		{"a suspended generator", func(g *graphs) {
			gen := g.Node(Node{Kind: "generator", Name: "batches", File: "/app/data.py", Line: 5})
			g.chain(g.main(), "local", "it", gen, "local", "pool", g.Node(Node{Kind: "list"}), "index", "0",
				g.tensor(0))
		}, "other: list `pool`, local of the suspended generator batches (data.py:5)", ""},
		{"an exception in a list", func(g *graphs) {
			exc := g.Node(Node{Kind: "exception", Type: "app.BadBatch"})
			tb := g.Node(Node{Kind: "traceback", Name: "run", File: "/app/run.py", Line: 12})
			fr := g.Node(Node{Kind: "frame", Name: "run", File: "/app/run.py", Line: 10})
			g.chain(g.main(), "local", "errors", g.Node(Node{Kind: "list"}), "index", "0", exc, "frame", "", tb,
				"frame", "", fr, "local", "batch", g.tensor(0))
		}, "other: traceback frame run (run.py:12) of BadBatch in list `errors`, local of main (train.py)", ""},
		{"the last exception", func(g *graphs) {
			exc := g.Node(Node{Kind: "exception", Type: "ValueError", Root: "interpreter"})
			tb := g.Node(Node{Kind: "traceback", Name: "run", File: "/app/run.py", Line: 12})
			g.chain(exc, "frame", "", tb, "local", "batch", g.tensor(0))
		}, "other: traceback frame run (run.py:12) of ValueError", ""},
		{"a cycle", func(g *graphs) {
			a := g.Node(Node{Kind: "object", Type: "app.Node", Root: "cycle", Cycle: 1})
			b := g.Node(Node{Kind: "object", Type: "app.Edge", Root: "cycle", Cycle: 1})
			g.chain(a, "attr", "other", b, "attr", "owner", a)
			g.chain(b, "attr", "data", g.tensor(0))
		}, "other: reference cycle Node <-> Edge (unreachable)", ""},
		{"C++", func(g *graphs) {
			g.chain(g.Node(Node{Kind: "cpp", Root: "cpp"}), "owner", "", g.tensor(0))
		}, "other: C++, with no Python holder", ""},
		{"a referrer that cannot be seen", func(g *graphs) {
			g.chain(g.Node(Node{Kind: "list", Root: "unknown"}), "index", "0", g.tensor(0))
		}, "other: a referrer that Python's garbage collector cannot see", ""},
		{"nothing that leads to a root", func(g *graphs) {
			g.chain(g.Node(Node{Kind: "list"}), "index", "0", g.tensor(0))
		}, "other: unrecorded references", ""},
		{"a parameter", func(g *graphs) {
			f, p := g.main(), g.tensor(1|2|8)
			model, opt := g.Node(Node{Kind: "object", Type: "app.Net"}), g.Node(Node{Kind: "object",
				Type: "torch.optim.adam.Adam"})
			g.chain(f, "local", "model", model, "attr", "_parameters", g.Node(Node{Kind: "dict"}), "key", "'weight'", p)
			g.chain(f, "local", "opt", opt, "attr", "param_groups", g.Node(Node{Kind: "list"}), "index", "0", p)
		}, "parameter: Net `model`, local of main (train.py:7)", ""},
		{"optimizer state", func(g *graphs) {
			opt := g.Node(Node{Kind: "object", Type: "app.MyAdam"})
			g.chain(g.main(), "local", "opt", opt, "attr", "state", g.Node(Node{Kind: "dict"}), "key", "p",
				g.Node(Node{Kind: "dict"}), "key", "'exp_avg'", g.tensor(0))
			g.chain(opt, "attr", "param_groups", g.Node(Node{Kind: "list"}))
		}, "optimizer: MyAdam `opt`, local of main (train.py:7)", ""},
		{"control characters stay in the name", func(g *graphs) {
			g.chain(g.main(), "local", "a\x1b[2J`b", g.Node(Node{Kind: "list"}), "index", "0", g.tensor(0))
		}, "other: list `a\x1b[2J`b`, local of main (train.py:7)", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, blocks := memory(t, 2)
			g := &graphs{blocks: blocks}
			c.make(g)
			r, _ := find(t, s, g.Record(0))
			if len(r.Holders) != 1 {
				t.Fatalf("holders %q", words(r))
			}
			h := &r.Holders[0]
			if got := string(h.Standing) + ": " + h.Reference.String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := strings.Join(h.Also, "; "); got != c.also {
				t.Errorf("also %q, want %q", got, c.also)
			}
			for _, line := range h.Fix() {
				if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
					t.Errorf("fix %q", line)
				}
			}
			if h.Kind == holder.Unreached {
				return
			}
			// Something else may keep it too; both is not so.
			if h.Bytes != mib || h.Frees+h.Shared != mib || (h.Shared > 0) != (h.SharedWith != nil) {
				t.Errorf("keeps %d, frees %d, shares %d with %q", h.Bytes, h.Frees, h.Shared, h.SharedWith)
			}
			if alone := h.Alone == h.Frees; alone != (c.also == "") {
				t.Errorf("dropping this reference alone frees %d", h.Alone)
			}
		})
	}
}

// What is freed follows from all references, not from the chain that gives the name.
func TestFrees(t *testing.T) {
	s, blocks := memory(t, 6)
	g := &graphs{blocks: blocks}
	f, losses := g.main(), g.Node(Node{Kind: "list"})
	g.chain(f, "local", "losses", losses)
	for range 2 { // each loss has a graph with an activation
		add := g.Node(Node{Kind: "node", Type: "AddBackward0"})
		g.chain(losses, "index", "0", g.tensor(1), "grad_fn", "", add, "saved", "_saved_self", g.tensor(16))
	}
	// This one is also in a variable.
	x := g.tensor(0)
	g.chain(losses, "index", "2", x)
	g.chain(f, "local", "x", x)
	r, _ := find(t, s, g.Record(0))
	h := &r.Holders[0]
	if h.String() != "list `losses`, local of main (train.py:7)" {
		t.Fatalf("holders %q", words(r))
	}
	if h.Bytes != 5*mib || h.Frees != 4*mib || h.Alone != 4*mib || h.Shared != mib || h.Graph != 2*mib ||
		h.Tensors != 3 {
		t.Errorf("%+v", h)
	}
	if want := []string{"tensor `x`, local of main (train.py:7)"}; !reflect.DeepEqual(h.SharedWith, want) {
		t.Errorf("shared with %q, want %q", h.SharedWith, want)
	}
	if d := r.Devices[0]; d.Unheld.Count != 1 || d.Unheld.Bytes != mib {
		t.Errorf("unheld %v", d.Unheld)
	}
}

// Objects of one name are one holder, and what they free together is more than each by itself.
func TestFreesTogether(t *testing.T) {
	s, blocks := memory(t, 3)
	g := &graphs{blocks: blocks}
	f, shared := g.main(), g.tensor(0)
	model, modules := g.Node(Node{Kind: "object", Type: "app.Net"}), g.Node(Node{Kind: "dict"})
	g.chain(f, "local", "model", model, "attr", "_modules", modules)
	for _, key := range []string{"'0'", "'1'"} {
		list := g.Node(Node{Kind: "list"})
		g.chain(modules, "key", key, g.Node(Node{Kind: "object", Type: "app.Block"}), "attr", "seen", list, "index",
			"0", g.tensor(0))
		g.chain(list, "index", "1", shared)
	}
	r, _ := find(t, s, g.Record(0))
	if len(r.Holders) != 1 {
		t.Fatalf("holders %q", words(r))
	}
	if h := &r.Holders[0]; h.Objects != 2 || h.Frees != 3*mib || h.Bytes != 3*mib {
		t.Errorf("%+v", h)
	}
}

func TestJoinByAddress(t *testing.T) {
	s, blocks := memory(t, 3)
	var g Graph
	f := g.Node(Node{Kind: "frame", Name: "main", Root: "frame"})
	for i, a := range []uint64{blocks[0], blocks[1] + 4096, blocks[1] + 8192, 1, 1 << 63} {
		g.Edge(f, g.Tensor(a, 512, 0), "local", "abcde"[i:i+1])
	}
	r, _ := find(t, s, g.Record(0))
	d := r.Devices[0]
	if d.Held.Count != 2 || d.Held.Bytes != 2*mib || d.Unheld.Count != 1 || r.Stray.Count != 2 ||
		r.Stray.Bytes != 1024 {
		t.Errorf("%+v, stray %+v", d, r.Stray)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "does not say which dump") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestChoose(t *testing.T) {
	s, blocks := memory(t, 4)
	dump := func(id, n int) Map {
		var g Graph
		list := g.Node(Node{Kind: "list"})
		g.Edge(g.Node(Node{Kind: "frame", Name: "main", Root: "frame"}), list, "local", "kept")
		for i := range n {
			g.Edge(list, g.Tensor(blocks[i], mib, 0), "index", "0")
		}
		return g.Record(id, "step", 10*id)
	}
	for _, c := range []struct {
		name    string
		records []Map
		dump    string
		earlier string
		note    string
	}{
		{"by name", []Map{dump(0, 1), dump(1, 2), {"type", "snapshot", "time", 1, "file", "made.pickle", "holders", 1},
			dump(2, 4)}, "dump 1, in step 10", "dump 0, in step 0", ""},
		{"by size", []Map{dump(0, 1), {"type", "snapshot", "time", 1, "file", "other.pickle", "bytes", s.Bytes,
			"holders", 0}, dump(1, 4)}, "dump 0, in step 0", "", ""},
		{"by addresses", []Map{dump(0, 1), dump(1, 4), dump(2, 3)}, "dump 1, in step 10", "dump 0, in step 0",
			"its addresses fit best"},
		{"no dump", nil, "", "", "has no dump"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, notes := find(t, s, c.records...)
			if r == nil {
				r = &holder.Result{}
			}
			notes = append(notes, r.Notes...)
			if r.Dump != c.dump || r.Earlier != c.earlier {
				t.Errorf("dump %q, earlier %q", r.Dump, r.Earlier)
			}
			if got := strings.Join(notes, " "); c.note == "" && got != "" || !strings.Contains(got, c.note) {
				t.Errorf("notes %q, want %q", got, c.note)
			}
		})
	}
}

// A variable has what the current lap made, and is no ghost for it; a sum that keeps the graphs
// of all laps is one.
func TestRunningSum(t *testing.T) {
	const laps = 8
	var blocks []uint64
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for range laps {
			d.Stack = build.NewStack("/app/train.py:31:loss", "/app/train.py:9:main", "/app/train.py:20:<module>")
			blocks = append(blocks, d.Alloc(mib).Addr())
			d.Stack = build.NewStack("/app/train.py:40:batch", "/app/train.py:8:main", "/app/train.py:20:<module>")
			d.Free(d.Alloc(mib))
		}
	}))
	for _, c := range []struct {
		name string
		sum  int // laps in the graph of the variable; those before are in a list
		want string
		fix  string
	}{
		{"a sum", laps, "ghost: tensor `total`, local of main (train.py:7)", "total = total.detach()"},
		{"a list and the last lap", 1, "ghost: list `losses`, local of main (train.py:7)", "losses.append("},
	} {
		g := &graphs{blocks: blocks}
		f, list := g.main(), g.Node(Node{Kind: "list"})
		g.chain(f, "local", "losses", list)
		for range laps - c.sum {
			g.chain(list, "index", "0", g.tensor(0))
		}
		total := g.Tensor(1, 4, 1)
		g.chain(f, "local", "total", total)
		at, kind := total, "grad_fn"
		for range c.sum {
			node := g.Node(Node{Kind: "node", Type: "AddBackward0"})
			g.chain(at, kind, "0", node, "saved", "_saved_self", g.tensor(16))
			at, kind = node, "next"
		}
		r, _ := find(t, s, g.Record(0))
		h := &r.Holders[0]
		if got := string(h.Standing) + ": " + h.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if fix := strings.Join(h.Fix(), "\n"); !strings.Contains(fix, c.fix) {
			t.Errorf("%s: fix %q", c.name, fix)
		}
		if len(r.Holders) > 1 && r.Holders[1].Standing == holder.Ghost || len(r.Unproven) > 0 {
			t.Errorf("%s: holders %q, unproven %v", c.name, words(r), r.Unproven)
		}
	}
}

// What looks like growth in the trace is none when an earlier dump has as much: a full buffer.
func TestTwoDumpsAcquit(t *testing.T) {
	const laps = 8
	var blocks []uint64
	s := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for range laps {
			d.Stack = build.NewStack("/app/train.py:31:store", "/app/train.py:9:main", "/app/train.py:20:<module>")
			blocks = append(blocks, d.Alloc(mib).Addr())
			d.Stack = build.NewStack("/app/train.py:12:main", "/app/train.py:20:<module>")
			d.Free(d.Alloc(mib))
		}
	}))
	dump := func(id, step, tensors int) Map {
		g := &graphs{blocks: blocks}
		ring := g.Node(Node{Kind: "deque"})
		g.chain(g.main(), "local", "ring", ring)
		for range tensors {
			g.chain(ring, "index", "0", g.tensor(0))
		}
		return g.Record(id, "step", step)
	}
	for _, c := range []struct {
		name    string
		records []Map
		want    string
	}{
		{"one dump", []Map{dump(0, 20, laps)}, "ghost"},
		{"more than before", []Map{dump(0, 8, 4), dump(1, 20, laps)}, "ghost"},
		{"as much as before", []Map{dump(0, 8, laps), dump(1, 20, laps)}, "other"},
		{"as much as right before", []Map{dump(0, 19, laps), dump(1, 20, laps)}, "ghost"},
	} {
		r, _ := find(t, s, c.records...)
		if got := string(r.Holders[0].Standing); got != c.want || len(r.Unproven) > 0 {
			t.Errorf("%s: %s, want %s; unproven %v", c.name, got, c.want, r.Unproven)
		}
		v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, c.records)}).Verdict
		status, word := finding.Ghost, "Seen in the process: deque `ring`"
		if c.want == "other" {
			status, word = finding.Healthy, "Not a leak"
		}
		if v.Status != status || len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Why[0], word) {
			t.Errorf("%s: verdict %s, %+v", c.name, v.Status, v.Findings)
		}
	}
}

// A file from a stranger may have any graph.
func FuzzFind(f *testing.F) {
	s, blocks := memory(f, 3)
	g := &graphs{blocks: blocks}
	cycle := g.Node(Node{Kind: "object", Type: "A", Root: "cycle", Cycle: 3})
	g.chain(g.main(), "local", "x", g.tensor(1), "grad_fn", "", g.Node(Node{Kind: "node"}), "next", "0",
		g.Node(Node{Kind: "node"}), "saved", "", g.tensor(16))
	g.chain(cycle, "attr", "self", cycle, "attr", "t", g.tensor(8))
	f.Add(Stream(Header(), g.Record(0), g.Record(1)))
	devices := lines(s)
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := sidecar.Read(t.Context(), bytes.NewReader(data), "fuzz", sidecar.Options{Partial: true})
		if err != nil {
			return
		}
		if r, _ := holder.Choose(s, devices, file, file); r != nil {
			closes(t, "fuzz", r, devices)
			for i := range r.Holders {
				_ = r.Holders[i].Fix()
			}
		}
	})
}
