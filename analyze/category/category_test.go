package category_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

// sums are the requested bytes by category of the state after an event.
func sums(t *testing.T, s *snapshot.Snapshot, tl *timeline.Timeline, event int,
	rules []category.Rule) map[category.Category]int64 {
	t.Helper()
	st := steps.Find(s, tl)
	table := category.Find(s, tl, &st, rules)
	state := tl.StateAt(event)
	out := map[category.Category]int64{}
	var rounded int64
	for _, x := range table.Sums(tl, state) {
		out[x.Category] = x.Requested
		rounded += x.Rounded
		var trust int64
		for _, n := range x.Trust {
			trust += n
		}
		if trust != x.Rounded {
			t.Errorf("%s: %d bytes by confidence, %d in all", x.Category, trust, x.Rounded)
		}
	}
	if rounded != state.Totals.Active {
		t.Errorf("categories hold %d of %d active bytes", rounded, state.Totals.Active)
	}
	return out
}

func open(t *testing.T, path string) (*snapshot.Snapshot, *timeline.Timeline) {
	t.Helper()
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s, timeline.Build(s, 0)
}

// TestHealthyTrain has known figures: 28 340 224 float32 parameters, and AdamW, which keeps
// two more of each.
func TestHealthyTrain(t *testing.T) {
	const parameters = 28_340_224 * 4
	s, tl := open(t, "../../fixtures/healthy.pickle")
	end := sums(t, s, tl, tl.Trace.Len(), nil)
	if end[category.Parameter] != parameters {
		t.Errorf("parameters %d, want %d", end[category.Parameter], parameters)
	}
	if end[category.OptimizerState] != 2*parameters {
		t.Errorf("optimizer state %d, want %d", end[category.OptimizerState], 2*parameters)
	}
	if end[category.Gradient] != 0 || end[category.Unknown] != 0 {
		t.Errorf("at the end: %v", end)
	}
	peak := sums(t, s, tl, tl.PeakActive.Event, nil)
	for _, c := range []category.Category{category.Gradient, category.AutogradSaved} {
		if peak[c] < 32<<20 {
			t.Errorf("%s at the peak: %d bytes", c, peak[c])
		}
	}
	// When the optimizer begins, each parameter has its gradient.
	st := steps.Find(s, tl)
	table := category.Find(s, tl, &st, nil)
	third := st.Steps[2]
	for e := third.First; e <= third.Last; e++ {
		row := rowBornAt(tl, e)
		if row < 0 || !inOptimizer(s, tl, row) {
			continue
		}
		var gradients int64
		for _, x := range table.Sums(tl, tl.StateAt(e-1)) {
			if x.Category == category.Gradient {
				gradients = x.Requested
			}
		}
		if gradients < parameters || gradients > parameters*101/100 {
			t.Errorf("gradients before the optimizer: %d, want %d", gradients, parameters)
		}
		return
	}
	t.Error("the third step has no optimizer")
}

func rowBornAt(tl *timeline.Timeline, e int) int32 {
	for i := range tl.Lives {
		if int(tl.Lives[i].Born) == e {
			return int32(i)
		}
	}
	return -1
}

func inOptimizer(s *snapshot.Snapshot, tl *timeline.Timeline, row int32) bool {
	for _, id := range s.Stacks.Get(tl.Lives[row].Stack) {
		if strings.Contains(s.Strings.Get(s.Frames.Get(id).File), "torch/optim/") {
			return true
		}
	}
	return false
}

// TestNoAbsurdSplit holds what is known of other programs: how many bytes of parameters they
// have, and that nothing is called what it cannot be.
func TestNoAbsurdSplit(t *testing.T) {
	for name, want := range map[string]map[category.Category]int64{
		"checkpointed_train": {category.Parameter: 88158208, category.OptimizerState: 2 * 88158208},
		"expandable_train":   {category.Parameter: 113360896, category.OptimizerState: 2 * 113360896},
		"ring_truncated":     {category.Parameter: 113360896, category.OptimizerState: 2 * 113360896},
		"cpp_stacks":         {category.Parameter: 113360896, category.OptimizerState: 2 * 113360896},
		"hook_closure":       {category.Parameter: 113360896, category.OptimizerState: 0},
		"healthy_inference": {category.Parameter: 113360896, category.OptimizerState: 0, category.Gradient: 0,
			category.AutogradSaved: 0},
		"kv_cache_generation": {category.Parameter: 88158208, category.OptimizerState: 0, category.Gradient: 0,
			category.AutogradSaved: 0},
		"loss_list_validation": {category.Parameter: 113360896, category.OptimizerState: 0, category.Gradient: 0},
		"pinned_segments_oom": {category.Parameter: 0, category.OptimizerState: 0, category.Gradient: 0,
			category.Activation: 0},
		"reference_cycle": {category.Parameter: 0, category.OptimizerState: 0, category.Gradient: 0,
			category.Activation: 0},
	} {
		files, _ := filepath.Glob("../../../shared/corpus/" + name + "/snapshot.pickle")
		if len(files) == 0 {
			t.Skip("no corpus here")
		}
		s, tl := open(t, files[0])
		got := sums(t, s, tl, tl.Trace.Len(), nil)
		for c, n := range want {
			if got[c] != n {
				t.Errorf("%s: %s %d, want %d", name, c, got[c], n)
			}
		}
	}
}

