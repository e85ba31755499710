package html

import (
	"bytes"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/fixtures/analyzetest"
)

func writeDiff(t *testing.T, r *diff.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDiff(&b, r, DefaultBytes); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// stillDiff is the page of a diff without what it brings along for its script.
func stillDiff(t *testing.T, page string) string {
	t.Helper()
	before, _, _ := strings.Cut(page, `<script type="application/octet-stream" id="snapana-data">`)
	if !strings.HasSuffix(page, "<script>"+diffScript()+"</script>\n</body>\n</html>\n") {
		t.Error("the page does not end with the script")
	}
	return before + "</body>\n</html>\n"
}

// TestDiffPage holds that the page says what the terminal says, has its tables without a script, and needs no network.
func TestDiffPage(t *testing.T) {
	base := analyzetest.Footprint(t, "base", "peak")
	for _, name := range []string{"base", "sequence", "flash", "moved", "leak"} {
		r := diff.Compare(base, analyzetest.Footprint(t, name, "peak"))
		page := writeDiff(t, r)
		if page != writeDiff(t, r) {
			t.Error("two pages of one difference are not equal")
		}
		still := stillDiff(t, page)
		balanced(t, still)
		if found := references.FindAllString(hashes.ReplaceAllString(still, ""), 3); found != nil {
			t.Errorf("%s: the page refers to something outside: %q", name, found)
		}
		want := append(verdict.WhyDifferent(r, false), verdict.Difference(r), name+".pickle.xz")
		for i := range r.Guards {
			want = append(want, verdict.GuardOf(&r.Guards[i]))
		}
		for _, v := range r.Table("site")[:3] {
			want = append(want, v.Name)
		}
		contains(t, visible(still), want...)
	}
}

// TestDiffPageWithoutTraces holds that the page of sides without a trace says so, and has all else.
func TestDiffPageWithoutTraces(t *testing.T) {
	bare := func(steps bool) *footprint.Footprint {
		f := *analyzetest.Footprint(t, "base", "peak")
		f.Course = nil
		if !steps {
			f.Steps = nil
		}
		return &f
	}
	full := analyzetest.Footprint(t, "ema", "peak")
	for want, r := range map[string]*diff.Result{
		"Side A comes without a trace, so the peaks of steps are compared.":             diff.Compare(bare(true), full),
		"Side A comes without a trace: only the moment that is compared is known.":      diff.Compare(bare(false), full),
		"Neither side comes with a trace, so the peaks of steps are compared.":          diff.Compare(bare(true), bare(true)),
		"Neither side comes with a trace, so nothing is known between the moments that": diff.Compare(bare(false), bare(false)),
	} {
		contains(t, visible(writeDiff(t, r)), want)
	}
}

// TestDiffPageEscapes holds that names from the files are shown as text.
func TestDiffPageEscapes(t *testing.T) {
	const evil = `</title></style><script>alert(1)</script><img src=x onerror="alert(2)">` + "\u202e\x00\n"
	f := *analyzetest.Footprint(t, "base", "peak")
	f.Name, f.When, f.Unit = evil, evil, evil
	f.Frames, f.Stacks = nil, nil
	for i := range f.Groups {
		f.Groups[i].Site, f.Groups[i].Module, f.Groups[i].Stack = evil, evil, -1
	}
	page := stillDiff(t, writeDiff(t, diff.Compare(&f, analyzetest.Footprint(t, "ema", "peak"))))
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.ContainsAny(page, "\x00\u202e") {
		t.Error("the page holds markup or control characters from the file")
	}
	balanced(t, page)
}
