package browsertests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/snapshot/load"
)

// ofLab is a trace of the lab.
func ofLab(t *testing.T, name string) *analyze.Result {
	t.Helper()
	s, err := load.Open(t.Context(), "../../fixtures/lab/traces/2.15/"+name+".pickle.xz", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyzetest.Run(t, s, analyze.Options{NoReplay: true})
}

const typed = `const i = document.querySelector("input[type=search]"); i.value = %q;
	i.dispatchEvent(new Event("input")); await new Promise(f => setTimeout(f, 300))`

// The search shows who lived at an address, in each form that people write one.
func TestSearchAddress(t *testing.T) {
	p := open(t, ofLab(t, "annotate"), settings{})
	p.do(`snapana.live[0].view.set({cursor: 29})`)
	lived := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll(".lived:not([hidden]) .tenant b")].map(b => b.textContent)`)
	}
	both := []string{"b7b0000000000_0", "b7b0000000000_1"}
	for text, want := range map[string][]string{"0x7b0000001000": both, "7b0000000000": both, "135239930216448": both,
		"b7b0000000000_1": both[1:], "0x7b0002a00010": {"b7b0002a00000_0"}, "0x7b0000000000000": {}} {
		p.do(typed, text)
		if got := lived(); !slices.Equal(got, want) {
			t.Errorf("%s: %q lived there, want %q", text, got, want)
		}
	}
	p.do(typed, "0x7b0000001000")
	says := func() string { return eval[string](p, `document.querySelector(".lived .hint").textContent`) }
	if s := says(); !strings.Contains(s, "0x7b0000001000 is in a segment of 20.0 MiB at 0x7b0000000000") ||
		!strings.Contains(s, ", free.") {
		t.Errorf("after event 29 the page says %q", s)
	}
	p.do(`document.querySelectorAll(".tenant")[0].click()`)
	row := eval[string](p, `(() => { const v = snapana.live[0].view; return v.dev.blockName(v.state.pinned); })()`)
	if row != both[0] {
		t.Errorf("the page pins %s", row)
	}
	pinned := eval[string](p, `document.querySelector(".pinned-box").textContent`)
	for _, want := range []string{both[0], "default stream", "large pool", "annotation packed for backward",
		"annotation again"} {
		if !strings.Contains(pinned, want) {
			t.Errorf("what is pinned lacks %q: %s", want, pinned)
		}
	}
	if s := says(); !strings.Contains(s, "in use") {
		t.Errorf("at its birth the page says %q", s)
	}
	p.do(typed, "model.py")
	if got := lived(); len(got) > 0 {
		t.Errorf("after another search %q is still there", got)
	}
	p.quiet()
}

// Addresses beyond 2^53, which JavaScript's numbers round, are exact in the page.
func TestHighAddress(t *testing.T) {
	s := buildtest.Read(t, build.Random(1, build.RandomOptions{Events: 300}))
	buildtest.Raise(s, 0xff00_0000_0000_0000)
	r := analyzetest.Run(t, s, analyze.Options{NoReplay: true})
	tl := r.Devices[0].Timeline
	p := open(t, r, settings{})
	for row := 0; row < len(tl.Lives); row += 1 + len(tl.Lives)/5 {
		addr := tl.Lives[row].Addr
		name := tl.Names([]int32{int32(row)})[0].String()
		p.do(typed, fmt.Sprintf("%#x", addr))
		found := eval[[]string](p, `[...document.querySelectorAll(".lived:not([hidden]) .tenant b")].map(b => b.textContent)`)
		says := eval[string](p, `document.querySelector(".lived .hint").textContent`)
		if !slices.Contains(found, name) || !strings.Contains(says, fmt.Sprintf("%#x is in", addr)) {
			t.Errorf("%#x: %q lived there, want %s too: %s", addr, found, name, says)
		}
	}
	p.quiet()
}

// Names of blocks are those of the command line, also in a page that leaves some out.
func TestNamesEqualGo(t *testing.T) {
	for _, size := range []int{0, 400_000} {
		r := golden(t, "ghost")
		tl := r.Devices[0].Timeline
		p := open(t, r, settings{size: size})
		rows := make([]int32, len(tl.Lives))
		for i := range rows {
			rows[i] = int32(i)
		}
		want := map[string]bool{}
		for i, n := range tl.Names(rows) {
			want[fmt.Sprintf("%s since %d", n, tl.Lives[i].Born)] = true
		}
		got := eval[[]string](p, `(() => { const d = snapana.live[0].view.dev;
			return Array.from(d.kind, (_, row) => `+"`${d.blockName(row)} since ${d.lives.born[row]}`"+`); })()`)
		if len(got) == 0 || size == 0 && len(got) != len(want) {
			t.Errorf("the page has %d of %d blocks", len(got), len(want))
		}
		for _, name := range got {
			if !want[name] {
				t.Fatalf("a page of %d bytes names a block %s", size, name)
			}
		}
	}
}

// Labels are searched, shown and group the table as they do on the command line.
func TestLabels(t *testing.T) {
	r := ofLab(t, "metadata_json")
	tl := r.Devices[0].Timeline
	p := open(t, r, settings{})
	end := tl.Trace.Len() - 1
	p.do(`snapana.live[0].view.set({cursor: %d}); snapana.live[0].tabs.open("Table")`, end)
	for _, by := range []attribution.Kind{"metadata", "metadata.step", "metadata.phase.name", "metadata.tags"} {
		h := attribution.Hold(r.Snapshot, tl, tl.StateAt(end), attribution.Query{By: by})
		var want []string
		for _, row := range h.Rows {
			want = append(want, fmt.Sprintf("%s %d", row.Name, row.Rounded))
		}
		slices.Sort(want)
		got := eval[[]string](p, `snapana.live[0].tabs.shown.groups(%q).map(g => g.name + " " + g.bytes)`, string(by))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("by %s: %q, want %q", by, got, want)
		}
	}
	p.do(typed, "\"step\": 1")
	found := eval[string](p, `document.querySelector(".found").textContent`)
	if !regexp.MustCompile(`at the cursor 27.2 MiB in 7 blocks`).MatchString(found) {
		t.Errorf("the page finds %q", found)
	}
	p.quiet()
}

func TestAddressScreenshots(t *testing.T) {
	for look, dark := range map[string]bool{"light": false, "dark": true} {
		for _, width := range []int{390, 1180} {
			p := open(t, ofLab(t, "annotate"), settings{width: width, height: 1500, dark: dark, phone: width < 500})
			p.do(`snapana.live[0].view.set({cursor: 20})`)
			p.do(typed, "0x7b0000001000")
			p.do(`document.querySelectorAll(".tenant")[0].click(); document.querySelector(".live").scrollIntoView()`)
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			p.picture(fmt.Sprintf("address-%d-%s", width, look))
			p.quiet()
		}
	}
}
