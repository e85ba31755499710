package fit

import (
	"cmp"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot/sorting"
)

func (f *fitter) result() (*Result, error) {
	first := f.all[0].program
	r := &Result{Names: f.q.Names, Device: first.Device, Setting: first.Recorded.Text, Notes: f.notes,
		Checks: []Check{}, Unproven: []Unproven{}, Tried: []Tried{}, Laws: []Stretch{}}
	if first.Recorded.Release != 0 {
		r.Release = first.Recorded.Release.String()
	}
	if f.q.Settings != nil {
		r.Setting = f.q.Settings[0].Text
	}
	r.Capacity = f.device()
	for k, rec := range f.all {
		x := rec.recorded()
		x.Matched = f.model(k).matched(len(f.all))
		r.Recorded = append(r.Recorded, x)
	}
	for _, rec := range f.aside {
		x := rec.recorded()
		x.Aside = true
		r.Recorded = append(r.Recorded, x)
	}
	if err := f.check(r); err != nil {
		return nil, err
	}
	if f.capacity > 0 {
		if err := f.largest(r); err != nil {
			return nil, err
		}
	}
	for _, p := range f.points(r) {
		x, err := f.predict(p)
		if err != nil {
			return nil, err
		}
		r.Predictions = append(r.Predictions, x)
	}
	if slices.ContainsFunc(r.Predictions, func(x Prediction) bool { return f.longer(x.Values) }) {
		r.Notes = append(r.Notes, "Loops make more passes with higher values: those are replayed, and the laws leave them out.")
	}
	further := func(value int, is func(m *model) bool) bool {
		return slices.ContainsFunc(r.Predictions, func(x Prediction) bool {
			return f.doublingsOf(x.Values, value) > 0 && is(f.model(x.From))
		})
	}
	if further(0, func(m *model) bool { return m.chunks }) {
		r.Notes = append(r.Notes, "Some code works in parts, as its name says (chunk): from some value on it may make more of them and "+
			"not larger ones, and need less than is predicted. Record a value at which it makes several.")
	}
	for i, name := range f.q.Names {
		if further(i, func(m *model) bool { return m.windows[i] }) {
			r.Notes = append(r.Notes, "Some code works in windows, as its name says, and grew with the square of "+name+": from some "+
				"value on it may make more windows and not larger ones, and need less than is predicted. Record a value at which it "+
				"makes several.")
		}
	}
	f.laws(r)
	return r, nil
}

// device is the memory that predicted runs can reserve.
func (f *fitter) device() whatif.Capacity {
	c := whatif.Capacity{Source: "none"}
	if f.q.Capacity > 0 {
		c = whatif.Capacity{Source: "asked", Device: f.q.Capacity, Foreign: f.q.Foreign,
			Reservable: max(f.q.Capacity-f.q.Foreign, 1)}
	} else {
		for _, r := range f.all {
			if n := r.program.Capacity; n > c.Reservable {
				c = whatif.Capacity{Source: "retry", Reservable: n}
				if r.failed() {
					c.Source = "failure"
				}
			}
		}
	}
	f.capacity, f.total = c.Reservable, cmp.Or(c.Device, c.Reservable)
	return c
}

func (r *recording) recorded() Recorded {
	return Recorded{File: r.Snapshot.Name, At: r.At[0], Values: r.At, Events: r.Timeline.Trace.Len(),
		Steps: len(r.steps.Steps), ReservedPeak: r.Timeline.PeakReserved.Bytes,
		AllocatedPeak: r.Timeline.PeakAllocated.Bytes, Failed: r.failed()}
}

// matched is the share of requests that are in so many recordings.
func (m *model) matched(recordings int) float64 {
	n := 0
	for _, law := range m.of {
		if m.seen[law] == recordings {
			n++
		}
	}
	return float64(n) / float64(max(len(m.of), 1))
}

// check predicts each recording from the others: where there are three or more from laws that were made without it.
func (f *fitter) check(r *Result) error {
	for k, rec := range f.all {
		if len(f.all) < 2 || rec.failed() {
			continue
		}
		stage.At(f.ctx, stage.Replaying, k, len(f.all))
		m, heldOut := f.model(f.nearest(rec.At, k)), len(f.all) > 2
		if heldOut {
			m = f.modelOf(f.nearest(rec.At, k), k)
		}
		if err := f.checkOf(r, rec, m, heldOut); err != nil {
			return err
		}
	}
	for _, rec := range f.aside {
		if rec.failed() {
			continue
		}
		if err := f.checkOf(r, rec, f.model(f.nearest(rec.At, -1)), true); err != nil {
			return err
		}
	}
	f.margin = r.Error
	return nil
}

// checkOf predicts a recording from a model.
func (f *fitter) checkOf(r *Result, rec *recording, m *model, heldOut bool) error {
	outs, err := f.replays(m, rec.At, &rec.program.Settings(false)[0], 0)
	if err != nil {
		return err
	}
	c := Check{File: rec.Snapshot.Name, Values: rec.At, HeldOut: heldOut, Reserved: rec.Timeline.PeakReserved.Bytes,
		Predicted: middle(outs).ReservedPeak}
	c.Error = float64(c.Predicted-c.Reserved) / float64(max(c.Reserved, 1))
	r.Checks = append(r.Checks, c)
	r.Error = max(r.Error, math.Abs(c.Error))
	return nil
}

// points are those that are predicted.
func (f *fitter) points(r *Result) []Point {
	if f.q.To != nil {
		return f.q.To
	}
	var out []Point
	top := f.all[0].At
	for _, rec := range f.all {
		out = append(out, rec.At)
		if slices.Compare(rec.At, top) > 0 {
			top = rec.At
		}
	}
	for _, by := range []int64{2, 4, 8} {
		p := slices.Clone(top)
		p[0] *= by
		out = append(out, p)
	}
	if r.Largest != nil {
		p := slices.Clone(r.Limit.Values)
		p[0] = *r.Largest
		out = append(out, p, r.Limit.Values)
		out = slices.DeleteFunc(out, func(p Point) bool { return p[0] > 2*r.Limit.Values[0] })
	}
	sorting.By(out, func(a, b Point) int { return slices.Compare(a, b) })
	return slices.CompactFunc(out, func(a, b Point) bool { return slices.Equal(a, b) })
}
