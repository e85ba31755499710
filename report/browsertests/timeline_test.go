package browsertests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze/units"
)

// timelineBox is where the timeline is on the screen: left, top, width.
func (p *page) timelineBox() [3]float64 {
	p.Helper()
	p.do(`document.querySelector(".tl-box").scrollIntoView({block: "center"})`)
	return eval[[3]float64](p, `(r => [r.left, r.top, r.width])(document.querySelector(".tl-box")
		.getBoundingClientRect())`)
}

func (p *page) span() float64 {
	p.Helper()
	return eval[float64](p, `snapana.live[0].view.state.x1 - snapana.live[0].view.state.x0`)
}

// The wheel scrolls the page, and zooms only with Ctrl or after a click into the timeline, as the page says.
func TestWheelIsThePages(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	box := p.timelineBox()
	x, y := box[0]+box[2]/2, box[1]+200
	whole, scrolled := p.span(), eval[float64](p, `scrollY`)
	p.wheel(x, y, -120, 0)
	if p.span() != whole || eval[float64](p, `scrollY`) >= scrolled {
		t.Error("the wheel zooms, and does not scroll the page")
	}
	if hint := eval[string](p, `document.querySelector(".wheel-hint").innerText`); !strings.HasPrefix(hint, "Ctrl and wheel") {
		t.Errorf("the hint is %q", hint)
	}
	box = p.timelineBox()
	p.wheel(x, box[1]+200, -120, kb.ModifierCtrl)
	near := p.span()
	if near >= whole {
		t.Error("Ctrl and wheel does not zoom")
	}
	p.run(chromedp.MouseClickXY(x, box[1]+200))
	p.wheel(x, box[1]+200, -120, 0)
	if p.span() >= near {
		t.Error("after a click the wheel does not zoom")
	}
	near = p.span()
	p.do(`document.querySelector("input[type=search]").focus({preventScroll: true})`)
	p.wheel(x, box[1]+200, -120, 0)
	if p.span() != near {
		t.Error("the wheel still zooms after the timeline lost the focus")
	}
	p.quiet()
}

// The band under the pointer has an edge, drawn where the band is.
func TestHoverOutlines(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	box := p.timelineBox()
	x := box[0] + float64(int(box[2]*0.9))
	p.run(moved(x, box[1]+5), moved(x, box[1]+340))
	p.do(``)
	got := eval[struct{ ID, Edge, Within int }](p, `(() => {
		const t = snapana.live[0].timeline, W = t.frame.width, c = Math.floor(%f), h = t.hit(c, 340);
		let y = 340 - 18;
		while (y > 0 && t.frame.ids[(y - 1) * W + c] === h.id) y--;
		const shades = document.querySelector(".tl-over").getContext("2d").getImageData(c + 4, 0, 1, 378).data,
			shade = y => shades[4 * y + 3];
		return {ID: h.id, Edge: Math.max(shade(y + 17), shade(y + 18)), Within: shade(y + 21)};
	})()`, x-box[0])
	if got.ID < 0 || got.Edge < 100 || got.Within > 100 {
		t.Errorf("row %d has an edge of %d, within it %d", got.ID, got.Edge, got.Within)
	}
	p.picture("outline")
	p.quiet()
}

