package browsertests

import (
	"testing"

	"github.com/snapana/snapana/fixtures/build"
)

// current is the entry of the contents that is marked.
const current = `document.querySelector(".toc [aria-current]").textContent`

// The contents stay in sight, mark the part that is read, and open what is folded.
func TestContents(t *testing.T) {
	for name, set := range map[string]settings{"phone": {width: 390, height: 800, phone: true}, "laptop": {width: 1280,
		height: 800}, "wide": {width: 1920, height: 1000}} {
		p := open(t, golden(t, "healthy"), set)
		if got := eval[string](p, current); got != "Verdict" {
			t.Errorf("%s: the page opens at %q", name, got)
		}
		if eval[bool](p, `document.getElementById("gpu0-segments").open`) {
			t.Errorf("%s: the segments are not folded", name)
		}
		p.do(`document.querySelector('.toc a[href="#gpu0-segments"]').click();
			await new Promise(f => setTimeout(f, 200))`)
		if !eval[bool](p, `document.getElementById("gpu0-segments").open`) {
			t.Errorf("%s: a link to the segments does not open them", name)
		}
		if got := eval[string](p, current); got != "Segments" {
			t.Errorf("%s: the contents mark %q, want what was chosen", name, got)
		}
		box := eval[struct{ Top, Bottom, Right, Part, Left float64 }](p, `(() => {
			const nav = document.querySelector(".toc").getBoundingClientRect(),
				part = document.getElementById("gpu0-segments").getBoundingClientRect();
			return { Top: nav.top, Bottom: nav.bottom, Right: nav.right, Part: part.top, Left: part.left };
		})()`)
		if beside := name == "wide"; box.Top < -1 || box.Top > 40 || beside && box.Right > box.Left ||
			!beside && box.Bottom > box.Part+1 || box.Part < 0 || box.Part > 120 {
			t.Errorf("%s: the contents lie at %+v", name, box)
		}
		p.do(`scrollTo(0, document.documentElement.scrollHeight)`)
		if got := eval[string](p, current); got != "About the data" {
			t.Errorf("%s: the contents mark %q at the end", name, got)
		}
		if set.phone && !eval[bool](p, `(() => { const r = document.querySelector(".toc [aria-current]").getBoundingClientRect();
			return r.left > -2 && r.right < innerWidth + 2; })()`) {
			t.Errorf("%s: the entry that is marked is out of sight", name)
		}
		p.quiet()
	}
}

// Of several devices the contents list the parts of the one that is shown.
func TestContentsOfDevices(t *testing.T) {
	p := open(t, random(t, 2, build.RandomOptions{Options: build.Options{Devices: 3}, Events: 900}), settings{})
	const shown = `[...document.querySelectorAll(".toc li li a")].filter(a => a.offsetParent)
		.every(a => a.hash.startsWith("#gpu%d-")) && document.querySelectorAll(".toc .shown").length === 1`
	for _, gpu := range []int{2, 1} {
		p.do(`document.querySelector('.toc a[href="#gpu%d"]').click(); await new Promise(f => setTimeout(f, 200))`, gpu)
		if !eval[bool](p, shown, gpu) {
			t.Errorf("the contents do not list the parts of GPU %d alone", gpu)
		}
	}
	p.quiet()
}
