package text

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func TestStats(t *testing.T) {
	for name, o := range map[string]Options{"stats.txt": {}, "stats-all.txt": {All: true}} {
		var b bytes.Buffer
		if err := Stats(&b, analyzetest.Stats(t), o); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, b.Bytes())
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > usualWidth || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%q", line)
			}
		}
	}
}

// TestStatsNarrow checks that series of several files fit a terminal of 80 columns.
func TestStatsNarrow(t *testing.T) {
	out := render(t, func(w io.Writer) error { return Stats(w, analyzetest.Stats(t), Options{Width: MinWidth}) })
	for _, want := range []string{"file      series ", "…0.jsonl  GPU 0 "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestStatsColor checks that colors change nothing but colors.
func TestStatsColor(t *testing.T) {
	var plain, colored bytes.Buffer
	r := analyzetest.Stats(t)
	if err := Stats(&plain, r, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Stats(&colored, r, Options{Color: true}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i, s := range strings.Split(colored.String(), "\x1b[") {
		if i > 0 {
			_, s, _ = strings.Cut(s, "m")
		}
		out.WriteString(s)
	}
	if out.String() != plain.String() || colored.Len() == plain.Len() {
		t.Error("colored text differs")
	}
	if err := Stats(&plain, &analyze.Stats{}, Options{}); err != nil {
		t.Error(err)
	}
}
