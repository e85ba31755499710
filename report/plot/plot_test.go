package plot

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/internal/chart"
)

// keep names a folder that gets the pictures, for a look at them.
var keep = flag.String("keep", "", "folder to write the pictures to")

// drawAll draws every picture and checks what holds for all of them.
func drawAll(t *testing.T, r *analyze.Result, prefix string) map[string]*image.RGBA {
	t.Helper()
	out := map[string]*image.RGBA{}
	for _, p := range All(r) {
		var b bytes.Buffer
		if err := p.Write(&b, Medium{}); err != nil {
			t.Fatal(err)
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, prefix+p.Name+".png"), b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		img, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		if img.Bounds() != image.Rect(0, 0, Width, pageHeight) {
			t.Errorf("%s is %v", p.Name, img.Bounds())
		}
		if out[p.Name] != nil {
			t.Errorf("two pictures are named %s", p.Name)
		}
		out[p.Name] = img.(*image.RGBA)
		unclipped(t, p.Name, out[p.Name])
	}
	return out
}

// unclipped fails when ink touches the border of a picture, where it would be cut off.
func unclipped(t *testing.T, name string, img *image.RGBA) {
	t.Helper()
	const border = 8
	white := color.RGBA{0xff, 0xff, 0xff, 0xff}
	for _, r := range []image.Rectangle{
		image.Rect(0, 0, Width, border), image.Rect(0, pageHeight-border, Width, pageHeight),
		image.Rect(0, 0, border, pageHeight), image.Rect(Width-border, 0, Width, pageHeight),
	} {
		if n := r.Dx() * r.Dy(); count(img, r, white) != n {
			t.Errorf("%s: ink runs over the border %v", name, r)
		}
	}
}

// count is the number of pixels of a color in a part of a picture.
func count(img *image.RGBA, in image.Rectangle, c color.RGBA) int {
	n := 0
	for y := in.Min.Y; y < in.Max.Y; y++ {
		for x := in.Min.X; x < in.Max.X; x++ {
			if img.RGBAAt(x, y) == c {
				n++
			}
		}
	}
	return n
}

