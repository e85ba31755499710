package browsertests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/report/serve"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// recorded are snapshots of which the recorder saw the holders.
func recorded(t testing.TB, name string) *analyze.Result {
	t.Helper()
	dir := filepath.Join("../../fixtures/holders", name)
	s, err := load.Open(t.Context(), filepath.Join(dir, "snapshot.pickle.zst"), load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sidecar.Open(t.Context(), filepath.Join(dir, "run.snapana"), sidecar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyzetest.Run(t, s, analyze.Options{NoReplay: true, Recorder: f})
}

// holdersOf gives the holder of each life of the first device that is live at the dump.
func holdersOf(r *analyze.Result) map[int32]*holder.Holder {
	of := map[int32]*holder.Holder{}
	for i := range r.Holders.Holders {
		h := &r.Holders.Holders[i]
		for _, b := range h.Blocks {
			if b.Device == r.Devices[0].Timeline.Device {
				of[b.Row] = h
			}
		}
	}
	return of
}

// The box beside the pointer names the holder that was joined in Go.
func TestHoverNamesTheHolder(t *testing.T) {
	for _, name := range []string{"results_accumulate", "hook_closure", "healthy_train"} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			p, rng, of := open(t, r, settings{}), rand.New(rand.NewPCG(1, 1)), holdersOf(r)
			tl := r.Devices[0].Timeline
			p.do(`document.querySelector(".tl-box").scrollIntoView({block: "center"})`)
			box := eval[[]float64](p, `(() => { const r = document.querySelector(".tl-box").getBoundingClientRect();
				return [r.left, r.top]; })()`)
			got := eval[pictured](p, readPicture)
			held, gone := 0, 0
			for range 400 {
				x, y := got.Width*rng.IntN(101)/101, rng.IntN(got.Height)
				row := stacked(tl, got.Event[x], got.Height-1-y, got.Height, got.Lo, got.Hi)
				if row < 0 {
					continue
				}
				h := of[int32(row)]
				want := "At the dump held by "
				switch l := &tl.Lives[row]; {
				case h != nil:
					if held++; held > 20 {
						continue
					}
					if h.Standing == holder.Ghost {
						want += "ghost "
					}
					want += chart.HolderName(h)
				case l.Freed >= 0:
					if gone++; gone > 4 {
						continue
					}
					want = "Holder unknown: freed before the dump."
				default:
					want = "At the dump no tensor was seen in it."
					if use, _ := r.Devices[0].Categories.Of(int32(row)); use == category.Workspace {
						want = "A library's workspace: no Python tensor shows it."
					}
				}
				p.run(moved(box[0]+float64(x)+0.5, box[1]+float64(y)+18.5))
				p.do(``)
				if tip := strings.Join(strings.Fields(eval[string](p, `document.querySelector(".tip")
					.innerText`)), " "); !strings.Contains(tip, want) {
					t.Fatalf("row %d at event %d: %q lacks %q", row, got.Event[x], tip, want)
				}
			}
			if held == 0 {
				t.Error("the pointer never was on a block with a holder")
			}
			p.quiet()
		})
	}
}

// heldSum is a line of the tab of holders.
type heldSum struct {
	Name         string
	Bytes, Count int64
}

// sumsAt is what the tab of holders must have after an event.
func sumsAt(r *analyze.Result, event int) []heldSum {
	of, sums := holdersOf(r), map[string]heldSum{}
	tl := r.Devices[0].Timeline
	for i := range tl.Lives {
		l := &tl.Lives[i]
		if !l.LiveAfter(event) {
			continue
		}
		name := "no tensor was seen in it"
		switch h := of[int32(i)]; {
		case h != nil:
			name = chart.HolderName(h)
		case l.Freed >= 0:
			name = "gone"
		case l.FreeRequested != -1:
			name = "waits"
		}
		sums[name] = heldSum{name, sums[name].Bytes + l.Rounded, sums[name].Count + 1}
	}
	var out []heldSum
	for _, s := range sums {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b heldSum) int { return strings.Compare(a.Name, b.Name) })
	return out
}

