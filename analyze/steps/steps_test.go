package steps_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot/load"
)

// TestCorpus finds the number of steps of real programs, which sampled memory_stats once in
// each, with the scopes that torch recorded and without them.
func TestCorpus(t *testing.T) {
	for name, want := range map[string]string{
		"healthy_train": "healthy_train", "checkpointed_train": "checkpointed_train", "hook_closure": "hook_closure",
		"epoch_history": "epoch_history", "kv_cache_generation": "kv_cache_generation",
		"healthy_inference":    "healthy_inference",
		"loss_list_validation": "validate", "results_accumulate": "faulty_inference",
		"expandable_train": "healthy_train",
	} {
		dir := filepath.Join("../../../shared/corpus", name)
		samples, err := os.ReadFile(filepath.Join(dir, "memory_stats.jsonl"))
		if err != nil {
			t.Skip("no corpus here")
		}
		s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle"), load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tl := timeline.Build(s, 0)
		for _, source := range []string{"recorded", "removed"} {
			r := steps.Find(s, tl)
			if n := bytes.Count(samples, []byte("\n")); len(r.Steps) != n {
				t.Errorf("%s, annotations %s: %d steps, want %d", name, source, len(r.Steps), n)
			}
			if !strings.Contains(r.Unit, "iteration of "+want+" (") {
				t.Errorf("%s: unit %q", name, r.Unit)
			}
			check(t, tl, &r)
			s.Annotations = nil
		}
	}
}

// check holds what is true of any steps.
func check(t *testing.T, tl *timeline.Timeline, r *steps.Result) {
	t.Helper()
	end := -1
	for i, st := range r.Steps {
		if st.First <= end || st.Last < st.First || st.Last >= tl.Trace.Len() {
			t.Errorf("step %d: events %d to %d after %d", i, st.First, st.Last, end)
		}
		end = st.Last
		if got := tl.StateAt(st.Last).Totals.Active; got != st.End {
			t.Errorf("step %d ends at %d active bytes, the state has %d", i, st.End, got)
		}
		if got := tl.StateAt(st.First - 1).Totals.Active; got != st.Start || st.Growth != st.End-st.Start ||
			st.Peak < max(st.Start, st.End) {
			t.Errorf("step %d: %+v, the state before it has %d", i, st, got)
		}
		for _, e := range []int{st.First, st.Last} {
			if at := r.At(e); at != i {
				t.Errorf("event %d is in step %d, not %d", e, at, i)
			}
		}
	}
	if len(r.Steps) > 0 && r.At(r.Steps[0].First-1) != -1 {
		t.Error("an event before the first step has one")
	}
}

const mib = 1 << 20

func frames(inner ...string) *build.Stack {
	return build.NewStack(append(inner, "/app/train.py:99:<module>")...)
}

const module = "/lib/python3/site-packages/torch/nn/modules/module.py:1750:_call_impl"

