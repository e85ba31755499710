package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var console = regexp.MustCompile("(?s)```console\n\\$ snapana ([^\n]*)\n(.*?)```")

// TestReadme runs the commands that README.md shows and holds that they print what it says.
func TestReadme(t *testing.T) {
	readme, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "fixtures"), os.DirFS("../../fixtures")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	blocks := 0
	got := console.ReplaceAllStringFunc(string(old), func(block string) string {
		blocks++
		command := console.FindStringSubmatch(block)[1]
		var out bytes.Buffer
		run(t.Context(), strings.Fields(command), strings.NewReader(""), &out, &out)
		return "```console\n$ snapana " + command + "\n" + out.String() + "```"
	})
	if blocks < 3 {
		t.Errorf("README.md shows %d commands, fewer than it should", blocks)
	}
	if got == string(old) {
		return
	}
	if !*update {
		t.Fatal("README.md does not show what the commands print; run this test with -update and read the difference")
	}
	if err := os.WriteFile(readme, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}
