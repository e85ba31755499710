package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"snapana/analyze/attribution"
	"snapana/analyze/fragmentation"
	"snapana/analyze/ghost"
	"snapana/analyze/timeline"
	"snapana/analyze/units"
	"snapana/snapshot"
)

// Evidence is what is known about one device.
type Evidence struct {
	Timeline *timeline.Timeline
	Peak     Scene
	End      Scene
	OOM      *Scene // the last out-of-memory event, nil without one
	Growth   []ghost.Growth
}

// Scene is the memory of a device at one moment.
type Scene struct {
	State *timeline.State
	Frag  fragmentation.Report
	Live  []attribution.Group
}

// Judge turns the evidence of all devices into ranked findings and one verdict.
func Judge(s *snapshot.Snapshot, devices []Evidence) Verdict {
	j := judge{s: s}
	for i := range devices {
		e := &devices[i]
		j.inconsistent(e)
		j.growth(e)
		if e.OOM != nil {
			j.outOfMemory(e)
		} else {
			j.fragmented(e)
			j.cached(e)
		}
	}
	slices.SortStableFunc(j.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.class(), b.class()), cmp.Compare(b.Bytes, a.Bytes))
	})
	return j.verdict(devices)
}

func (s Severity) rank() int {
	return map[Severity]int{Error: 0, Warning: 1, Info: 2}[s]
}

// class puts doubts about the data before everything that was derived from it.
func (f *Finding) class() int {
	if f.Status == Inconsistent {
		return 0
	}
	return 1
}

type judge struct {
	s        *snapshot.Snapshot
	findings []Finding
}

func (j *judge) add(f Finding) { j.findings = append(j.findings, f) }

func (j *judge) verdict(devices []Evidence) Verdict {
	v := Verdict{Findings: j.findings}
	if v.Findings == nil {
		v.Findings = []Finding{}
	}
	if len(v.Findings) > 0 {
		if f := v.Findings[0]; f.Severity != Info || f.Status == Cached {
			v.Status, v.Headline = f.Status, f.Title
			return v
		}
	}
	var top *timeline.Timeline // the device that reached most
	events := 0
	for i := range devices {
		t := devices[i].Timeline
		if top == nil || t.PeakReserved.Bytes > top.PeakReserved.Bytes {
			top = t
		}
		events += t.Trace.Len()
	}
	switch {
	case len(devices) == 0:
		v.Status, v.Headline = NoData, "Nothing to judge: the file holds no segments and no events."
	case events < 2:
		v.Status, v.Headline = Healthy, fmt.Sprintf("Nothing to accuse in the state: %s active of %s reserved. Without a trace, growth cannot be judged.",
			units.Bytes(top.Final.Active), units.Bytes(top.Final.Reserved))
	case top.Final.Active < top.PeakActive.Bytes/10*9:
		v.Status, v.Headline = Healthy, fmt.Sprintf("Healthy: active memory peaks at %s (%s reserved) and comes back to %s.",
			units.Bytes(top.PeakActive.Bytes), units.Bytes(top.PeakReserved.Bytes), units.Bytes(top.Final.Active))
	default:
		v.Status, v.Headline = Healthy, fmt.Sprintf("Healthy: active memory peaks at %s (%s reserved); no loop was seen to keep more and more.",
			units.Bytes(top.PeakActive.Bytes), units.Bytes(top.PeakReserved.Bytes))
	}
	return v
}

