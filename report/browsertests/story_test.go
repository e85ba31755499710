package browsertests

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/fixtures/analyzetest"
)

// crowded gives the texts of the picture that touch another one, are cut off, or leave the card.
const crowded = `(() => {
	const card = document.querySelector(".verdict").getBoundingClientRect(), bad = [], texts = [];
	const walk = document.createTreeWalker(document.querySelector(".story"), NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const n = walk.currentNode, range = document.createRange();
		if (!n.data.trim()) continue;
		range.selectNodeContents(n);
		const box = n.parentElement;
		for (const r of range.getClientRects()) if (r.width > 1) texts.push({ text: n.data.trim(), r, box });
		if (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflow === "hidden") bad.push(n.data + ": cut");
	}
	for (const [i, a] of texts.entries()) {
		if (a.r.left < card.left + 4 || a.r.right > card.right - 4) bad.push(a.text + ": outside");
		for (const b of texts.slice(0, i)) if (a.box !== b.box && a.r.left < b.r.right - 1 && b.r.left < a.r.right - 1 &&
			a.r.top + 3 < b.r.bottom - 3 && b.r.top + 3 < a.r.bottom - 3) bad.push(a.text + " on " + b.text);
	}
	return bad;
})()`

// TestStories holds that the picture of each kind of verdict can be read on each screen, by eyes and by a screen reader.
func TestStories(t *testing.T) {
	for _, c := range analyzetest.Verdicts() {
		t.Run(c.Name, func(t *testing.T) {
			p := open(t, c.Open(t), settings{})
			if !eval[bool](p, `!!document.querySelector(".story")`) {
				t.Skip("nothing to draw")
			}
			for _, width := range []int{360, 390, 620, 768, 1024, 1280, 1920} {
				p.run(command(emulation.SetDeviceMetricsOverride,
					emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: 900, DeviceScaleFactor: 1,
						Mobile: width < 500}))
				p.do(``)
				for _, what := range eval[[]string](p, crowded) {
					t.Errorf("%d wide: %s", width, what)
				}
			}
			for _, dark := range []bool{false, true} {
				p.run(p.scheme(dark))
				if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
					t.Fatal(err)
				}
				for _, v := range eval[[]string](p, axeRun, `document.querySelector(".verdict")`) {
					t.Errorf("dark %v: %s", dark, v)
				}
			}
			p.quiet()
		})
	}
}
