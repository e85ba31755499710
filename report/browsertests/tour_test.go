package browsertests

import (
	"cmp"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
)

// scene is a step of the tour: what a user does on a page, and what is seen then.
type scene struct {
	Name, About string
	of          func(t testing.TB) *analyze.Result
	set         settings
	do          func(p *page) // after the page has opened, nil for nothing
}

// script is a step that a script does.
func script(text string, args ...any) func(p *page) {
	return func(p *page) { p.Helper(); p.do(text, args...) }
}

func bundled(name string) func(t testing.TB) *analyze.Result {
	return func(t testing.TB) *analyze.Result { return golden(t, name) }
}

// scenes are the tour through the page: the picture of each kind of verdict, and then each thing that one can do.
func scenes() []scene {
	phone, wide := settings{width: 390, height: 844, phone: true}, settings{width: 1920, height: 1080}
	dark, darkPhone := settings{dark: true}, settings{width: 390, height: 844, phone: true, dark: true}
	var all []scene
	for _, c := range analyzetest.Verdicts() {
		all = append(all, scene{"verdict-" + c.Name, fmt.Sprintf("The verdict of a run that ends as %s.", c.Status.Word()),
			c.Open, settings{}, nil})
	}
	const to = `document.querySelector(%q).scrollIntoView({block: "start"})`
	ghost, pieces, healthy := bundled("ghost"), bundled("fragmentation"), bundled("healthy")
	return append(all, []scene{
		{"phone", "The picture on a phone.", pieces, phone, nil},
		{"phone-dark", "The picture on a phone, in the dark.", ghost, darkPhone, nil},
		{"dark", "The picture in the dark.", healthy, dark, nil},
		{"wide", "A wide screen has the contents beside the page.", healthy, wide, nil},
		{"contents", "The contents stay in sight and mark the part that is read.", healthy, settings{},
			script(`document.querySelector('.toc a[href$="uses"]').click()`)},
		{"unfolded", "A link to a detail unfolds it.", healthy, settings{},
			script(`document.querySelector('.toc a[href$="segments"]').click()`)},
		{"one-color-one-meaning", "Stacks have the color of what their memory is for.", healthy, settings{},
			script(to, "#gpu0-holders")},
		{"no-script", "Without scripts the still pictures and all tables are there.", ghost, settings{noScript: true}, nil},
		{"hover", "The allocation under the mouse is outlined, and named.", ghost, settings{}, func(p *page) {
			box := p.timelineBox()
			p.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0]+box[2]*0.7, box[1]+300))
			p.do(``)
		}},
		{"keys", "A sheet of all keys.", ghost, settings{}, func(p *page) {
			p.timelineBox()
			p.do(`document.querySelector(".tl-box").focus({preventScroll: true})`)
			p.run(chromedp.KeyEvent("?"))
			p.do(``)
		}},
		{"pinned", "A pinned allocation is docked, and moves nothing.", ghost, settings{},
			script(`snapana.live[0].view.set({pinned: 300}); `+to, ".tl-grid")},
		{"explain", "Who had the address before and after an allocation, and what freeing it returns.", ghost, settings{},
			script(`const l = snapana.live[0]; l.view.set({pinned: 300, cursor: l.device.lives.born[300]});
				l.tabs.open("Allocation"); l.tabs.element.scrollIntoView()`)},
		{"range", "A range of the timeline: what was allocated and freed in it.", ghost, settings{},
			script(`const l = snapana.live[0]; l.view.set({markA: 500, markB: 1500}); `+to, ".tl-grid")},
		{"flame", "The flame graph of what is live.", ghost, settings{},
			script(`snapana.live[0].tabs.open("Flame graph"); snapana.live[0].tabs.element.scrollIntoView()`)},
		{"flame-inverted", "The same upside down.", ghost, settings{},
			func(p *page) {
				p.do(`snapana.live[0].tabs.open("Flame graph"); snapana.live[0].tabs.element.scrollIntoView()`)
				p.flameButton("Inverted")
			}},
		{"segments", "All segments, by stream, pool and size.", pieces, settings{},
			script(`snapana.live[0].tabs.open("Segments"); snapana.live[0].tabs.element.scrollIntoView()`)},
		{"room", "Blocks are freed on trial: would the failed request fit?", pieces, settings{},
			script(`const l = snapana.live[0]; l.tabs.open("Make room");
				document.querySelector(".room input[type=checkbox]").click(); l.tabs.element.scrollIntoView()`)},
		{"limit", "Where the first request fails when the device has less.", pieces, settings{},
			script(to, ".limits")},
		{"events", "All events.", ghost, settings{},
			script(`snapana.live[0].tabs.open("Events"); snapana.live[0].tabs.element.scrollIntoView()`)},
		{"holders", "Which Python objects hold the memory.", analyzetest.Held, settings{},
			script(`snapana.live[0].tabs.open("Holders"); snapana.live[0].tabs.element.scrollIntoView()`)},
		{"searched", "What does not match a search is faded.", ghost, settings{},
			script(`snapana.live[0].view.set({search: "validate"}); `+to, ".searchbar")},
		{"zoomed", "With Ctrl and the wheel the timeline is zoomed.", healthy, settings{}, func(p *page) {
			box := p.timelineBox()
			for range 3 {
				p.wheel(box[0]+box[2]/2, box[1]+200, -240, kb.ModifierCtrl)
			}
		}},
	}...)
}

// TestTour keeps a picture of each scene, numbered, with a page that shows all of them. Nothing in them depends on the
// time or the machine's speed.
func TestTour(t *testing.T) {
	dir := os.Getenv("SNAPANA_SCREENSHOTS")
	if dir == "" {
		t.Skip("no folder for pictures")
	}
	dir = filepath.Join(dir, "tour")
	t.Setenv("SNAPANA_SCREENSHOTS", dir)
	all := scenes()
	for i := range all {
		s := &all[i]
		s.Name = fmt.Sprintf("%02d-%s", i+1, s.Name)
		s.set.width, s.set.height = cmp.Or(s.set.width, 1280), cmp.Or(s.set.height, 900)
		p := open(t, s.of(t), s.set)
		if s.do != nil {
			s.do(p)
		}
		if !s.set.noScript {
			p.do(`await new Promise(f => setTimeout(f, 300))`) // scrolling and drawing end
		}
		p.picture(s.Name)
		p.quiet()
	}
	f, err := os.Create(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := template.Must(template.New("").Parse(tourPage)).Execute(f, all); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

const tourPage = `<!DOCTYPE html>
<meta charset="utf-8"><title>The page, step by step</title>
<style>body { font: 15px system-ui; max-width: 1280px; margin: 24px auto } img { max-width: 100%; border: 1px solid #ccc }
figure { margin: 0 0 40px } figcaption { margin: 0 0 6px; font-weight: 600 }</style>
{{range .}}<figure><figcaption>{{.Name}}: {{.About}}</figcaption><img src="{{.Name}}.png" alt="{{.About}}"></figure>
{{end}}`
