package browsertests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/fixtures/build"
)

// settled makes what changed a step of the browser's history, and wentBack waits for another one.
const (
	settled  = `snapana.trail.link()`
	wentBack = `await new Promise(f => addEventListener("popstate", f, {once: true}))`
)

// clipboard keeps what is copied.
const clipboard = `Object.defineProperty(navigator, "clipboard", {value: {writeText: async s => globalThis.copied = s}})`

// readState gives what a link has of the first device's state.
const readState = `(({mode, color, axis, x0, x1, lo, hi, cursor, pinned, markA, markB, search, regex, internals, tab,
	pick, only, inverted, around, focus, segmentStream, segmentPool, segmentLeast}) => JSON.stringify({mode, color, axis,
	x0: Math.round(x0), x1: Math.round(x1), lo, hi, cursor, pinned, markA, markB, search, regex, internals, tab,
	pick: pick?.key, only, inverted, around, focus, segmentStream, segmentPool, segmentLeast}))(
	snapana.live[0].view.state)`

// A link opens the page as it was when the link was copied.
func TestLinkOpensTheSame(t *testing.T) {
	r := golden(t, "ghost")
	for _, change := range []string{
		``,
		`v.go(700)`,
		`v.setAxis("time"); v.zoom(v.full() * 0.25, v.full() * 0.5)`,
		`v.zoom(100, 800); v.set({lo: 4096, hi: 1 << 30, markA: 120, markB: 300, pinned: 7, tab: "Events"})`,
		`v.set({search: "model.py:\\d+ & 100% #=+", regex: true, internals: true, color: "age"}); v.show("stacked")`,
		`v.show("free"); l.tabs.open("Segments")`,
		`v.set({color: "category"}); v.set({only: "activation\ntemporary", inverted: true})`,
		`v.set({focus: l.tabs.shown.root.children[0].name, segmentPool: "large pool", segmentLeast: 20 << 20})`,
		`v.set({around: l.tabs.shown.root.children[0].name})`,
		`document.querySelector("[data-show] button").click()`,
	} {
		p := open(t, r, settings{})
		p.do(`const l = snapana.live[0], v = l.view; %s; %s`, change, settled)
		want, link := eval[string](p, readState), eval[string](p, `location.href`)
		again := visit(t, r, link, settings{})
		if box := eval[string](again, `document.querySelector("input[type=search]").value`); !strings.Contains(want,
			strconv.Quote(box)) {
			t.Errorf("%s: the box of the search has %q", change, box)
		}
		if got := eval[string](again, readState); got != want {
			t.Errorf("%s: %s opens\n%s, want\n%s", change, link, got, want)
		}
		p.quiet()
	}
}

// The button copies the link of what is seen at once.
func TestCopyLink(t *testing.T) {
	p := open(t, golden(t, "healthy"), settings{})
	p.do(`%s; snapana.live[0].view.go(33);
		[...document.querySelectorAll(".toolbar button")].find(b => b.textContent === "Copy link").click()`, clipboard)
	if got := eval[string](p, `copied`); !strings.HasSuffix(got, "#gpu0&at=33") {
		t.Errorf("copied is %q", got)
	}
	p.quiet()
}

// Back undoes step by step what was done with the mouse and the keys, and Forward does it again.
func TestBackIsUndo(t *testing.T) {
	p := open(t, golden(t, "fragmentation"), settings{})
	states := []string{eval[string](p, readState)}
	p.do(`document.querySelector(".tl-box").focus();
		document.querySelector(".tabs").scrollIntoView({block: "center"})`) // where nothing lies over it
	for _, do := range []chromedp.Action[chromedp.Void]{
		chromedp.KeyEvent("+"), chromedp.KeyEvent("p"), chromedp.KeyEvent("l"),
		chromedp.Click(chromedp.CSS(`[role="tab"]:nth-child(4)`)),
	} {
		p.run(do)
		p.do(settled)
		states = append(states, eval[string](p, readState))
	}
	for i := len(states) - 2; i >= 0; i-- {
		p.do(`history.back(); ` + wentBack)
		if got := eval[string](p, readState); got != states[i] {
			t.Errorf("back to step %d: %s, want %s", i, got, states[i])
		}
	}
	if tab := eval[string](p, `document.querySelector("[aria-selected=true]").textContent`); tab != "Flame graph" {
		t.Errorf("after all is undone the tab is %s", tab)
	}
	for i := 1; i < len(states); i++ {
		p.do(`history.forward(); ` + wentBack)
		if got := eval[string](p, readState); got != states[i] {
			t.Errorf("forward to step %d: %s, want %s", i, got, states[i])
		}
	}
	p.quiet()
}

