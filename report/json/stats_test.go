package json

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/sample"
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
	sample.Golden(t, "stats.json", writeStats(t, sample.Stats(t)))
}
