package holder_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot"
)

// A holder that grows is called a leak with high confidence where the program's text never reads what it adds, and with
// low where it reads or empties it; a bound that the text keeps to acquits it.
func TestText(t *testing.T) {
	const laps = 20
	attribute := func(how, function string) Use {
		return Use{Name: "kept", Attribute: 1, How: how, Function: function}
	}
	bound := func(left, right string) Use {
		return Use{Name: "kept", Attribute: 1, How: "bound", Function: "Store.add", Left: left, Right: right}
	}
	adds := attribute("add", "Store.add")
	type numbers map[string]int
	for _, c := range []struct {
		name       string
		kind       string
		laps       int // 0 means all
		owner, own numbers
		uses       []Use
		confidence finding.Confidence
		severity   finding.Severity
		why        string
	}{
		{name: "nothing reads it", uses: []Use{attribute("make", "Store.__init__"), adds, attribute("size", "Store.add"),
			attribute("recent", "main")}, confidence: finding.High, why: "only added to, at store.py:11 Store.add"},
		{name: "only its last entries are read", owner: numbers{"keep": 5}, uses: []Use{adds, {Name: "kept", Attribute: 1,
			How: "recent", Function: "Store.mean", Right: "keep"}}, confidence: finding.High,
			why: "reads only the last 5 of its 20 entries, at store.py:11 Store.mean"},
		{name: "its last entries are all so far", owner: numbers{"keep": 50}, uses: []Use{adds, {Name: "kept", Attribute: 1,
			How: "recent", Function: "Store.mean", Right: "keep"}}, confidence: finding.Low, why: "reads it at store.py:11"},
		{name: "its last entries are read, of unknown number", uses: []Use{adds, {Name: "kept", Attribute: 1,
			How: "recent", Function: "Store.mean", Right: "keep"}}, confidence: finding.Medium, why: "reads only its last entries"},
		{name: "another variable of that name is read", uses: []Use{adds, {Name: "kept", How: "read", Function: "main"}},
			confidence: finding.High, why: "only added to"},
		{name: "an attribute of that name is read", uses: []Use{adds, attribute("read", "Other.mean")},
			confidence: finding.Low, severity: finding.Warning, why: "reads it at store.py:11 Other.mean"},
		{name: "filled where a key is missing", kind: "dict", uses: []Use{attribute("set", "Store.get"), attribute("read",
			"Store.get"), attribute("fill", "Store.get")}, confidence: finding.Low, severity: finding.Warning,
			why: "where a key is missing"},
		{name: "emptied", uses: []Use{adds, attribute("read", "Store.get"), attribute("drop", "Store.reset")},
			confidence: finding.Low, severity: finding.Warning, why: "empties it at store.py:12 Store.reset"},
		{name: "emptied, and watched shortly", laps: 8, uses: []Use{adds, attribute("drop", "Store.reset")},
			confidence: finding.Low, severity: finding.Info, why: "left all of these 8 iterations alone"},
		{name: "its text is not known", confidence: finding.Low, why: "Whether the program still needs it was not seen"},

		{name: "a length that is compared", owner: numbers{"pool_size": 50}, uses: []Use{adds, bound("len", "pool_size")},
			confidence: finding.Low, severity: finding.Info, why: "pool_size"},
		{name: "a counter that is compared", owner: numbers{"pool_size": 50, "count": laps}, uses: []Use{adds,
			bound("count", "pool_size")}, confidence: finding.Low, severity: finding.Info, why: "pool_size"},
		{name: "full", owner: numbers{"pool_size": laps}, uses: []Use{adds, attribute("read", "Store.query"),
			bound("len", "pool_size")}, confidence: finding.Low, severity: finding.Info, why: "up to its bound"},
		{name: "something else that is compared", owner: numbers{"pool_size": 50, "count": laps + 3}, uses: []Use{adds,
			bound("count", "pool_size")}, confidence: finding.High, why: "only added to"},
		{name: "a number that it exceeds", uses: []Use{adds, bound("len", "10")}, confidence: finding.High},
		{name: "places that are filled", own: numbers{"len()": 60, "None": 60 - laps}, uses: []Use{attribute("set",
			"Store.add"), attribute("read", "Store.get")}, confidence: finding.High, severity: finding.Info,
			why: "an entry takes 1.00 MiB now"},
		{name: "None that is added", own: numbers{"len()": 60, "None": 60 - laps}, uses: []Use{adds},
			confidence: finding.High, why: "only added to"},
		{name: "a data set", kind: "dict", owner: numbers{"len paths": 500}, uses: []Use{attribute("set", "Store.get"),
			attribute("read", "Store.get"), {Name: "Store", How: "length", Right: "len paths", Function: "Store"}},
			confidence: finding.Low, severity: finding.Info, why: "len paths"},
		{name: "a table whose length is its own", kind: "dict", owner: numbers{"len kept": laps}, uses: []Use{
			attribute("set", "Store.get"), attribute("read", "Store.get"),
			{Name: "Store", How: "length", Right: "len kept", Function: "Store"}},
			confidence: finding.Low, severity: finding.Warning, why: "reads it at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := laps
			if c.laps > 0 {
				n = c.laps
			}
			s, blocks := grown(t, n, 31)
			g := &graphs{blocks: blocks}
			kind := "list"
			if c.kind != "" {
				kind = c.kind
			}
			kept, store := g.Node(Node{Kind: kind}), g.Node(Node{Kind: "object", Type: "__main__.Store"})
			g.chain(g.main(), "local", "store", store, "attr", "kept", kept)
			for range n {
				g.chain(kept, "index", "0", g.tensor(0))
			}
			for name, value := range c.owner {
				g.Number(store, name, value)
			}
			for name, value := range c.own {
				g.Number(kept, name, value)
			}
			records := []Map{g.Record(0, "step", n)}
			if c.uses != nil {
				records = append(records, Uses("/app/store.py", c.uses...))
			}
			v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, records)}).Verdict
			if len(v.Findings) != 1 {
				t.Fatalf("%+v", v.Findings)
			}
			f := v.Findings[0]
			severity := c.severity
			if severity == "" {
				severity = finding.Warning
			}
			if f.Confidence != c.confidence || f.Severity != severity || !strings.Contains(strings.Join(f.Why, "\n"), c.why) {
				t.Errorf("%s confidence, %s: %q %q", f.Confidence, f.Severity, f.Title, f.Why)
			}
		})
	}
}

