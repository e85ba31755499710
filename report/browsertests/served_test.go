package browsertests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/report/internal/bands"
	"github.com/snapana/snapana/report/serve"
)

// A page that leaves most of a trace out asks its server where one zooms in. Then every column
// shows the moment and the bytes of the trace, and the cursor says what is live, as though all
// were in the page.
func TestServedDetail(t *testing.T) {
	r := random(t, 1, build.RandomOptions{Events: 60_000, Live: 400, Stacks: 20, Depth: 5})
	s, err := serve.New(r, 560_000)
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
	if left := eval[int](p, `snapana.live[0].device.leftOut.lives`); left < 1000 {
		t.Fatalf("only %d lives are left out", left)
	}
	tl := r.Devices[0].Timeline
	x, n, rng := bands.New(tl), tl.Trace.Len(), rand.New(rand.NewPCG(1, 1))
	for range 6 {
		from, at := rng.IntN(n-4000), rng.IntN(n)
		to := from + 100 + rng.IntN(3800)
		p.do(`const { view, device } = snapana.live[0];
			view.zoom(%d, %d); view.set({cursor: %d});
			while (!device.lives.knows(%[1]d, %d) || device.restAt(%[3]d)) await new Promise(f => setTimeout(f, 20))`,
			from, to, at, to-1)
		got := eval[pictured](p, readPicture)
		for i, c := range x.Columns(got.Edges) {
			if got.Event[i] != c.Event && active(tl, got.Event[i]) != c.Active || int64(got.Total[i]) != c.Active {
				t.Fatalf("%d..%d, column %d: event %d with %.0f bytes, want %+v", from, to, i, got.Event[i],
					got.Total[i], c)
			}
		}
		if sum, want := eval[int64](p, `snapana.live[0].device.totals(%d).active`, at), active(tl, at); sum != want {
			t.Errorf("%d bytes are live after event %d, want %d", sum, at, want)
		}
		if got, want := eval[[2]int](p, `(() => { const d = snapana.live[0].device, rows = d.lives.liveAt(%d);
			return [rows.length, new Set(rows.map(r => d.addr[r])).size] })()`, at),
			blocks(tl, at); got != [2]int{want, want} {
			t.Errorf("%d blocks at as many addresses are live after event %d, want %d", got, at, want)
		}
		for _, e := range []int{at, from + rng.IntN(to-from)} {
			if got, want := eval[[5]int64](p, `(({event, bytes}) =>
				event === %[1]d ? bytes : [])(snapana.live[0].device.free.at(%[1]d))`, e),
				classesAt(r, e); got != want {
				t.Errorf("after event %d %v are free, want %v", e, got, want)
			}
		}
		p.do(`const { view } = snapana.live[0]; view.show("free"); view.flush()`)
		if c := rng.IntN(got.Width); got.Edges[c] < got.Edges[c+1] {
			event := eval[int](p, `snapana.live[0].timeline.columns.event[%d]`, c)
			if sum := eval[int64](p, `snapana.live[0].timeline.columns.total[%d]`,
				c); sum != sumOf(classesAt(r, event)) || event < got.Edges[c] || event >= got.Edges[c+1] {
				t.Errorf("column %d shows %d bytes free after event %d, want %v", c, sum, event, classesAt(r, event))
			}
		}
		p.do(`snapana.live[0].view.show("bands")`)
	}
	p.picture("served")

	// A link opens the same here, with what is pinned, though the page itself lacks it.
	const pinned = `(l => l.view.state.pinned < 0 ? "" : l.device.blockName(l.view.state.pinned))(snapana.live[0])`
	first := eval[[]int](visit(t, r, s.URL(l), settings{}), `[...snapana.live[0].device.lives.born]`)
	p.do(`const { view, device: d } = snapana.live[0], first = new Set(%s);
		view.set({pinned: view.live().find(row => !first.has(d.lives.born[row])) ?? -1})`, strings.ReplaceAll(
		fmt.Sprint(first), " ", ","))
	name := eval[string](p, pinned)
	if name == "" {
		t.Fatal("the page has all that is live by itself")
	}
	again := visit(t, r, eval[string](p, `snapana.trail.link()`), settings{})
	again.do(`const { view } = snapana.live[0]; while (view.state.pinned < 0) await new Promise(f => setTimeout(f, 20))`)
	if got := eval[string](again, pinned); got != name {
		t.Errorf("the link pins %s, want %s", got, name)
	}
	again.quiet()
	p.quiet()

	// Without the server the page keeps what it has, and says so.
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.do(`const { view, timeline } = snapana.live[0]; view.zoom(1000, 1100); view.set({cursor: 1050});
		const said = timeline.element.nextElementSibling;
		while (!said.textContent.includes("Could not load more detail")) await new Promise(f => setTimeout(f, 20))`)
}

// blocks counts what is live after an event.
func blocks(tl *timeline.Timeline, event int) int {
	n := 0
	for i := range tl.Lives {
		if tl.Lives[i].LiveAfter(event) {
			n++
		}
	}
	return n
}
