package change_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/fixtures/build"
)

// TestEvaluations has a search try torch.no_grad where a program evaluates with gradients, and nowhere else: others keep what comes out
// of an evaluation, and autocast its copies of weights.
func TestEvaluations(t *testing.T) {
	want := map[string]string{
		"convnet_no_grad": "no-grad=convnet.py:167", "llama_no_grad": "no-grad=llama.py:275",
		"gat_convs": "no-grad=gat.py:94", "gat_leak": "no-grad=gat.py:94",
		"eval_graph_amp": "no-grad=eval_graph.py:60", "nano_evaluates_checkpoint": "no-grad=nano.py:155", "dqn_leak": "no-grad=dqn.py:74",
		"vit_checkpoint": "no-grad=vit_train.py:58", "unet_val": "no-grad=unet_carvana.py:108",
		"validation_total": "no-grad=validation.py:48", "validation_few": "no-grad=validation.py:55",
		"validation_values": "no-grad=validation.py:55", "two_heads_no_grad": "no-grad=two_heads.py:45",
		"gpt2_evaluation_no_grad": "no-grad=gpt2_evaluation.py:23", "gpt2_outputs_no_grad": "no-grad=gpt2_evaluation.py:24",
		"nano_evaluates_no_grad": "no-grad=nano_evaluates.py:156", "text_cnn_no_grad": "no-grad=text_cnn.py:35",
		"gated_skips_no_grad": "no-grad=gated_skips.py:51",
	}
	files, err := filepath.Glob(lab + "*.pickle.xz")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	got := map[string]string{}
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pickle.xz")
		if testing.Short() && i%8 != 0 && want[name] == "" {
			continue
		}
		if texts := withoutGradients(input(t, file)); len(texts) > 0 {
			got[name] = strings.Join(texts, " ")
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestEvaluatedTypes holds that what is taken for granted of the types of evaluations and samples is said, and that bounds are for both.
func TestEvaluatedTypes(t *testing.T) {
	for name, want := range map[string]change.AssumptionKind{
		"nanogpt_eval_amp": change.EvaluatesHalf, "gan_samples_amp": change.SamplesFull,
	} {
		a := ask(t, input(t, lab+name+".pickle.xz"), "dtype=bf16:activations")
		is := func(d change.Doubt) bool { return d.Kind == change.Otherwise }
		if !slices.Contains(a.Changes[0].Assumptions, change.Assumption{Kind: want}) || !slices.ContainsFunc(a.Doubts, is) {
			t.Errorf("%s: %+v, %+v", name, a.Changes[0].Assumptions, a.Doubts)
		}
	}
}

// withoutGradients are the candidates that leave gradients out.
func withoutGradients(in *change.Input) (texts []string) {
	for _, c := range in.Candidates() {
		if c.Kind == change.NoGrad {
			texts = append(texts, c.Text)
		}
	}
	return texts
}

// TestTrainedLines holds that a line which a backward pass needs is never to run without gradients, though batches are skipped there,
// or an evaluation goes through it: then it is the line that evaluates; and that what an evaluation lets go of at once is none.
func TestTrainedLines(t *testing.T) {
	forward := func(d *build.Device, around []string, keeps bool) (kept []*build.Block) {
		for op := range 6 {
			d.Stack = build.NewStack(slices.Concat([]string{fmt.Sprintf("/app/block.py:%d:forward", op)}, called, around)...)
			if b := d.Alloc(8 << 20); keeps {
				kept = append(kept, b)
			} else {
				d.Free(b)
			}
		}
		return kept
	}
	program := func(trains, evaluates []string, keeps bool) func(d *build.Device) {
		return func(d *build.Device) {
			for range 4 {
				kept := forward(d, trains, true)
				d.Stack = build.NewStack("/app/train.py:6:main")
				backward(d, append(kept, d.Alloc(16<<20)), 4<<20)
				for range 2 {
					kept := forward(d, evaluates, keeps)
					d.Stack = build.NewStack("/app/train.py:30:evaluate", "/app/train.py:12:main")
					loss := d.Alloc(1 << 20)
					for _, b := range kept {
						d.Free(b)
					}
					d.Free(loss)
				}
			}
		}
	}
	train, shared := []string{"/app/train.py:5:main"}, "/app/train.py:40:loss_of"
	evaluate := []string{"/app/train.py:29:evaluate", "/app/train.py:12:main"}
	for name, c := range map[string]struct {
		trains, evaluates []string
		keeps             bool
		want              []string
	}{
		"its own line": {train, evaluate, true, []string{"no-grad=train.py:29"}},
		"a line of both": {append([]string{shared}, train...), append([]string{shared}, evaluate...), true,
			[]string{"no-grad=train.py:29"}},
		"batches are skipped":   {train, train, true, nil},
		"nothing is kept there": {train, evaluate, false, nil},
	} {
		if got := withoutGradients(built(t, build.Options{}, program(c.trains, c.evaluates, c.keeps))); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
