package verdict

import (
	"fmt"

	"snapana/analyze/allocator"
	"snapana/analyze/attribution"
	"snapana/analyze/fragmentation"
	"snapana/analyze/timeline"
	"snapana/analyze/units"
)

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
	f.Why = append(f.Why, fmt.Sprintf("The request for %s came from %s.", req, siteOr(j.s, oom.Stack)),
		fmt.Sprintf("At that moment %s was reserved: %s in live blocks, %s free but in pieces; the largest free piece was %s.",
			units.Bytes(after.Reserved), units.Bytes(after.Active), units.Bytes(unused), units.Bytes(e.OOM.Frag.LargestFree)))
	if oom.DeviceFree >= 0 {
		most := max(e.OOM.Frag.LargestUsable, oom.DeviceFree/allocator.RoundLarge*allocator.RoundLarge)
		f.Why = append(f.Why, fmt.Sprintf("The device itself had %s free, so that the largest request that could still succeed was one for %s.",
			units.Bytes(oom.DeviceFree), units.Bytes(most)))
	}
	if c := e.OOM.Frag.Classes; c.Stream > oom.Requested/4 {
		f.Why = append(f.Why, fmt.Sprintf("%s of the free memory is another stream's or a private pool's, and cannot serve this request.", units.Bytes(c.Stream)))
	}
	if c := e.OOM.Frag.Classes; c.Pending > oom.Requested/4 {
		f.Why = append(f.Why, fmt.Sprintf("%s was freed by the program but waits for another stream to be done with it (record_stream).", units.Bytes(c.Pending)))
	}
	if len(t.OOMs) > 1 {
		f.Why = append(f.Why, fmt.Sprintf("%d requests failed in the trace; this is the last.", len(t.OOMs)))
	}
	switch {
	case e.OOM.Frag.LargestFree >= oom.Requested:
		f.Status, f.Confidence = Limit, Medium
		f.Title = fmt.Sprintf("Out of memory beside free memory: a request for %s was refused although one free piece had %s.", req, units.Bytes(e.OOM.Frag.LargestFree))
		f.Why = append(f.Why, "Free memory serves only its own stream and pool, and max_split_size_mb keeps large pieces from smaller requests: one of these stood in the way.")
		f.Next = []string{"See in the segment map which stream or private pool holds the free piece; allocate on that stream, or call torch.cuda.empty_cache() between the phases.",
			"If max_split_size_mb is set, try without it."}
	case unused >= oom.Requested:
		f.Status, f.Bytes = Fragmentation, unused
		f.Title = fmt.Sprintf("Out of memory by fragmentation: a request for %s failed while %s of reserved memory lay free in pieces.", req, units.Bytes(unused))
		f.Why = append(f.Why, pinLine(j.s, t, e.OOM))
		f.Next = append(j.defragment(e.OOM, e), j.plan(e.OOM, t, &oom)...)
	case oom.DeviceFree >= oom.Requested+(2<<20):
		f.Status = Limit
		f.Title = fmt.Sprintf("Out of memory with room on the device: a request for %s was refused although %s was free.", req, units.Bytes(oom.DeviceFree))
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, per_process_memory_fraction in the settings, a container or MIG limit."}
	case oom.DeviceFree >= 0 && unused+oom.DeviceFree >= oom.Requested:
		f.Status, f.Confidence, f.Bytes = Fragmentation, Medium, unused
		f.Title = fmt.Sprintf("Out of memory: a request for %s would have fit in the free pieces (%s) and the device's rest (%s) joined.", req, units.Bytes(unused), units.Bytes(oom.DeviceFree))
		f.Why = append(f.Why, pinLine(j.s, t, e.OOM))
		f.Next = append(j.defragment(e.OOM, e), j.plan(e.OOM, t, &oom)...)
	default:
		f.Status = Capacity
		f.Title = fmt.Sprintf("Out of memory for real: live tensors held %s when %s more was asked for; no allocator setting helps.", units.Bytes(after.Active), req)
		if a := e.WhatIf; a != nil && a.Licence.Trusted && a.Best < 0 {
			f.Why = append(f.Why, "This is proven: "+noSetting(e))
		}
		if len(e.OOM.Live) > 0 {
			g := e.OOM.Live[0]
			f.Why = append(f.Why, fmt.Sprintf("The largest holder is %s with %s in %s.", siteOr(j.s, g.Stack), units.Bytes(g.Rounded), plural(int(g.Count), "block")))
		}
		f.Next = []string{"Need less at once: a smaller batch or sequence, gradient checkpointing, a lower precision, or sharding over devices.",
			"Look at the largest live stacks at the OOM below: each is a place to save."}
	}
	j.add(f)
}

// plan says which blocks to free so that a failed request could have a segment of its own.
func (j *judge) plan(sc *Scene, t *timeline.Timeline, oom *timeline.OOMEvent) []string {
	need := (oom.Requested+allocator.RoundLarge-1)/allocator.RoundLarge*allocator.RoundLarge - max(oom.DeviceFree, 0)
	p := fragmentation.Free(t, sc.State, &sc.Frag, need)
	if p.Returned == 0 {
		return nil
	}
	from := siteOr(j.s, p.Sites[0].Stack)
	if more := len(p.Sites) - 1; more > 0 {
		from += " and " + plural(more, "other stack")
	}
	return []string{fmt.Sprintf("Or free %s (%s, from %s): that would return %s in %s, enough for the request.",
		plural(int(p.Blocks), "live block"), units.Bytes(p.Bytes), from, units.Bytes(p.Returned), plural(p.Segments, "segment"))}
}
