package json

import (
	"io"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/snapshot/memstats"
)

// StatsSchema is the value of "schema" in what WriteStats writes; see SCHEMA.md.
const StatsSchema = "snapana.stats/1"

// maxValues of a counter are written; of longer series every n-th.
const maxValues = 512

type statsDoc struct {
	Schema    string       `json:"schema"`
	Files     []statsFile  `json:"files"`
	Hosts     []statsHost  `json:"hosts"`
	Snapshot  string       `json:"snapshot"`
	Unchecked string       `json:"unchecked"`
	Checks    []statsCheck `json:"checks"`
}

type statsFile struct {
	Name      string        `json:"name"`
	Container []string      `json:"container"`
	Samples   int64         `json:"samples"`
	Readings  int64         `json:"readings"`
	Skipped   int64         `json:"skipped"`
	Odd       int64         `json:"odd"`
	Foreign   int64         `json:"foreign"`
	Fault     string        `json:"fault"`
	Cut       string        `json:"cut"`
	Series    []statsSeries `json:"series"`
	Reading   *statsReading `json:"reading,omitempty"`
}

type statsSeries struct {
	Device      int               `json:"device"`
	Rank        int               `json:"rank"`
	Samples     int64             `json:"samples"`
	Every       int64             `json:"every"`
	Status      finding.Status    `json:"status"`
	Headline    string            `json:"headline"`
	Live        string            `json:"live"`
	Unit        string            `json:"unit"`
	At          []int64           `json:"at"`
	Times       []int64           `json:"time_us"`
	Trends      []statsTrend      `json:"trends"`
	Findings    []finding.Finding `json:"findings"`
	Forecast    *statsForecast    `json:"forecast,omitempty"`
	Restarts    int               `json:"restarts"`
	PeakResets  int               `json:"peak_resets"`
	SumResets   int               `json:"sum_resets"`
	ResetBefore bool              `json:"reset_before"`
	NewRetries  int64             `json:"new_retries"`
	NewOOMs     int64             `json:"new_ooms"`
	Last        []statsFigure     `json:"last"`
	Notes       []string          `json:"notes"`
}

type statsFigure struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Step  int64  `json:"step"`
}

type statsTrend struct {
	statsShape
	Values []int64 `json:"values"`
}

type statsShape struct {
	Name      string         `json:"name"`
	Shape     counters.Shape `json:"shape"`
	First     int64          `json:"first"`
	Last      int64          `json:"last"`
	Low       int64          `json:"low"`
	High      int64          `json:"high"`
	Precision int64          `json:"precision"`
	Growth    *statsGrowth   `json:"growth,omitempty"`
}

type statsGrowth struct {
	Unit      string  `json:"unit"`
	Slope     float64 `json:"slope"`
	Low       float64 `json:"slope_low"`
	High      float64 `json:"slope_high"`
	P         float64 `json:"p"`
	Kept      int64   `json:"kept"`
	From      int64   `json:"from"`
	To        int64   `json:"to"`
	Windows   int     `json:"windows"`
	Late      bool    `json:"late"`
	GivenBack int64   `json:"given_back"`
	PerEpoch  float64 `json:"slope_per_epoch"`
}

type statsForecast struct {
	Usable  int64  `json:"usable"`
	Source  string `json:"source"`
	Level   int64  `json:"level"`
	Units   int64  `json:"units"`
	Seconds int64  `json:"seconds"`
}

type statsReading struct {
	Driver    string          `json:"driver"`
	CUDA      string          `json:"cuda"`
	Time      string          `json:"time"`
	Devices   []statsDevice   `json:"devices"`
	Instances []statsInstance `json:"instances"`
	Processes []statsProcess  `json:"processes"`
}

type statsDevice struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	Bus   string `json:"bus"`
	Used  *int64 `json:"used,omitempty"`
	Total *int64 `json:"total,omitempty"`
	Free  *int64 `json:"free,omitempty"`
	Idle  bool   `json:"idle"`
}

type statsInstance struct {
	Device int    `json:"device"`
	Index  int    `json:"index"`
	GI     int    `json:"gpu_instance"`
	CI     int    `json:"compute_instance"`
	Used   *int64 `json:"used,omitempty"`
	Total  *int64 `json:"total,omitempty"`
}

type statsProcess struct {
	Device int    `json:"device"`
	UUID   string `json:"uuid"`
	GI     int    `json:"gpu_instance"`
	CI     int    `json:"compute_instance"`
	PID    int64  `json:"pid"`
	Type   string `json:"type"`
	Name   string `json:"name"`
	Used   *int64 `json:"used,omitempty"`
}

type statsCheck struct {
	Device    int        `json:"device"`
	Event     int        `json:"event"`
	Moment    string     `json:"moment"`
	Whole     bool       `json:"whole"`
	Rows      []statsRow `json:"rows"`
	Unchecked int        `json:"unchecked"`
	Reasons   []string   `json:"reasons"`
}

