package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
)

// outOfMemory reports the last request that failed.
func (j *judge) outOfMemory(e *Facts) {
	r := e.Failure
	last := &e.Timeline.OOMs[len(e.Timeline.OOMs)-1]
	f := &finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: e.Timeline.Device, Bytes: r.Requested,
		Events: []int{r.Event}, Stack: attribution.Frames(j.s, last.Stack),
	}
	v := &f.Evidence
	v.Request = j.request(e)
	v.Request.Site = j.site(last.Stack)
	switch r.Cause {
	case oom.Fragmentation, oom.Joined:
		v.Fragments, v.Setting = j.fragments(e, e.OOM), j.setting(e)
		v.Fragments.Plan = j.removal(e)
		if r.Cause == oom.Fragmentation {
			j.patterns(e, e.OOM, v.Fragments)
		}
	case oom.Growth:
		top := &e.Growth[r.Ghosts.Top]
		v.Growth = j.growthEvidence(e, r.Ghosts.Top, top)
		if h := j.seen.Of(top)[0].Holder; h != nil && h.Filling() {
			v.Holder = holderEvidence(h)
		}
	case oom.Capacity:
		if s := j.setting(e); s != nil && s.Proven {
			v.Setting = s
		}
	}
	around(f)
	explain(f, r.Cause)
	j.add(f)
}

func (j *judge) request(e *Facts) *finding.Request {
	r, fr := e.Failure, &e.OOM.Frag
	c := &fr.Classes
	v := &finding.Request{
		Cause: string(r.Cause), Requested: units.Size(r.Requested), Segment: units.Size(r.Segment),
		Failures: len(e.Timeline.OOMs),
		Reserved: units.Size(r.After.Reserved), Active: units.Size(r.After.Active),
		LargestPiece: units.Size(fr.LargestFree), LargestUsable: units.Size(r.Largest), Servable: units.Size(r.Servable),
		Usable: units.Size(c.Releasable + c.Hard + c.Soft), PrivatePools: units.Size(fr.Private),
		OtherStreams: units.Size(c.Stream - fr.Private), Pending: units.Size(c.Pending),
		Returned: units.Size(r.Released.Bytes), Segments: r.Released.Segments, ReservedBefore: units.Size(r.Before.Reserved),
		DeviceFree: units.Size(r.DeviceFree), DeviceTotal: units.Size(r.Total), AtLeast: units.Size(r.AtLeast),
		Elsewhere: units.Size(r.Elsewhere), Grown: units.Size(r.Lost), Fraction: r.Fraction,
		Ghosts: r.Ghosts.Blocks, GhostBytes: units.Size(r.Ghosts.Bytes),
	}
	if len(e.OOM.Live) > 0 {
		g := &e.OOM.Live[0]
		v.Largest = &finding.Share{Site: j.site(g.Stack), Blocks: g.Count, Bytes: units.Size(g.Rounded)}
	}
	return v
}

// mostSites bounds the sites of a plan.
const mostSites = 8

// removal is the fewest blocks without which the request would have been served, nil for none.
func (j *judge) removal(e *Facts) *finding.Removal {
	p := &e.Failure.Plan
	if p.Blocks == 0 {
		return nil
	}
	v := &finding.Removal{Blocks: p.Blocks, Bytes: units.Size(p.Bytes), Stacks: len(p.Sites),
		Returned: units.Size(p.Returned), Segments: p.Segments, Hole: units.Size(p.Hole), Fewest: p.Fewest}
	for i := range p.Sites[:min(len(p.Sites), mostSites)] {
		v.Sites = append(v.Sites, j.site(p.Sites[i].Stack))
	}
	return v
}

// around says what the memory was like when the request failed.
func around(f *finding.Finding) {
	r := f.Evidence.Request
	f.Because("The request for %v came from %s.", r.Requested, attribution.Placed(r.Site))
	pieces := "none of it free."
	if unused := r.Reserved - r.Active; unused != 0 {
		pieces = fmt.Sprintf("%v free but in pieces; the largest free piece was %v.", unused, r.LargestPiece)
	}
	f.Because("At that moment %v was reserved: %v in live blocks, %s", r.Reserved, r.Active, pieces)
	if r.Segments > 0 {
		f.Because("Before it gave up, the allocator returned %s (%v) to the device: %v had been reserved.",
			units.Plural(r.Segments, "free segment"), r.Returned, r.ReservedBefore)
	}
	if r.DeviceFree >= 0 {
		f.Because("The device itself had %v free, so that the largest request that could still succeed was one for %v.",
			r.DeviceFree, r.Servable)
	}
	const unserved = "%v of the free memory is %s, and cannot serve this request."
	if r.PrivatePools > r.Requested/4 {
		f.Because(unserved, r.PrivatePools, "kept for private pools")
	}
	if r.OtherStreams > r.Requested/4 {
		f.Because(unserved, r.OtherStreams, "another stream's")
	}
	if r.Pending > r.Requested/4 {
		f.Because("%v was freed by the program but waits for another stream to be done with it (record_stream).", r.Pending)
	}
	if r.Failures > 1 {
		f.Because("%d requests failed in the trace; this is the last.", r.Failures)
	}
}

