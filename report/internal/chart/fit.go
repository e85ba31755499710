package chart

import (
	"slices"

	"github.com/snapana/snapana/analyze/fit"
	"github.com/snapana/snapana/snapshot/sorting"
)

// FitLimit names the line of what a device has.
const FitLimit = "most that PyTorch can reserve"

// FitPeaks are the peaks that are drawn over the first of the values: those with another second value than the last are
// left out.
type FitPeaks struct {
	List     []fit.Prediction // by value
	Recorded []fit.Recorded
	Top      int64 // bytes, the highest of all that is drawn
	Span     int64 // the highest value
}

// NewFitPeaks chooses them.
func NewFitPeaks(r *fit.Result) FitPeaks {
	last := r.Predictions[len(r.Predictions)-1].Values
	out := FitPeaks{Top: r.Capacity.Reservable, Span: 1}
	for _, p := range r.Predictions {
		if slices.Equal(p.Values[1:], last[1:]) {
			out.List = append(out.List, p)
			out.Top, out.Span = max(out.Top, p.ReservedHigh), max(out.Span, p.At)
		}
	}
	for _, rec := range r.Recorded {
		if slices.Equal(rec.Values[1:], last[1:]) {
			out.Recorded = append(out.Recorded, rec)
			out.Top, out.Span = max(out.Top, rec.ReservedPeak), max(out.Span, rec.At)
		}
	}
	sorting.Stable(out.List, func(a, b fit.Prediction) int { return slices.Compare(a.Values, b.Values) })
	return out
}
