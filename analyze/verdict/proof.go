package verdict

import (
	"fmt"

	"snapana/analyze/ghost"
	"snapana/analyze/ghost/holder"
	"snapana/analyze/units"
)

// prove puts what the recorder saw in the process into a finding on a growth: who holds the
// memory and how to let it go, or that it is no ghost.
func (f *Finding) prove(seen *holder.Result, g *ghost.Growth) {
	h, acquitted := seen.Of(g)
	switch {
	case h != nil:
		frees := "."
		if h.Frees > 0 {
			frees = fmt.Sprintf("; letting go of it frees %s.", units.Bytes(h.Frees))
		}
		f.Confidence, f.Heuristic, f.Fix = High, false, h.Fix()
		f.Why = append([]string{fmt.Sprintf("Seen in the process: %s keeps %s%s", h.Reference.String(), units.Bytes(h.Bytes), frees)}, f.Why...)
		switch g.Cause.Kind {
		case ghost.Graph, ghost.Retained, ghost.Loss:
		default:
			f.Next = nil // it need not be looked for
		}
		f.Next = append([]string{fmt.Sprintf("Clear or bound %s, or keep .item() or .detach().cpu() of the tensors there.", h.Reference.String())}, f.Next...)
	case acquitted:
		f.Severity, f.Confidence = Info, Low
		f.Why = append([]string{"What was seen in the process acquits it: what holds this memory had as much some steps before, so it is a buffer that was filled."}, f.Why...)
	}
}
