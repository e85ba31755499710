package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/remedy"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// small is below what a growth is called small: it will not fill the device soon.
const small = 1 << 20

// tiny is a number for each iteration, as programs keep on purpose: the allocator's smallest block. It accuses nobody
// unless its holder is known, it is a loss that a backward pass used, which may have its graph's objects behind it, or
// there are many.
const (
	tiny     = 512
	manyTiny = 100
)

// Reasons that growths in snapshots, in counters and of pinned memory share.
const (
	regular  = "Each iteration leaves about the same amount, so one reference is retained each time."
	likeFill = "Nothing else is freed meanwhile, so a buffer that is filled on purpose would look the same."
)

// mostPaces bounds the paces of a growth that are listed.
const mostPaces = 4

// growth reports memory that loops leave behind.
func (j *judge) growth(e *Facts) {
	for i := range e.Growth {
		for _, share := range j.seen.Of(&e.Growth[i]) {
			index := i
			if share.Growth != &e.Growth[i] {
				index = -1
			}
			if j.elsewhere(e, &share) {
				continue
			}
			if share.Holder != nil && share.Holder.Filling() {
				j.filling(e, index, &share)
			} else {
				j.grows(e, index, &share)
			}
		}
	}
}

// elsewhere reports whether a growth was reported of another device: one loop that leaves memory on several, by the same
// line of the program and with the same holder, is one cause. It adds what is on this device.
func (j *judge) elsewhere(e *Facts, share *holder.Share) bool {
	key := leak{frames.Function(j.s, share.Loop), attribution.Site(j.s, share.Stack), share.Cause.Kind, share.Holder}
	at, again := j.reported[key]
	if !again {
		if j.reported == nil {
			j.reported = map[leak]int{}
		}
		j.reported[key] = len(j.findings)
		return false
	}
	f := &j.findings[at]
	if f.Device == e.Timeline.Device {
		return false
	}
	f.Because("GPU %d: the same, %v in %s.", e.Timeline.Device, units.Size(share.Bytes), units.Plural(share.Count, "block"))
	f.Bytes += share.Bytes
	return true
}

// leak is what makes growths on several devices one.
type leak struct {
	loop, site string
	kind       ghost.Kind
	holder     *holder.Holder
}