// Advice that the verdicts on snapshots and on messages share.
const (
	needLess = "Need less at once: a smaller batch or sequence, gradient checkpointing, a lower precision, " +
		"or sharding over devices."
	seeQuadratic = "Look for a quadratic intermediate, such as an attention matrix that is not fused or " +
		"a broadcast by mistake, in the line "
	seeOthers = "See with nvidia-smi who else is on the device; end what is left over, or choose a free device " +
		"with CUDA_VISIBLE_DEVICES."
	sharePools = "Let graphs share a pool (torch.cuda.graph(..., pool=...)), capture fewer sizes, " +
		"or capture the largest first."
)

// explain says why the request failed and what to do, from the evidence.
func explain(f *finding.Finding, cause oom.Cause) {
	r := f.Evidence.Request
	switch cause {
	case oom.Absurd:
		f.Status = finding.Absurd
		than := "no device has that much"
		if r.DeviceTotal != oom.Unknown {
			than = fmt.Sprintf("the whole device has %v", r.DeviceTotal)
		}
		f.Say("An impossible request: %v was asked for at once, and %s.", r.Requested, than)
		f.Because("Even an empty GPU would not serve it, so that no setting and no smaller model helps.")
		f.Next = []string{"Print the shapes and the dtype that go into the call at " + attribution.Placed(r.Site) +
			": a negative or overflowed dimension, or a broadcast by mistake, makes such sizes.",
			"If it is meant, do the work in chunks or shard the tensor."}
	case oom.TooLarge:
		f.Status = finding.Capacity
		f.Say("Out of memory: one request for %v, more than the %v that this process could have with every tensor "+
			"freed.", r.Requested, r.AtLeast)
		f.Because("The trace never shows more than that to be had, reserved and free together; whether others hold the " +
			"rest of the device, a snapshot does not say.")
		f.Next = []string{seeQuadratic + "that asked.", "See with nvidia-smi whether other processes hold the device.", needLess}
	case oom.Unsplit:
		f.Status, f.Confidence = finding.Limit, finding.Medium
		f.Say("Out of memory beside free memory: a request for %v was refused although one free piece had %v.",
			r.Requested, r.LargestUsable)
		f.Because("max_split_size_mb keeps large pieces from smaller requests, and a pool that the trace does not name " +
			"would, too: one of these stood in the way.")
		f.Next = []string{"If max_split_size_mb is set, try without it.",
			"See in the segment map which segments hold the free memory."}
	case oom.Fragmentation:
		f.Status, f.Bytes = finding.Fragmentation, int64(r.Usable)
		f.Say("Out of memory by fragmentation: a request for %v failed while %v of reserved memory lay free in pieces.",
			r.Requested, r.Usable)
		pieces(f)
		if r.DeviceFree > r.Segment {
			f.Because("The device had room as well: a memory fraction, or the driver, refused that.")
		}
	case oom.Joined:
		f.Status, f.Confidence, f.Bytes = finding.Fragmentation, finding.Medium, int64(r.Usable)
		f.Say("Out of memory: a request for %v would have fit in the free pieces (%v) and the device's rest (%v) "+
			"joined.", r.Requested, r.Usable, r.DeviceFree)
		pieces(f)
	case oom.Fraction:
		f.Status = finding.Limit
		f.Say("Out of memory by the process's limit: a request for %v was refused although the device had %v free.",
			r.Requested, r.DeviceFree)
		f.Because("per_process_memory_fraction is %g: the process may reserve that share of the device, "+
			"and %v more than the %v that it holds would exceed it.", r.Fraction, r.Segment, r.Reserved)
		f.Next = []string{"Raise or remove per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF, or the call of " +
			"torch.cuda.set_per_process_memory_fraction.", needLess}
	case oom.Room:
		f.Status = finding.Limit
		f.Say("Out of memory with room on the device: a request for %v was refused although %v was free.", r.Requested,
			r.DeviceFree)
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, which no snapshot records, and for a " +
			"container or MIG limit.",
			"Other processes that come and go on the device look the same: it may have become free only then."}
	case oom.Pools:
		f.Status, f.Bytes = finding.Pools, int64(r.PrivatePools)
		f.Say("Out of memory beside private pools: a request for %v failed while %v lay free in pools "+
			"that only CUDA graphs or their owners may use.", r.Requested, r.PrivatePools)
		f.Because("A private pool keeps its segments, the free ones too, as long as a graph or a MemPool object uses it, " +
			"and never serves requests from outside.")
		f.Next = []string{sharePools, "Delete graphs that are not replayed any more: their pools are returned then."}
	case oom.OtherStream:
		unusable := r.OtherStreams + r.Pending
		f.Status, f.Bytes = finding.Limit, int64(unusable)
		f.Say("Out of memory beside another stream's memory: a request for %v failed while %v was free there "+
			"or waited for a stream.", r.Requested, unusable)
		f.Because("Free memory serves only its own stream; a block under record_stream stays taken until that stream is " +
			"done with it.")
		f.Next = []string{"Allocate on the stream that has the free memory, or use fewer streams.",
			"Call torch.cuda.synchronize() before large phases, so that blocks that wait are free; with record_stream, free " +
				"them earlier."}
	case oom.Others:
		besideOthers(f, r)
	case oom.Growth:
		byGrowth(f, r)
	case oom.Capacity:
		f.Status = finding.Capacity
		f.Say("Out of memory for real: live tensors held %v when %v more was asked for; no allocator setting helps.",
			r.Active, r.Requested)
		if s := f.Evidence.Setting; s != nil && s.Gives == "" {
			f.Because("This is proven: %s", inVain(s))
		}
		if g := r.Largest; g != nil {
			f.Because("The largest holder is %s with %v in %s.", attribution.Placed(g.Site), g.Bytes, units.Plural(g.Blocks,
				"block"))
		}
		f.Next = []string{needLess, "Look at the largest live stacks at the OOM below: each is a place to save."}
	}
}

