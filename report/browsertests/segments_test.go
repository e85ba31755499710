package browsertests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/snapshot"
)

// The map has every segment, however many there are, and each filter lists those that it names.
func TestSegmentsAreAll(t *testing.T) {
	r := random(t, 9, build.RandomOptions{Events: 9000, Live: 2500, Streams: 3, Graphs: 1})
	p := open(t, r, settings{})
	tl := r.Devices[0].Timeline
	st := tl.StateAt(tl.PeakActive.Event)
	if len(st.Segments) < 40 {
		t.Fatalf("only %d segments", len(st.Segments))
	}
	p.do(`snapana.live[0].view.go(%d); snapana.live[0].tabs.open("Segments")`, st.Event)
	listed := func() []string {
		return strings.Split(strings.TrimSpace(eval[string](p, `snapana.live[0].tabs.shown.text()`)), "\n")
	}
	check := func(what string, keep func(i int) bool) {
		t.Helper()
		want, n := map[string]bool{}, 0
		for i, s := range st.Segments {
			if keep(i) {
				want[fmt.Sprintf("%x", s.Addr)] = true
				n++
			}
		}
		for _, line := range listed() {
			delete(want, strings.Split(line, "\t")[0])
		}
		if len(listed()) != n || len(want) > 0 || n == 0 {
			t.Errorf("%s lists %d segments, want %d; missing %v", what, len(listed()), n, want)
		}
	}
	choose := func(label, value string) {
		p.do(`const s = [...document.querySelectorAll(".segs .choice")].find(e => e.textContent.startsWith(%q))
			.querySelector("select"); s.value = %q; s.dispatchEvent(new Event("change"))`, label, value)
	}
	check("the map", func(int) bool { return true })
	choose("Size", fmt.Sprint(20<<20))
	check("20 MiB or more", func(i int) bool { return st.Segments[i].Size >= 20<<20 })
	choose("Size", "0")
	choose("Stream", "default stream")
	check("the default stream", func(i int) bool { return st.Segments[i].Stream == 0 })
	choose("Stream", "")
	choose("Pool", "small pool")
	check("the small pool", func(i int) bool {
		return st.Segments[i].Kind.String() == "small" && st.Segments[i].Pool == (snapshot.PoolID{})
	})
	if want := "pool=small%20pool"; !strings.Contains(eval[string](p, `snapana.trail.link()`), want) {
		t.Errorf("the link lacks %s", want)
	}
	choose("Pool", "")

	// The last is reached with the wheel, and with the keys.
	p.do(`document.querySelector(".seg-list").scrollIntoView({block: "center"});
		document.querySelector(".seg-list").scrollTop = 1e6`)
	box := eval[[2]float64](p, `(r => [r.left + 72, r.bottom - 14])(document.querySelector(".seg-list")
		.getBoundingClientRect())`)
	all := listed()
	last := "0x" + strings.Split(all[len(all)-1], "\t")[0]
	p.run(moved(box[0], box[1]))
	p.do(``)
	if about := eval[string](p, `document.querySelector(".segs .about").innerText`); !strings.Contains(about, last) {
		t.Errorf("the pointer on the last segment says %q, want %s", about, last)
	}
	p.picture("segments")
	p.do(`document.querySelector(".seg-list").scrollTop = 0; document.querySelector(".seg-list canvas").focus()`)
	for range len(all) {
		p.run(chromedp.KeyEvent(kb.ArrowDown))
	}
	for range 40 {
		p.run(chromedp.KeyEvent(kb.ArrowRight))
	}
	for range 40 {
		if eval[bool](p, `document.querySelector(".segs .about .alloc") !== null`) {
			break
		}
		p.run(chromedp.KeyEvent(kb.ArrowLeft))
	}
	p.run(chromedp.KeyEvent(kb.Enter))
	p.do(``)
	row := eval[int](p, `snapana.live[0].view.state.pinned`)
	if row < 0 || !strings.Contains(eval[string](p, `document.querySelector(".segs .about").innerText`)+
		eval[string](p, `document.querySelector(".pinned-box").innerText`), units.Bytes(tl.Lives[row].Rounded)) {
		t.Errorf("Enter pins row %d", row)
	}
	p.quiet()
}
