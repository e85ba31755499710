package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/internal/chart"
)

// TestSeries draws counters as PNG and as SVG.
func TestSeries(t *testing.T) {
	r := analyzetest.Stats(t)
	for _, ext := range []string{".png", ".svg"} {
		to := Medium{SVG: ext == ".svg"}
		p, ok := Series(r)
		if !ok {
			t.Fatal("nothing to draw")
		}
		var a, b bytes.Buffer
		if err := p.Write(&a, to); err != nil {
			t.Fatal(err)
		}
		if err := p.Write(&b, to); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: two drawings differ, %v", ext, err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, p.Name+ext), a.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if ext == ".svg" {
			checkSVG(t, a.String())
			continue
		}
		img, err := png.Decode(&a)
		if err != nil {
			t.Fatal(err)
		}
		rgba := img.(*image.RGBA)
		unclipped(t, p.Name, rgba)
		if count(rgba, rgba.Bounds(), chart.ColorOOM) < 50 || count(rgba, rgba.Bounds(), chart.ColorSplit) < 50 {
			t.Error("no trend, or no refused cudaMalloc, in the picture")
		}
	}
	if _, ok := Series(&analyze.Stats{}); ok {
		t.Error("a picture of nothing")
	}
}

func checkSVG(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"Memory over time", "growing", "8.00 MiB per step", "rank7.jsonl"} {
		if !strings.Contains(svg, text) {
			t.Errorf("the SVG lacks %q", text)
		}
	}
}
