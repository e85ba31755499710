package change_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/build"
)

// listed is a module of a list: the line of the model's forward that calls it, that of its own code, and what it keeps.
type listed struct {
	line string
	own  []string
	mib  []int64
}

// block is the stack of a block's own code, at a line.
func block(line string) []string { return []string{"/app/block.py:" + line + ":forward"} }

// TestNames holds which lists of modules are taken for those of a name.
func TestNames(t *testing.T) {
	down := listed{"7", block("10"), []int64{16, 8, 4, 2}}
	up := listed{"20", block("40"), []int64{4, 8, 16, 24}}
	text, image := listed{"7", block("10"), []int64{6, 6, 6}}, listed{"20", block("10"), []int64{4, 4, 4}}
	other, small := listed{"20", block("40"), []int64{4, 4, 4}}, listed{"7", block("10"), []int64{4, 4, 4}}
	sequential := []string{torch + "nn/modules/container.py:250:forward"}
	plain, more := listed{"7", sequential, []int64{6, 6, 6}}, listed{"20", sequential, []int64{4, 4, 4}}
	for _, c := range []struct {
		name  string
		lists []listed
		asked string
		want  int   // modules of one pass, 0 for a refusal
		mib   int64 // that they keep in one, half of which comes out of them and stays
	}{
		{"the larger and larger", []listed{down, up}, "up_blocks.*", 4, 52},
		{"the smaller and smaller", []listed{down, up}, "down.*", 4, 30},
		{"in either order", []listed{up, down}, "ups.0-1", 2, 12},
		{"nothing of a size", []listed{down, up}, "blocks.*", 0, 0},
		{"two of the same size", []listed{text, other}, "ups.*", 0, 0},
		{"of one class", []listed{text, image}, "layers.*", 6, 30},
		{"some of one class", []listed{text, image}, "layers.0", 0, 0},
		{"two of one class", []listed{text, image}, "layers.0,layers.1", 0, 0},
		{"of a generator", []listed{text, other}, "generator.blocks.*", 3, 18},
		{"of its critic", []listed{text, other}, "critic.blocks.*", 3, 12},
		{"of a generator of its critic's class", []listed{text, small}, "generator.blocks.*", 3, 18},
		{"of a critic of its generator's class", []listed{text, small}, "critic.blocks.*", 3, 12},
		{"of no class", []listed{plain, more}, "layers.*", 0, 0},
		{"of two classes", []listed{text, other}, "layers.*", 0, 0},
	} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for i, l := range c.lists {
					for _, mib := range l.mib {
						for _, inner := range []string{"1", "2"} {
							d.Stack = build.NewStack(slices.Concat([]string{torch + "nn/modules/conv.py:" + inner + ":forward"}, called,
								l.own, called, []string{"/app/model.py:" + l.line + ":forward"},
								called, []string{"/app/train.py:" + []string{"9", "11"}[i] + ":main"})...)
							kept = append(kept, d.Alloc(mib<<19))
						}
					}
				}
				backward(d, kept, 1<<19)
			}
		})
		a, err := change.Ask(t.Context(), in, []change.Change{parse(t, "checkpoint="+c.asked)})
		var no *change.RefusedError
		if c.want == 0 {
			if !errors.As(err, &no) || no.Lacks != change.ManyLines {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := a.Changes[0]; got.Modules != c.want || 2*got.Bytes != 3*c.mib<<20 {
			t.Errorf("%s: %d modules of %d MiB, want %d of %d", c.name, got.Modules, got.Bytes>>20, c.want, 3*c.mib/2)
		}
		if !slices.Contains(a.Changes[0].Assumptions, change.Assumption{Kind: change.OneOfLists}) {
			t.Errorf("%s: it is not said that another list may be meant", c.name)
		}
	}
}

// TestStagesByKind holds that the blocks of a list of torch's lists are put together by their kinds where stages are named.
func TestStagesByKind(t *testing.T) {
	in := built(t, build.Options{}, func(d *build.Device) {
		for range 3 {
			var kept []*build.Block
			for stage, blocks := range []int{2, 3, 3} {
				for block := range blocks {
					lines := []string{"1", "2"}
					if stage > 0 && block == 0 {
						lines = append(lines, "3") // a shortcut of its own
					}
					for _, line := range lines {
						d.Stack = build.NewStack(slices.Concat([]string{torch + "nn/modules/conv.py:9:forward"}, called,
							[]string{"/app/block.py:" + line + ":forward"}, called, []string{torch + "nn/modules/container.py:250:forward"},
							called, []string{"/app/model.py:7:forward"}, called, []string{"/app/train.py:9:main"})...)
						kept = append(kept, d.Alloc(2<<20))
					}
				}
			}
			backward(d, kept, 1<<20)
		}
	})
	for asked, want := range map[string]int{"stages.*": 3, "stages.0": 1, "blocks.*": 8, "blocks.2": 1} {
		if got := ask(t, in, "checkpoint="+asked).Changes[0].Modules; got != want {
			t.Errorf("%s: %d modules, want %d", asked, got, want)
		}
	}
}