// grows reports a growth, or the share of one that a holder has.
func (j *judge) grows(e *Facts, index int, share *holder.Share) {
	g := share.Growth
	v := j.growthEvidence(e, index, g)
	f := &finding.Finding{
		ID: "growth", Status: finding.Ghost, Severity: finding.Warning, Confidence: growthConfidence(v),
		Heuristic: true, Device: e.Timeline.Device, Bytes: g.Bytes, Events: g.Events, Stack: attribution.Frames(j.s,
			g.Stack), Cause: string(g.Cause.Kind), Evidence: finding.Evidence{Growth: v},
	}
	var w forgotten
	graphless := share.Holder != nil && share.Holder.Graph == 0 &&
		(g.Cause.Kind == ghost.Graph || g.Cause.Kind == ghost.Retained)
	if share.Holder != nil {
		f.Evidence.Holder = holderEvidence(share.Holder)
		if graphless && f.Confidence == finding.High {
			f.Confidence = finding.Medium // that of the snapshot alone, which took it for a graph
		}
		w = forget(f.Evidence.Holder, v, f.Confidence)
		f.Confidence = w.confidence
	}
	number := share.Holder == nil && v.PerUnit <= tiny && v.PerUnit*units.Size(v.Iterations) < v.InUse/1000
	if number {
		f.Confidence = finding.Low
	}
	few := v.Bytes < small || v.Bytes < v.InUse/100
	switch {
	case number && (v.Used || v.Iterations >= manyTiny):
	// Models are few and large: a loop that keeps those of before has no more laps than that.
	case w.note && g.Cause.Kind != ghost.Models, number,
		few && (v.Like.Early || v.Like.Fill || v.Over) && f.Confidence == finding.Low:
		f.Severity = finding.Info
	case e.OOM != nil && v.Bytes >= v.InUse/4 && f.Confidence != finding.Low:
		f.Severity = finding.Error
	}
	what, freed, when := "Leak", "", "per iteration"
	possible := v.Like.Use || v.Like.Fill
	if share.Holder != nil {
		possible = f.Confidence == finding.Low || f.Confidence == finding.Medium && (v.Like.Early || w.next != "")
	}
	if possible {
		what, freed = "Possible leak, or a buffer still filling", ", nothing freed so far"
	}
	if v.Like.Pending && share.Holder == nil {
		what = "Possible leak, or a graph that waits for its backward pass"
	}
	if number {
		what, freed = "Small leak", fmt.Sprintf(" (%v in 1,000 iterations)", units.Size(1000*v.Slope))
	}
	if n := math.Round(float64(v.PerUnit) / v.Slope); v.Every > 1 {
		when = fmt.Sprintf("about every %d steps", v.Every)
	} else if v.Slope > 0 && n > 1 {
		when = fmt.Sprintf("about every %.0f iterations", n)
	}
	switch {
	case g.Cause.Kind == ghost.Models:
		if share.Holder == nil {
			what = "Possible leak, or models kept on purpose"
		}
		f.Say("%s: %s leaves a model or an optimizer behind %s, %v each%s; most of it %s.", what, v.Call, when, v.PerUnit,
			freed, attribution.Allocated(v.Site))
	case g.Cause.Kind == ghost.Rebuilt:
		f.Say("%s: %s makes one tensor anew, %v larger %s (%v now); it %s.", strings.Replace(what, "a buffer", "one", 1),
			v.Call, v.PerUnit, when, v.Bytes, attribution.Allocated(v.Site))
	default:
		f.Say("%s: %s retains %v more %s%s; most of it %s.", what, v.Call, v.PerUnit, when, freed,
			attribution.Allocated(v.Site))
	}
	kind := g.Cause
	if graphless {
		kind = ghost.Cause{Kind: ghost.Object, Hints: kind.Hints}
		f.Cause = string(kind.Kind)
	}
	probably := causeOf(&kind)
	f.Fix = remedy.Lines(probably.fix...)
	switch h := share.Holder; {
	case h != nil:
		f.Fix = h.Fix()
		held(f, &w)
		if !probably.program {
			probably.next = nil // it need not be looked for
		}
	case share.Acquitted:
		f.Severity, f.Confidence = finding.Info, finding.Low
		f.Because("Not a leak, as seen in the process: what holds this memory held as much some steps earlier, so it " +
			"is a full buffer.")
	}
	if v.Spent {
		probably.why = append(probably.why, "None of them was trained again: their gradients and optimizer state are as they "+
			"were left, so that at most their parameters are needed.")
	}
	pattern(f, probably.why)
	if number {
		f.Because("In bytes it is harmless. A loss or a metric that was not detached keeps the objects of its graph as " +
			"well, in host memory.")
	}
	outlook(f, few)
	if possible && share.Holder == nil && g.Cause.Kind != ghost.Models {
		f.Do(fmt.Sprintf("To tell which: a buffer has a bound (maxlen, capacity), above what %d iterations put into it, and "+
			"results are read after the loop. Anything else is a leak; the Python recorder names what keeps it.",
			v.Iterations+v.OlderLaps))
	}
	f.Next = append(f.Next, probably.next...)
	j.add(f)
}

func (j *judge) growthEvidence(e *Facts, index int, g *ghost.Growth) *finding.Growth {
	v := grown(j.s, index, g)
	v.InUse, v.Full, v.Released = units.Size(e.Timeline.Final.Active), full(e, g), g.Released
	v.UntilOOM = g.Horizon < e.Timeline.Trace.Len()-1 && !g.Released
	switch {
	case e.OOM != nil:
		v.InUse = units.Size(e.OOM.State.Totals.Active)
	case g.Released:
		v.InUse = units.Size(e.Timeline.ActiveLevels().At(g.Horizon))
	}
	return v
}

