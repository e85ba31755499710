package report

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/html"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func mustWrite(t *testing.T, dir string, r *analyze.Result) {
	t.Helper()
	if _, err := WriteDir(t.Context(), dir, r, html.DefaultBytes); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var one = []string{"categories.png", "fragmentation.png", "report.html", "report.json", "segments-end.png",
	"segments-peak.png", "stacks.png", "timeline.png", "whatif.png"}

var none = []string{"report.html", "report.json"} // of a file without segments and events

func TestWriteDir(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "job.report")
	mustWrite(t, dir, analyzetest.Failed(t))
	if got := names(t, dir); !slices.Equal(got, one) {
		t.Errorf("files: %q", got)
	}
	if got := names(t, filepath.Dir(dir)); !slices.Equal(got, []string{"job.report"}) {
		t.Errorf("beside the folder: %q", got)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !bytes.Contains(page, []byte("</html>")) {
		t.Errorf("report.html of %d bytes, error %v", len(page), err)
	}
}

// TestModes compares with what the same request gives elsewhere, as the umask has its say.
func TestModes(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "plain", "file"), "")
	dir := filepath.Join(root, "r")
	mustWrite(t, dir, analyzetest.Empty(t))
	mode := func(path ...string) fs.FileMode {
		info, err := os.Stat(filepath.Join(append([]string{root}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if a, b := mode("r"), mode("plain"); a != b {
		t.Errorf("the folder is %v, want %v", a, b)
	}
	for _, n := range names(t, dir) {
		if a, b := mode("r", n), mode("plain", "file"); a != b {
			t.Errorf("%s is %v, want %v", n, a, b)
		}
	}
}

func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	mustWrite(t, dir, analyzetest.Failed(t))
	put(t, filepath.Join(dir, "segments-end-gpu11.png"), "of an earlier run")
	put(t, filepath.Join(dir, "notes.txt"), "mine")
	mustWrite(t, dir, analyzetest.Empty(t))
	if got, want := names(t, dir), append([]string{"notes.txt"}, none...); !slices.Equal(got, want) {
		t.Errorf("files: %q", got)
	}
	fresh := filepath.Join(t.TempDir(), "r")
	mustWrite(t, fresh, analyzetest.Empty(t))
	for _, n := range none {
		a, errA := os.ReadFile(filepath.Join(dir, n))
		b, errB := os.ReadFile(filepath.Join(fresh, n))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from a fresh one: %v, %v", n, errA, errB)
		}
	}
}

func TestEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir+string(os.PathSeparator), analyzetest.Empty(t))
	if got := names(t, dir); !slices.Equal(got, none) {
		t.Errorf("files: %q", got)
	}
}

func TestCurrentFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	mustWrite(t, ".", analyzetest.Empty(t))
	mustWrite(t, ".", analyzetest.Empty(t))
	if got := names(t, dir); !slices.Equal(got, none) {
		t.Errorf("files: %q", got)
	}
}

