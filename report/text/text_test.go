package text

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/golden"
	"github.com/snapana/snapana/report/internal/chart"
)

func render(t *testing.T, f func(io.Writer) error) string {
	t.Helper()
	var a, b bytes.Buffer
	if err := f(&a); err != nil {
		t.Fatal(err)
	}
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs differ")
	}
	return a.String()
}

func verdictOf(t *testing.T, r *analyze.Result, o Options) string {
	return render(t, func(w io.Writer) error { return Verdict(w, r, o) })
}

func summaryOf(t *testing.T, r *analyze.Result) string {
	return render(t, func(w io.Writer) error { return Summary(w, r, Options{}) })
}

func markdownOf(t *testing.T, r *analyze.Result) string {
	return render(t, func(w io.Writer) error { return Markdown(w, r) })
}

func TestGolden(t *testing.T) {
	golden.Check(t, "verdict.txt", []byte(verdictOf(t, analyzetest.Failed(t), Options{})))
	golden.Check(t, "verdict-color.txt", []byte(verdictOf(t, analyzetest.Failed(t), Options{Color: true})))
	golden.Check(t, "verdict-many.txt", []byte(verdictOf(t, analyzetest.Ranks(t, 16), Options{})))
	golden.Check(t, "verdict-empty.txt", []byte(verdictOf(t, analyzetest.Empty(t), Options{})))
	golden.Check(t, "verdict.md", []byte(markdownOf(t, analyzetest.Failed(t))))
	golden.Check(t, "verdict-many.md", []byte(markdownOf(t, analyzetest.Ranks(t, 16))))
	golden.Check(t, "verdict-empty.md", []byte(markdownOf(t, analyzetest.Empty(t))))
	golden.Check(t, "verdict-narrow.txt", []byte(verdictOf(t, analyzetest.Failed(t), Options{Width: 80})))
	golden.Check(t, "summary.txt", []byte(summaryOf(t, analyzetest.Failed(t))))
	golden.Check(t, "summary-empty.txt", []byte(summaryOf(t, analyzetest.Empty(t))))
}

// TestFits holds the promise of one screen, also for texts that are far too long.
func TestFits(t *testing.T) {
	long := analyzetest.Ranks(t, 64)
	f := &long.Verdict.Findings[0]
	for range 50 {
		f.Why = append(f.Why, strings.Repeat("word ", 80))
		f.Next = append(f.Next, strings.Repeat("x", 300))
		long.Verdict.Findings = append(long.Verdict.Findings, *f)
		long.Snapshot.Missing = append(long.Snapshot.Missing, strings.Repeat("y", 300))
	}
	long.Verdict.Headline = strings.Repeat("headline ", 100)
	pinned := analyzetest.Pinned(t, "registered", build.Options{})
	one, big, empty := analyzetest.Failed(t), analyzetest.Big(t, 2), analyzetest.Empty(t)
	for _, r := range []*analyze.Result{one, big, long, empty} {
		r.Pinned = pinned.Pinned
	}
	one.Devices[0].Timeline.Checks.Overlaps = 1
	all := map[string]*analyze.Result{"big": big, "long": long, "four": analyzetest.Ranks(t, 4), "one": one,
		"empty": empty, "pinned": pinned}
	for name, r := range all {
		for asked, width := range map[int]int{0: 100, 10: 60, 60: 60, 80: 80, 95: 95, 120: 120, 4000: 120} {
			o := Options{Width: asked}
			scale := 80 // columns for which the bounds on lines are
			fits(t, name+" verdict", verdictOf(t, r, o), maxLines*scale/min(width, scale)+maxPicture, width)
			fits(t, name+" summary", render(t, func(w io.Writer) error { return Summary(w, r, o) }),
				30*scale/min(width, scale), width)
		}
		fits(t, name+" markdown", withoutEmpty(markdownOf(t, r)), maxLines, 1000)
	}
}

// withoutEmpty drops the empty lines of Markdown, which take no room.
func withoutEmpty(out string) string { return regexp.MustCompile(`\n\n+`).ReplaceAllString(out, "\n") }

func fits(t *testing.T, name, out string, limit, width int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) > limit {
		t.Errorf("%s: %d lines, want at most %d", name, len(lines), limit)
	}
	for _, l := range lines {
		if n := chart.Width(l); n > width {
			t.Errorf("%s: %d columns of %d: %q", name, n, width, l)
		}
	}
}

