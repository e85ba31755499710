package json

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func writeStats(t *testing.T, r *analyze.Stats) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteStats(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStatsGolden(t *testing.T) {
	golden.Check(t, "stats.json", writeStats(t, analyzetest.Stats(t)))
}
