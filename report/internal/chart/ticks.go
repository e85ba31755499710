package chart

import (
	"math"
	"strconv"

	"github.com/snapana/snapana/analyze/units"
)

// Tick is one labeled place on an axis.
type Tick struct {
	Value int64
	Label string
}

// unit is a named multiple; steps are the tick distances that read well in it.
type unit struct {
	name  string
	size  float64
	steps []float64
}

var (
	decimal = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500}
	sixty   = []float64{1, 2, 5, 10, 15, 30}

	byteUnits = []unit{
		{"B", 1, decimal[3:]}, {"KiB", 1 << 10, decimal}, {"MiB", 1 << 20, decimal},
		{"GiB", 1 << 30, decimal}, {"TiB", 1 << 40, decimal}, {"PiB", 1 << 50, decimal},
	}
	timeUnits = []unit{
		{"µs", 1, decimal[3:]}, {"ms", 1e3, decimal}, {"s", 1e6, decimal},
		{"min", 60e6, sixty}, {"h", 3600e6, decimal},
	}
)

// ByteTicks divides 0..limit bytes into at most n steps of a round number of one IEC unit.
func ByteTicks(limit int64, n int) []Tick { return ticks(byteUnits, limit, n) }

// TimeTicks does the same for a span of microseconds.
func TimeTicks(limit int64, n int) []Tick {
	u := timeUnits
	switch { // minutes and hours only when there are a few of them
	case limit < 2*60e6:
		u = u[:3]
	case limit < 2*3600e6:
		u = u[:4]
	}
	return ticks(u, limit, n)
}

// CountTicks does the same for a plain count.
func CountTicks(limit int64, n int) []Tick {
	step := int64(1)
	for i := 0; limit/step > int64(n) && step < math.MaxInt64/10; i++ {
		step = step / [...]int64{1, 2, 5}[i%3] * [...]int64{2, 5, 10}[i%3]
	}
	var out []Tick
	for v := int64(0); v <= limit && len(out) <= n; v += step {
		out = append(out, Tick{v, units.Count(v)})
	}
	return out
}

func ticks(all []unit, limit int64, n int) []Tick {
	u := all[0]
	for _, c := range all {
		if float64(limit) >= c.size {
			u = c
		}
	}
	step := 0.0
	for _, s := range u.steps {
		if step = s; float64(limit)/(s*u.size) <= float64(n) {
			break
		}
	}
	for float64(limit)/(step*u.size) > float64(n) {
		step *= 2
	}
	var out []Tick
	for i := 0; i <= n; i++ {
		v := float64(i) * step
		if v*u.size > float64(limit) {
			break
		}
		label := strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
		if i > 0 {
			label += " " + u.name
		}
		out = append(out, Tick{int64(math.Round(v * u.size)), label})
	}
	return out
}
