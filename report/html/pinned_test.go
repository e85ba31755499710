package html

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/golden"
)

func TestPinned(t *testing.T) {
	var all strings.Builder
	for _, c := range []struct {
		program string
		opt     build.Options
	}{{"pinned-cache", build.Options{}}, {"registered", build.Options{}}, {"loader", build.Options{NoTrace: true}}} {
		page := still(t, write(t, analyzetest.Pinned(t, c.program, c.opt)))
		_, section, ok := strings.Cut(page, `<section class="card" id="pinned">`)
		if !ok {
			t.Fatal("no section on pinned memory")
		}
		section, _, _ = strings.Cut(section, `<section class="card"`)
		all.WriteString(section)
	}
	golden.Check(t, "pinned.html", []byte(all.String()))
	if strings.Contains(still(t, write(t, analyzetest.Failed(t))), `id="pinned"`) {
		t.Error("a section on pinned memory where there is none")
	}
}
