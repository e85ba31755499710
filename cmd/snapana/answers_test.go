package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/pickler"
)

// say runs a command and gives what it prints.
func say(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("%q: exit code %d: %s", args, code, &errs)
	}
	return out.String()
}

// settle waits until a change to a file is old enough to be told from a later one.
func settle(t *testing.T, path string) {
	t.Helper()
	for range 100 {
		if _, ok := identity(path); ok {
			return
		}
		time.Sleep(settled / 20)
	}
	t.Fatal("the file has no identity")
}

// TestAnswers holds that what was printed about a large file is printed again without reading it, and never about
// another.
func TestAnswers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no answers are kept here")
	}
	cache := t.TempDir()
	t.Setenv("SNAPANA_CACHE", cache)
	dir, path := filepath.Join(cache, "answers"), filepath.Join(t.TempDir(), "large.pickle")
	var b bytes.Buffer
	if err := build.Random(1, build.RandomOptions{Events: 130_000}).Write(&b, pickler.Options{Protocol: 4}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	was, err := os.Stat(path)
	if err != nil || was.Size() < slow {
		t.Fatal(was.Size(), err)
	}
	settle(t, path)
	state, peak := say(t, "state", "--no-cache", path), say(t, "peak", "--no-cache", path)
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("--no-cache keeps answers")
	}
	if got := say(t, "state", path); got != state {
		t.Errorf("the first answer is %q, want %q", got, state)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d answers are kept, want those at the end and at the peak (%v)", len(list), err)
	}
	for _, entry := range list {
		if info, err := entry.Info(); err != nil || info.Mode() != 0o600 {
			t.Errorf("an answer has mode %v (%v)", info.Mode(), err)
		}
	}
	if got := say(t, "peak", path); got != peak {
		t.Errorf("the answer at the peak is %q, want %q", got, peak)
	}

	// Mark the answers, to see where they are used: of this question only, and not if told so.
	mark := func(good bool) {
		for _, entry := range list {
			name := filepath.Join(dir, entry.Name())
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			head := answerMark
			if at := bytes.LastIndex(data, []byte("moment=")); good && at > 0 {
				end := at + bytes.IndexByte(data[at:], '\n') + 1
				head = string(data[:end])
			}
			if err := os.WriteFile(name, sealed(head, []byte("marked")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	mark(true)
	if got := say(t, "state", path); got != "marked" {
		t.Error("the answer that is kept is not used")
	}
	for _, args := range [][]string{{"state", "--no-cache"}, {"state", "--top", "20", "--at", "129000", "--at", "end", "--device", "0",
		"--by", "site", "--max-bytes", "1GiB"}} {
		if got := say(t, append(args, path)...); got == "marked" {
			t.Errorf("%q gets the answer to another question", args)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := say(t, "state", path); got != state {
		t.Error("a folder that others can read is used")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	// The same size, and the modification time put back.
	data := bytes.Replace(b.Bytes(), []byte("train.py"), []byte("brain.py"), 1)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
		t.Fatal(err)
	}
	settle(t, path)
	if got, want := say(t, "state", path), say(t, "state", "--no-cache", path); got != want {
		t.Errorf("an old answer about a file that changed: %q, want %q", got, want)
	}

	// What is not whole is read anew.
	list, _ = os.ReadDir(dir)
	mark(false)
	if got, want := say(t, "state", path), say(t, "state", "--no-cache", path); got != want {
		t.Errorf("a broken answer is used: %q, want %q", got, want)
	}
}

// TestAnswersAreBounded holds that the oldest make room.
func TestAnswersAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "older", "new"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, maxAnswers*2/5); err != nil {
			t.Fatal(err)
		}
		at := time.Unix([]int64{1_000_001, 1_000_000, 1_000_002}[i], 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	trim(dir)
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 || list[0].Name() != "new" || list[1].Name() != "old" {
		t.Errorf("left are %v (%v)", list, err)
	}
}
