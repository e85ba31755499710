package verdict

import (
	"fmt"

	"snapana/analyze/attribution"
	"snapana/analyze/ghost"
	"snapana/analyze/units"
)

// growth reports memory that loops leave behind.
func (j *judge) growth(e *Evidence) {
	end := e.Timeline.Final.Active
	if e.OOM != nil {
		end = e.OOM.State.Totals.Active
	}
	for i := range e.Growth {
		g := &e.Growth[i]
		f := Finding{
			ID: "growth", Status: Ghost, Severity: Warning, Device: e.Timeline.Device, Bytes: g.Bytes, Heuristic: true,
			Confidence: growthConfidence(g), Events: g.Events, Stack: attribution.Frames(j.s, g.Stacks[0]),
		}
		if g.Bytes < 1<<20 || g.Bytes < end/100 {
			f.Severity = Info
		}
		if e.OOM != nil && g.Bytes >= end/4 && f.Confidence != Low {
			f.Severity = Error
		}
		site := siteOr(j.s, g.Stacks[0])
		loop := j.frame(g.Loop)
		f.Title = fmt.Sprintf("Ghost tensors: %s more with every iteration of %s, never freed; most is allocated at %s.", units.Bytes(g.PerLap), loop, site)
		f.Why = append(f.Why, fmt.Sprintf("%s allocations (%s) from %s stay alive to the end of the trace; they came in %d iterations of the loop in %s.",
			units.Count(g.Count), units.Bytes(g.Bytes), plural(len(g.Stacks), "stack"), g.Laps, loop))
		if g.Regular {
			f.Why = append(f.Why, "Every iteration leaves about the same: a reference is kept each time.")
		}
		if g.Churn > 0.05 {
			f.Why = append(f.Why, fmt.Sprintf("Other memory of the same iterations is given back (%.0f%% of allocations are freed), so this is not a start-up phase.", 100*g.Churn))
		} else {
			f.Why = append(f.Why, "Nothing else is freed meanwhile, so a buffer that is being filled on purpose would look the same.")
		}
		if growsOnPurpose(g) {
			f.Why = append(f.Why, "A cache that grows on purpose, like the key-value cache of a generation in progress, would look the same.")
		}
		if end > 0 {
			f.Why = append(f.Why, fmt.Sprintf("It is %s of the memory in use (%s).", units.Percent(g.Bytes, end), units.Bytes(end)))
		}
		if g.InModule && len(g.Stacks) > 3 {
			f.Why = append(f.Why, "Activations of whole forward passes survive together: something keeps an output or a loss, and with it the autograd graph.")
			f.Next = append(f.Next, "Keep numbers, not tensors: losses.append(loss.item()), or outputs.append(out.detach().cpu()).",
				"Run evaluation under torch.no_grad() or torch.inference_mode(), so that no graph is built.")
		} else {
			f.Next = append(f.Next, "Find the list, dict, closure or hook that collects these tensors, and store .detach().cpu() or .item() instead, or clear it.",
				"If they are garbage in a reference cycle, break the cycle or call gc.collect() between iterations.")
		}
		j.add(f)
	}
}

// growsOnPurpose reports whether a cache could look the same: a few tensors from inside the
// model with each iteration, and no training.
func growsOnPurpose(g *ghost.Growth) bool { return g.InModule && !g.Trains && len(g.Stacks) <= 3 }

func growthConfidence(g *ghost.Growth) Confidence {
	switch {
	case g.Churn <= 0.05:
		return Low
	case growsOnPurpose(g):
		return Medium
	case g.Laps >= 6 && g.Regular:
		return High
	}
	return Medium
}
