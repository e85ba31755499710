package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/memstats"
)

// Counters is what the counters of one device show over time.
type Counters struct {
	Series *counters.Series `json:"-"`
	Trends finding.Trends   `json:"-"`
	counters.Extent
	Status   finding.Status    `json:"status"` // Growing, Fragmentation, Cached, Flat or Unknown
	Headline string            `json:"headline"`
	Live     string            `json:"live"` // the counter that the verdict rests on, "" when there is none
	Unit     string            `json:"unit"` // what At counts, as of counters.Series
	At       []int64           `json:"at"`   // places of at most maxValues points
	Times    []int64           `json:"time_us"`
	Columns  []Column          `json:"trends"`
	Findings []finding.Finding `json:"findings"`           // most important first
	Forecast *finding.Forecast `json:"forecast,omitempty"` // nil unless live memory grows and the capacity is known
	finding.Incidents
	Last  []memstats.Stat `json:"last"`  // of the last sample
	Notes []string        `json:"notes"` // what limits the answer
}

// Column is the trend of a counter with its values at the places, -1 unknown.
type Column struct {
	finding.Trend
	Values []int64 `json:"values"`
}

// maxValues bounds the values of a counter that are kept; of longer series every n-th.
const maxValues = 512

// JudgeCounters judges the counters of a device. capacity is how many bytes its memory has, 0 unknown.
func JudgeCounters(d *counters.Series, capacity int64) *Counters {
	j := &Counters{
		Series: d, Extent: d.Extent, Incidents: d.Incidents, Status: finding.Flat, Unit: d.Unit(), Trends: d.Trends(),
		At: []int64{}, Times: []int64{}, Columns: []Column{}, Findings: []finding.Finding{}, Last: d.Last.Stats,
		Notes: []string{},
	}
	j.thin()
	for _, name := range []string{counters.Allocated, counters.Requested, counters.Active, counters.Reserved} {
		if j.Trends.Of(name) != nil {
			j.Live = name
			break
		}
	}
	j.notes()
	if j.Live == "" {
		j.Status, j.Headline = finding.Unknown, "These samples have no counter of memory."
		return j
	}
	j.fragmentation()
	j.growth(capacity)
	j.cached()
	j.drift()
	j.pending()
	j.failures()
	j.split()
	j.conclude()
	return j
}

// thin keeps some values of each counter.
func (j *Counters) thin() {
	n := len(j.Series.Points)
	stride := max((n+maxValues-1)/maxValues, 1)
	for i := 0; i < n; i += stride {
		j.At, j.Times = append(j.At, j.Series.Place(i)), append(j.Times, j.Series.Points[i].Time)
	}
	for _, t := range j.Trends {
		c := Column{Trend: t}
		col := j.Series.Column(t.Name)
		for i := 0; i < n; i += stride {
			c.Values = append(c.Values, col[i])
		}
		j.Columns = append(j.Columns, c)
	}
}

// add adds a finding and what it makes of the outcome; one that is healthy decides nothing.
func (j *Counters) add(s finding.Status, f *finding.Finding) {
	f.Device, f.Status, f.Events = j.Device, s, []int{}
	if s == finding.Growing {
		f.Status = finding.Ghost
	}
	j.Findings = append(j.Findings, *f)
	if j.Status == finding.Flat && s != finding.Healthy {
		j.Status = s
	}
}

// trends are those of the series that there are, of several.
func trends(all finding.Trends, names ...string) finding.Evidence {
	var e finding.Evidence
	for _, name := range names {
		if t := all.Of(name); t != nil {
			e.Trends = append(e.Trends, *t)
		}
	}
	return e
}

func (j *Counters) device() string {
	s := "the device"
	if j.Series.Device >= 0 {
		s = fmt.Sprintf("GPU %d", j.Series.Device)
	}
	if j.Series.Rank >= 0 {
		s += fmt.Sprintf(" of rank %d", j.Series.Rank)
	}
	return s
}

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
		f.Because("It is little: another 1 GiB takes about %s %ss.", units.Count(int64((1<<30)/t.Slope)), t.Unit)
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

// fragmentation: requests made the device run full although much of what was reserved was never live at once.
func (j *Counters) fragmentation() {
	v, tries := j.unused(), j.NewRetries+j.NewOOMs
	v.Live = units.Size(j.Series.Highest(counters.Allocated, counters.AllocatedPeak))
	v.Reserved = units.Size(j.Series.Highest(counters.Reserved, counters.ReservedPeak))
	if tries == 0 || v.Live == 0 || v.Reserved == 0 || v.Live > v.Reserved/4*3 {
		return
	}
	idle := v.Reserved - v.Live
	f := &finding.Finding{ID: "fragmentation", Severity: finding.Warning, Confidence: finding.Medium,
		Bytes: int64(idle), Heuristic: true, Evidence: finding.Evidence{Unused: v, Incidents: &j.Incidents}}
	device := j.device()
	f.Say("%s ran full although at least %v of what PyTorch had reserved was unused.",
		strings.ToUpper(device[:1])+device[1:], idle)
	f.Because("cudaMalloc failed %s in these samples (%d out-of-memory errors), yet at most %v of the %v reserved "+
		"was ever live.", units.Times(tries), j.NewOOMs, v.Live, v.Reserved)
	f.Do(tryExpandable, "Record a snapshot: a report of it names the blocks that keep the segments.")
	if v.Split >= 0 {
		f.Because("In the last sample %v is free in pieces between live blocks (inactive split).", v.Split)
	}
	if j.PeakResets > 0 {
		f.Confidence = finding.Low
		f.Because("Peaks were reset between the samples, so a higher one may be missing.")
	}
	if j.NewOOMs > 0 {
		f.Severity = finding.Error
	}
	j.add(finding.Fragmentation, f)
}

