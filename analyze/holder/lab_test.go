package holder_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

const lab = "../../fixtures/holders"

// lines analyzes the devices of a snapshot.
func lines(s *snapshot.Snapshot) []holder.Line {
	var out []holder.Line
	for _, d := range s.UsedDevices() {
		t := timeline.Build(s, d)
		out = append(out, holder.Line{Timeline: t, Growth: ghost.Find(s, t, nil)})
	}
	return out
}

func labCase(t *testing.T, name string) (*holder.Result, []holder.Line, []string) {
	t.Helper()
	f, err := sidecar.Open(t.Context(), filepath.Join(lab, name, "run.snapana"), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Truncated != nil || f.Unknown != nil {
		t.Errorf("truncated %v, unknown %v", f.Truncated, f.Unknown)
	}
	s, err := load.Open(t.Context(), filepath.Join(lab, name, "snapshot.pickle.zst"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	devices := lines(s)
	r, notes := holder.Choose(s, devices, f, nil)
	if r == nil {
		t.Fatal(notes)
	}
	return r, devices, notes
}

// The lab's programs say themselves who holds their ghosts.
func TestLabGhosts(t *testing.T) {
	for _, c := range []struct {
		name     string
		want     holder.Reference
		owner    string // what the owner, if any, must name
		formerly string // in the dump before, where the program has moved on since
		graph    bool   // most of it is an autograd graph
	}{
		{name: "loss_list_train", want: holder.Reference{Kind: holder.Closure, Variable: "losses",
			Function: "make_step.<locals>.step"}},
		{name: "loss_list_validation", want: holder.Reference{Kind: holder.Closure, Variable: "history",
			Function: "make_validator.<locals>.validate"}, graph: true},
		{name: "results_accumulate", want: holder.Reference{Kind: holder.Local, Variable: "kept",
			Function: "results_accumulate", Object: "list"},
			formerly: "list `results`, local of results_accumulate.<locals>.faulty_inference", graph: true},
		{name: "results_accumulate_no_grad", want: holder.Reference{Kind: holder.Local, Variable: "all_outputs",
			Function: "results_accumulate_no_grad", Object: "list"}},
		{name: "hook_closure", want: holder.Reference{Kind: holder.Closure, Variable: "features",
			Function: "capture.<locals>.hook"}},
		{name: "reference_cycle", want: holder.Reference{Kind: holder.Cycle, Variable: "tensor",
			Members: "LeakProneObject <-> LeakProneObject"}},
		{name: "epoch_history", want: holder.Reference{Kind: holder.Attribute, Variable: "per_epoch", Class: "Tracker",
			Object: "dict"}, owner: "`tracker` of epoch_history"},
		{name: "exception_traceback", want: holder.Reference{Kind: holder.Traceback, Variable: "kept",
			Function: "exception_traceback", Class: "ValueError"},
			owner: "list `kept`", graph: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var truth struct{ Verdict, Holder string }
			data, err := os.ReadFile(filepath.Join(lab, c.name, "truth.json"))
			if err == nil {
				err = json.Unmarshal(data, &truth)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{c.want.Variable, c.want.Members} {
				if !strings.Contains(truth.Holder, word) && c.formerly == "" && c.want.Kind != holder.Cycle {
					t.Errorf("the truth is %q, which does not name %q", truth.Holder, word)
				}
			}
			r, _, _ := labCase(t, c.name)
			h := &r.Holders[0]
			if h.Standing != holder.Ghost || len(r.Holders) > 1 && r.Holders[1].Standing == holder.Ghost {
				t.Fatalf("want one ghost: %v", words(r))
			}
			w := c.want
			if h.Kind != w.Kind || h.Variable != w.Variable || !strings.HasSuffix(h.Function, w.Function) ||
				h.Members != w.Members ||
				h.Class != w.Class && w.Class != "" || h.Object != w.Object && w.Object != "" ||
				!strings.Contains(h.Owner, c.owner) {
				t.Errorf("the holder is %q %+v\nthe truth is %q", h.Reference, h.Reference, truth.Holder)
			}
			if formerly := ""; c.formerly != "" {
				if h.Formerly != nil {
					formerly = h.Formerly.String()
				}
				if !strings.HasPrefix(formerly, c.formerly) {
					t.Errorf("formerly %q, want %q", formerly, c.formerly)
				}
			} else if h.Formerly != nil {
				t.Errorf("formerly %q", h.Formerly)
			}
			if graph := 2*h.Graph > h.Bytes; graph != c.graph {
				t.Errorf("%d of %d bytes are behind a graph", h.Graph, h.Bytes)
			}
			if h.Before.Count == 0 || h.Before.Count >= h.Storage.Count {
				t.Errorf("%d storages in the dump before, %d now", h.Before.Count, h.Storage.Count)
			}
			if len(r.Unproven) != 0 {
				t.Errorf("a growth is not explained: %+v", r.Unproven)
			}
			if len(h.Fix()) == 0 {
				t.Errorf("fix %q", h.Fix())
			}
		})
	}
}

func TestLabHealthy(t *testing.T) {
	for _, name := range []string{"healthy_train", "checkpointed_train", "genuine_oom"} {
		r, _, _ := labCase(t, name)
		for i := range r.Holders {
			if s := r.Holders[i].Standing; s == holder.Ghost || s == holder.Other {
				t.Errorf("%s: %s: %s", name, s, r.Holders[i].Reference)
			}
		}
	}
}

// Every allocated byte is behind exactly one holder, or in a block that no storage lies in.
func TestLabBooksClose(t *testing.T) {
	dirs, err := filepath.Glob(lab + "/*/run.snapana")
	if err != nil || len(dirs) < 8 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		name := filepath.Base(filepath.Dir(dir))
		r, devices, notes := labCase(t, name)
		closes(t, name, r, devices)
		if r.Stray.Count > 0 || notes != nil {
			t.Errorf("%s: %d storages in no block, notes %v", name, r.Stray.Count, notes)
		}
		if r.Devices[0].Unheld.Bytes > 16<<20 {
			t.Errorf("%s: %d bytes in blocks that no storage has", name, r.Devices[0].Unheld.Bytes)
		}
	}
}

func closes(t *testing.T, name string, r *holder.Result, devices []holder.Line) {
	t.Helper()
	var allocated, held, unheld, sum int64
	for i, d := range r.Devices {
		if d.Allocated.Bytes != devices[i].Final.Allocated || d.Held.Bytes+d.Unheld.Bytes != d.Allocated.Bytes ||
			d.Held.Count+d.Unheld.Count != d.Allocated.Count {
			t.Errorf("%s: device %d: held %v + unheld %v, allocated %v, in the snapshot %d", name, d.Ordinal, d.Held,
				d.Unheld, d.Allocated, devices[i].Final.Allocated)
		}
		allocated, held, unheld = allocated+d.Allocated.Bytes, held+d.Held.Bytes, unheld+d.Unheld.Bytes
		var sites int64
		for _, s := range d.UnheldSites {
			sites += s.Bytes
		}
		if sites != d.Unheld.Bytes {
			t.Errorf("%s: sites of unheld blocks sum to %d of %d", name, sites, d.Unheld.Bytes)
		}
	}
	for i := range r.Holders {
		h := &r.Holders[i]
		sum += h.Bytes
		var sites int64
		for _, s := range h.Sites {
			sites += s.Bytes
		}
		var blocks holder.Sum
		for _, b := range h.Blocks {
			for _, d := range devices {
				if d.Device == b.Device {
					blocks.Count, blocks.Bytes = blocks.Count+1, blocks.Bytes+d.Lives[b.Row].Rounded
				}
			}
		}
		if blocks != (holder.Sum{Count: h.Count, Bytes: h.Bytes}) || strings.Join(h.Hops, " > ") != h.Chain {
			t.Errorf("%s: %s: blocks of %v, want %v; hops %q, want %q", name, h.Reference, blocks, h.Bytes, h.Hops,
				h.Chain)
		}
		if sites != h.Bytes || h.Shared > h.Bytes || h.Graph > h.Bytes || h.Grown > h.Bytes || h.Alone > h.Frees {
			t.Errorf("%s: %s: %+v", name, h.Reference, h)
		}
	}
	if sum != held || sum+unheld != allocated {
		t.Errorf("%s: holders sum to %d of %d joined bytes; with %d unjoined %d of %d allocated", name, sum, held,
			unheld, sum+unheld, allocated)
	}
}

func words(r *holder.Result) []string {
	var out []string
	for i := range r.Holders {
		out = append(out, string(r.Holders[i].Standing)+" "+r.Holders[i].Reference.String())
	}
	slices.Sort(out)
	return out
}

// What is known of bounds, and of several holders, reaches the verdict.
func TestLabVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		status finding.Status
		want   [][]string // words of the title and the first reason of each finding on growth
	}{
		{"replay_filling", finding.Healthy, [][]string{{"Still filling (20 of 500 entries): deque `replay`, local of " +
			"replay_filling", "full it takes 50"}}},
		{"two_leaks", finding.Ghost, [][]string{{"Leak: two_leaks() retains", "Seen in the process: list `losses`"},
			{"Leak: two_leaks() retains",
				"Seen in the process: closure cell `features` of two_leaks.<locals>.capture"}}},
		{"replay_oom", finding.Capacity, [][]string{{"It will not fit: deque `replay`, local of replay_oom",
			"takes 125 GiB when full"}}},
	} {
		f, err := sidecar.Open(t.Context(), filepath.Join(lab, c.name, "run.snapana"), sidecar.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := load.Open(t.Context(), filepath.Join(lab, c.name, "snapshot.pickle.zst"), load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f}).Verdict
		if v.Status != c.status {
			t.Errorf("%s: %s: %s", c.name, v.Status, v.Headline)
		}
		var got []string
		for i := range v.Findings {
			if f := &v.Findings[i]; f.ID == "growth" || f.ID == "filling" {
				got = append(got, f.Title+" "+f.Why[0])
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i := range got {
			for _, word := range c.want[i] {
				if !strings.Contains(got[i], word) {
					t.Errorf("%s: %q, want %q", c.name, got[i], word)
				}
			}
		}
		if c.name == "replay_oom" && !strings.Contains(v.Headline, "failed while a buffer was still filling") {
			t.Errorf("%s: %s", c.name, v.Headline)
		}
	}
}
