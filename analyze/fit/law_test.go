package fit

import "testing"

// TestLaws finds the laws that sizes were made of, and none where there is none.
func TestLaws(t *testing.T) {
	line := []Point{{2}, {3}, {4}}
	plane := []Point{{2, 128}, {4, 128}, {2, 256}, {4, 192}}
	for name, c := range map[string]struct {
		points []Point
		size   func(p Point) int64
		kind   kind
	}{
		"constant":     {line, func(p Point) int64 { return 4096 }, proven},
		"proportional": {line, func(p Point) int64 { return 1000 * p[0] }, proven},
		"square":       {line, func(p Point) int64 { return 12 * p[0] * p[0] }, proven},
		"affine":       {line, func(p Point) int64 { return 512 + 1000*p[0] }, proven},
		"quadratic":    {line, func(p Point) int64 { return 512 + 4*p[0] + 16*p[0]*p[0] }, exact},
		"of two":       {line[:2], func(p Point) int64 { return 512 + 1000*p[0] }, exact},
		"triples":      {[]Point{{16}, {32}}, func(p Point) int64 { return 4 * p[0] * p[0] * p[0] }, proven},
		"one less":     {line[:2], func(p Point) int64 { return 128000 * (p[0] - 1) }, proven},
		"next tokens":  {plane, func(p Point) int64 { return 4 * p[0] * (p[1] - 1) }, proven},
		"attention":    {plane, func(p Point) int64 { return 32 * p[0] * p[1] * p[1] }, proven},
		"tokens":       {plane, func(p Point) int64 { return 768 * p[0] * p[1] }, proven},
		"one more":     {plane, func(p Point) int64 { return 768 * p[0] * (p[1] + 1) }, proven},
	} {
		names := len(c.points[0])
		var sizes []int64
		for _, p := range c.points {
			sizes = append(sizes, c.size(p))
		}
		l := findLaw(terms([]string{"batch", "seq"}[:names]), c.points, sizes)
		if l == nil || l.kind != c.kind {
			t.Errorf("%s: %+v", name, l)
			continue
		}
		for _, p := range append(c.points, Point{64, 2048}[:names]) {
			if l.at(p) != c.size(p) {
				t.Errorf("%s at %v: %d, want %d", name, p, l.at(p), c.size(p))
			}
		}
	}
	if l := findLaw(terms([]string{"side"}), []Point{{128}, {192}}, []int64{1 << 19, 81 << 15}); l == nil || l.at(Point{256}) != 1<<23 {
		t.Errorf("all pairs of an image's pixels: %+v", l)
	}
	larger := func(p Point) int64 { return 12 * (p[0] + 32) * (p[0] + 32) }
	if l := findLaw(terms([]string{"side"}), []Point{{96}, {128}}, []int64{larger(Point{96}), larger(Point{128})}); l == nil ||
		l.kind != exact || l.at(Point{640}) != larger(Point{640}) {
		t.Errorf("images of another side: %+v", l)
	}
	if l := findLaw(terms([]string{"seq"}), line, []int64{1000, 1700, 1900}); l != nil {
		t.Errorf("a law of noise: %+v", l)
	}
	if l := findLaw(terms([]string{"seq"}), []Point{{8}, {16}}, []int64{512 << 10, 4 << 20}); l != nil && l.at(Point{64}) > 64<<20 {
		t.Errorf("triples of two layers' sizes: %+v", l)
	}
}

// TestFarValues holds that products of values that are too high stay high.
func TestFarValues(t *testing.T) {
	far := Point{1 << 24, 1 << 24}
	for _, m := range terms([]string{"batch", "seq"}) {
		if n := m.of(far); m != (term{}) && n < 1<<24 {
			t.Errorf("%v: %d", m, n)
		}
	}
	l := along(term{1, 2}, 4096, Point{2, 128})
	if n := l.at(far); n <= l.at(Point{2, 128}) {
		t.Errorf("%d bytes", n)
	}
}
