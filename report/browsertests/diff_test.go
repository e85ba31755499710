package browsertests

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze/diff"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/html"
)

// openDiff writes the page of a diff and opens it from disk.
func openDiff(t *testing.T, r *diff.Result, set settings) *page {
	t.Helper()
	var b bytes.Buffer
	if err := html.WriteDiff(&b, r, html.DefaultBytes); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "diff.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return visit(t, nil, (&url.URL{Scheme: "file", Path: path}).String(), set)
}

func pair(t *testing.T, a, b string) *diff.Result {
	t.Helper()
	return diff.Compare(analyzetest.Footprint(t, a, "peak"), analyzetest.Footprint(t, b, "peak"))
}

// TestDiffPage holds that the page of a diff fits each screen and can be read, that its table, its flame graph and its
// curves have the figures of the analysis, and that each leads to the others.
func TestDiffPage(t *testing.T) {
	r := pair(t, "base", "ema")
	p := openDiff(t, r, settings{})
	for _, width := range []int{390, 768, 1280, 1920} {
		p.run(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width),
			Height: 900, DeviceScaleFactor: 1, Mobile: width < 500}))
		p.do(``)
		if over := eval[float64](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%d wide: %v pixels too many", width, over)
		}
		p.picture(fmt.Sprintf("diff-%d", width))
	}
	for _, dark := range []bool{false, true} {
		p.run(p.scheme(dark))
		if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
			t.Fatal(err)
		}
		for _, v := range eval[[]string](p, axeRun, `document`) {
			t.Errorf("dark %v: %s", dark, v)
		}
	}

	// The graph is as wide as what changed, and its root has the sides.
	var changed int64
	for i := range r.Pairs {
		changed += max(r.Pairs[i].Delta(), -r.Pairs[i].Delta())
	}
	if got := eval[[3]int64](p, `(c => [c.a, c.b, c.bytes])(snapana.flame.root)`); got[1]-got[0] != r.Delta() || got[2] != changed {
		t.Errorf("the flame graph has %v, want a difference of %d, of %d bytes that changed", got, r.Delta(), changed)
	}
	var names []string
	for _, v := range r.Table("site") {
		names = append(names, fmt.Sprintf("%s %s", units.Signed(v.Delta), v.Name))
	}
	rows := eval[[]string](p, `[...document.querySelectorAll(".groups tbody tr")].map(tr =>
		tr.cells[2].textContent + " " + tr.cells[6].textContent)`)
	if len(rows) != len(names) || rows[0] != names[0] {
		t.Errorf("the table has %d rows, first %q; want %d, first %q", len(rows), rows[0], len(names), names[0])
	}

	// A row shows its bytes over time: at the moment that is compared those of the table.
	p.do(`document.querySelector(".groups tbody button").click()`)
	first := r.Table("site")[0]
	at := eval[[2]int64](p, `snapana.d.sides.map((s, k) => snapana.view.curves().lines[k][snapana.view.sampleOf(s, s.head.at)])`)
	if at != [2]int64{first.A, first.B} {
		t.Errorf("the curves of %s have %v at the peaks, want %d and %d", first.Name, at, first.A, first.B)
	}
	// Lines moved between the two, so what side A has of this one at other moments is not known.
	if !eval[bool](p, `snapana.view.curves().lines[0].every(Number.isNaN)`) {
		t.Errorf("side A has a curve of %s", first.Name)
	}
	if text := eval[string](p, `document.querySelector(".chosen").textContent`); !strings.Contains(text, first.Name) {
		t.Errorf("below the timelines is %q, want %s", text, first.Name)
	}
	p.do(`document.querySelector(".chosen").scrollIntoView()`)
	p.picture("diff-row")

	// A call that has the focus has its memory there, and its rows in the table.
	p.do(settled)
	p.do(`const v = snapana.view, c = snapana.flame.root.children[0].children[0];
		v.set({focus: c.parent.name + "\n" + c.name})`)
	if row := eval[int](p, `snapana.view.state.row`); row != -1 {
		t.Errorf("a call has the focus, and row %d, too", row)
	}
	sums := eval[[2]int64](p, `(c => [c.b - c.a, snapana.d.ways.reduce((sum, _, i) =>
		sum + (snapana.view.chosen.has[0](i) ? snapana.d.delta(i) : 0), 0)])(snapana.flame.root.children[0].children[0])`)
	if sums[0] != sums[1] {
		t.Errorf("the call that has the focus has %d bytes more, its pairs %d", sums[0], sums[1])
	}
	p.do(`snapana.trail.link(); history.back(); ` + wentBack)
	if row := eval[int](p, `snapana.view.state.row`); row != 0 {
		t.Errorf("Back leads to row %d, want the one before", row)
	}
	p.quiet()
}

