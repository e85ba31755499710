package html

import (
	"fmt"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/internal/chart"
)

// failureView answers in which circumstances the request that failed would have been served.
type failureView struct {
	Asked, When, About string
	Rows               []fitRow
	Plan               string
}

type fitRow struct{ Class, Fits, What, Bytes, Note string }

func newFailure(d *analyze.Device, axis chart.Axis) *failureView {
	r := d.OOM
	if r == nil {
		return nil
	}
	v := &failureView{Asked: units.Bytes(r.Requested), When: "at " + eventName(axis, r.Event)}
	v.About = fmt.Sprintf("%s was reserved then, %s of it active", units.Bytes(r.After.Reserved), units.Bytes(r.After.Active))
	if r.DeviceFree >= 0 {
		v.About += fmt.Sprintf(", and %s free on the device", units.Bytes(r.DeviceFree))
	}
	v.About += "."
	if r.Released.Segments > 0 {
		v.About += fmt.Sprintf(" PyTorch first released %s of cached segments, from event %s on: %s had been reserved.",
			units.Bytes(r.Released.Bytes), units.Count(int64(r.Released.FirstEvent)), units.Bytes(r.Before.Reserved))
	} else {
		v.About += " PyTorch had no cached segment to release first."
	}
	v.About += fmt.Sprintf(" The largest request that still fit was %s.", units.Bytes(r.Servable))
	for _, a := range r.Answers {
		row := fitRow{string(a.Fits), string(a.Fits), text(a.What), "", text(chart.AnswerNote(&a))}
		if a.Bytes != oom.Unknown && a.Fits != oom.None {
			row.Bytes = units.Bytes(a.Bytes)
		}
		v.Rows = append(v.Rows, row)
	}
	if p := &r.Plan; p.Blocks > 0 {
		v.Plan = fmt.Sprintf("Without %s (%s), mostly from %s, it would have been served",
			units.Plural(p.Blocks, "live block"), units.Bytes(p.Bytes), site(p.Sites[0].Site))
		if p.Fewest && p.Blocks > 1 {
			v.Plan += "; no smaller set is enough"
		}
		v.Plan += "."
	}
	return v
}
