package html

import (
	"fmt"
	"html/template"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
)

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
	v := &whatIf{Accuracy: fmt.Sprintf("Replay accuracy: %s (under the recorded settings %s of %s requests get their recorded address).",
		units.Percent(int64(l.SameRequests), int64(l.Requests)), units.Count(int64(l.SameRequests)), units.Count(int64(l.Requests)))}
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
			Text: text(chart.Setting(r)), Reserved: units.Bytes(r.ReservedPeak), Change: "-", Waste: units.Bytes(r.Waste),
			Calls: units.Count(r.DeviceAllocs + r.DeviceFrees), Retries: units.Count(r.Retries), Fails: units.Count(int64(r.Failures)),
			Width: percent(chart.Share(r.ReservedPeak, most)), Recorded: r.Recorded, Best: i == a.Best, Failed: r.Failures > 0,
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
