package json

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/sample"
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
	sample.Golden(t, "ghosts.json", ghosts(t, sample.Held()))
}

// Without a recorder's file nothing is said of holders.
func TestGhostsWithoutRecorder(t *testing.T) {
	if got := ghosts(t, sample.Result()); bytes.Contains(got, []byte(`"holders"`)) {
		t.Errorf("%s", got)
	}
}
