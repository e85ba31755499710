package plot

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"

	"github.com/snapana/snapana/report/internal/chart"
)

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
