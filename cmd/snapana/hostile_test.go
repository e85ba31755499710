package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
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
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%s: %U in %.200q", name, r, line)
					break
				}
			}
			if n := utf8.RuneCountInString(line); n > 120 && !slices.Contains(args, "md") {
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
