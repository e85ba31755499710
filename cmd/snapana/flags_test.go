package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"1": 1, "4096": 4096, "10k": 10 << 10, "512MiB": 512 << 20, "8 GB": 8 << 30, "1.5g": 3 << 29, "2T": 2 << 40,
		" 7b ": 7,
	} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, error %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0.2", "k", "GiB", "1e400", "NaN", "inf", "9E18G", "1x", "1 2"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q was taken for %d", text, s)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("open a\nb\x1b[2J\u202e: no\tsuch\u009b\x9b31m  file ü"); got != "open a b [2J : no such \ufffd31m  file ü" {
		t.Errorf("%q", got)
	}
}
