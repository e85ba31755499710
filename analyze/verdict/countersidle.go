package verdict

import (
	"strings"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// fragmentation: requests filled the device up although much of what was reserved was never live at once.
func (j *Counters) fragmentation() {
	v, tries := j.unused(), j.NewRetries+j.NewOOMs
	v.Live = units.Size(j.Series.Highest(counters.Allocated, counters.AllocatedPeak))
	v.Reserved = units.Size(j.Series.Highest(counters.Reserved, counters.ReservedPeak))
	if tries == 0 || v.Live == 0 || v.Reserved == 0 || v.Live > v.Reserved/4*3 {
		return
	}
	idle := v.Reserved - v.Live
	f := &finding.Finding{ID: "fragmentation", Severity: finding.Warning, Confidence: finding.Medium,
		Bytes: int64(idle), Heuristic: true, Evidence: finding.Evidence{Unused: v, Incidents: &j.Incidents}}
	device := j.device()
	f.Say("%s filled up although at least %v of what PyTorch had reserved was unused.",
		strings.ToUpper(device[:1])+device[1:], idle)
	f.Because("It refused memory %s in these samples (%d out-of-memory errors), yet at most %v of the %v reserved was "+
		"ever live.", units.Times(tries), j.NewOOMs, v.Live, v.Reserved)
	f.Do("Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_HIP_ALLOC_CONF on ROCm). "+notAlways,
		"Record a snapshot: a report of it names the blocks that keep the segments.")
	if v.Split >= 0 {
		f.Because("In the last sample %v is free in pieces between live blocks (inactive split).", v.Split)
	}
	if j.PeakResets > 0 {
		f.Confidence = finding.Low
		f.Because("Peaks were reset between the samples, so a higher one may be missing.")
	}
	if j.NewOOMs > 0 {
		f.Severity = finding.Error
	}
	j.add(finding.Fragmentation, f)
}

// unused is what the last sample says of free memory, with -1 where it does not.
func (j *Counters) unused() *finding.Unused {
	of := func(name string) units.Size {
		if f := j.Series.Last.Get(name); f.Known() {
			return units.Size(f.Value)
		}
		return -1
	}
	return &finding.Unused{Reserved: of(counters.Reserved), Live: of(counters.Allocated), Split: of(counters.Split)}
}

// cached: what was live is gone, and PyTorch keeps the memory.
func (j *Counters) cached() {
	live, reserved := j.Trends.Of(counters.Allocated), j.Trends.Of(counters.Reserved)
	if live == nil || reserved == nil || j.Samples < 2 || live.Grows() || live.Last > reserved.Last/10 ||
		live.High < 4*live.Last || reserved.Last < reserved.High/2 || reserved.Last-live.Last < 64<<20 {
		return
	}
	f := &finding.Finding{ID: "cached", Severity: finding.Info, Confidence: finding.High,
		Bytes: reserved.Last - live.Last, Evidence: trends(j.Trends, live.Name, reserved.Name)}
	f.Say("PyTorch keeps %s on %s that no tensor uses: a cache, not a leak.", units.Bytes(f.Bytes), j.device())
	f.Because("Live memory fell from %s to %s; %s stays reserved for later requests.", units.Bytes(live.High),
		units.Bytes(live.Last), units.Bytes(reserved.Last))
	f.Do("Leave it: new tensors use it without asking the driver. If another process needs it, call empty_cache().")
	j.add(finding.Cached, f)
}

// drift: reserved memory grows while what is active does not.
func (j *Counters) drift() {
	t, reserved := j.Trends.Of(counters.Cached), j.Trends.Of(counters.Reserved)
	if !t.Grows() || t.Kept < 64<<20 || t.Kept < reserved.Last/20 || !reserved.Grows() {
		return // where reserved does not grow, live memory is given back
	}
	f := &finding.Finding{ID: "drift", Severity: finding.Warning, Confidence: finding.Low, Bytes: t.Kept,
		Heuristic: true, Evidence: trends(j.Trends, t.Name, counters.Split, j.Live)}
	f.Say("Reserved but unused memory of %s grows by %s.", j.device(), pace(t))
	f.Because("reserved - active rises from %s to %s (%s).", units.Bytes(t.First), units.Bytes(t.Last), byChance(t))
	f.Do("Requests of varying sizes cause this, such as batches of varying length: pad them to a few sizes.",
		tryExpandable)
	if s := j.Trends.Of(counters.Split); s.Grows() {
		f.Confidence = finding.Medium
		f.Because("The free pieces between live blocks (inactive split) grow too, to %s: this is fragmentation.",
			units.Bytes(s.Last))
	}
	if j.Trends.Of(j.Live).Grows() {
		f.Severity = finding.Info // what leaks also scatters
	}
	j.add(finding.Fragmentation, f)
}

// pending: blocks that the program has freed wait for another stream.
func (j *Counters) pending() {
	t := j.Trends.Of(counters.Pending)
	if t == nil || t.Last < 64<<20 || t.Last < j.Trends.Of(counters.Active).Last/10 {
		return
	}
	f := &finding.Finding{ID: "pending", Severity: finding.Info, Confidence: finding.High, Bytes: t.Last,
		Evidence: trends(j.Trends, t.Name)}
	f.Say("%s on %s is freed but still waits for another stream.", units.Bytes(t.Last), j.device())
	grows := ""
	if t.Grows() {
		grows = " They grow by " + pace(t) + "."
	}
	f.Because("active - allocated counts blocks with record_stream whose other stream is not done with them.%s", grows)
	f.Do("Let the side stream catch up (wait_stream, synchronize), or hand tensors over less often.")
	j.add(finding.Healthy, f)
}

// split says how much is free in pieces, where that is most of what is reserved.
func (j *Counters) split() {
	v := j.unused()
	if v.Reserved < 0 || v.Split < 256<<20 || v.Split < v.Reserved/2 {
		return
	}
	f := &finding.Finding{ID: "split", Severity: finding.Info, Confidence: finding.Low, Bytes: int64(v.Split),
		Heuristic: true, Evidence: finding.Evidence{Unused: v}}
	f.Say("%v of the %v reserved on %s is free in pieces between live blocks.", v.Split, v.Reserved, j.device())
	f.Because("inactive_split_bytes cannot go back to the device and serves only requests that fit its pieces. That " +
		"is common between steps; if a request fails, it is fragmentation.")
	f.Do("A report of a snapshot shows the pieces and the blocks between them.")
	j.add(finding.Healthy, f)
}
