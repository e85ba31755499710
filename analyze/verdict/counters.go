package verdict

import (
	"cmp"
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sorting"
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
		if j.Trends.Of(counters.Pinned) != nil {
			j.pinned()
			j.onlyPinned()
		}
		return j
	}
	j.fragmentation()
	j.growth(capacity)
	j.cached()
	j.drift()
	j.pending()
	j.failures()
	j.split()
	j.pinned()
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
		f.Say("%s refused memory %s; PyTorch freed its cache and retried.", capital(j.device()), units.Times(n))
		f.Because("num_alloc_retries rises by %s. Each retry stops the GPU.", units.Count(n))
		f.Do("There is little room left: a smaller batch or less fragmentation makes the program faster.")
		j.add(finding.Healthy, f)
	}
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
	sorting.Stable(j.Findings, func(a, b finding.Finding) int {
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
