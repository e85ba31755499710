package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// liveNames are for people; "live" is what tensors use.
var liveNames = map[string]string{counters.Allocated: "Live memory", counters.Requested: "Requested memory",
	counters.Active: "Active memory", counters.Reserved: "Reserved memory"}

func (j *Counters) growth(capacity int64) {
	f := &finding.Finding{ID: "growth", Severity: finding.Warning, Confidence: finding.Medium, Heuristic: true,
		Evidence: trends(j.Trends, j.Live, counters.Blocks)}
	t := &f.Evidence.Trends[0]
	if !t.Grows() {
		return
	}
	f.Bytes, f.Evidence.Freed, f.Evidence.Forecast = t.Kept, j.freed(), j.forecast(t, capacity)
	j.Forecast = f.Evidence.Forecast
	if t.Kept < 1<<20 && t.Kept < t.Last/100 {
		f.Severity = finding.Info
	}
	if j.NewOOMs > 0 && t.Kept >= t.Last/4 {
		f.Severity = finding.Error
	}
	f.Say("%s of %s grows by %s.", liveNames[j.Live], j.device(), pace(t))
	f.Because("%s rises from %s to %s; %s that was added from %s %s to %s is never freed.", t.Name,
		units.Bytes(t.First), units.Bytes(t.Last), units.Bytes(t.Kept), t.Unit, units.Count(t.From), units.Count(t.To))
	f.Because("Steady growth of %s (95%%: %s to %s; %s).", pace(t), per(t.From95), per(t.To95), byChance(t))
	freed, swings := f.Evidence.Freed, t.GivenBack > t.Kept/10
	fills := freed != nil && *freed <= t.Kept/20 && !swings
	switch {
	case swings:
		f.Because("Memory also comes and goes, by up to %s, but the floor under it rises.", units.Bytes(t.GivenBack))
	case fills:
		f.Because(likeFill)
	case freed != nil:
		f.Because("Other memory is freed meanwhile (%s), so this is not warm-up.", units.Bytes(*freed))
	}
	if t.PerEpoch > 0 && t.Unit != "epoch" {
		f.Because("Per epoch it is %s.", per(t.PerEpoch))
	}
	if f.Severity == finding.Info {
		f.Because("The growth is small: another 1 GiB takes about %s %ss.", units.Count(int64((1<<30)/t.Slope)), t.Unit)
	}
	if t.Late {
		f.Because("It began after a time without growth.")
	}
	b := f.Evidence.Trends.Of(counters.Blocks)
	larger := b != nil && !b.Grows() // no new tensors: the same ones get larger
	switch {
	case larger:
		f.Because("The number of live blocks does not grow (%s at the end): the same tensors get larger, as with "+
			"longer batches or a buffer that is extended.", units.Count(b.Last))
	case b != nil:
		f.Because("The number of live blocks grows too, by %.3g per %s.", b.Slope, b.Unit)
	}
	switch {
	case larger:
		f.Confidence = finding.Low
	case t.Name == counters.Reserved:
		f.Confidence = finding.Low
		f.Because("The samples have reserved memory only: fragmentation would look the same.")
	case fills:
		f.Confidence = finding.Low
	case !t.Late && t.P <= counters.ChanceLate && t.Windows >= 6 && !swings:
		f.Confidence = finding.High
	}
	f.Do("Record a snapshot over some of these "+t.Unit+"s: a report of it names the stack that allocated what stays.",
		"Look for lists, dicts, closures and hooks that keep tensors from "+t.Unit+" to "+t.Unit+"; store "+
			".detach().cpu() or .item() instead.")
	if c := f.Evidence.Forecast; c != nil {
		f.Because("%s", lasts(c, t.Unit))
	}
	j.add(finding.Growing, f)
}

// freed is what was freed between the first sample and the last in bytes, nil unknown.
func (j *Counters) freed() *int64 {
	a, b := j.Series.First.Get(counters.FreedSum), j.Series.Last.Get(counters.FreedSum)
	if !a.Known() || !b.Known() || j.SumResets > 0 {
		return nil
	}
	n := b.Value - a.Value
	return &n
}

// forecast needs the capacity, from the caller or from what mem_get_info said.
func (j *Counters) forecast(t *finding.Trend, capacity int64) *finding.Forecast {
	d := j.Series
	f := &finding.Forecast{Level: t.Last, Seconds: -1}
	total, free, reserved := d.Last.Get(counters.DeviceTotal), d.Last.Get(counters.DeviceFree),
		d.Last.Get(counters.Reserved)
	switch {
	case capacity > 0:
		f.Usable, f.Source = capacity, "as given"
	case total.Known() && free.Known() && reserved.Known():
		f.Usable, f.Source = free.Value+reserved.Value, "free and reserved now, by mem_get_info"
	case total.Known():
		f.Usable, f.Source = total.Value, "the whole device, by mem_get_info"
	default:
		return nil
	}
	if peak := d.Last.Get(counters.AllocatedPeak); peak.Known() {
		f.Level = max(f.Level, peak.Value)
	}
	if t.Slope <= 0 {
		return nil
	}
	left := float64(f.Usable-f.Level) / t.Slope
	if left > 1e15 {
		return nil
	}
	f.Units = max(int64(left), 0)
	if n := len(d.Points); t.Unit != "epoch" && n > 1 {
		a, b := d.Points[0], d.Points[n-1]
		if du := d.Place(n-1) - d.Place(0); a.Time > 0 && b.Time > a.Time && du > 0 {
			if s := left * float64(b.Time-a.Time) / 1e6 / float64(du); s >= 1 && s < 1e10 {
				f.Seconds = int64(s)
			}
		}
	}
	return f
}

func lasts(f *finding.Forecast, unit string) string {
	if f.Units == 0 {
		return fmt.Sprintf("The live peak, %s, has reached all that tensors can have (%s, %s).", units.Bytes(f.Level),
			units.Bytes(f.Usable), f.Source)
	}
	s := fmt.Sprintf("At this rate the live peak, now %s, reaches %s (%s) in about %s more %ss", units.Bytes(f.Level),
		units.Bytes(f.Usable), f.Source, units.Count(f.Units), unit)
	if f.Seconds >= 0 {
		s += ", " + units.Micros(f.Seconds*1e6)
	}
	return s + ", or earlier: fragmentation needs room too."
}

// per prints a slope in bytes.
func per(v float64) string { return units.Bytes(int64(v + 0.5)) }

// pace says how fast something grows.
func pace(t *finding.Trend) string { return per(t.Slope) + " per " + t.Unit }

// more is pace where what grows comes first.
func more(t *finding.Trend) string { return per(t.Slope) + " more per " + t.Unit }

// chance says how probable such a rise is where nothing grows.
func chance(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.2g", p)
}

// byChance is chance and from how much it was computed.
func byChance(t *finding.Trend) string { return fmt.Sprintf("%s, %d windows", chance(t.P), t.Windows) }
