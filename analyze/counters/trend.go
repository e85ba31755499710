// Package counters looks at PyTorch's memory counters over time, and beside a snapshot: does live
// memory grow from step to step, does reserved memory that nobody can use? It owns the series and
// their trends; what they come to is said in package verdict.
//
// The input is a sequence of samples of memory_stats. Taken at the end of each step these are
// exact, so the question is not noise but shape: memory comes and goes in teeth (garbage
// collection, buckets, caches), rises once (warm-up, the optimizer's state), differs between
// training and validation, and stays level (a plateau). Growth is told from these by what is
// never given back:
//
//  1. The first tenth is left out as warm-up, and the rest is cut into at most 64 windows, of
//     which only the lowest value counts: teeth and peaks shorter than a window vanish.
//  2. The floor at a moment is the lowest value from there to the end, so memory that is given
//     back later does not raise it. Floors must rise in each quarter of the samples (warm-up
//     rises in the first, a tooth in the last), each time by at least a tenth of an even share.
//  3. The windows must rise by the Mann-Kendall test, one-sided, at 1%, with its correction for
//     ties (Mann 1945, Kendall 1975); up to ten windows without ties the distribution is exact.
//  4. How fast: the Theil-Sen slope, the median of the slopes of all pairs, with the 95% interval
//     of Sen (1968).
//
// A leak that began late is looked for in the last three quarters and the last half, at 0.1%, and
// it must have left twice of what was ever given back. Where epochs are known, the lowest value
// of each epoch is tested in the same way. Below five windows nothing is called growing.
//
// A cache that grows on purpose looks the same as a leak: every verdict of growth is a heuristic.
//
// Compare puts a sample beside a snapshot of the same process: every counter that both know, at the
// same moment. PyTorch counts while it allocates, and a snapshot's trace is what it did, so where the
// trace goes back to the first allocation each counter can be counted again
// (analyze/allocator/SPEC.md 5.11) and must be equal. What differs has a reason, and the reason is said.
package counters

import (
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/internal/trend"
)

// Shapes of series.
const (
	Growing finding.Shape = "growing" // more and more is never given back
	Steady  finding.Shape = "steady"  // the same all the time
	Settled finding.Shape = "settled" // rose, and is level since
	Swings  finding.Shape = "swings"  // comes and goes
	Falling finding.Shape = "falling" // ends at its lowest
	Short   finding.Shape = "short"   // too few samples to tell
	Absent  finding.Shape = "absent"  // no sample has it
)

// ChanceLate is the chance without a trend above which growth that began late is none. Below it other
// growth is beyond doubt.
const ChanceLate = 0.001

const (
	minWindows = 5
	maxWindows = 64
	chance     = 0.01
)

// Trends gives those of all counters that samples have.
func (d *Series) Trends() finding.Trends {
	var out finding.Trends
	for _, name := range append([]string{Allocated, Requested, Active, Pending, Reserved, Cached, Split, Blocks,
		Segments, Pinned, PinnedUses}, d.extra...) {
		if out.Of(name) == nil {
			if t := d.trend(name); t.Shape != Absent {
				out = append(out, t)
			}
		}
	}
	return out
}

// trend is that of one counter.
func (d *Series) trend(name string) finding.Trend {
	var x, y []int64
	for i, v := range d.Column(name) {
		if v >= 0 {
			x, y = append(x, d.Place(i)), append(y, v)
		}
	}
	t := Of(name, d.Unit(), x, y, d.Precision(name))
	if t.Shape == Absent {
		return t
	}
	epochs, lows := d.lows(name)
	if len(lows) >= minWindows {
		if g := grows(epochs, lows, "epoch", t.Precision); g != nil {
			if t.Shape != Growing && t.Shape != Steady {
				t.Shape, t.Rise = Growing, g
			}
			if t.Rise != nil {
				t.PerEpoch = g.Slope
			}
		}
	}
	return t
}

