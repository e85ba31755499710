package main

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"stack", "site", "file", "function", "module", "category", "snapana.report/1"}
	for word, want := range map[string]string{
		"catgory": "category", "Category": "category", "cat": "category", "sites": "site", "sack": "stack",
		"modul": "module", "snapana.report": "snapana.report/1", "thread": "", "": "", "x": "", "fi": "",
		"category/2": "category",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