// step is one training step of a made-up program: input, four layers, and their backward.
func step(d *build.Device, caller ...string) {
	alloc := func(line string, n int64) *build.Block {
		d.Stack = frames(append([]string{line}, caller...)...)
		return d.Alloc(n)
	}
	x := alloc("/app/train.py:31:train", mib)
	var acts []*build.Block
	for range 4 {
		d.Stack = frames(append([]string{"/app/model.py:7:forward", module, "/app/train.py:32:train"}, caller...)...)
		acts = append(acts, d.Alloc(3*mib))
	}
	loss := alloc("/app/train.py:33:train", 512)
	d.Stack = nil
	for _, a := range acts {
		g := d.Alloc(3 * mib)
		d.Free(a)
		d.Free(g)
	}
	d.Free(loss)
	d.Free(x)
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name    string
		program func(d *build.Device)
		want    int
		unit    string
	}{
		{"a loop", func(d *build.Device) {
			for range 10 {
				step(d)
			}
		}, 10, "iteration of train (train.py:31)"},
		{"stacks of autograd's thread that are all of C++", func(d *build.Device) {
			for range 10 {
				step(d)
				for i := range 20 {
					kernel := []string{"at::mm", "at::sum"}[i%2]
					d.Stack = build.NewStack("??:0:"+kernel, "??:0:torch::autograd::Engine::thread_main", "??:0:clone")
					d.Free(d.Alloc(mib))
				}
			}
		}, 10, "iteration of train (train.py:31)"},
		{"epochs of batches", func(d *build.Device) {
			for range 4 {
				for range 5 {
					step(d, "/app/train.py:50:fit")
				}
				d.Stack = frames("/app/train.py:52:fit") // validation
				d.Free(d.Alloc(5 * mib))
			}
		}, 20, "iteration of train (train.py:31)"},
		{"a statement over several lines", func(d *build.Device) {
			for range 6 {
				for _, line := range []string{"11", "12", "10", "14"} {
					d.Stack = frames("/app/gen.py:" + line + ":generate")
					d.Free(d.Alloc(mib))
				}
			}
		}, 6, "iteration of generate (gen.py:10)"},
		{"layers only", func(d *build.Device) {
			for i := range 30 {
				d.Stack = frames("/lib/python3/site-packages/torch/nn/modules/linear.py:9:__init__",
					"/app/model.py:3:__init__")
				d.Alloc(int64(i+1) * 1000)
			}
		}, 0, ""},
		{"parameters in each step", func(d *build.Device) {
			for range 5 {
				step(d)
				for range 20 {
					for _, line := range []string{"40", "41"} {
						d.Stack = frames("/app/train.py:" + line + ":train")
						d.Free(d.Alloc(4096))
					}
				}
				for range 60 {
					d.Stack = frames("/app/train.py:45:train")
					d.Free(d.Alloc(4096))
				}
			}
		}, 5, "iteration of train (train.py:31)"},
		{"an optimizer that goes over parameters", func(d *build.Device) {
			const site = "/lib/python3/site-packages/"
			for range 5 {
				step(d)
				for range 40 {
					for _, line := range []string{"40", "41"} {
						d.Stack = frames(site+"transformers/optimization.py:"+line+":step", site+"torch/optim/optimizer.py:485:wrapper",
							"/app/train.py:34:train")
						d.Free(d.Alloc(mib))
					}
				}
			}
		}, 5, "iteration of train (train.py:31)"},
		{"evaluation for as long as training", func(d *build.Device) {
			for range 2 {
				for range 4 {
					for _, line := range []string{"10", "11", "12"} {
						d.Stack = frames("/app/train.py:"+line+":train", "/app/train.py:60:fit")
						d.Free(d.Alloc(mib))
					}
					d.Stack = build.NewStack("??:0:torch::autograd::Engine::thread_main", "??:0:clone")
					d.Free(d.Alloc(mib))
				}
				for range 3 {
					for _, line := range []string{"20", "21", "22", "23", "24"} {
						d.Stack = frames("/app/train.py:"+line+":evaluate", "/app/train.py:61:fit")
						d.Free(d.Alloc(mib))
					}
				}
			}
		}, 8, "iteration of train (train.py:10)"},
		{"items of a batch in a loss", func(d *build.Device) {
			for range 2 {
				for line := range 30 {
					d.Stack = frames(fmt.Sprintf("/app/model.py:%d:forward", line), module, "/app/train.py:32:train")
					d.Free(d.Alloc(mib))
				}
				for range 4 {
					for _, line := range []string{"50", "51", "52", "53", "54"} {
						d.Stack = frames("/app/loss.py:"+line+":loss", "/app/train.py:33:train")
						d.Free(d.Alloc(mib))
					}
				}
				d.Stack = build.NewStack("??:0:torch::autograd::Engine::thread_main", "??:0:clone")
				d.Free(d.Alloc(mib))
			}
		}, 0, ""},
		{"layers of one pass", func(d *build.Device) {
			d.Stack = frames("/app/model.py:7:forward", module, "/app/train.py:32:train")
			d.Alloc(mib)
			for range 12 {
				for _, line := range []string{"20", "21"} {
					d.Stack = frames("/app/block.py:"+line+":forward", module, "/app/model.py:8:forward", module,
						"/app/train.py:32:train")
					d.Alloc(mib)
				}
			}
		}, 0, ""},
		{"layers of one pass, whose calls were left out", func(d *build.Device) {
			d.Stack = frames("/app/model.py:7:forward", "/app/train.py:32:train")
			d.Alloc(mib)
			for range 12 {
				for _, line := range []string{"20", "21"} {
					d.Stack = frames("/app/block.py:"+line+":forward", "/app/model.py:8:forward", "/app/train.py:32:train")
					d.Alloc(mib)
				}
			}
		}, 0, ""},
		{"layers of a container", func(d *build.Device) {
			for range 12 {
				for _, line := range []string{"20", "21"} {
					d.Stack = frames("/app/block.py:"+line+":forward", module,
						"/lib/python3/site-packages/torch/nn/modules/container.py:250:forward", module, "/app/train.py:32:train")
					d.Free(d.Alloc(mib))
				}
			}
		}, 0, ""},
		{"passes of a wrapped module", func(d *build.Device) {
			for range 6 {
				for _, line := range []string{"7", "8", "9"} {
					d.Stack = frames("/app/model.py:"+line+":forward", module,
						"/lib/python3/site-packages/deepspeed/runtime/engine.py:2030:forward", module, "/app/train.py:32:train")
					d.Free(d.Alloc(mib))
				}
			}
		}, 6, "iteration of forward (model.py:7)"},
		{"three of which the first makes what stays", func(d *build.Device) {
			for i := range 3 {
				step(d)
				if d.Stack = frames("/app/train.py:35:train"); i == 0 {
					d.Alloc(9 * mib)
				}
			}
		}, 3, "iteration of train (train.py:31)"},
		{"three that leave what they like", func(d *build.Device) {
			for _, n := range []int64{1, 9, 4} {
				step(d)
				d.Stack = frames("/app/train.py:35:train")
				d.Alloc(n * 9 * mib)
			}
		}, 0, ""},
		{"twice is no loop", func(d *build.Device) { step(d); step(d) }, 0, ""},
		{"named by the profiler", func(d *build.Device) {
			for i := range 5 {
				d.Annotate("ProfilerStep#"+string(rune('0'+i)), func() {
					d.Stack = frames("/app/once.py:7:run")
					d.Free(d.Alloc(2 * mib))
				})
			}
		}, 5, "ProfilerStep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := buildtest.Read(t, build.Run(build.Options{}, c.program))
			tl := timeline.Build(s, 0)
			r := steps.Find(s, tl)
			if len(r.Steps) != c.want || r.Unit != c.unit {
				t.Errorf("%d steps of %q, want %d of %q", len(r.Steps), r.Unit, c.want, c.unit)
			}
			check(t, tl, &r)
		})
	}
}
