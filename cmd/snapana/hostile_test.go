package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
	"github.com/snapana/snapana/fixtures/sidecartest"
)

// hostile is a name that tries to break out of every kind of output.
const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|*_[x](javascript:x)@all" +
	"\x1b[2J\x1b]0;title\x07\u202e\u2066\u200f\r\n\x00\u009b31m{{.}}%s%n&lt;"

// hostileSnapshot writes a snapshot in which names, of a MB some, are hostile, to a file whose
// name is so too.
func hostileSnapshot(t *testing.T) string {
	t.Helper()
	long, file := strings.Repeat("n", 1<<20), strings.ReplaceAll(hostile, ":", "")
	program := func(d *build.Device) {
		for i := range 3 {
			d.Stack = build.NewStack("/a/"+file+"/b.py:7:"+hostile, "/app/"+file+".py:3:main")
			d.Alloc(8 << 20)
			d.Stack = build.NewStack("/app/" + long + ".py:5:" + long)
			d.Region = hostile + long
			b := d.Alloc(int64(i+1) << 20)
			d.Region = ""
			d.Free(b)
		}
	}
	var buf bytes.Buffer
	if err := build.Run(build.Options{Torch: 212}, program).Write(&buf, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), strings.NewReplacer("/", "_", "\x00", "").Replace(hostile)+".pickle")
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostile runs the commands on hostile names: nothing breaks out, and what is printed stays
// bounded.
func TestHostile(t *testing.T) {
	path := hostileSnapshot(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "train.log")
	message := "rank " + hostile + ": torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. " +
		hostile + strings.Repeat("n", 1<<20) + "\n"
	if err := os.WriteFile(log, []byte(message), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", "-o", filepath.Join(dir, "a\x9b\x1b[2J\u202e")},
		{"report", "-o", filepath.Join(dir, "a"), "--format", "md"},
		{"summary"},
		{"state"}, {"state", "--by", "stack"}, {"state", "--tree"}, {"state", "--by", "category"},
		{"peak", "--by", "function"}, {"peak", "--by", "stack", "--show-internals"},
		{"whatif"},
		{"oom", "--all", log},
	} {
		if args[0] != "oom" {
			args = append(args, path)
		}
		out := ok(t, args...)
		name := args[0]
		if len(out) > 100_000 {
			t.Errorf("%s: %d bytes", name, len(out))
		}
		if !utf8.Valid(out) {
			t.Errorf("%s: not UTF-8", name)
		}
		harmless(t, name, out)
		for line := range strings.Lines(string(out)) {
			if n := utf8.RuneCountInString(line); n > 121 && !slices.Contains(args, "md") {
				t.Errorf("%s: %d columns: %.200q", name, n, line)
			}
		}
	}

	all := schemas(t)
	for _, args := range [][]string{
		{"summary", "--json", path}, {"state", "--json", path}, {"state", "--json", "--tree", path},
		{"whatif", "--json", path}, {"oom", "--json", log},
	} {
		out := ok(t, args...)
		valid(t, all, args[0], out)
		if bytes.ContainsAny(out, "\x1b\x00\x07\u009b\u202e\u2066\u200f") {
			t.Errorf("%s: control characters", args[0])
		}
	}

	for _, kind := range []string{"timeline", "categories", "fragmentation", "segments", "stacks", "whatif"} {
		file := filepath.Join(dir, kind+".svg")
		ok(t, "plot", "--kind", kind, "-o", file, path)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 500_000 {
			t.Errorf("%s: %d bytes", kind, len(data))
		}
		for d := xml.NewDecoder(bytes.NewReader(data)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "img") {
				t.Errorf("%s: <%s>", kind, e.Name.Local)
			}
		}
	}
}

// harmless fails where text could drive a terminal, or show in another order.
func harmless(t *testing.T, name string, out []byte) {
	t.Helper()
	for line := range strings.Lines(string(out)) {
		for _, r := range strings.TrimSuffix(line, "\n") {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%s: %U in %.200q", name, r, line)
				break
			}
		}
	}
}

