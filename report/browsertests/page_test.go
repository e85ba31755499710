package browsertests

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot"
)

//go:embed testdata/axe/axe.min.js
var axe string

// axeRun gives what axe finds in a part of the page.
const axeRun = `axe.run(%s).then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3)
	.map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")))`

const tabs = `["Flame graph", "Call tree", "Table", "Segments", "Make room", "Allocation", "Events", "Compare"]`

// Nothing in a page complains or asks the network for anything, whatever is opened in it.
func TestQuiet(t *testing.T) {
	all := programs(t)
	all["healthy"] = golden(t, "healthy")
	all["state only"] = random(t, 1, build.RandomOptions{Options: build.Options{NoTrace: true}})
	all["old"] = random(t, 1, build.RandomOptions{Options: build.Options{Torch: 200}})
	all["devices"] = random(t, 1, build.RandomOptions{Options: build.Options{Devices: 3}})
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			p := open(t, r, settings{})
			p.do(`for (const l of snapana.live) { if (!l) continue;
				for (const n of %s) l.tabs.open(n);
				for (const mode of ["stacked", "reserved", "free", "bands"]) for (const color of ["site", "stream",
					"pool", "age", "category"]) { l.view.set({mode, color}); l.view.flush(); }
			}`, tabs)
			p.quiet()
		})
	}
}

// The page is drawn as wide as the screen, never wider.
func TestWidths(t *testing.T) {
	for name, r := range programs(t) {
		p := open(t, r, settings{})
		for _, width := range []int{360, 390, 768, 1180, 1600} {
			p.run(command(emulation.SetDeviceMetricsOverride,
				emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: 900, DeviceScaleFactor: 1,
					Mobile: width < 500}))
			for _, tab := range []string{"Flame graph", "Call tree", "Table", "Segments", "Make room", "Allocation", "Events", "Compare"} {
				p.do(`snapana.live[0].tabs.open(%q); snapana.live[0].view.set({pinned: 5, markA: 2})`, tab)
				if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
					t.Errorf("%s, %s: the page is %d wide on a screen of %d", name, tab, wide, width)
				}
			}
		}
		p.quiet()
	}
}

func TestScreenshots(t *testing.T) {
	for _, name := range []string{"ghost", "fragmentation", "healthy"} {
		r := golden(t, name)
		for look, dark := range map[string]bool{"light": false, "dark": true} {
			for _, width := range []int{390, 1180, 1600} {
				p := open(t, r, settings{width: width, height: 2200, dark: dark, phone: width < 500})
				p.picture(fmt.Sprintf("%s-%d-%s", name, width, look))
				if width == 1180 {
					for _, tab := range []string{"Call tree", "Table", "Segments", "Events", "Compare"} {
						p.do(`snapana.live[0].view.set({markA: 100, markB: 900}); snapana.live[0].tabs.open(%q);
							document.querySelector(".live").scrollIntoView()`, tab)
						p.picture(fmt.Sprintf("%s-%s-%s", name, strings.ReplaceAll(tab, " ", "-"), look))
					}
				}
				p.quiet()
			}
		}
	}
}

// Dark mode changes the page and the pictures in it.
func TestDark(t *testing.T) {
	for _, dark := range []bool{false, true} {
		p := open(t, golden(t, "ghost"), settings{dark: dark})
		light := eval[float64](p, `(() => { const d = document.querySelector(".tl-bands").getContext("2d")
			.getImageData(2, 2, 1, 1).data; return (d[0] + d[1] + d[2]) / 3; })()`)
		body := eval[float64](p, `getComputedStyle(document.querySelector("section.card"))
			.backgroundColor.match(/\d+/g).map(Number).reduce((a, b) => a + b) / 3`)
		if (light < 100) != dark || (body < 100) != dark {
			t.Errorf("dark %v: the timeline is %.0f light, the card %.0f", dark, light, body)
		}
		p.quiet()
	}
	p := open(t, golden(t, "ghost"), settings{})
	p.run(p.scheme(true))
	p.do(``)
	if v := eval[float64](p, `document.querySelector(".tl-bands").getContext("2d").getImageData(2, 2, 1, 1)
		.data[0]`); v > 100 {
		t.Error("the timeline stays light when the system turns dark")
	}
}

