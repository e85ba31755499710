package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// readers gives the Python that SNAPANA_PARSERS names, which has what opens exported files.
func readers(t *testing.T) string {
	t.Helper()
	python := os.Getenv("SNAPANA_PARSERS")
	if python == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("SNAPANA_PARSERS is not set")
		}
		t.Skip("SNAPANA_PARSERS names no Python with duckdb, polars and perfetto")
	}
	return python
}

// asked is what a command prints as JSON.
func asked(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(ok(t, args...), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// at walks into JSON by keys and places.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

// table makes rows of the things in a list: what each has under some names.
func table(list any, names ...string) [][]any {
	out := [][]any{}
	for _, v := range list.([]any) {
		row := []any{}
		for _, name := range names {
			row = append(row, at(v, name))
		}
		out = append(out, row)
	}
	return out
}

var sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// TestQueries asks the ten questions of the manual in DuckDB and Polars, or in Spark where SNAPANA_SPARK names a Python that
// has it: the answers are those of snapana's own commands.
func TestQueries(t *testing.T) {
	python := readers(t)
	manual, err := os.ReadFile("manual/export.md")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, m := range sqlBlock.FindAllStringSubmatch(string(manual), -1) {
		queries = append(queries, m[1])
	}
	const ghost, failed, ranks = "../../fixtures/ghost.pickle", "../../fixtures/fragmentation.pickle", "../../fixtures/ranks"
	dir := t.TempDir()
	for _, file := range []string{ghost, failed, ranks} {
		ok(t, "export", "--to", "parquet", "-o", dir, file)
	}
	groups := func(args ...string) any { return at(asked(t, append(args, "--json", "--top", "0")...), "groups") }
	report := asked(t, "report", "--json", ghost)
	device := at(report, "devices", 0)
	type answer struct {
		run  string
		want any
	}
	final := func(key string) float64 { return at(device, "final", key).(float64) }
	growth := at(device, "growth", 0)
	var steps [][]any
	for i, s := range at(device, "steps", "list").([]any) {
		steps = append(steps, []any{float64(i), at(s, "peak"), at(s, "end").(float64) - at(s, "start").(float64)})
	}
	peaks := table(at(asked(t, "ranks", "--json", ranks), "ranks"), "rank", "peak_active")
	slices.SortFunc(peaks, func(a, b []any) int {
		return cmp.Or(cmp.Compare(b[1].(float64), a[1].(float64)), cmp.Compare(a[0].(float64), b[0].(float64)))
	})
	answers := []answer{
		{"ghost", table(groups("peak", ghost), "name", "bytes", "count")},
		{"ghost", table(groups("peak", "--by", "category", ghost), "name", "bytes")},
		{"ghost", table(groups("state", "--at", "1000", ghost), "name", "bytes")},
		{"ghost", steps},
		{"fragmentation", table(groups("state", "--at", "oom", failed), "name", "bytes", "count")},
		{"ghost", [][]any{{final("reserved") - final("active")}}},
		{"ghost", [][]any{{0.0, at(device, "peaks", "active", "bytes")}}},
		{"ghost", [][]any{{at(growth, "bytes"), at(growth, "count")}}},
		{"ghost", table(at(report, "verdict", "findings"), "id", "status", "confidence", "bytes")},
		{"ranks", peaks},
	}
	if len(queries) != len(answers) {
		t.Fatalf("the manual has %d queries, %d have an answer", len(queries), len(answers))
	}
	in, err := json.Marshal(queries)
	if err != nil {
		t.Fatal(err)
	}
	engines := map[string]string{"duckdb": python, "polars": python}
	if spark := os.Getenv("SNAPANA_SPARK"); spark != "" { // which takes half a gigabyte, and minutes
		engines = map[string]string{"spark": spark}
	}
	for engine, python := range engines {
		got := map[string][][][]any{}
		for _, run := range []string{"ghost", "fragmentation", "ranks"} {
			cmd := exec.Command(python, filepath.Join("testdata", "query.py"), dir, run, engine)
			cmd.Stdin = bytes.NewReader(in)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", engine, err, &errs)
			}
			var rows [][][]any
			if err := json.Unmarshal(out, &rows); err != nil {
				t.Fatal(err)
			}
			rows[7] = summed(rows[7])
			got[run] = rows
		}
		for i, a := range answers {
			if !reflect.DeepEqual(got[a.run][i], a.want) {
				t.Errorf("%s answers %v to %s, snapana %v", engine, got[a.run][i], queries[i], a.want)
			}
		}
	}
}

// summed adds up the figures of rows behind their names.
func summed(rows [][]any) [][]any {
	var bytes, blocks float64
	for _, r := range rows {
		bytes, blocks = bytes+r[1].(float64), blocks+r[2].(float64)
	}
	return [][]any{{bytes, blocks}}
}

// TestPerfetto has Perfetto's own descriptors read a trace.
func TestPerfetto(t *testing.T) {
	python := readers(t)
	const failed = "../../fixtures/fragmentation.pickle"
	trace := filepath.Join(t.TempDir(), "trace")
	ok(t, "export", "--to", "perfetto", "-o", trace, failed)
	out, err := exec.Command(python, filepath.Join("testdata", "tracks.py"), trace).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []map[string]float64
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	device := at(asked(t, "report", "--json", failed), "devices", 0)
	kinds, counters := got[0], got[1]
	if kinds["TYPE_SLICE_BEGIN"] == 0 || kinds["TYPE_SLICE_BEGIN"] != kinds["TYPE_SLICE_END"] ||
		kinds["TYPE_INSTANT"] != at(device, "ooms_total").(float64) {
		t.Errorf("events %v", kinds)
	}
	for _, name := range []string{"reserved", "active", "allocated"} {
		if want := at(device, "final", name).(float64); counters[name] != want {
			t.Errorf("%s ends at %v, want %v", name, counters[name], want)
		}
	}
}

// TestPprof has go tool pprof read profiles, and compare two.
func TestPprof(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	ok(t, "export", "--to", "pprof", "-o", a, "../../fixtures/healthy.pickle")
	ok(t, "export", "--to", "pprof", "-o", b, "../../fixtures/ghost.pickle")
	pprof := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"tool", "pprof"}, args...)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pprof %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"Type: peak_space", []string{"-top", b}},
		{"model.py:39", []string{"-top", "-lines", "-sample_index=leaked_space", b}},
		{"Showing nodes accounting for", []string{"-top", "-tagfocus", "category=parameter", b}},
		{"Type: end_objects", []string{"-top", "-sample_index=end_objects", "-diff_base", a, b}},
	} {
		if got := pprof(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("pprof %q does not say %q:\n%s", c.args, c.want, got)
		}
	}
}

// TestPprofServes has the web server of go tool pprof draw a profile.
func TestPprofServes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile")
	ok(t, "export", "--to", "pprof", "-o", file, "../../fixtures/ghost.pickle")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	tool, err := exec.Command("go", "tool", "-n", "pprof").Output() // itself: go would not pass on that it must end
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)), "-no_browser", "-http", addr, file)
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	for range 600 {
		page, err := http.Get("http://" + addr + "/ui/flamegraph")
		if err != nil {
			time.Sleep(100 * time.Millisecond) // it is not there yet
			continue
		}
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		if err != nil || page.StatusCode != http.StatusOK || !strings.Contains(string(text), "model.py") {
			t.Errorf("%s, error %v, %d bytes", page.Status, err, len(text))
		}
		return
	}
	t.Errorf("pprof does not serve: %s", &says)
}
