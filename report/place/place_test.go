//go:build unix

package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also a program that is killed before the change to the disk that SNAPANA_KILL_AT counts to.
func TestMain(m *testing.M) {
	at, err := strconv.Atoi(os.Getenv("SNAPANA_KILL_AT"))
	if err != nil {
		os.Exit(m.Run())
	}
	step = func() {
		if at--; at < 0 {
			p, _ := os.FindProcess(os.Getpid())
			p.Kill()
			time.Sleep(time.Hour)
		}
	}
	if err := os.Chdir(os.Getenv("SNAPANA_KILL_IN")); err != nil {
		panic(err)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// two are sets of files of different names, each with its own text.
var two = map[string][]string{"old": {"a", "b", "c"}, "new": {"a", "b", "d"}}

func isOurs(name string) bool { return len(name) == 1 }

// write writes one of two as report does, or a file.
func write(path, text string) error {
	if text == "file" {
		return Write(context.Background(), path, []byte(text))
	}
	var files []File
	for _, name := range two[text] {
		files = append(files, File{Name: name, Data: []byte(text)})
	}
	if err := Mend(context.Background(), path, isOurs); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return Create(context.Background(), path, files, isOurs)
	}
	return Replace(context.Background(), path, files, isOurs)
}

// read tells which of two is in dir, "" where there is none, and fails at a mixture.
func read(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	var names, texts []string
	for _, e := range entries {
		if isOurs(e.Name()) {
			names = append(names, e.Name())
			texts = append(texts, load(t, filepath.Join(dir, e.Name())))
		}
	}
	texts = slices.Compact(texts)
	if len(texts) != 1 || !slices.Equal(names, two[texts[0]]) {
		t.Errorf("half a report: %q of %q", names, texts)
		return "half"
	}
	return texts[0]
}

func load(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := write(path, text); err != nil {
		t.Fatal(err)
	}
}

// left lists what lies in dir, hidden or not, but for names.
func left(t *testing.T, dir string, names ...string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}

// TestKilled kills a writer before each change that it makes to the disk, in each of the ways that folders are
// written. Who looks then sees all of the old files or all of the new ones, at least when the next writer has
// looked; that one is not refused, and leaves nothing but its files and those of the user.
func TestKilled(t *testing.T) {
	atomic := runtime.GOOS == "linux" || runtime.GOOS == "darwin"
	for _, way := range []struct {
		name   string
		old    bool
		atomic bool // the folder is never mixed, without Mend
		mine   string
	}{
		{name: "new folder", atomic: true},
		{name: "earlier report", old: true, atomic: atomic},
		{name: "beside a file", old: true, atomic: atomic, mine: "notes.txt"},
		{name: "beside a folder", old: true, mine: filepath.Join("mine", "notes.txt")},
		{name: "current folder", old: true},
	} {
		t.Run(way.name, func(t *testing.T) {
			kills := 0
			for at, ended := 0, false; !ended; at++ {
				root := t.TempDir()
				dir := filepath.Join(root, "x", "r")
				from, to := root, filepath.Join("x", "r")
				if way.old {
					mustWrite(t, dir, "old")
				}
				if way.mine != "" {
					put(t, filepath.Join(dir, way.mine), "mine")
				}
				if way.name == "current folder" {
					from, to = dir, "."
				}
				cmd := exec.Command(os.Args[0], to, "new")
				cmd.Env = append(os.Environ(), "SNAPANA_KILL_AT="+strconv.Itoa(at), "SNAPANA_KILL_IN="+from)
				out, err := cmd.CombinedOutput()
				if ended = err == nil; !ended {
					kills++
				}
				if !ended && cmd.ProcessState.ExitCode() == 1 {
					t.Fatalf("%d: %s", at, out)
				}
				if way.atomic {
					read(t, dir)
				}
				if err := Mend(t.Context(), dir, isOurs); err != nil {
					t.Errorf("%d: %v", at, err)
				}
				got := read(t, dir)
				if ended && got != "new" || got == "" && way.old {
					t.Errorf("%d: %q is there", at, got)
				}
				if at%3 == 0 || ended {
					mustWrite(t, dir, "old") // other names than those that were left
					if got := read(t, dir); got != "old" {
						t.Errorf("%d: then %q is there", at, got)
					}
					if more := slices.Concat(left(t, root, "x"), left(t, filepath.Dir(dir), "r"),
						left(t, dir, "a", "b", "c", "notes.txt", "mine")); len(more) > 0 {
						t.Errorf("%d: left %q", at, more)
					}
				}
				if way.mine != "" && load(t, filepath.Join(dir, way.mine)) != "mine" {
					t.Errorf("%d: the user's file changed", at)
				}
			}
			if kills < 5 {
				t.Errorf("%d kills", kills)
			}
		})
	}
}

// TestKilledFile kills a writer of a file.
func TestKilledFile(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "p.png")
	for at, ended := 0, false; !ended; at++ {
		put(t, path, "old")
		cmd := exec.Command(os.Args[0], "p.png", "file")
		cmd.Env = append(os.Environ(), "SNAPANA_KILL_AT="+strconv.Itoa(at), "SNAPANA_KILL_IN="+root)
		ended = cmd.Run() == nil
		if got := load(t, path); got != "old" && got != "file" || ended && got != "file" {
			t.Errorf("%d: %q is there", at, got)
		}
	}
	mustWrite(t, path, "file")
	if more := left(t, root, "p.png"); len(more) > 0 {
		t.Errorf("left %q", more)
	}
}

