// Package verdict judges: it turns what the analyses found into findings, ranks them, and says in one line
// what they come to.
//
// A judgment first puts the figures that it rests on into the finding's evidence, and then makes the title,
// the reasons and the advice from that evidence alone. So each sentence is made in one place, and whoever
// needs a fact takes it from the evidence: nothing reads a sentence.
package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/phase"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Verdict is the outcome for one file.
type Verdict struct {
	Status   finding.Status    `json:"status"`
	Headline string            `json:"headline"`
	Findings []finding.Finding `json:"findings"` // most important first
	// Levers are what would lower the peak of the device that the verdict is about, largest first and each on its
	// own; only of a run with nothing wrong, and of one that needs more than there is.
	Levers []finding.Lever `json:"levers"`
	// Next is what to do where no finding leads and says it, else empty, with lines of Python if these help.
	Next string   `json:"next"`
	Fix  []string `json:"fix"`
}

// Lead is the finding that the verdict rests on, nil where none decided it.
func (v *Verdict) Lead() *finding.Finding {
	if len(v.Findings) == 0 || v.Findings[0].Status != v.Status {
		return nil
	}
	return &v.Findings[0]
}

// Facts is what is known about one device.
type Facts struct {
	Timeline *timeline.Timeline
	Peak     Scene
	End      Scene
	OOM      *Scene      // the last out-of-memory event, nil without one
	Failure  *oom.Report // of it
	Growth   []ghost.Growth
	Late     *ghost.Late    // nil when nothing is freed late
	WhatIf   *whatif.Answer // nil when nothing was replayed
	Release  *phase.Release // memory that was given up, nil for none
	After    *Scene         // right after it
	Levers   []finding.Lever
	Rescue   *finding.Rescue // of a failure for want of memory, nil where no changes of the program were tried
	Uses     *category.Table // what memory is for, nil unknown
	// Total is the memory of the device, and Free what the driver said was free at the end, in bytes;
	// 0 and -1 are unknown.
	Total, Free int64
}

// Scene is the memory of a device at one moment.
type Scene struct {
	State *timeline.State
	Frag  fragmentation.Report
	Live  []attribution.Group // active bytes by stack, largest first; sums to State.Active
}

// Judge turns what is known of all devices into ranked findings and one verdict. Seen is what the recorder
// saw in the process, nil for nothing.
func Judge(s *snapshot.Snapshot, devices []Facts, seen *holder.Result) Verdict {
	j := judge{s: s, seen: seen, findings: []finding.Finding{}}
	for i := range devices {
		e := &devices[i]
		j.inconsistent(e)
		j.growth(e)
		j.late(e)
		j.garbage(e)
		if e.OOM != nil {
			j.outOfMemory(e)
		} else {
			j.fragmented(e)
			j.cached(e)
			j.idling(e)
		}
		j.stays(e)
	}
	j.holders()
	j.views()
	j.imbalance(devices)
	finding.Sort(j.findings)
	v := j.verdict(devices)
	here := platform.Of(s.Writer.Backend)
	v.Headline = here.Say(v.Headline)
	for i := range v.Findings {
		named(&v.Findings[i], s.Writer.Backend)
	}
	for i := range v.Levers {
		v.Levers[i].Text = here.Say(v.Levers[i].Text)
	}
	return v
}

// verdict chooses the headline.
func (j *judge) verdict(devices []Facts) Verdict {
	s := j.s
	v := Verdict{Findings: j.findings, Levers: []finding.Lever{}}
	if len(v.Findings) > 0 {
		if f := v.Findings[0]; f.Severity != finding.Info || f.Status == finding.Cached && j.idle {
			v.Status, v.Headline = f.Status, f.Title
			if (v.Status == finding.Capacity || v.Status == finding.Cached) && s.Partial == nil {
				at := slices.IndexFunc(devices, func(e Facts) bool { return e.Timeline.Device == f.Device })
				v.Levers = append(v.Levers, j.levers(&devices[at])...)
			}
			return v
		}
	}
	top := fullest(devices)
	v.Status, v.Headline = nothing(s, devices, top)
	if v.Status == finding.Healthy {
		v.Levers = append(v.Levers, j.levers(top)...)
		v.Headline = cmp.Or(couldBe(v.Levers), v.Headline)
	}
	return v
}

// fullest is the device that reached most, nil without devices.
func fullest(devices []Facts) *Facts {
	var top *Facts
	for i := range devices {
		if e := &devices[i]; top == nil || timeline.ByPeak(e.Timeline, top.Timeline) < 0 {
			top = e
		}
	}
	return top
}

type judge struct {
	s        *snapshot.Snapshot
	seen     *holder.Result
	findings []finding.Finding
	reported map[leak]int // the findings on growth
	idle     bool         // a device keeps memory that next to nothing uses
}

// named puts the names of a kind of device in place of CUDA's.
func named(f *finding.Finding, backend string) {
	title := []string{f.Title}
	for _, sentences := range [][]string{title, f.Why, f.Next, f.Fix} {
		platform.Of(backend).Says(sentences...)
	}
	f.Title = title[0]
}

