package main

import (
	"os"
	"testing"

	"github.com/snapana/snapana/fixtures/golden"
)

// TestMan holds what a page of the manual, with each form of Markdown that it uses, becomes.
func TestMan(t *testing.T) {
	page, err := os.ReadFile("testdata/page.md")
	if err != nil {
		t.Fatal(err)
	}
	h := parseHelp("About it.\n\nUsage:\n  snapana page FILE [flags]\n\nExamples:\n  snapana page a-b.pickle\n\nFlags:\n" +
		"  -h, --help   help for page\n\nMore: snapana man page\n")
	b := book{version: "1.2.3", date: "2026-11-23"}
	m := b.page(chapter{name: "page", about: "Show a page", text: string(page), help: &h})
	if m.path() != "man1/snapana-page.1" {
		t.Errorf("the page is %s", m.path())
	}
	golden.Check(t, "page.1", m.data)
}
