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
		return Ghosts{finding.NoData, "Leaks cannot be judged: there is no event history and no recorder file.", ""}
	}
	return Ghosts{finding.Healthy, "no loop leaves extra memory behind.", "from the snapshot alone"}
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
		return Ghosts{finding.Ghost, "Memory grows in the trace, but no single holder of it was seen in the process.",
			"heuristic"}
	case first == nil:
		return Ghosts{finding.Healthy, "no holder seen in the process grows.", "from the trace and " + r.File}
	}
	g := Ghosts{Status: finding.Ghost, Trust: "seen in the process, and growing in the trace"}
	if first.GrownBlocks == 0 {
		g.Trust = "seen in the process, and larger than in the earlier dump"
	}
	frees := "something else holds it too."
	if first.Frees > 0 {
		frees = fmt.Sprintf("releasing it frees %v.", units.Size(first.Frees))
	}
	g.Headline = fmt.Sprintf("%s holds %v; %s", first.Reference, units.Size(first.Bytes), frees)
	if n > 1 {
		g.Headline += fmt.Sprintf(" In total %s hold %v.", units.Plural(n, "ghost"), kept)
	}
	return g
}
