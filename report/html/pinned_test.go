package html

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/snapshot/load"
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

// TestPinnedAlone checks that a file without memory of a GPU has no section on one, which would be full of zeros.
func TestPinnedAlone(t *testing.T) {
	s, err := load.Open(t.Context(), "../../fixtures/lab/traces/2.14/pinned_only.pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Segments, s.Blocks = nil, nil
	page := write(t, analyzetest.Run(t, s, analyze.Options{}))
	if strings.Contains(page, `id="gpu0"`) || strings.Contains(page, "describes no device") ||
		!strings.Contains(page, `id="pinned"`) {
		t.Error("the page shows a device of which nothing is known")
	}
}