// TestRepeats holds that of modules that run the same code over and over is said that others may be meant, and the bounds allow for
// that: several may have been taken for one.
func TestRepeats(t *testing.T) {
	for turns, low := range map[int]bool{1: false, 6: true} {
		in := built(t, build.Options{}, func(d *build.Device) {
			for range 3 {
				var kept []*build.Block
				for range 2 {
					for turn := range turns + 1 {
						for _, inner := range []string{"31", "32"} {
							line := "30"
							if turn == 0 {
								line = "20"
							}
							d.Stack = build.NewStack(slices.Concat([]string{torch + "nn/modules/conv.py:" + inner + ":forward"}, called,
								[]string{"/app/block.py:" + line + ":forward"}, called, []string{"/app/model.py:7:forward"}, called,
								[]string{"/app/train.py:9:main"})...)
							kept = append(kept, d.Alloc(4<<20))
						}
					}
				}
				backward(d, kept, 1<<20)
			}
		})
		a := ask(t, in, "checkpoint=layers.*")
		unsure := slices.Contains(a.Changes[0].Assumptions, change.Assumption{Kind: change.OneOfLists})
		if a.Changes[0].Modules != 2 || unsure != low || low && a.Confidence != finding.Low {
			t.Errorf("%d turns: %d modules, confidence %v, unsure %v", turns, a.Changes[0].Modules, a.Confidence, unsure)
		}
	}
}

// TestNumbers holds what numbers in names are taken for, and that one that there is not is refused.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		file, asked string
		want        int            // modules of one pass
		lacks       change.Missing // where it is refused
	}{
		{"swin_stage", "features.1.*", 2, ""},
		{"swin_stage", "features.1.*,features.2.*", 4, ""},
		{"swin_stage", "features.9.*", 0, change.TooFew},
		{"video_mc3_layers", "layer4.*", 2, ""},
		{"video_mc3_layers", "layer1.*,layer3.*", 4, ""},
		{"video_mc3_layers", "layer9.*", 0, change.ManyLines},
		{"llama_ffn", "layers.*.feed_forward", 6, ""},
		{"llama_ffn", "layers.3.feed_forward", 0, change.NoModules},
		{"simcse_visual", "visual.resblocks.*", 5, ""},
		{"simcse_visual", "text.resblocks.*,visual.resblocks.*", 10, ""},
		{"clip_text", "transformer.resblocks.*", 6, ""},
		{"clip_text", "visual.transformer.resblocks.*", 6, ""},
		{"rwkv_ckpt_att", "blocks.*", 4, ""},
		{"rwkv_ckpt_att", "blocks.1", 1, ""},
		{"byol_ckpt", "layer1.*,layer2.*", 8, ""},
		{"byol_ckpt", "layer3.*", 4, ""},
		{"lit_gpt2_ck", "transformer.h.*", 16, ""},
		{"mae_ckpt_enc_accum", "blocks.*", 8, ""},
		{"mae_ckpt_enc_accum", "decoder_blocks.*", 4, ""},
		{"cyclegan_ckpt", "res_blocks.*", 36, ""},
		{"swin_blocks_amp", "features.1.*,features.3.*,features.5.*,features.7.*", 12, ""},
	} {
		a, err := change.Ask(t.Context(), input(t, lab+c.file+".pickle.xz"), []change.Change{parse(t, "checkpoint="+c.asked)})
		var no *change.RefusedError
		switch {
		case c.lacks != "":
			if !errors.As(err, &no) || no.Lacks != c.lacks {
				t.Errorf("%s, %s: %v, want %s", c.file, c.asked, err, c.lacks)
			}
		case err != nil:
			t.Errorf("%s, %s: %v", c.file, c.asked, err)
		case a.Changes[0].Modules != c.want || a.Changes[0].Modules > a.Changes[0].OfThose:
			t.Errorf("%s, %s: %d modules of %d, want %d", c.file, c.asked, a.Changes[0].Modules, a.Changes[0].OfThose, c.want)
		}
	}
}

// TestParts holds which modules names of a network's middle and of its ends are of, by the lines that call them, and that one of which
// nothing tells is refused.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		file, asked, line string
		want              int // modules of one pass
	}{
		{"ddpm_ckpt_mid", "mid_attn", "ddpm.py:88 forward", 1},
		{"ddpm_ckpt_mid", "mid_res1", "ddpm.py:87 forward", 1},
		{"ddpm_ckpt_mid", "unet.mid_block2", "ddpm.py:89 forward", 1},
		{"ddpm_ckpt_mid", "down_blocks.*,mid_attn,up_blocks.*", "ddpm.py:84 forward, ddpm.py:88 forward and ddpm.py:94 forward", 7},
		{"ddpm_ckpt_mid", "bottleneck", "", 0},
		{"ddpm_ckpt_mid", "mid_attn.*", "", 0},
		{"ddpm_ckpt_mid", "decode_head", "", 0},
		{"pix2pix_bottleneck", "bottleneck", "pix2pix.py:82 forward", 1},
		{"pix2pix_bottleneck", "bottleneck.*", "pix2pix.py:82 forward", 9},
		{"pix2pix_bottleneck", "encoder.*,decoder.*", "pix2pix.py:81 forward and pix2pix.py:84 forward", 6},
		{"vae_encoder", "encoder", "autoencoder_kl.py:164 _encode", 1},
		{"vae_encoder", "encoder.*", "vae.py:170 forward", 3},
		{"nmt_checkpoint", "encoder.layers.*", "transformer.py:542 forward", 4},
	} {
		a, err := change.Ask(t.Context(), input(t, lab+c.file+".pickle.xz"), []change.Change{parse(t, "checkpoint="+c.asked)})
		var no *change.RefusedError
		switch {
		case c.want == 0:
			if !errors.As(err, &no) || no.Lacks != change.NoName {
				t.Errorf("%s, %s: %v, want it refused", c.file, c.asked, err)
			}
		case err != nil:
			t.Errorf("%s, %s: %v", c.file, c.asked, err)
		case a.Changes[0].Modules != c.want || a.Changes[0].Line != c.line:
			t.Errorf("%s, %s: %d modules of %s, want %d of %s", c.file, c.asked, a.Changes[0].Modules, a.Changes[0].Line, c.want, c.line)
		}
	}
}
