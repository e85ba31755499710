package browsertests

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/build"
)

// classesAt is what Go measures, in the order of the page.
func classesAt(r *analyze.Result, event int) [5]int64 {
	tl := r.Devices[0].Timeline
	c := fragmentation.Measure(tl, tl.StateAt(event)).Classes
	return [5]int64{c.Releasable, c.Hard, c.Soft, c.Stream, c.Pending}
}

func sumOf(c [5]int64) int64 { return c[0] + c[1] + c[2] + c[3] + c[4] }

// Free memory by class is what the Go side measures, at the cursor and in each column of the
// picture, which shows the moment with the most of it.
func TestFreeEqualsGo(t *testing.T) {
	all := programs(t)
	all["waiting"] = random(t, 6, build.RandomOptions{Events: 3000, Live: 150, Streams: 4})
	all["healthy"] = golden(t, "healthy")
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(7, 7))
			n := r.Devices[0].Timeline.Trace.Len()
			check := func() {
				t.Helper()
				events := []int{-1, 0, n - 1, r.Devices[0].Timeline.PeakActive.Event}
				for _, m := range r.Devices[0].Timeline.OOMs {
					events = append(events, m.Event, min(m.Event+1, n-1))
				}
				for range 60 {
					events = append(events, rng.IntN(n))
				}
				for _, e := range events {
					if got, want := eval[[5]int64](p, `snapana.live[0].device.free.at(%d)
						.bytes`, e), classesAt(r, e); got != want {
						t.Fatalf("after event %d: %v, want %v", e, got, want)
					}
				}
			}
			check() // each state by itself
			p.do(`snapana.live[0].view.show("free")`)
			check() // by the sweep through the trace
			for range 4 {
				from := rng.IntN(n - 8)
				to := from + 8 + rng.IntN(n-from-7)
				p.do(`snapana.live[0].view.zoom(%d, %d)`, from, to)
				got := eval[struct {
					Edges, Event []int
					Total        []int64
					Bytes        [][]int64
				}](p, `(() => { const c = snapana.live[0].timeline.columns;
					return {Edges: [...c.edges], Event: [...c.event], Total: [...c.total], Bytes: c.bytes.map(b =>
					[...b])}; })()`)
				for range 40 {
					c := rng.IntN(len(got.Event))
					want := classesAt(r, got.Event[c])
					for k := range want {
						if got.Bytes[k][c] != want[k] {
							t.Fatalf("column %d, event %d: class %d has %d, want %v", c, got.Event[c], k,
								got.Bytes[k][c], want)
						}
					}
					if sumOf(want) != got.Total[c] {
						t.Errorf("column %d sums to %d, want %v", c, got.Total[c], want)
					}
					if a, z := got.Edges[c], got.Edges[c+1]; z > a {
						if e := a + rng.IntN(z-a); sumOf(classesAt(r, e)) > got.Total[c] || got.Event[c] < a ||
							got.Event[c] >= z {
							t.Errorf("column %d of events %d..%d shows event %d with %d, less than %v after event %d",
								c, a, z, got.Event[c], got.Total[c], classesAt(r, e), e)
						}
					}
				}
			}
			p.quiet()
		})
	}
}

// Where not all is in the page, the picture has the moments that were measured, and says so.
func TestFreeMeasured(t *testing.T) {
	r := random(t, 8, build.RandomOptions{Events: 20_000, Live: 500, Stacks: 300, Depth: 30})
	p, rng := open(t, r, settings{size: 440_000}), rand.New(rand.NewPCG(8, 8))
	p.do(`snapana.live[0].view.show("free")`)
	if eval[int](p, `snapana.live[0].device.leftOut.lives`) == 0 {
		t.Fatal("all is in the page")
	}
	for range 20 {
		got := eval[struct {
			Event int
			Bytes [5]int64
		}](p, `(({event, bytes}) => ({event, bytes}))(snapana.live[0].device.free.at(%d))`, rng.IntN(20_000))
		if want := classesAt(r, got.Event); got.Bytes != want {
			t.Errorf("at event %d: %v, want %v", got.Event, got.Bytes, want)
		}
	}
	if note := eval[string](p, `document.querySelector(".tl-note")
		.textContent`); !strings.Contains(note, "was measured at") {
		t.Errorf("the page says %q", note)
	}
	p.quiet()
}