// Of judges values y at the places x, which rise along a unit. Differences below the precision mean
// nothing.
func Of(name, unit string, x, y []int64, precision int64) finding.Trend {
	t := finding.Trend{Name: name, Shape: Absent, Precision: precision}
	if len(y) == 0 {
		return t
	}
	t.First, t.Last, t.Low, t.High = y[0], y[len(y)-1], slices.Min(y), slices.Max(y)
	t.Shape = shape(&t, x, y, unit)
	return t
}

func (d *Series) lows(name string) (numbers, lows []int64) {
	for _, e := range d.epochs {
		if v, ok := e.low[name]; ok && (len(numbers) == 0 || e.number > numbers[len(numbers)-1]) {
			numbers, lows = append(numbers, e.number), append(lows, v)
		}
	}
	return numbers, lows
}

// shape tells the shape of a series, and how it rises if it grows.
func shape(t *finding.Trend, x, y []int64, unit string) finding.Shape {
	n := len(y)
	if n == 1 {
		return Short
	}
	if t.High-t.Low < t.Precision {
		return Steady
	}
	if n >= minWindows {
		if t.Rise = grows(x, y, unit, t.Precision); t.Rise != nil {
			return Growing
		}
	}
	tail := y[n-max(n/3, 2):]
	level := true
	for _, v := range tail {
		level = level && max(v-tail[0], tail[0]-v) < t.Precision
	}
	switch {
	case level && n > 2:
		return Settled
	case t.Last == t.Low && t.Last < t.First:
		return Falling
	case n < minWindows && t.Last == t.High && t.Last > t.First:
		return Short
	}
	return Swings
}

// grows runs the test that the package comment describes, and gives the figures when the answer is yes.
func grows(x, y []int64, unit string, precision int64) *finding.Rise {
	fall := deepest(y)
	if n := len(y); n > minWindows && unit != "epoch" { // without the warm-up
		skip := max(n/10, 1)
		x, y = x[skip:], y[skip:]
	} else if n > minWindows {
		x, y = x[1:], y[1:]
	}
	x, y = windows(x, y)
	n := len(y)
	swing := deepest(y)
	for _, start := range []int{0, n / 4, n / 2} {
		late := start > 0
		least, limit := minWindows, chance
		if late {
			least, limit = 8, ChanceLate
		}
		wx, wy := x[start:], y[start:]
		if len(wy) < least {
			return nil
		}
		_, variance, p := trend.MannKendall(wy)
		kept, even := rises(wy, precision)
		if p > limit || !even || late && kept <= 2*fall {
			continue
		}
		g := &finding.Rise{Unit: unit, P: p, Kept: kept, From: wx[0], To: wx[len(wx)-1], Windows: len(wy), Late: late,
			GivenBack: swing}
		if g.Slope, g.From95, g.To95 = trend.TheilSen(wx, wy, variance); g.Slope > 0 {
			return g
		}
		return nil
	}
	return nil
}

// windows keeps the lowest value of each window, with its place.
func windows(x, y []int64) (wx, wy []int64) {
	n := len(y)
	if n <= maxWindows {
		return x, y
	}
	for w := range maxWindows {
		from, to := w*n/maxWindows, (w+1)*n/maxWindows
		low := from
		for i := from; i < to; i++ {
			if y[i] < y[low] {
				low = i
			}
		}
		wx, wy = append(wx, x[low]), append(wy, y[low])
	}
	return wx, wy
}

// rises gives how far the floor rises, and whether it does so in each quarter.
func rises(y []int64, precision int64) (kept int64, even bool) {
	floor := make([]int64, len(y))
	low := y[len(y)-1]
	for i := len(y) - 1; i >= 0; i-- {
		low = min(low, y[i])
		floor[i] = low
	}
	last := len(y) - 1
	kept = floor[last] - floor[0]
	if kept < precision {
		return kept, false
	}
	parts := min(4, last)
	for k := range parts {
		rise := floor[(k+1)*last/parts] - floor[k*last/parts]
		if float64(rise)*float64(10*parts) < float64(kept) {
			return kept, false
		}
	}
	return kept, true
}

// deepest is the largest fall from any value to a later one.
func deepest(y []int64) int64 {
	var fall, high int64
	for _, v := range y {
		high = max(high, v)
		fall = max(fall, high-v)
	}
	return fall
}