// grown is what a growth says of itself, of a device or of pinned memory.
func grown(s *snapshot.Snapshot, index int, g *ghost.Growth) *finding.Growth {
	v := &finding.Growth{
		Index: index, Loop: frames.Function(s, g.Loop), Call: frames.Call(s, g.Loop), Unit: "iteration",
		PerUnit: units.Size(g.PerLap), Every: g.Every, Iterations: g.Laps, Blocks: g.Count, Bytes: units.Size(g.Bytes),
		Stacks: len(g.Stacks), Site: attribution.Site(s, g.Stack), First: g.First, Last: g.Last, Clock: -1,
		Slope: g.Slope, Chance: g.Chance, Freed: g.FreedShare, Used: g.Cause.Used, Trained: g.Trained, Spent: g.Cause.Spent,
		Regular: g.Regular, Over: g.Over,
		Older: g.OlderCount, OlderBytes: units.Size(g.OlderBytes), OlderLaps: g.LapsBefore(),
		Full: finding.Full{Ceiling: finding.NoCeiling, Micros: -1},
		Like: finding.Likeness{Use: g.LikeUse(), Early: g.Early(), Stale: g.Stale(), Model: g.InModule,
			Fill: g.LikeFill(), Cache: g.LikeCache(), Pending: g.Cause.Pending},
	}
	for i := range g.Paces {
		p := &g.Paces[i]
		v.Paces = append(v.Paces, finding.Pace{Iterations: p.Laps, PerUnit: units.Size(p.PerLap),
			Site: attribution.Site(s, p.Stack)})
	}
	return v
}

// full says when the device is full if a growth goes on.
func full(e *Facts, g *ghost.Growth) finding.Full {
	t, room, perLap := e.Timeline, int64(0), max(g.PerLap, 1)
	v := finding.Full{Micros: -1}
	switch n := len(t.OOMs); {
	case n > 0 && t.OOMs[n-1].DeviceFree >= 0:
		o := &t.OOMs[n-1]
		if g.Horizon == o.Event && g.Horizon < t.Trace.Len()-1 {
			v.Ceiling = finding.Reached
			return v
		}
		v.Ceiling, v.Bytes = finding.Reservable, units.Size(o.After.Reserved+o.DeviceFree)
		room = o.After.Reserved + o.DeviceFree - t.PeakActive.Bytes
	case e.Free >= 0:
		v.Ceiling, v.Bytes = finding.FreeAtEnd, units.Size(e.Free)
		room = t.Final.Reserved + e.Free - t.PeakActive.Bytes
	case e.Total > t.PeakActive.Bytes:
		v.Ceiling, v.Bytes = finding.DeviceSize, units.Size(e.Total)
		room = e.Total - t.PeakActive.Bytes
	default:
		v.Ceiling, v.Bytes = finding.NoCeiling, 1<<30
		room = 1<<30 + perLap - 1 // to round up
	}
	v.Iterations = max(room, 0) / perLap
	if g.LapTime > 0 && v.Iterations <= 1<<62/g.LapTime {
		v.Micros = v.Iterations * g.LapTime
	}
	return v
}

// graph is how many regular iterations tell of graphs, which are never kept on purpose.
const graph = 6

// growthConfidence is that of a growth of which the holder is not known. What the program's own code makes, such as the
// entries of a buffer or a copy of the weights, may be kept on purpose for as long as anybody records, and so may what
// comes now and then, or what a model makes that does not train, as results that are read after the loop: low. What a
// model makes that trains hardly ever is.
func growthConfidence(g *finding.Growth) finding.Confidence {
	steady, laps := g.Regular && g.Chance < 0.01, g.Iterations+g.OlderLaps
	switch like := &g.Like; {
	case like.Fill:
		return finding.Low
	case like.Pending:
		return finding.Medium
	case !like.Use && !like.Cache && g.Iterations >= graph && steady:
		return finding.High
	case !like.Use, like.Stale && !g.Over && laps >= enough && steady:
		return finding.Medium
	}
	return finding.Low
}

