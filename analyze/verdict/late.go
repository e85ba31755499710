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
		Title: fmt.Sprintf("Freed late: memory of up to %d steps (%v) from %s waits and goes at once, as garbage in "+
			"reference cycles does.", v.Steps, v.Bytes, attribution.Placed(v.Site)),
		Next: []string{"Find what refers to itself: an object whose attribute leads back to it, a closure that holds " +
			"itself, an exception kept with its traceback. Use weakref, or set the attribute to None.",
			"gc.set_debug(gc.DEBUG_SAVEALL) and gc.garbage show the objects; gc.collect() at the end of each step bounds " +
				"what waits."},
		Fix: []string{"self.owner = weakref.ref(owner)  # break the circle", "gc.collect()  # or collect once in a while"},
	}
	if 10*v.Bytes >= v.Peak {
		f.Severity = finding.Warning
	}
	f.Because("%s allocations from %s outlived their steps, and were given back at %d moments, each time with those of "+
		"several steps.", units.Count(v.Blocks), units.Plural(v.Stacks, "stack"), v.Moments)
	f.Because("Those moments lie at different places of the program, where its own code has no reason to free them: " +
		"that is how Python's garbage collector frees objects that refer to each other.")
	f.Because("The most that went at once is %s of the peak of active memory (%v).", units.Percent(l.Bytes,
		int64(v.Peak)), v.Peak)
	j.add(f)
}
