package whatif

import (
	"cmp"
	"context"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/snapshot"
)

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
	// Start is Keep or Anew; nil is what suits the capacity: Keep, unless what was reserved before the
	// trace is more than there is.
	Start *Start
	// NoSearch leaves out the smallest capacity, for which each setting is replayed some twenty
	// times.
	NoSearch bool
}

// Answer is what came out. Bytes are integers, events count from 0.
type Answer struct {
	File    string `json:"file"`
	Device  int    `json:"device"`
	Events  int    `json:"events"`
	Release string `json:"release"` // of torch, the newest one that may have written the file; "" unknown

	Accuracy Accuracy `json:"licence"`
	Start    Begin    `json:"start"`
	Capacity Capacity `json:"capacity"`

	// Doubt is what the replay cannot know of a device that is not CUDA's, "" for nothing.
	Doubt string `json:"doubt,omitempty"`
	// Rows are the settings that were tried, the recorded ones first.
	Rows []Row `json:"settings"`
	Advice

	program  *Program // of which the settings were tried
	settings []Setting
}

// Program is that of which the settings were tried.
func (a *Answer) Program() *Program { return a.program }

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
	// Least says that the smallest capacities are lower bounds: requests follow one that failed in the run, and nothing
	// records when its memory would have been freed.
	Least bool `json:"smallest_is_bound"`
}

// Room is a device of so many bytes, of which some are not to be had; for 0 that of the run, if that filled its device and
// so recorded its size.
func (p *Program) Room(capacity, foreign int64) Capacity {
	switch {
	case capacity > 0:
		return Capacity{Source: "asked", Device: capacity, Foreign: foreign, Reservable: max(capacity-foreign, 1)}
	case p.OOMs > 0 && p.Capacity > 0:
		return Capacity{Source: "failure", Reservable: p.Capacity}
	case p.Capacity > 0:
		return Capacity{Source: "retry", Reservable: p.Capacity}
	}
	return Capacity{Source: "none"}
}

// Row is the outcome of one setting.
type Row struct {
	Text     string `json:"text"`
	Recorded bool   `json:"recorded"`
	Needs    string `json:"needs"` // a release of torch that is newer than the file's, else ""
	// Refused is what the file's release prints instead, "" where it takes them; Misread are the parts that it takes
	// for something else. Both are of the recorded settings and of those that were asked for.
	Refused string              `json:"refused,omitempty"`
	Misread []allocator.Misread `json:"misread,omitempty"`
	Outcome
	// Curve samples the trace, for the recorded settings and the best only.
	Curve []Sample `json:"curve"`
	// Smallest is the least memory, as the allocator can reserve it, with which every request is
	// served; 0 where it was not searched.
	Smallest int64 `json:"smallest_capacity"`
	// Ladder is how the run fares with other limits, nil unless Climb made it.
	Ladder *Ladder `json:"-"`
}

// Ask answers a question about a program. The smallest capacity is searched where a capacity
// matters, for all settings unless the wider set is tried: then for the recorded and the best.
func Ask(ctx context.Context, s *snapshot.Snapshot, p *Program, v *Accuracy, q Question) (*Answer, error) {
	a := &Answer{File: s.Name, Device: p.Device, Doubt: p.Platform.Doubt, Events: p.t.Trace.Len(), Accuracy: *v}
	a.Best, a.Costs = -1, []string{}
	if p.Recorded.Release != 0 {
		a.Release = p.Recorded.Release.String()
	}
	a.Capacity = p.Room(q.Capacity, q.Foreign)
	a.Capacity.Least = p.goesOn()
	start := Keep
	if q.Start != nil {
		start = *q.Start
	} else if limit := a.Capacity.Reservable; limit > 0 && p.StartReserved > limit {
		start = Anew
	}
	a.Start = Begin{Blocks: p.Warm, Bytes: p.WarmBytes, Reserved: p.StartReserved,
		Mode: [...]string{"keep", "anew"}[start]}
	if p.StartReserved == 0 {
		a.Start.Mode = "empty"
	}

	settings := p.Settings(q.All)
	if q.Settings != nil {
		settings = append(settings[:1:1], q.Settings...)
	}
	total := cmp.Or(a.Capacity.Device, a.Capacity.Reservable)
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
		a.Rows = append(a.Rows, p.row(s, &settings[i], out))
		if q.Settings == nil && i > 0 {
			continue // nobody wrote them
		}
		a.Rows[i].Misread = settings[i].Misread
		if refusal := settings[i].Unknown; refusal != nil {
			a.Rows[i].Refused = refusal.Says()
		}
	}
	a.program, a.settings = p, settings
	a.Rows[0].Recorded = true
	if a.Accuracy.Trusted {
		a.Advice = Advise(settings, outs)
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
	searched := make([]Setting, len(shown))
	for k, i := range shown {
		searched[k] = settings[i]
	}
	return a, p.share(ctx, stage.Searching, searched, func(k int) (largest int64, err error) {
		o := o
		o.Conf, o.Curve = searched[k].Conf, 0
		a.Rows[shown[k]].Smallest, largest, err = p.smallestCapacity(ctx, o)
		return largest, err
	}, func(from, to int) { a.Rows[shown[to]].Smallest = a.Rows[shown[from]].Smallest })
}

// lastResort is tried where the run failed and all else did: smaller granules of expandable
// segments, which lie between live blocks where those of 20 MiB do not. It needs a newer torch
// than many files were written by.
const lastResort = "expandable_segments:True,large_segment_size_mb:12"

// rescue replays the last resort where every setting fails, and gives it when it does not.
func (p *Program) rescue(ctx context.Context, settings []Setting, outs []*Outcome, o Options) (Setting, *Outcome,
	error) {
	if slices.ContainsFunc(outs, func(out *Outcome) bool { return out.Failures == 0 }) {
		return Setting{}, nil, nil
	}
	set, err := p.Setting(lastResort)
	if err != nil || known(settings, &set) || !p.Platform.Reads(lastResort) {
		return Setting{}, nil, nil // nobody knows it, or it was tried
	}
	o.Conf = set.Conf
	out, err := p.Run(ctx, o)
	if err != nil || out.Failures > 0 || out.StartFailed {
		return Setting{}, nil, err
	}
	return set, out, nil
}

// row is what is shown of a setting.
func (p *Program) row(s *snapshot.Snapshot, set *Setting, o *Outcome) Row {
	for _, f := range []*Failure{o.First, o.Largest} {
		if f != nil {
			f.Site = attribution.Site(s, f.Stack)
		}
	}
	r := Row{Text: set.Text, Outcome: *o, Curve: []Sample{}}
	if rel := p.Recorded.Release; rel != 0 && set.Conf.Needs > rel {
		r.Needs = set.Conf.Needs.String()
	}
	return r
}
