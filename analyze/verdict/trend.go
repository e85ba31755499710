package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/units"
)

// per prints a slope in bytes.
func per(v float64) string { return units.Bytes(int64(v + 0.5)) }

// pace says how fast something grows.
func pace(t *counters.Trend) string { return per(t.Slope) + " per " + t.Unit }

// more is pace where what grows comes first.
func more(t *counters.Trend) string { return per(t.Slope) + " more per " + t.Unit }

// slope says how a series rises.
func slope(what string, t *counters.Trend) string {
	return fmt.Sprintf("%s from %s to %s, by %s per %s (95%%: %s to %s, %d windows).", what,
		units.Bytes(t.First), units.Bytes(t.Last), per(t.Slope), t.Unit, per(t.From95), per(t.To95), t.Windows)
}

// chance says how probable such a rise is where nothing grows.
func chance(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// byChance is chance and from how much it was computed.
func byChance(t *counters.Trend) string { return fmt.Sprintf("%s, %d windows", chance(t.P), t.Windows) }