// A printed page has the pictures and no buttons.
func TestPrint(t *testing.T) {
	p := open(t, golden(t, "fragmentation"), settings{})
	pdf, err := chromedp.Run(p.ctx, chromedp.PrintToPDF(chromedp.PDFPrintBackground()))
	if err != nil {
		t.Fatal(err)
	}
	if len(pdf) < 50_000 {
		t.Errorf("the page prints to %d bytes", len(pdf))
	}
	p.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	if eval[bool](p, `[...document.querySelectorAll(".toolbar, .searchbar, .tip, .mini")].some(e => e.offsetParent)`) {
		t.Error("the printed page has buttons")
	}
	if !eval[bool](p, `!!document.querySelector(".tl-bands").offsetParent`) {
		t.Error("the printed page has no timeline")
	}
	p.quiet()
}

// Without scripts the still pictures and the tables are all there, and nothing dead is.
func TestNoScript(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{noScript: true, height: 1600, width: 1180})
	p.picture("no-script")
	snap, err := chromedp.Run(p.ctx, chromedp.OuterHTML(chromedp.CSS("html")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{`class="plot"`, "What allocated the live memory", "What to do next"} {
		if !strings.Contains(snap, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	if !p.visible(".still .plot") || p.visible(".live") {
		t.Error("without scripts the still timeline must be seen, and the live one not")
	}
	p.quiet()
}

// visible asks the layout, which needs no script.
func (p *page) visible(selector string) bool {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
	defer cancel()
	box, err := chromedp.Run(ctx, chromedp.Dimensions(chromedp.CSS(selector), chromedp.NodeReady))
	return err == nil && box.Width > 0 && box.Height > 0
}

// The timeline can be used with the keys alone.
func TestKeys(t *testing.T) {
	p := open(t, golden(t, "fragmentation"), settings{})
	reached := false
	for range 60 {
		p.run(chromedp.KeyEvent(kb.Tab))
		if eval[bool](p, `document.activeElement.classList.contains("tl-box")`) {
			reached = true
			break
		}
	}
	if !reached {
		t.Fatal("Tab does not reach the timeline")
	}
	if eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
		t.Error("the focus is not seen")
	}
	cursor := func() int { return eval[int](p, `snapana.live[0].view.state.cursor`) }
	press := func(key string) {
		p.run(chromedp.KeyEvent(key))
		p.do(``)
	}
	tl := p.result.Devices[0].Timeline
	for _, step := range []struct {
		key  string
		want int
	}{{"p", tl.PeakActive.Event}, {"o", tl.OOMs[0].Event}, {kb.Home, 0}, {kb.End, tl.Trace.Len() - 1}} {
		press(step.key)
		if got := cursor(); got != step.want {
			t.Errorf("%q goes to event %d, want %d", step.key, got, step.want)
		}
		now := eval[string](p, `document.activeElement.getAttribute("aria-valuenow")`)
		if now != fmt.Sprint(step.want) {
			t.Errorf("after %q the slider says %s, want %d", step.key, now, step.want)
		}
	}
	at := cursor()
	press(kb.ArrowLeft)
	if cursor() >= at {
		t.Error("the left arrow does not move back")
	}
	span := func() float64 {
		return eval[float64](p, `snapana.live[0].view.state.x1 - snapana.live[0].view.state.x0`)
	}
	whole := span()
	press("+")
	if span() >= whole {
		t.Error("+ does not zoom in")
	}
	left := eval[float64](p, `snapana.live[0].view.state.x0`)
	press("a")
	if eval[float64](p, `snapana.live[0].view.state.x0`) >= left {
		t.Error("a does not pan")
	}
	press("0")
	if span() != whole {
		t.Error("0 does not show all")
	}
	press("w")
	if near := span(); near >= whole {
		t.Error("w does not zoom in")
	} else if press("s"); span() <= near {
		t.Error("s does not zoom out")
	}
	press("?")
	if !eval[bool](p, `document.querySelector("dialog.sheet").matches(":modal")`) {
		t.Error("? does not open the sheet of keys")
	}
	p.picture("keys")
	press(kb.Escape)
	if eval[bool](p, `document.querySelector("dialog.sheet").open`) ||
		!eval[bool](p, `document.activeElement.classList.contains("tl-box")`) {
		t.Error("Escape does not go back from the sheet to the timeline")
	}
	press("m")
	press(kb.Home)
	press("m")
	if eval[bool](p, `snapana.live[0].view.state.markA < 0 || snapana.live[0].view.state.markB !== 0`) {
		t.Error("m does not set marks")
	}
	press("p")
	press("l")
	if eval[int](p, `snapana.live[0].view.state.pinned`) < 0 ||
		!eval[bool](p, `!document.querySelector(".pinned-box").hidden`) {
		t.Error("l does not pin the largest allocation")
	}
	press(kb.Escape)
	if eval[int](p, `snapana.live[0].view.state.pinned`) >= 0 {
		t.Error("Escape does not unpin")
	}
	p.quiet()
}

// Mouse and wheel zoom, pan, pin and mark.
func TestMouse(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	p.do(`document.querySelector(".tl-box").scrollIntoView({block: "center"})`)
	box := eval[[]float64](p, `(() => { const r = document.querySelector(".tl-box").getBoundingClientRect();
		return [r.left, r.top, r.width]; })()`)
	x, y := box[0]+box[2]*0.8, box[1]+350
	p.run(chromedp.MouseClickXY(x, y))
	p.do(``)
	if row := eval[int](p, `snapana.live[0].view.state.pinned`); row < 0 {
		t.Error("a click pins nothing")
	}
	n := p.result.Devices[0].Timeline.Trace.Len()
	if e := eval[int](p, `snapana.live[0].view.state.cursor`); e < n*79/100 || e > n*81/100 {
		t.Errorf("a click at four fifths sets the cursor to event %d of %d", e, n)
	}
	p.wheel(x, y, -300, 0)
	if s := eval[float64](p, `snapana.live[0].view.state.x1 - snapana.live[0].view.state.x0`); s >= float64(n) {
		t.Error("the wheel does not zoom")
	}
	before := eval[float64](p, `snapana.live[0].view.state.x0`)
	p.drag(x, y, x+60, y, 0)
	if eval[float64](p, `snapana.live[0].view.state.x0`) >= before {
		t.Error("a drag does not pan")
	}
	p.picture("zoomed")
	p.quiet()
}

// Two fingers zoom, one pans.
func TestTouch(t *testing.T) {
	p := open(t, golden(t, "healthy"), settings{width: 390, height: 800, phone: true})
	p.run(command(emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}))
	p.do(`document.querySelector(".tl-box").scrollIntoView({block: "center"})`)
	box := eval[[]float64](p, `(() => { const r = document.querySelector(".tl-box").getBoundingClientRect();
		return [r.left, r.top]; })()`)
	x, y := box[0], box[1]+200
	window := func() [2]float64 {
		return eval[[2]float64](p, `[snapana.live[0].view.state.x0, snapana.live[0].view.state.x1]`)
	}
	whole := window()
	p.run(touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x + 100, y}, [2]float64{x + 160, y}),
		touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x + 70, y}, [2]float64{x + 200, y}),
		touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x + 40, y}, [2]float64{x + 240, y}),
		touch(input.DispatchTouchEventTypeTouchEnd))
	p.do(``)
	near := window()
	if near[1]-near[0] > (whole[1]-whole[0])*0.6 {
		t.Errorf("two fingers zoom from %v to %v", whole, near)
	}
	p.run(touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x + 100, y}),
		touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x + 130, y}),
		touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x + 200, y}),
		touch(input.DispatchTouchEventTypeTouchEnd))
	p.do(``)
	if moved := window(); moved[0] >= near[0] {
		t.Errorf("a finger pans from %v to %v", near, moved)
	}
	p.quiet()
}

