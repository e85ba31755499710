package browsertests

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/snapshot/load"
)

// moves are zooms and pans of a device's view v, from the whole trace down to a thousandth.
var moves = []string{
	`v.zoom(0, v.full())`, `v.zoom(v.full() * 0.1, v.full() * 0.9)`, `v.zoom(v.full() * 0.12, v.full() * 0.92)`,
	`v.zoom(v.full() * 0.4, v.full() * 0.5)`, `v.zoom(v.full() * 0.41, v.full() * 0.51)`,
	`v.zoom(v.full() * 0.45, v.full() * 0.451)`,
}

// firstPaint waits until the browser says when it first painted.
const firstPaint = `new Promise(f => new PerformanceObserver(l => f(l.getEntries()[0].startTime))
	.observe({type: "paint", buffered: true}))`

// BenchmarkPage measures, of a trace with 100,000 allocations drawn without a GPU, the first
// paint, and the time from a zoom or a pan to the finished picture with all that follows it. Of
// each move the fastest run counts, since a machine that does other things only adds to it:
// give it -benchtime 20x. Free memory is measured likewise, after it was followed once.
func BenchmarkPage(b *testing.B) {
	r := random(b, 1, build.RandomOptions{Events: 300_000, Live: 1500})
	p := open(b, r, settings{width: 1600})
	best := make([]float64, len(moves))
	for i := range best {
		best[i] = math.Inf(1)
	}
	worst, all := 0.0, []float64{}
	for b.Loop() {
		for i, move := range moves {
			ms := eval[float64](p, `(() => { const v = snapana.live[0].view, t = performance.now(); %s; v.flush();
				return performance.now() - t; })()`, move)
			best[i], worst, all = min(best[i], ms), max(worst, ms), append(all, ms)
		}
	}
	p.do(`const v = snapana.live[0].view; v.zoom(0, v.full())`)
	followed := eval[float64](p, `(() => { const v = snapana.live[0].view, t = performance.now(); v.show("free");
		v.flush(); return performance.now() - t; })()`)
	bestFree := make([]float64, len(moves))
	for round := range 20 {
		for i, move := range moves {
			ms := eval[float64](p, `(() => { const v = snapana.live[0].view, t = performance.now(); %s; v.flush();
				return performance.now() - t; })()`, move)
			if round == 0 || ms < bestFree[i] {
				bestFree[i] = ms
			}
		}
	}
	slowest := 0.0
	for _, ms := range best {
		slowest = max(slowest, ms)
	}
	b.ReportMetric(float64(len(r.Devices[0].Timeline.Lives)), "bands")
	b.ReportMetric(eval[float64](p, firstPaint), "ms-first-paint")
	b.ReportMetric(slowest, "ms-slowest-move")
	slices.Sort(all)
	b.ReportMetric(all[len(all)/2], "ms-median-move")
	b.ReportMetric(worst, "ms-worst-frame")
	b.ReportMetric(followed, "ms-free-followed")
	b.ReportMetric(slices.Max(bestFree), "ms-free-slowest-move")
}

// measured runs a script with the view v of the first device and its panels l.tabs, and gives the milliseconds until
// what it changed is laid out, as an entry of the browser's timeline has them.
const measured = `(() => {
	const l = snapana.live[0], v = l.view, from = performance.now();
	%s;
	v.flush();
	document.body.getBoundingClientRect();
	return performance.measure("snapana", {start: from}).duration;
})()`

// BenchmarkBigPage measures the page of the snapshot that SNAPANA_BIG names: from the navigation until the page is
// ready, each tab when it is opened for the first time and when the cursor has moved since, zooms and pans, and other
// things that look at every allocation. The load of the machine adds to all of it: note it, and take several runs (-count).
func BenchmarkBigPage(b *testing.B) {
	path := os.Getenv("SNAPANA_BIG")
	if path == "" {
		b.Skip("SNAPANA_BIG names no snapshot")
	}
	s, err := load.Open(b.Context(), path, load.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := analyzetest.Run(b, s, analyze.Options{NoReplay: true})
	for b.Loop() {
		p := open(b, r, settings{width: 1600})
		b.ReportMetric(eval[float64](p, `performance.getEntriesByName("snapana-ready")[0].startTime`), "ms-open")
		b.ReportMetric(eval[float64](p, `snapana.live[0].device.lives.n`), "bands")
		for _, tab := range eval[[]string](p, `[...document.querySelectorAll("[role=tab]")].map(t => t.textContent)`) {
			name := strings.ReplaceAll(strings.ToLower(tab), " ", "-")
			b.ReportMetric(eval[float64](p, measured, `l.tabs.open(`+"`"+tab+"`"+`)`), "ms-first-"+name)
			var again []float64
			for _, part := range []string{"0.2", "0.5", "0.8"} {
				again = append(again, eval[float64](p, measured, `v.go(Math.floor(v.dev.events * `+part+`))`))
			}
			b.ReportMetric(slices.Max(again), "ms-cursor-"+name)
		}
		p.do(`snapana.live[0].tabs.open("Table")`)
		var all []float64
		for range 5 {
			for _, move := range moves {
				all = append(all, eval[float64](p, measured, move))
			}
		}
		for name, change := range map[string]string{
			"range": `v.set({markA: 0, markB: v.dev.events - 1})`, "search": `v.set({search: "forward"})`,
			"hover": `document.querySelector(".tl-box").dispatchEvent(new PointerEvent("pointermove",
				{clientX: 800, clientY: document.querySelector(".tl-box").getBoundingClientRect().bottom - 20}))`,
			"color": `v.set({search: "", only: document.querySelector(".tl-legend button").textContent})`,
			"csv":   `l.timeline.csv()`,
		} {
			b.ReportMetric(eval[float64](p, measured, change), "ms-"+name)
		}
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], "ms-move-median")
		b.ReportMetric(all[len(all)-1], "ms-move-worst")
		p.quiet()
	}
}
