package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/s3"
)

// TestFleetStore has snapshots of a store read, and the digests written there.
func TestFleetStore(t *testing.T) {
	s := s3.New(t)
	stored(t, s, "run/rank0.pickle", "healthy.pickle")
	stored(t, s, "run/rank1.pickle", "ghost.pickle")
	fleet := []string{"fleet", "slurm", "s3://bucket/run/", "-o", "s3://bucket/out/digests"}
	code, out, stderr := ask(t, fleet...)
	plan := regexp.MustCompile(`s3://bucket/out/digests/tasks-[0-9a-f]+\.plan`).FindString(out)
	if code != 0 || plan == "" || strings.Contains(out, "--output") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, stderr := ask(t, "fleet", "task", plan, "0"); code != 0 || !strings.Contains(out, ": 2 written") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, stderr := ask(t, fleet...); code != 0 || !strings.HasPrefix(out, "# All digests are there") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, stderr := ask(t, "ranks", "s3://bucket/out/digests"); code != 0 || !strings.HasPrefix(out, "2 snapshots\n") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// TestFleetLines runs the lines that manual/fleet.md shows for machines without Slurm, with a stand-in for ssh: each makes
// the same digests.
func TestFleetLines(t *testing.T) {
	page, err := os.ReadFile("manual/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"dumps", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, fixture := range map[string]string{"it's $(rank) 0.pickle": "ghost", "rank\n1.pickle": "healthy"} {
		data, err := os.ReadFile("../../fixtures/" + fixture + ".pickle")
		if err != nil {
			t.Fatal(err)
		}
		put("dumps/"+name, string(data), 0o644)
	}
	put("bin/ssh", "#!/bin/sh\nshift\nexec sh -c \"$*\"\n", 0o755)
	lines := strings.Split(strings.TrimSpace(shell.FindStringSubmatch(string(page))[1]), "\n")
	if len(lines) != 3 {
		t.Fatalf("there are %d lines", len(lines))
	}
	place := strings.NewReplacer("/shared/", "", "/scratch/", "")
	for _, line := range lines {
		if strings.Contains(line, "| parallel ") && exec.Command("parallel", "--version").Run() != nil {
			continue
		}
		cmd := exec.Command("sh", "-c", place.Replace(line))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		made, _ := filepath.Glob(filepath.Join(dir, "digests", "*.digest"))
		if err != nil || len(made) != 2 {
			t.Errorf("%s: %v, %d digests\n%s", line, err, len(made), out)
		}
		if err := os.RemoveAll(filepath.Join(dir, "digests")); err != nil {
			t.Fatal(err)
		}
	}
}
