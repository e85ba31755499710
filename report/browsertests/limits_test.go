package browsertests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/serve"
)

// replayed are programs that were replayed under other settings.
func replayed(t *testing.T) map[string]*analyze.Result {
	t.Helper()
	return map[string]*analyze.Result{"fragmentation": golden(t, "fragmentation"), "healthy": golden(t, "healthy"),
		"random": analyzetest.Run(t, buildtest.Read(t, build.Random(2, build.RandomOptions{Events: 900, Live: 80})),
			analyze.Options{}),
	}
}

// With any limit the page says what the replay comes to: itself at the limits that were replayed, and bounds that hold
// at all others.
func TestLimits(t *testing.T) {
	for name, r := range replayed(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(4, 4))
			a := r.Devices[0].WhatIf
			p.do(tickAll)
			exact := 0
			for row := range a.Rows {
				l := a.Rows[row].Ladder
				if l == nil {
					t.Fatalf("%s has no ladder", a.Rows[row].Text)
				}
				for _, x := range l.Rungs {
					p.do(`snapana.live[0].view.set({limit: %d})`, x.Limit)
					if says := p.fate(row); !strings.Contains(says, fateOf(x)) {
						t.Errorf("%s with %d bytes: the page says %q, want %q", a.Rows[row].Text, x.Limit, says, fateOf(x))
					}
					exact++
				}
				for range 5 {
					limit := rng.Int64N(a.Rows[row].ReservedPeak*5/4) + 1
					x, err := a.At(t.Context(), row, limit)
					if err != nil {
						t.Fatal(err)
					}
					b := eval[[2]int](p, `(() => { const b = snapana.fit.bounds(snapana.live[0].device.whatif.replays[%d].ladder, %d);
						return [b.safe, b.sure].map(v => v === Infinity ? 1e9 : v); })()`, row, limit)
					event := x.Failed
					if event < 0 && !x.Start {
						event = 1e9
					}
					if !x.Start && (event < b[0] || event > b[1]) {
						t.Errorf("%s with %d bytes: fails at %d, the page's bounds are %v", a.Rows[row].Text, limit, event, b)
					}
				}
			}
			if exact < 8 {
				t.Errorf("only %d limits were replayed", exact)
			}
			p.quiet()
		})
	}
}

// tickAll has the page show all settings.
const tickAll = `document.querySelectorAll("table.whatif input:not(:checked)").forEach(c => c.click())`

// fate is what the page says of a setting.
func (p *page) fate(row int) string {
	p.Helper()
	return eval[string](p, `document.querySelectorAll(".fates .fate")[%d].textContent`, row)
}

func fateOf(x whatif.Rung) string {
	switch {
	case x.Start:
		return "before the trace does not fit"
	case x.Failed < 0:
		return "no request fails, " + units.Bytes(x.Peak)
	}
	return fmt.Sprintf("first fails at event %s, for %s", units.Count(int64(x.Failed)), units.Bytes(x.Asked))
}

// The slider moves with the keys and the buttons, which go from one replayed limit to the next, and the address keeps it.
func TestLimitSlider(t *testing.T) {
	r := golden(t, "fragmentation")
	p := open(t, r, settings{})
	limit := func() int64 { return eval[int64](p, `snapana.live[0].view.state.limit`) }
	if n := eval[int](p, `document.querySelectorAll(".fates li").length`); n != 2 {
		t.Errorf("the page begins with %d settings", n)
	}
	p.do(tickAll)
	if n := eval[int](p, `document.querySelectorAll(".fates li").length`); n != len(r.Devices[0].WhatIf.Rows) {
		t.Errorf("with all ticked %d settings are shown", n)
	}
	p.do(`document.querySelector(".limits input[type=range]").focus()`)
	says := func() string { return eval[string](p, `document.querySelector(".limits output").textContent`) }
	if s := says(); !strings.Contains(s, "as in the run") {
		t.Errorf("the page begins with %q", s)
	}
	p.run(chromedp.KeyEvent(kb.Home))
	p.do(``)
	if limit() == 0 || limit() > 64<<20 || !strings.Contains(p.fate(0), "fails") {
		t.Errorf("after Home the limit is %d: %s", limit(), p.fate(0))
	}
	stops := map[int64]bool{}
	for i := range r.Devices[0].WhatIf.Rows {
		for _, x := range r.Devices[0].WhatIf.Rows[i].Ladder.Rungs {
			stops[x.Limit] = true
		}
	}
	for range 3 {
		before := limit()
		p.do(`document.querySelectorAll(".limit-bar button")[1].click()`)
		if now := limit(); now <= before || !stops[now] {
			t.Errorf("the button goes from %d to %d, which was not replayed", before, now)
		}
	}
	p.do(`document.querySelector(".fates .event-link").click()`)
	if at := eval[int](p, `snapana.live[0].view.state.cursor`); !strings.Contains(p.fate(0), units.Count(int64(at))) {
		t.Errorf("the cursor goes to event %d: %s", at, p.fate(0))
	}
	link := eval[string](p, `snapana.trail.link()`)
	if want := fmt.Sprintf("limit=%d", limit()); !strings.Contains(link, want) {
		t.Errorf("the link %s lacks %s", link, want)
	}
	p.quiet()
}

// A server replays each limit that one asks for.
func TestServedLimits(t *testing.T) {
	r := golden(t, "fragmentation")
	s, err := serve.New(r, serve.DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := serve.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	p := visit(t, r, s.URL(l), settings{})
	a := r.Devices[0].WhatIf
	p.do(tickAll)
	rng := rand.New(rand.NewPCG(6, 6))
	for range 3 {
		limit := rng.Int64N(a.Rows[0].ReservedPeak>>21)<<21 + 2<<20
		p.do(`snapana.live[0].view.set({limit: %d}); snapana.live[0].view.flush();
			while ([...document.querySelectorAll(".fates .fate")].some(e => /between|latest|before event|not known/.test(e.textContent)))
				await new Promise(f => setTimeout(f, 50))`, limit)
		for row := range a.Rows {
			x, err := a.At(t.Context(), row, limit)
			if err != nil {
				t.Fatal(err)
			}
			if says := p.fate(row); !strings.Contains(says, fateOf(x)) && !strings.Contains(says, "no request fails") {
				t.Errorf("%s with %d bytes: the page says %q, want %q", a.Rows[row].Text, limit, says, fateOf(x))
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestLimitScreenshots(t *testing.T) {
	for look, dark := range map[string]bool{"light": false, "dark": true} {
		for _, width := range []int{390, 1280} {
			r := golden(t, "fragmentation")
			p := open(t, r, settings{width: width, height: 1000, dark: dark, phone: width < 500})
			for i, limit := range []int64{0, 10 << 30} {
				p.do(`snapana.live[0].view.set({limit: %d}); document.querySelector(".limits").scrollIntoView()`, limit)
				p.picture(fmt.Sprintf("limit%d-%d-%s", i, width, look))
			}
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			p.quiet()
		}
	}
}