// Texts of the file reach the page as text, whatever they hold.
func TestHostile(t *testing.T) {
	evil := "</script><script>pwned=1</script><img src=x onerror=pwned=2>\u202e\x00'\"`${pwned=3}"
	stack := build.NewStack("/a/"+strings.ReplaceAll(evil, ":", "")+".py:1:"+evil, "/"+strings.Repeat("long/",
		200_000)+"x.py:2:"+strings.Repeat("n", 1<<20))
	made := build.Run(build.Options{Devices: 1}, func(d *build.Device) {
		for range 40 {
			d.Stack = stack
			d.Alloc(1 << 20)
		}
	})
	r := analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true})
	r.Snapshot.Name = evil
	p := open(t, r, settings{})
	p.do(`for (const n of %s) snapana.live[0].tabs.open(n); snapana.live[0].view.set({pinned: 3})`, tabs)
	if eval[bool](p, `"pwned" in globalThis || !!document.querySelector("img, main script")`) {
		t.Error("a text of the file became part of the page")
	}
	const harmless = "</script><script>pwned=1</script>"
	if text := eval[string](p, `document.querySelector(".pinned-box").innerText`); !strings.Contains(text, harmless) {
		t.Errorf("the text is not to be read: %.300q", text)
	}
	if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > 1180 {
		t.Errorf("a long name makes the page %d wide", wide)
	}
	// The policy holds even for a script that got in.
	p.do(`const s = document.createElement("script"); s.textContent = "pwned = 4"; document.body.append(s)`)
	if eval[bool](p, `"pwned" in globalThis`) {
		t.Error("the policy lets other scripts run")
	}
}

