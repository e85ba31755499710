package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
)

// small is below what a growth is called small: it will not fill the device soon.
const small = 1 << 20

// mostPaces bounds the paces of a growth that are listed.
const mostPaces = 4

// growth reports memory that loops leave behind.
func (j *judge) growth(e *Evidence) {
	end := e.Timeline.Final.Active
	if e.OOM != nil {
		end = e.OOM.State.Totals.Active
	}
	for i := range e.Growth {
		for _, share := range j.seen.Of(&e.Growth[i]) {
			if share.Holder != nil && share.Holder.Filling() {
				j.filling(e, &share)
				continue
			}
			j.grows(e, &share, end)
		}
	}
}

// grows reports a growth, or the share of one that a holder has. End is the memory in use.
func (j *judge) grows(e *Evidence, share *holder.Share, end int64) {
	g := share.Growth
	f := finding.Finding{
		ID: "growth", Status: finding.Ghost, Severity: finding.Warning, Device: e.Timeline.Device, Bytes: g.Bytes, Heuristic: true,
		Confidence: growthConfidence(g), Events: g.Events, Stack: attribution.Frames(j.s, g.Stacks[0]),
		Cause: string(g.Cause.Kind), Fix: g.Cause.Fix,
	}
	few := g.Bytes < small || g.Bytes < end/100
	if few && f.Confidence == finding.Low {
		f.Severity = finding.Info
	}
	if e.OOM != nil && g.Bytes >= end/4 && f.Confidence != finding.Low {
		f.Severity = finding.Error
	}
	site := attribution.Place(j.s, g.Stacks[0])
	loop := j.frame(g.Loop)
	what, freed := "Ghost tensors", "never freed"
	if g.Early() || share.Holder == nil && (g.LikeUse() || g.LikeFill()) {
		what, freed = "Ghost tensors, or a buffer that is being filled", "none freed so far"
	}
	when := "with every iteration of"
	if g.Every > 1 {
		when = fmt.Sprintf("about every %d steps in", g.Every)
	}
	f.Title = fmt.Sprintf("%s: %s more %s %s, %s; most is allocated at %s.", what, units.Bytes(g.PerLap), when, loop, freed, site)
	f.Why = append(f.Why, fmt.Sprintf("%s allocations (%s) from %s stay alive to %s; they came in %d iterations of the loop in %s.",
		units.Count(g.Count), units.Bytes(g.Bytes), units.Plural(len(g.Stacks), "stack"), horizon(e, g), g.Laps, loop))
	if s := g.Paces; len(s) > 1 {
		line := fmt.Sprintf("It grows at %d paces, which may have a holder each: %s in each of %d iterations (%s)", len(s), units.Bytes(s[0].PerLap), s[0].Laps, attribution.Place(j.s, s[0].Stack))
		for i := range s[1:min(len(s), mostPaces)] {
			line += fmt.Sprintf(", %s in only %d of them (%s)", units.Bytes(s[i+1].PerLap), s[i+1].Laps, attribution.Place(j.s, s[i+1].Stack))
		}
		f.Why = append(f.Why, line+".")
	}
	f.Why = append(f.Why, g.Cause.Why...)
	if g.Regular {
		f.Why = append(f.Why, "Every iteration leaves about the same: a reference is kept each time.")
	}
	if g.Over {
		f.Why = append(f.Why, "The loop ended before the trace did, and what it left stayed.")
	}
	if !g.LikeFill() {
		f.Why = append(f.Why, fmt.Sprintf("Other memory of the same iterations is given back (%.0f%% of allocations are freed), so this is not a start-up phase.", 100*g.FreedShare))
	} else {
		f.Why = append(f.Why, "Nothing else is freed meanwhile, so a buffer that is being filled on purpose would look the same.")
	}
	if g.LikeUse() && !g.LikeFill() {
		f.Why = append(f.Why, fmt.Sprintf("In %d iterations, a buffer or a cache that is not full, or results that are used after the loop, would look the same.", g.Laps))
	}
	if g.LikeCache() {
		f.Why = append(f.Why, "A cache that grows on purpose, like the key-value cache of a generation in progress, would look the same.")
	}
	if end > 0 {
		share := fmt.Sprintf("It is %s of the memory in use (%s).", units.Percent(g.Bytes, end), units.Bytes(end))
		if few {
			share = fmt.Sprintf("So far it is only %s of the memory in use (%s): small, but it does not stop.", units.Percent(g.Bytes, end), units.Bytes(end))
		}
		f.Why = append(f.Why, share)
	}
	f.Why = append(f.Why, projection(e, g))
	f.Why = append(f.Why, fmt.Sprintf("Its level rises by %s an iteration (Theil-Sen slope); without a trend it would rise so with a probability of %s (Mann-Kendall).",
		units.Bytes(int64(g.Slope)), chance(g.Chance)))
	if g.OlderCount > 0 {
		f.Why = append(f.Why, fmt.Sprintf("From the same stacks, %s blocks (%s) are older than the trace.", units.Count(g.OlderCount), units.Bytes(g.OlderBytes)))
	}
	f.Next = nextFor(g)
	prove(&f, share)
	j.add(f)
}

// horizon names the moment up to which survivors were counted.
func horizon(e *Evidence, g *ghost.Growth) string {
	if g.Horizon < e.Timeline.Trace.Len()-1 {
		return "the out-of-memory event"
	}
	return "the end of the trace"
}

