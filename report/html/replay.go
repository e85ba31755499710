package html

import (
	"fmt"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/report/internal/chart"
	"github.com/snapana/snapana/snapshot"
)

// failureView answers in which circumstances the request that failed would have been served.
type failureView struct {
	Asked, When, About string
	Answers            []oom.Answer
	Plan               string
}

func newFailure(s *snapshot.Snapshot, d *analyze.Device, axis chart.Axis) *failureView {
	r := d.OOM
	if r == nil {
		return nil
	}
	v := &failureView{Asked: r.Requested.String(), When: "at " + eventName(axis, r.Event), Answers: r.Answers}
	v.About = fmt.Sprintf("%s was reserved then, %s of it active", units.Bytes(r.After.Reserved),
		units.Bytes(r.After.Active))
	if r.DeviceFree >= 0 {
		v.About += fmt.Sprintf(", and %s free on the device", r.DeviceFree.String())
	}
	v.About += "."
	if r.Released.Segments > 0 {
		v.About += fmt.Sprintf(" PyTorch first released %s of cached segments, from event %s on: %s had been reserved.",
			units.Bytes(r.Released.Bytes), units.Count(int64(r.Released.FirstEvent)), units.Bytes(r.Before.Reserved))
	} else {
		v.About += " PyTorch had no cached segment to release first."
	}
	v.About += fmt.Sprintf(" The largest request that still fit was %s.", r.Servable.String())
	if p := &r.Plan; p.Blocks > 0 {
		from := "from "
		if len(p.Sites) > 1 {
			from = "mostly from "
		}
		v.Plan = fmt.Sprintf("Without %s (%s), %s, it would have been served", units.Plural(p.Blocks, "live block"),
			units.Bytes(p.Bytes), from+site(attribution.Place(s, p.Sites[0].Stack)))
		if p.Fewest && p.Blocks > 1 {
			v.Plan += "; no smaller set is enough"
		}
		v.Plan += "."
	}
	return v
}

// available is what there would have been for a request, "" where nobody knows.
func available(a *oom.Answer) string {
	if a.Bytes == oom.Unknown || a.Fits == oom.None {
		return ""
	}
	return units.Bytes(a.Bytes)
}

// whatIf shows what other allocator settings would have done.
type whatIf struct {
	*whatif.Answer
	Accuracy string
	Advice   string
	Costs    []string
	Rows     []whatif.Row // none where the replay cannot be trusted
	Most     int64        // reserved by any of them
	Device   string
	Curve    template.HTML // reserved bytes over the trace, recorded and best
}

// Gist is the advice in some words.
func (v *whatIf) Gist() string {
	switch {
	case len(v.Rows) == 0:
		return "the replay is not accurate enough to tell"
	case v.Best > 0:
		return "best: " + text(chart.Setting(&v.Rows[v.Best]))
	}
	return "none of them helps"
}

// Change is how far a peak is from the recorded one.
func (v *whatIf) Change(peak int64) string {
	base := v.Rows[0].ReservedPeak
	if peak == base || base <= 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f%%", 100*float64(peak-base)/float64(base))
}

func newWhatIf(a *whatif.Answer) *whatIf {
	if a == nil || a.Accuracy.Requests == 0 {
		return nil
	}
	l := &a.Accuracy
	same, all := int64(l.SameRequests), int64(l.Requests)
	v := &whatIf{Answer: a, Accuracy: fmt.Sprintf("Replay accuracy: %s (under the recorded settings %s of %s "+
		"requests get their recorded address).", units.Percent(same, all), units.Count(same), units.Count(all))}
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
	v.Rows, v.Advice = a.Rows, "None of these settings is worth a change."
	for i := range a.Rows {
		v.Most = max(v.Most, a.Rows[i].ReservedPeak)
	}
	if a.Best > 0 {
		v.Advice, v.Costs = a.Text, a.Costs
		v.Curve = drawReserved(a.Rows[0].Curve, a.Rows[a.Best].Curve, v.Most)
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