// What a function compares the length of its variable with bounds that variable, and none of the same name in another
// function.
func TestBoundOfVariable(t *testing.T) {
	s, blocks := grown(t, 20, 31)
	for function, filling := range map[string]bool{"main": true, "main.add": true, "other": false} {
		g := &graphs{blocks: blocks}
		kept := g.Node(Node{Kind: "dict"})
		g.chain(g.main(), "local", "kept", kept)
		for range 20 {
			g.chain(kept, "dictkey", "", g.tensor(0))
		}
		use := Use{Name: "kept", Function: function}
		add, bound := use, use
		add.How, bound.How, bound.Left, bound.Right = "add", "bound", "len", "50"
		r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0, "step", 20),
			Uses("/app/train.py", add, bound)})})
		if b := r.Holders.Holders[0].Bound; (b != nil) != filling {
			t.Errorf("compared in %s: %+v", function, b)
		}
	}
}

// Optimizers keep what nothing can use: parameters of heads that were replaced, and state of optimizers that were. Where
// modules or the program still have the parameters, nothing is accused.
func TestOptimizers(t *testing.T) {
	const n = 6
	for _, c := range []struct {
		name string
		make func(g *graphs, main int)
		want string // in a reason, "" for no finding
	}{
		{"parameters of replaced heads", func(g *graphs, main int) {
			opt, groups := g.Node(Node{Kind: "object", Type: "torch.optim.adamw.AdamW"}), g.Node(Node{Kind: "list"})
			g.chain(main, "local", "opt", opt, "attr", "param_groups", groups)
			for range n {
				group := g.Node(Node{Kind: "dict"})
				g.chain(groups, "index", "0", group, "key", "'params'", g.tensor(1|2|8))
			}
		}, "6 parameters of it are in no module any more"},
		{"parameters that the program has, too", func(g *graphs, main int) {
			opt, groups := g.Node(Node{Kind: "object", Type: "torch.optim.adamw.AdamW"}), g.Node(Node{Kind: "list"})
			mine := g.Node(Node{Kind: "list"})
			g.chain(main, "local", "opt", opt, "attr", "param_groups", groups)
			g.chain(main, "local", "prompts", mine)
			for range n {
				p := g.tensor(1 | 2 | 8)
				g.chain(groups, "index", "0", p)
				g.chain(mine, "index", "0", p)
			}
		}, ""},
		{"copies in full precision of parameters in half", func(g *graphs, main int) {
			opt, groups, own := g.Node(Node{Kind: "object", Type: "torch.optim.adamw.AdamW"}), g.Node(Node{Kind: "list"}),
				g.Node(Node{Kind: "dict"})
			g.chain(main, "local", "opt", opt, "attr", "param_groups", groups)
			g.chain(main, "local", "net", g.Node(Node{Kind: "object", Type: "Net"}), "attr", "_parameters", own)
			for i := range n {
				g.chain(groups, "index", "0", g.tensor(1|2|8))
				half := g.Tensor(uint64(i+1), mib, 1|2|8)
				g.DType(half, "bfloat16")
				g.chain(own, "key", "'w'", half)
			}
		}, ""},
		{"optimizers of the same parameter", func(g *graphs, main int) {
			p, all := g.Tensor(1, 4, 1|2|8), g.Node(Node{Kind: "list"})
			g.chain(main, "local", "net", g.Node(Node{Kind: "object", Type: "Net"}), "attr", "_parameters",
				g.Node(Node{Kind: "dict"}), "key", "'w'", p)
			g.chain(main, "local", "optimizers", all)
			for range n {
				opt, state, of := g.Node(Node{Kind: "object", Type: "torch.optim.adam.Adam"}), g.Node(Node{Kind: "dict"}),
					g.Node(Node{Kind: "dict"})
				g.chain(all, "index", "0", opt, "attr", "state", state, "key", "<w>", of, "key", "'exp_avg'", g.tensor(0))
				g.Edge(state, p, "dictkey", "")
			}
		}, ""}, // of which nothing shows that there were fewer: see new_opt of TestLabUses
		{"optimizers of parameters of their own", func(g *graphs, main int) {
			all := g.Node(Node{Kind: "list"})
			g.chain(main, "local", "optimizers", all)
			for i := range n {
				p := g.Tensor(uint64(i+1), 4, 1|2|8)
				g.chain(main, "local", "net", g.Node(Node{Kind: "object", Type: "Net"}), "attr", "_parameters",
					g.Node(Node{Kind: "dict"}), "key", "'w'", p)
				opt, state, of := g.Node(Node{Kind: "object", Type: "torch.optim.adam.Adam"}), g.Node(Node{Kind: "dict"}),
					g.Node(Node{Kind: "dict"})
				g.chain(all, "index", "0", opt, "attr", "state", state, "key", "<w>", of, "key", "'exp_avg'", g.tensor(0))
				g.Edge(state, p, "dictkey", "")
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, blocks := memory(t, n)
			g := &graphs{blocks: blocks}
			c.make(g, g.main())
			v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0)})}).Verdict
			if c.want == "" {
				if len(v.Findings) > 0 {
					t.Errorf("%+v", v.Findings)
				}
				return
			}
			if len(v.Findings) != 1 || v.Findings[0].Confidence != finding.Medium || v.Status != finding.Ghost ||
				!strings.Contains(strings.Join(v.Findings[0].Why, "\n"), c.want) {
				t.Errorf("%s: %+v", v.Status, v.Findings)
			}
		})
	}
}

