package browsertests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/units"
)

// flameButton clicks a button of the flame graph.
func (p *page) flameButton(text string) {
	p.Helper()
	p.do(`[...document.querySelectorAll(".flame-buttons button")].find(b => b.textContent === %q).click()`, text)
}

// Inverted, the innermost calls come first, and a function can be looked at with its callers and callees; the sums are
// those of the stacks.
func TestFlameTurns(t *testing.T) {
	for _, name := range []string{"ghost", "fragmentation"} {
		p := open(t, golden(t, name), settings{})
		tree := func(part string) map[string]int64 {
			return eval[map[string]int64](p, `Object.fromEntries(snapana.live[0].tabs.shown.%s.children.map(c => [c.name,
				c.bytes]))`, part)
		}
		// sums adds up the live memory by what a script makes of the frames f of a stack, outermost first.
		sums := func(script string) map[string]int64 {
			return eval[map[string]int64](p, `(() => {
				const { view, device: d } = snapana.live[0], out = {};
				for (const row of view.live()) {
					const f = d.tables.frames(d.stackOf(row)).reverse(), name = (%s)(f);
					if (name !== undefined) out[name] = (out[name] ?? 0) + d.lives.size[row];
				}
				return out;
			})()`, script)
		}
		same := func(what string, got, want map[string]int64) {
			t.Helper()
			if fmt.Sprint(got) != fmt.Sprint(want) || len(got) == 0 {
				t.Errorf("%s, %s: %v, want %v", name, what, got, want)
			}
		}
		p.do(`snapana.live[0].view.set({color: "category"})`)
		same("as it opens", tree("root"), sums(`f => f[0]`))
		p.flameButton("Inverted")
		same("inverted", tree("root"), sums(`f => f.at(-1)`))
		p.do(`document.querySelector(".flame canvas").scrollIntoView({block: "center"})`)
		box := eval[[2]float64](p, `(r => [r.left + 30, r.top + 30])(document.querySelector(".flame canvas")
			.getBoundingClientRect())`)
		p.run(chromedp.MouseClickXY(box[0], box[1]))
		p.do(``)
		focus := eval[string](p, `snapana.live[0].view.state.focus`)
		if focus == "" || strings.Contains(focus, "\n") {
			t.Errorf("%s: a click on the second row focuses on %q", name, focus)
		}
		p.flameButton("Callers and callees")
		p.picture("sandwich-" + name)
		same("callees", map[string]int64{"": eval[int64](p, `snapana.live[0].tabs.shown.root.bytes`)},
			sums(fmt.Sprintf(`f => f.includes(%q) ? "" : undefined`, focus)))
		if len(tree("above")) > 0 {
			same("callers", tree("above"), sums(fmt.Sprintf(`f => f[f.indexOf(%q) - 1]`, focus)))
		}
		p.do(`snapana.trail.link(); history.back(); ` + wentBack)
		p.do(`for (let held = 0; held < 3;) { // it may be drawn anew behind the step back
			const canvas = document.querySelector(".flame canvas");
			held = document.activeElement == canvas ? held + 1 : 0;
			canvas.focus();
			await new Promise(f => requestAnimationFrame(f));
		}`)
		for _, key := range []string{"c", "i"} {
			p.run(chromedp.KeyEvent(key))
		}
		p.do(``)
		if !eval[bool](p, `(s => s.inverted && !s.around && !s.focus)(snapana.live[0].view.state)`) {
			t.Errorf("%s: the key I does not go back to the inverted graph", name)
		}
		p.quiet()
	}
}

// A search leaves the graph whole, and says how much of it matches.
func TestFlameSearch(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	p.do(`snapana.live[0].view.set({search: "validate"})`)
	tl, e := p.result.Devices[0].Timeline, eval[int](p, `snapana.live[0].view.state.cursor`)
	kept := attribution.Hold(p.result.Snapshot, tl, tl.StateAt(e),
		attribution.Query{Match: regexp.MustCompile("validate")}).Kept()
	want := fmt.Sprintf("in the stacks of %s, %s of what is live", units.Bytes(kept.Rounded),
		units.Percent(kept.Rounded, active(tl, e)))
	if got := eval[string](p, `document.querySelector(".flame .about").textContent`); !strings.Contains(got, want) {
		t.Errorf("the graph says %q, want %q", got, want)
	}
	if got := eval[int64](p, `snapana.live[0].tabs.shown.root.bytes`); got != active(tl, e) {
		t.Errorf("the graph has %d bytes, want %d", got, active(tl, e))
	}
	p.do(`document.querySelector(".flame").scrollIntoView({block: "center"})`)
	p.picture("flame-search")
	p.quiet()
}
