package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	report "github.com/snapana/snapana/report/json"
)

// ok runs a command that has to succeed and returns what it prints.
func ok(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("%q: exit %d: %.300s", args, code, errs.String())
	}
	return out.Bytes()
}

// schemas compiles the schema of each kind of JSON.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	names, _ := report.Schemas()
	for _, name := range names {
		text := ok(t, "schema", name)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(name, doc); err != nil {
			t.Fatal(err)
		}
		if out[name], err = c.Compile(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

// valid checks a document against the schema that it names.
func valid(t *testing.T, all map[string]*jsonschema.Schema, from string, text []byte) string {
	t.Helper()
	var head struct{ Schema string }
	if err := json.Unmarshal(text, &head); err != nil {
		t.Errorf("%s: %v", from, err)
		return ""
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if all[head.Schema] == nil {
		t.Errorf("%s: no schema %q", from, head.Schema)
	} else if err := all[head.Schema].Validate(doc); err != nil {
		t.Errorf("%s: %.500v", from, err)
	}
	return head.Schema
}

// TestSchemas validates what each command prints.
func TestSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("analyzes every fixture in several ways")
	}
	all, seen := schemas(t), map[string]bool{}
	for _, name := range []string{"healthy", "ghost", "fragmentation", "pinned"} {
		path := filepath.Join("..", "..", "fixtures", name+".pickle")
		for _, args := range [][]string{
			{"summary", "--json"}, {"state", "--json", "--tree"}, {"peak", "--json", "--by", "category"},
			{"whatif", "--json"},
			{"ghosts", "--json"},
		} {
			seen[valid(t, all, name+" "+args[0], ok(t, append(args, path)...))] = true
		}
	}
	lab := filepath.Join("..", "..", "fixtures", "lab", "traces", "2.15")
	for file, addr := range map[string]string{"annotate": "0x7b0000001000", "metadata_json": "0x7b0002a00010",
		"pinned_only": "0x7f6c4fc67001"} {
		seen[valid(t, all, "at "+file, ok(t, "at", "--json", filepath.Join(lab, file+".pickle.xz"), addr))] = true
	}
	seen[valid(t, all, "state of metadata", ok(t, "state", "--json", "--by", "metadata.step",
		filepath.Join(lab, "metadata_json.pickle.xz")))] = true
	gpt := filepath.Join("..", "..", "fixtures", "lab", "fit", "gpt_batch")
	seen[valid(t, all, "fit", ok(t, "fit", "--json", "--at", "2,3", "--capacity", "4GiB", gpt+"2_seq128.pickle.xz",
		gpt+"3_seq128.pickle.xz"))] = true
	seen[valid(t, all, "search for changes", ok(t, "whatif", "--json", "--capacity", "650MiB", "--search",
		filepath.Join("..", "..", "fixtures", "lab", "pairs", "recordings", "base.pickle.xz")))] = true
	seen[valid(t, all, "whatif of changes", ok(t, "whatif", "--json", "--capacity", "640MiB", "--change", "checkpoint=blocks.*",
		filepath.Join("..", "..", "fixtures", "lab", "pairs", "recordings", "base.pickle.xz")))] = true
	log := filepath.Join("..", "..", "fixtures", "train.log")
	seen[valid(t, all, "oom", ok(t, "oom", "--json", log))] = true
	host := filepath.Join("..", "..", "fixtures", "host")
	seen[valid(t, all, "stats of a host", ok(t, "stats", "--json",
		filepath.Join(host, "keeps_outputs.snapana")))] = true
	seen[valid(t, all, "compare-env", ok(t, "compare-env", "--json", filepath.Join(host, "loader_fork.snapana"),
		filepath.Join(host, "loader_spawn.snapana")))] = true
	seen[valid(t, all, "redact", ok(t, "redact", "--json", log, "-o", filepath.Join(t.TempDir(), "log")))] = true
	rank := filepath.Join("..", "..", "fixtures", "ranks", "rank")
	seen[valid(t, all, "ranks", ok(t, "ranks", "--json", rank+"0.pickle.xz", rank+"1.pickle.xz", rank+"2.pickle.xz",
		rank+"3.pickle.xz"))] = true
	seen[valid(t, all, "digest", ok(t, "digest", "--json", "-o", t.TempDir(), rank+"0.pickle.xz"))] = true
	seen[valid(t, all, "diff", ok(t, "diff", "--json", rank+"0.pickle.xz", rank+"1.pickle.xz", "--", rank+"2.pickle.xz",
		rank+"3.pickle.xz"))] = true
	seen[valid(t, all, "check", ok(t, "check", "--json", "--max-peak", "1TiB", "--baseline", rank+"2.pickle.xz",
		rank+"0.pickle.xz"))] = true
	seen[valid(t, all, "stats", ok(t, "stats", "--json",
		filepath.Join("..", "..", "fixtures", "ghost.stats.jsonl")))] = true
	reading, err := os.ReadFile(filepath.Join("..", "..", "report", "json", "testdata",
		"nvml.json")) // the command needs a driver
	if err != nil {
		t.Fatal(err)
	}
	seen[valid(t, all, "nvml", reading)] = true
	_, failed, _ := outcome(t.Context(), []string{"summary", "--json", "absent.pickle"}, nil)
	seen[valid(t, all, "a failure", failed)] = true
	for name := range all {
		if !seen[name] {
			t.Errorf("no command printed %s", name)
		}
	}
}
