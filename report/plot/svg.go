package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"io"

	vgdraw "gonum.org/v1/plot/vg/draw"
)

// maxNotes bounds the rectangles that explain themselves.
const maxNotes = 4000

// svg is a page as vectors, of the same rectangles and texts as its picture.
type svg struct {
	b     bytes.Buffer
	notes int
}

func (v *svg) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Liberation Sans, Arial, Helvetica, sans-serif" shape-rendering="crispEdges">
<defs>%s</defs>
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, pageWidth, pageHeight, patterns(), v.b.String())
	return err
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func (v *svg) rect(r image.Rectangle, fill string) {
	if !r.Empty() {
		fmt.Fprintf(&v.b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", r.Min.X, r.Min.Y, r.Dx(), r.Dy(), fill)
	}
}

func (v *svg) text(s vgdraw.TextStyle, x, y int, txt string) {
	weight := ""
	if s.Font.Weight != 0 {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(&v.b, `<text x="%d" y="%d" font-size="%g" fill="%s"%s xml:space="preserve">`, x, y, float64(s.Font.Size), hex(s.Color), weight)
	v.escape(txt)
	v.b.WriteString("</text>\n")
}

// note lays a text over a rectangle that shows when the pointer is there.
func (v *svg) note(r image.Rectangle, txt string) {
	if v.notes++; v.notes > maxNotes {
		return
	}
	fmt.Fprintf(&v.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" pointer-events="all"><title>`, r.Min.X, r.Min.Y, r.Dx(), r.Dy())
	v.escape(txt)
	v.b.WriteString("</title></rect>\n")
}

func (v *svg) escape(txt string) {
	xml.EscapeText(&v.b, []byte(txt)) // a buffer does not fail
}
