package text

import (
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// trendHead is the head of a table of trends.
func trendHead(name string) string {
	return pad(name, 22) + right("first", 11) + right("last", 11) + right("lowest", 11) + right("highest", 11) + "  " +
		"trend"
}

// trendRow prints a trend, its values as bytes or counts, and so its slope.
func (p *printer) trendRow(label string, t *finding.Trend, bytes, slopeBytes bool) {
	v := units.Count
	if bytes {
		v = units.Bytes
	}
	shape := string(t.Shape)
	if t.Shape == counters.Growing {
		shape = p.paint(yellow, shape) + ", " + slopeOf(t, slopeBytes)
	}
	p.line(pad(label, 22) + right(v(t.First), 11) + right(v(t.Last), 11) + right(v(t.Low), 11) + right(v(t.High), 11) +
		"  " + shape)
}

// slopeOf says how fast a counter grows.
func slopeOf(t *finding.Trend, bytes bool) string {
	if bytes {
		return units.Bytes(t.PerUnit()) + " per " + t.Unit
	}
	return fmt.Sprintf("%.3g per %s", t.Slope, t.Unit)
}