// pattern gives the reasons to call it a growth. Cause are those to name its cause.
func pattern(f *finding.Finding, cause []string) {
	g := f.Evidence.Growth
	horizon := "the end of the trace"
	if g.UntilOOM {
		horizon = "the out-of-memory event"
	} else if g.Released {
		horizon = "the end of the run, before its model was freed"
	}
	rebuilt := f.Cause == string(ghost.Rebuilt)
	if rebuilt {
		f.Because("It has %v at %s, and was made %d times in %s, larger each time.", g.Bytes, horizon, g.Iterations, g.Loop)
	} else {
		f.Because("%s (%v) from %s are still live at %s; they were allocated over %d iterations of %s.",
			units.Plural(g.Blocks, "block"), g.Bytes, units.Plural(g.Stacks, "stack"), horizon, g.Iterations, g.Loop)
	}
	if p := g.Paces; len(p) > 1 {
		line := fmt.Sprintf("It grows at %d rates, possibly with one holder each: %v in each of %d iterations (%s)",
			len(p), p[0].PerUnit, p[0].Iterations, attribution.Placed(p[0].Site))
		for _, p := range p[1:min(len(p), mostPaces)] {
			line += fmt.Sprintf(", %v in only %d of them (%s)", p.PerUnit, p.Iterations, attribution.Placed(p.Site))
		}
		f.Because("%s.", line)
	}
	f.Why = append(f.Why, cause...)
	if g.Regular && !rebuilt && f.Cause != string(ghost.Models) {
		f.Because(regular)
	}
	if g.Released {
		f.Because("The snapshot was taken after the run: what it had was freed with its model. While it runs, it grows.")
	} else if g.Over {
		f.Because("The loop ended before the trace did, and the memory stayed.")
	}
	if g.Like.Fill {
		f.Because(likeFill)
	} else {
		f.Because("%s of the allocations in these iterations are freed, so this is not warm-up.", percent(g.Freed))
	}
	if g.Like.Use && !g.Like.Fill && f.Cause != string(ghost.Models) {
		after := fmt.Sprintf("After %d iterations", g.Iterations)
		switch {
		case g.OlderLaps > 0:
			after = fmt.Sprintf("After about %d iterations (%d of them before the trace, if those left as many blocks)",
				g.Iterations+g.OlderLaps, g.OlderLaps)
		case g.Iterations < 20:
			after = fmt.Sprintf("After only %d iterations", g.Iterations)
		}
		f.Because("%s, a buffer or cache that is not full yet, or results kept for use after the loop, would look the same.",
			after)
	}
	if g.Like.Stale && !g.Like.Fill {
		f.Because("But the model trains meanwhile: what it made is out of date after the next step, so it is rarely " +
			"kept on purpose.")
	}
	if g.Like.Pending {
		since := "No optimizer has changed the weights since"
		if g.UntilOOM {
			since = "Memory ran out before a backward pass could free it"
		}
		f.Because("%s: a loop that unrolls a net or adds up losses, for one backward pass after it, would look the same.",
			since)
	}
	if g.Like.Cache {
		f.Because("A cache that grows on purpose would look the same, such as the key-value cache of a running " +
			"generation.")
	}
}

// outlook says how much it is and when the device is full if it goes on like this. Few is a growth that is small.
func outlook(f *finding.Finding, few bool) {
	g := f.Evidence.Growth
	share, all := units.Percent(int64(g.Bytes), int64(g.InUse)), g.Bytes+g.OlderBytes
	together := g.Older > 0 && all <= g.InUse
	switch {
	case together:
		f.Because("It is %s of the memory in use (%v); with another %s (%v) from the same stacks, allocated before the "+
			"trace, it is %s.", share, g.InUse, units.Plural(g.Older, "block"), g.OlderBytes,
			units.Percent(int64(all), int64(g.InUse)))
	case g.InUse > 0 && few:
		f.Because("So far it is only %s of the memory in use (%v): small, but it keeps growing.", share, g.InUse)
	case g.InUse > 0:
		f.Because("It is %s of the memory in use (%v).", share, g.InUse)
	}
	after := units.Plural(g.Full.Iterations, "more iteration")
	if g.Full.Ceiling == finding.NoCeiling {
		after = units.Plural(g.Full.Iterations, "iteration")
	}
	if g.Full.Micros >= 0 {
		after += ", about " + units.Micros(g.Full.Micros)
	}
	switch v := &g.Full; v.Ceiling {
	case finding.Reached:
		f.Because("The device did run out of memory.")
	case finding.Reservable:
		f.Because("This process can reserve %v of the device: at this rate that is used up after %s.", v.Bytes, after)
	case finding.FreeAtEnd:
		f.Because("The device had %v free at the end: at this rate it is full after %s.", v.Bytes, after)
	case finding.DeviceSize:
		f.Because("The device has %v: at this rate it is full after %s, or earlier if others use it too.", v.Bytes,
			after)
	default:
		f.Because("At this rate another 1 GiB is gone every %s (the file does not record the device's size).", after)
	}
	f.Because("Steady growth of %v per iteration (%s).", units.Size(g.Slope), chance(g.Chance))
	if g.Older > 0 && !together {
		f.Because("Another %s (%v) from the same stacks were allocated before the trace.",
			units.Plural(g.Older, "block"), g.OlderBytes)
	}
}