// unused is what the last sample says of free memory, with -1 where it does not.
func (j *Counters) unused() *finding.Unused {
	of := func(name string) units.Size {
		if f := j.Series.Last.Get(name); f.Known() {
			return units.Size(f.Value)
		}
		return -1
	}
	return &finding.Unused{Reserved: of(counters.Reserved), Live: of(counters.Allocated), Split: of(counters.Split)}
}

// cached: what was live is gone, and PyTorch keeps the memory.
func (j *Counters) cached() {
	live, reserved := j.Trends.Of(counters.Allocated), j.Trends.Of(counters.Reserved)
	if live == nil || reserved == nil || j.Samples < 2 || live.Grows() || live.Last > reserved.Last/10 ||
		live.High < 4*live.Last || reserved.Last < reserved.High/2 || reserved.Last-live.Last < 64<<20 {
		return
	}
	f := &finding.Finding{ID: "cached", Severity: finding.Info, Confidence: finding.High,
		Bytes: reserved.Last - live.Last, Evidence: trends(j.Trends, live.Name, reserved.Name)}
	f.Say("PyTorch keeps %s on %s that no tensor uses: a cache, not a leak.", units.Bytes(f.Bytes), j.device())
	f.Because("Live memory fell from %s to %s; %s stays reserved for later requests.", units.Bytes(live.High),
		units.Bytes(live.Last), units.Bytes(reserved.Last))
	f.Do("Leave it: new tensors use it without asking the driver. If another process needs it, call " +
		"torch.cuda.empty_cache().")
	j.add(finding.Cached, f)
}

// drift: reserved memory grows while what is active does not.
func (j *Counters) drift() {
	t, reserved := j.Trends.Of(counters.Cached), j.Trends.Of(counters.Reserved)
	if !t.Grows() || t.Kept < 64<<20 || t.Kept < reserved.Last/20 || !reserved.Grows() {
		return // where reserved does not grow, live memory is given back
	}
	f := &finding.Finding{ID: "drift", Severity: finding.Warning, Confidence: finding.Low, Bytes: t.Kept,
		Heuristic: true, Evidence: trends(j.Trends, t.Name, counters.Split, j.Live)}
	f.Say("Reserved but unused memory of %s grows by %s.", j.device(), pace(t))
	f.Because("reserved - active rises from %s to %s (%s).", units.Bytes(t.First), units.Bytes(t.Last), byChance(t))
	f.Do("Requests of ever new sizes do this, such as batches of varying length: pad them to a few sizes.",
		tryExpandable)
	if s := j.Trends.Of(counters.Split); s.Grows() {
		f.Confidence = finding.Medium
		f.Because("The free pieces between live blocks (inactive split) grow too, to %s: this is fragmentation.",
			units.Bytes(s.Last))
	}
	if j.Trends.Of(j.Live).Grows() {
		f.Severity = finding.Info // what leaks also scatters
	}
	j.add(finding.Fragmentation, f)
}

// pending: blocks that the program has freed wait for another stream.
func (j *Counters) pending() {
	t := j.Trends.Of(counters.Pending)
	if t == nil || t.Last < 64<<20 || t.Last < j.Trends.Of(counters.Active).Last/10 {
		return
	}
	f := &finding.Finding{ID: "pending", Severity: finding.Info, Confidence: finding.High, Bytes: t.Last,
		Evidence: trends(j.Trends, t.Name)}
	f.Say("%s on %s is freed but still waits for another stream.", units.Bytes(t.Last), j.device())
	grows := ""
	if t.Grows() {
		grows = " They grow by " + pace(t) + "."
	}
	f.Because("active - allocated counts blocks with record_stream whose other stream is not done with them.%s", grows)
	f.Do("Let the side stream catch up (wait_stream, synchronize), or hand tensors over less often.")
	j.add(finding.Healthy, f)
}

