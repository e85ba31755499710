package change_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
)

const (
	lab  = "../../fixtures/lab/changes/"
	h200 = "../../fixtures/lab/gpu/changes/"
)

// exact are programs of which the replays know when each block goes: where gradients are zeroed between forward and backward, and
// what checkpoints do not keep.
var exact = map[string]bool{"towers_accumulate_2": true, "nano_checkpoint_accumulate": true, "nano_zero1_checkpoint": true,
	"llama_in_backward_bf16": true, "swin_offload_activations": true, "mean_teacher_no_grad": true, "dit_cpu_adam": true,
	"vqgan_ckpt_both": true, "ppo_ckpt_first": true, "vqgan_host": true, "whisper_micro": true, "cnx_amp": true,
	"gat_convs": true, "gat_leak": true, "moco_keys": true, "gan_fakes": true, "llama_ffn": true,
	"video_mc3_layers": true, "swin_stage": true, "simcse_visual": true, "clip_text": true, "rwkv_ckpt_att": true, "byol_ckpt": true,
	"lit_gpt2_ck": true, "mae_ckpt_enc_accum": true, "cyclegan_ckpt": true, "glow_ckpt": true, "dpo_remat_accum": true,
	"attention_masked_amp": true, "squared_relu_amp": true, "kd_teacher": true, "hubert_native_amp": true, "lit_pool_bf16": true,
	"llama_code_amp": true, "annotated_norms_amp": true}

// TestTruth holds programs with a change to what torch's allocator did when they ran so. The recordings are of the
// programs as they are.
func TestTruth(t *testing.T) {
	holds(t, lab)
	holds(t, h200)
}

// program is one with a change, and what torch counted of it as it is and as changed.
type program struct {
	Family, Change string
	Runs           []struct {
		File   string
		Stats  map[string]int64
		RanOut *bool `json:"ran_out"` // of runs with little memory
	}
}

// changed reads the programs of a folder.
func changed(t *testing.T, lab string) (out []program) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(lab, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func holds(t *testing.T, lab string) {
	programs := changed(t, lab)
	var errors []float64
	for i := range programs {
		p := &programs[i]
		var asked []change.Change
		for text := range strings.FieldsSeq(p.Change) {
			if c, err := change.Parse(text); err == nil {
				asked = append(asked, c)
			}
		}
		if len(asked) == 0 || testing.Short() && i%4 != 0 {
			continue
		}
		if out := p.Runs[1].RanOut; out != nil {
			promises(t, p.Family, input(t, filepath.Join(lab, p.Runs[0].File)), asked, !*out)
			continue
		}
		a, err := change.Ask(t.Context(), input(t, filepath.Join(lab, p.Runs[0].File)), asked)
		if err != nil {
			t.Errorf("%s, %s: %v", p.Family, p.Change, err)
			continue
		}
		if want := p.Runs[1].Stats["reserved_bytes.all.peak"]; want < a.Band.Low || want > a.Band.High {
			t.Errorf("%s, %s: reserved peak %d, expected between %d and %d", p.Family, p.Change, want, a.Band.Low, a.Band.High)
		}
		if off := a.After.ReservedPeak - p.Runs[1].Stats["reserved_bytes.all.peak"]; a.Confidence == finding.High &&
			max(off, -off)*50 > a.After.ReservedPeak {
			t.Errorf("%s, %s: off by %d with high confidence", p.Family, p.Change, off)
		} else if a.Confidence == finding.Medium && max(off, -off)*100/6 > a.After.ReservedPeak {
			t.Errorf("%s, %s: off by %d with medium confidence", p.Family, p.Change, off)
		}
		for what, got := range map[string]int64{"allocated": a.After.AllocatedPeak, "reserved": a.After.ReservedPeak} {
			want := p.Runs[1].Stats[what+"_bytes.all.peak"]
			off := 100 * float64(got-want) / float64(want)
			errors = append(errors, max(off, -off))
			most := 6.0
			if exact[p.Family] {
				most = 1
			}
			if off > most || off < -most {
				t.Errorf("%s, %s: %s peak %d, in truth %d: %+.1f%%", p.Family, p.Change, what, got, want, off)
			}
		}
	}
	slices.Sort(errors)
	if median := errors[len(errors)/2]; median > 0.5 {
		t.Errorf("the median error is %.2f%%", median)
	}
}

// promises holds a search after a run that ran out of memory to whether the changed program ran through.
func promises(t *testing.T, family string, in *change.Input, asked []change.Change, fits bool) {
	f, err := change.Search(t.Context(), in, asked, 0)
	if err != nil {
		t.Errorf("%s: %v", family, err)
	} else if promised := len(f.Changes) > 0; promised != fits {
		t.Errorf("%s: promised %v, in truth %v: %+v", family, promised, fits, f.Tried)
	}
}
