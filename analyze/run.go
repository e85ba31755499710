// Package analyze strings the analyses of one snapshot together:
//
//  1. timeline rebuilds each device's memory over time, backward from the final state and
//     forward again, and counts what does not add up.
//  2. At the moments that matter (the peak, the last out-of-memory event, the end),
//     attribution groups what is live by the stack that allocated it, and fragmentation
//     measures what is free and what keeps it from being used.
//  3. steps finds the program's steps, phase measures the parts that it named, category says what
//     memory is for, and attribution what came and went at once.
//  4. ghost looks for memory that every lap of a loop adds and never returns, or returns late,
//     and holder says which Python objects keep it, where the recorder's file lies beside
//     the snapshot.
//     lever computes what would lower the peak.
//  5. whatif replays the run under other allocator settings, and oom says of the request that
//     failed in which circumstances it would not have.
//  6. verdict turns all of it into ranked findings and one line.
//  7. host does for pinned host memory, of which there is one for all devices, what of this applies
//     to it; its findings stand beside the verdict.
//
// Data flows this way only; no package looks at one that comes after it.
package analyze

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/change"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/footprint"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/lever"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/source"
	"github.com/snapana/snapana/analyze/stage"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
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
	// Source has the program's files, to show their lines beside stacks; nil for none.
	Source *source.Tree
}

