package plot

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/report/internal/chart"
)

// hatch is how free memory of a class looks: a ground, and lines on it that rise (1), fall (-1) or
// are not there (0), every so many pixels.
type hatch struct {
	ground, line color.RGBA
	slope, every int
}

var hatches = [numClasses]hatch{
	fragmentation.Releasable: {ground: faded(chart.ColorReleasable, 110)},
	fragmentation.Hard:       {color.RGBA{0xf4, 0xf4, 0xf2, 0xff}, color.RGBA{0xb0, 0xa8, 0x98, 0xff}, 1, 7},
	fragmentation.Soft:       {color.RGBA{0xf4, 0xf4, 0xf2, 0xff}, color.RGBA{0x7d, 0xb8, 0xa4, 0xff}, -1, 7},
	fragmentation.Stream:     {color.RGBA{0xf3, 0xea, 0xf4, 0xff}, color.RGBA{0xb5, 0x93, 0xbd, 0xff}, -1, 4},
}

// free paints memory without live blocks.
func (p *page) free(box image.Rectangle, class fragmentation.Class) {
	h := &hatches[class]
	if h.slope == 0 {
		p.fill(box, h.ground)
		return
	}
	if p.svg != nil {
		p.svg.rect(box, fmt.Sprintf("url(#free-%s)", class))
		return
	}
	p.fill(box, h.ground)
	img := p.png.Image()
	px := p.pixelsOf(box)
	every, thick := max(int(float64(h.every)*p.scale+0.5), 2), max(int(p.scale+0.5), 1)
	for y := px.Min.Y; y < px.Max.Y; y++ {
		for x := px.Min.X; x < px.Max.X; x++ {
			if (x+h.slope*y+every*img.Bounds().Dy())%every < thick {
				img.Set(x, y, h.line)
			}
		}
	}
}

// patterns defines the hatches for a page of vectors.
func patterns() string {
	var b strings.Builder
	for class, h := range hatches {
		if h.slope == 0 {
			continue
		}
		from, to := h.every, 0
		if h.slope < 0 {
			from, to = 0, h.every
		}
		fmt.Fprintf(&b, `<pattern id="free-%s" width="%[2]d" height="%[2]d" patternUnits="userSpaceOnUse"><rect width="%[2]d" height="%[2]d" fill="%[3]s"/><path d="M%[4]d 0L%[5]d %[2]d" stroke="%[6]s" shape-rendering="auto"/></pattern>`,
			fragmentation.Class(class), h.every, hexOf(h.ground), from, to, hexOf(h.line))
	}
	return b.String()
}
