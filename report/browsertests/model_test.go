package browsertests

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/report/internal/bands"
)

// programs are snapshots of several kinds.
func programs(t *testing.T) map[string]*analyze.Result {
	return map[string]*analyze.Result{
		"ghost": golden(t, "ghost"), "fragmentation": golden(t, "fragmentation"),
		"random": random(t, 3, build.RandomOptions{Events: 6000, Live: 200, Streams: 3, Graphs: 1}),
		"expandable": random(t, 4, build.RandomOptions{Options: build.Options{Expandable: true}, Events: 4000,
			Live: 100}),
		"cut": random(t, 5, build.RandomOptions{Options: build.Options{Ring: 1500}, Events: 4000, Live: 100}),
	}
}

// pictured is what the timeline shows of a device.
type pictured struct {
	Edges, Event []int
	Total        []float64
	Width        int
	Height       int
	Lo, Hi       float64
}

const readPicture = `(() => {
	const t = snapana.live[0].timeline, c = t.columns, r = t.range();
	return {Edges: [...c.edges], Event: [...c.event], Total: [...c.total], Width: t.frame.width,
		Height: t.frame.height, Lo: r.lo, Hi: r.hi};
})()`

// At random parts of the trace, each column of the picture shows the moment and the bytes that
// the Go side gives it.
func TestColumnsEqualGo(t *testing.T) {
	for name, r := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(1, 1))
			tl := r.Devices[0].Timeline
			x, n := bands.New(tl), tl.Trace.Len()
			for range 12 {
				from := rng.IntN(n - 8)
				to := from + 8 + rng.IntN(n-from-7)
				axis := []string{"event", "time"}[rng.IntN(2)]
				p.do(`const v = snapana.live[0].view; v.setAxis("event"); v.zoom(%d, %d);
					v.setAxis(%q)`, from, to, axis)
				got := eval[pictured](p, readPicture)
				if axis == "event" && (got.Edges[0] != from || got.Edges[got.Width] != to) {
					t.Fatalf("zoomed to %d..%d, the picture has %d..%d", from, to, got.Edges[0], got.Edges[got.Width])
				}
				for i, c := range x.Columns(got.Edges) {
					if got.Event[i] != c.Event && active(tl, got.Event[i]) != c.Active ||
						int64(got.Total[i]) != c.Active {
						t.Fatalf("%s %d..%d, column %d of %d..%d: event %d with %.0f bytes, want %+v", axis, from, to,
							i, got.Edges[i], got.Edges[i+1], got.Event[i], got.Total[i], c)
					}
				}
			}
			p.quiet()
		})
	}
}

func active(tl *timeline.Timeline, event int) int64 { return tl.StateAt(event).Totals.Active }

// stacked is the row that lies at a height, -1 above all.
func stacked(tl *timeline.Timeline, event int, pixel, height int, lo, hi float64) int {
	scale := float64(height) / (hi - lo)
	row := func(y float64) int { return int(math.Min(math.Max(math.Floor((y-lo)*scale), 0), float64(height))) }
	below, at := 0.0, -1
	for i := range tl.Lives {
		if l := &tl.Lives[i]; l.LiveAfter(event) {
			if a, z := row(below), row(below+float64(l.Rounded)); a <= pixel && pixel < z {
				at = i
			}
			below += float64(l.Rounded)
		}
	}
	return at
}

// The band under the pointer is the allocation that the Go model has there, and the box beside
// the pointer names it.
func TestHoverNamesTheAllocation(t *testing.T) {
	for name, r := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(2, 2))
			tl := r.Devices[0].Timeline
			named := 0
			for round := range 6 {
				if round > 0 {
					from := rng.IntN(tl.Trace.Len() - 50)
					p.do(`snapana.live[0].view.zoom(%d, %d)`, from, from+50+rng.IntN(tl.Trace.Len()-from-49))
				}
				got := eval[pictured](p, readPicture)
				for range 40 {
					x, y := rng.IntN(got.Width), rng.IntN(got.Height)
					id := eval[int](p, `snapana.live[0].timeline.hit(%d + 0.5, %d + 18.5)?.id ?? -9`, x, y)
					if want := stacked(tl, got.Event[x], got.Height-1-y, got.Height, got.Lo, got.Hi); id != want {
						t.Fatalf("at (%d, %d), event %d: row %d, want %d", x, y, got.Event[x], id, want)
					}
					if id >= 0 && named < 12 {
						named++
						p.checkTip(tl, x, y, id)
					}
				}
			}
			if named == 0 {
				t.Error("the pointer never was on an allocation")
			}
			p.quiet()
		})
	}
}

