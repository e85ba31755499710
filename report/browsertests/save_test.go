package browsertests

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
)

// keepSaved has the page keep what it would download: its name, and the data as text or, of a PNG, the picture's size
// and how many colors it has.
const keepSaved = `
	const blobs = new Map();
	URL.createObjectURL = b => { const u = "blob:" + blobs.size; blobs.set(u, b); return u; };
	URL.revokeObjectURL = () => {};
	HTMLAnchorElement.prototype.click = function () { globalThis.saving = (async () => {
		const b = blobs.get(this.href), name = this.download;
		if (b.type !== "image/png") return [name, await b.text()];
		const i = await createImageBitmap(b), c = new OffscreenCanvas(i.width, i.height).getContext("2d");
		c.drawImage(i, 0, 0);
		const colors = new Set(new Uint32Array(c.getImageData(0, 0, i.width, i.height).data.buffer));
		return [name, i.width + "x" + i.height + " " + colors.size];
	})(); }`

// save presses a button and gives the name and the data of the file.
func (p *page) save(scope, text string) (name, data string) {
	p.Helper()
	got := eval[[2]string](p, `(async () => {
		globalThis.saving = null;
		[...document.querySelectorAll(%q)].find(b => b.textContent === %q).click();
		while (!globalThis.saving) await new Promise(f => setTimeout(f, 10));
		return globalThis.saving;
	})()`, scope+" button", text)
	return got[0], got[1]
}

// table reads CSV without its first line, which it compares.
func table(t *testing.T, data, head string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(data, "\ufeff"))).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%v in %.200q", err, data)
	}
	if got := strings.Join(rows[0], ","); got != head {
		t.Errorf("the columns are %q, want %q", got, head)
	}
	return rows[1:]
}

// drawing counts the elements of a well-formed SVG, and gives its text.
func drawing(t *testing.T, data string) (elements map[string]int, text string) {
	t.Helper()
	elements = map[string]int{}
	d := xml.NewDecoder(strings.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements, text
		}
		if err != nil {
			t.Fatalf("%v in %.300q", err, data)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			text += string(token)
		}
	}
}

// What is saved has the figures of the analysis, and pictures have what one sees.
func TestSave(t *testing.T) {
	p := open(t, golden(t, "ghost"), settings{})
	tl := p.result.Devices[0].Timeline
	p.do(`%s; snapana.live[0].view.set({color: "category"})`, keepSaved)

	name, data := p.save(".toolbar", "CSV")
	rows := table(t, data, "block,address,size (bytes),requested (bytes),from event,from time (microseconds),to event,"+
		"to time (microseconds),purpose,stream,pool,site")
	if name != "snapana-gpu0-timeline.csv" || len(rows) != len(tl.Lives) {
		t.Errorf("%s has %d lines, want %d", name, len(rows), len(tl.Lives))
	}
	for i, row := range rows {
		l := &tl.Lives[i]
		from, to := fmt.Sprint(l.Born), fmt.Sprint(l.Freed)
		if l.Born < 0 {
			from = ""
		}
		if l.Freed < 0 {
			to = ""
		}
		if row[1] != fmt.Sprintf("0x%x", l.Addr) || row[2] != fmt.Sprint(l.Rounded) || row[4] != from || row[6] != to {
			t.Fatalf("line %d is %q, want %+v", i, row, l)
		}
	}
	for _, mode := range []string{"stacked", "reserved", "free"} {
		p.do(`snapana.live[0].view.show(%q)`, mode)
		_, data := p.save(".toolbar", "CSV")
		if mode == "reserved" {
			table(t, data, "address,size (bytes),from event,from time (microseconds),to event,to time (microseconds),"+
				"stream,pool")
			continue
		}
		head, _, _ := strings.Cut(strings.TrimPrefix(data, "\ufeff"), "\r\n")
		for _, row := range table(t, data, head) {
			var event int
			var sum, v, want int64
			fmt.Sscan(row[0], &event)
			if mode == "stacked" {
				if last := len(row) - 1; row[last] != "no" {
					t.Fatalf("the page has all allocations, but says %q", row)
				} else {
					row = row[:last]
				}
			}
			for _, cell := range row[2:] {
				fmt.Sscan(cell, &v)
				sum += v
			}
			if want = active(tl, event); mode == "free" {
				want = sumOf(classesAt(p.result, event))
			}
			if sum != want {
				t.Fatalf("%s after event %d: %d, want %d", mode, event, sum, want)
			}
		}
	}
	p.do(`snapana.live[0].view.show("bands")`)
	name, data = p.save(".toolbar", "PNG")
	var width, height, colors int
	if _, err := fmt.Sscanf(data, "%dx%d %d", &width, &height, &colors); err != nil ||
		name != "snapana-gpu0-timeline.png" || width < 2000 || height < 800 || colors < 5 {
		t.Errorf("%s is %s", name, data)
	}
	_, picture := p.save(".toolbar", "SVG")
	elements, text := drawing(t, picture)
	for _, want := range []string{"activation", "peak", "2 GiB", "trace event", "reserved"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q in %.300q", want, text)
		}
	}
	if elements["path"] < 10 || len(picture) > 2<<20 {
		t.Errorf("the picture has %v in %d bytes", elements, len(picture))
	}

	for tab, want := range map[string]string{
		"Flame graph": "depth,bytes,blocks,self (bytes),call", "Call tree": "depth,bytes,blocks,self (bytes),call",
		"Table":    "bytes,blocks,requested (bytes),site",
		"Segments": "address,size (bytes),active (bytes),blocks,stream,pool",
		"Events":   "event,time (microseconds),what,size (bytes),address,site or pool",
		"Compare":  "net (bytes),allocated (bytes),freed (bytes),site",
	} {
		p.do(`snapana.live[0].view.set({markA: 100, markB: 900}); snapana.live[0].tabs.open(%q)`, tab)
		_, data := p.save(".tab-bar", "CSV")
		rows := table(t, data, want)
		switch tab {
		case "Segments":
			if n := len(tl.StateAt(eval[int](p, `snapana.live[0].view.state.cursor`)).Segments); len(rows) != n {
				t.Errorf("%d segments, want %d", len(rows), n)
			}
		case "Events":
			n := 0
			for i := range tl.Lives {
				if tl.Lives[i].Born >= 0 {
					n++
				}
			}
			for _, row := range rows {
				if row[2] == "alloc" {
					n--
				}
			}
			if n != 0 || len(rows) == 0 {
				t.Errorf("the events lack %d allocations", n)
			}
		case "Compare":
			sum := int64(0)
			for _, row := range rows {
				var v int64
				fmt.Sscan(row[0], &v)
				sum += v
			}
			if want := active(tl, 900) - active(tl, 100); sum != want {
				t.Errorf("the range adds up to %d, want %d", sum, want)
			}
		}
		if tab == "Flame graph" || tab == "Segments" {
			_, picture := p.save(".tab-bar", "SVG")
			if elements, text := drawing(t, picture); elements["rect"] < 5 || len(text) < 20 {
				t.Errorf("%s as a picture: %v, %.100q", tab, elements, text)
			}
			p.save(".tab-bar", "PNG")
		} else if eval[bool](p, `[...document.querySelectorAll(".tab-bar button")]
			.some(b => b.textContent === "PNG" && b.offsetParent)`) {
			t.Errorf("%s offers a picture", tab)
		}
	}
	p.quiet()
}

