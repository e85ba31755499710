package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/failure"
)

// briefly are command lines that are asked for a brief answer, of each command that has one.
var briefly = []string{
	"ghost.pickle", "report fragmentation.pickle", "report healthy.pickle", "summary pinned.pickle",
	"state --by stack ghost.pickle", "peak healthy.pickle", "at --at peak ghost.pickle b7b0007e00000_0",
	"oom --snapshot fragmentation.pickle --capacity 16GiB train.log", "stats ghost.stats.jsonl",
	"stats host/loader_fork.snapana", "compare-env host/held_list.snapana host/loader_fork.snapana",
	"ranks fragmentation.pickle ghost.pickle healthy.pickle train.log",
	"fit --at 2,3 --capacity 4GiB lab/fit/gpt_batch2_seq128.pickle.xz lab/fit/gpt_batch3_seq128.pickle.xz",
	"whatif fragmentation.pickle",
	"whatif --capacity 1GiB --change checkpoint=blocks.* lab/pairs/recordings/base.pickle.xz",
	"whatif --capacity 650MiB --search lab/pairs/recordings/base.pickle.xz",
	"ghosts --recorder holders/two_leaks/run.snapana holders/two_leaks/snapshot.pickle.zst",
	"ghosts host/held_list.snapana", "diff healthy.pickle ghost.pickle",
	"check --max-peak 1GiB --max-growth 0 --no-ghosts ghost.pickle", "check --max-peak 1TiB healthy.pickle",
	"digest -o OUT healthy.pickle", "redact -o OUT healthy.pickle",
}

// fewLines holds that an answer is brief, and no line of it wider than so many columns.
func fewLines(t *testing.T, what, out string, width int) {
	t.Helper()
	if n := strings.Count(out, "\n"); n < 1 || n > 5 || !strings.HasSuffix(out, "\n") {
		t.Errorf("%s: %d lines:\n%s", what, n, out)
	}
	for l := range strings.Lines(out) {
		if n := uniseg.StringWidth(strings.TrimSuffix(l, "\n")); n > width {
			t.Errorf("%s: %d columns of %d: %s", what, n, width, l)
		}
	}
}

// TestBrief holds what brief answers say on terminals of several widths, and that all commands with JSON have them.
func TestBrief(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Flags().Lookup("json") != nil && c.Flags().Lookup("brief") == nil {
			t.Errorf("%s has --json and no --brief", c.Name())
		}
		asked := func(line string) bool { return strings.HasPrefix(line, c.Name()+" ") }
		if c.Flags().Lookup("brief") != nil && c.Name() != "nvml" && !slices.ContainsFunc(briefly, asked) {
			t.Errorf("nothing shows what %s --brief prints", c.Name())
		}
	}
	var all strings.Builder
	t.Run("", func(t *testing.T) {
		t.Chdir(filepath.Join("..", "..", "fixtures"))
		t.Setenv("COLUMNS", "")
		for _, line := range briefly {
			dir := t.TempDir()
			for _, width := range append([]int{0}, widths...) { // nobody says which, and terminals
				args := strings.Fields(strings.ReplaceAll(line, "OUT", filepath.Join(dir, fmt.Sprint(width))))
				if args = append(args, "--brief"); width > 0 {
					args = append(args, "--width", fmt.Sprint(width))
				}
				var out, errs bytes.Buffer
				run(t.Context(), args, strings.NewReader(""), &out, &errs)
				fewLines(t, line, out.String(), cmp.Or(width, 240))
				text := strings.ReplaceAll(out.String(), dir, "OUT")
				if strings.HasPrefix(line, "digest") {
					text = "(one line)\n"
				}
				fmt.Fprintf(&all, "== %s, %d columns\n%s\n", line, width, text)
			}
		}
	})
	golden.Check(t, filepath.Join("widths", "brief.txt"), []byte(all.String()))
}

// TestBriefHostile holds that names of files with line breaks and wide characters make no more lines.
func TestBriefHostile(t *testing.T) {
	dir := t.TempDir()
	for _, from := range []string{"ghost", "fragmentation"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", from+".pickle"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a\nb\r\n\u2028c\x1b[2J", strings.Repeat("模型训练", 15), strings.Repeat("x y ", 50)} {
			if err := os.WriteFile(filepath.Join(dir, name+".pickle"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"summary", "report", "state", "peak", "whatif", "ghosts", "ranks"} {
				for _, width := range widths {
					var out, errs bytes.Buffer
					args := []string{command, "--brief", "--width", fmt.Sprint(width), filepath.Join(dir, name+".pickle")}
					run(t.Context(), args, nil, &out, &errs)
					fewLines(t, fmt.Sprintf("%q", args), out.String(), width)
					if strings.ContainsAny(out.String(), "\x1b\r\u2028") {
						t.Errorf("%q: %q", args, &out)
					}
				}
			}
		}
	}
	files, err := filepath.Glob("../../fixtures/hostile/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		for _, command := range []string{"report", "state"} {
			var out, errs bytes.Buffer
			if run(t.Context(), []string{command, "--brief", "--width", "80", f}, nil, &out, &errs) == exitOK {
				fewLines(t, command+" "+f, out.String(), 80)
			}
		}
	}
}

// TestBriefAlone holds that brief answers are text, and nothing else chooses how they are printed.
func TestBriefAlone(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("..", "..", "fixtures", "healthy.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"summary --json", "report --format md", "report --format json", "check --format junit --max-peak 1",
		"report --quiet -o x"} {
		code, out, stderr := outcome(t.Context(), append(strings.Fields(line), "--brief", file), nil)
		if code != exitInput || !strings.Contains(stderr, "--brief") {
			t.Errorf("%s: exit %d: %s%s", line, code, out, stderr)
		}
		if strings.Contains(line, "json") {
			if f := one(t, line, out); f != nil && f.Code != failure.Usage {
				t.Errorf("%s: %+v", line, f)
			}
		}
	}
	dir := t.TempDir()
	t.Chdir(dir)
	ok(t, "report", "--brief", file)
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("a folder was written: %v, %v", list, err)
	}
}
