package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/internal/sample"
)

func ghostsOf(t *testing.T, r *analyze.Result, o GhostOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Ghosts(&b, r, o); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > usualWidth && !o.Color {
			t.Errorf("%d columns: %s", n, line)
		}
		if !o.Color && strings.ContainsAny(line, "\x1b\x07\u202e") {
			t.Errorf("the file drives the terminal: %q", line)
		}
	}
	return b.String()
}

func TestGhostsGolden(t *testing.T) {
	var all strings.Builder
	for _, r := range []*analyze.Result{sample.Held(), sample.Result(), sample.Empty()} {
		all.WriteString(ghostsOf(t, r, GhostOptions{Min: 1 << 20}) + "\n")
	}
	sample.Golden(t, "ghosts.txt", []byte(all.String()))
}

// A ghost is shown however small it is, others only from the asked size on.
func TestGhostsMin(t *testing.T) {
	got := ghostsOf(t, sample.Held(), GhostOptions{Min: 1 << 40})
	for _, want := range []string{"`history`", "Tracker", "1 more holder of less than 1.00 TiB each", "2 more holders of less than 1.00 TiB each"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "parameters of") {
		t.Errorf("holders below the least size:\n%s", got)
	}
}

func TestVerdictNamesTheHolder(t *testing.T) {
	got := verdictOf(t, sample.Held(), Options{})
	if !strings.Contains(got, "\nHolder  closure cell `history` of make.<locals>.validate (train.py:88) keeps 512 MiB;") {
		t.Errorf("got\n%s", got)
	}
	if n := strings.Count(got, "\n"); n > maxLines {
		t.Errorf("%d lines", n)
	}
}
