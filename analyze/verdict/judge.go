package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

// Evidence is what is known about one device.
type Evidence struct {
	Timeline *timeline.Timeline
	Peak     Scene
	End      Scene
	OOM      *Scene      // the last out-of-memory event, nil without one
	Failure  *oom.Report // of it
	Growth   []ghost.Growth
	Late     *ghost.Late    // nil when nothing is freed late
	WhatIf   *whatif.Answer // nil when nothing was replayed
	// Total is the memory of the device, and Free what the driver said was free at the end, in bytes;
	// 0 and -1 are unknown.
	Total, Free int64
}

// Scene is the memory of a device at one moment.
type Scene struct {
	State *timeline.State
	Frag  fragmentation.Report
	Live  []attribution.Group
}

// Judge turns the evidence of all devices into ranked findings and one verdict. Seen is what the
// recorder saw in the process, nil for nothing.
func Judge(s *snapshot.Snapshot, devices []Evidence, seen *holder.Result) Verdict {
	j := judge{s: s, seen: seen}
	for i := range devices {
		e := &devices[i]
		j.inconsistent(e)
		j.growth(e)
		j.late(e)
		if e.OOM != nil {
			j.outOfMemory(e)
		} else {
			j.fragmented(e)
			j.cached(e)
		}
	}
	slices.SortStableFunc(j.findings, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(class(&a), class(&b)), cmp.Compare(b.Bytes, a.Bytes))
	})
	return j.verdict(devices)
}

// class puts doubts about the data before everything that was derived from it, and a failure that
// growth explains before the growth.
func class(f *finding.Finding) int {
	switch {
	case f.Status == finding.Inconsistent:
		return 0
	case f.ID == "oom" && f.Status == finding.Ghost:
		return 1
	}
	return 2
}

type judge struct {
	s        *snapshot.Snapshot
	seen     *holder.Result
	findings []finding.Finding
}

func (j *judge) add(f finding.Finding) { j.findings = append(j.findings, f) }

func (j *judge) verdict(devices []Evidence) Verdict {
	v := Verdict{Findings: j.findings}
	if v.Findings == nil {
		v.Findings = []finding.Finding{}
	}
	if len(v.Findings) > 0 {
		if f := v.Findings[0]; f.Severity != finding.Info || f.Status == finding.Cached {
			v.Status, v.Headline = f.Status, f.Title
			return v
		}
	}
	var top *timeline.Timeline // the device that reached most
	events := 0
	for i := range devices {
		t := devices[i].Timeline
		if top == nil || t.PeakReserved.Bytes > top.PeakReserved.Bytes {
			top = t
		}
		events += t.Trace.Len()
	}
	switch {
	case top == nil || top.PeakReserved.Bytes == 0 && events == 0:
		v.Status, v.Headline = finding.NoData, "Nothing to judge: the file holds no segments and no events."
	case j.s.Partial != nil:
		v.Status, v.Headline = finding.NoData, fmt.Sprintf("Nothing to accuse in the part of the file that could be read: %s active of %s reserved at its peak.",
			units.Bytes(top.PeakActive.Bytes), units.Bytes(top.PeakReserved.Bytes))
	case events < 2:
		v.Status, v.Headline = finding.Healthy, fmt.Sprintf("Nothing to accuse in the state: %s active of %s reserved. Without a trace, growth cannot be judged.",
			units.Bytes(top.Final.Active), units.Bytes(top.Final.Reserved))
	case top.Final.Active < top.PeakActive.Bytes/10*9:
		v.Status, v.Headline = finding.Healthy, fmt.Sprintf("Nothing to accuse: active memory peaks at %s (%s reserved) and comes back to %s.",
			units.Bytes(top.PeakActive.Bytes), units.Bytes(top.PeakReserved.Bytes), units.Bytes(top.Final.Active))
	default:
		v.Status, v.Headline = finding.Healthy, fmt.Sprintf("Nothing to accuse: active memory peaks at %s (%s reserved); no loop was seen to keep more and more.",
			units.Bytes(top.PeakActive.Bytes), units.Bytes(top.PeakReserved.Bytes))
	}
	return v
}
