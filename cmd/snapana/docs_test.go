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

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/failure"
)

var console = regexp.MustCompile("(?s)```console\n\\$ snapana ([^\n]*)\n(.*?)```")

// TestDocs runs the commands that README.md and the manual show and holds that they print what is said there.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("manual/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, "../../README.md")
	for i := range pages {
		if pages[i], err = filepath.Abs(pages[i]); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "fixtures"), os.DirFS("../../fixtures")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	blocks := 0
	for _, page := range pages {
		old, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		got := console.ReplaceAllStringFunc(string(old), func(block string) string {
			blocks++
			command := console.FindStringSubmatch(block)[1]
			var out bytes.Buffer
			run(t.Context(), strings.Fields(command), strings.NewReader(""), &out, &out)
			return "```console\n$ snapana " + command + "\n" + out.String() + "```"
		})
		switch filepath.Base(page) {
		case "verdicts.md":
			got = verdictTable.ReplaceAllString(got, statusTable())
		case "errors.md":
			got = codeTable.ReplaceAllString(got, failureTable())
		}
		switch {
		case got == string(old):
		case golden.Update():
			if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s does not show what the commands print; run this test with -update and read the difference",
				filepath.Base(page))
		}
	}
	if blocks < 15 {
		t.Errorf("the manual shows %d commands, fewer than it should", blocks)
	}
}

var verdictTable = regexp.MustCompile(`(?m)^\| verdict \|.*\n(\|.*\n)*`)

// statusTable is the manual's table of verdicts, made of the one in package finding.
func statusTable() string {
	var b strings.Builder
	b.WriteString("| verdict | meaning |\n|---|---|\n")
	for _, s := range finding.Statuses() {
		fmt.Fprintf(&b, "| %s | %s |\n", s, s.Meaning())
	}
	return b.String()
}

var codeTable = regexp.MustCompile(`(?m)^\| code \|.*\n(\|.*\n)*`)

// failureTable is the manual's table of codes, made of the one in package failure.
func failureTable() string {
	var b strings.Builder
	b.WriteString("| code | exit | meaning | hint, where nothing better is known |\n|---|---|---|---|\n")
	for _, k := range failure.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", k.Code, k.Exit, k.Meaning, k.Hint)
	}
	return b.String()
}

// TestLinks holds that the relative links of the documents lead to files.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	pages, err := filepath.Glob("manual/*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md",
		"../../fixtures/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s has a link to %s, which is not there", page, m[1])
			}
		}
	}
	if links < 30 {
		t.Errorf("%d links were found, fewer than there should be", links)
	}
}

// TestManual holds that each command has a page, and each page a command or a topic.
func TestManual(t *testing.T) {
	root := newRoot()
	pages := manPages()
	for _, c := range root.Commands() {
		if name := c.Name(); name != "help" && !slices.Contains(pages, name) {
			t.Errorf("the manual has no page on %s", name)
		}
	}
	for _, p := range pages {
		if c, _, err := root.Find([]string{p}); topics[p] == "" && (err != nil || c == root) {
			t.Errorf("the manual has a page %s, which is no command and no topic", p)
		}
	}
}
