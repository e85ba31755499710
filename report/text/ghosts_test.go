package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func ghostsOf(t *testing.T, r *analyze.Result, o Options) string {
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
	for _, r := range []*analyze.Result{analyzetest.Held(t), analyzetest.Failed(t), analyzetest.Empty(t)} {
		all.WriteString(ghostsOf(t, r, Options{Min: 1 << 20}) + "\n")
	}
	golden.Check(t, "ghosts.txt", []byte(all.String()))
}

// A ghost is shown however small it is, others only from the asked size on.
func TestGhostsMin(t *testing.T) {
	r := analyzetest.Held(t)
	other := r.Holders.Holders[2]
	other.Standing = holder.Other
	r.Holders.Holders = append(r.Holders.Holders, other, other)
	got := ghostsOf(t, r, Options{Min: 1 << 40})
	for _, want := range []string{"`losses`", "of two_leaks.<locals>.capture", "1 more holder below 1.00 TiB each",
		"2 more holders below 1.00 TiB each"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "parameters of") {
		t.Errorf("holders below the least size:\n%s", got)
	}
}

func TestVerdictNamesTheHolder(t *testing.T) {
	r := analyzetest.Held(t)
	r.Verdict = analyzetest.Failed(t).Verdict // a growth says it itself
	got := verdictOf(t, r, Options{})
	if !strings.Contains(got, "\nHolder  list `losses`, local of two_leaks (programs.py:56) holds 270 MiB;") {
		t.Errorf("got\n%s", got)
	}
	if n := strings.Count(got, "\n"); n > maxLines+maxPicture {
		t.Errorf("%d lines", n)
	}
}