func chance(p float64) string {
	if p < 0.001 {
		return "less than 0.001"
	}
	return fmt.Sprintf("%.2g", p)
}

func nextFor(g *ghost.Growth) []string {
	switch g.Cause.Kind {
	case ghost.Graph:
		return []string{"Keep numbers, not tensors: losses.append(loss.item()), or outputs.append(out.detach().cpu()).",
			"Run evaluation under torch.no_grad() or torch.inference_mode(), so that no graph is built."}
	case ghost.Retained:
		return []string{"Call backward() without retain_graph=True, and detach() whatever goes from one step into the next.",
			"Keep numbers, not tensors: losses.append(loss.item())."}
	case ghost.Loss:
		return []string{"Keep numbers, not tensors: losses.append(loss.item())."}
	case ghost.Captured:
		return []string{"Look at forward hooks, closures and attributes of modules that collect this tensor; replace or clear what they hold, and remove hooks that have served."}
	}
	return []string{"Find the list, dict, closure or hook that collects these tensors, and store .detach().cpu() or .item() instead, or clear it.",
		"If they are garbage in a reference cycle, break the cycle or call gc.collect() between iterations."}
}

// projection says when the device is full, if it goes on like this.
func projection(e *Evidence, g *ghost.Growth) string {
	t := e.Timeline
	perLap := max(g.PerLap, 1)
	if n := len(t.OOMs); n > 0 && t.OOMs[n-1].DeviceFree >= 0 {
		o := &t.OOMs[n-1]
		if g.Horizon == o.Event && g.Horizon < t.Trace.Len()-1 {
			return "The device did run out of memory."
		}
		capacity := o.After.Reserved + o.DeviceFree
		laps := max(capacity-t.PeakActive.Bytes, 0) / perLap
		return fmt.Sprintf("The device lets this process reserve %s: at this rate it is full after %s more iterations%s.", units.Bytes(capacity), units.Count(laps), inTime(g, laps))
	}
	if e.Free >= 0 {
		laps := max(t.Final.Reserved+e.Free-t.PeakActive.Bytes, 0) / perLap
		return fmt.Sprintf("At the end %s of the device was free: at this rate it is full after %s more iterations%s.", units.Bytes(e.Free), units.Count(laps), inTime(g, laps))
	}
	if e.Total > t.PeakActive.Bytes {
		laps := (e.Total - t.PeakActive.Bytes) / perLap
		return fmt.Sprintf("The device has %s: at this rate it is full after %s more iterations%s, or earlier where others use it too.", units.Bytes(e.Total), units.Count(laps), inTime(g, laps))
	}
	const step = 1 << 30
	laps := (step + perLap - 1) / perLap
	return fmt.Sprintf("How large the device is, the file does not say; 1 GiB more takes %s iterations%s.", units.Count(laps), inTime(g, laps))
}

// inTime is how long iterations take, "" when the trace has no times.
func inTime(g *ghost.Growth, laps int64) string {
	if g.LapTime <= 0 || laps > 1<<62/g.LapTime {
		return ""
	}
	return ", about " + units.Micros(laps*g.LapTime)
}

func growthConfidence(g *ghost.Growth) finding.Confidence {
	switch {
	case g.LikeFill(), g.Early():
		return finding.Low
	case g.LikeCache(), g.LikeUse():
		return finding.Medium
	case g.Laps >= 6 && g.Regular && g.Chance < 0.01:
		return finding.High
	}
	return finding.Medium
}

// late reports memory that waits for Python's garbage collector.
func (j *judge) late(e *Evidence) {
	l := e.Late
	if l == nil || 100*l.Bytes < e.Timeline.PeakActive.Bytes {
		return
	}
	f := finding.Finding{
		ID: "late", Status: finding.Ghost, Severity: finding.Info, Confidence: finding.Medium, Device: e.Timeline.Device, Bytes: l.Bytes, Heuristic: true,
		Events: l.Events, Stack: attribution.Frames(j.s, l.Stacks[0]), Cause: "cycle",
		Fix: []string{"self.owner = weakref.ref(owner)  # break the circle", "gc.collect()  # or collect once in a while"},
	}
	if 10*l.Bytes >= e.Timeline.PeakActive.Bytes {
		f.Severity = finding.Warning
	}
	f.Title = fmt.Sprintf("Freed late: memory of up to %d steps (%s) from %s waits and goes at once, as garbage in reference cycles does.", l.Steps, units.Bytes(l.Bytes), attribution.Place(j.s, l.Stacks[0]))
	f.Why = []string{
		fmt.Sprintf("%s allocations from %s outlived their steps, and were given back at %d moments, each time with those of several steps.", units.Count(l.Count), units.Plural(len(l.Stacks), "stack"), l.Times),
		"Those moments lie at different places of the program, where its own code has no reason to free them: that is how Python's garbage collector frees objects that refer to each other.",
		fmt.Sprintf("The most that went at once is %s of the peak of active memory (%s).", units.Percent(l.Bytes, e.Timeline.PeakActive.Bytes), units.Bytes(e.Timeline.PeakActive.Bytes)),
	}
	f.Next = []string{"Find what refers to itself: an object whose attribute leads back to it, a closure that holds itself, an exception kept with its traceback. Use weakref, or set the attribute to None.",
		"gc.set_debug(gc.DEBUG_SAVEALL) and gc.garbage show the objects; gc.collect() at the end of each step bounds what waits."}
	j.add(f)
}