const readHolders = `snapana.live[0].holders.sums().map(s =>
	({Name: snapana.live[0].device.tables.holders[s.name]?.name ?? (s.name === "-1" ? "gone" : "waits"),
	Bytes: s.bytes, Count: s.count}))`

// The tab of holders sums, at random moments, what Go sums; at the dump that is the result of
// the join. A click highlights the blocks of a holder, and the line of the search sums them.
func TestHoldersTab(t *testing.T) {
	for _, name := range []string{"results_accumulate", "epoch_history", "exception_traceback", "reference_cycle",
		"healthy_train"} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, name)
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(2, 2))
			n := r.Devices[0].Timeline.Trace.Len()
			p.do(`snapana.live[0].tabs.open("Holders")`)
			for _, e := range []int{n - 1, rng.IntN(n), rng.IntN(n), rng.IntN(n)} {
				p.do(`snapana.live[0].view.go(%d)`, e)
				got := eval[[]heldSum](p, readHolders)
				slices.SortFunc(got, func(a, b heldSum) int { return strings.Compare(a.Name, b.Name) })
				if want := sumsAt(r, e); !slices.Equal(got, want) {
					t.Errorf("after event %d: %v, want %v", e, got, want)
				}
			}
			p.do(`snapana.live[0].view.go(%d)`, n-1)
			for i := range r.Holders.Holders {
				h := &r.Holders.Holders[i]
				p.do(`document.querySelector('[data-holder="%d"]').click()`, i+1)
				want := fmt.Sprintf("%s; at the cursor %s in %s", chart.HolderName(h), units.Bytes(h.Bytes),
					units.Count(h.Count))
				if found := eval[string](p, `document.querySelector(".found")
					.textContent`); !strings.Contains(found, want) {
					t.Errorf("the page says %q, want %q", found, want)
				}
				lit := eval[int64](p, `(() => { const { view, device: d } = snapana.live[0];
					return d.lives.liveAt(%d).filter(r => view.hit(r))
					.reduce((a, r) => a + d.lives.size[r], 0) })()`, n-1)
				if lit != h.Bytes {
					t.Errorf("%s: %d bytes are highlighted, want %d", h.Reference, lit, h.Bytes)
				}
				about := eval[string](p, `document.querySelector(".about-it").textContent`)
				for _, hop := range h.Hops {
					if !strings.Contains(about, hop) {
						t.Errorf("%q lacks the hop %q", about, hop)
					}
				}
			}
			p.quiet()
		})
	}
}

// Of a page that leaves lives out, what is missing of a holder is said; a server gives it.
func TestHoldersServed(t *testing.T) {
	r := recorded(t, "healthy_train")
	var whole bytes.Buffer
	if err := html.Write(&whole, r, html.DefaultBytes); err != nil {
		t.Fatal(err)
	}
	s, err := serve.New(r, whole.Len()) // some of it is kept for the word on what is left out
	if err != nil {
		t.Fatal(err)
	}
	l, err := serve.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go s.Serve(ctx, l)
	p := visit(t, r, s.URL(l), settings{})
	if left := eval[int](p, `snapana.live[0].device.leftOut.lives`); left == 0 {
		t.Fatal("nothing is left out: the test is of no use")
	}
	n := r.Devices[0].Timeline.Trace.Len()
	p.do(`const { view, device } = snapana.live[0]; view.zoom(%d, %d); view.set({cursor: %d});
		while (device.restAt(%[3]d)) await new Promise(f => setTimeout(f, 20))`, n-50, n, n-1)
	got := eval[[]heldSum](p, readHolders)
	slices.SortFunc(got, func(a, b heldSum) int { return strings.Compare(a.Name, b.Name) })
	if want := sumsAt(r, n-1); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p.quiet()
}

// A ghost that only the trace shows leads to its allocations.
func TestShowGrowth(t *testing.T) {
	r := golden(t, "ghost")
	p := open(t, r, settings{})
	p.do(`document.querySelector(".show button").click()`)
	g := &r.Devices[0].Growth[0]
	want := fmt.Sprintf("what grows; at the cursor %s in %s blocks", units.Bytes(g.Bytes), units.Count(g.Count))
	if found := eval[string](p, `document.querySelector(".found").textContent`); !strings.Contains(found, want) {
		t.Errorf("the page says %q, want %q", found, want)
	}
	if !eval[bool](p, `document.activeElement.classList.contains("tl-box")`) {
		t.Error("the focus is not on the timeline")
	}
	p.picture("growth")
	p.quiet()
}

