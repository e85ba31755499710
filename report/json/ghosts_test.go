package json

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func ghosts(t *testing.T, r *analyze.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteGhosts(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGhostsGolden(t *testing.T) {
	golden.Check(t, "ghosts.json", ghosts(t, analyzetest.Held(t)))
}

// Without a recorder's file nothing is said of holders.
func TestGhostsWithoutRecorder(t *testing.T) {
	if got := ghosts(t, analyzetest.Failed(t)); bytes.Contains(got, []byte(`"holders"`)) {
		t.Errorf("%s", got)
	}
}