func (j *Counters) failures() {
	evidence := finding.Evidence{Incidents: &j.Incidents}
	if n := j.NewOOMs; n > 0 {
		f := &finding.Finding{ID: "oom", Severity: finding.Error, Confidence: finding.High, Evidence: evidence}
		f.Say("OOM %s on %s between the first sample and the last.", units.Times(n), j.device())
		f.Because("num_ooms rises by %s.", units.Count(n))
		f.Do("Explain the message in the log: its figures tell the cause.")
		j.add(finding.Healthy, f)
	}
	if n := j.NewRetries; n > 0 {
		f := &finding.Finding{ID: "retries", Severity: finding.Info, Confidence: finding.High, Evidence: evidence}
		f.Say("cudaMalloc failed %s on %s; PyTorch freed its cache and retried.", units.Times(n), j.device())
		f.Because("num_alloc_retries rises by %s. Each retry stops the GPU.", units.Count(n))
		f.Do("There is little room left: a smaller batch or less fragmentation makes the program faster.")
		j.add(finding.Healthy, f)
	}
}

// split says how much lies free in pieces, where that is most of what is reserved.
func (j *Counters) split() {
	v := j.unused()
	if v.Reserved < 0 || v.Split < 256<<20 || v.Split < v.Reserved/2 {
		return
	}
	f := &finding.Finding{ID: "split", Severity: finding.Info, Confidence: finding.Low, Bytes: int64(v.Split),
		Heuristic: true, Evidence: finding.Evidence{Unused: v}}
	f.Say("%v of the %v reserved on %s is free in pieces between live blocks.", v.Split, v.Reserved, j.device())
	f.Because("inactive_split_bytes cannot go back to the device and serves only requests that fit its pieces. That " +
		"is common between steps; if a request fails, it is fragmentation.")
	f.Do("A report of a snapshot shows the pieces and the blocks between them.")
	j.add(finding.Healthy, f)
}

// Weight tells how much a series matters beside others: more is graver.
func (j *Counters) Weight() int {
	n := map[finding.Status]int{finding.Fragmentation: 40, finding.Growing: 40, finding.Cached: 20,
		finding.Flat: 10}[j.Status]
	if len(j.Findings) > 0 {
		n += map[finding.Severity]int{finding.Error: 8, finding.Warning: 4}[j.Findings[0].Severity]
		n += map[finding.Confidence]int{finding.High: 2, finding.Medium: 1}[j.Findings[0].Confidence]
	}
	return n
}

// conclude ranks the findings and says in a line what they come to.
func (j *Counters) conclude() {
	place := map[string]int{"fragmentation": -1, "cached": -1} // before all others
	switch j.Status {
	case finding.Growing:
		place["growth"] = -1
	case finding.Fragmentation:
		place["drift"] = -1
	}
	slices.SortStableFunc(j.Findings, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(place[a.ID], place[b.ID]), cmp.Compare(a.Severity.Rank(), b.Severity.Rank()))
	})
	t := j.Trends.Of(j.Live)
	if j.Status == finding.Flat && t.Shape == counters.Short {
		j.Status = finding.Unknown
	}
	switch j.Status {
	case finding.Flat:
		how := map[finding.Shape]string{counters.Steady: "is the same in every sample",
			counters.Settled: "is level after its start", counters.Swings: "comes and goes but does not grow",
			counters.Falling: "falls"}[t.Shape]
		j.Headline = fmt.Sprintf("%s of %s %s: %s at the end.", liveNames[j.Live], j.device(), how, units.Bytes(t.Last))
	case finding.Unknown:
		j.Headline = fmt.Sprintf("Too few samples of %s to see a trend: %s.", j.device(), units.Plural(j.Series.Samples,
			"sample"))
	default:
		j.Headline = j.Lead().Title
	}
}

// Lead is the finding that the outcome rests on, nil where none decided it.
func (j *Counters) Lead() *finding.Finding {
	if j.Status == finding.Flat || j.Status == finding.Unknown {
		return nil
	}
	return &j.Findings[0]
}

// notes says what limits the answer.
func (j *Counters) notes() {
	d := j.Series
	for _, note := range []struct {
		holds bool
		text  string
	}{
		{d.Restarts > 0, "The program was restarted " + units.Times(d.Restarts) + "; only the last run is judged."},
		{d.PeakResets > 0, "Peaks fall " + units.Times(d.PeakResets) + ": reset_peak_memory_stats was called, so " +
			"each covers only a part."},
		{d.SumResets > 0, "Accumulated counters fall " + units.Times(d.SumResets) +
			": reset_accumulated_memory_stats was called."},
		{d.ResetBefore, "Accumulated counters were reset before the first sample: allocated - freed is not the " +
			"current value."},
		{d.Every > 1, fmt.Sprintf("One point stands for %d samples.", d.Every)},
		{d.Last.Cut, "The last table is cut: what it lacks is unknown."},
		{d.Last.Async, "The cudaMallocAsync backend counts only current and peak bytes; all else is unknown."},
		{d.Precision(counters.Allocated) > 1, "Figures are only as exact as they were printed: to " +
			units.Bytes(d.Precision(counters.Allocated)) + "."},
	} {
		if note.holds {
			j.Notes = append(j.Notes, note.text)
		}
	}
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