// inconsistent reports files whose parts contradict each other.
func (j *judge) inconsistent(e *Evidence) {
	c := &e.Timeline.Checks
	n := c.Inconsistent()
	if n == 0 && c.Residual == 0 {
		return
	}
	f := Finding{
		ID: "inconsistent", Status: Inconsistent, Severity: Error, Confidence: High, Device: e.Timeline.Device,
		Bytes: max(c.Residual, -c.Residual),
		Title: fmt.Sprintf("The file contradicts itself in %s places: do not trust its figures.", units.Count(n)),
		Next: []string{"Record the snapshot again, and keep the file as torch wrote it: trimmed, filtered or generated files look like this.",
			"Figures below are what can be rebuilt; read them as estimates."},
	}
	count := func(n int64, what string) {
		if n > 0 {
			f.Why = append(f.Why, units.Count(n)+" "+what)
		}
	}
	count(c.UntiledSegments, "segments whose blocks do not cover them exactly")
	count(c.WrongSegmentTotals, "segments whose own sums differ from their blocks'")
	count(c.UnmatchedAllocs, "allocations that clash with what lives at their address")
	count(c.UnmatchedFrees, "frees of addresses that were not live")
	count(c.Overlaps, "live blocks that overlap another")
	count(c.OutsideSegments, "events on addresses in no known segment")
	count(c.LiveOverReserved, "events after which live memory exceeds reserved memory")
	count(c.MarkerMismatches, "recorded totals that differ from the rebuilt ones")
	count(c.BadEvents, "events without the address or size that they need")
	if c.Residual != 0 {
		f.Why = append(f.Why, fmt.Sprintf("the rebuilt end differs from the recorded one by %s", units.Bytes(c.Residual)))
	}
	j.add(f)
}

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
		site := attribution.Site(j.s, g.Stacks[0])
		loop := j.frame(g.Loop)
		f.Title = fmt.Sprintf("Ghost tensors: %s more at every lap of %s, never freed; most is allocated at %s.", units.Bytes(g.PerLap), loop, site)
		f.Why = append(f.Why, fmt.Sprintf("%s allocations (%s) from %s stay alive to the end of the trace; they came in %d laps of the loop in %s.",
			units.Count(g.Count), units.Bytes(g.Bytes), plural(len(g.Stacks), "stack"), g.Laps, loop))
		if g.Regular {
			f.Why = append(f.Why, "Every lap leaves about the same: a reference is kept each time.")
		}
		if g.Churn > 0.05 {
			f.Why = append(f.Why, fmt.Sprintf("Other memory of the same laps is given back (%.0f%% of allocations are freed), so this is not a start-up phase.", 100*g.Churn))
		} else {
			f.Why = append(f.Why, "Nothing else is freed meanwhile, so a buffer that is being filled on purpose would look the same.")
		}
		if end > 0 {
			f.Why = append(f.Why, fmt.Sprintf("It is %s of the memory in use (%s).", units.Percent(g.Bytes, end), units.Bytes(end)))
		}
		if g.InModule && len(g.Stacks) > 3 {
			f.Why = append(f.Why, "Activations of whole forward passes survive together: something keeps an output or a loss, and with it the autograd graph.")
			f.Next = append(f.Next, "Keep numbers, not tensors: losses.append(loss.item()), or outputs.append(out.detach().cpu()).",
				"Run evaluation under torch.no_grad() or torch.inference_mode(), so that no graph is built.")
		} else {
			f.Next = append(f.Next, "Find the list, dict, closure or hook that collects these tensors each lap, and store .detach().cpu() or .item() instead, or clear it.",
				"If they are garbage in a reference cycle, break the cycle or call gc.collect() between laps.")
		}
		j.add(f)
	}
}

func growthConfidence(g *ghost.Growth) Confidence {
	switch {
	case g.Churn <= 0.05:
		return Low
	case g.Laps >= 6 && g.Regular:
		return High
	}
	return Medium
}