// The curves have the figures of the replays, at the cursor of the timeline, for the settings
// that are chosen in the table.
func TestCurvesEqualGo(t *testing.T) {
	r := golden(t, "fragmentation")
	p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(9, 9))
	a, n := r.Devices[0].WhatIf, r.Devices[0].Timeline.Trace.Len()
	for range 30 {
		e := rng.IntN(n)
		for i := range a.Rows {
			curve := a.Rows[i].Outcome.Curve
			k := slices.IndexFunc(curve, func(s whatif.Sample) bool { return e <= s.Last })
			if got := eval[int64](p, `snapana.live[0].curves.at(%d, %d)`, i, e); got != curve[k].Reserved {
				t.Fatalf("%s, event %d: %d, want %+v", a.Rows[i].Text, e, got, curve[k])
			}
		}
	}
	said := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll(".curves > .tl-legend li")].map(e => e.innerText)`)
	}
	if got := said(); len(got) != 2 || !strings.HasPrefix(got[0], "the defaults (as recorded)") ||
		!strings.Contains(got[0], "1 request fails, 2.00 GiB at event 7\u202f975") {
		t.Errorf("at first the curves are %q", got)
	}
	p.do(`document.querySelectorAll(".whatif tbody tr")[2].cells[4].click()`)
	p.do(`document.querySelectorAll(".whatif input")[0].click()`)
	if got := said(); len(got) != 2 || !strings.HasPrefix(got[0], "max_split_size_mb:32") {
		t.Errorf("after two clicks the curves are %q", got)
	}

	// The cursor and the part that is shown are the timeline's, whoever moves them.
	p.do(`const v = snapana.live[0].view; v.set({cursor: 100}); document.querySelector(".curve-box").focus()`)
	early := said()[0]
	p.run(chromedp.KeyEvent("o"))
	p.do(``)
	if e := eval[int](p, `snapana.live[0].view.state.cursor`); e != r.Devices[0].Timeline.OOMs[0].Event {
		t.Errorf("the key O on the curves goes to event %d", e)
	}
	if late := said()[0]; late == early {
		t.Errorf("the figures stay %q", late)
	}
	p.run(chromedp.KeyEvent("+"))
	p.do(``)
	if n := eval[float64](p, `snapana.live[0].timeline.columns.edges[0]`); n == 0 {
		t.Error("the key + on the curves does not zoom the timeline")
	}
	p.do(`document.querySelector(".curve-box").scrollIntoView({block: "center"}); snapana.live[0].view.setAxis("time");
		snapana.live[0].view.zoom(0, 8000)`)
	box := eval[[]float64](p, `(() => { const r = document.querySelector(".curve-box").getBoundingClientRect();
		return [r.left, r.top, r.width]; })()`)
	p.run(chromedp.MouseClickXY(box[0]+box[2]/2, box[1]+100))
	p.do(``)
	if now, want := eval[int](p, `snapana.live[0].view.state.cursor`),
		eval[int](p, `snapana.live[0].view.eventAt(4000)`); now < want-8 || now > want+8 {
		t.Errorf("a click in the middle sets the cursor to event %d, want %d", now, want)
	}
	if text := eval[string](p, `document.querySelector(".curve-box")
		.getAttribute("aria-valuetext")`); !strings.Contains(text, "max_split_size_mb:32") {
		t.Errorf("the slider says %q", text)
	}
	p.quiet()
}

// A button below the still chart of free memory shows it in the timeline.
func TestFreeButton(t *testing.T) {
	p := open(t, golden(t, "fragmentation"), settings{})
	p.do(`document.querySelector(".over-trace button").click()`)
	if mode := eval[string](p, `document.querySelector(".toolbar select").value`); mode != "free" ||
		!eval[bool](p, `document.activeElement.classList.contains("tl-box")`) {
		t.Errorf("the timeline shows %s", mode)
	}
	p.run(chromedp.KeyEvent(kb.End))
	p.do(``)
	last := classesAt(p.result, p.result.Devices[0].Timeline.Trace.Len()-1)
	if said := eval[string](p, `document.querySelector(".tl-legend")
		.innerText`); !strings.Contains(said, units.Bytes(sumOf(last))) ||
		!strings.Contains(said, "between live blocks "+units.Bytes(last[1])) {
		t.Errorf("at the end the page says %q, want %v", said, last)
	}
	p.do(`snapana.live[0].tabs.open("Segments")`)
	if said := eval[string](p, `document.querySelector(".segs .sum")
		.innerText`); !strings.Contains(said, "between live blocks "+units.Bytes(last[1])) {
		t.Errorf("the segments say %q, want %v", said, last)
	}
	p.quiet()
}

// The charts of free memory and of other settings look right in every width, light and dark.
func TestChartScreenshots(t *testing.T) {
	for _, name := range []string{"fragmentation", "healthy"} {
		r := golden(t, name)
		for _, dark := range []bool{false, true} {
			for _, width := range []int{360, 1180, 1600} {
				p := open(t, r, settings{width: width, height: 900, dark: dark, phone: width < 500})
				at := fmt.Sprintf("%s-%d-%v", name, width, dark)
				p.do(`snapana.live[0].view.show("free"); snapana.live[0].view.set({cursor: 4000});
					document.querySelector(".live").scrollIntoView()`)
				p.picture("free-" + at)
				if eval[bool](p, `!!snapana.live[0].curves`) {
					p.do(`document.querySelector("table.whatif").querySelectorAll("input")[1].click();
						document.querySelector(".curves").scrollIntoView()`)
					p.picture("whatif-" + at)
				}
				if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
					t.Errorf("%s: the page is %d wide", at, wide)
				}
				p.quiet()
			}
		}
	}
}

// The cells of a table are all there: what the script adds has its own class.
func TestPinsAreWhole(t *testing.T) {
	p := open(t, golden(t, "fragmentation"), settings{})
	if hidden := eval[int](p, `[...document.querySelectorAll(".pins td")].filter(e => !e.offsetParent)
		.length`); hidden > 0 {
		t.Errorf("%d cells are hidden", hidden)
	}
}
