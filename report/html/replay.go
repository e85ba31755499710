package html

import (
	"fmt"
	"html/template"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
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
	v.About = fmt.Sprintf("%s was reserved then, %s of it active", units.Bytes(r.After.Reserved),
		units.Bytes(r.After.Active))
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

// whatIf shows what other allocator settings would have done.
type whatIf struct {
	Accuracy string
	Advice   string
	Costs    []string
	Rows     []settingRow
	Device   string
	Curve    template.HTML // reserved bytes over the trace, recorded and best
}

type settingRow struct {
	Text, Reserved, Change, Waste, Calls, Retries, Fails, Width string
	Recorded, Best, Failed                                      bool
}

func newWhatIf(a *whatif.Answer) *whatIf {
	if a == nil || a.Accuracy.Requests == 0 {
		return nil
	}
	l := &a.Accuracy
	same, all := int64(l.SameRequests), int64(l.Requests)
	v := &whatIf{Accuracy: fmt.Sprintf("Replay accuracy: %s (under the recorded settings %s of %s requests get their "+
		"recorded address).", units.Percent(same, all), units.Count(same), units.Count(all))}
	if !l.Trusted {
		v.Accuracy += " That is too low to predict anything."
		if l.Why != "" {
			v.Accuracy += " Likely reason: " + text(l.Why)
		}
		return v
	}
	if a.Capacity.Reservable > 0 {
		v.Device = fmt.Sprintf("PyTorch can reserve %s, as in the run.", units.Bytes(a.Capacity.Reservable))
	}
	v.Advice = a.Text
	if a.Best > 0 {
		v.Costs = a.Costs
	} else {
		v.Advice = "None of these settings is worth a change."
	}
	var most int64
	for i := range a.Rows {
		most = max(most, a.Rows[i].ReservedPeak)
	}
	base := a.Rows[0].ReservedPeak
	for i := range a.Rows {
		r := &a.Rows[i]
		row := settingRow{
			Text: text(chart.Setting(r)), Reserved: units.Bytes(r.ReservedPeak), Change: "-",
			Waste: units.Bytes(r.Waste), Calls: units.Count(r.DeviceAllocs + r.DeviceFrees),
			Retries: units.Count(r.Retries), Fails: units.Count(int64(r.Failures)),
			Width:    width(r.ReservedPeak, most),
			Recorded: r.Recorded, Best: i == a.Best, Failed: r.Failures > 0,
		}
		if d := r.ReservedPeak - base; d != 0 && base > 0 {
			row.Change = fmt.Sprintf("%+.0f%%", 100*float64(d)/float64(base))
		}
		v.Rows = append(v.Rows, row)
	}
	if a.Best > 0 {
		v.Curve = drawReserved(a.Rows[0].Curve, a.Rows[a.Best].Curve, most)
	}
	return v
}

// drawReserved draws the reserved bytes of two replays by trace event.
func drawReserved(recorded, best []whatif.Sample, most int64) template.HTML {
	var d drawing
	d.open("plot", "reserved bytes over the trace, as recorded and with the best setting")
	line := func(class string, samples []whatif.Sample) path {
		return levels(class, len(samples), most, func(i int) (int, int, int64) {
			x := &samples[i]
			return x.First, x.Last, x.Reserved
		})
	}
	d.paths(line("line-reserved", recorded), line("line-best", best))
	d.close()
	return d.html()
}
