package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/attach"
)

// widths of terminals, in columns.
var widths = []int{60, 80, 120}

// shown is what each command prints to people, of a telling input.
var shown = map[string][]string{
	"snapana":     {"fragmentation.pickle"},
	"report":      {"report -o OUT ghost.pickle"},
	"summary":     {"summary pinned.pickle"},
	"state":       {"state --by stack ghost.pickle", "state --tree ghost.pickle", "state --by module healthy.pickle"},
	"peak":        {"peak healthy.pickle"},
	"at":          {"at --at peak ghost.pickle b7b0007e00000_0", "at ghost.pickle 1"},
	"oom":         {"oom --snapshot fragmentation.pickle --capacity 16GiB train.log"},
	"stats":       {"stats --snapshot ghost.pickle ghost.stats.jsonl", "stats host/loader_fork.snapana"},
	"compare-env": {"compare-env --all host/held_list.snapana host/loader_fork.snapana"},
	"ranks":       {"ranks --all fragmentation.pickle ghost.pickle healthy.pickle train.log"},
	"fit":         {"fit --at 2,3 --capacity 4GiB lab/fit/gpt_batch2_seq128.pickle.xz lab/fit/gpt_batch3_seq128.pickle.xz"},
	"whatif": {"whatif fragmentation.pickle",
		"whatif --capacity 1GiB --change checkpoint=blocks.* --change foreach=off lab/pairs/recordings/base.pickle.xz",
		"whatif --capacity 650MiB --search lab/pairs/recordings/base.pickle.xz"},
	"ghosts": {"ghosts --recorder holders/two_leaks/run.snapana holders/two_leaks/snapshot.pickle.zst",
		"ghosts host/held_list.snapana"},
	"redact":  {"redact --salt a -o OUT ghost.pickle"},
	"diff":    {"diff healthy.pickle ghost.pickle"},
	"check":   {"check --max-peak 1GiB --max-growth 0 --no-ghosts --baseline healthy.pickle ghost.pickle fragmentation.pickle"},
	"schema":  {"schema", "schema --help"},
	"man":     {"man", "man terminal"},
	"help":    {"help", "help at"},
	"version": {"version --help"},
}

// notShown says why a command is not in shown.
var notShown = map[string]string{
	"plot": "prints nothing", "export": "prints files of other tools", "serve": "prints an address", "attach": "needs a process",
	"nvml":       "needs a driver; its text has goldens of its own in report/text",
	"mcp":        "answers programs",
	"digest":     "prints names of files that depend on where it runs",
	"recorder":   "prints a program",
	"fleet":      "prints a program",
	"completion": "prints a program",
}

// fits holds that no line is wider than so many columns, but for what is to be copied: commands in examples, code of a
// fix, and code of the manual.
func fits(t *testing.T, what, out string, width int) {
	t.Helper()
	var code []string
	if name, ok := strings.CutPrefix(what, "man "); ok && name != "--help" {
		code = codeOf(t, name)
	}
	copied := false
	for l := range strings.Lines(out) {
		l = strings.TrimSuffix(l, "\n")
		if l == "" || l[0] != ' ' {
			copied = l == "Examples:" || strings.HasPrefix(l, "Fix") || strings.HasPrefix(l, "Record") ||
				copied && l != "" && !label.MatchString(l)
		}
		command := strings.HasPrefix(l, "$ ") || strings.HasPrefix(l, nextStep+"snapana ") ||
			slices.Contains(code, strings.TrimSpace(l))
		if n := uniseg.StringWidth(l); n > width && !command && !copied {
			t.Errorf("%s: %d columns of %d: %s", what, n, width, l)
		}
	}
}

// codeOf is the lines of a page of the manual that are code: indented, or between fences.
func codeOf(t *testing.T, page string) (code []string) {
	t.Helper()
	source, err := manual.ReadFile("manual/" + page + ".md")
	if err != nil {
		t.Fatal(err)
	}
	fenced := false
	for l := range strings.Lines(string(source)) {
		switch {
		case strings.HasPrefix(l, "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(l, "    "):
			code = append(code, strings.TrimSpace(l))
		}
	}
	return code
}

var label = regexp.MustCompile(`^[A-Z][a-z]+ `)

// TestWidths holds what each command prints on terminals of several widths, and that no line is wider.
func TestWidths(t *testing.T) {
	root := newRoot()
	for _, name := range append(commands(root), "snapana") {
		if shown[name] == nil && notShown[name] == "" && name != "help" {
			t.Errorf("nothing shows what %s prints", name)
		}
	}
	for name, lines := range shown {
		var all strings.Builder
		t.Run(name, func(t *testing.T) {
			t.Chdir(filepath.Join("..", "..", "fixtures"))
			for _, line := range lines {
				for _, width := range widths {
					fmt.Fprintf(&all, "== %s, %d columns\n", line, width)
					all.WriteString(strings.TrimRight(onWidth(t, line, width), "\n") + "\n\n")
				}
			}
		})
		golden.Check(t, filepath.Join("widths", name+".txt"), []byte(all.String()))
	}
}

// onWidth is what a command prints, of which no line is wider than so many columns.
func onWidth(t *testing.T, line string, width int) string {
	t.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "OUT", filepath.Join(t.TempDir(), "out")))
	var out, errors bytes.Buffer
	run(t.Context(), append(args, "--width", fmt.Sprint(width)), strings.NewReader(""), &out, &errors)
	s := regexp.MustCompile(`Report in .*`).ReplaceAllString(out.String(), "Report in out/")
	fits(t, line, s, width)
	return s
}

// TestManyWidths holds that no line is wider than the terminal with inputs of all kinds, and with names of files that are
// long and of wide characters.
func TestManyWidths(t *testing.T) {
	if testing.Short() {
		t.Skip("many commands")
	}
	dir := t.TempDir()
	odd := filepath.Join(dir, strings.Repeat("模型训练", 15)+" e\u0301👩‍🔬.pickle")
	data, err := os.ReadFile("../../fixtures/fragmentation.pickle")
	if err == nil {
		err = os.WriteFile(odd, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("..", "..", "fixtures"))
	files, err := filepath.Glob("lab/traces/2.15/*.pickle.xz")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if os.Getenv("SNAPANA_FULL") == "" {
		files = slices.DeleteFunc(files, func(f string) bool { return len(f)%5 != 0 })
	}
	files = append(files, odd)
	for _, command := range []string{"", "summary", "state --by stack --show-internals", "peak --tree", "whatif", "ghosts", "ranks"} {
		for _, f := range files {
			for _, width := range widths[:2] {
				var out, errors bytes.Buffer
				run(t.Context(), append(strings.Fields(command), f, "--width", fmt.Sprint(width)), nil, &out, &errors)
				fits(t, command+" "+filepath.Base(f), out.String(), width)
			}
		}
	}
	for _, page := range manPages() {
		for _, width := range widths {
			onWidth(t, "man "+page, width)
			if !slices.Contains([]string{"files", "verdicts", "terminal"}, page) {
				onWidth(t, page+" --help", width)
			}
		}
	}
}

func TestAttachedWidths(t *testing.T) {
	r := attach.Result{Python: "3.14.8", Snapshot: "runs/slow.pickle", Recording: "runs/slow.snapana",
		Faults: []string{strings.Repeat("fault ", 30)}}
	for _, width := range widths {
		out := attached(12345, 0, "runs/slow", r, text.Options{Width: width})
		fits(t, "attach", out, width)
		if !strings.HasSuffix(out, "\nNext    snapana report runs/slow.pickle\n") {
			t.Errorf("got\n%s", out)
		}
	}
}