// TestRealSplit adds up over all real snapshots, and never says that all is activation.
func TestRealSplit(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/real/torch-*.pickle")
	if len(files) == 0 {
		t.Skip("no real snapshots here")
	}
	for _, file := range files {
		s, tl := open(t, file)
		for _, e := range []int{tl.PeakActive.Event, tl.Trace.Len()} {
			got := sums(t, s, tl, e, nil)
			if n := tl.StateAt(e).Totals.Requested; n > 0 && got[category.Activation] == n {
				t.Errorf("%s: all of %d bytes are activation", file, n)
			}
		}
	}
}

func TestRules(t *testing.T) {
	rules, err := category.ParseRules([]byte("rules:\n  - match: 'load\\.py:\\d+ read'\n    category: input\n  - " +
		"match: " +
		"train\n    category: communication\n"))
	if err != nil {
		t.Fatal(err)
	}
	made := build.Run(build.Options{}, func(d *build.Device) {
		d.Stack = build.NewStack("/app/load.py:7:read", "/app/train.py:9:<module>")
		d.Alloc(3000)
		d.Stack = build.NewStack("/app/other.py:7:f", "/app/train.py:9:<module>")
		d.Alloc(5000)
		d.Stack = build.NewStack("/app/other.py:7:f")
		d.Alloc(7000)
	})
	s := buildtest.Read(t, made)
	tl := timeline.Build(s, 0)
	got := sums(t, s, tl, tl.Trace.Len(), rules)
	want := map[category.Category]int64{category.Input: 3000, category.Communication: 5000, category.Other: 7000}
	for c, n := range want {
		if got[c] != n {
			t.Errorf("%s: %d, want %d", c, got[c], n)
		}
	}
}

// TestDistributed has a model whose forward runs inside of torch.distributed's, in a process that torchrun started.
func TestDistributed(t *testing.T) {
	const torch = "/lib/python3/site-packages/torch/"
	outer := []string{torch + "nn/parallel/distributed.py:1600:forward", torch + "nn/modules/module.py:1747:_call_impl",
		"/app/train.py:9:main", torch + "distributed/elastic/multiprocessing/errors/__init__.py:355:wrapper"}
	made := build.Run(build.Options{}, func(d *build.Device) {
		in := func(size int64, outer []string, inner ...string) {
			d.Stack = build.NewStack(append(inner, outer...)...)
			d.Alloc(size)
		}
		in(3000, outer, "/app/model.py:7:forward", torch+"nn/modules/module.py:1747:_call_impl")
		in(5000, outer, torch+"distributed/distributed_c10d.py:2800:all_reduce")
		in(7000, outer[2:], "/app/train.py:7:ready")
	})
	s := buildtest.Read(t, made)
	tl := timeline.Build(s, 0)
	got := sums(t, s, tl, tl.Trace.Len(), nil)
	want := map[category.Category]int64{category.Activation: 3000, category.Communication: 5000, category.Other: 7000}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestParseRulesRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"rules:\n  - match: x\n    category: weights\n": `unknown category "weights"`,
		"rules:\n  - match: '('\n    category: input\n": "rule 1: invalid regular expression",
		"rules:\n  - category: input\n":                 "match is empty",
		"rule: []\n":                                    `line 1: unknown key "rule"; expected rules`,
		"[":                                             "the rules are no YAML: line 1: ",
		"- match: x\n":                                  "line 1: expected rules: ...",
		"rules: x\n":                                    "line 1: rules is no list",
		"rules:\n  - match\n":                           "rule 1: line 2: expected match: ... and category: ...",
		"rules:\n  - match: x\n    kategory: input\n":   `rule 1: line 3: unknown key "kategory"; expected match and category`,
		"rules:\n  - match: x\n    match: y\n":          "rule 1: line 3: match is there twice",
		"rules:\n  - match: [x]\n    category: input\n": "match is empty",
	} {
		if _, err := category.ParseRules([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if rules, err := category.ParseRules(nil); err != nil || len(rules) != 0 {
		t.Errorf("an empty file: %v, %v", rules, err)
	}
}