// Of many objects in a container, each with memory of its own, the container has the name, however deep the memory is; of
// few that have much each, the attribute.
func TestOuterContainer(t *testing.T) {
	for _, c := range []struct {
		sessions, layers int
		want             string
	}{
		{6, 2, "dict `sessions`, local of main (train.py:7)"},
		{2, 6, "list attribute `layers` of Cache (local `sessions[*].cache` of main)"},
		{3, 1, "list attribute `layers` of Cache (local `sessions[*].cache` of main)"},
	} {
		s, blocks := memory(t, c.sessions*c.layers)
		g := &graphs{blocks: blocks}
		sessions := g.Node(Node{Kind: "dict"})
		g.chain(g.main(), "local", "sessions", sessions)
		for i := range c.sessions {
			layers := g.Node(Node{Kind: "list"})
			g.chain(sessions, "key", strconv.Itoa(i), g.Node(Node{Kind: "object", Type: "app.Session"}), "attr", "cache",
				g.Node(Node{Kind: "object", Type: "app.Cache"}), "attr", "layers", layers)
			for k := range c.layers {
				g.chain(layers, "index", strconv.Itoa(k), g.tensor(0))
			}
		}
		r, _ := find(t, s, g.Record(0))
		if got := r.Holders[0].Reference.String(); got != c.want || len(r.Holders) != 1 {
			t.Errorf("%d sessions of %d layers: %s", c.sessions, c.layers, got)
		}
	}
}

