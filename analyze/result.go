package analyze

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/category"
	"github.com/snapana/snapana/analyze/fragmentation"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/host"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/steps"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/verdict"
	"github.com/snapana/snapana/analyze/whatif"
	"github.com/snapana/snapana/snapshot"
)

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
}

// Books adds up the checks of all devices: how often the file contradicts itself, and by how
// many active bytes the rebuilt end differs from the recorded one.
func (r *Result) Books() (contradictions, residual int64) {
	for i := range r.Devices {
		c := &r.Devices[i].Timeline.Checks
		contradictions += c.Inconsistent()
		residual += max(c.Residual, -c.Residual)
	}
	return contradictions, residual
}

// Verified says whether a history that was rebuilt agrees with the file, by the sums of Books.
func Verified(contradictions, residual int64) string {
	if contradictions == 0 && residual == 0 {
		return "verified: the replay matches the snapshot byte for byte"
	}
	return fmt.Sprintf("not verified: the file contradicts itself %s, and the replay is off by %s",
		units.Plural(contradictions, "time"), units.Bytes(residual))
}

// Device is the analysis of one device. Devices are never mixed.
type Device struct {
	Timeline *timeline.Timeline
	// Moments are the states that reports show: "peak" (highest active bytes, if there is a
	// trace), "oom" (the last out-of-memory event, if any) and "end", in this order.
	Moments    []Moment
	Steps      steps.Result
	Turnover   attribution.Turnover   // what came and went
	Growth     []ghost.Growth         // memory that loops add to and do not return
	OneOffs    []ghost.OneOff         // large survivors that do not grow
	Free       []fragmentation.Sample // free memory over the trace
	Categories *category.Table        // what each life is for
	Uses       []category.Sample      // what the active memory is for, over the trace
	OOM        *oom.Report            // the last request that failed, nil for none
	Account    *Account               // all memory of the device, nil without readings of it
	// WhatIf is what other allocator settings would have done, nil when nothing was replayed.
	WhatIf *whatif.Answer
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
	Name  string // "peak", "oom", "end"
	State *timeline.State
	Live  []attribution.Group // active bytes by stack, largest first; sums to State.Active
	Frag  fragmentation.Report
	// Uses says what the active bytes are for, most bytes first; sums to State.Active.
	Uses []category.Sum
}

// NewMoment is what a state of a device shows, but for what its memory is for.
func NewMoment(s *snapshot.Snapshot, t *timeline.Timeline, name string, st *timeline.State) Moment {
	return Moment{Name: name, State: st, Live: attribution.Live(s, t, st), Frag: fragmentation.Measure(t, st)}
}

// Note is one line about the quality of the data.
type Note struct {
	Level string `json:"level"` // "ok", "missing" or "problem"
	Text  string `json:"text"`
	Count int64  `json:"count"` // occurrences, 0 where counting makes no sense
}
