package browsertests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/build"
)

// limited are programs that ran out of memory.
func limited(t *testing.T) map[string]*analyze.Result {
	t.Helper()
	opt := build.Options{Capacity: 300 << 20}
	all := map[string]*analyze.Result{
		"full": random(t, 8, build.RandomOptions{Options: opt, Events: 3000, Live: 150, Streams: 3, Graphs: 1})}
	opt.Expandable = true
	all["full, expandable"] = random(t, 9, build.RandomOptions{Options: opt, Events: 3000, Live: 150, Streams: 2})
	return all
}

// fitted is what the page says of a request: fragmentation.Fit.
type fitted struct {
	Way                                           string
	Addr                                          string
	Size, Largest, Needs, Returned, Has           int64
	Blocks, Bytes, Waiting, Segments, Most, Freed int64
}

// The page frees blocks, and serves requests, as package fragmentation does.
func TestFitEqualsGo(t *testing.T) {
	all := programs(t)
	for name, r := range limited(t) {
		all[name] = r
	}
	ways := map[string]int{}
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(8, 8))
			tl := r.Devices[0].Timeline
			for i := range 40 {
				event := rng.IntN(tl.Trace.Len())
				if n := len(tl.OOMs); n > 0 && i%3 == 0 {
					event = tl.OOMs[rng.IntN(n)].Event
				}
				st := tl.StateAt(event)
				share := rng.Float64()
				rows, gone := []int32{}, map[int32]bool{}
				for _, row := range st.Rows() {
					if l := &tl.Lives[row]; rng.Float64() < share {
						rows = append(rows, row)
						gone[row] = !l.Waits(event)
					}
				}
				req := fragmentation.Request{Rounded: tl.Conf.Round(1 + rng.Int64N(200<<20>>rng.IntN(14))),
					DeviceFree: rng.Int64N(9) * (5 << 20)}
				if rng.IntN(3) == 0 {
					req.DeviceFree = -1
				}
				if n := len(st.Segments); n > 0 {
					req.Stream = st.Segments[rng.IntN(n)].Stream
				}
				less := fragmentation.Without(tl, st, func(row int32) bool { return gone[row] })
				f, g := fragmentation.Serve(tl, less, req), fragmentation.Relieve(tl, st, rows)
				want := fitted{string(f.Way), "", f.Size, f.Largest, f.Needs, f.Returned, f.Has, g.Blocks, g.Bytes, g.Waiting,
					int64(g.Segments), g.Largest, g.Returned}
				if f.Way == fragmentation.InHole {
					want.Addr = fmt.Sprintf("%#x", f.Addr)
				}
				list, _ := json.Marshal(rows)
				got := eval[fitted](p, `(() => { const d = snapana.live[0].device, rows = %s, at = %d,
					req = {rounded: %d, stream: %d, small: %v, segment: %d, granule: %d},
					f = snapana.fit.serve(d, at, new Set(rows), req, %d), g = snapana.fit.relieve(d, at, rows);
					return {Way: f.way, Addr: f.way === "hole" ? d.hex(f.addr) : "", Size: f.size, Largest: f.largest,
						Needs: f.needs, Returned: f.returned, Has: f.has, Blocks: g.blocks, Bytes: g.bytes, Waiting: g.waiting,
						Segments: g.segments.length, Most: g.largest, Freed: g.returned}; })()`,
					list, event, req.Rounded, req.Stream, tl.Conf.Small(req.Rounded), tl.Conf.SegmentSize(req.Rounded),
					tl.Conf.Granule(tl.Conf.Small(req.Rounded)), req.DeviceFree)
				if got != want {
					t.Fatalf("after event %d without %d blocks, %+v:\ngot  %+v\nwant %+v", event, len(rows), req, got, want)
				}
				ways[got.Way]++
			}
			p.quiet()
		})
	}
	for _, way := range []string{"hole", "new", "release", "refused", "unclear"} {
		if ways[way] < 3 {
			t.Errorf("%q came out %d times only", way, ways[way])
		}
	}
}

