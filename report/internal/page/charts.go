package page

import (
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/report/internal/chart"
)

// free writes at most n of the moments at which free memory was measured, where the page cannot
// tell it by itself.
func (src *source) free(w *writer, d *Device, n int) {
	var samples []fragmentation.Sample
	if d.LeftOut.Lives > 0 || d.LeftOut.Ranges > 0 {
		n = min(n, len(src.Free))
		for i := range n {
			samples = append(samples, src.Free[(i+1)*len(src.Free)/n-1])
		}
	}
	d.Free = Free{Event: w.deltas(len(samples), func(i int) int64 { return int64(samples[i].Event) }), Bytes: []Column{}}
	for _, of := range []func(*fragmentation.Classes) int64{
		func(c *fragmentation.Classes) int64 { return c.Releasable },
		func(c *fragmentation.Classes) int64 { return c.Hard },
		func(c *fragmentation.Classes) int64 { return c.Soft },
		func(c *fragmentation.Classes) int64 { return c.Stream },
		func(c *fragmentation.Classes) int64 { return c.Pending },
	} {
		d.Free.Bytes = append(d.Free.Bytes, w.deltas(len(samples), func(i int) int64 { return of(&samples[i].Classes) }))
	}
}

// whatIf writes the curves of all settings that were replayed.
func (src *source) whatIf(w *writer, d *Device) {
	d.WhatIf = WhatIf{Best: -1, Replay: []Replay{}}
	a := src.WhatIf
	if a == nil || !a.Accuracy.Trusted || len(a.Rows) == 0 || len(a.Rows[0].Outcome.Curve) == 0 {
		d.WhatIf.Last = w.plain(0, nil)
		return
	}
	d.WhatIf.Best, d.WhatIf.Limit = a.Best, a.Capacity.Reservable
	ends := a.Rows[0].Outcome.Curve
	d.WhatIf.Last = w.deltas(len(ends), func(i int) int64 { return int64(ends[i].Last) })
	for i := range a.Rows {
		r := &a.Rows[i]
		v := Replay{Name: clean(chart.Setting(r)), Peak: r.ReservedPeak, Failures: r.Failures, Failed: -1}
		if r.First != nil {
			v.Failed, v.Asked = r.First.Event, r.First.Requested
		}
		curve := r.Outcome.Curve
		if len(curve) != len(ends) {
			curve = nil // it did not even start
		}
		v.Reserved = w.deltas(len(curve), func(i int) int64 { return curve[i].Reserved })
		d.WhatIf.Replay = append(d.WhatIf.Replay, v)
	}
}
