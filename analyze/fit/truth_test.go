package fit_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/load"
)

// family is a program of fixtures/lab/fit with its runs.
type family struct {
	Family string `json:"family"`
	Runs   []run  `json:"runs"`
}

type run struct {
	At    map[string]int64 `json:"at"`
	File  string           `json:"file"`
	Stats struct {
		Reserved  int64 `json:"reserved_bytes.all.peak"`
		Allocated int64 `json:"allocated_bytes.all.peak"`
	} `json:"stats"`
}

const (
	lab  = "../../fixtures/lab/fit"
	h200 = "../../fixtures/lab/gpu/fit"
)

func families(t *testing.T) []family { return familiesOf(t, lab) }

func familiesOf(t *testing.T, lab string) (out []family) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(lab, "truth.json"))
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// series are the runs of a family that differ in one value only, by that value: those with a recording, and the others.
func (f *family) series(name string) (recorded, others []run) {
	fixed := func(r *run) bool {
		for other, v := range r.At {
			if other != name && v != f.Runs[0].At[other] {
				return false
			}
		}
		return r.At[name] > 0
	}
	for _, r := range f.Runs {
		switch {
		case !fixed(&r):
		case r.File != "":
			recorded = append(recorded, r)
		default:
			others = append(others, r)
		}
	}
	slices.SortFunc(recorded, func(a, b run) int { return cmp.Compare(a.At[name], b.At[name]) })
	return recorded, others
}

func input(t *testing.T, r *run, names ...string) *fit.Input {
	t.Helper()
	return inputOf(t, lab, r, names...)
}

