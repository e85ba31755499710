package browsertests

import (
	"math"
	"slices"
	"testing"

	"github.com/snapana/snapana/fixtures/build"
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
	worst := 0.0
	for b.Loop() {
		for i, move := range moves {
			ms := eval[float64](p, `(() => { const v = snapana.live[0].view, t = performance.now(); %s; v.flush();
				return performance.now() - t; })()`, move)
			best[i], worst = min(best[i], ms), max(worst, ms)
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
	b.ReportMetric(worst, "ms-worst-frame")
	b.ReportMetric(followed, "ms-free-followed")
	b.ReportMetric(slices.Max(bestFree), "ms-free-slowest-move")
}
