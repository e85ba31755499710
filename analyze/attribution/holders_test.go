package attribution_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

// mixed allocates in every way that groups tell apart; recording begins after the first block.
func mixed(d *build.Device) {
	d.Alloc(512)
	d.Record()
	linear := torch + "nn/modules/linear.py:125:forward"
	d.Stack = build.NewStack(torch+"nn/functional.py:9:linear", linear, module, "/app/model.py:38:forward", module,
		"/app/train.py:5:main")
	d.Alloc(3 * mib)
	d.Stack = build.NewStack(torch+"nn/functional.py:8:relu", "/app/hooks.py:8:save", module,
		"/app/model.py:40:forward",
		module, "/app/train.py:5:main")
	d.Alloc(2 * mib)
	d.Alloc(2*mib - 100)
	d.Stack, d.Stream = build.NewStack("/lib/model.py:38:forward", "/app/train.py:6:main"), 0x55
	d.Alloc(5 * mib)
	d.Stack, d.Stream, d.Pool = nil, 0, build.Pool{A: 0, B: 1}
	d.Alloc(1 * mib)
}

func readLate(t *testing.T, program func(d *build.Device)) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	s := readWith(t, build.Options{Late: true}, program)
	return s, timeline.Build(s, 0)
}

func end(tl *timeline.Timeline) *timeline.State { return tl.StateAt(tl.Trace.Len()) }

// rows writes a table as "name: count rounded-requested pinned pre-trace", sizes in units of
// 512 bytes.
func rows(h *attribution.Holders) []string {
	var out []string
	for i := range h.Rows {
		r := &h.Rows[i]
		s := fmt.Sprintf("%s: %d %d-%d %d %d", r.Name, r.Count, r.Rounded/512, r.Rounded-r.Requested, r.Pinned/512,
			r.PreTrace/512)
		if r.Unattributed {
			s = "?" + s
		}
		out = append(out, s)
	}
	return out
}

func TestHold(t *testing.T) {
	s, tl := readLate(t, mixed)
	even := func(row int32) string { return []string{"even", ""}[row%2] }
	for _, c := range []struct {
		by   attribution.Kind
		want []string
	}{
		{attribution.BySite, []string{
			"/lib/model.py:38 forward: 1 10240-0 40960 0",
			"hooks.py:8 save: 2 8192-100 40960 0",
			"/app/model.py:38 forward: 1 6144-0 40960 0",
			"?(no Python stack): 1 2048-0 4096 0",
			"?(before the trace, no recorded stack): 1 1-0 4096 1",
		}},
		{attribution.ByFile, []string{
			"/lib/model.py: 1 10240-0 40960 0",
			"/app/hooks.py: 2 8192-100 40960 0",
			"/app/model.py: 1 6144-0 40960 0",
			"?(no Python stack): 1 2048-0 4096 0",
			"?(before the trace, no recorded stack): 1 1-0 4096 1",
		}},
		{attribution.ByFunction, []string{
			"/lib/model.py forward: 1 10240-0 40960 0",
			"hooks.py save: 2 8192-100 40960 0",
			"/app/model.py forward: 1 6144-0 40960 0",
			"?(no Python stack): 1 2048-0 4096 0",
			"?(before the trace, no recorded stack): 1 1-0 4096 1",
		}},
		{attribution.ByModule, []string{
			"?(outside of module calls): 1 10240-0 40960 0",
			"model.py:40 > hooks.py:8 save: 2 8192-100 40960 0",
			"model.py:38 > linear.py:125: 1 6144-0 40960 0",
			"?(no Python stack): 1 2048-0 4096 0",
			"?(before the trace, no recorded stack): 1 1-0 4096 1",
		}},
		{attribution.ByStream, []string{
			"stream 0 (the default): 5 16385-100 49152 1",
			"stream 1 (0x55): 1 10240-0 40960 0",
		}},
		{attribution.ByPool, []string{
			"default pool, large requests: 4 24576-100 81920 0",
			"private pool (0, 1), small requests: 1 2048-0 4096 0",
			"default pool, small requests: 1 1-0 4096 1",
		}},
		{attribution.ByCategory, []string{
			"even: 3 14337-0 86016 1",
			"?(unknown): 3 12288-100 45056 0",
		}},
	} {
		h := attribution.Hold(s, tl, end(tl), attribution.Query{By: c.by, Category: even})
		if got := rows(h); !slices.Equal(got, c.want) {
			t.Errorf("by %s:\n got %q\nwant %q", c.by, got, c.want)
		}
	}
	h := attribution.Hold(s, tl, end(tl), attribution.Query{})
	if h.By != attribution.ByStack || len(h.Rows) != 5 {
		t.Fatalf("by stack: %+v", h)
	}
	want := []string{"torch/nn/functional.py:8 relu", "/app/hooks.py:8 save", "/app/model.py:40 forward",
		"/app/train.py:5 main"}
	if r := h.Rows[1]; r.Name != "hooks.py:8 save" || !slices.Equal(r.Frames, want) {
		t.Errorf("by stack: %+v", r)
	}
}

