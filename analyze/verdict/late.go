package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// late reports memory that waits for Python's garbage collector.
func (j *judge) late(e *Facts) {
	l := e.Late
	if l == nil || 100*l.Bytes < e.Timeline.PeakActive.Bytes {
		return
	}
	v := &finding.Late{Steps: l.Steps, Bytes: units.Size(l.Bytes), Peak: units.Size(e.Timeline.PeakActive.Bytes),
		Blocks: l.Count, Stacks: len(l.Stacks), Moments: l.Times, Site: j.site(l.Stacks[0])}
	f := &finding.Finding{
		ID: "late", Status: finding.Ghost, Severity: finding.Info, Confidence: finding.Medium, Heuristic: true,
		Device: e.Timeline.Device, Bytes: l.Bytes, Events: l.Events, Stack: attribution.Frames(j.s, l.Stacks[0]),
		Cause: "cycle", Evidence: finding.Evidence{Late: v},
		Title: fmt.Sprintf("Freed in bursts: memory of up to %d steps (%v) from %s piles up until the garbage "+
			"collector runs (reference cycles).", v.Steps, v.Bytes, attribution.Placed(v.Site)),
		Next: []string{"Find the cycle: an object whose attribute leads back to it, a closure that refers to itself, " +
			"an exception kept with its traceback. Use weakref, or set the attribute to None.",
			"gc.set_debug(gc.DEBUG_SAVEALL) and gc.garbage show the objects; gc.collect() at the end of each step " +
				"limits the pile-up."},
		Fix: []string{"self.owner = weakref.ref(owner)  # break the cycle", "gc.collect()  # or collect now and then"},
	}
	if 10*v.Bytes >= v.Peak {
		f.Severity = finding.Warning
	}
	f.Because("%s from %s outlived their steps and were freed at %d moments, each time together with those of "+
		"several steps.", units.Plural(v.Blocks, "block"), units.Plural(v.Stacks, "stack"), v.Moments)
	f.Because("At those moments the program was at different places, none of which has a reason to free them: this " +
		"is how Python's garbage collector frees reference cycles.")
	f.Because("The largest burst is %s of the peak of memory in use (%v).", units.Percent(l.Bytes, int64(v.Peak)),
		v.Peak)
	j.add(f)
}
