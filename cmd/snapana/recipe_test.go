package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipeTorch is what the plugin for pytest needs of torch. Its snapshot is a recording, which each branch has its own of.
const recipeTorch = `
import shutil
class memory:
    @staticmethod
    def _record_memory_history(enabled="all", **more): pass
    @staticmethod
    def _dump_snapshot(path): shutil.copy("recording", path)
    @staticmethod
    def reset_peak_memory_stats(device=None): pass
class cuda:
    memory = memory
    is_available = is_initialized = init = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    memory_allocated = max_memory_allocated = staticmethod(lambda device: 0)
    reset_peak_memory_stats = memory.reset_peak_memory_stats
class _C: pass
`

const recipeTest = `
import torch
def test_memory(gpu_memory):
    gpu_memory.dump("run.pickle")
`

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestRecipe runs the lines that manual/check.md shows for CI: on main, and on branches of which one needs more memory.
func TestRecipe(t *testing.T) {
	if exec.Command("python3", "-c", "import pytest").Run() != nil || exec.Command("git", "version").Run() != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no pytest, or no git")
		}
		t.Skip("no pytest, or no git")
	}
	page, err := os.ReadFile("manual/check.md")
	if err != nil {
		t.Fatal(err)
	}
	jobs := shell.FindAllStringSubmatch(string(page), -1)
	if len(jobs) != 2 {
		t.Fatalf("the page has %d jobs, want those of main and of a branch", len(jobs))
	}
	onMain, onBranch := jobs[0][1], jobs[1][1]

	origin, summary := t.TempDir(), filepath.Join(t.TempDir(), "summary.md")
	in := func(dir, script string) (out string, code int) {
		t.Helper()
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+origin, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "PYTHONDONTWRITEBYTECODE=1", "GITHUB_STEP_SUMMARY="+summary)
		text, err := cmd.CombinedOutput()
		if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	must := func(dir, script string) string {
		t.Helper()
		out, code := in(dir, script)
		if code != 0 {
			t.Fatalf("%s: exit code %d:\n%s", script, code, out)
		}
		return out
	}
	write := func(dir, name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	record := func(dir, recording string) {
		t.Helper()
		data, err := os.ReadFile("../../fixtures/lab/pairs/recordings/" + recording + ".pickle.xz")
		if err != nil {
			t.Fatal(err)
		}
		write(dir, "recording", data)
		must(dir, "git add --all; git commit --quiet -m "+recording)
	}

	must(origin, "git init --quiet --initial-branch=main")
	write(origin, "torch.py", []byte(recipeTorch))
	write(origin, "test_memory.py", []byte(recipeTest))
	write(origin, ".gitignore", []byte("*.pickle\n*.md\nsnapana_recorder.py\n.pytest_cache\n"))
	record(origin, "base")
	for range 2 { // the second changes nothing
		must(origin, onMain)
	}
	if log := must(origin, "git log --format=%s; git status --porcelain"); log != "Update the memory baseline\nbase\n" {
		t.Errorf("main has\n%s", log)
	}

	for _, c := range []struct {
		recording string
		code      int
		comment   string
	}{
		{"batch", 1, "activations grew 2x"},
		{"moved", 0, "1 limit kept"},
	} {
		clone := t.TempDir()
		must(clone, "git clone --quiet "+origin+" . && git switch --quiet --create "+c.recording)
		record(clone, c.recording)
		out, code := in(clone, onBranch)
		comment, _ := os.ReadFile(filepath.Join(clone, "comment.md"))
		if code != c.code || !strings.Contains(string(comment), c.comment) {
			t.Errorf("%s: exit code %d, want %d and %q in the comment:\n%s\n%s", c.recording, code, c.code, c.comment, comment, out)
		}
		if all, _ := os.ReadFile(summary); !strings.HasSuffix(string(all), string(comment)) {
			t.Errorf("%s: the summary is\n%s", c.recording, all)
		}
	}
}
