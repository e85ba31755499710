package whatif

import (
	"context"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/snapshot"
)

// Schema names the form of an Answer in JSON. It changes when a field changes its meaning or
// goes away; new fields do not change it.
const Schema = "snapana.whatif/1"

// ContextBytes is what a process usually takes of a device besides its allocator: the CUDA context and
// libraries.
const ContextBytes = 512 << 20

// Question is what to try on a program.
type Question struct {
	// Settings are tried after the recorded ones; nil is the default set, and with All a wider
	// one.
	Settings []Setting
	All      bool
	// Capacity is the memory of the device in bytes, of which Foreign are not to be had. 0 is
	// the run's own device where a request that failed tells its size, else no limit.
	Capacity, Foreign int64
	// Start is Keep or Anew; nil is what suits the capacity.
	Start *Start
	// NoSearch leaves out the smallest capacity, for which each setting is replayed some twenty
	// times.
	NoSearch bool
}

// Answer is what came out. Bytes are integers, events count from 0.
type Answer struct {
	Schema  string `json:"schema"`
	File    string `json:"file"`
	Device  int    `json:"device"`
	Events  int    `json:"events"`
	Release string `json:"release"` // of torch, the newest one that may have written the file; "" unknown

	Licence  Licence  `json:"licence"`
	Start    Begin    `json:"start"`
	Capacity Capacity `json:"capacity"`

	// Rows are the settings that were tried, the recorded ones first.
	Rows []Row `json:"settings"`
	// Best is the row that is recommended, -1 for none, Advice and Costs say why and at what
	// price.
	Best   int      `json:"best"`
	Advice string   `json:"advice"`
	Costs  []string `json:"costs"`
	Gain   Gain     `json:"-"` // of which Advice is made
}

// Licence says how well the replay under the recorded settings agrees with the trace.
type Licence struct {
	Requests     int     `json:"requests"`
	SameRequests int     `json:"same_requests"`
	Segments     int     `json:"segment_events"`
	SameSegments int     `json:"same_segment_events"`
	Blocks       int     `json:"final_blocks"`
	SameBlocks   int     `json:"same_final_blocks"`
	Share        float64 `json:"share"`
	Trusted      bool    `json:"trusted"`
	FirstEvent   int     `json:"first_divergence"` // -1 for none
	What         string  `json:"what"`
	Why          string  `json:"why"`
}

// Begin is what was there before the trace, and what the replays made of it.
type Begin struct {
	Mode     string `json:"mode"` // "empty", "keep" or "anew"
	Blocks   int    `json:"blocks"`
	Bytes    int64  `json:"bytes"`
	Reserved int64  `json:"reserved"`
}

// Capacity is the device of the replays.
type Capacity struct {
	Source     string `json:"source"` // "none", "failure" or "retry" of the run, or "asked"
	Device     int64  `json:"device"` // 0 where not asked for
	Foreign    int64  `json:"foreign"`
	Reservable int64  `json:"reservable"` // 0 for no limit
}

// Row is the outcome of one setting.
type Row struct {
	Text          string   `json:"text"`
	Recorded      bool     `json:"recorded"`
	Needs         string   `json:"needs"` // a release of torch that is newer than the file's, else ""
	ReservedPeak  int64    `json:"reserved_peak"`
	ReservedEvent int      `json:"reserved_peak_event"`
	Allocated     int64    `json:"allocated_peak"`
	Waste         int64    `json:"waste_peak"`
	WasteEvent    int      `json:"waste_peak_event"`
	ReservedEnd   int64    `json:"reserved_end"`
	DeviceAllocs  int64    `json:"device_allocs"`
	DeviceFrees   int64    `json:"device_frees"`
	Retries       int64    `json:"retries"`
	Failures      int      `json:"failures"`
	New           int      `json:"new_failures"` // requests that the run served
	Served        int      `json:"served"`       // requests that failed in the run and do not here
	StartFailed   bool     `json:"start_failed"`
	First         *Refused `json:"first_failure"`
	Largest       *Refused `json:"largest_failure"`
	// Curve samples the trace, for the recorded settings and the best only.
	Curve []Sample `json:"curve"`
	// Smallest is the least memory, as the allocator can reserve it, with which every request is
	// served; 0 where it was not searched.
	Smallest int64 `json:"smallest_capacity"`

	Outcome *Outcome `json:"-"`
}

// Refused is a request that fails.
type Refused struct {
	Event     int    `json:"event"`
	Requested int64  `json:"requested"`
	Recorded  bool   `json:"failed_in_run"`
	Site      string `json:"site"`
	Reserved  int64  `json:"reserved"`
	Allocated int64  `json:"allocated"`
}