// TestFails makes the last step fail, on a new folder and on an earlier report: nothing changes.
func TestFails(t *testing.T) {
	root := t.TempDir()
	bad := []File{{Name: "a", Data: []byte("new")}, {Name: "missing/dir", Data: []byte("new")}}
	if err := Create(t.Context(), filepath.Join(root, "p", "q"), bad, isOurs); err == nil {
		t.Error("no error")
	}
	if got := left(t, root); len(got) > 0 {
		t.Errorf("left %q", got)
	}
	for _, mine := range []string{"notes.txt", filepath.Join("mine", "notes.txt")} {
		dir := filepath.Join(root, filepath.Dir(mine), "r")
		mustWrite(t, dir, "old")
		put(t, filepath.Join(dir, mine), "mine")
		if err := Replace(t.Context(), dir, bad, isOurs); err == nil {
			t.Error("no error")
		}
		if got := read(t, dir); got != "old" {
			t.Errorf("%q is there", got)
		}
		if got := left(t, dir, "a", "b", "c", "notes.txt", "mine"); len(got) > 0 {
			t.Errorf("left %q", got)
		}
		// A folder where a file is to be.
		put(t, filepath.Join(dir, "d", "mine"), "mine")
		if err := write(dir, "new"); err == nil || !strings.Contains(err.Error(), "d is a folder") {
			t.Errorf("%v", err)
		}
		os.RemoveAll(filepath.Join(dir, "d"))
		if got := read(t, dir); got != "old" {
			t.Errorf("%q is there", got)
		}
	}
}

// TestLocked has another program that keeps the folder locked, and one that is not done yet with what lies beside.
func TestLocked(t *testing.T) {
	root := t.TempDir()
	tmp, f, err := stage(root, []File{{Name: "a"}}, "", isOurs)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(root, "r"), "old")
	mustWrite(t, filepath.Join(root, "r"), "new")
	if _, err := os.Stat(filepath.Join(tmp, "a")); err != nil {
		t.Errorf("what another writes is gone: %v", err)
	}
	f.Close()
	mustWrite(t, filepath.Join(root, "r"), "old")
	if got := left(t, root, "r"); len(got) > 0 {
		t.Errorf("left %q", got)
	}
}

// TestStrangers puts things beside a report that have names as ours have while they are made: they stay.
func TestStrangers(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "r")
	put(t, filepath.Join(root, ".snapana-1-1", "thesis.txt"), "mine")
	put(t, filepath.Join(root, ".snapana-1-2", "mine", "a"), "mine")
	put(t, filepath.Join(root, ".snapana-x"), "mine")
	put(t, filepath.Join(root, "elsewhere", "a"), "mine")
	if err := os.Symlink("elsewhere", filepath.Join(root, ".snapana-1-3")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mustWrite(t, dir, "old")
	}
	for _, name := range []string{".snapana-1-1/thesis.txt", ".snapana-1-2/mine/a", ".snapana-x", "elsewhere/a"} {
		if got := load(t, filepath.Join(root, name)); got != "mine" {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestModes replaces files and folders that others must not read, and those that all may write.
func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	root := t.TempDir()
	mode := func(path string) fs.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for _, m := range []fs.FileMode{0o600, 0o666, 0o640, 0o444} {
		path := filepath.Join(root, "p.png")
		mustWrite(t, path, "file")
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
		if mustWrite(t, path, "file"); mode(path) != m {
			t.Errorf("%v became %v", m, mode(path))
		}
		os.Remove(path)
		if mustWrite(t, path, "file"); mode(path) != 0o644 {
			t.Errorf("new: %v", mode(path))
		}
	}
	for _, mine := range []string{"notes.txt", filepath.Join("mine", "notes.txt")} {
		dir := filepath.Join(root, filepath.Dir(mine), "r")
		mustWrite(t, dir, "old")
		put(t, filepath.Join(dir, mine), "")
		if err := errors.Join(os.Chmod(dir, 0o750), os.Chmod(filepath.Join(dir, "a"), 0o600)); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, dir, "new")
		got := []fs.FileMode{mode(dir), mode(filepath.Join(dir, "a")), mode(filepath.Join(dir, "d"))}
		if !slices.Equal(got, []fs.FileMode{0o750, 0o600, 0o644}) {
			t.Errorf("beside %s: %v", mine, got)
		}
	}
}

