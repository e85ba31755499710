package ranks

import (
	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
)

// Rank is what is kept of one snapshot. Sizes are bytes.
type Rank struct {
	File     string // as the caller names it
	Number   int    // the rank, -1 when the names of the files do not tell
	Fault    string // why the file could not be read; then nothing below is known
	Status   finding.Status
	Headline string
	Cause    string // what verdicts of one status must share to be the same: the finding, and where
	Device   int    // the one with the highest peak of reserved memory, -1 for none
	Reserved int64  // peaks of that device
	Active   int64
	End      int64 // active bytes at the end
	Failure  *Failure
	// Over is how far the active peak lies above the median of all ranks, negative below it.
	Over int64

	sites map[string]int64 // active bytes at the peak, by where they were allocated
}

// Failure is the last request of a rank that failed.
type Failure struct {
	Event     int
	Time      int64 // microseconds since 1970 by the clock of the rank's machine, 0 unknown
	Requested int64 // rounded
	Site      string
}

// Unread stands for a file that could not be read.
func Unread(file string, err error) Rank {
	return Rank{File: file, Number: -1, Device: -1, Fault: err.Error()}
}

// Reduce keeps of an analyzed snapshot what Compare needs.
func Reduce(file string, r *analyze.Result) Rank {
	k := Rank{File: file, Number: -1, Device: -1, Status: r.Verdict.Status, Headline: r.Verdict.Headline}
	if f := r.Verdict.Lead(); f != nil {
		k.Cause = f.ID + f.Cause
		for _, frame := range f.Stack {
			k.Cause += "\n" + frame
		}
	}
	var d *analyze.Device
	for i := range r.Devices {
		if d == nil || r.Devices[i].Timeline.PeakReserved.Bytes > d.Timeline.PeakReserved.Bytes {
			d = &r.Devices[i]
		}
	}
	if d == nil {
		return k
	}
	t := d.Timeline
	k.Device, k.Reserved, k.Active, k.End = t.Device, t.PeakReserved.Bytes, t.PeakActive.Bytes, t.Final.Active
	m := &d.Moments[len(d.Moments)-1]
	if d.Moments[0].Name == "peak" {
		m = &d.Moments[0]
	}
	k.sites = make(map[string]int64)
	for i := range m.Live {
		if s := attribution.Place(r.Snapshot, m.Live[i].Stack); len(k.sites) < maxSites || k.sites[s] > 0 {
			k.sites[s] += m.Live[i].Rounded
		}
	}
	if n := len(t.OOMs); n > 0 {
		last := t.OOMs[n-1]
		k.Failure = &Failure{Event: last.Event, Requested: last.Requested,
			Site: attribution.Site(r.Snapshot, last.Stack)}
		if last.Event >= 0 && last.Event < t.Trace.Len() {
			k.Failure.Time = t.Trace.At(last.Event).Time
		}
	}
	return k
}

// maxSites bounds the places that are kept of a rank, those with the most bytes.
const maxSites = 256