// Ask answers a question about a program. The smallest capacity is searched where a capacity
// matters, for all settings unless the wider set is tried: then for the recorded and the best.
func Ask(ctx context.Context, s *snapshot.Snapshot, p *Program, v *Validation, q Question) (*Answer, error) {
	a := &Answer{Schema: Schema, File: s.Name, Device: p.Device, Events: p.t.Trace.Len(), Best: -1, Costs: []string{}}
	if p.Recorded.Release != 0 {
		a.Release = p.Recorded.Release.String()
	}
	a.Licence = licence(v)
	a.Capacity = Capacity{Source: "none"}
	switch {
	case q.Capacity > 0:
		a.Capacity = Capacity{"asked", q.Capacity, q.Foreign, max(q.Capacity-q.Foreign, 1)}
	case p.Capacity > 0:
		a.Capacity = Capacity{"retry", 0, 0, p.Capacity}
		if p.OOMs > 0 {
			a.Capacity.Source = "failure"
		}
	}
	start := p.StartFor(a.Capacity.Reservable)
	if q.Start != nil {
		start = *q.Start
	}
	a.Start = Begin{Blocks: p.Warm, Bytes: p.WarmBytes, Reserved: p.StartReserved, Mode: [...]string{"keep", "anew"}[start]}
	if p.StartReserved == 0 {
		a.Start.Mode = "empty"
	}

	settings := p.Settings(q.All)
	if q.Settings != nil {
		settings = append(settings[:1:1], q.Settings...)
	}
	total := a.Capacity.Device
	if total == 0 {
		total = a.Capacity.Reservable
	}
	o := Options{Start: start, Capacity: a.Capacity.Reservable, Total: total, Curve: 512}
	outs, err := p.Sweep(ctx, settings, o)
	if err != nil {
		return nil, err
	}
	if q.Settings == nil && outs[0].Failures > 0 {
		if more, out, err := p.rescue(ctx, settings, outs, o); err != nil {
			return nil, err
		} else if out != nil {
			settings, outs = append(settings[:len(settings):len(settings)], more), append(outs, out)
		}
	}
	for i, out := range outs {
		a.Rows = append(a.Rows, row(s, p, &settings[i], out))
	}
	a.Rows[0].Recorded = true
	if a.Licence.Trusted {
		advice := Advise(settings, outs)
		a.Best, a.Advice, a.Gain = advice.Best, advice.Text, advice.Gain
		a.Costs = append(a.Costs, advice.Costs...)
	}
	shown := []int{0}
	if a.Best > 0 {
		shown = append(shown, a.Best)
	}
	for _, i := range shown {
		a.Rows[i].Curve = append(a.Rows[i].Curve, outs[i].Curve...)
	}
	if a.Capacity.Source == "none" || q.NoSearch {
		return a, nil
	}
	if p.StartReserved > 0 {
		o.Start = Anew // what was reserved on a larger device would be the answer otherwise
	}
	if !q.All {
		shown = shown[:0]
		for i := range settings {
			shown = append(shown, i)
		}
	}
	return a, each(len(shown), func(k int) (err error) {
		o, i := o, shown[k]
		o.Conf, o.Curve = settings[i].Conf, 0
		a.Rows[i].Smallest, _, err = p.SmallestCapacity(ctx, o)
		return err
	})
}

// lastResort is tried where the run failed and all else did: smaller granules of expandable
// segments, which lie between live blocks where those of 20 MiB do not. It needs a newer torch
// than many files were written by.
const lastResort = "expandable_segments:True,large_segment_size_mb:12"

// rescue replays the last resort where every setting fails, and gives it when it does not.
func (p *Program) rescue(ctx context.Context, settings []Setting, outs []*Outcome, o Options) (Setting, *Outcome, error) {
	for _, out := range outs {
		if out.Failures == 0 {
			return Setting{}, nil, nil
		}
	}
	set, err := p.Setting(lastResort)
	if err != nil || contains(settings, func(have Setting) bool { return same(&have.Conf, &set.Conf) }) {
		return Setting{}, nil, nil // the release does not know it, or it was tried
	}
	o.Conf = set.Conf
	out, err := p.Run(ctx, o)
	if err != nil || out.Failures > 0 || out.StartFailed {
		return Setting{}, nil, err
	}
	return set, out, nil
}

func licence(v *Validation) Licence {
	l := Licence{Requests: v.Allocs, SameRequests: v.SameAllocs, Segments: v.Segments, SameSegments: v.SameSegments,
		Blocks: v.Blocks, SameBlocks: v.SameBlocks, Share: v.Share(), Trusted: v.Trusted(), FirstEvent: -1}
	if v.First != nil {
		l.FirstEvent, l.What, l.Why = v.First.Event, v.First.What, v.First.Why
	}
	return l
}

func row(s *snapshot.Snapshot, p *Program, set *Setting, o *Outcome) Row {
	r := Row{
		Text: set.Text, ReservedPeak: o.PeakReserved.Bytes, ReservedEvent: o.PeakReserved.Event, Allocated: o.PeakAllocated.Bytes,
		Waste: o.PeakWaste.Bytes, WasteEvent: o.PeakWaste.Event, ReservedEnd: o.EndReserved,
		DeviceAllocs: o.DeviceAllocs, DeviceFrees: o.DeviceFrees, Retries: o.Retries,
		Failures: o.Failures, New: o.New, Served: o.Served, StartFailed: o.StartFailed, Outcome: o,
		First: refused(s, o.First), Largest: refused(s, o.Largest), Curve: []Sample{},
	}
	if rel := p.Recorded.Release; rel != 0 && set.Conf.Needs > rel {
		r.Needs = set.Conf.Needs.String()
	}
	return r
}

func refused(s *snapshot.Snapshot, f *Failure) *Refused {
	if f == nil {
		return nil
	}
	return &Refused{f.Event, f.Requested, f.Recorded, attribution.Site(s, f.Stack), f.Reserved, f.Allocated}
}
