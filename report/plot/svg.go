package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"strconv"

	"golang.org/x/image/math/f64"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// maxNotes bounds the rectangles that explain themselves.
const maxNotes = 4000

// svg is a canvas that writes SVG. Text stays text, that people can select and search; each piece has the length that
// it was laid out with, so that nothing moves where the font is another.
//
// Tried: gonum's vgsvg, which has neither lengths of text nor explanations of rectangles.
type svg struct {
	pens
	width, height float64
	body          bytes.Buffer
	notes         int
}

var _ vg.Canvas = (*svg)(nil)

func newSVG(width, height int) *svg {
	c := &svg{width: float64(width), height: float64(height)}
	c.pen.to = f64.Aff3{1, 0, 0, 0, -1, c.height}
	vg.Initialize(c)
	return c
}

// Fill implements vg.Canvas.
func (c *svg) Fill(p vg.Path) {
	fmt.Fprintf(&c.body, "<path d=\"%s\" fill=\"%s\"%s/>\n", c.outline(p), hex(c.pen.color),
		opacity("fill", c.pen.color))
}

// Stroke implements vg.Canvas.
func (c *svg) Stroke(p vg.Path) {
	if c.pen.width <= 0 {
		return
	}
	fmt.Fprintf(&c.body, "<path d=\"%s\" fill=\"none\" stroke=\"%s\"%s stroke-width=\"%s\"", c.outline(p),
		hex(c.pen.color), opacity("stroke", c.pen.color), number(float64(c.pen.width)))
	if len(c.pen.dashes) > 0 {
		c.body.WriteString(` stroke-dasharray="`)
		for i, d := range c.pen.dashes {
			if i > 0 {
				c.body.WriteByte(' ')
			}
			c.body.WriteString(number(float64(d)))
		}
		fmt.Fprintf(&c.body, `" stroke-dashoffset="%s"`, number(float64(c.pen.offset)))
	}
	c.body.WriteString("/>\n")
}

// outline writes a path. Steps, of which curves over time consist, take one coordinate each.
func (c *svg) outline(p vg.Path) string {
	var b bytes.Buffer
	lastX, lastY := "", ""
	point := func(op byte, p vg.Point) {
		x, y := c.at(p)
		sx, sy := number(x), number(y)
		switch {
		case op == 'L' && sx == lastX && sy == lastY:
		case op == 'L' && sy == lastY:
			b.WriteString("H" + sx)
		case op == 'L' && sx == lastX:
			b.WriteString("V" + sy)
		case op == 0: // a further point of the command before
			b.WriteString(" " + sx + "," + sy)
		default:
			b.WriteString(string(op) + sx + "," + sy)
		}
		lastX, lastY = sx, sy
	}
	for i, comp := range p {
		switch comp.Type {
		case vg.MoveComp:
			point('M', comp.Pos)
		case vg.LineComp:
			point('L', comp.Pos)
		case vg.ArcComp:
			from := byte('L')
			if i == 0 {
				from = 'M'
			}
			// SVG has no arc that ends where it began: parts of at most half a turn.
			n := max(int(math.Ceil(math.Abs(comp.Angle)/math.Pi-1e-9)), 1)
			for k := range n + 1 {
				sin, cos := math.Sincos(comp.Start + comp.Angle*float64(k)/float64(n))
				if k > 0 {
					fmt.Fprintf(&b, "A%[1]s,%[1]s 0 0,%[2]d", number(float64(comp.Radius)), sweep(comp.Angle))
					from = 0
				}
				point(from, vg.Point{X: comp.Pos.X + comp.Radius*vg.Length(cos),
					Y: comp.Pos.Y + comp.Radius*vg.Length(sin)})
			}
		case vg.CurveComp:
			op := map[int]byte{1: 'Q', 2: 'C'}[len(comp.Control)]
			for _, p := range comp.Control {
				point(op, p)
				op = 0
			}
			point(op, comp.Pos)
		case vg.CloseComp:
			b.WriteByte('Z')
			lastX, lastY = "", ""
		}
	}
	return b.String()
}

// sweep is SVG's sign of an angle: its y points down.
func sweep(angle float64) int {
	if angle < 0 {
		return 1
	}
	return 0
}

// FillString implements vg.Canvas. A viewer without the font takes one of its kin and fits it into the same length.
func (c *svg) FillString(f font.Face, at vg.Point, text string) {
	px, py := c.at(at)
	m := &c.pen.to
	weight := ""
	if f.Font.Weight > 0 {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(&c.body, `<text transform="matrix(%s %s %s %s %s %s)" font-size="%s"%s fill="%s"%s textLength="%s" `+
		"lengthAdjust=\"spacingAndGlyphs\">%s</text>\n", factor(m[0]), factor(m[3]), factor(-m[1]), factor(-m[4]), number(px),
		number(py), number(float64(f.Font.Size)), weight, hex(c.pen.color), opacity("fill", c.pen.color),
		number(float64(f.Width(text))), escape(text))
}

// DrawImage implements vg.Canvas: no plot has images.
func (c *svg) DrawImage(vg.Rectangle, image.Image) {}

// write gives the file: an image of width times height pixels with a name for those who
// cannot see it.
func (c *svg) write(w io.Writer, width, height int, title, about string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %s %s" role="img" font-family="Liberation Sans, Arial, Helvetica, sans-serif" xml:space="preserve">
<title>%s</title>
<desc>%s</desc>
<rect width="100%%" height="100%%" fill="#ffffff"/>
<defs>
%s</defs>
%s</svg>
`, width, height, number(c.width), number(c.height), escape(title), escape(about), patterns(),
		c.body.Bytes())
	return err
}

// rect paints a rectangle with a color or a pattern.
func (c *svg) rect(r image.Rectangle, fill string) {
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" shape-rendering="crispEdges"/>`+"\n",
		r.Min.X, r.Min.Y, r.Dx(), r.Dy(), fill)
}

// note lays a text over a rectangle that shows when the pointer is there.
func (c *svg) note(r image.Rectangle, txt string) {
	if c.notes++; c.notes > maxNotes {
		return
	}
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" pointer-events="all">`+
		"<title>%s</title></rect>\n", r.Min.X, r.Min.Y, r.Dx(), r.Dy(), escape(txt))
}

func escape(txt string) string {
	var b bytes.Buffer
	xml.EscapeText(&b, []byte(txt)) // a buffer does not fail
	return b.String()
}

// number prints a coordinate to a tenth of a unit.
func number(v float64) string {
	v = math.Round(v*10) / 10
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func factor(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e7)/1e7+0, 'f', -1, 64)
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

func opacity(what string, c color.NRGBA) string {
	if c.A == 0xff {
		return ""
	}
	return fmt.Sprintf(` %s-opacity="%.2f"`, what, float64(c.A)/0xff)
}
