package ghost

import (
	"math"

	"github.com/snapana/snapana/analyze/internal/trend"
)

// maxPoints bounds the series that trends are computed of: pairs grow with its square.
const maxPoints = 200

// thin takes at most maxPoints values, evenly and with the last. It also gives how many places
// the values lie apart.
func thin(v []int64) ([]int64, float64) {
	if len(v) <= maxPoints {
		return v, 1
	}
	out := make([]int64, maxPoints)
	step := float64(len(v)-1) / float64(maxPoints-1)
	for i := range out {
		out[i] = v[int(math.Round(float64(i)*step))]
	}
	return out, step
}

// slope is the Theil-Sen estimate of the growth of a series per place.
func slope(v []int64) float64 {
	v, step := thin(v)
	places := make([]int64, len(v))
	for i := range places {
		places[i] = int64(i)
	}
	perPlace, _, _ := trend.TheilSen(places, v, 0)
	return perPlace / step
}

// rises is the one-sided probability that a series without a trend would rise as much, by the
// test of Mann and Kendall; 1 where there are too few values to tell. Values of
// one series are not independent, so that the result ranks evidence and is no error rate.
func rises(v []int64) float64 {
	v, _ = thin(v)
	if len(v) < 3 {
		return 1
	}
	_, _, p := trend.MannKendall(v)
	return p
}
