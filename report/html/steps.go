package html

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/units"
)

// stepView shows the program's steps: what each reached, and what it left.
type stepView struct {
	Summary string
	Bars    []stepBar
	Table   *table
}

// stepBar is one step; heights are percents of the highest peak.
type stepBar struct {
	Title, Peak, End string
	WarmUp           bool
}

const (
	maxStepBars = 200
	maxStepRows = 60
)

func newSteps(r *steps.Result, name func(event int) string) *stepView {
	n := len(r.Steps)
	if n == 0 {
		return nil
	}
	v := &stepView{}
	var most int64
	warm := 0
	var peaks, growths []int64
	for i := range r.Steps {
		s := &r.Steps[i]
		most = max(most, s.Peak)
		if s.WarmUp {
			warm++
			continue
		}
		peaks = append(peaks, s.Peak)
		growths = append(growths, s.Growth)
	}
	v.Summary = fmt.Sprintf("%s steps, each an %s (%s, %s confidence).", units.Count(int64(n)), text(r.Unit),
		source(r.Source), r.Confidence)
	if r.Source == "annotations" {
		v.Summary = fmt.Sprintf("%s steps, by the program's own scopes %q.", units.Count(int64(n)), text(r.Unit))
	}
	if warm > 0 {
		v.Summary += fmt.Sprintf(" Reserved memory still grew in the first %s: warm-up.", units.Count(int64(warm)))
	}
	if len(peaks) > 0 {
		slices.Sort(growths)
		low, high := units.Bytes(slices.Min(peaks)), units.Bytes(slices.Max(peaks))
		if low != high {
			high = low + " to " + high
		}
		v.Summary += fmt.Sprintf(" The others peak at %s.", high)
		if left := growths[len(growths)/2]; left > 0 {
			v.Summary += fmt.Sprintf(" Half of them leave %s or more behind.", units.Bytes(left))
		}
	}
	every := max((n+maxStepBars-1)/maxStepBars, 1)
	for i := 0; i < n; i += every {
		b := stepBar{WarmUp: r.Steps[i].WarmUp}
		var peak, end int64
		for k := i; k < min(i+every, n); k++ {
			peak, end = max(peak, r.Steps[k].Peak), max(end, r.Steps[k].End)
		}
		b.Peak, b.End = width(peak, most), width(end, most)
		b.Title = fmt.Sprintf("step %d: peak %s, end %s", i+1, units.Bytes(peak), units.Bytes(end))
		v.Bars = append(v.Bars, b)
	}
	v.Table = newTable("", numbers("Step"), words("Begins at"), numbers("Peak"), numbers("End"), numbers("Growth"),
		numbers("Kept to the end"), words(""))
	for i := range r.Steps {
		if i == maxStepRows {
			v.Table.More = fmt.Sprintf("%d more", n-i)
			break
		}
		s := &r.Steps[i]
		note := ""
		if s.WarmUp {
			note = "warm-up"
		}
		if s.Name != "" {
			note += " " + text(s.Name)
		}
		v.Table.add(strconv.Itoa(i+1), name(s.First), units.Bytes(s.Peak), units.Bytes(s.End), signed(s.Growth),
			units.Bytes(s.Survivors), note)
	}
	return v
}

func source(s string) string {
	if s == "both" {
		return "seen in the stacks and in the program's scopes"
	}
	return "seen in the stacks"
}

func signed(n int64) string {
	if n > 0 {
		return "+" + units.Bytes(n)
	}
	return units.Bytes(n)
}
