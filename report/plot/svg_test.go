package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/fixtures/analyzetest"
)

// elements are all that a picture may consist of: nothing that runs or refers elsewhere.
var elements = map[string]bool{"svg": true, "title": true, "desc": true, "rect": true, "defs": true, "path": true,
	"text": true, "pattern": true}

// TestSVG reads pictures whose texts are hostile: they are well-formed, refer to nothing
// outside, and stay small.
func TestSVG(t *testing.T) {
	r := withWhatIf(analyzetest.Failed(t))
	evil := "</title><script>alert(1)</script>\" onload=\"x\u202e\u0416\u4e2d\u0627\x00\x1b[31m&amp;]]>"
	r.Snapshot.Name = evil + strings.Repeat("n", 1<<20)
	r.Devices[0].Moments[0].Live[0].Site = evil + strings.Repeat("s", 1<<20)
	r.Devices[0].WhatIf.Rows[1].Text = evil
	for _, p := range All(r) {
		var b bytes.Buffer
		if err := p.Write(&b, Medium{SVG: true, Width: 1200}); err != nil {
			t.Fatal(err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, "hostile-"+p.Name+".svg"), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if b.Len() > 400_000 {
			t.Errorf("%s: %d bytes", p.Name, b.Len())
		}
		wellFormed(t, p.Name, b.Bytes())
		if !bytes.Contains(b.Bytes(), []byte(`width="1200" height="675" viewBox="0 0 1600 900"`)) {
			t.Errorf("%s: %.200s", p.Name, b.Bytes())
		}
	}
}

func wellFormed(t *testing.T, name string, svg []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !elements[e.Name.Local] {
			t.Errorf("%s has <%s>", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") &&
				!strings.HasPrefix(a.Value, "data:image/png;base64,") {
				t.Errorf("%s has %s=%.60s", name, a.Name.Local, a.Value)
			}
		}
	}
}

// TestText checks that each text of a file is text, as long as it was laid out to be.
func TestText(t *testing.T) {
	p := newPage(Medium{SVG: true}, "Title", "about")
	p.textRight(bold(textSize), 900, 300, "Zz <\u0416>")
	var b bytes.Buffer
	if err := p.encode(&b); err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`<text [^>]*textLength="([0-9.]+)"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(b.String(), -1)
	for i, want := range []string{"Title", "about", "Zz &lt;\u0416&gt;"} {
		if i >= len(found) || found[i][2] != want || found[i][1] == "0" {
			t.Errorf("text %d: got %q, want %q", i, found, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"model.py:7 forward": "model.py:7 forward",
		"Größe Ж Ω … µs":     "Größe Ж Ω … µs",
		"模型.py":              `\u6a21\u578b.py`,
		"שלום":               `\u05e9\u05dc\u05d5\u05dd`,
		"a\U0001f600b":       `a\U0001f600b`,
		"a\x1b[31m\u202eb":   "a [31m b",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSizes checks that pictures have the size that was asked for, and that a larger one shows
// the same.
func TestSizes(t *testing.T) {
	r := analyzetest.Failed(t)
	for _, m := range []Medium{{Width: 400}, {Width: 1234, Height: 800}, {Width: 3200}} {
		p, err := Of(KindStacks, r, &r.Devices[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.Write(&b, m); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		w, h := m.size()
		if img.Bounds() != image.Rect(0, 0, w, h) {
			t.Errorf("%+v: %v", m, img.Bounds())
		}
		// In this sample the first bar is nearly as wide as the area of the bars.
		blue := count(img.(*image.RGBA), img.Bounds(), color.RGBA{0x00, 0x72, 0xb2, 0xff})
		if share := float64(blue) / float64(w*h); share < 0.02 || share > 0.2 {
			t.Errorf("%+v: %.3f is blue", m, share)
		}
	}
}