// outOfMemory explains the last oom event by arithmetic on the state at that moment.
func (j *judge) outOfMemory(e *Evidence) {
	t := e.Timeline
	oom := t.OOMs[len(t.OOMs)-1]
	after := oom.After
	unused := after.Reserved - after.Active
	f := Finding{
		ID: "oom", Severity: Error, Confidence: High, Device: t.Device, Bytes: oom.Requested,
		Events: []int{oom.Event}, Stack: attribution.Frames(j.s, oom.Stack),
	}
	req := units.Bytes(oom.Requested)
	f.Why = append(f.Why, fmt.Sprintf("The request for %s came from %s.", req, attribution.Site(j.s, oom.Stack)),
		fmt.Sprintf("At that moment %s was reserved: %s in live blocks, %s free but in pieces; the largest free piece was %s.",
			units.Bytes(after.Reserved), units.Bytes(after.Active), units.Bytes(unused), units.Bytes(e.OOM.Frag.LargestFree)))
	if oom.DeviceFree >= 0 {
		f.Why = append(f.Why, fmt.Sprintf("The device itself had %s free.", units.Bytes(oom.DeviceFree)))
	}
	if len(t.OOMs) > 1 {
		f.Why = append(f.Why, fmt.Sprintf("%d requests failed in the trace; this is the last.", len(t.OOMs)))
	}
	switch {
	case unused >= oom.Requested:
		f.Status, f.Bytes = Fragmentation, unused
		f.Title = fmt.Sprintf("Out of memory by fragmentation: a request for %s failed while %s of reserved memory lay free in pieces.", req, units.Bytes(unused))
		f.Why = append(f.Why, pinLine(j.s, t, e.OOM))
		f.Next = j.defragment(e.OOM, t)
	case oom.DeviceFree >= oom.Requested+(2<<20):
		f.Status = Limit
		f.Title = fmt.Sprintf("Out of memory with room on the device: a request for %s was refused although %s was free.", req, units.Bytes(oom.DeviceFree))
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, per_process_memory_fraction in the settings, a container or MIG limit."}
	case oom.DeviceFree >= 0 && unused+oom.DeviceFree >= oom.Requested:
		f.Status, f.Confidence, f.Bytes = Fragmentation, Medium, unused
		f.Title = fmt.Sprintf("Out of memory: a request for %s would have fit in the free pieces (%s) and the device's rest (%s) joined.", req, units.Bytes(unused), units.Bytes(oom.DeviceFree))
		f.Why = append(f.Why, pinLine(j.s, t, e.OOM))
		f.Next = j.defragment(e.OOM, t)
	default:
		f.Status = Capacity
		f.Title = fmt.Sprintf("Out of memory for real: live tensors held %s when %s more was asked for; no allocator setting helps.", units.Bytes(after.Active), req)
		if len(e.OOM.Live) > 0 {
			g := e.OOM.Live[0]
			f.Why = append(f.Why, fmt.Sprintf("The largest holder is %s with %s in %s.", g.Site, units.Bytes(g.Rounded), plural(int(g.Count), "block")))
		}
		f.Next = []string{"Need less at once: a smaller batch or sequence, gradient checkpointing, a lower precision, or sharding over devices.",
			"Look at the largest live stacks at the OOM below: each is a place to save."}
	}
	j.add(f)
}

// defragment is the advice against pieces.
func (j *judge) defragment(sc *Scene, t *timeline.Timeline) []string {
	var next []string
	if !j.s.Settings.ExpandableSegments {
		next = append(next, "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts: free pieces can then be joined.")
	}
	if len(sc.Frag.Pins) > 0 {
		next = append(next, fmt.Sprintf("Allocate long-lived tensors (%s) before the big short-lived ones, or in one piece, so that they do not pin segments.",
			pinSite(j.s, t, sc)))
	}
	return next
}

// pinLine says what keeps the partly used segments.
func pinLine(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) string {
	var live, blocks int64
	for _, p := range sc.Frag.Pins {
		live += p.Live
		blocks += int64(len(p.Lives))
	}
	return fmt.Sprintf("%s live blocks (%s) pin %s of free memory in %s; most come from %s.", units.Count(blocks), units.Bytes(live),
		units.Bytes(sc.Frag.Split), plural(sc.Frag.PartlyUsed, "segment"), pinSite(s, t, sc))
}

// pinSite is the site whose blocks pin the most segments.
func pinSite(s *snapshot.Snapshot, t *timeline.Timeline, sc *Scene) string {
	segments := map[snapshot.StackID]int64{}
	var best snapshot.StackID
	for _, p := range sc.Frag.Pins {
		seen := map[snapshot.StackID]bool{}
		for _, row := range p.Lives {
			if st := t.Lives[row].Stack; !seen[st] {
				seen[st] = true
				segments[st] += p.Free
			}
		}
	}
	for st, n := range segments {
		if m := segments[best]; n > m || n == m && st < best {
			best = st
		}
	}
	return attribution.Site(s, best)
}

