package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/counters"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// pinned judges host_memory_stats: the bytes tell that pinned memory grows, the number of blocks in use tells why.
// The recorder's samples lack that number, and are judged with the process (JudgeHost).
func (j *Counters) pinned() {
	f := &finding.Finding{ID: "host-pinned", Severity: finding.Warning, Confidence: finding.Medium, Heuristic: true,
		Status: finding.Host, Device: -1, Events: []int{}, Evidence: trends(j.Trends, counters.Pinned, counters.PinnedUses)}
	t, uses := j.Trends.Of(counters.Pinned), j.Trends.Of(counters.PinnedUses)
	if !t.Grows() || uses == nil {
		return
	}
	f.Bytes = t.Kept
	if t.Kept < 4<<20 || t.Kept < t.Last/100 {
		f.Severity = finding.Info // too little to matter in this run
	}
	f.Say("Pinned host memory grows by %s.", pace(t))
	rises(f, "Pinned memory rises", t)
	if uses.Grows() {
		before, freed := j.Series.First.Get(counters.PinnedFreed), j.Series.Last.Get(counters.PinnedFreed)
		switch {
		case before.Known() && freed == before:
			f.Confidence = finding.Low
			f.Because(likeFill)
		case t.P <= counters.ChanceLate && t.Windows >= 6:
			f.Confidence = finding.High
		}
		f.Because("The number of blocks in use rises too, from %s to %s: something keeps them.", units.Count(uses.First),
			units.Count(uses.Last))
		f.Do("Find what keeps these tensors: batches after pin_memory=True or .pin_memory(), results of " +
			".to(\"cpu\", non_blocking=True).")
	} else {
		f.Because("The number of blocks in use does not rise (%s at the end): PyTorch pins each new size anew, rounded up "+
			"to a power of two, and keeps freed blocks.", units.Count(uses.Last))
		f.Do("Keep the sizes of batches and buffers alike, or reuse one pinned buffer. torch._C._host_emptyCache() " +
			"returns what is free (torch 2.5 or later).")
	}
	f.Do("Record a snapshot with record_pinned_host_memory=True (torch 2.14 or later): a report of it names the stacks " +
		"that pin.")
	j.Findings = append(j.Findings, *f)
}

// onlyPinned says what samples without a counter of a GPU come to.
func (j *Counters) onlyPinned() {
	t := j.Trends.Of(counters.Pinned)
	switch {
	case len(j.Findings) > 0 && j.Findings[0].Severity != finding.Info:
		j.Status, j.Headline = finding.Growing, j.Findings[0].Title
	case t.Shape == counters.Short:
		j.Headline = fmt.Sprintf("Too few samples of pinned host memory to see a trend: %s.",
			units.Plural(j.Series.Samples, "sample"))
	default:
		j.Status = finding.Flat
		j.Headline = fmt.Sprintf("Pinned host memory does not grow: %s at the end. No GPU memory was sampled.",
			units.Bytes(t.Last))
	}
}