// Back goes to the device that was shown before, and a link within the page undoes nothing.
func TestBackAmongDevices(t *testing.T) {
	p := open(t, random(t, 2, build.RandomOptions{Options: build.Options{Devices: 3}, Events: 900}), settings{})
	const look = `[...document.querySelectorAll("section[id^=gpu]")].find(s => !s.hidden).id + " " + location.hash + " " +
		[0, 1, 2].map(i => snapana.live[i]?.view.state.cursor)`
	first := eval[string](p, look)
	p.do(`snapana.live[0].view.go(20); ` + settled)
	p.do(`document.querySelectorAll(".devices button")[1].click(); ` + settled)
	p.do(`snapana.live[1].view.go(30); ` + settled)
	third := eval[string](p, look)
	if !strings.HasPrefix(third, "gpu1 #gpu1&at=30 20,30,") {
		t.Errorf("the third step is %q", third)
	}
	p.do(`setTimeout(() => location.hash = "#gpu2-timeline"); ` + wentBack)
	if got := eval[string](p, look); !strings.HasPrefix(got, "gpu2 #gpu2-timeline 20,30,") {
		t.Errorf("a link within the page gives %q", got)
	}
	p.do(`history.back(); ` + wentBack)
	if got := eval[string](p, look); got[:20] != third[:20] {
		t.Errorf("back is %q, want %q", got, third)
	}
	p.do(`history.go(-3); ` + wentBack)
	if got := eval[string](p, look); strings.Fields(got)[0] != strings.Fields(first)[0] ||
		!strings.HasPrefix(got[5:], first[5:8]) {
		t.Errorf("back to the beginning is %q, want %q", got, first)
	}
	p.quiet()
}

// Links of other pages, of other releases and of nobody leave the page as it opens, but for what is known of them.
func TestForeignLinks(t *testing.T) {
	r := golden(t, "ghost")
	home := eval[string](open(t, r, settings{}), readState)
	for _, link := range []string{
		"#", "#nothing", "#gpu7&at=3", "#gpu0&at=x&zoom=9-3&show=pie&color=holder&by=never&pin=zzz&pick=holder-9",
		"#gpu0&zoom=1e9-2e9&marks=-5,x&bytes=--&regex=2&pin=b7f_1&pick=growth-77&pick=growth-__proto__",
		"#gpu0&%E0%A4%A=%&&&==&__proto__=1&constructor=2", "#gpu0&at=-7", "#gpu0&tab=Nothing&find=",
		"#gpu0&" + strings.Repeat("a=1&", 5000), "#%00<script>", "#gpu99999999999999999999&at=1",
	} {
		p := open(t, r, settings{})
		again := visit(t, r, p.address+link, settings{})
		got := strings.ReplaceAll(eval[string](again, readState), `"tab":"Nothing"`, `"tab":""`)
		if got != home {
			t.Errorf("%.80s opens\n%s, want\n%s", link, got, home)
		}
		again.quiet()
	}
	p := open(t, r, settings{})
	again := visit(t, r, p.address+"#gpu0&at=99999999&new=thing", settings{})
	if e, n := eval[int](again, `snapana.live[0].view.state.cursor`), r.Devices[0].Timeline.Trace.Len(); e != n-1 {
		t.Errorf("a link behind the end goes to event %d of %d", e, n)
	}
}

// What is pinned covers, and moves nothing; its copy has a line for each fact and frame.
func TestPinnedIsDocked(t *testing.T) {
	for _, width := range []int{390, 1180} {
		p := open(t, golden(t, "ghost"), settings{width: width, height: 900, phone: width < 500})
		p.do(`%s; document.querySelector(".tl-box").scrollIntoView({block: "center"})`, clipboard)
		const height = `document.documentElement.scrollHeight + " " + document.querySelector(".panels").offsetTop`
		before := eval[string](p, height)
		p.do(`document.querySelector(".tl-box").focus()`)
		p.run(chromedp.KeyEvent("l"))
		p.do(``)
		if after := eval[string](p, height); after != before {
			t.Errorf("%d wide: pinning moves the page from %s to %s", width, before, after)
		}
		box := eval[[4]float64](p, `(r => [r.left, r.top, r.right, r.bottom])(document.querySelector(".pinned-box")
			.getBoundingClientRect())`)
		if box[0] < 0 || box[1] < 0 || box[2] > float64(width) || box[3] > 900 {
			t.Errorf("%d wide: the box is at %v", width, box)
		}
		p.picture(fmt.Sprintf("pinned-%d", width))
		p.do(`[...document.querySelectorAll(".pinned-box button")].find(b => b.textContent === "Copy").click()`)
		copied := eval[string](p, `copied`)
		lines := strings.Split(copied, "\n")
		row := eval[int](p, `snapana.live[0].view.state.pinned`)
		if n := len(eval[[]string](p, `(d => d.tables.frames(d.stackOf(%d)))(snapana.live[0].device)`, row)); n == 0 ||
			len(lines) < n+4 || strings.Contains(copied, "freedb7") {
			t.Errorf("the copy has %d lines: %q", len(lines), copied)
		}
		p.quiet()
	}
}
