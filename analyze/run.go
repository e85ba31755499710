package analyze

import (
	"context"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Options change how a snapshot is analyzed.
type Options struct {
	Rules []category.Rule // what memory is for, before anything is inferred
	// NoReplay leaves out what other allocator settings would have done. Advice is then not
	// proven.
	NoReplay bool
	// Capacity is the memory of each device in bytes, 0 for unknown: snapshots do not record it, and
	// what Recorder says of it comes second. It bounds the replays of a run that never filled it.
	Capacity int64
	// Recorder is what the Python recorder wrote beside the snapshot, nil for nothing. Before
	// is an earlier file to compare with; nil compares with the first dump of the same run.
	Recorder, Before *sidecar.File
	// Unread says why the file beside the snapshot that would be Recorder was not used.
	Unread error
	// Readings has readings of the driver to account for the devices' memory with, in place of
	// Recorder; Live is one of this moment, in place of both.
	Readings *sidecar.File
	Live     *sidecar.Reading
}

// Run analyzes a snapshot. It fails only when ctx ends before it is done, with ctx's error: what the
// file lacks or contradicts is said in the result's notes and findings.
func Run(ctx context.Context, s *snapshot.Snapshot, opt Options) (*Result, error) {
	r := &Result{Snapshot: s}
	var evidence []verdict.Facts
	var lines []holder.Line
	for _, ordinal := range devicesOf(s) {
		d, e, err := inspect(ctx, s, ordinal, opt)
		if err != nil {
			return nil, err
		}
		evidence = append(evidence, e)
		lines = append(lines, holder.Line{Timeline: d.Timeline, Growth: d.Growth, Use: func(row int32) string {
			c, _ := d.Categories.Of(row)
			return c.String()
		}})
		r.Devices = append(r.Devices, d)
	}
	var notes []string
	if opt.Recorder != nil {
		r.Holders, notes = holder.Choose(s, lines, opt.Recorder, opt.Before)
	}
	r.Verdict = verdict.Judge(s, evidence, r.Holders)
	r.pinHost()
	r.account(opt)
	r.Quality = append(quality(s, r.Devices), pinnedNotes(r.Pinned)...)
	if opt.Unread != nil {
		notes = append(notes, "The recorder's file beside the snapshot was not used: "+opt.Unread.Error()+".")
	}
	for _, n := range notes {
		r.Quality = append(r.Quality, Note{Level: "problem", Text: n})
	}
	return r, nil
}

// inspect analyzes one device.
func inspect(ctx context.Context, s *snapshot.Snapshot, ordinal int, opt Options) (Device, verdict.Facts, error) {
	t := timeline.Build(s, ordinal)
	if err := ctx.Err(); err != nil {
		return Device{}, verdict.Facts{}, err
	}
	replayed := make(chan *whatif.Answer, 1) // takes longest, and needs nothing else
	go func() { replayed <- replay(ctx, s, t, opt) }()

	d := Device{Timeline: t, Steps: steps.Find(s, t), Turnover: attribution.MeasureTurnover(s, t),
		Free: fragmentation.Over(t, freeSamples)}
	uses := category.Find(s, t, &d.Steps, opt.Rules)
	d.Categories = uses
	d.Uses = uses.Over(t, useSamples)
	end := look(s, t, uses, "end", t.Trace.Len()-1)
	total, free := opt.memory(s, ordinal)
	e := verdict.Facts{Total: total, Free: free, Timeline: t, Peak: end.scene(), End: end.scene(),
		Growth: ghost.Find(s, t, nil), Late: ghost.FindLate(s, t, &d.Steps)}
	ghost.CountSteps(e.Growth, &d.Steps)
	d.Growth, d.OneOffs = e.Growth, ghost.OneOffs(s, t, e.Growth, e.Late)
	if t.Trace.Len() > 0 { // else nothing is known of a peak
		peak := look(s, t, uses, "peak", t.PeakActive.Event)
		e.Peak = peak.scene()
		d.Moments = append(d.Moments, peak)
	}
	if n := len(t.OOMs); n > 0 {
		m := look(s, t, uses, "oom", t.OOMs[n-1].Event)
		scene := m.scene()
		e.OOM = &scene
		d.Moments = append(d.Moments, m)
	}
	d.Moments = append(d.Moments, end)
	d.WhatIf = <-replayed
	e.WhatIf = d.WhatIf
	if e.OOM != nil {
		d.OOM = oom.Explain(s, t.OOMs[len(t.OOMs)-1], &oom.Evidence{
			Timeline: t, State: e.OOM.State, Free: &e.OOM.Frag, Growth: e.Growth, WhatIf: e.WhatIf, Total: total,
		})
		d.OOM.Plan.Name(attribution.Names(e.OOM.Live))
		e.Failure = d.OOM
	}
	return d, e, ctx.Err()
}

// replay tries other allocator settings on the run, nil where that was not asked for or cannot be.
func replay(ctx context.Context, s *snapshot.Snapshot, t *timeline.Timeline, opt Options) *whatif.Answer {
	n := t.Trace.Len()
	if opt.NoReplay || n == 0 || n > maxReplayed && len(t.OOMs)+len(t.Retries) == 0 || s.Partial != nil {
		return nil
	}
	program, validation, err := whatif.Load(ctx, s, t)
	if err != nil {
		return nil
	}
	q := whatif.Question{NoSearch: true}
	// A failure tells better than the device's size what the run could have.
	if room := opt.Capacity - t.PeakReserved.Bytes; program.Capacity == 0 && opt.Capacity > 0 && room >= 0 {
		q.Capacity, q.Foreign = opt.Capacity, min(whatif.ContextBytes, room)
	}
	a, err := whatif.Ask(ctx, s, program, validation, q)
	if err != nil {
		return nil
	}
	return a
}

// maxReplayed bounds the traces that are replayed under other settings although nothing went
// wrong: it takes about a second for a million events.
const maxReplayed = 2_000_000

// useSamples is into how many columns categories over time are sorted.
const useSamples = 700

// freeSamples is at how many events the free memory is measured.
const freeSamples = 160

// maxIdle bounds the devices that are shown although they did nothing.
const maxIdle = 64

// devicesOf lists the ordinals that have segments or events, and those that the process could
// have used: device_traces has a list for each (snapshot/SPEC.md 2.1).
func devicesOf(s *snapshot.Snapshot) []int {
	out := s.UsedDevices()
	if len(s.Traces) <= maxIdle {
		for d := range s.Traces {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
		slices.Sort(out)
	}
	return out
}

func look(s *snapshot.Snapshot, t *timeline.Timeline, uses *category.Table, name string, event int) Moment {
	m := NewMoment(s, t, name, t.StateAt(event))
	m.Uses = uses.Sums(t, m.State)
	return m
}

func (m *Moment) scene() verdict.Scene {
	return verdict.Scene{State: m.State, Frag: m.Frag, Live: m.Live}
}

// quality says how complete and how consistent the data is.
func quality(s *snapshot.Snapshot, devices []Device) []Note {
	notes := []Note{}
	add := func(level string, count int64, format string, args ...any) {
		notes = append(notes, Note{Level: level, Count: count, Text: fmt.Sprintf(format, args...)})
	}
	if s.Partial != nil {
		add("problem", 0, "Only part of the file could be read: %v.", s.Partial)
	}
	for i := range devices {
		t := devices[i].Timeline
		c := &t.Checks
		gpu := fmt.Sprintf("GPU %d: ", t.Device)
		n, events := c.Inconsistent(), t.Trace.Len()
		switch {
		case n > 0 || c.Residual != 0:
			add("problem", n, "%s%s", gpu, Verified(n, c.Residual)+".")
		case events > 0 && s.Partial != nil:
			add("missing", 0, "%s%s could be read. The file's state is from after the missing events, so the end shown here "+
				"is that of the last event.", gpu, units.Plural(events, "event"))
		case events > 0:
			add("ok", 0, "%s%s (%s).", gpu, Verified(0, 0), units.Plural(events, "event"))
		default:
			add("ok", 0, "%sthe totals of segments agree with the sums of their blocks.", gpu)
		}
		if c.PreTraceBlocks > 0 && events > 0 {
			add("missing", c.PreTraceBlocks, "%sallocated before the first recorded event: %s (%s); when is unknown.", gpu,
				units.Plural(c.PreTraceBlocks, "block"), units.Bytes(t.Initial.Active))
		}
		if c.UnknownActions > 0 {
			add("missing", c.UnknownActions, "%s%s with an unknown action: left out.", gpu,
				units.Plural(c.UnknownActions, "event"))
		}
	}
	for _, m := range s.Missing {
		add("missing", 0, "Missing: %s.", m)
	}
	for _, u := range s.Unknown {
		add("missing", u.Count, "Unknown key %q in %s, %s: left out.", u.Key, u.Where, units.Times(u.Count))
	}
	return notes
}