// TestHostileRecording runs the commands on recordings in which every text is hostile: names of objects, files,
// programs, users and devices.
func TestHostileRecording(t *testing.T) {
	const fixtures = "../../fixtures/"
	dir := t.TempDir()
	copies := map[string]string{}
	for i, name := range []string{"holders/hook_closure/run.snapana", "host/held_list.snapana", "host/loader_spawn.snapana"} {
		data, err := os.ReadFile(fixtures + name)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		enc, dec := msgpack.NewEncoder(&out), msgpack.NewDecoder(bytes.NewReader(data))
		for {
			record, err := dec.DecodeInterface()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := enc.Encode(worsen(record, "")); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, strconv.Itoa(i)+".snapana")
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		copies[name] = path
	}
	readings := filepath.Join(dir, "readings.snapana")
	type m = sidecartest.Map
	if err := os.WriteFile(readings, sidecartest.Stream(sidecartest.Header("pid", 9, "boot", "b", "program", hostile),
		m{"type", "snapshot", "time", int64(1e18), "file", "fragmentation.pickle"},
		m{"type", "nvml", "time", int64(1e18 + 1e9), "boot", "b", "driver", hostile, "nvml", hostile, "cuda", hostile,
			"devices", []m{{"index", 0, "name", hostile, "uuid", hostile, "bus", hostile, "total", 16 << 30,
				"reserved", 0, "used", 15 << 30, "free", 1 << 30, "processes", []m{
					{"pid", 9, "used", 15204352000 + 512<<20, "name", hostile, "user", hostile, "kind", hostile},
					{"pid", 42, "used", 1 << 30, "name", hostile, "user", hostile, "state", hostile}},
				"errors", []m{{"what", hostile, "why", hostile}}}}}), 0o644); err != nil {
		t.Fatal(err)
	}
	holders, host := copies["holders/hook_closure/run.snapana"], copies["host/held_list.snapana"]
	snapshot := fixtures + "holders/hook_closure/snapshot.pickle.zst"
	for _, args := range [][]string{
		{"ghosts", "--recorder", holders, snapshot}, {"ghosts", "--min", "1", "--recorder", holders, snapshot},
		{"report", "-o", filepath.Join(dir, "a"), "--recorder", holders, snapshot},
		{"report", "-o", filepath.Join(dir, "a"), "--format", "md", "--recorder", holders, snapshot},
		{"report", "-o", filepath.Join(dir, "b"), "--readings", readings, fixtures + "fragmentation.pickle"},
		{"ghosts", host}, {"stats", host}, {"stats", holders}, {"compare-env", host, holders},
		{"stats", copies["host/loader_spawn.snapana"]},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		if code != exitOK {
			t.Errorf("%q: exit %d: %.300s", args, code, errs.String())
		}
		harmless(t, strings.Join(args, " "), out.Bytes())
		harmless(t, strings.Join(args, " "), errs.Bytes())
	}
	for _, name := range []string{"a", "b"} {
		page, err := os.ReadFile(filepath.Join(dir, name, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(page, []byte("<script>alert")) || bytes.Contains(page, []byte("<img src=x")) {
			t.Errorf("%s: a name is markup", name)
		}
	}
}

// worsen makes all text in a record hostile, but for what says what it is.
func worsen(v any, key string) any {
	switch v := v.(type) {
	case string:
		switch key {
		case "type", "format", "producer", "boot", "kind":
			return v
		}
		if v == "" { // the first of a list of texts is, always
			return v
		}
		return v + hostile
	case []any:
		for i := range v {
			v[i] = worsen(v[i], key)
		}
	case map[string]any:
		first := []string{"type", "time", "format", "version", "producer"} // of a record, in this order
		out := sidecartest.Map{}
		for _, k := range append(first, slices.Sorted(maps.Keys(v))...) {
			if value, ok := v[k]; ok {
				out = append(out, k, worsen(value, k))
				delete(v, k)
			}
		}
		return out
	}
	return v
}