// TestNoFile writes to what is no file: pipes and folders stay, links give way, dangling ones too.
func TestNoFile(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "pipe.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "folder.png")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is a pipe", folder: "is a folder"} {
		if err := write(path, "file"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
			t.Errorf("%s is gone", path)
		}
	}
	target := filepath.Join(root, "target")
	put(t, target, "old")
	if err := os.Chmod(target, 0o700|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if info, err := os.Stat(target + ".png"); err != nil || info.Mode() != 0o600 {
			t.Errorf("in the place of a link to a private program: %v, %v", info.Mode(), err)
		}
	}()
	for _, target := range []string{"target", "nowhere"} {
		link := filepath.Join(root, target+".png")
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if mustWrite(t, link, "file"); load(t, link) != "file" {
			t.Errorf("%s is %q", link, load(t, link))
		}
	}
	if load(t, filepath.Join(root, "target")) != "old" {
		t.Error("the link was followed")
	}
	if _, err := os.Lstat(filepath.Join(root, "nowhere")); err == nil {
		t.Error("the dangling link was followed")
	}
}

// TestFillFails has a file that cannot be filled: nothing changes, and it is asked once.
func TestFillFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "of")
	asked, broken := 0, errors.New("broken")
	files := []File{{Name: "a", Fill: func(io.Writer) error { asked++; return broken }}}
	if err := Create(t.Context(), dir, files, isOurs); !errors.Is(err, broken) {
		t.Errorf("create: %v", err)
	}
	if rest := left(t, filepath.Dir(dir)); len(rest) > 0 {
		t.Errorf("left behind: %q", rest)
	}
	mustWrite(t, dir, "old")
	if err := Replace(t.Context(), dir, files, isOurs); !errors.Is(err, broken) || asked != 2 {
		t.Errorf("replace: %v, asked %d times", err, asked)
	}
	if got := read(t, dir); got != "old" {
		t.Errorf("the folder has %q", got)
	}
}

// TestMissingFolders makes the folders of a file, and leaves none where it fails.
func TestMissingFolders(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "file")
	bad := errors.New("bad")
	if err := WriteBy(t.Context(), path, func(io.Writer) error { return bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(path))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is left: %v", err)
	}
	if err := Write(t.Context(), path, []byte("x")); err != nil {
		t.Error(err)
	}
	var at *fs.PathError
	if err := Write(t.Context(), filepath.Join(path, "c", "d"), nil); !errors.As(err, &at) {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestSeries looks for what others left once, before the first of many files in a folder.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	var all Series
	for i, want := range []int{0, 1} {
		put(t, filepath.Join(dir, ".snapana-1-1"), "left")
		if err := all.Write(t.Context(), filepath.Join(dir, "a"), []byte("x")); err != nil {
			t.Fatal(err)
		}
		if got := left(t, dir, "a"); len(got) != want {
			t.Errorf("after file %d there is %q", i, got)
		}
	}
}

// TestPatience waits for another writer as long as that one gets on, and no longer.
func TestPatience(t *testing.T) {
	usual := patience
	patience = 400 * time.Millisecond
	t.Cleanup(func() { patience = usual })
	root := t.TempDir()
	dir := filepath.Join(root, "r")
	mustWrite(t, dir, "old")
	locked := func() *os.File {
		t.Helper()
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if free, known := flock(f, false); !free || !known {
			t.Skip("no locks here")
		}
		return f
	}
	f := locked()
	if err := write(dir, "new"); err == nil || !strings.Contains(err.Error(), "another program has locked") {
		t.Errorf("beside a writer that writes nothing: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Replace(ctx, dir, []File{{Name: "a"}}, isOurs); !errors.Is(err, context.Canceled) {
		t.Errorf("once it is stopped: %v", err)
	}
	go func() {
		for i := range 10 {
			put(t, filepath.Join(root, ".snapana-1-1", "index.html"), strings.Repeat("x", i))
			time.Sleep(patience / 4)
		}
		f.Close()
	}()
	if err := write(dir, "new"); err != nil || read(t, dir) != "new" {
		t.Errorf("beside a writer that gets on: %v", err)
	}
}