// Where the recorder left out nodes of an autograd graph, what hangs on the rest is counted with the variable that has its
// end; where it left out none, nothing in Python holds it.
func TestCutGraph(t *testing.T) {
	const laps = 20
	for _, c := range []struct {
		dropped Map
		want    string
		held    int
	}{
		{Map{"graph_nodes", 100}, "tensor `state`, local of main (train.py:7)", laps},
		{Map{}, "C++, with no Python holder", laps - 2},
	} {
		s, blocks := grown(t, laps, 31)
		g := &graphs{blocks: blocks}
		end, cut := g.Node(Node{Kind: "node"}), g.Node(Node{Kind: "node"})
		g.chain(g.main(), "local", "state", g.Tensor(1, 4, 1), "grad_fn", "", end)
		g.chain(g.Node(Node{Kind: "cpp", Root: "cpp"}), "owner", "", g.Tensor(2, 4, 1), "grad_fn", "", cut)
		for i := range laps {
			of := cut
			if i < 2 {
				of = end
			}
			g.chain(of, "saved", "_saved_self", g.tensor(0))
		}
		r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0, "dropped",
			c.dropped)})})
		h := r.Verdict.Findings[0].Evidence.Holder
		if h.Reference != c.want || h.Bytes != units.Size(c.held*mib) {
			t.Errorf("%v: %s holds %v", c.dropped, h.Reference, h.Bytes)
		}
	}
}

// Where a Python object keeps the memory for which no fix is known, it is named, and none is said to be missing.
func TestNoFix(t *testing.T) {
	s, blocks := grown(t, 20, 31)
	g := &graphs{blocks: blocks}
	rows := g.Node(Node{Kind: "array"})
	g.chain(g.main(), "local", "rows", rows)
	for range 20 {
		g.chain(rows, "index", "0", g.tensor(0))
	}
	f := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0)})}).Verdict.Findings[0]
	if len(f.Fix) > 0 || !strings.HasPrefix(f.Next[0], "Let go of what array `rows`, local of main (train.py:7) keeps") {
		t.Errorf("%q %q", f.Fix, f.Next)
	}
}

// A function that is registered as a hook again and again, each time with memory of its own, is told of; not one that
// is registered with several modules, nor different ones with the same.
func TestHooks(t *testing.T) {
	const n = 6
	s, blocks := memory(t, n)
	for _, c := range []struct {
		name    string
		one     bool // registry
		hook    string
		confuse bool // other names
		status  finding.Status
	}{
		{"again and again", true, "GradCAM.save", false, finding.Ghost},
		{"once with each of several modules", false, "GradCAM.save", false, finding.Healthy},
		{"several functions", true, "save", true, finding.Healthy},
	} {
		g := &graphs{blocks: blocks}
		main, registry := g.main(), -1
		for i := range n {
			if registry < 0 || !c.one {
				registry = g.Node(Node{Kind: "dict"})
				g.chain(main, "local", "net", g.Node(Node{Kind: "object", Type: "torch.nn.Linear"}), "hook", "_forward_hooks",
					registry)
			}
			name := c.hook
			if c.confuse {
				name += string(rune('a' + i))
			}
			g.chain(registry, "key", strconv.Itoa(i), g.Node(Node{Kind: "method", Name: name}), "self", "",
				g.Node(Node{Kind: "object", Type: "__main__.GradCAM"}), "attr", "activation", g.tensor(0))
		}
		v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0)})}).Verdict
		if v.Status != c.status {
			t.Errorf("%s: %s, %+v", c.name, v.Status, v.Findings)
		}
		if v.Status == finding.Ghost && (v.Findings[0].Confidence != finding.Medium || !strings.HasPrefix(
			v.Findings[0].Why[0], "6 hooks of the same function") || !strings.HasPrefix(v.Findings[0].Fix[0], "handle.remove()")) {
			t.Errorf("%s: %+v", c.name, v.Findings[0])
		}
	}
}