// The tab of holders is as wide as the screen and accessible, in light and dark, and keeps the
// focus of one who uses the keys.
func TestHoldersLooks(t *testing.T) {
	r := recorded(t, "results_accumulate")
	for _, dark := range []bool{false, true} {
		for _, width := range []int{360, 1180, 1600} {
			p := open(t, r, settings{width: width, height: 1400, dark: dark, phone: width < 500})
			name := fmt.Sprintf("%d-%s", width, map[bool]string{false: "light", true: "dark"}[dark])
			p.picture("held-" + name)
			p.do(`document.querySelector('[data-show="ghost 0"] button').focus()`)
			p.run(chromedp.KeyEvent(kb.Enter))
			p.do(``)
			if !eval[bool](p, `document.activeElement.classList.contains("tl-box") &&
				!!document.querySelector(".about-it")`) {
				t.Error("Enter does not lead from a ghost to the timeline")
			}
			p.picture("holders-" + name)
			p.accessible(name)
			p.do(`document.querySelector("[data-holder='2']").focus()`)
			p.run(chromedp.KeyEvent(kb.Enter))
			p.do(``)
			if !eval[bool](p, `document.activeElement.dataset.holder === "2" &&
				document.activeElement.getAttribute("aria-expanded") === "true"`) {
				t.Error("Enter does not choose a holder, or loses the focus")
			}
			p.do(`const { view } = snapana.live[0]; view.set({pick: null, pinned: 700, cursor: 900, color: "holder"});
				document.querySelector(".live").scrollIntoView()`)
			p.accessible(name)
			box := eval[[]float64](p, `(() => { const r = document.querySelector(".tl-box").getBoundingClientRect();
				return [r.left + 0.7 * r.width, r.top + 300]; })()`)
			p.run(moved(box[0], box[1]))
			p.do(``)
			p.picture("holder-tip-" + name)
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			p.quiet()
		}
	}
}

// accessible asks axe about all that has to do with holders.
func (p *page) accessible(name string) {
	p.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
		p.Fatal(err)
	}
	for _, v := range eval[[]string](p, axeRun, `{include: [".live", "#holders", ".show"]}`) {
		p.Errorf("%s: %s", name, v)
	}
}

// Names of the recorder's file reach the page as text.
func TestHoldersHostile(t *testing.T) {
	evil := "</script><script>pwned=1</script><img src=x onerror=pwned=2>\u202e\x00'\"`${pwned=3}"
	r := recorded(t, "hook_closure")
	for i := range r.Holders.Holders {
		h := &r.Holders.Holders[i]
		h.Variable, h.Function, h.Class, h.SharedWith, h.Shared = evil, evil, evil, []string{evil}, 1
		h.Hops = append([]string{evil, strings.Repeat("long/", 100_000)}, h.Hops...)
	}
	p := open(t, r, settings{width: 360, height: 900})
	p.do(`const { view, tabs, holders, device } = snapana.live[0]; tabs.open("Holders"); view.go(device.events - 1)`)
	for i := range r.Holders.Holders {
		p.do(`snapana.live[0].holders.choose(%d); snapana.live[0].view.set({color: "holder",
			pinned: snapana.live[0].device.holder.indexOf(%[1]d)})`, i+1)
		const harmless = "</script><script>pwned=1</script>"
		text := eval[string](p, `document.querySelector(".about-it .hops").innerText`)
		if !strings.Contains(text, harmless) {
			t.Errorf("the text is not to be read: %.300q", text)
		}
	}
	if eval[bool](p, `"pwned" in globalThis || !!document.querySelector("img, main script")`) {
		t.Error("a text of the file became part of the page")
	}
	if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > 360 {
		t.Errorf("a long name makes the page %d wide", wide)
	}
	p.quiet()
}