// TestRefused checks that nobody's files are touched.
func TestRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"other files":       {"model.py": "x", "stacks.png": "mine"},
		"other report.json": {"report.json": `{"mine": true}`},
	} {
		dir := t.TempDir()
		for f, text := range files {
			put(t, filepath.Join(dir, f), text)
		}
		_, err := WriteDir(t.Context(), dir, analyzetest.Failed(t), html.DefaultBytes)
		if !errors.Is(err, ErrNotReport) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(t, dir); len(got) != len(files) {
			t.Errorf("%s: left %q", name, got)
		}
		for f, text := range files {
			if got, err := os.ReadFile(filepath.Join(dir, f)); err != nil || string(got) != text {
				t.Errorf("%s: %s is %q now, error %v", name, f, got, err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "x")
	if _, err := WriteDir(t.Context(), path, analyzetest.Failed(t), html.DefaultBytes); err == nil ||
		!strings.Contains(err.Error(), "is a file") {
		t.Errorf("a file: %v", err)
	}
	if _, err := WriteDir(t.Context(), filepath.Join(path, "r"), analyzetest.Failed(t), html.DefaultBytes); err == nil {
		t.Error("a folder in a file was made")
	}
	link := path + "-link"
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(t.Context(), link, analyzetest.Failed(t), html.DefaultBytes); err == nil ||
		!strings.Contains(err.Error(), "link") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// TestFolderInTheWay has a folder where the report has a picture: it stays, with what is in it.
func TestFolderInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	mustWrite(t, dir, analyzetest.Empty(t))
	mine := filepath.Join(dir, "timeline.png", "mine.txt")
	if err := os.Mkdir(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, mine, "x")
	if _, err := WriteDir(t.Context(), dir, analyzetest.Failed(t), html.DefaultBytes); err == nil ||
		!strings.Contains(err.Error(), "timeline.png is a folder") {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if got := names(t, dir); !slices.Equal(got, append(slices.Clone(none), "timeline.png")) {
		t.Errorf("left %q", got)
	}
}

// TestOwnFolder writes reports on snapshots of one name: each has a folder of its own, which only its own next report
// replaces.
func TestOwnFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	empty, failed := analyzetest.Empty(t), analyzetest.Failed(t)
	write := func(r *analyze.Result, want, wantTaken string) {
		t.Helper()
		dir, taken, err := WriteOwn(t.Context(), "snapshot", r, html.DefaultBytes)
		if err != nil || dir != want || taken != wantTaken {
			t.Errorf("%q, %q, %v, want %q, %q", dir, taken, err, want, wantTaken)
		}
	}
	write(empty, "snapshot.report", "")
	write(failed, "snapshot-2.report", "snapshot.report")
	write(empty, "snapshot.report", "")
	write(failed, "snapshot-2.report", "snapshot.report")
	if a, b := names(t, "snapshot.report"), names(t, "snapshot-2.report"); !slices.Equal(a, none) || !slices.Equal(b, one) {
		t.Errorf("%q, %q", a, b)
	}
	// A report of an earlier release, whose snapshot nobody knows, and other things are left alone.
	old, err := os.ReadFile("snapshot.report/report.json")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "snapshot.report/report.json", checksum.ReplaceAllString(string(old), ""))
	put(t, "snapshot-3.report", "a file")
	if err := os.Mkdir("snapshot-4.report", 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, "snapshot-4.report/notes.txt", "mine")
	write(empty, "snapshot-5.report", "snapshot.report")
	if other, err := WriteDir(t.Context(), "snapshot-2.report", empty, html.DefaultBytes); !other || err != nil {
		t.Errorf("another's: %v, %v", other, err)
	}
	if other, err := WriteDir(t.Context(), "snapshot-2.report", empty, html.DefaultBytes); other || err != nil {
		t.Errorf("its own: %v, %v", other, err)
	}
}

var checksum = regexp.MustCompile(`  "checksum": ".*",\n`)

// TestOwnAtOnce writes reports on two snapshots of one name at the same time: none is lost.
func TestOwnAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	var writers sync.WaitGroup
	for _, r := range []*analyze.Result{analyzetest.Empty(t), analyzetest.Failed(t)} {
		for range 2 {
			writers.Go(func() {
				if _, _, err := WriteOwn(t.Context(), "snapshot", r, html.DefaultBytes); err != nil {
					t.Error(err)
				}
			})
		}
	}
	writers.Wait()
	if got := names(t, "."); !slices.Equal(got, []string{"snapshot-2.report", "snapshot.report"}) {
		t.Errorf("%q", got)
	}
}

// TestAtOnce writes several reports into one folder at the same time: new, there already, and where files are moved
// one by one, as among folders of the user's.
func TestAtOnce(t *testing.T) {
	results := []*analyze.Result{analyzetest.Empty(t), analyzetest.Failed(t)}
	root := t.TempDir()
	dir := filepath.Join(root, "r")
	for _, way := range []string{"new", "earlier", "beside a folder"} {
		if way == "beside a folder" {
			if err := os.Mkdir(filepath.Join(dir, "mine"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				if _, err := WriteDir(t.Context(), dir, results[i/7], html.DefaultBytes); err != nil {
					t.Errorf("%s: %v", way, err)
				}
			})
		}
		writers.Wait()
		got := slices.DeleteFunc(names(t, dir), func(name string) bool { return name == "mine" })
		if !slices.Equal(got, none) && !slices.Equal(got, one) {
			t.Errorf("%s: a mixture: %q", way, got)
		}
		if got := names(t, root); !slices.Equal(got, []string{"r"}) {
			t.Errorf("%s: left %q", way, got)
		}
	}
}
