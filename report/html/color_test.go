package html

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/snapana/snapana/report/internal/chart"
)

// The sheet has the colors of view, on light and on dark ground.
func TestStyleHasTheColorsOfView(t *testing.T) {
	light, dark, ok := strings.Cut(style(), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark colors")
	}
	for slot, s := range chart.Slots {
		name := chart.Slot(slot).Name()
		for ground, c := range map[string]color.RGBA{light: s.Light, dark: s.Dark} {
			if want := fmt.Sprintf("--%s: #%02x%02x%02x;", name, c.R, c.G, c.B); strings.Count(ground, want) != 1 {
				t.Errorf("style.css lacks %q, on light or dark", want)
			}
		}
		if class := chart.Slot(slot).Class(); !strings.Contains(style(), "."+class+" {\n\tbackground: var(--"+name+");") {
			t.Errorf("the class %s is not of the color %s", class, name)
		}
	}
}

// Any two slots can be told apart, with each of the common kinds of color blindness too, and
// the number on one can be read.
func TestSlotsCanBeToldApart(t *testing.T) {
	const least = 15 // CIE 76; about 2 is just seen
	for _, dark := range []bool{false, true} {
		shade := func(s chart.Shades) color.RGBA {
			if dark {
				return s.Dark
			}
			return s.Light
		}
		slots := chart.Slots[:chart.SlotUnknown]
		for kind, m := range blindness {
			for i := range slots {
				for k := range i {
					if d := distance(seen(shade(slots[i]), m), seen(shade(slots[k]), m)); d < least {
						t.Errorf("dark %v, %s: slots %d and %d are only %.1f apart", dark, kind, k, i, d)
					}
				}
			}
		}
		for i := 1; i < len(slots); i++ {
			on := color.RGBA{0xff, 0xff, 0xff, 0xff}
			if inked := []int{2, 4, 5, 6, 9, 10}; slices.Contains(inked, i) || dark && i == 3 {
				on = color.RGBA{0x10, 0x15, 0x1b, 0xff}
			}
			if c := contrast(on, shade(slots[i])); c < 4.5 {
				t.Errorf("dark %v: the number on slot %d has a contrast of %.1f", dark, i, c)
			}
		}
	}
}

// blindness are the kinds in linear sRGB (Machado, Oliveira and Fernandes, A Physiologically-based
// Model for Simulation of Color Vision Deficiency, 2009, severity 1).
var blindness = map[string][9]float64{
	"none":         {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"protanopia":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"deuteranopia": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"tritanopia":   {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
}

func linear(c color.RGBA) [3]float64 {
	var out [3]float64
	for i, b := range []uint8{c.R, c.G, c.B} {
		if v := float64(b) / 255; v <= 0.04045 {
			out[i] = v / 12.92
		} else {
			out[i] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	return out
}

// seen is a color in CIE Lab, as it is seen.
func seen(c color.RGBA, m [9]float64) [3]float64 {
	v, w := linear(c), [3]float64{}
	for i := range w {
		w[i] = min(max(m[3*i]*v[0]+m[3*i+1]*v[1]+m[3*i+2]*v[2], 0), 1)
	}
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x, y, z := f((0.4124*w[0]+0.3576*w[1]+0.1805*w[2])/0.95047), f(0.2126*w[0]+0.7152*w[1]+0.0722*w[2]),
		f((0.0193*w[0]+0.1192*w[1]+0.9505*w[2])/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// What grew and what shrank can be told apart, and text be read on each.
func TestSignsCanBeToldApart(t *testing.T) {
	const least = 15
	pattern := regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)
	grounds := strings.SplitN(diffStyle, "@media (prefers-color-scheme: dark)", 2)
	inks := [2]color.RGBA{{0x1c, 0x21, 0x28, 0xff}, {0xe7, 0xeb, 0xef, 0xff}}
	cards := [2]color.RGBA{{0xff, 0xff, 0xff, 0xff}, {0x17, 0x1c, 0x23, 0xff}}
	for i, ground := range grounds {
		colors := map[string]color.RGBA{}
		for _, m := range pattern.FindAllStringSubmatch(ground, -1) {
			var c color.RGBA
			if _, err := fmt.Sscanf(m[2], "%02x%02x%02x", &c.R, &c.G, &c.B); err != nil {
				t.Fatal(err)
			}
			colors[m[1]] = c
		}
		for _, name := range []string{"grown", "came", "shrunk", "left"} {
			if c := contrast(inks[i], colors[name]); c < 4.5 {
				t.Errorf("dark %v: text on %s has a contrast of %.1f", i == 1, name, c)
			}
		}
		for _, name := range []string{"grown-line", "shrunk-line", "side-a", "side-b"} {
			if c := contrast(cards[i], colors[name]); c < 4.5 {
				t.Errorf("dark %v: %s has a contrast of %.1f", i == 1, name, c)
			}
		}
		for kind, m := range blindness {
			for _, pair := range [][2]string{{"grown", "shrunk"}, {"came", "left"}, {"grown-line", "shrunk-line"}, {"side-a", "side-b"}} {
				if d := distance(seen(colors[pair[0]], m), seen(colors[pair[1]], m)); d < least {
					t.Errorf("dark %v, %s: %s and %s are only %.1f apart", i == 1, kind, pair[0], pair[1], d)
				}
			}
		}
	}
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

// contrast is that of WCAG.
func contrast(a, b color.RGBA) float64 {
	l := func(c color.RGBA) float64 {
		v := linear(c)
		return 0.2126*v[0] + 0.7152*v[1] + 0.0722*v[2]
	}
	x, y := l(a), l(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// The page's script asks for colors that the sheet has.
func TestScriptKnowsTheColors(t *testing.T) {
	asked := regexp.MustCompile(`\bcss\("([a-z0-9-]+)"\)`)
	files, err := filepath.Glob("ui/*.ts")
	if err != nil || len(files) == 0 {
		t.Fatal("no sources", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range asked.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(styles()+diffStyle, "--"+m[1]+": #") {
				t.Errorf("%s: no color --%s", file, m[1])
			}
		}
	}
}
