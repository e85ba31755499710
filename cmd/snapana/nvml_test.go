package main

import (
	"strings"
	"testing"
)

func TestScreen(t *testing.T) {
	if got := screen("a\nb\n", 24); got != "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J" {
		t.Errorf("%q", got)
	}
	got := screen(strings.Repeat("x\n", 100), 10)
	if strings.Count(got, "\n") != 9 || !strings.Contains(got, "taller") {
		t.Errorf("scrolls: %q", got)
	}
}
