//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
)

// TestKill kills runs of `snapana report` at the moment when they put their files in place of those of an earlier
// report. No report is ever half of one and half of the other, but where files have to be moved one by one; there the
// next run ends what was begun. No run is refused for what an earlier one left.
//
// SNAPANA_KILLS is how often, 24 by default. Package place has the same for each single change to the disk.
func TestKill(t *testing.T) {
	kills := 24
	if n, err := strconv.Atoi(os.Getenv("SNAPANA_KILLS")); err == nil {
		kills = n
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "snapana")
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	random := build.Random(1, build.RandomOptions{Events: 20, Live: 4})
	if err := random.Write(&b, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{"a": []byte("\x80\x02]q\x00."), "b": b.Bytes()}
	whole := map[string]string{} // what a report of each has
	for name, data := range inputs {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		ok(t, "report", "-q", "-o", filepath.Join(dir, name+".report"), filepath.Join(dir, name))
		whole[name] = contents(t, filepath.Join(dir, name+".report"))
	}
	is := func(got string) bool { return got == whole["a"] || got == whole["b"] }

	work := filepath.Join(dir, "work")
	out := filepath.Join(work, "r")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(input string) *exec.Cmd {
		// Under the race detector it takes more time than such a small file is worth.
		cmd := exec.Command(program, "report", "-q", "--max-bytes", "1GiB", "-o", out, filepath.Join(dir, input))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	if err := start("a").Wait(); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	struck := 0
	for i := range kills {
		each := i%4 == 3 // one by one, beside a folder
		if each {
			os.Mkdir(filepath.Join(out, "mine"), 0o755)
		} else {
			os.Remove(filepath.Join(out, "mine"))
		}
		cmd := start([]string{"b", "a"}[i/2%2])
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var err error
		for wait := true; wait; {
			select {
			case err = <-ended:
				wait = false
			default:
				if mark := fmt.Sprintf(".snapana-%d-", cmd.Process.Pid); temporary(work, mark) || temporary(out, mark) {
					for since := time.Now(); time.Since(since) < time.Duration(rng.IntN(1500))*time.Microsecond; {
					}
					cmd.Process.Signal([]os.Signal{syscall.SIGKILL, syscall.SIGTERM}[i/4%2])
					err, wait = <-ended, false
				}
			}
		}
		if err != nil {
			struck++
		}
		if got := contents(t, out); !each && !is(got) {
			t.Fatalf("seed %d, kill %d: half a report:\n%s", seed, i, got)
		}
		if each {
			if err := start("a").Wait(); err != nil {
				t.Fatalf("seed %d, kill %d: the next run is refused: %v", seed, i, err)
			}
			if got := contents(t, out); got != whole["a"] {
				t.Fatalf("seed %d, kill %d: half a report:\n%s", seed, i, got)
			}
		}
	}
	os.Remove(filepath.Join(out, "mine"))
	err := start("b").Wait()
	if left := temporary(work, ".snapana-") || temporary(out, ".snapana-"); err != nil || left ||
		contents(t, out) != whole["b"] {
		t.Errorf("the last run: %v, leftovers %v", err, left)
	}
	t.Logf("%d of %d were killed", struck, kills)
}

// contents is what a report's files are and have.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %x\n", e.Name(), sha256.Sum256(data))
	}
	return b.String()
}

// temporary reports whether something is in the making in dir, whose name begins with mark.
func temporary(dir, mark string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), mark) })
}
