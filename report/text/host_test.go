package text

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func recording(t *testing.T, name string) *sidecar.File {
	t.Helper()
	f, err := sidecar.Open(t.Context(), filepath.Join("..", "..", "fixtures", name), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHost prints two processes, one with counters of a device.
func TestHost(t *testing.T) {
	var r analyze.Stats
	for _, name := range []string{"host/loader_fork.snapana", "holders/results_accumulate/run.snapana",
		"host/fills_cache.snapana"} {
		path := filepath.Join("..", "..", "fixtures", name)
		if err := r.Add(t.Context(), path, nil, analyze.StatsOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := Stats(&b, &r, Options{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "hosts.txt", b.Bytes())
}

func TestEnvironments(t *testing.T) {
	c, err := environment.Compare(recording(t, "host/loader_fork.snapana"),
		recording(t, "holders/healthy_train/run.snapana"))
	if err != nil {
		t.Fatal(err)
	}
	c.B = "other\x1b[31m.snapana"
	for name, all := range map[string]bool{"environments.txt": false, "environments-all.txt": true} {
		var b bytes.Buffer
		if err := Environments(&b, c, Options{All: all}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, b.Bytes())
	}
}