// TestSame checks that equal results give equal bytes. What is big is drawn as vectors only, but in a
// full run.
func TestSame(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 40 pictures")
	}
	small := withWhatIf(analyzetest.Failed(t))
	for _, r := range []*analyze.Result{small, analyzetest.Big(t, 1)} {
		for _, p := range All(r) {
			for _, m := range []Medium{{SVG: true}, {}} {
				if r != small && !m.SVG && os.Getenv("SNAPANA_FULL") == "" {
					continue
				}
				var a, b bytes.Buffer
				if err := cmp.Or(p.Write(&a, m), p.Write(&b, m)); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(a.Bytes(), b.Bytes()) {
					t.Errorf("%s: two runs differ", p.Name)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	one := []string{"categories", "fragmentation", "segments-end", "segments-peak", "stacks", "timeline", "whatif"}
	if got := slices.Sorted(maps.Keys(drawAll(t, withWhatIf(analyzetest.Failed(t)), "one-"))); !slices.Equal(got, one) {
		t.Errorf("one device: %q", got)
	}
	var two []string
	for _, p := range All(analyzetest.Ranks(t, 2)) {
		two = append(two, p.Name)
	}
	want := []string{
		"timeline-gpu0", "categories-gpu0", "fragmentation-gpu0", "segments-peak-gpu0",
		"segments-end-gpu0", "stacks-gpu0",
		"timeline-gpu1", "categories-gpu1", "fragmentation-gpu1", "segments-peak-gpu1",
		"segments-end-gpu1", "stacks-gpu1",
	}
	if !slices.Equal(two, want) {
		t.Errorf("two devices: %q", two)
	}
}

// TestLeftOut checks that there is no picture where there is nothing to draw.
func TestLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 13 pictures")
	}
	if p := All(analyzetest.Empty(t)); len(p) != 0 {
		t.Errorf("an empty file gives %d pictures", len(p))
	}
	r := analyzetest.Failed(t)
	r.Devices[0].Timeline.Curve = nil
	if got := drawAll(t, r, "no-curve-"); got["timeline"] != nil || got["stacks"] == nil {
		t.Errorf("without a curve: %q", slices.Sorted(maps.Keys(got)))
	}
	r = analyzetest.Failed(t)
	for i := range r.Devices[0].Moments {
		r.Devices[0].Moments[i].Live = nil
	}
	if got := drawAll(t, r, "no-live-"); got["stacks"] != nil || got["segments-end"] == nil {
		t.Errorf("without live blocks: %q", slices.Sorted(maps.Keys(got)))
	}
	r = analyzetest.Failed(t)
	r.Devices[0].Moments = nil
	if got := slices.Sorted(maps.Keys(drawAll(t, r, "no-moments-"))); !slices.Equal(got,
		[]string{"categories", "fragmentation", "timeline", "whatif"}) {
		t.Errorf("without moments: %q", got)
	}
	r = analyzetest.Failed(t)
	r.Devices[0].Moments = r.Devices[0].Moments[:1]
	if got := drawAll(t, r, "peak-only-"); got["segments-end"] != nil || got["stacks"] == nil {
		t.Errorf("with a peak only: %q", slices.Sorted(maps.Keys(got)))
	}
}

func TestBig(t *testing.T) {
	if testing.Short() {
		t.Skip("the drawing is that of small results, only more of it")
	}
	if got := drawAll(t, analyzetest.Big(t, 1), "big-"); len(got) < 4 {
		t.Errorf("%d pictures", len(got))
	}
}

// TestHostile draws what no allocator would write; the pictures only have to come out.
func TestHostile(t *testing.T) {
	r := analyzetest.Failed(t)
	d := &r.Devices[0]
	tl := d.Timeline
	r.Snapshot.Name = "a\x1b[31m" + string(make([]byte, 3000)) + "\u4e2d\u6587.pickle"
	d.Moments[0].Live[0].Site = "\x00" + string(bytes.Repeat([]byte("W"), 5000))
	tl.Lives[1].Addr = 1            // outside of its segment
	tl.Lives[2].Rounded = -5        // nonsense
	tl.Lives[3].Rounded = 1 << 60   // runs over the end
	tl.Lives[4].Addr -= 1 << 20     // before its segment
	tl.PeakActive.Event = 1 << 30   // past the trace
	tl.PeakReserved.Bytes = 1 << 62 // taller than everything
	tl.Curve[3].Time = 1            // long before the first event
	tl.Curve[4].Time = 0            // unknown
	d.Moments[0].State.Segments[2].Size = 0
	for i := range 5000 {
		tl.OOMs = append(tl.OOMs, timeline.OOMEvent{Event: i % 100, Requested: -1})
		tl.Retries = append(tl.Retries, timeline.Retry{FirstEvent: i - 10})
	}
	d.Free.Get()[0].Classes.Hard, d.Free.Get()[1].Event = -1<<62, 1<<40
	d.Uses.Get()[0].Bytes[0], d.Uses.Get()[1].Last = -1<<62, -7
	withWhatIf(r).Devices[0].WhatIf.Rows[1].ReservedPeak = 1 << 62
	if got := drawAll(t, r, "hostile-"); len(got) != 7 {
		t.Errorf("%d pictures", len(got))
	}
}

// TestMapArea checks that the area of a color in a row is its share of the segment.
func TestMapArea(t *testing.T) {
	r := analyzetest.Run(t, buildtest.Read(t, build.Run(build.Options{}, func(d *build.Device) {
		stacks := []*build.Stack{build.NewStack("a.py:1:f"), build.NewStack("b.py:2:g"), build.NewStack("c.py:3:h")}
		d.Stack = stacks[0]
		d.Alloc(1 << 30)
		second, third := d.Alloc(1<<30), d.Alloc(1<<30)
		d.Free(second)
		d.Stack = stacks[1]
		d.Alloc(872 << 20)
		d.Stack = stacks[2]
		d.Alloc(128 << 20)
		d.Free(third)
	})), analyze.Options{NoReplay: true})
	d := &r.Devices[0]
	p := segmentsPage(Medium{}, subject{r, d, []*analyze.Moment{d.Moment("end")}}, byStack(d.Timeline, d.Moment("end")))
	area := image.Rect(mapLeft, p.top, Width-mapRight, pageHeight-66)
	const height = 3 // GiB, in rows of 1 GiB, which are equally high
	var row int
	for y := area.Min.Y; y < area.Max.Y; y++ {
		if p.raster.RGBAAt(area.Min.X, y) == chart.Slot(1).Color() {
			row++
		}
	}
	if row < area.Dy()/height-30 || row > area.Dy()/height+30 {
		t.Errorf("a row of 1 of %d GiB is %d of %d pixels high", height, row, area.Dy())
	}
	for rank, mib := range []int{1024, 872, 128} { // all in rows of 1 GiB
		got := count(p.raster, area, chart.Slot(rank+1).Color())
		want := row * area.Dx() * mib / 1024
		if got < want*98/100-row || got > want*102/100+row {
			t.Errorf("rank %d: %d pixels, want about %d", rank, got, want)
		}
	}
}

// TestPinsShow checks that a block which is far smaller than a pixel is still seen.
func TestPinsShow(t *testing.T) {
	r := analyzetest.Failed(t)
	d := &r.Devices[0]
	m := d.Moment("peak")
	d.Timeline.Lives[4].Rounded = 512
	p := segmentsPage(Medium{}, subject{r, d, []*analyze.Moment{m}}, byStack(d.Timeline, m))
	area := image.Rect(mapLeft, p.top, Width-mapRight, pageHeight-66)
	if n := count(p.raster, area, chart.Slot(4).Color()); n < 10 {
		t.Errorf("512 bytes in 1 GiB take %d pixels", n)
	}
}

func TestTimelineMarks(t *testing.T) {
	r := analyzetest.Failed(t)
	with := timelinePage(Medium{}, subject{r: r, d: &r.Devices[0]}).raster
	r.Devices[0].Timeline.OOMs = nil
	without := timelinePage(Medium{}, subject{r: r, d: &r.Devices[0]}).raster
	body := image.Rect(90, 200, Width-20, pageHeight-120)
	if n := count(with, body, chart.ColorOOM); n < body.Dy() {
		t.Errorf("the line of the failure has %d pixels over %d rows", n, body.Dy())
	}
	if n := count(without, body, chart.ColorOOM); n != 0 {
		t.Errorf("%d pixels of a failure that never was", n)
	}
}

func TestStackBars(t *testing.T) {
	d := &analyzetest.Big(t, 1).Devices[0]
	peak := d.Moment("peak")
	bars, rest, more := stackBars([]*analyze.Moment{peak, d.Moment("end")})
	sum := rest.bytes[0]
	for i, b := range bars {
		sum += b.bytes[0]
		if i > 0 && b.bytes[0] > bars[i-1].bytes[0] {
			t.Errorf("bar %d is longer than the one before", i)
		}
	}
	if len(bars) != maxBars || more != len(peak.Live)-maxBars || sum != peak.State.Totals.Active {
		t.Errorf("%d bars and %d more sum to %d of %d", len(bars), more, sum, peak.State.Totals.Active)
	}
}

// withWhatIf adds a replay under other settings.
func withWhatIf(r *analyze.Result) *analyze.Result {
	r.Devices[0].WhatIf = &whatif.Answer{
		Accuracy: whatif.Accuracy{Requests: 1000, SameRequests: 1000, Trusted: true}, Advice: whatif.Advice{Best: 1},
		Capacity: whatif.Capacity{Source: "failure", Reservable: 5 << 30},
		Rows: []whatif.Row{
			{Recorded: true, Outcome: whatif.Outcome{ReservedPeak: 4 << 30, AllocatedPeak: 2 << 30, Failures: 2,
				Retries: 1}},
			{Text: "expandable_segments:True", Outcome: whatif.Outcome{ReservedPeak: 3 << 30, AllocatedPeak: 2 << 30}},
			{Text: "max_split_size_mb:128", Outcome: whatif.Outcome{StartFailed: true}},
		},
	}
	return r
}

// Machines have at most 16 devices; a file that claims more, or a small one, gets pictures of the fullest.
func TestManyDevices(t *testing.T) {
	for bytes, want := range map[int64]int{0: 4, 100 << 20: 16} { // pictures take time, which goes by the file
		r, n := analyzetest.Ranks(t, 20), 0
		r.Snapshot.Bytes = bytes
		for _, p := range All(r) {
			if strings.HasPrefix(p.Name, "timeline-gpu") {
				n++
			}
		}
		if n != want {
			t.Errorf("%d timelines for a file of %d bytes, want %d", n, bytes, want)
		}
	}
	one := analyzetest.Ranks(t, 2)
	one.Devices[1] = analyze.Device{Timeline: &timeline.Timeline{Device: 1}}
	for _, p := range All(one) {
		if strings.Contains(p.Name, "gpu") {
			t.Errorf("%s: only one device did anything", p.Name)
		}
	}
}

// TestPNG compares the pixels of a file with those that were drawn.
func TestPNG(t *testing.T) {
	r := analyzetest.Failed(t)
	for _, m := range []Medium{{}, {Width: 333, Height: 207}} {
		p := timelinePage(m, subject{r: r, d: &r.Devices[0]})
		var b bytes.Buffer
		if err := p.encode(&b); err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(&b)
		if err != nil || got.Bounds() != p.raster.Rect {
			t.Fatalf("%v, error %v", got.Bounds(), err)
		}
		for y := range got.Bounds().Dy() {
			for x := range got.Bounds().Dx() {
				if r, g, b, a := got.At(x, y).RGBA(); (color.RGBA{uint8(r), uint8(g), uint8(b), uint8(a)}) != p.raster.RGBAAt(x, y) {
					t.Fatalf("pixel %d, %d is %v, drawn as %v", x, y, got.At(x, y), p.raster.RGBAAt(x, y))
				}
			}
		}
	}
}

// TestStrips compares an area that is filled in strips with one that is filled at once.
func TestStrips(t *testing.T) {
	for _, width := range []int{1600, 1234, 3200} {
		var pixels [2][]uint8
		for i, wrap := range []func(vg.Canvas) vg.Canvas{
			func(c vg.Canvas) vg.Canvas { return c },
			func(c vg.Canvas) vg.Canvas { return struct{ vg.Canvas }{c} }, // of an unknown kind
		} {
			p := newPage(Medium{Width: width}, "", "")
			f := &frame{Canvas: vgdraw.Canvas{Canvas: wrap(p.canvas.Canvas), Rectangle: p.canvas.Rectangle},
				y: func(v float64) vg.Length { return 20.3 }}
			rng := rand.New(rand.NewPCG(1, uint64(width)))
			x, y := 31.7, 100.0
			var line []vg.Point
			for x < 1500 {
				line = append(line, vg.Point{X: vg.Length(x), Y: vg.Length(y)})
				x += rng.Float64() * rng.Float64() * 100
				line = append(line, vg.Point{X: vg.Length(x), Y: vg.Length(y)})
				y = 50 + 600*rng.Float64()
			}
			f.under(color.RGBA{0x30, 0x60, 0x90, 0xff}, line)
			pixels[i] = p.raster.Pix
		}
		if !bytes.Equal(pixels[0], pixels[1]) {
			t.Errorf("%d pixels wide: strips have other pixels", width)
		}
	}
}

// TestVectors checks that maps of vectors are sound XML, say what the picture says, and have an
// explanation for each segment.
func TestVectors(t *testing.T) {
	hostile := analyzetest.Failed(t)
	hostile.Snapshot.Name = "a\x1b<script>&\ufffe]]>.pickle"
	hostile.Devices[0].Moments[0].Live[0].Site = "<b>\"'&"
	results := map[string]*analyze.Result{"small": analyzetest.Failed(t), "hostile": hostile}
	if !testing.Short() {
		results["big"] = analyzetest.Big(t, 1)
	}
	for name, r := range results {
		d := &r.Devices[0]
		m := d.Moment("peak")
		for _, by := range []By{ByStack, ByCategory, ByState} {
			p := segments(subject{r, d, []*analyze.Moment{m}}, by,
				func(row int32) string { return [...]string{"parameter", "", "input"}[row%3] })
			var a, b bytes.Buffer
			if err := cmp.Or(p.Write(&a, Medium{SVG: true}), p.Write(&b, Medium{SVG: true})); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s by %s: two runs differ", name, by)
			}
			if *keep != "" {
				os.WriteFile(filepath.Join(*keep, fmt.Sprintf("%s-%s.svg", name, by)), a.Bytes(), 0o644)
			}
			titles, texts := 0, ""
			for x := xml.NewDecoder(&a); ; {
				token, err := x.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s by %s: %v", name, by, err)
				}
				switch token := token.(type) {
				case xml.StartElement:
					if token.Name.Local == "title" {
						titles++
					}
					if token.Name.Local == "script" {
						t.Errorf("%s by %s: a script", name, by)
					}
				case xml.CharData:
					texts += string(token) + "\n"
				}
			}
			want := map[By]string{ByStack: "by stack", ByCategory: "parameter", ByState: "allocated"}[by]
			if titles < len(m.State.Segments) && titles < maxNotes || !strings.Contains(texts, want) {
				t.Errorf("%s by %s: %d titles, no %q", name, by, titles, want)
			}
		}
	}
}

// TestWrapped checks that more segments than have a row of their own are all drawn, with as many
// pixels for each byte.
func TestWrapped(t *testing.T) {
	r := analyzetest.Big(t, 1)
	d := &r.Devices[0]
	m := d.Moment("peak")
	if len(m.State.Segments) <= maxMapRows {
		t.Fatalf("%d segments", len(m.State.Segments))
	}
	p := segmentsPage(Medium{}, subject{r, d, []*analyze.Moment{m}}, byState(d.Timeline, m))
	area := image.Rect(mapLeft, p.top, Width-mapRight, pageHeight-66)
	live := count(p.raster, area, chart.Slot(1).Color())
	free, seen := 0, map[color.RGBA]bool{}
	for _, h := range hatches {
		for _, c := range []color.RGBA{h.ground, h.line} {
			if !seen[c] {
				seen[c] = true
				free += count(p.raster, area, c)
			}
		}
	}
	want := float64(m.State.Totals.Active) / float64(m.State.Totals.Reserved)
	if got := float64(live) / float64(live+free); got < want-0.05 || got > want+0.05 {
		t.Errorf("%.2f of the pixels are live, of the bytes %.2f", got, want)
	}
}