// TestDiffCursor holds that one cursor shows the same step of both sides, by their own events, and that a link opens the
// page as it was.
func TestDiffCursor(t *testing.T) {
	r := pair(t, "base", "sequence")
	p := openDiff(t, r, settings{})
	if axes := eval[[]string](p, `snapana.d.axes`); strings.Join(axes, " ") != "step share event" {
		t.Fatalf("the page has the axes %v", axes)
	}
	for _, axis := range []string{"step", "share", "event"} {
		p.do(`snapana.view.setAxis(%q); snapana.view.set({cursor: snapana.view.full() * 0.43})`, axis)
		got := eval[[2]float64](p, `snapana.d.sides.map(s => s.event[snapana.view.sample(s, snapana.view.state.cursor)])`)
		var steps [2]int
		for k, f := range []*footprint.Footprint{r.A, r.B} {
			steps[k] = -1
			for i, s := range f.Course.Steps {
				if int(got[k]) >= s.First {
					steps[k] = i
				}
			}
		}
		if axis == "step" && steps[0] != steps[1] {
			t.Errorf("the cursor is in steps %v", steps)
		}
		want := fmt.Sprintf("B − A %s", units.Signed(eval[int64](p, `(([a, b]) => b - a)(snapana.d.sides.map(s =>
			s.active[snapana.view.sample(s, snapana.view.state.cursor)]))`)))
		if text := eval[string](p, `document.querySelector(".tl-legend").textContent`); !strings.Contains(text, want) {
			t.Errorf("by %s the legend says %q, want %q", axis, text, want)
		}
	}
	const state = `JSON.stringify(Object.entries(snapana.view.state).map(([k, v]) => [k, typeof v === "number" ?
		Math.round(v * 1000) / 1000 : v]))`
	for _, change := range []string{
		`v.set({by: "category,site", row: 2, sort: "name", down: false})`,
		`v.setAxis("share"); v.zoom(20, 40); v.set({cursor: 31, search: "forward & model", inverted: true})`,
		`v.set({by: "category"}); v.set({row: 2}); v.set({around: snapana.flame.root.children[0].name})`,
	} {
		p.do(`const v = snapana.view; v.restore({}); %s; snapana.trail.link()`, change)
		want, link := eval[string](p, state), eval[string](p, `location.href`)
		again := visit(t, nil, link, settings{})
		if got := eval[string](again, state); got != want {
			t.Errorf("%s opens\n%s, want\n%s", link, got, want)
		}
		again.quiet()
	}
	p.quiet()
}

// TestDiffDrag holds that a drag with Shift shows the part of the axis that it went over.
func TestDiffDrag(t *testing.T) {
	p := openDiff(t, pair(t, "base", "ema"), settings{})
	box := eval[[4]float64](p, `(e => { e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
		return [r.x + e.clientLeft, r.y, e.clientWidth, r.height]; })(document.querySelector(".overlay"))`)
	full, y := eval[float64](p, `snapana.view.full()`), box[1]+box[3]/2
	p.drag(box[0]+box[2]*0.75, y, box[0]+box[2]*0.25, y, kb.ModifierShift)
	got := eval[[2]float64](p, `[snapana.view.state.x0, snapana.view.state.x1]`)
	if math.Abs(got[0]-full/4) > full/50 || math.Abs(got[1]-full*3/4) > full/50 {
		t.Errorf("a drag over the middle half of %v shows %v", full, got)
	}
	p.quiet()
}

// TestDiffWithoutTraces holds that the page shows what there is of sides without a trace.
func TestDiffWithoutTraces(t *testing.T) {
	bare := *analyzetest.Footprint(t, "base", "peak")
	bare.Course = nil
	r := diff.Compare(&bare, analyzetest.Footprint(t, "ema", "peak"))
	p := openDiff(t, r, settings{width: 1180, height: 900})
	if axes := eval[[]string](p, `snapana.d.axes`); strings.Join(axes, " ") != "step share" {
		t.Errorf("with steps on one side the page has the axes %v", axes)
	}
	if got := eval[[]int64](p, `[...snapana.d.sides[1].active]`); len(got) != len(r.B.Steps) || got[1] != r.B.Steps[1].Peak {
		t.Errorf("the peaks of steps are compared with %v", got)
	}
	p.picture("diff-steps")
	p.quiet()
	bare.Steps = nil
	p = openDiff(t, diff.Compare(&bare, &bare), settings{noScript: false})
	if eval[bool](p, `document.querySelector("#timelines-live").hasChildNodes()`) {
		t.Error("there are timelines without traces")
	}
	p.quiet()
}

// TestDiffOfMoments holds that two moments of one trace are marks on one line.
func TestDiffOfMoments(t *testing.T) {
	moments := analyzetest.Footprints(t, "leak", "step:1", "step:5")
	r := diff.Compare(moments[0], moments[1])
	p := openDiff(t, r, settings{})
	text := eval[string](p, `document.querySelector(".tl-legend").textContent`)
	if strings.Contains(text, "B − A") || !strings.Contains(text, units.Bytes(r.B.Totals.Active)) {
		t.Errorf("at the moment of B the legend says %q", text)
	}
	p.do(`snapana.view.set({by: "stack", row: 0})`)
	if !eval[bool](p, `snapana.view.curves().lines.some(l => Math.max(...l) > 0)`) {
		t.Error("a stack that is gone has no curve")
	}
	p.do(`snapana.view.set({focus: snapana.d.ways.find((_, p) => snapana.d.a[p] && !snapana.d.b[p]).map(f => f.name).join("\n")})`)
	if got := eval[[]string](p, `snapana.view.curves().lines.map(l => l.every(v => isNaN(v)) ? "unknown" : Math.max(...l) > 0 ?
		"known" : "nothing")`); !slices.Equal(got, []string{"known", "unknown"}) {
		t.Errorf("of a call that is gone at B the lines are %q", got)
	}
	p.picture("diff-moments")
	p.quiet()
}