// With several devices one is shown at a time, and links lead to the others.
func TestDevices(t *testing.T) {
	p := open(t, random(t, 2, build.RandomOptions{Options: build.Options{Devices: 5}, Events: 1500}), settings{})
	shown := func() string {
		return eval[string](p, `[...document.querySelectorAll("section[id^=gpu]")]
			.filter(s => !s.hidden).map(s => s.id).join()`)
	}
	if got := shown(); strings.Contains(got, ",") || got == "" {
		t.Errorf("devices %s are shown, want one", got)
	}
	p.do(`document.querySelectorAll(".devices button")[3].click()`)
	if got := shown(); got != "gpu3" {
		t.Errorf("the tab of GPU 3 shows %s", got)
	}
	p.do(`location.hash = "#gpu1"; await new Promise(f => setTimeout(f, 50))`)
	if got := shown(); got != "gpu1" || !eval[bool](p, `!!snapana.live[1].timeline.columns`) {
		t.Errorf("a link to GPU 1 shows %s", got)
	}
	p.picture("devices")
	p.quiet()
}

// axe-core finds nothing.
func TestAccessible(t *testing.T) {
	for _, dark := range []bool{false, true} {
		set := settings{dark: dark}
		if dark { // on a phone, where tables are wider than the screen
			set.width, set.phone = 360, true
		}
		p := open(t, golden(t, "ghost"), set)
		for _, tab := range []string{"Flame graph", "Call tree", "Table", "Segments", "Make room", "Allocation", "Events", "Compare"} {
			p.do(`const tab = %q, { tabs, view } = snapana.live[0]; tabs.open(tab);
				view.show(tab === "Segments" ? "free" : "bands"); view.set({pinned: 5, markA: 10})`, tab)
			if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
				t.Fatal(err)
			}
			for _, v := range eval[[]string](p, axeRun, "document") {
				t.Errorf("dark %v, %s: %s", dark, tab, v)
			}
		}
	}
}

// A file that was read in part, and one with nothing in it, open too.
func TestOdd(t *testing.T) {
	p := open(t, analyzetest.Run(t, &snapshot.Snapshot{Name: "empty"}, analyze.Options{}), settings{})
	p.quiet()
}