func besideOthers(f *finding.Finding, r *finding.Request) {
	f.Status = finding.Others
	if r.Grown >= r.Segment-r.DeviceFree {
		f.Bytes = int64(r.Grown)
		f.Say("Out of memory on a shared device: %v was asked for, and memory outside PyTorch had grown by %v.",
			r.Requested, r.Grown)
		f.Because("Earlier in the trace this process had %v, reserved and free together; at the failure it was %v.",
			r.AtLeast, r.Reserved+r.DeviceFree)
	} else {
		f.Bytes, f.Confidence = int64(r.Elsewhere), finding.Medium
		f.Say("Out of memory on a shared device: %v was asked for, and %v of its %v are neither free nor PyTorch's.",
			r.Requested, r.Elsewhere, r.DeviceTotal)
	}
	f.Because("It is other processes', or this one's own outside of PyTorch's allocator: the CUDA context, NCCL, other " +
		"libraries. A snapshot does not tell them apart.")
	f.Next = []string{seeOthers, "If nobody else is, look for libraries with memory of their own in this process."}
}

func byGrowth(f *finding.Finding, r *finding.Request) {
	g := f.Evidence.Growth
	if h := f.Evidence.Holder; h != nil { // whose container is not full
		f.Status, f.Bytes = finding.Capacity, int64(h.Bound.Full)
		f.Say("Out of memory for real: %v was asked for while a buffer was still filling, with %s; full it takes %v.",
			r.Requested, entries(h.Bound), h.Bound.Full)
		f.Because("Seen in the process: %s keeps %v. Without it the request would have been served.", h.Reference, h.Bytes)
		f.Next = []string{"Give it a smaller bound, or keep its entries off the GPU (.cpu()) until they are used.", needLess}
		return
	}
	f.Status, f.Bytes, f.Heuristic, f.Confidence = finding.Ghost, int64(r.GhostBytes), true, growthConfidence(g)
	if f.Confidence == finding.High {
		f.Confidence = finding.Medium
	}
	f.Say("Out of memory by growth: %v was asked for, and %v of the memory is what a loop leaves behind with every "+
		"iteration.", r.Requested, r.GhostBytes)
	f.Because("%s (%s of active memory) grow with the loop in %s; most comes from %s.", units.Plural(r.Ghosts,
		"block"), units.Percent(int64(r.GhostBytes), int64(r.Active)), g.Loop, attribution.Placed(g.Site))
	f.Because("Without them the request would have been served.")
	f.Next = []string{"Find the list, dict, closure or hook that collects these tensors: the finding on growth below " +
		"has the evidence and what to do.", needLess}
}
