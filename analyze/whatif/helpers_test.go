package whatif_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/load"
)

const (
	shared = "../../../shared/"
	mib    = 1 << 20
)

// glob lists files of the shared corpus, and skips the test where that is not.
func glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(shared + pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("no files %s", pattern)
	}
	return files
}

func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// program opens a file and makes the program of its first device.
func program(t testing.TB, path string) (*whatif.Program, *whatif.Accuracy) {
	t.Helper()
	s := open(t, path)
	return loaded(t, s, timeline.Build(s, 0))
}

// loaded makes the program of a timeline and validates it.
func loaded(t testing.TB, s *snapshot.Snapshot, tl *timeline.Timeline) (*whatif.Program, *whatif.Accuracy) {
	t.Helper()
	p, v, err := whatif.Load(t.Context(), s, tl)
	if err != nil {
		t.Fatal(err)
	}
	return p, v
}

// run replays a program under a settings string.
func run(t testing.TB, p *whatif.Program, conf string, o whatif.Options) *whatif.Outcome {
	t.Helper()
	set, err := p.Setting(conf)
	if err != nil {
		t.Fatal(err)
	}
	o.Conf = set.Conf
	out, err := p.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
