package snapshot_test

import (
	"testing"

	"github.com/snapana/snapana/snapshot"
)

func TestStem(t *testing.T) {
	for path, want := range map[string]string{
		"snap.pickle":            "snap",
		"/a/b.c/run.1.pickle.gz": "run.1",
		"x.PKL.ZST":              "x",
		"page.html":              "page",
		".pickle":                ".pickle",
		"dump":                   "dump",
		"dump.bin":               "dump.bin",
	} {
		if got := snapshot.Stem(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if got := snapshot.PlainName("run.pickle.xz"); got != "run.pickle" {
		t.Errorf("%q", got)
	}
}