// A click on a color leaves only what has it, another brings all back, with shift it adds.
func TestLegendChooses(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	press := func(i int, keys kb.Modifier) {
		at := eval[[2]float64](p, `(r => [r.left + 20, r.top + 6])(document.querySelectorAll(".tl-legend button")[%d]
			.getBoundingClientRect())`, i)
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed,
			input.DispatchMouseEventTypeMouseReleased} {
			p.run(mouse(input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft,
				ClickCount: 1, Modifiers: int64(keys)}))
		}
		p.do(``)
	}
	on := func() []string {
		return eval[[]string](p, `[...document.querySelectorAll(".tl-legend button[aria-pressed=true]")]
			.map(b => b.textContent)`)
	}
	live := func(names ...string) int64 {
		tl := p.result.Devices[0].Timeline
		e, sum := eval[int](p, `snapana.live[0].view.state.cursor`), int64(0)
		for i := range tl.Lives {
			if !tl.Lives[i].LiveAfter(e) {
				continue
			}
			category := eval[string](p, `(d => d.tables.categories[d.kinds.category[d.kind[%d]]])(snapana.live[0].device)`, i)
			for _, n := range names {
				if n == category {
					sum += tl.Lives[i].Rounded
				}
			}
		}
		return sum
	}
	p.timelineBox()
	p.do(`snapana.live[0].view.set({color: "category"})`)
	names := eval[[]string](p, `[...document.querySelectorAll(".tl-legend button")].map(b => b.textContent)`)
	if len(names) < 2 {
		t.Fatalf("the legend has only %q", names)
	}
	for _, step := range []struct {
		i    int
		keys kb.Modifier
		want []string
	}{{0, 0, names[:1]}, {1, kb.ModifierShift, names[:2]}, {1, kb.ModifierShift, names[:1]}, {1, 0, names[1:2]}, {1, 0, nil}} {
		press(step.i, step.keys)
		if got := on(); strings.Join(got, "|") != strings.Join(step.want, "|") {
			t.Errorf("after a click on %s with %v: %q, want %q", names[step.i], step.keys, got, step.want)
		}
		found := eval[string](p, `document.querySelector(".found").textContent`)
		if step.want == nil {
			if found != "" {
				t.Errorf("with all colors the page still says %q", found)
			}
		} else if want := "at the cursor " + units.Bytes(live(step.want...)); !strings.Contains(found, want) {
			t.Errorf("of %q the page says %q, want %q", step.want, found, want)
		}
		if len(step.want) == 1 {
			p.picture("legend")
		}
	}
	p.quiet()
}

// A drag with Shift, and with the button any drag, selects a range; the line below says what came and went in it.
func TestSelectRange(t *testing.T) {
	for _, phone := range []bool{false, true} {
		set := settings{}
		if phone {
			set = settings{width: 390, height: 800, phone: true}
		}
		p := open(t, golden(t, "ghost"), set)
		box := p.timelineBox()
		x0, x1, y := box[0]+box[2]*0.3, box[0]+box[2]*0.6, box[1]+150
		whole := p.span()
		if phone {
			p.run(command(emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}))
			p.do(`[...document.querySelectorAll(".toolbar button")].find(b => b.textContent === "Select").click()`)
			p.run(touch(input.DispatchTouchEventTypeTouchStart, [2]float64{x0, y}))
			for i := 1.0; i <= 5; i++ {
				p.run(touch(input.DispatchTouchEventTypeTouchMove, [2]float64{x0 + (x1-x0)*i/5, y}))
			}
			p.run(touch(input.DispatchTouchEventTypeTouchEnd))
			p.do(``)
		} else {
			p.drag(x0, y, x1, y, kb.ModifierShift)
		}
		tl := p.result.Devices[0].Timeline
		n := float64(tl.Trace.Len())
		marks := eval[[2]int](p, `[snapana.live[0].view.state.markA, snapana.live[0].view.state.markB]`)
		if float64(marks[0]) < n*0.28 || float64(marks[0]) > n*0.33 || float64(marks[1]) < n*0.55 ||
			float64(marks[1]) > n*0.62 || p.span() != whole {
			t.Errorf("phone %v: a drag selects %v of %.0f events", phone, marks, n)
		}
		var came, went sum
		for i := range tl.Lives {
			l := &tl.Lives[i]
			if int(l.Born) > marks[0] && int(l.Born) <= marks[1] {
				came.Count++
				came.Bytes += l.Rounded
			}
			if int(l.Freed) > marks[0] && int(l.Freed) <= marks[1] {
				went.Count++
				went.Bytes += l.Rounded
			}
		}
		said := eval[string](p, `document.querySelector(".range").innerText.replaceAll("\n", " ")`)
		for _, want := range []string{
			fmt.Sprintf("%s events", units.Count(int64(marks[1]-marks[0]))), "step",
			fmt.Sprintf("allocated %s in %s block", units.Bytes(came.Bytes), units.Count(came.Count)),
			fmt.Sprintf("freed %s in %s block", units.Bytes(went.Bytes), units.Count(went.Count)),
		} {
			if !strings.Contains(said, want) {
				t.Errorf("phone %v: the line is %q, want %q in it", phone, said, want)
			}
		}
		p.picture(fmt.Sprintf("range-%v", phone))
		p.do(`[...document.querySelectorAll(".range button")].find(b => b.textContent === "By site").click()`)
		if !eval[bool](p, `document.querySelector(".ruler thead").innerText.startsWith("Net")`) {
			t.Error("the button does not show the range by site")
		}
		p.quiet()
	}
}
