package change_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/load"
)

const pairs = "../../fixtures/lab/pairs/recordings/"

// input opens a recording.
func input(t testing.TB, path string) *change.Input {
	t.Helper()
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return known(t, s)
}

// known is a recording with what changes need of it.
func known(t testing.TB, s *snapshot.Snapshot) *change.Input {
	t.Helper()
	in, err := change.NewInput(t.Context(), s, timeline.Build(s, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func parse(t testing.TB, text string) change.Change {
	t.Helper()
	c, err := change.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPairs holds changes of one program to what torch's allocator did when the program was changed so.
func TestPairs(t *testing.T) {
	in := input(t, pairs+"base.pickle.xz")
	for file, asked := range map[string]string{"checkpoint": "checkpoint=blocks.*", "half": "dtype=bf16:all,loss"} {
		truth := input(t, pairs+file+".pickle.xz").Timeline
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, asked)})
		if err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want int64) {
			if off := 100 * float64(got-want) / float64(want); off > 2 || off < -2 {
				t.Errorf("%s: %s peak %d, in truth %d: %+.1f%%", asked, what, got, want, off)
			}
		}
		near("allocated", a.After.AllocatedPeak, truth.PeakAllocated.Bytes)
		near("reserved", a.After.ReservedPeak, truth.PeakReserved.Bytes)
	}
}

// TestCapacity holds that what fits is told by a replay within the capacity.
func TestCapacity(t *testing.T) {
	in := input(t, pairs+"base.pickle.xz")
	for capacity, want := range map[int64][2]bool{100 << 20: {false, false}, 160 << 20: {false, true}, 1 << 30: {true, true}} {
		in.Capacity = capacity
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint=blocks.*")})
		if err != nil {
			t.Fatal(err)
		}
		if *a.Before.Served != want[0] || *a.After.Served != want[1] || (a.After.First == nil) != want[1] {
			t.Errorf("%d MiB: fits %v, changed %v; want %v", capacity>>20, *a.Before.Served, *a.After.Served, want)
		}
	}
}

