package browsertests

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/report/html"
)

// TestRanksPage holds that the page of a run fits each screen and can be read, and that a cell leads to its rank's row.
func TestRanksPage(t *testing.T) {
	var list []ranks.Rank
	for i := range 64 {
		list = append(list, ranks.Rank{File: fmt.Sprintf("dumps/rank%d.pickle", i), Status: finding.Healthy,
			Headline: "No problem found.", Reserved: 3 << 30, Active: 2 << 30, Growth: int64(i) << 20, Pieces: 1 << 28})
	}
	list[42].Active, list[42].Status = 5<<30, finding.Capacity
	list = append(list, ranks.Unread("dumps/rank64.pickle", fmt.Errorf("the file ends early")))
	var b bytes.Buffer
	if err := html.WriteRanks(&b, ranks.Compare(list), func(k *ranks.Rank) string { return "r/report.html" }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ranks.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := visit(t, nil, (&url.URL{Scheme: "file", Path: path}).String(), settings{noScript: true})
	p.run(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{}))
	for _, width := range []int{390, 768, 1280, 1920} {
		p.run(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width),
			Height: 900, DeviceScaleFactor: 1, Mobile: width < 500}))
		if over := eval[float64](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%d wide: %v pixels too many", width, over)
		}
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
	p.picture("ranks")
	row := eval[string](p, `[...document.querySelectorAll(".heat a")].find(a => a.textContent.startsWith("rank 42:"))`+
		`.getAttribute("href")`)
	if text := eval[string](p, `document.querySelector(%q).textContent`, row); !bytes.Contains([]byte(text),
		[]byte("5.00 GiB")) {
		t.Errorf("the cell of rank 42 leads to %q", text)
	}
	p.quiet()
}
