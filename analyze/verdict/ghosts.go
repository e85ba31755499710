package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
)

// Ghosts is the outcome on one question: does something forgotten keep memory?
type Ghosts struct {
	Status   finding.Status // Ghost, Healthy for no ghost, or NoData where nothing can be said
	Headline string         // why, where there is none
	Trust    string         // how far it can be trusted
}

// Ghosts answers from what the recorder saw, nil for nothing, and else from the findings. Traced says that
// there is a trace to see growth in.
func (v *Verdict) Ghosts(seen *holder.Result, traced bool) Ghosts {
	if seen != nil {
		return ghostsSeen(seen)
	}
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Status == finding.Ghost {
			return Ghosts{finding.Ghost, f.Title, f.Trust()}
		}
	}
	if v.Status == finding.NoData || !traced {
		return Ghosts{finding.NoData, "Nothing can be said: there is no trace to see growth in, and no recorder's file.", ""}
	}
	return Ghosts{finding.Healthy, "no loop of the trace leaves more memory behind each time.", "from the snapshot alone"}
}

func ghostsSeen(r *holder.Result) Ghosts {
	var first *holder.Holder
	var kept units.Size
	n := 0
	for i := range r.Holders {
		if h := &r.Holders[i]; h.Standing == holder.Ghost {
			if first == nil {
				first = h
			}
			n++
			kept += units.Size(h.Bytes)
		}
	}
	switch {
	case first == nil && len(r.Unproven) > 0:
		return Ghosts{finding.Ghost, "Memory grows in the trace, but what was seen in the process does not name one holder of it.",
			"heuristic"}
	case first == nil:
		return Ghosts{finding.Healthy, "nothing that was seen to hold memory grows.", "from the trace and " + r.File}
	}
	g := Ghosts{Status: finding.Ghost, Trust: "seen in the process, and growing in the trace"}
	if first.GrownBlocks == 0 {
		g.Trust = "seen in the process, and more of it than in the dump before"
	}
	frees := "something else keeps it too."
	if first.Frees > 0 {
		frees = fmt.Sprintf("letting go of it frees %v.", units.Size(first.Frees))
	}
	g.Headline = fmt.Sprintf("%s keeps %v; %s", first.Reference, units.Size(first.Bytes), frees)
	if n > 1 {
		g.Headline += fmt.Sprintf(" %s in all keep %v.", units.Plural(n, "ghost"), kept)
	}
	return g
}