// TestParse holds how changes are written.
func TestParse(t *testing.T) {
	for _, text := range []string{"checkpoint=blocks.*", "checkpoint=blocks.0-5,layers.3", "checkpoint=model.py:43", "foreach=off",
		"optimizer-in-backward", "accumulate=4", "zero=3,8", "zero=torch,2", "fsdp=2,4", "fsdp=3,16",
		"dtype=bf16:optimizer state", "dtype=fp16:all", "offload=optimizer", "offload=activations",
		"del=train.py:3", "free=train.py:3@2", "no-grad=train.py:7", "free-leak", "free-leak=train.py:1"} {
		if _, err := change.Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"checkpoint", "checkpoint=", "checkpoint=blocks.5-2", "foreach=on", "optimizer-in-backward=1",
		"accumulate=1", "accumulate=x", "zero=4,2", "zero=1", "zero=torch", "fsdp=torch,2", "zero=1,1", "fsdp=1,4", "fsdp=3",
		"dtype=bf16", "dtype=int8:all", "dtype=bf16:weights",
		"offload=all", "del=", "free=train.py:3", "no-grad", "free-leak="} {
		if _, err := change.Parse(text); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	var word *change.UnknownError
	if _, err := change.Parse("checkpoints=blocks.*"); !errors.As(err, &word) || len(word.Known) != len(change.Kinds()) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// TestRefuses holds that what a file lacks is said, and nothing is guessed.
func TestRefuses(t *testing.T) {
	base, ghost := input(t, pairs+"base.pickle.xz"), input(t, "../../fixtures/ghost.pickle")
	for _, c := range []struct {
		in    *change.Input
		asked string
		want  change.Missing
	}{
		{ghost, "checkpoint=blocks.*", change.NoPass}, {ghost, "accumulate=2", change.NoPass},
		{ghost, "offload=optimizer", change.NoOptimizer}, {ghost, "zero=1,2", change.NoState},
		{base, "checkpoint=blocks.7", change.TooFew}, {base, "free-leak", change.NoLeak},
		{base, "checkpoint=model.py:47", change.NoCalls}, {base, "free=train.py:17@100", change.NoSteps},
		{base, "dtype=bf16:kv cache", change.NoneSuch}, {base, "del=train.py:16", change.NoValues},
		{base, "no-grad=train.py:16", change.NoValues},
	} {
		var no *change.RefusedError
		if _, err := change.Ask(t.Context(), c.in, []change.Change{parse(t, c.asked)}); !errors.As(err, &no) {
			t.Errorf("%s: %v", c.asked, err)
		} else if no.Lacks != c.want {
			t.Errorf("%s: lacks %s, want %s", c.asked, no.Lacks, c.want)
		}
	}
	gan := input(t, lab+"gan_checkpoint.pickle.xz")
	var no *change.RefusedError
	if _, err := change.Ask(t.Context(), gan, []change.Change{parse(t, "checkpoint=blocks.0-1")}); !errors.As(err, &no) ||
		no.Lacks != change.ManyLines || !slices.Contains(no.Lines, "checkpoint=gan.py:39.0-1") || len(no.Counts) != len(no.Lines) {
		t.Fatalf("a list of several: %v", err)
	}
	for _, instead := range no.Lines {
		if a, err := change.Ask(t.Context(), gan, []change.Change{parse(t, instead)}); err != nil || a.Changes[0].Modules != 2 {
			t.Errorf("%s: %+v, %v", instead, a, err)
		}
	}
	for _, asked := range []string{"del=nothere.py:1", "checkpoint=nothere.py:1", "no-grad=nothere.py:1"} {
		var word *change.LineError
		_, err := change.Ask(t.Context(), base, []change.Change{parse(t, asked)})
		if !errors.As(err, &word) || !strings.Contains(strings.Join(word.Known, " "), "model.py:") {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// TestSearch holds that what is found fits, that nothing cheaper that was tried does, and that too little is said to be so.
func TestSearch(t *testing.T) {
	in := input(t, pairs+"base.pickle.xz")
	narrows := func(s *change.Set) bool { return strings.Contains(strings.Join(s.Changes, " "), "dtype") } // named later
	for capacity, want := range map[int64]bool{150 << 20: true, 110 << 20: true, 20 << 20: false} {
		in.Capacity = capacity
		f, err := change.Search(t.Context(), in, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if (len(f.Changes) > 0) != want || want && !*f.After.Served {
			t.Errorf("%d MiB: %d changes, fits %v", capacity>>20, len(f.Changes), f.After.Served)
		}
		for i := range f.Tried[1:] {
			if a, b := &f.Tried[i], &f.Tried[i+1]; *b.After.Served && (!*a.After.Served || a.Time > b.Time && !narrows(b)) {
				t.Errorf("%d MiB: %v comes before %v", capacity>>20, a.Changes, b.Changes)
			}
		}
	}
	in.Capacity = 300 << 20
	if f, err := change.Search(t.Context(), in, nil, 0); err != nil || len(f.Tried) > 0 || !*f.Before.Served {
		t.Errorf("a run that fits: %v, %d sets tried", err, len(f.Tried))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := change.Search(ctx, in, nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSearchAsked holds that a search whose length nobody bounds may work for longer than the input alone allows, so that
// a long one that finds nothing says so, and that the one of a report may not.
func TestSearchAsked(t *testing.T) {
	const read = 1000
	in := input(t, pairs+"base.pickle.xz")
	in.Capacity = 20 << 20
	for most, want := range map[int]int64{0: 5 * read, 1: read} {
		meter := new(budget.Meter)
		meter.Read(read)
		if _, err := change.Search(budget.With(t.Context(), meter), in, nil, most); err != nil || meter.Bytes() != want {
			t.Errorf("%d sets at most: %v, bounds of %d bytes, want %d", most, err, meter.Bytes(), want)
		}
	}
}

// TestCategories holds what programs call memory to the categories of its parts.
func TestCategories(t *testing.T) {
	in := input(t, pairs+"base.pickle.xz")
	ask := func(text string) *change.Answer {
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for word, same := range map[string]string{"parameters": "parameter", "optimizer": "optimizer state",
		"gradients": "gradient", "activations": "activation"} {
		a, b := ask("dtype=bf16:"+word), ask("dtype=bf16:"+same)
		if x, y := a.Changes[0], b.Changes[0]; x.Bytes == 0 || x.Bytes != y.Bytes || x.Blocks != y.Blocks {
			t.Errorf("%s is %d bytes, %s %d", word, x.Bytes, same, y.Bytes)
		}
		if a.Confidence != finding.Low {
			t.Errorf("%s is of %s confidence", word, a.Confidence)
		}
	}
	if x, y := ask("dtype=bf16:activations"), ask("dtype=bf16:autograd saved"); x.Changes[0].Bytes < y.Changes[0].Bytes {
		t.Errorf("activations are %d bytes, those that backward needs %d", x.Changes[0].Bytes, y.Changes[0].Bytes)
	}
}

// TestVariablesStay holds that bounds are for functions, too, that have what they compute in variables until they return, where others show
// that they may.
func TestVariablesStay(t *testing.T) {
	a := ask(t, input(t, lab+"gated_layers.pickle.xz"), "checkpoint=layers.*")
	if !slices.ContainsFunc(a.Doubts, func(d change.Doubt) bool { return d.Kind == change.Otherwise }) {
		t.Errorf("%+v", a.Doubts)
	}
}