// What a user ticks, or Shift-clicks in the map of segments, is freed, and the page says whether the failed request fits.
func TestMakeRoom(t *testing.T) {
	r := golden(t, "fragmentation")
	p := open(t, r, settings{})
	event := r.Devices[0].OOM.Event
	p.do(`const l = snapana.live[0]; l.view.set({cursor: %d}); l.tabs.open("Make room")`, event)
	says := func() string { return eval[string](p, `document.querySelector(".room .answer").innerText`) }
	failed := fmt.Sprintf("The %s that failed at event %s would ", r.Devices[0].OOM.Requested, units.Count(int64(event)))
	if s := says(); !strings.Contains(s, failed+"not fit: the largest free range has 15.0 MiB") ||
		!strings.Contains(s, "348 MiB of the 2.00 GiB needed") {
		t.Errorf("with nothing chosen the page says %q", s)
	}
	p.do(`document.querySelector(".room input[type=checkbox]").click()`)
	if s := says(); !strings.Contains(s, failed+"now fit") || !strings.Contains(s, "725 whole segments (0x7b0000000000") {
		t.Errorf("with all chosen the page says %q", s)
	}
	p.do(`[...document.querySelectorAll(".room button")].find(b => b.textContent === "Clear").click();
		snapana.live[0].tabs.open("Segments"); document.querySelector(".segs canvas").scrollIntoView({block: "center"})`)
	click := func(shift bool) {
		at := eval[[]float64](p, `(() => { const r = document.querySelector(".segs canvas").getBoundingClientRect();
			return [r.left + 80, r.top + 10]; })()`)
		event := input.DispatchMouseEventParams{X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}
		if shift {
			event.Modifiers = 8 // Shift
		}
		for _, event.Type = range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed,
			input.DispatchMouseEventTypeMouseReleased} {
			p.run(mouse(event))
		}
		p.do(``)
	}
	chosen := func() [2]int {
		return eval[[2]int](p, `(({freed, pinned}) => [freed.size, pinned])(snapana.live[0].view.state)`)
	}
	click(true)
	if got := chosen(); got != [2]int{1, -1} {
		t.Errorf("Shift-click: %v blocks are chosen, and one is pinned", got)
	}
	if s := eval[string](p, `document.querySelector(".segs .answer").innerText`); !strings.Contains(s, "would still not fit") {
		t.Errorf("the map says %q", s)
	}
	click(true)
	click(false)
	if got := chosen(); got[0] != 0 || got[1] < 0 {
		t.Errorf("another Shift-click, and a click: %v are chosen, and pinned", got)
	}
	p.do(`snapana.live[0].view.set({freed: new Set([7, 300]), limit: %d})`, 3<<30)
	link := eval[string](p, `snapana.trail.link()`)
	p.quiet()
	p = visit(t, r, link, settings{})
	if got := eval[string](p, `(({freed, limit}) => [...freed] + " " + limit)(snapana.live[0].view.state)`); got !=
		fmt.Sprintf("7,300 %d", 3<<30) {
		t.Errorf("the link %s opens with %s", link, got)
	}
	p.quiet()
}

// A pinned allocation is explained: what there is to know of it, and who had its address before and after it.
func TestExplain(t *testing.T) {
	for name, r := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(9, 9))
			tl := r.Devices[0].Timeline
			p.do(`snapana.live[0].tabs.open("Allocation")`)
			if s := p.explained(); !strings.Contains(s, "Pin an allocation") {
				t.Errorf("with nothing pinned the page says %q", s)
			}
			for range 12 {
				row := rng.IntN(len(tl.Lives))
				l := &tl.Lives[row]
				at := max(int(l.Born), 0)
				p.do(`snapana.live[0].view.set({cursor: %d, pinned: %d})`, at, row)
				want := []string{fmt.Sprintf("%#x to %#x", l.Addr, l.End()), units.Bytes(l.Requested) + " requested, " +
					units.Bytes(l.Rounded) + " taken", attribution.Site(r.Snapshot, l.Stack)}
				if l.Freed >= 0 {
					want = append(want, "to event "+units.Count(int64(l.Freed)), "the program freed it")
				} else if l.FreeRequested == -1 {
					want = append(want, "not freed in the trace")
				}
				before, after := -1, -1
				for i := range tl.Lives {
					switch o := &tl.Lives[i]; {
					case i == row || l.Addr < o.Addr || l.Addr >= o.End():
					case i < row:
						before = i
					case after < 0:
						after = i
					}
				}
				for word, i := range map[string]int{"Before ": before, "After ": after} {
					if i < 0 {
						want = append(want, word+"nobody")
					} else {
						want = append(want, word+tl.Names([]int32{int32(i)})[0].String())
					}
				}
				if !l.Waits(at) {
					want = append(want, fmt.Sprintf("Its %s would go back to the pool", units.Bytes(l.Rounded)))
				}
				s := p.explained()
				for _, w := range want {
					if !strings.Contains(s, w) {
						t.Errorf("row %d after event %d: the page lacks %q: %s", row, at, w, s)
					}
				}
			}
			p.quiet()
		})
	}
}

func (p *page) explained() string {
	p.Helper()
	return eval[string](p, `document.querySelector(".explain").textContent`)
}

func TestAnswerScreenshots(t *testing.T) {
	for look, dark := range map[string]bool{"light": false, "dark": true} {
		for _, width := range []int{390, 1280} {
			p := open(t, golden(t, "fragmentation"), settings{width: width, height: 1000, dark: dark, phone: width < 500})
			p.do(`const l = snapana.live[0]; l.tabs.open("Make room");
				document.querySelectorAll(".room input[type=checkbox]")[0].click();
				l.tabs.element.scrollIntoView()`)
			p.picture(fmt.Sprintf("room-%d-%s", width, look))
			p.do(`snapana.live[0].tabs.open("Segments")`)
			p.picture(fmt.Sprintf("room-segments-%d-%s", width, look))
			p.do(`const v = snapana.live[0].view; v.set({pinned: 2000, cursor: v.dev.lives.born[2000], freed: new Set()});
				snapana.live[0].tabs.open("Allocation")`)
			p.picture(fmt.Sprintf("explain-%d-%s", width, look))
			if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
				t.Fatal(err)
			}
			for _, tab := range []string{"Allocation", "Make room", "Segments"} {
				p.do(`const l = snapana.live[0]; l.view.set({freed: new Set([2000])}); l.tabs.open(%q)`, tab)
				for _, v := range eval[[]string](p, axeRun, `document.querySelector(".panels")`) {
					t.Errorf("%s, %d, %s: %s", look, width, tab, v)
				}
			}
			for _, v := range eval[[]string](p, axeRun, `document.querySelector(".limits")`) {
				t.Errorf("%s, %d: %s", look, width, v)
			}
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			p.quiet()
		}
	}
}