func TestFilter(t *testing.T) {
	s, tl := readLate(t, mixed)
	for _, c := range []struct {
		match, exclude string
		internals      bool
		kept           []int64 // blocks of each row by site
		out            int64
	}{
		{"", "", false, []int64{1, 2, 1, 1, 1}, 0},
		{`model\.py`, "", false, []int64{1, 2, 1}, 2},
		{`^/app/model\.py:38 `, "", false, []int64{1}, 5},
		{`^torch/nn`, "", false, []int64{2, 1}, 3},          // as frames are shown
		{`^/usr/.*/torch/nn/`, "", false, []int64{2, 1}, 3}, // as they were recorded
		{`train`, "linear", false, []int64{1, 2}, 3},        // both
		{"", `model\.py`, false, []int64{1, 1}, 4},          // without frames is kept
		{"_call_impl", "", false, nil, 6},                   // not shown, not matched
		{"_call_impl", "", true, []int64{2, 1}, 3},          // unless asked for
		{"nothing has this", "", false, nil, 6},             //
		{"", "(?i)MAIN", false, []int64{1, 1}, 4},           //
		{`hooks\.py:8 save$`, "nothing has this", false, []int64{2}, 4},
	} {
		q := attribution.Query{By: attribution.BySite, Internals: c.internals}
		if c.match != "" {
			q.Match = regexp.MustCompile(c.match)
		}
		if c.exclude != "" {
			q.Exclude = regexp.MustCompile(c.exclude)
		}
		st := end(tl)
		h := attribution.Hold(s, tl, st, q)
		var kept []int64
		for i := range h.Rows {
			kept = append(kept, h.Rows[i].Count)
		}
		all := h.Kept()
		all.Add(h.LeftOut)
		root, out := attribution.Tree(s, tl, st, q)
		if !slices.Equal(kept, c.kept) || h.LeftOut.Count != c.out || all.Rounded != st.Totals.Active ||
			all.Requested != st.Totals.Requested {
			t.Errorf("match %q exclude %q: rows %v, left out %+v", c.match, c.exclude, kept, h.LeftOut)
		}
		if out != h.LeftOut || root.Sum != h.Kept() {
			t.Errorf("match %q exclude %q: the tree has %+v and leaves out %+v", c.match, c.exclude, root.Sum, out)
		}
	}
}

// TestNotes gives blocks what newer torch records beside their stacks.
func TestNotes(t *testing.T) {
	s := readWith(t, build.Options{Torch: 212}, func(d *build.Device) {
		d.Stack = build.NewStack("/tmp/torchinductor_me/x.py:9:call", "/app/train.py:5:main")
		d.Region, d.Note = "Torch-Compiled Region: 0/0", "step 3"
		d.Alloc(3 * mib)
		d.Alloc(2 * mib)
		d.Region, d.Note = "", ""
		d.Alloc(4 * mib)
		d.Stack = nil
		d.Alloc(8 * mib)
	})
	// What the builder cannot write: FX nodes, and the traceback of a forward call.
	forward := s.Labels.Intern(snapshot.Label{ForwardFrames: s.Strings.Intern([]byte(
		"  File \"/app/train.py\", line 5, in main\n    model(x)\n" +
			"  File \"" + torch + "nn/modules/module.py\", line 1750, in _call_impl\n    return forward_call(*args)\n" +
			"  File \"/app/model.py\", line 38, in forward\n    return self.a(x)\n" +
			"  File \"" + torch + "nn/functional.py\", line 9, in relu\n    return torch.relu(x)\n"))})
	node := snapshot.Frame{File: s.Strings.Intern([]byte("/tmp/torchinductor_me/x.py")),
		Name: s.Strings.Intern([]byte("call")), Line: 10}
	fx := snapshot.FX{Op: s.Strings.Intern([]byte("call_function")), Name: s.Strings.Intern([]byte("mm_3")),
		Target: s.Strings.Intern([]byte("aten.mm.default")), OriginalTrace: s.Strings.Intern([]byte(
			"  File \"/app/train.py\", line 5, in main\n    model(x)\n" +
				"  File \"/app/model.py\", line 38, in forward\n    return a @ b\n"))}
	compiled := s.Stacks.Intern([]snapshot.FrameID{s.Frames.InternFX(node, fx)})
	buildtest.Edit(s.Traces, func(e *snapshot.Event) bool {
		switch {
		case e.Action != snapshot.Alloc:
		case e.Size == 8*mib:
			e.Label = forward
		case e.Size == 4*mib:
			e.Stack = compiled
		}
		return true
	})
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.Requested == 4*mib {
			b.Stack = compiled
		}
	}
	tl := timeline.Build(s, 0)
	h := attribution.Hold(s, tl, end(tl), attribution.Query{By: attribution.BySite})
	var got []string
	for _, r := range h.Rows {
		for _, n := range r.Notes {
			got = append(got, fmt.Sprintf("%s: %s %q %d %d", r.Name, n.Kind, n.Text, n.Count, n.Bytes/mib))
		}
	}
	want := []string{
		`backward of model.py:38 forward: forward "functional.py:9 relu < model.py:38 forward < ` +
			`module.py:1750 _call_impl" 1 8`,
		`train.py:5 main: compile_context "Torch-Compiled Region: 0/0" 2 5`,
		`train.py:5 main: user_metadata "step 3" 2 5`,
		`x.py:10 call: fx_node "call_function mm_3 (aten.mm.default)" 1 4`,
		`x.py:10 call: fx_trace "File \"/app/model.py\", line 38, in forward return a @ b" 1 4`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("notes:\n got %q\nwant %q", got, want)
	}
	h = attribution.Hold(s, tl, end(tl), attribution.Query{By: attribution.ByModule})
	if name := h.Rows[1].Name; name != "backward of model.py:38" {
		t.Errorf("module of a backward allocation: %q", rows(h))
	}
	h = attribution.Hold(s, tl, end(tl), attribution.Query{Match: regexp.MustCompile(`model\.py`)})
	if h.Kept().Rounded != 8*mib {
		t.Errorf("forward calls are not matched: %q", rows(h))
	}
}