// checkTip moves the mouse and reads what the page says.
func (p *page) checkTip(tl *timeline.Timeline, x, y, row int) {
	p.Helper()
	p.do(`document.querySelector(".tl-box").scrollIntoView({block: "center"})`)
	box := eval[[]float64](p, `(() => { const r = document.querySelector(".tl-box").getBoundingClientRect();
		return [r.left, r.top]; })()`)
	p.run(mouse(input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, X: box[0] + float64(x) +
		0.5, Y: box[1] + float64(y) + 18.5}))
	p.do(``)
	tip := eval[string](p, `document.querySelector(".tip").innerText`)
	l := &tl.Lives[row]
	want := []string{units.Bytes(l.Rounded)}
	if l.Born >= 0 {
		want = append(want, "since event "+units.Count(int64(l.Born)))
	} else {
		want = append(want, "from before the trace")
	}
	if l.Freed >= 0 {
		want = append(want, "to event "+units.Count(int64(l.Freed)))
	} else {
		want = append(want, "never freed")
	}
	if site := attribution.Site(p.result.Snapshot, l.Stack); site != "" {
		want = append(want, site)
	}
	for _, w := range want {
		if !strings.Contains(tip, w) {
			p.Errorf("row %d: %q lacks %q", row, tip, w)
		}
	}
}

// sum is what a search or a group adds up to.
type sum struct{ Bytes, Requested, Count int64 }

// What a search sums at random moments is what --match sums.
func TestSearchEqualsGo(t *testing.T) {
	patterns := []string{"forward", `model\.py`, `\.py:\d*1\d* `, "no such frame", "^/lib|optim", "<module>"}
	for name, r := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(3, 3))
			tl := r.Devices[0].Timeline
			for _, pattern := range patterns {
				p.do(`snapana.live[0].view.set({search: %q, regex: true})`, pattern)
				for range 5 {
					e := rng.IntN(tl.Trace.Len())
					got := eval[sum](p, `(() => { const g = snapana.live[0].view.matched(%d);
						return {Bytes: g.bytes, Requested: g.requested, Count: g.count}; })()`, e)
					kept := attribution.Hold(r.Snapshot, tl, tl.StateAt(e),
						attribution.Query{Match: regexp.MustCompile(pattern)}).Kept()
					if want := (sum{kept.Rounded, kept.Requested, kept.Count}); got != want {
						t.Errorf("%q after event %d: %+v, want %+v", pattern, e, got, want)
					}
				}
			}
			p.quiet()
		})
	}
}

// Typing a search says what it found at the cursor.
func TestSearchBox(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	e := eval[int](p, `snapana.live[0].view.state.cursor`)
	p.do(`const i = document.querySelector("input[type=search]"); i.value = "model.py";
		i.dispatchEvent(new Event("input")); await new Promise(f => setTimeout(f, 300))`)
	tl := p.result.Devices[0].Timeline
	kept := attribution.Hold(p.result.Snapshot, tl, tl.StateAt(e),
		attribution.Query{Match: regexp.MustCompile(`model\.py`)}).Kept()
	found := eval[string](p, `document.querySelector(".found").textContent`)
	if want := fmt.Sprintf("at the cursor %s in %s blocks", units.Bytes(kept.Rounded),
		units.Count(kept.Count)); !strings.Contains(found, want) {
		t.Errorf("the page says %q, want %q", found, want)
	}
	p.picture("search")
	p.do(`const i = document.querySelector("input[type=search]"); i.value = "(";
		document.querySelector(".check input").click(); i.dispatchEvent(new Event("input"));
		await new Promise(f => setTimeout(f, 300))`)
	if found := eval[string](p, `document.querySelector(".found")
		.textContent`); !strings.Contains(found, "Invalid regular expression") {
		t.Errorf("of a wrong expression the page says %q", found)
	}
	p.quiet()
}

// state is what `snapana state --json` prints, as far as it is compared.
type state struct {
	Totals timeline.Totals
	Groups []struct {
		Name                    string
		Count, Bytes, Requested int64
	}
}

// At random events the page has what `snapana state --at N --json` has.
func TestCursorEqualsState(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "snapana")
	build := exec.Command("go", "build", "-o", binary, "./cmd/snapana")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"ghost", "fragmentation", "healthy"} {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, golden(t, name), settings{}), rand.New(rand.NewPCG(4, 4))
			n := p.result.Devices[0].Timeline.Trace.Len()
			for range 6 {
				e := rng.IntN(n)
				out, err := exec.Command(binary, "state", "--at", fmt.Sprint(e), "--by", "stack", "--json",
					"../../fixtures/"+name+".pickle").Output()
				if err != nil {
					t.Fatal(err)
				}
				var want state
				if err := json.Unmarshal(out, &want); err != nil {
					t.Fatal(err)
				}
				p.checkState(e, &want)
			}
			p.quiet()
		})
	}
}