// Names that a spreadsheet would take for formulas, and markup, are saved as texts.
func TestSaveHostile(t *testing.T) {
	evil := []string{"=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "\t=1", "＝1", `<script>"&,x</script>`}
	made := build.Run(build.Options{Devices: 1}, func(d *build.Device) {
		for _, name := range evil {
			d.Stack = build.NewStack(name + ":1:" + name)
			d.Alloc(1 << 20)
		}
	})
	p := open(t, analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true}), settings{})
	p.do(keepSaved)
	for _, tab := range []string{"Table", "Call tree", "Flame graph", "Events"} {
		p.do(`snapana.live[0].tabs.open(%q)`, tab)
		_, data := p.save(".tab-bar", "CSV")
		head, _, _ := strings.Cut(strings.TrimPrefix(data, "\ufeff"), "\r\n")
		names := 0
		for _, row := range table(t, data, head) {
			for _, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") || strings.HasPrefix(cell, "＝") {
					t.Errorf("%s: the cell %q is a formula", tab, cell)
				}
				if strings.Contains(cell, "HYPERLINK") {
					names++
				}
			}
		}
		if names == 0 {
			t.Errorf("%s lacks the names: %.300q", tab, data)
		}
	}
	p.do(`snapana.live[0].tabs.open("Flame graph")`)
	_, picture := p.save(".tab-bar", "SVG")
	if elements, _ := drawing(t, picture); elements["script"] > 0 {
		t.Error("a name became a script of the picture")
	}
	p.quiet()
}

// A table has all that lived in the part that is shown, also what a column's highest moment does not show.
func TestSaveShortLives(t *testing.T) {
	const blocks = 4000
	made := build.Run(build.Options{}, func(d *build.Device) {
		for i := range blocks {
			d.Stack = build.NewStack(fmt.Sprintf("/app/train.py:%d:step", 1+i%2))
			d.Free(d.Alloc(int64(1+min(i, blocks-i)) << 10))
		}
	})
	p := open(t, analyzetest.Run(t, buildtest.Read(t, made), analyze.Options{NoReplay: true}), settings{})
	p.do(`%s`, keepSaved)
	_, data := p.save(".toolbar", "CSV")
	if n := strings.Count(data, "\r\n") - 1; n != blocks {
		t.Errorf("the table has %d allocations, want %d", n, blocks)
	}
	sum := func() (sum int64) {
		_, data := p.save(".toolbar", "CSV")
		head, _, _ := strings.Cut(strings.TrimPrefix(data, "\ufeff"), "\r\n")
		for _, row := range table(t, data, head) {
			for _, cell := range row[2 : len(row)-1] {
				var v int64
				fmt.Sscan(cell, &v)
				sum += v
			}
		}
		return sum
	}
	p.do(`snapana.live[0].view.show("stacked")`)
	all := sum()
	p.do(`snapana.live[0].view.set({search: "train.py:1 "})`)
	one := sum()
	p.do(`snapana.live[0].view.set({search: "train.py:2 "})`)
	if two := sum(); one <= 0 || two <= 0 || one+two != all {
		t.Errorf("of %d bytes one search finds %d, and the other %d", all, one, two)
	}
	p.do(`snapana.live[0].view.set({search: ""}); snapana.live[0].tabs.open("Flame graph");
		snapana.live[0].tabs.shown.picture = () => { throw new Error("too large") };
		[...document.querySelectorAll(".tab-bar button")].find(b => b.textContent === "PNG").click()`)
	if !eval[bool](p, `[...document.querySelectorAll(".tab-bar button")]
		.some(b => b.textContent === "Failed" && b.title === "too large")`) {
		t.Error("a picture that can't be made fails silently")
	}
	p.quiet()
}