func inputOf(t *testing.T, lab string, r *run, names ...string) *fit.Input {
	t.Helper()
	s, err := load.Open(t.Context(), filepath.Join(lab, r.File), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := &fit.Input{Snapshot: s, Timeline: timeline.Main(s)}
	for _, name := range names {
		in.At = append(in.At, r.At[name])
	}
	return in
}

func inputs(t *testing.T, runs []run, name string) (out []*fit.Input) {
	t.Helper()
	for i := range runs {
		out = append(out, input(t, &runs[i], name))
	}
	return out
}

// depends are families whose sizes depend on the data, of which predictions are bounds: truth is within them as for others.
var depends = map[string]bool{"bert": true, "moe": true, "moe_expandable": true, "gnn": true}

// TestTruth predicts each family from so many of its recordings, of values that follow each other, and compares with
// torch's own peaks.
func TestTruth(t *testing.T) {
	for recordings, want := range map[int]struct {
		values                      []string
		median, worst, inside, sure float64
	}{
		1: {[]string{"batch", "seq", "side"}, 0.01, 0.6, 0.95, 1},
		2: {[]string{"batch", "seq", "side", "layers"}, 0.001, 0.05, 0.99, 1},
		3: {[]string{"batch", "seq", "side", "layers"}, 0.001, 0.05, 0.99, 1},
	} {
		var errors []float64
		inside, held, all := 0, 0, 0
		for _, name := range want.values {
			q := fit.Question{Names: []string{name}}
			for _, f := range families(t) {
				recorded, others := f.series(name)
				if len(recorded) < recordings || len(others) == 0 {
					continue
				}
				q.To = nil
				for _, r := range others {
					q.To = append(q.To, fit.Point{r.At[name]})
				}
				for from := range len(recorded) - recordings + 1 {
					got, err := fit.Ask(t.Context(), inputs(t, recorded[from:from+recordings], name), q)
					if err != nil {
						t.Errorf("%s: %v", f.Family, err)
						continue
					}
					for i, r := range others {
						p := &got.Predictions[i]
						truth := r.Stats.Reserved
						if !depends[f.Family] {
							errors = append(errors, math.Abs(float64(p.ReservedPeak-truth))/float64(truth))
						}
						all++
						if p.ReservedLow <= truth && truth <= p.ReservedHigh {
							inside++
						}
						if float64(truth) <= 1.02*float64(p.ReservedHigh) {
							held++
						}
					}
				}
			}
		}
		slices.Sort(errors)
		if all < 20 {
			t.Fatalf("%d recordings: only %d predictions", recordings, all)
		}
		share := func(n int) float64 { return float64(n) / float64(all) }
		median, worst := errors[len(errors)/2], errors[len(errors)-1]
		t.Logf("%d recordings: %d predictions, median error %.2f%%, worst %.1f%%, %.0f%% within bounds", recordings, all,
			100*median, 100*worst, 100*share(inside))
		if median > want.median || worst > want.worst || share(inside) < want.inside || share(held) < want.sure {
			t.Errorf("%d recordings: median %v, worst %v, inside %v, not above %v", recordings, median, worst, share(inside), share(held))
		}
	}
}

// TestKernels holds predictions to what an H200 took with the kernels that it has: the workspaces and the scratch
// memory of sums that Hopper's libraries ask for, and recurrent layers of cuDNN.
func TestKernels(t *testing.T) {
	var errors []float64
	for _, f := range familiesOf(t, h200) {
		name := ""
		for of, v := range f.Runs[0].At {
			if f.Runs[1].At[of] != v {
				name = of
			}
		}
		q := fit.Question{Names: []string{name}}
		for _, r := range f.Runs[2:] {
			q.To = append(q.To, fit.Point{r.At[name]})
		}
		two := []*fit.Input{inputOf(t, h200, &f.Runs[0], name), inputOf(t, h200, &f.Runs[1], name)}
		got, err := fit.Ask(t.Context(), two, q)
		if err != nil {
			t.Errorf("%s: %v", f.Family, err)
			continue
		}
		for i, r := range f.Runs[2:] {
			p := &got.Predictions[i]
			off := float64(p.ReservedPeak-r.Stats.Reserved) / float64(r.Stats.Reserved)
			errors = append(errors, math.Abs(off))
			if math.Abs(off) > 0.05 || r.Stats.Reserved < p.ReservedLow || r.Stats.Reserved > p.ReservedHigh {
				t.Errorf("%s at %d: %+.1f%%, between %d and %d, in truth %d", f.Family, r.At[name], 100*off, p.ReservedLow,
					p.ReservedHigh, r.Stats.Reserved)
			}
		}
		if f.Family != "gpt_checkpointed" {
			continue
		}
		one, err := fit.Ask(t.Context(), two[:1], q)
		if err != nil {
			t.Fatal(err)
		}
		last := len(q.To) - 1
		p, truth := one.Predictions[last].ReservedPeak, f.Runs[2+last].Stats.Reserved
		if max(p, truth) > 2*min(p, truth) {
			t.Errorf("%s at %v from one recording: %d, in truth %d", f.Family, q.To[last], p, truth)
		}
	}
	slices.Sort(errors)
	if median := errors[len(errors)/2]; len(errors) < 20 || median > 0.001 {
		t.Errorf("%d predictions, median error %.2f%%", len(errors), 100*median)
	}
}

// TestChance holds what is predicted of programs whose sizes depend on the data. Which step has the larger ones decides about
// the layout, and is chance: a prediction is of what is likely.
func TestChance(t *testing.T) {
	const much, few = 0.05, 0.1
	all, off := 0, 0
	for _, f := range families(t) {
		for _, name := range []string{"batch", "seq"} {
			recorded, others := f.series(name)
			if !depends[f.Family] || len(recorded) < 2 {
				continue
			}
			q := fit.Question{Names: []string{name}}
			for _, r := range others {
				q.To = append(q.To, fit.Point{r.At[name]})
			}
			for i := range recorded {
				for k := range recorded[:i] {
					got, err := fit.Ask(t.Context(), inputs(t, []run{recorded[k], recorded[i]}, name), q)
					if err != nil {
						t.Fatal(f.Family, err)
					}
					for n, p := range got.Predictions {
						truth := others[n].Stats.Reserved
						if all++; math.Abs(float64(p.ReservedPeak-truth)) > much*float64(truth) {
							off++
						}
						if p.AllocatedPeak > p.ReservedPeak {
							t.Errorf("%s, %d: %d allocated of %d", f.Family, p.At, p.AllocatedPeak, p.ReservedPeak)
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d are off by more than 5%%", off, all)
	if all < 50 || float64(off) > few*float64(all) {
		t.Errorf("%d of %d are off by more than 5%%", off, all)
	}
}

// TestTwoValues predicts GPT with a batch and a length that no recording has together.
func TestTwoValues(t *testing.T) {
	all := families(t)
	f := &all[slices.IndexFunc(all, func(f family) bool { return f.Family == "gpt" })]
	var inputs []*fit.Input
	q := fit.Question{Names: []string{"batch", "seq"}}
	var truth []int64
	for i := range f.Runs {
		r := &f.Runs[i]
		if r.File != "" {
			inputs = append(inputs, input(t, r, q.Names...))
			continue
		}
		q.To = append(q.To, fit.Point{r.At["batch"], r.At["seq"]})
		truth = append(truth, r.Stats.Reserved)
	}
	got, err := fit.Ask(t.Context(), inputs, q)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got.Predictions {
		if p.ReservedPeak != truth[i] {
			t.Errorf("%v: %d, want %d", p.Values, p.ReservedPeak, truth[i])
		}
	}
	if got.ProvenShare < 0.99 {
		t.Errorf("proven share %v", got.ProvenShare)
	}
}

// TestExact holds programs that are predicted to the byte from two recordings, for what each of them alone has.
func TestExact(t *testing.T) {
	all := families(t)
	for name, why := range map[string]string{
		"tagger":      "layers whose gradients are parts of a stacked one, which does not make their sums longer",
		"autoencoder": "more requests in loops over images than an alignment looks over, and steps of two models",
	} {
		f := &all[slices.IndexFunc(all, func(f family) bool { return f.Family == name })]
		recorded, others := f.series("batch")
		q := fit.Question{Names: []string{"batch"}}
		for _, r := range others {
			q.To = append(q.To, fit.Point{r.At["batch"]})
		}
		first, last := input(t, &recorded[0], "batch"), input(t, &recorded[len(recorded)-1], "batch")
		got, err := fit.Ask(t.Context(), []*fit.Input{first, last}, q)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range got.Predictions {
			if want := others[i].Stats.Reserved; p.ReservedPeak != want {
				t.Errorf("%s (%s): batch %d: %d, want %d", name, why, p.At, p.ReservedPeak, want)
			}
		}
	}
}

// TestScratch holds that the scratch memory of sums, which only the longer sequences need, is taken for no other request:
// those that both recordings have are as many as the shorter one makes.
func TestScratch(t *testing.T) {
	all := families(t)
	f := &all[slices.IndexFunc(all, func(f family) bool { return f.Family == "bert" })]
	var inputs []*fit.Input
	for _, r := range f.Runs {
		if r.File != "" && r.At["batch"] == 8 && r.At["seq"] != 96 {
			inputs = append(inputs, input(t, &r, "seq"))
		}
	}
	got, err := fit.Ask(t.Context(), inputs, fit.Question{Names: []string{"seq"}})
	if err != nil {
		t.Fatal(err)
	}
	few, many := len(inputs[0].Timeline.Lives), len(inputs[1].Timeline.Lives)
	if want := float64(few) / float64(many); few == many || got.Recorded[0].Matched != 1 || got.Recorded[1].Matched != want {
		t.Errorf("%d and %d requests: matched %v and %v", few, many, got.Recorded[0].Matched, got.Recorded[1].Matched)
	}
}

// TestTurns holds that a line's requests in a row are paired in their order where their sizes tell nothing: those of experts
// depend on the data, and yet their sum goes with the batch.
func TestTurns(t *testing.T) {
	const most = 0.01
	all := families(t)
	f := &all[slices.IndexFunc(all, func(f family) bool { return f.Family == "moe" })]
	recorded, others := f.series("batch")
	q := fit.Question{Names: []string{"batch"}}
	for _, r := range others {
		q.To = append(q.To, fit.Point{r.At["batch"]})
	}
	for i := range recorded[1:] {
		got, err := fit.Ask(t.Context(), []*fit.Input{input(t, &recorded[i], "batch"), input(t, &recorded[i+1], "batch")}, q)
		if err != nil {
			t.Fatal(err)
		}
		for k, p := range got.Predictions {
			truth := others[k].Stats.Allocated
			if off := math.Abs(float64(p.AllocatedPeak-truth)) / float64(truth); off > most {
				t.Errorf("from %d and the next, batch %d: allocated %.1f%% off", recorded[i].At["batch"], p.At, 100*off)
			}
		}
	}
}

// TestLargest holds that the largest value fits to the byte: it does on a device with what it needs, and the next does not.
func TestLargest(t *testing.T) {
	all := families(t)
	f := &all[slices.IndexFunc(all, func(f family) bool { return f.Family == "gpt" })]
	recorded, others := f.series("batch")
	inputs := []*fit.Input{input(t, &recorded[0], "batch"), input(t, &recorded[1], "batch")}
	for _, r := range others {
		q := fit.Question{Names: []string{"batch"}, Capacity: r.Stats.Reserved}
		got, err := fit.Ask(t.Context(), inputs, q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Largest == nil || *got.Largest < r.At["batch"] {
			t.Errorf("capacity of batch %d: %+v", r.At["batch"], got.Limit)
		}
		for _, p := range got.Predictions {
			if *p.Fits != (p.At <= *got.Largest) {
				t.Errorf("largest %d, and %d fits: %v", *got.Largest, p.At, *p.Fits)
			}
		}
		if got.Limit.Requested == 0 || got.Limit.Short <= 0 || got.Limit.Low > *got.Largest || got.Limit.High < *got.Largest {
			t.Errorf("limit %+v of %d", got.Limit, *got.Largest)
		}
	}
}

// TestRefusals holds what recordings do not go together.
func TestRefusals(t *testing.T) {
	all := families(t)
	var gpt, lora, bert *family
	for i := range all {
		switch all[i].Family {
		case "gpt":
			gpt = &all[i]
		case "lora":
			lora = &all[i]
		case "bert":
			bert = &all[i]
		}
	}
	a, b := input(t, &gpt.Runs[0], "batch"), input(t, &gpt.Runs[1], "batch")
	same := *b
	same.At = a.At
	two := input(t, &gpt.Runs[0], "batch", "seq")
	at := func(in *fit.Input, values ...int64) *fit.Input {
		return &fit.Input{Snapshot: in.Snapshot, Timeline: in.Timeline, At: values}
	}
	for name, c := range map[string]struct {
		inputs []*fit.Input
		q      fit.Question
	}{
		"other program":     {[]*fit.Input{a, input(t, &lora.Runs[0], "seq")}, fit.Question{Names: []string{"batch"}}},
		"another":           {[]*fit.Input{a, input(t, &bert.Runs[0], "batch")}, fit.Question{Names: []string{"batch"}}},
		"same values":       {[]*fit.Input{a, &same}, fit.Question{Names: []string{"batch"}}},
		"both vary at once": {[]*fit.Input{two, at(b, 6, 256)}, fit.Question{Names: []string{"batch", "seq"}}},
		"the first does not vary": {[]*fit.Input{two, at(b, 2, 256)},
			fit.Question{Names: []string{"batch", "seq"}, Capacity: 1 << 34}},
		"two names of one": {[]*fit.Input{two}, fit.Question{Names: []string{"batch", "seq"}}},
		"one of two varies": {[]*fit.Input{two, input(t, &gpt.Runs[1], "batch", "seq")},
			fit.Question{Names: []string{"batch", "seq"}, To: []fit.Point{{4, 256}}}},
	} {
		_, err := fit.Ask(t.Context(), c.inputs, c.q)
		if _, ok := err.(*fit.Refusal); !ok {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestConstant holds that no largest value is told where memory does not grow.
func TestConstant(t *testing.T) {
	all := families(t)
	a := input(t, &all[0].Runs[0], "batch")
	b := &fit.Input{Snapshot: a.Snapshot, Timeline: a.Timeline, At: fit.Point{2 * a.At[0]}}
	got, err := fit.Ask(t.Context(), []*fit.Input{a, b}, fit.Question{Names: []string{"batch"}, Capacity: 1 << 34})
	if err != nil || got.Largest != nil || got.Limit != nil || len(got.Notes) != 1 {
		t.Errorf("%+v, error %v", got, err)
	}
}

// TestMidway says of recordings of a running program, and of no others, that their layout is not known.
func TestMidway(t *testing.T) {
	for _, f := range families(t) {
		if f.Family != "vit" && f.Family != "gpt" {
			continue
		}
		recorded, _ := f.series("batch")
		got, err := fit.Ask(t.Context(), []*fit.Input{input(t, &recorded[0], "batch"), input(t, &recorded[1], "batch")},
			fit.Question{Names: []string{"batch"}, To: []fit.Point{{16}}})
		if err != nil {
			t.Fatal(err)
		}
		midway := slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "in the middle of the run") })
		if midway != (f.Family == "vit") {
			t.Errorf("%s: %q", f.Family, got.Notes)
		}
	}
}
