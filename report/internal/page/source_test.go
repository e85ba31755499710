package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	files "github.com/snapana/snapana/analyze/source"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// A page has the lines around those that frames name, of files in which some frame's function is, bounded whatever they
// hold; and none of packages.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "def f%d(): %s\n", i+1, strings.Repeat("\x1b\u202ex", 300))
	}
	for name, text := range map[string]string{"long.py": long.String(), "other.py": strings.Repeat("pass\n", 99),
		"functional.py": "def linear(): pass\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := analyzetest.Run(t, buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		for _, frame := range []string{"/a/long.py:20:f20", "/a/long.py:30:f30", "/a/long.py:300:f300", "/a/long.py:900:f900",
			"/a/other.py:9:gone", "/lib/python3/site-packages/torch/nn/functional.py:1:linear"} {
			d.Stack = build.NewStack(frame)
			d.Alloc(1 << 20)
		}
	})), analyze.Options{NoReplay: true})
	pack := func(size int) *unpacked {
		p, err := Pack(r, size)
		if err != nil {
			t.Fatal(err)
		}
		return unpack(t, p)
	}
	if s := pack(4 << 20).Source; len(s.Files) > 0 || s.File.Len > 0 {
		t.Errorf("without a folder there are %+v", s)
	}
	tree, err := files.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r.Source = tree
	u := pack(4 << 20)
	s := u.Source
	if len(s.Files) != 1 || s.Files[0].Name != "long.py" || s.Files[0].Link != "" {
		t.Fatalf("the files are %+v", s.Files)
	}
	var runs []string
	for _, p := range s.Files[0].Pieces {
		runs = append(runs, fmt.Sprintf("%d+%d", p.First, len(p.Lines)))
		for _, line := range p.Lines {
			if len([]rune(line)) > longestLine || strings.ContainsAny(line, "\x1b\u202e") || !strings.HasPrefix(line, "def f") {
				t.Fatalf("a line is %q", line)
			}
		}
	}
	if got := strings.Join(runs, " "); got != "8+35 288+25" {
		t.Errorf("the pieces are %s", got)
	}
	var at []string
	lines, odd := u.column(t, s.Line), u.column(t, s.Odd)
	for i, f := range u.column(t, s.File) {
		if f > 0 {
			at = append(at, fmt.Sprint(lines[i], odd[i]))
		}
	}
	if got := strings.Join(at, ", "); got != "20 0, 30 0, 300 0" {
		t.Errorf("the frames are at %s", got)
	}
	if s := pack(60_000).Source; len(s.Files) > 0 {
		t.Errorf("a small page has %d files", len(s.Files))
	}
}