// fragmented reports pieces that hurt before the program failed: cudaMalloc was refused and
// the cache had to be given up, while much of what stayed reserved lay free in pieces.
func (j *judge) fragmented(e *Evidence) {
	t := e.Timeline
	sc := &e.End
	if e.Peak.Frag.Split > sc.Frag.Split {
		sc = &e.Peak
	}
	share := float64(sc.Frag.Split) / float64(max(sc.Frag.Reserved, 1))
	switch {
	case len(t.Retries) > 0 && share >= 0.15 && sc.Frag.Split >= 64<<20:
		var released int64
		f := Finding{ID: "fragmentation", Status: Fragmentation, Severity: Warning, Confidence: Medium, Device: t.Device, Bytes: sc.Frag.Split}
		for _, r := range t.Retries {
			released += r.Released
			f.Events = append(f.Events, r.FirstEvent)
		}
		f.Events = f.Events[:min(8, len(f.Events))]
		f.Title = fmt.Sprintf("Fragmentation: %s of %s reserved lies free in segments that live blocks pin; the allocator ran into the device's limit %s.",
			units.Bytes(sc.Frag.Split), units.Bytes(sc.Frag.Reserved), times(len(t.Retries)))
		f.Why = []string{
			fmt.Sprintf("cudaMalloc was refused %s: the allocator gave back %s of its cache inside requests and tried again, which costs time.", times(len(t.Retries)), units.Bytes(released)),
			pinLine(j.s, t, sc),
		}
		f.Next = j.defragment(sc, t)
		j.add(f)
	case share >= 0.30 && sc.Frag.Split >= 1<<30:
		j.add(Finding{
			ID: "fragmentation", Status: Fragmentation, Severity: Info, Confidence: Medium, Device: t.Device, Bytes: sc.Frag.Split,
			Title: fmt.Sprintf("%s of %s reserved lies free in partly used segments. It did no harm in this trace.", units.Bytes(sc.Frag.Split), units.Bytes(sc.Frag.Reserved)),
			Why:   []string{pinLine(j.s, t, sc)}, Next: j.defragment(sc, t),
		})
	}
}

// cached reports memory that PyTorch only keeps for later.
func (j *judge) cached(e *Evidence) {
	fr := e.End.Frag
	if fr.Reserved < 64<<20 || fr.Active*5 > fr.Reserved || fr.Releasable*2 < fr.Reserved {
		return
	}
	j.add(Finding{
		ID: "cached", Status: Cached, Severity: Info, Confidence: High, Device: e.Timeline.Device, Bytes: fr.Releasable,
		Title: fmt.Sprintf("Cached, not leaked: only %s of %s reserved is in use; torch.cuda.empty_cache() returns %s.",
			units.Bytes(fr.Active), units.Bytes(fr.Reserved), units.Bytes(fr.Releasable)),
		Why: []string{
			fmt.Sprintf("%s lies in segments with no live block. PyTorch keeps them to serve the next requests without cudaMalloc; nvidia-smi shows them as used.", units.Bytes(fr.Releasable)),
			fmt.Sprintf("Live memory fell from %s at its peak to %s.", units.Bytes(e.Timeline.PeakActive.Bytes), units.Bytes(fr.Active)),
		},
		Next: []string{"Nothing, if this process goes on using the GPU.", "Call torch.cuda.empty_cache() once if another process needs the memory."},
	})
}

func (j *judge) frame(id snapshot.FrameID) string {
	f := j.s.Frames.Get(id)
	return fmt.Sprintf("%s (%s)", j.s.Strings.Get(f.Name), base(j.s.Strings.Get(f.File)))
}

func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' || path[i] == '\\' {
			return path[i+1:]
		}
	}
	return path
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return units.Count(int64(n)) + " " + what + "s"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