// Run analyzes a snapshot. It fails only when ctx ends before it is done, with ctx's error: what the
// file lacks or contradicts is said in the result's notes and findings.
func Run(ctx context.Context, s *snapshot.Snapshot, opt Options) (*Result, error) {
	r := &Result{Snapshot: s, Source: opt.Source}
	var evidence []verdict.Facts
	var lines []holder.Line
	for _, ordinal := range devicesOf(s, opt) {
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
	var faults []string
	if opt.Recorder != nil {
		r.Holders, faults = holder.Choose(s, lines, opt.Recorder, opt.Before)
	}
	r.Verdict = verdict.Judge(s, evidence, r.Holders)
	r.pinHost()
	var most *timeline.Timeline
	if d := r.Main(); d != nil {
		most = d.Timeline
	}
	r.Verdict.Advise(s, most, r.Pinned != nil)
	r.account(opt)
	r.Quality = slices.Concat(quality(s, r.Devices), r.stackless(), pinnedNotes(r.Pinned))
	if n, all := len(r.Pictured()), len(s.UsedDevices()); n < all {
		r.Quality = append(r.Quality, Note{Level: "missing", Text: fmt.Sprintf("Pictures are of the %s that reserved "+
			"most, of %d.", units.Plural(n, "GPU"), all)})
	}
	if opt.Unread != nil {
		faults = append(faults, "The recorder's file beside the snapshot was not used: "+opt.Unread.Error()+".")
	}
	for _, n := range faults {
		r.Quality = append(r.Quality, Note{Level: "problem", Text: n})
	}
	return r, nil
}

// inspect analyzes one device.
func inspect(ctx context.Context, s *snapshot.Snapshot, ordinal int, opt Options) (Device, verdict.Facts, error) {
	stage.At(ctx, stage.Rebuilding, 0, 0)
	t := timeline.Build(s, ordinal)
	stage.At(ctx, stage.Analyzing, 0, 0)
	if err := ctx.Err(); err != nil {
		return Device{}, verdict.Facts{}, err
	}
	replayed := make(chan *whatif.Answer, 1) // takes longest, and needs nothing else
	go func() { replayed <- replay(ctx, s, t, opt) }()

	d := Device{Timeline: t}
	e := verdict.Facts{Timeline: t}
	e.Total, e.Free = opt.memory(s, ordinal)
	// What leaves and grows, and what memory is for, need nothing of each other until both are known: a second core
	// takes one of them.
	var group sync.WaitGroup
	group.Go(func() {
		if !t.Recording.BlocksUnknown() {
			e.Growth = ghost.Find(s, t, nil)
		}
		d.Before = attribution.FindBefore(t)
		d.Phases = phase.Find(s, t, opt.Recorder)
		e.Release = phase.FindRelease(t, d.Phases)
	})
	d.Steps = steps.Find(s, t)
	uses := category.Find(s, t, &d.Steps, opt.Rules)
	d.Categories, e.Uses = uses, uses
	d.Turnover = sync.OnceValue(func() attribution.Turnover { return attribution.MeasureTurnover(s, t) })
	d.Free = sync.OnceValue(func() []fragmentation.Sample { return fragmentation.Over(t, samples(s, freeSamples)) })
	d.Uses = sync.OnceValue(func() []category.Sample { return uses.Over(t, samples(s, useSamples)) })
	end := look(s, t, uses, "end", t.Trace.Len()-1)
	e.Peak, e.End = end.Scene, end.Scene
	if t.HasHistory() { // else nothing is known of a peak
		peak := look(s, t, uses, "peak", t.PeakActive.Event)
		e.Peak = peak.Scene
		d.Moments = append(d.Moments, peak)
	}
	if n := len(t.OOMs); n > 0 {
		m := look(s, t, uses, "oom", t.OOMs[n-1].Event)
		e.OOM = &m.Scene
		if !t.Recording.BlocksUnknown() {
			d.Moments = append(d.Moments, m)
		}
	}
	d.Moments = append(d.Moments, end)
	at := &d.Moments[max(len(d.Moments)-2, 0)] // the failure, or else the peak
	e.Levers = lever.Find(s, t, uses, at.State, at.Uses)
	if !t.Recording.BlocksUnknown() {
		e.Late = ghost.FindLate(s, t, &d.Steps)
	}
	group.Wait()
	ghost.CountSteps(e.Growth, &d.Steps)
	d.Growth, d.OneOffs = e.Growth, ghost.OneOffs(s, t, e.Growth, e.Late)
	if e.Release != nil {
		m := look(s, t, uses, "release", e.Release.Event)
		e.After = &m.Scene
	}
	d.WhatIf = <-replayed
	e.WhatIf = d.WhatIf
	if e.OOM != nil {
		e.Failure = oom.Explain(s, t.OOMs[len(t.OOMs)-1], &oom.Evidence{
			Timeline: t, State: e.OOM.State, Free: &e.OOM.Frag, Growth: e.Growth, WhatIf: e.WhatIf, Total: e.Total,
		})
		e.Failure.Plan.Name(attribution.Names(e.OOM.Live))
		if !t.Recording.BlocksUnknown() {
			d.OOM = e.Failure
		}
		if e.Failure.Cause == oom.Capacity && e.WhatIf != nil && e.WhatIf.Accuracy.Trusted {
			e.Rescue = rescue(ctx, s, &d, e.WhatIf)
		}
	}
	return d, e, ctx.Err()
}

// replay tries other allocator settings on the run, nil where that was not asked for or cannot be.
func replay(ctx context.Context, s *snapshot.Snapshot, t *timeline.Timeline, opt Options) *whatif.Answer {
	n := t.Trace.Len()
	if opt.NoReplay || n == 0 || s.Part != nil || n > maxReplayed && len(t.OOMs)+len(t.Retries) == 0 || s.Partial != nil {
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
	if err != nil || a.Climb(ctx, limitSteps/max(s.NumDevices(), 1)) != nil {
		return nil
	}
	return a
}

// rescue searches for changes of the program under which a run fits that ran out of memory, nil where none can be made.
func rescue(ctx context.Context, s *snapshot.Snapshot, d *Device, a *whatif.Answer) *finding.Rescue {
	in := &change.Input{Snapshot: s, Timeline: d.Timeline, Steps: &d.Steps, Uses: d.Categories, Program: a.Program(),
		Accuracy: &a.Accuracy}
	if in.Program.Capacity == 0 {
		return nil
	}
	sets := changeSteps / d.Timeline.Trace.Len()
	all := in.Candidates()
	if len(all) == 0 {
		return nil
	}
	if sets <= len(all) {
		return &finding.Rescue{LeftOut: true, Fit: []finding.Amended{}, Short: []finding.Amended{}}
	}
	found, err := change.Search(ctx, in, all, sets-len(all))
	if err != nil {
		return nil
	}
	return found.Evidence()
}

// changeSteps is how many events are replayed with changes of the program, in about a third of a second.
const changeSteps = 2_000_000

// limitSteps is how many requests and frees are replayed for devices of other sizes: about a tenth of a second.
const limitSteps = 3_000_000

// maxReplayed bounds the traces that are replayed under other settings although nothing went
// wrong: it takes about a second for a million events.
const maxReplayed = 2_000_000

// samples is n, or less of it for each of many devices.
func samples(s *snapshot.Snapshot, n int) int {
	const few = 8
	return max(n*few/max(s.NumDevices(), few), 1)
}

// useSamples is into how many columns categories over time are sorted.
const useSamples = 700

// freeSamples is at how many events the free memory is measured.
const freeSamples = 160

// maxIdle bounds the devices that are shown although they did nothing.
const maxIdle = 64

// devicesOf lists the ordinals that have segments or events, and those that the process could
// have used: device_traces has a list for each (snapshot/SPEC.md 2.1). A file of pinned host memory alone has none.
func devicesOf(s *snapshot.Snapshot, opt Options) []int {
	out := s.UsedDevices()
	pinned := s.HostEvents() > 0 || len(s.HostSegments) > 0
	if len(out) == 0 && pinned && opt.Readings == nil && opt.Live == nil && opt.Recorder == nil {
		return nil // nothing but zeros could be said
	}
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

// pinHost adds the pinned host memory and what there is to say of it: behind the finding on which the
// verdict rests, and before findings that matter less.
func (r *Result) pinHost() {
	m := host.BuildPinned(r.Snapshot)
	if m == nil {
		return
	}
	r.Pinned = m
	v := &r.Verdict
	at := 0
	if v.Lead() != nil {
		at = 1
	}
	for _, f := range verdict.JudgePinned(r.Snapshot, m) {
		for at < len(v.Findings) && (v.Findings[at].Severity != finding.Info || f.Severity == finding.Info) {
			at++
		}
		v.Findings = slices.Insert(v.Findings, at, f)
	}
	if v.Status == finding.NoData && len(r.Snapshot.UsedDevices()) == 0 && r.Snapshot.Partial == nil {
		v.Headline = fmt.Sprintf("Only pinned host memory was recorded, no GPU memory: %s in use of %s reserved at "+
			"the end.", units.Bytes(m.Final.Active), units.Bytes(m.Final.Reserved))
	}
}

// Result is everything that a report shows about one snapshot. Slices are in a fixed order,
// so that equal inputs give equal outputs.
type Result struct {
	Snapshot *snapshot.Snapshot
	Devices  []Device // by ordinal; also those that the process had and did not use
	Verdict  verdict.Verdict
	// Holders says which Python objects keep the memory at the end, nil without a recorder's
	// file that has a dump of them.
	Holders *holder.Result
	// Pinned is the pinned host memory, nil where none was recorded.
	Pinned  *host.Pinned
	Quality []Note
	// Source is that of Options.
	Source *source.Tree
}

// Device is the analysis of one device. Devices are never mixed.
type Device struct {
	Timeline *timeline.Timeline
	// Moments are the states that reports show: "peak" (highest active bytes, if there is a
	// trace), "oom" (the last out-of-memory event, if any) and "end", in this order.
	Moments    []Moment
	Before     attribution.Before // what was there before the trace
	Steps      steps.Result
	Phases     []phase.Phase   // parts of the program that it named, highest peaks first
	Growth     []ghost.Growth  // memory that loops add to and do not return
	OneOffs    []ghost.OneOff  // large survivors that do not grow
	Categories *category.Table // what each life is for
	OOM        *oom.Report     // the last request that failed, nil for none
	Account    *Account        // all memory of the device, nil without readings of it
	// WhatIf is what other allocator settings would have done, nil when nothing was replayed.
	WhatIf *whatif.Answer

	// Pictures and tables show these, and the verdict rests on none of them.
	Turnover Lazy[attribution.Turnover]   // what came and went
	Free     Lazy[[]fragmentation.Sample] // free memory over the trace
	Uses     Lazy[[]category.Sample]      // what the active memory is for, over the trace
}

// Lazy is a result that is worked out when it is first asked for, by whichever goroutine; nil has none.
type Lazy[T any] func() T

// Get gives the result, the zero value for none.
func (f Lazy[T]) Get() T {
	if f == nil {
		return *new(T)
	}
	return f()
}

// Main returns the device with the highest peak of reserved memory, of equal ones the first, nil without devices.
func (r *Result) Main() *Device {
	var best *Device
	for i := range r.Devices {
		if d := &r.Devices[i]; best == nil || timeline.ByPeak(d.Timeline, best.Timeline) < 0 {
			best = d
		}
	}
	return best
}

// Footprint is the live memory of a device at a moment, by its word; at footprint.Usual it does not fail.
func (r *Result) Footprint(d *Device, at string) (*footprint.Footprint, error) {
	return footprint.Take(&footprint.Subject{
		Name: r.Snapshot.Name, Snapshot: r.Snapshot, Timeline: d.Timeline, Uses: d.Categories, Steps: &d.Steps,
	}, at)
}

// Fullest returns at most n devices, by ordinal: first, unless it is nil, and those with the highest peaks of
// reserved memory.
func Fullest(devices []*Device, n int, first *Device) []*Device {
	out := slices.Clone(devices)
	sorting.Stable(out, func(a, b *Device) int {
		switch first {
		case a:
			return -1
		case b:
			return 1
		}
		return timeline.ByPeak(a.Timeline, b.Timeline)
	})
	out = out[:min(len(out), n)]
	sorting.Stable(out, func(a, b *Device) int { return cmp.Compare(a.Timeline.Device, b.Timeline.Device) })
	return out
}

const (
	// maxPictured is how many devices have pictures: more than those nobody looks through.
	maxPictured = 16
	// pictureShare is how much of the time for a file what is written of its devices may take, in percent, deviceTime
	// what is written of each takes, and pictureTime what the pictures of one take beside that.
	pictureShare = 40
	deviceTime   = 2 * time.Millisecond
	pictureTime  = 250 * time.Millisecond
)

// Pictured are the devices of which a report has pictures, by ordinal: those that did something, and of these the ones
// that reserved most, as many as the time for a file of this size allows.
func (r *Result) Pictured() []*Device {
	var out []*Device
	for i := range r.Devices {
		if t := r.Devices[i].Timeline; t.PeakReserved.Bytes > 0 || t.Trace.Len() > 0 {
			out = append(out, &r.Devices[i])
		}
	}
	n, time := 1, budget.Share(r.Snapshot.Bytes, pictureShare)
	time.Draw(len(r.Devices) * int(deviceTime/budget.StepTime))
	for time.Draw(int(pictureTime/budget.StepTime)) && n < maxPictured {
		n++
	}
	return Fullest(out, n, nil)
}

// Decisive is the moment of a device that matters, and how a sentence says it: the failure, the end when memory grows
// or nothing else is known, or else the peak. It is nil for a device that has none.
func (r *Result) Decisive(d *Device) (m *Moment, when string) {
	if m = d.Moment("oom"); m != nil {
		return m, "when it ran out of memory"
	}
	if top := r.Verdict.Lead(); top != nil && top.Status == finding.Ghost {
		return d.Moment("end"), "at the end"
	}
	if m = d.Moment("peak"); m != nil {
		return m, "at its peak"
	}
	return d.Moment("end"), "in the dumped state"
}

// Notes sorts Quality: what is wrong with the file, what it lacks, and what was verified.
func (r *Result) Notes() (problems, missing, fine []Note) {
	for _, n := range r.Quality {
		switch n.Level {
		case "problem":
			problems = append(problems, n)
		case "ok":
			fine = append(fine, n)
		default:
			missing = append(missing, n)
		}
	}
	return problems, missing, fine
}

// Moment returns the moment of that name, nil when the device has none.
func (d *Device) Moment(name string) *Moment {
	for i := range d.Moments {
		if d.Moments[i].Name == name && d.Moments[i].State != nil {
			return &d.Moments[i]
		}
	}
	return nil
}

// Moment is the state of a device right after one event.
type Moment struct {
	Name string // "peak", "oom", "end"
	verdict.Scene
	// Uses says what the active bytes are for, most bytes first; sums to State.Active.
	Uses []category.Sum
}

// NewMoment is what a state of a device shows, but for what its memory is for.
func NewMoment(s *snapshot.Snapshot, t *timeline.Timeline, name string, st *timeline.State) Moment {
	return Moment{Name: name, Scene: verdict.Scene{State: st, Live: attribution.Live(s, t, st),
		Frag: fragmentation.Measure(t, st)}}
}