// TestLead checks that a verdict does not rest on a finding which says something else.
func TestLead(t *testing.T) {
	r := analyzetest.Failed(t)
	r.Verdict.Status, r.Verdict.Headline = finding.Healthy, "Healthy."
	r.Verdict.Advise(r.Snapshot, nil, false)
	out := verdictOf(t, r, Options{})
	if strings.Contains(out, "Why") || !strings.Contains(out, "No fix needed") ||
		!strings.Contains(out, "Also    GPU 0: OOM from fragmentation") {
		t.Errorf("a healthy verdict with findings:\n%s", out)
	}
}

// TestNotes checks that nothing is said twice, though the snapshot lists some of it too, and that
// problems come first.
func TestNotes(t *testing.T) {
	r := analyzetest.Failed(t)
	r.Snapshot.Missing = []string{"no times", "no stacks"}
	r.Quality = []analyze.Note{
		{Level: "missing", Text: "no times"}, {Level: "missing", Text: "no stacks"}, {Level: "ok", Text: "all is well"},
		{Level: "problem", Text: "a fault"},
	}
	want := []string{"problem: a fault", "no times", "no stacks", "all is well"}
	if got := notes(r, 4, usualWidth); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	want = []string{"problem: a fault", "... and 2 more notes, in the full report", "all is well"}
	if got := notes(r, 3, usualWidth); !slices.Equal(got, want) {
		t.Errorf("in three lines: %q", got)
	}
}

// TestStateOnly checks that a file without a trace, which has no peak, still says who holds its memory.
func TestStateOnly(t *testing.T) {
	r := analyzetest.Failed(t)
	d := &r.Devices[0]
	d.Moments = slices.DeleteFunc(d.Moments, func(m analyze.Moment) bool { return m.Name != "end" })
	d.OOM, r.Verdict.Findings = nil, nil
	if out := verdictOf(t, r, Options{}); !strings.Contains(out, "on GPU 0 in the dumped state") {
		t.Errorf("nobody holds the memory:\n%s", out)
	}
}

func TestNoControlCharacters(t *testing.T) {
	r := analyzetest.Failed(t)
	r.Verdict.Headline = "a\x1b[2Jb\nc"
	r.Devices[0].Moments[0].Live[0].Site = "x\x1b]0;title\x07.py"
	r.Snapshot.Name = "n\rame"
	if out := verdictOf(t, r, Options{}) + summaryOf(t, r); strings.ContainsAny(out, "\x1b\x07\r") {
		t.Errorf("control characters reached the output: %q", out)
	}
}

// TestDevices checks that each of four devices has its rows, and that the failure of each is answered.
func TestDevices(t *testing.T) {
	out := verdictOf(t, analyzetest.Ranks(t, 4), Options{})
	for _, name := range []string{"GPU 0", "GPU 1", "GPU 2", "GPU 3"} {
		if !regexp.MustCompile(`(?m)^` + name + ` +active peak`).MatchString(out) {
			t.Errorf("no peak of %s:\n%s", name, out)
		}
	}
	if n := strings.Count(out, "\n        out of memory "); n < 2 {
		t.Errorf("%d rows of failures:\n%s", n, out)
	}
	if !strings.Contains(out, "have fit on GPU 3?") {
		t.Errorf("nothing of what would have fit:\n%s", out)
	}
}

// TestASCII holds that what is drawn is drawn in ASCII where there is nothing else, in as many columns.
func TestASCII(t *testing.T) {
	r := analyzetest.Failed(t)
	drawn := regexp.MustCompile(`[^\x00-\x7f]`)
	full, plain := verdictOf(t, r, Options{Width: 80}), verdictOf(t, r, Options{Width: 80, ASCII: true})
	if !strings.ContainsAny(full, "█") || drawn.MatchString(plain) {
		t.Errorf("%q in\n%s\nof\n%s", drawn.FindString(plain), plain, full)
	}
	a, b := strings.Split(full, "\n"), strings.Split(plain, "\n")
	for i := range a {
		if chart.Width(a[i]) != chart.Width(b[i]) {
			t.Errorf("%q is %q", a[i], b[i])
		}
	}
	if !strings.Contains(plain, "^") || !strings.Contains(plain, "x") {
		t.Errorf("no marks:\n%s", plain)
	}
}
