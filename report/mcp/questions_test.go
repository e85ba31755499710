package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixtures is the folder that the questions are about.
const fixtures = "../../fixtures"

// question is one with an answer that is known from what the programs are, or from what torch counted in them.
type question struct {
	kind string
	args map[string]any
	part any // which item of a list is meant: the number of a GPU
	want any
}

// kind says how a question is put and how its answer is read. It knows no file.
type kind struct {
	asks  string   // in words
	tool  string   // that is called first
	field []string // where the answer is, the first that there is: steps of a path, * for any item of a list
	item  string   // of the items of a list, the field that question.part is
	right func(got, want any) bool
}

var kinds = map[string]kind{
	"leak": {asks: "Does the program leak?", tool: "report", field: []string{"status"},
		right: func(got, want any) bool { return (got == "ghost") == want.(bool) }},
	"status": {asks: "What is wrong with the run?", tool: "report", field: []string{"status"}, right: equal},
	"reserved": {asks: "What was the peak of reserved memory?", tool: "report",
		field: []string{"devices/*/peak_reserved/bytes"}, right: equal},
	"allocated": {asks: "What was the peak of memory in use?", tool: "report", field: []string{"devices/*/peak_active/bytes"},
		right: equal},
	"gpu": {asks: "What was the peak of memory in use on GPU n?", tool: "report", item: "device",
		field: []string{"devices/*/peak_active/bytes"}, right: equal},
	"end": {asks: "How much was live at the end?", tool: "state", field: []string{"totals/active/bytes"}, right: equal},
	"leak site": {asks: "Which function allocated what leaks?", tool: "ghosts", field: []string{"leaks/*/site"},
		right: inSite},
	"leak loop": {asks: "Whose loop leaks?", tool: "ghosts", field: []string{"leaks/*/loop"}, right: ofFunction},
	"holder": {asks: "Which object keeps it?", tool: "ghosts", field: []string{"leaks/0/holder", "holders/0/reference"},
		right: names},
	"request": {asks: "How large was the request that failed?", tool: "oom", field: []string{"requested/bytes"},
		right: equal},
	"cause": {asks: "Why did the request fail?", tool: "oom", field: []string{"cause"}, right: equal},
	"device free": {asks: "How much did the device have free when the request failed?", tool: "oom",
		field: []string{"device_free/bytes"}, right: equal},
	"held then": {asks: "How much was reserved when the request failed?", tool: "oom", field: []string{"reserved/bytes"},
		right: equal},
	"owner": {asks: "Which allocation lived at an address at that moment?", tool: "at", item: "when",
		field: []string{"owners/*/born"}, right: equal},
	"owner's size": {asks: "How large is what lived at an address at that moment?", tool: "at", item: "when",
		field: []string{"owners/*/requested/bytes"}, right: equal},
	"of rank": {asks: "What was the peak of reserved memory of rank n?", tool: "ranks", item: "rank",
		field: []string{"ranks/*/peak_reserved/bytes"}, right: equal},
	"end differs": {asks: "By how much does what is live at the end differ?", tool: "diff", field: []string{"delta/bytes"},
		right: equal},
	"rank": {asks: "Which rank failed first?", tool: "ranks", field: []string{"first_failure/rank"}, right: equal},
	"fit": {asks: "What would the peak of reserved memory be at another batch size or length?", tool: "fit",
		field: []string{"predictions/0/peak_reserved/bytes"}, right: within(0.05)},
	"largest": {asks: "What is the largest batch that fits?", tool: "fit", field: []string{"largest"}, right: within(0.05)},
	"change": {asks: "What would the peak be with a change of the program?", tool: "whatif",
		field: []string{"after/peak_reserved/bytes"}, right: within(0.06)},
	"saving": {asks: "By how much can the peak be lowered?", tool: "report", field: []string{"would_lower_the_peak/0/gain/bytes"},
		right: within(0.05)},
	"grew": {asks: "By how much does the peak of memory in use differ?", tool: "diff", field: []string{"delta/bytes"},
		right: equal},
	"difference": {asks: "What was changed between two runs?", tool: "diff", field: []string{"causes/0/kind"}, right: equal},
}

