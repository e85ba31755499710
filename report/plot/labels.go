package plot

import (
	"fmt"
	"image/color"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/snapana/snapana/report/internal/chart"
)

// labels places short texts beside points so that they stay on the canvas and off each other.
type labels struct {
	c     vgdraw.Canvas
	style vgdraw.TextStyle
	taken []vg.Rectangle
}

// add writes txt at the first free place around pt.
func (l *labels) add(pt vg.Point, txt string, ink color.Color) {
	txt = clean(txt)
	w, h := l.style.Width(txt)+12, l.style.Font.Size+10
	const gap = 9
	box := func(x, y vg.Length) vg.Rectangle {
		return vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + w, Y: y + h}}
	}
	places := []vg.Rectangle{
		box(pt.X+gap, pt.Y+gap/2), box(pt.X-gap-w, pt.Y+gap/2), // above
		box(pt.X+gap, pt.Y-gap/2-h), box(pt.X-gap-w, pt.Y-gap/2-h), // below
		box(pt.X+gap, pt.Y-gap-2*h), box(pt.X-gap-w, pt.Y-gap-2*h), // further below
		box(pt.X+gap, pt.Y-gap-3*h), box(pt.X-gap-w, pt.Y-gap-3*h),
	}
	best := places[0]
	for _, r := range places {
		if l.free(r) {
			best = r
			break
		}
	}
	if !l.inside(best) { // a canvas that is too small for any of them: pull it in
		dx := max(l.c.Min.X-best.Min.X, 0) + min(l.c.Max.X-best.Max.X, 0)
		dy := max(l.c.Min.Y-best.Min.Y, 0) + min(l.c.Max.Y-best.Max.Y, 0)
		best = box(best.Min.X+dx, best.Min.Y+dy)
	}
	l.taken = append(l.taken, best)
	l.c.FillPolygon(color.NRGBA{0xff, 0xff, 0xff, 0xd8}, []vg.Point{
		best.Min, {X: best.Max.X, Y: best.Min.Y}, best.Max, {X: best.Min.X, Y: best.Max.Y},
	})
	s := l.style
	s.Color = ink
	l.c.FillText(s, vg.Point{X: best.Min.X + 6, Y: best.Min.Y + 8}, txt)
}

func (l *labels) inside(r vg.Rectangle) bool {
	return r.Min.X >= l.c.Min.X && r.Max.X <= l.c.Max.X && r.Min.Y >= l.c.Min.Y && r.Max.Y <= l.c.Max.Y
}

func (l *labels) free(r vg.Rectangle) bool {
	for _, t := range l.taken {
		if r.Min.X < t.Max.X && t.Min.X < r.Max.X && r.Min.Y < t.Max.Y && t.Min.Y < r.Max.Y {
			return false
		}
	}
	return l.inside(r)
}

// clean makes a text fit to be drawn. The font has Latin, Greek and Cyrillic letters; letters
// of other scripts are written as in \u4e2d, since a picture that shows boxes, or letters in
// the wrong order, would name nothing.
func clean(s string) string {
	s = strings.ReplaceAll(chart.Plain(s), "\u202f", " ")
	var (
		b    strings.Builder
		face *sfnt.Font
		buf  sfnt.Buffer
	)
	for i, r := range s {
		if r < 0x7f {
			if face != nil {
				b.WriteRune(r)
			}
			continue
		}
		if face == nil { // the first letter that is not plain
			face = font.DefaultCache.Lookup(style(textSize, nil).Font, textSize).Face
			b.WriteString(s[:i])
		}
		g, err := face.GlyphIndex(&buf, r)
		switch {
		case err == nil && g != 0 && !unicode.In(r, unicode.Hebrew, unicode.Mn, unicode.Cf):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if face == nil {
		return s
	}
	return b.String()
}