// late reports memory that waits for Python's garbage collector.
func (j *judge) late(e *Facts) {
	l := e.Late
	if l == nil || 100*l.Bytes < l.Peak {
		return
	}
	v := &l.Late
	f := &finding.Finding{
		ID: "late", Status: finding.Ghost, Severity: finding.Info, Confidence: finding.Medium, Heuristic: true,
		Device: e.Timeline.Device, Bytes: int64(l.Bytes), Events: l.Events, Stack: attribution.Frames(j.s, l.Waited[0]),
		Cause: "cycle", Evidence: finding.Evidence{Late: v},
		Title: fmt.Sprintf("Freed in bursts: memory of up to %d steps (%v) from %s piles up until the garbage "+
			"collector runs (reference cycles).", v.Steps, v.Bytes, attribution.Placed(v.Site)),
		Next: []string{"Find the cycle: an object whose attribute leads back to it, a closure that refers to itself, " +
			"an exception kept with its traceback. Set that to None when the object is done with.",
			"gc.set_debug(gc.DEBUG_SAVEALL) and gc.garbage show the objects; gc.collect() at the end of each step " +
				"limits the pile-up."},
		Fix: remedy.Lines(remedy.Case{Kind: remedy.CycleAttr, Holes: map[string]string{"back": "owner",
			"class": "its class"}}),
	}
	if 10*v.Bytes >= v.Peak {
		f.Severity = finding.Warning
	}
	f.Because("%s from %s outlived their steps and were freed at %d moments, each time together with those of "+
		"several steps.", units.Plural(v.Blocks, "block"), units.Plural(v.Stacks, "stack"), v.Moments)
	f.Because("At those moments the program was at different places, none of which has a reason to free them: this " +
		"is how Python's garbage collector frees reference cycles.")
	f.Because("The largest burst is %s of the peak of memory in use (%v).",
		units.Percent(int64(l.Bytes), int64(v.Peak)), v.Peak)
	j.add(f)
}

// manyCycles is how many reference cycles are no accident: those that a function leaves behind at its end are few.
const manyCycles = 8

// garbage reports memory that nothing refers to any more, as the recorder saw it: the program makes reference cycles, and
// each waits for Python's collector. The model and the optimizer state of a run that is over are not of it.
func (j *judge) garbage(e *Facts) {
	if j.seen == nil {
		return
	}
	t := e.Timeline
	for i := range j.seen.Holders {
		h := &j.seen.Holders[i]
		if h.Kind != holder.Cycle || h.Objects < manyCycles || h.Growing() || h.Standing == holder.Ghost {
			continue
		}
		var bytes int64
		for _, b := range h.Blocks {
			if b.Device == t.Device && !stays(e.Uses, b.Row) {
				bytes += t.Lives[b.Row].Rounded
			}
		}
		if 10*bytes < t.Final.Active || 2*bytes < h.Bytes {
			continue
		}
		v := holderEvidence(h)
		f := &finding.Finding{ID: "garbage", Status: finding.Ghost, Severity: finding.Warning, Confidence: finding.High,
			Device: t.Device, Bytes: bytes, Cause: "cycle", Evidence: finding.Evidence{Holder: v}, Fix: h.Fix()}
		f.Say("Garbage: %s in %s that nothing refers to; it is freed when Python's collector comes to it.",
			units.Size(bytes), units.Plural(int64(h.Objects), "reference cycle"))
		f.Because("Seen in the process: %s. The program cannot use it again.", v.Reference)
		f.Because("It is %s of the memory in use (%v).", units.Percent(bytes, t.Final.Active), units.Size(t.Final.Active))
		f.Because("The collector runs by counts of Python objects, not by bytes on the GPU, so that much can pile up.")
		f.Next = []string{"Break the cycle, so that memory is freed as soon as the program is done with it.",
			"Until then, gc.collect() at the end of each step limits the pile-up."}
		j.add(f)
	}
}

// percent is a share in words: one that is not all is never called 100%.
func percent(share float64) string {
	if share < 1 && share >= 0.995 {
		return "More than 99%"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}
