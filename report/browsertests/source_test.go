package browsertests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/source"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// program is what allocates in these tests, as it lies on disk: step was renamed since.
const program = `import torch

class Net:
	def forward(self, x):
		h = self.up(x)        # 5
		return self.down(h)   # 6

def train(net):
	out = net.forward(batch)  # 9, calls forward
	kept.append(out)          # 10
	print("</script><img src=x onerror=alert(1)>")

def new_name():
	pass                      # 14
`

// sourced is a run of it, with its files in a folder.
func sourced(t *testing.T) (*analyze.Result, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "job"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job", "train.py"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	const file = "/home/a/project/job/train.py"
	made := build.Run(build.Options{}, func(d *build.Device) {
		stack := func(frames ...string) *build.Stack { return build.NewStack(append(frames, file+":9:train")...) }
		for i := range 4 {
			d.Stack = stack("/lib/python3/site-packages/torch/nn/functional.py:7:linear", file+":5:forward")
			d.Alloc(int64(i+1) << 20)
			d.Stack = stack(file + ":6:forward")
			d.Free(d.Alloc(3 << 20))
			d.Alloc(5 << 20)
		}
		d.Stack = build.NewStack(file + ":14:step")
		d.Alloc(2 << 20)
		d.Stack = build.NewStack("/home/b/my_train.py:5:other")
		d.Alloc(7 << 20)
	})
	editor, err := source.ReadEditor("vscode")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := source.Open(dir, editor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true, Source: tree}), dir
}

// Lines have beside them what they allocated that is live, an editor opens them, and what they say is text.
func TestSource(t *testing.T) {
	r, dir := sourced(t)
	p := open(t, r, settings{})
	p.do(`const l = snapana.live[0]; l.view.set({cursor: l.device.events - 1}); l.tabs.open("Source")`)
	text := eval[string](p, `snapana.live[0].tabs.shown.text()`)
	for _, want := range []string{
		"10.0 MiB\t10.0 MiB\t4\t5\t        h = self.up(x)        # 5\n",
		"20.0 MiB\t20.0 MiB\t4\t6\t",
		"\t30.0 MiB\t8\t9\t    out = net.forward(batch)",
		"2.00 MiB\t2.00 MiB\t1\t✱ 14\t",
		`print("</script><img src=x onerror=alert(1)>")`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the lines lack %q:\n%s", want, text)
		}
	}
	if n := eval[int](p, `document.querySelectorAll(".source img").length`); n > 0 {
		t.Error("a line of the program is markup")
	}
	want := "vscode://file" + filepath.ToSlash(dir) + "/job/train.py:5"
	if href := eval[string](p, `[...document.querySelectorAll(".lines a")].find(a => a.textContent === "5").href`); href != want {
		t.Errorf("line 5 opens %s, want %s", href, want)
	}
	hint := eval[string](p, `document.querySelector(".source > .hint").textContent`)
	if !strings.Contains(hint, "Read below "+dir) || !strings.Contains(hint, "not known, but for those marked ✱") {
		t.Errorf("the page says %q", hint)
	}
	p.do(`snapana.live[0].view.set({search: "(", regex: true})`)
	p.do(`[...document.querySelectorAll(".lines tr")].find(r => r.cells[3].textContent === "5").querySelector("button").click()`)
	if got := eval[string](p, `document.querySelector(".found").textContent`); !strings.Contains(got, "10.0 MiB in 4 blocks") {
		t.Errorf("a click on a line finds %q", got)
	}
	p.do(`const v = snapana.live[0].view; v.set({search: "", color: "site"}); v.flush();
		v.set({only: "train.py:14 step"}); v.flush()`)
	if text := eval[string](p, `snapana.live[0].tabs.shown.text()`); strings.Contains(text, "10.0 MiB") {
		t.Errorf("lines have allocations of colors that are not looked at:\n%s", text)
	}
	p.do(`const l = snapana.live[0]; l.view.set({search: "", only: "", pinned: 0}); l.tabs.open("Allocation")`)
	if s := p.explained(); !strings.Contains(s, "h = self.up(x)") || !strings.Contains(s, "out = net.forward(batch)") {
		t.Errorf("the allocation's stack lacks its lines: %s", s)
	}
	p.quiet()

	p = open(t, golden(t, "ghost"), settings{})
	if eval[bool](p, `[...document.querySelectorAll("[role=tab]")].some(b => b.textContent === "Source")`) {
		t.Error("a page without sources has a tab for them")
	}
}

func TestSourceScreenshots(t *testing.T) {
	r, _ := sourced(t)
	for look, dark := range map[string]bool{"light": false, "dark": true} {
		for _, width := range []int{390, 1280} {
			p := open(t, r, settings{width: width, height: 1000, dark: dark, phone: width < 500})
			p.do(`const l = snapana.live[0]; l.view.set({cursor: l.device.events - 1, pinned: 0}); l.tabs.open("Source");
				l.view.set({pinned: -1}); l.tabs.element.scrollIntoView()`)
			p.picture(fmt.Sprintf("source-%d-%s", width, look))
			p.do(`snapana.live[0].view.set({pinned: 0}); snapana.live[0].tabs.open("Allocation")`)
			p.picture(fmt.Sprintf("source-explain-%d-%s", width, look))
			if _, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
				t.Fatal(err)
			}
			for _, tab := range []string{"Allocation", "Source"} {
				p.do(`snapana.live[0].tabs.open(%q)`, tab)
				for _, v := range eval[[]string](p, axeRun, `document.querySelector(".panels")`) {
					t.Errorf("%s, %d, %s: %s", look, width, tab, v)
				}
			}
			if wide := eval[int](p, `document.scrollingElement.scrollWidth`); wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			p.quiet()
		}
	}
}
