package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSkill runs every command that the text for agents shows, and holds that its head is one of a skill.
func TestSkill(t *testing.T) {
	head := regexp.MustCompile(`\A---\nname: [a-z-]+\ndescription: [^\n]{40,900}\n---\n\n# `)
	if !head.MatchString(skill) {
		t.Error("it does not begin as a SKILL.md does")
	}
	dir := t.TempDir()
	fixtures, err := filepath.Abs("../../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		"snapshot.pickle": "fragmentation.pickle", "run.pickle": "holders/two_leaks/snapshot.pickle.zst",
		"run.snapana": "holders/two_leaks/run.snapana", "train.log": "train.log",
		"base.pickle": "lab/pairs/recordings/base.pickle.xz", "b2.pickle": "lab/fit/gpt_batch2_seq128.pickle.xz",
		"b3.pickle": "lab/fit/gpt_batch3_seq128.pickle.xz", "snapshot-healthy.pickle": "healthy.pickle",
	} {
		if err := os.Symlink(filepath.Join(fixtures, file), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "dumps"), os.DirFS(filepath.Join(fixtures, "ranks"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	commands := regexp.MustCompile(`(?m)^    snapana (.*)$`).FindAllStringSubmatch(skill, -1)
	if len(commands) < 15 {
		t.Errorf("%d commands are shown", len(commands))
	}
	for _, m := range commands {
		var out, errors bytes.Buffer
		if code := run(t.Context(), strings.Fields(m[1]), strings.NewReader(""), &out, &errors); code != exitOK ||
			out.Len() == 0 {
			t.Errorf("snapana %s: %d %s", m[1], code, &errors)
		}
	}
	var out, errors bytes.Buffer
	if code := run(t.Context(), []string{"mcp", "--skill"}, nil, &out, &errors); code != exitOK || out.String() != skill {
		t.Errorf("mcp --skill: %d %s", code, &errors)
	}
}