func (p *page) checkState(e int, want *state) {
	p.Helper()
	p.do(`snapana.live[0].view.go(%d)`, e)
	got := eval[timeline.Totals](p, `snapana.live[0].device.totals(%d)`, e)
	if got != want.Totals {
		p.Errorf("after event %d: %+v, want %+v", e, got, want.Totals)
	}
	type group struct{ bytes, count, requested int64 }
	var a, b []group
	for _, g := range eval[[]sum](p, `snapana.live[0].table.groups("stack")
		.map(g => ({Bytes: g.bytes, Requested: g.requested, Count: g.count}))`) {
		a = append(a, group{g.Bytes, g.Count, g.Requested})
	}
	for _, g := range want.Groups {
		b = append(b, group{g.Bytes, g.Count, g.Requested})
	}
	order := func(x, y group) int {
		return int(y.bytes-x.bytes)*1000 + int(y.count-x.count)
	}
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	if !slices.Equal(a, b) {
		p.Errorf("after event %d the groups are %v, want %v", e, a, b)
	}
	line := eval[string](p, `document.querySelector(".cursor").innerText`)
	for _, w := range []string{"event " + units.Count(int64(e)), "reserved " + units.Bytes(want.Totals.Reserved),
		"active " + units.Bytes(want.Totals.Active), "allocated " + units.Bytes(want.Totals.Allocated)} {
		if !strings.Contains(strings.ReplaceAll(line, "\n", " "), w) {
			p.Errorf("the line of the cursor is %q, want %q in it", line, w)
		}
	}
}

// A page that has no room for every allocation says so, and its sums are right all the same.
func TestBoundedPage(t *testing.T) {
	r := random(t, 6, build.RandomOptions{Events: 60_000, Stacks: 400, Depth: 30, Live: 800})
	p := open(t, r, settings{size: 480 << 10})
	tl := r.Devices[0].Timeline
	left := eval[int](p, `snapana.live[0].device.leftOut.lives`)
	if left == 0 {
		t.Fatal("everything fits: the test is of no use")
	}
	note := eval[string](p, `document.querySelector(".tl-note").textContent`)
	if want := units.Count(int64(left)) + " of " + units.Count(int64(len(tl.Lives))) +
		" allocations"; !strings.Contains(note, want) {
		t.Errorf("the page says %q, want %q", note, want)
	}
	got := eval[pictured](p, readPicture)
	for i, e := range got.Event {
		if want := active(tl, e); int64(got.Total[i]) != want {
			t.Fatalf("column %d, event %d: %.0f bytes, want %d", i, e, got.Total[i], want)
		}
	}
	if most := slices.Max(got.Total); int64(most) != tl.PeakActive.Bytes {
		t.Errorf("the highest column has %.0f bytes, the peak %d", most, tl.PeakActive.Bytes)
	}
	p.picture("bounded")
	p.quiet()
}

// The marks of the ruler say what came and went between them.
func TestRuler(t *testing.T) {
	for name, r := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p, rng := open(t, r, settings{}), rand.New(rand.NewPCG(7, 7))
			tl := r.Devices[0].Timeline
			for range 5 {
				a := rng.IntN(tl.Trace.Len() - 1)
				b := a + 1 + rng.IntN(tl.Trace.Len()-a-1)
				p.do(`const l = snapana.live[0]; l.view.set({markA: %d, markB: %d}); l.tabs.open("Compare")`, a, b)
				got := eval[[3]sum](p, `(() => { const l = snapana.live[0], r = l.ruler.range, f = rows =>
					({Count: rows.length, Bytes: rows.reduce((s, r) => s + l.device.lives.size[r], 0)});
					return [f(r.allocated), f(r.freed), f(r.within)]; })()`)
				var want [3]sum
				sites := map[string]int64{}
				for i := range tl.Lives {
					l := &tl.Lives[i]
					born, freed := int(l.Born) > a && int(l.Born) <= b, int(l.Freed) > a && int(l.Freed) <= b
					site := attribution.Site(r.Snapshot, l.Stack)
					if born {
						want[0].Count++
						want[0].Bytes += l.Rounded
						sites[site] += l.Rounded
					}
					if freed {
						want[1].Count++
						want[1].Bytes += l.Rounded
						sites[site] -= l.Rounded
					}
					if born && freed {
						want[2].Count++
						want[2].Bytes += l.Rounded
					}
				}
				for _, c := range eval[[]struct {
					Site             string
					Allocated, Freed int64
				}](p, `snapana.live[0].ruler.changes.map(c => ({Site: c.site, Allocated: c.allocated,
					Freed: c.freed}))`) {
					if net, known := sites[c.Site]; known && c.Allocated-c.Freed != net {
						t.Errorf("%s from %d to %d: net %d, want %d", c.Site, a, b, c.Allocated-c.Freed, net)
					}
					delete(sites, c.Site)
				}
				if len(sites) > 1 { // what has no stack has a name of the page
					t.Errorf("from %d to %d the page lacks the sites %v", a, b, sites)
				}
				if got != want || got[0].Bytes-got[1].Bytes != active(tl, b)-active(tl, a) {
					t.Errorf("between events %d and %d: %+v, want %+v", a, b, got, want)
				}
			}
			p.do(`snapana.live[0].view.set({markA: 3, markB: 40}); snapana.live[0].tabs.open("Compare")`)
			if text := eval[string](p, `document.querySelector(".ruler")
				.innerText`); !strings.Contains(text, "37 events") {
				t.Errorf("the ruler says %q", text)
			}
			p.quiet()
		})
	}
}