func (j *judge) add(f *finding.Finding) { j.findings = append(j.findings, *f) }

func (j *judge) site(id snapshot.StackID) string { return attribution.Site(j.s, id) }

// nothing is the verdict where no problem was found; most is the device that reached most.
func nothing(s *snapshot.Snapshot, devices []Facts, most *Facts) (finding.Status, string) {
	events, history := 0, false
	for i := range devices {
		t := devices[i].Timeline
		history = history || t.HasHistory()
		events += t.Trace.Len()
	}
	if most == nil || most.Timeline.PeakReserved.Bytes == 0 && events == 0 {
		return finding.NoData, "Nothing to judge: the file has no segments and no events."
	}
	top := most.Timeline
	rec, told := &top.Recording, top.Recording.Told()
	// Both are of one moment: more may have been reserved at another, when less was in use.
	active, reserved, end := told.Peak.Active.Of(top.PeakActive.Bytes), told.Peak.Reserved.Of(most.Peak.Frag.Reserved),
		units.Size(top.Final.Active)
	switch {
	case s.Partial != nil:
		return finding.NoData, fmt.Sprintf("No problem found in the readable part of the file: memory in use peaked "+
			"at %v (%v reserved).", active, reserved)
	case rec.BlocksUnknown():
		return finding.NoHistory, fmt.Sprintf("Leaks and peaks cannot be judged: the recording left out %v events "+
			"(skip_actions). %v live of %v reserved at the end.", rec.LeftOut(), end, units.Size(top.Final.Reserved))
	case s.Part != nil && !history:
		return finding.NoHistory, fmt.Sprintf("Only the final state of %v was recorded, no other memory of the process: "+
			"%v live of %v reserved.", s.Part.Pool, end, units.Size(top.Final.Reserved))
	case s.Part != nil:
		return finding.Healthy, fmt.Sprintf("No problem found in %v; the process's other memory is not in the file. "+
			"Memory in use peaked at %v (%v reserved).", s.Part.Pool, active, reserved)
	case !history && s.HostEvents() > 0:
		return finding.NoHistory, fmt.Sprintf("Only pinned host memory was recorded over time. Of the GPU's memory the "+
			"final state is known: %v live of %v reserved; its leaks and peaks cannot be judged.", end,
			units.Size(top.Final.Reserved))
	case !history:
		return finding.NoHistory, fmt.Sprintf("Only the final state was recorded: %v live of %v reserved. "+
			"Leaks and peaks cannot be judged without an event history.", end, units.Size(top.Final.Reserved))
	}
	if why := Blind(s); why != "" {
		if climbs(top) {
			return finding.NoData, fmt.Sprintf("Memory in use rises to %v (%v reserved); whether that is a leak cannot be "+
				"judged: %s.", active, reserved, why)
		}
		return finding.Healthy, fmt.Sprintf("No problem found in the totals: memory in use peaked at %v (%v reserved). "+
			"Leaks cannot be judged: %s.", active, reserved, why)
	}
	switch {
	case end < units.Size(top.PeakActive.Bytes)/10*9:
		return finding.Healthy, fmt.Sprintf("No problem found. Memory in use peaked at %v (%v reserved) and fell "+
			"back to %v.", active, reserved, end)
	}
	return finding.Healthy, fmt.Sprintf("No problem found. Memory in use peaked at %v (%v reserved); no loop keeps "+
		"accumulating memory.", active, reserved)
}

// inconsistent reports files whose parts contradict each other.
func (j *judge) inconsistent(e *Facts) {
	c := &e.Timeline.Checks
	if c.Inconsistent() == 0 && c.Residual == 0 {
		return
	}
	faults := c.Faults()
	f := &finding.Finding{
		ID: "inconsistent", Status: finding.Inconsistent, Severity: finding.Error, Confidence: finding.High,
		Device: e.Timeline.Device, Bytes: max(c.Residual, -c.Residual), Evidence: finding.Evidence{Faults: faults},
		Title: fmt.Sprintf("The file contradicts itself in %s: do not trust its figures.",
			units.Plural(faults.Places, "place")),
		Next: []string{"Record the snapshot again, and keep the file as torch wrote it: trimmed, filtered or " +
			"generated files look like this.",
			"Read all figures below as estimates."},
	}
	if faults.Places == 0 {
		f.Title = fmt.Sprintf("The replay ends %v off the recorded state: do not trust the figures.",
			units.Size(f.Bytes))
	}
	contradicts(f)
	if c.Residual != 0 {
		f.Because("the rebuilt final state differs from the recorded one by %v", units.Size(f.Bytes))
	}
	j.add(f)
}

// contradicts says in which ways a file contradicts itself.
func contradicts(f *finding.Finding) {
	v := f.Evidence.Faults
	v.Kinds = slices.DeleteFunc(v.Kinds, func(k finding.Fault) bool { return k.Count == 0 })
	for _, k := range v.Kinds {
		f.Because("%s %s", units.Count(k.Count), k.What)
	}
}
