package html

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/golden"
)

func TestHolders(t *testing.T) {
	page := still(t, write(t, analyzetest.Held(t)))
	_, section, ok := strings.Cut(page, `<section class="card" id="holders">`)
	if !ok {
		t.Fatal("no section on holders")
	}
	section, _, _ = strings.Cut(section, `<section class="card"`)
	golden.Check(t, "holders.html", []byte(section))
	if strings.Contains(page, "<script") || strings.ContainsAny(page, "\x1b\u202e") {
		t.Error("a name from the file is not escaped")
	}
	if strings.Contains(still(t, write(t, analyzetest.Failed(t))), `id="holders"`) {
		t.Error("a section on holders without a recorder's file")
	}
}