type statsRow struct {
	Name     string             `json:"name"`
	Stats    int64              `json:"stats"`
	Step     int64              `json:"step"`
	Snapshot int64              `json:"snapshot"`
	Verdict  counters.Agreement `json:"verdict"`
	Why      string             `json:"why"`
}

// WriteStats writes what memory counters show, and what the recorder saw of the host.
func WriteStats(w io.Writer, r *analyze.Stats) error {
	return encode(w, buildStats(r))
}

func buildStats(r *analyze.Stats) *statsDoc {
	out := &statsDoc{Schema: StatsSchema, Files: []statsFile{}, Hosts: buildHosts(r.Hosts), Snapshot: r.Snapshot, Unchecked: r.Unchecked, Checks: []statsCheck{}}
	for i := range r.Files {
		f := &r.Files[i]
		o := statsFile{Name: f.Info.Name, Container: append([]string{}, f.Info.Container...), Samples: f.Info.Samples, Readings: f.Info.Readings,
			Skipped: f.Info.Skipped, Odd: f.Info.Odd, Foreign: f.Info.Foreign, Series: []statsSeries{}}
		for _, fault := range []*memstats.Fault{f.Info.FirstOdd, f.Info.FirstSkipped} {
			if fault != nil {
				o.Fault = fault.Msg
			}
		}
		if f.Info.Cut != nil {
			o.Cut = f.Info.Cut.Msg
		}
		for _, j := range f.Series {
			o.Series = append(o.Series, buildSeries(j))
		}
		if f.Reading != nil {
			o.Reading = buildReading(f.Reading)
		}
		out.Files = append(out.Files, o)
	}
	for _, c := range r.Checks {
		o := statsCheck{Device: c.Device, Event: c.Event, Moment: c.Moment, Whole: c.Whole, Rows: []statsRow{}, Unchecked: c.Unchecked, Reasons: append([]string{}, c.Reasons...)}
		for _, row := range c.Rows {
			o.Rows = append(o.Rows, statsRow{row.Name, row.Stats.Value, row.Stats.Step, row.Snapshot, row.Agreement, row.Why})
		}
		out.Checks = append(out.Checks, o)
	}
	return out
}

func buildSeries(j *verdict.Counters) statsSeries {
	d := j.Series
	o := statsSeries{Device: d.Device, Rank: d.Rank, Samples: d.Samples, Every: d.Every, Status: j.Status, Headline: j.Headline, Live: j.Live, Unit: d.Unit(),
		At: []int64{}, Times: []int64{}, Trends: []statsTrend{}, Findings: append([]finding.Finding{}, j.Findings...), Restarts: d.Restarts, PeakResets: d.PeakResets,
		SumResets: d.SumResets, ResetBefore: d.ResetBefore, NewRetries: d.NewRetries, NewOOMs: d.NewOOMs, Last: []statsFigure{}, Notes: append([]string{}, j.Notes...)}
	for i := range o.Findings {
		if o.Findings[i].Events == nil {
			o.Findings[i].Events = []int{}
		}
	}
	n := len(d.Points)
	stride := max((n+maxValues-1)/maxValues, 1)
	for i := 0; i < n; i += stride {
		o.At = append(o.At, d.Place(i))
		o.Times = append(o.Times, d.Points[i].Time)
	}
	for i := range j.Trends {
		t := &j.Trends[i]
		v := statsTrend{shapeOf(t), []int64{}}
		col := d.Column(t.Name)
		for k := 0; k < n; k += stride {
			v.Values = append(v.Values, col[k])
		}
		o.Trends = append(o.Trends, v)
	}
	if f := j.Forecast; f != nil {
		o.Forecast = &statsForecast{f.Usable, f.Source, f.Level, f.Units, f.Seconds}
	}
	for _, st := range d.Last.Stats {
		o.Last = append(o.Last, statsFigure{st.Name, st.Value, st.Step})
	}
	return o
}

func figureOf(f memstats.Figure) *int64 {
	if !f.Known() {
		return nil
	}
	return &f.Value
}

func buildReading(g *memstats.Reading) *statsReading {
	o := &statsReading{Driver: g.Driver, CUDA: g.CUDA, Time: g.Time, Devices: []statsDevice{}, Instances: []statsInstance{}, Processes: []statsProcess{}}
	for _, d := range g.Devices {
		o.Devices = append(o.Devices, statsDevice{d.Index, d.Name, d.UUID, d.Bus, figureOf(d.Used), figureOf(d.Total), figureOf(d.Free), d.Idle})
	}
	for _, m := range g.Instances {
		o.Instances = append(o.Instances, statsInstance{m.GPU, m.Index, m.GI, m.CI, figureOf(m.Used), figureOf(m.Total)})
	}
	for _, p := range g.Processes {
		o.Processes = append(o.Processes, statsProcess{p.GPU, p.UUID, p.GI, p.CI, p.PID, p.Type, p.Name, figureOf(p.Used)})
	}
	return o
}