// number is a JSON number, or one of the truth.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

func equal(got, want any) bool {
	a, isNumber := number(got)
	b, wantsNumber := number(want)
	if isNumber || wantsNumber {
		return isNumber && wantsNumber && a == b
	}
	return got == want
}

// within is equal up to a share.
func within(share float64) func(got, want any) bool {
	return func(got, want any) bool {
		a, ok := number(got)
		b, _ := number(want)
		return ok && a >= b*(1-share) && a <= b*(1+share)
	}
}

// inSite wants the function of a place in code, "model.py:39 forward".
func inSite(got, want any) bool {
	_, function, _ := strings.Cut(fmt.Sprint(got), " ")
	return function == want || strings.HasSuffix(function, "."+want.(string))
}

// ofFunction wants the function of a loop, "forward (model.py)".
func ofFunction(got, want any) bool {
	function, _, _ := strings.Cut(fmt.Sprint(got), " ")
	return function == want
}

// names wants what a label calls an object to be in a reference.
func names(got, want any) bool {
	for _, part := range strings.Split(want.(string), " of ") {
		if !strings.Contains(fmt.Sprint(got), strings.Trim(part, "`")) {
			return false
		}
	}
	return true
}

func load(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// some takes n of a list, evenly over it: nobody chose them.
func some[T any](list []T, n int) (out []T) {
	for i := range min(n, len(list)) {
		out = append(out, list[i*len(list)/min(n, len(list))])
	}
	return out
}

const (
	peakReserved = "reserved_bytes.all.peak"
	peakActive   = "active_bytes.all.peak"
	endActive    = "active_bytes.all.current"
)

type counters map[string]int64

// golden is the truth about a run.
type golden struct {
	Verdict string
	Stats   []counters
	OOM     struct{ Alloc int64 } `json:"oom_observer"`
}

// questions are all of them.
func questions(t *testing.T) (all []question) {
	add := func(kind string, want any, args ...any) {
		q := question{kind: kind, args: map[string]any{}, want: want}
		for i := 0; i < len(args); i += 2 {
			q.args[args[i].(string)] = args[i+1]
		}
		all = append(all, q)
	}
	// Programs that leak, and programs that look so.
	var ghosts map[string]struct{ Verdict, Site string }
	load(t, "ghosts/truth.json", &ghosts)
	for _, name := range some(slices.Sorted(maps.Keys(ghosts)), 8) {
		add("leak", ghosts[name].Verdict == "ghost", "file", "ghosts/"+name+".pickle.xz")
	}
	leaks := slices.DeleteFunc(slices.Sorted(maps.Keys(ghosts)), func(name string) bool {
		return ghosts[name].Verdict != "ghost" || strings.Contains(ghosts[name].Site, " ")
	})
	// Each program is a function that is named as its file: a label of that name is of its loop.
	loops := slices.DeleteFunc(slices.Clone(leaks), func(name string) bool { return ghosts[name].Site != name })
	for _, name := range some(loops, 6) {
		add("leak loop", ghosts[name].Site, "file", "ghosts/"+name+".pickle.xz")
	}
	sites := slices.DeleteFunc(leaks, func(name string) bool { return ghosts[name].Site == name })
	for _, name := range some(sites, 8) {
		add("leak site", ghosts[name].Site, "file", "ghosts/"+name+".pickle.xz")
	}
	var unseen map[string]struct {
		Ghost  bool
		Holder string
	}
	load(t, "unseen/truth.json", &unseen)
	for _, name := range some(slices.Sorted(maps.Keys(unseen)), 6) {
		add("leak", unseen[name].Ghost, "file", "unseen/recorded/"+name+".pickle.xz", "recorder",
			"unseen/recorded/"+name+".snapana.xz")
	}
	held := slices.DeleteFunc(slices.Sorted(maps.Keys(unseen)), func(name string) bool { return unseen[name].Holder == "" })
	for _, name := range some(held, 8) {
		add("holder", unseen[name].Holder, "file", "unseen/recorded/"+name+".pickle.xz", "recorder",
			"unseen/recorded/"+name+".snapana.xz")
	}
	frameworks, _ := filepath.Glob(filepath.Join(fixtures, "lab/frameworks/truth/*.pickle.xz"))
	for _, file := range some(frameworks, 4) {
		name := path.Join("lab/frameworks/truth", filepath.Base(file))
		add("leak", strings.Contains(name, ".ghost."), "file", name)
	}
	// What torch counted in runs.
	runs := map[string]string{"healthy.pickle": "healthy.truth.json", "ghost.pickle": "ghost.truth.json",
		"fragmentation.pickle": "fragmentation.truth.json"}
	more, _ := filepath.Glob(filepath.Join(fixtures, "holders/*/truth.json"))
	for _, file := range more {
		dir := path.Join("holders", filepath.Base(filepath.Dir(file)))
		runs[dir+"/snapshot.pickle.zst"] = dir + "/truth.json"
	}
	truths := map[string]golden{}
	for name, file := range runs {
		var g golden
		load(t, file, &g)
		truths[name] = g
	}
	ordered := slices.Sorted(maps.Keys(truths))
	for _, name := range some(ordered, 5) {
		add("reserved", truths[name].Stats[0][peakReserved], "file", name)
		add("allocated", truths[name].Stats[0][peakActive], "file", name)
	}
	for _, name := range some(ordered, 4) {
		add("end", truths[name].Stats[0][endActive], "file", name)
	}
	for _, name := range []string{"healthy.pickle", "ghost.pickle", "fragmentation.pickle",
		"holders/genuine_oom/snapshot.pickle.zst"} {
		add("status", truths[name].Verdict, "file", name)
	}
	devices, _ := filepath.Glob(filepath.Join(fixtures, "lab/devices/truth/*.json"))
	for i, file := range some(devices, 5) {
		name := path.Join("lab/devices/truth", strings.TrimSuffix(filepath.Base(file), ".json"))
		var g struct{ Devices []counters }
		load(t, name+".json", &g)
		n := i % len(g.Devices)
		add("gpu", g.Devices[n][peakActive], "file", name+".pickle.xz")
		all[len(all)-1].part = n
	}
	// Failures.
	add("request", int64(2<<30), "file", "train.log")
	add("request", truths["holders/genuine_oom/snapshot.pickle.zst"].OOM.Alloc, "file",
		"holders/genuine_oom/snapshot.pickle.zst")
	for _, name := range []string{"train.log", "fragmentation.pickle"} {
		add("cause", "fragmentation", "file", name)
	}
	add("cause", "capacity", "file", "holders/genuine_oom/snapshot.pickle.zst")
	add("rank", 2, "files", []string{"ranks"})
	add("rank", 2, "files", []string{"ranks/rank0.pickle.xz", "ranks/rank1.pickle.xz", "ranks/rank2.pickle.xz"})
	predicted(t, add)
	read(t, func(kind string, part, want any, args ...any) {
		add(kind, want, args...)
		all[len(all)-1].part = part
	})
	return all
}

// read adds questions whose answers testdata/truth.py read off the files.
func read(t *testing.T, add func(kind string, part, want any, args ...any)) {
	var truth struct {
		Owners []struct {
			File, Address       string
			At, Born, Requested int64
		}
		Failures []struct {
			File     string
			Free     int64 `json:"device_free"`
			Reserved int64
		}
		Ranks []struct{ Rank, Reserved int64 }
		Ends  []struct {
			A, B  string
			Delta int64
		}
	}
	load(t, "../report/mcp/testdata/truth.json", &truth)
	for i, o := range truth.Owners {
		args := []any{"file", o.File, "address", o.Address, "at", fmt.Sprint(o.At)}
		if i%2 == 0 {
			add("owner", "now", o.Born, args...)
		} else {
			add("owner's size", "now", o.Requested, args...)
		}
	}
	for i, f := range truth.Failures {
		if i%2 == 0 {
			add("device free", nil, f.Free, "file", f.File)
		} else {
			add("held then", nil, f.Reserved, "file", f.File)
		}
	}
	for _, r := range truth.Ranks {
		add("of rank", r.Rank, r.Reserved, "files", []string{"ranks"})
	}
	for _, d := range truth.Ends {
		add("end differs", nil, d.Delta, "a", d.A, "b", d.B, "at_a", "end", "at_b", "end")
	}
}

// predicted adds questions about runs that were not recorded.
func predicted(t *testing.T, add func(kind string, want any, args ...any)) {
	type run struct {
		At     map[string]int64
		File   string
		Stats  counters
		RanOut bool `json:"ran_out"`
	}
	var families []struct {
		Family string
		Limits []struct {
			Available, Largest int64
			At                 map[string]int64
			Dimension          string
		}
		Runs []run
	}
	load(t, "lab/fit/truth.json", &families)
	// known are the recordings that differ in a dimension alone, from which others are predicted.
	known := func(runs []run, dimension string, at map[string]int64) (files []string, values []map[string]int64, rest []run) {
		for _, r := range runs {
			same := r.At[dimension] > 0
			for name, n := range at {
				same = same && (name == dimension || r.At[name] == n)
			}
			if one := map[string]int64{dimension: r.At[dimension]}; same && r.File != "" {
				files, values = append(files, "lab/fit/"+r.File), append(values, one)
			} else if same {
				rest = append(rest, r)
			}
		}
		return files, values, rest
	}
	// A sample by number would be another with each family that comes.
	asked := []string{"gpt", "resnet", "gpt_checkpointed", "moe", "clip", "hf_trainer", "tagger", "autoencoder"}
	for _, f := range families {
		if !slices.Contains(asked, f.Family) {
			continue
		}
		files, at, rest := known(f.Runs, "batch", f.Runs[0].At)
		held := rest[len(rest)/2]
		add("fit", held.Stats[peakReserved], "files", files, "at", at, "to",
			[]map[string]int64{{"batch": held.At["batch"]}})
		add("grew", f.Runs[1].Stats[peakActive]-f.Runs[0].Stats[peakActive], "a", files[0], "b", files[1])
	}
	limited := 0
	for _, f := range families {
		for _, l := range f.Limits {
			if limited < 3 && l.Dimension == "batch" {
				files, at, _ := known(f.Runs, l.Dimension, l.At)
				add("largest", l.Largest, "files", files, "at", at, "capacity", fmt.Sprint(l.Available), "foreign", "0")
				limited++
			}
		}
	}
	type changed struct {
		Family, Change string
		Runs           []run
	}
	var changes []changed
	load(t, "lab/changes/truth.json", &changes)
	// Where the changed program ran out of memory, its peak is that of the device.
	changes = slices.DeleteFunc(changes, func(c changed) bool { return c.Runs[1].RanOut })
	named := []string{"llama_checkpoint", "convnet_checkpoint_reentrant", "llama_accumulate_4", "convnet_bf16", "llama_zero2_2",
		"convnet_fsdp3_4", "convnet_offload_activations", "llama_leak", "llama_out_in_forward", "gan_accumulate_2", "hf_llama_bf16"}
	for _, c := range changes {
		if !slices.Contains(named, c.Family) {
			continue
		}
		add("change", c.Runs[1].Stats[peakReserved], "file", "lab/changes/"+c.Runs[0].File, "changes", strings.Fields(c.Change))
	}
	for _, name := range []string{"adamw", "logits", "evaluation", "held"} {
		var plain, advised struct{ Stats counters }
		load(t, "lab/levers/truth/2.15/"+name+".plain.json", &plain)
		load(t, "lab/levers/truth/2.15/"+name+".advised.json", &advised)
		add("saving", plain.Stats[peakActive]-advised.Stats[peakActive], "file", "lab/levers/truth/2.15/"+name+".plain.pickle.xz")
	}
	for _, c := range [][2]string{{"batch", "batch"}, {"checkpoint", "checkpointing"}, {"half", "precision"},
		{"layers", "layers"}, {"leak", "leak"}, {"sequence", "length"}, {"sgd", "optimizer"}, {"width", "width"}} {
		add("difference", c[1], "a", "lab/pairs/recordings/base.pickle.xz", "b", "lab/pairs/recordings/"+c[0]+".pickle.xz")
	}
}