// A holder that doubled between two dumps is told of although no loop of the trace leaves memory: as a leak where the
// program never reads it, else as a note.
func TestDoubled(t *testing.T) {
	const n = 12
	s, all := memory(t, n)
	for _, c := range []struct {
		name   string
		before int
		uses   []Use
		status finding.Status
		says   string // the finding, "" for none
	}{
		{"nothing reads it", 6, []Use{{Name: "kept", How: "add", Function: "main"}}, finding.Ghost, "Leak: list `kept`, " +
			"local of main (train.py:7) had 6.00 MiB in 6 tensors, and has 12.0 MiB in 12 tensors now"},
		{"something may", 6, []Use{{Name: "kept", How: "add", Function: "main"}, {Name: "kept", How: "read",
			Function: "main"}}, finding.Healthy, "It grew: list `kept`"},
		{"by less", 9, []Use{{Name: "kept", How: "add", Function: "main"}}, finding.Healthy, ""},
	} {
		dump := func(id, step, tensors int) Map {
			g := &graphs{blocks: all}
			kept := g.Node(Node{Kind: "list"})
			g.chain(g.main(), "local", "kept", kept)
			for range tensors {
				g.chain(kept, "index", "0", g.tensor(0))
			}
			return g.Record(id, "step", step)
		}
		r := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{dump(0, 10, c.before),
			dump(1, 20, n), Uses("/app/train.py", c.uses...)})})
		leaks := r.Verdict.Ghosts(r.Holders, "")
		if r.Verdict.Status != c.status || leaks.Status != c.status {
			t.Errorf("%s: %s, and of leaks %s", c.name, r.Verdict.Status, leaks.Status)
		}
		if got := len(r.Verdict.Findings); got != 1 && c.says != "" || got > 0 && !strings.HasPrefix(
			r.Verdict.Findings[0].Title, c.says) || got > 0 && c.says == "" {
			t.Errorf("%s: %+v", c.name, r.Verdict.Findings)
		}
		if c.says != "" && c.status == finding.Healthy && !strings.Contains(leaks.Headline, c.says) {
			t.Errorf("%s: of leaks %q", c.name, leaks.Headline)
		}
	}
}

// One block is enough to be the holder of a growth where the growth is one tensor that is rebuilt larger; of a growth of
// many blocks a holder of one is none.
func TestOneBlock(t *testing.T) {
	const laps = 20
	var last *build.Block
	rebuilt := buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		last = nil
		for i := range int64(laps) {
			d.Stack = build.NewStack("/app/train.py:30:main", "/app/train.py:50:<module>")
			part := d.Alloc(mib)
			d.Stack = build.NewStack("/app/train.py:31:main", "/app/train.py:50:<module>")
			queue := d.Alloc((i + 1) * mib)
			if last != nil {
				d.Free(last)
			}
			d.Free(part)
			last = queue
		}
	}))
	many, blocks := grown(t, laps, 31)
	for _, c := range []struct {
		s       *snapshot.Snapshot
		address uint64
		bytes   int
		want    string // of the finding's holder
	}{
		{rebuilt, last.Addr(), laps * mib, "tensor `queue`, local of main (train.py:7)"},
		{many, blocks[0], mib, ""},
	} {
		g := &graphs{}
		g.chain(g.main(), "local", "queue", g.Tensor(c.address, c.bytes, 0))
		v := analyzetest.Run(t, c.s, analyze.Options{NoReplay: true, Recorder: recording(t, []Map{g.Record(0)})}).Verdict
		if v.Status != finding.Ghost || len(v.Findings) != 1 {
			t.Fatalf("%+v", v.Findings)
		}
		got := ""
		if h := v.Findings[0].Evidence.Holder; h != nil {
			got = h.Reference
		}
		if got != c.want {
			t.Errorf("%q, want %q: %s", got, c.want, v.Headline)
		}
	}
}
