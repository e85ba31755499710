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
		LargestPiece: units.Size(fr.LargestFree), LargestUsable: units.Size(r.Largest),
		Servable: units.Size(r.Servable), Usable: units.Size(c.Releasable + c.Hard + c.Soft),
		PrivatePools: units.Size(fr.Private), OtherStreams: units.Size(c.Stream - fr.Private),
		Pending: units.Size(c.Pending), Returned: units.Size(r.Released.Bytes), Segments: r.Released.Segments,
		ReservedBefore: units.Size(r.Before.Reserved), DeviceFree: units.Size(r.DeviceFree),
		DeviceTotal: units.Size(r.Total), AtLeast: units.Size(r.AtLeast), Elsewhere: units.Size(r.Elsewhere),
		Grown: units.Size(r.Lost), Limit: oom.Unknown, Fraction: r.Fraction, Ghosts: r.Ghosts.Blocks,
		GhostBytes: units.Size(r.Ghosts.Bytes),
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
		pieces = fmt.Sprintf("%v free, in pieces of at most %v.", unused, r.LargestPiece)
	}
	f.Because("At that moment %v was reserved: %v in live blocks, %s", r.Reserved, r.Active, pieces)
	if r.Segments > 0 {
		cached := fmt.Sprintf("%d cached segments", r.Segments)
		if r.Segments == 1 {
			cached = "only cached segment"
		}
		f.Because("PyTorch first released its %s (%v) to the device: %v had been reserved.", cached, r.Returned,
			r.ReservedBefore)
	}
	switch {
	case r.DeviceFree < 0:
	case r.DeviceFree.String() == r.Servable.String():
		f.Because("The device had %v free, so nothing larger could be allocated.", r.DeviceFree)
	default:
		f.Because("The device had %v free; the largest request that could still succeed was one for %v.", r.DeviceFree,
			r.Servable)
	}
	const unserved = "%v of the free memory belongs to %s and cannot serve this request."
	if r.PrivatePools > r.Requested/4 {
		f.Because(unserved, r.PrivatePools, "private pools")
	}
	if r.OtherStreams > r.Requested/4 {
		f.Because(unserved, r.OtherStreams, "other streams")
	}
	if r.Pending > r.Requested/4 {
		f.Because("%v was freed by the program but waits until another stream is done with it (record_stream).",
			r.Pending)
	}
	if r.Failures > 1 {
		f.Because("%d requests failed in the trace; this is the last.", r.Failures)
	}
}

// Titles, reasons and advice that the verdicts on snapshots and on messages share.
const (
	impossible  = "An impossible request: %v was requested at once, and %s."
	byFragments = "OOM from fragmentation: a request for %v failed although %v of reserved memory was free, in " +
		"pieces too small."
	byJoin = "OOM from fragmentation: a request for %v would fit if the free pieces (%v) and the free device " +
		"memory (%v) were contiguous."
	despiteRoom  = "OOM despite free device memory: a request for %v was refused although %v was free."
	despitePools = "OOM despite free memory in private pools: a request for %v failed although %v was free in pools " +
		"that only CUDA graphs or their owners may use."
	genuine = "Genuine OOM: live tensors used %v when %v more was requested"

	absurdSize = "Such sizes come from a negative or overflowed dimension, a broadcast by mistake, or a length " +
		"read from damaged data."
	poolsKeep = "A private pool keeps its segments, even free ones, while a graph or a MemPool object uses it, and " +
		"never serves requests from outside."

	needLess = "Reduce peak usage: a smaller batch or sequence, gradient checkpointing, lower precision, or sharding " +
		"across devices."
	seeQuadratic = "Look for a quadratic intermediate, such as an unfused attention matrix or a broadcast by " +
		"mistake, in the line that "
	seeOthers = "See with nvidia-smi who else uses the device; end leftover processes, or choose a free device with " +
		"CUDA_VISIBLE_DEVICES."
	sharePools = "Let graphs share a pool (torch.cuda.graph(..., pool=...)), capture fewer sizes, or capture the " +
		"largest first."
	raiseLimit = "Raise or remove the limit: torch.cuda.set_per_process_memory_fraction, or " +
		"per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF."
	tryExpandable = "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. It does not always help: `snapana whatif` " +
		"on a snapshot tells what each setting would do."
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
		f.Say(impossible, r.Requested, than)
		f.Because(absurdSize)
		f.Because("Even an empty GPU could not serve it, so no setting and no smaller model helps.")
		f.Next = []string{"Print the shapes and the dtype that go into the call from " + attribution.Placed(r.Site) +
			".", "If the size is intended, do the work in chunks or shard the tensor."}
	case oom.TooLarge:
		f.Status = finding.Capacity
		f.Say("OOM: a single request for %v exceeds the %v that this process could have with every tensor freed.",
			r.Requested, r.AtLeast)
		f.Because("That is the most that the trace shows, reserved and free together; a snapshot does not record " +
			"whether other processes use the rest of the device.")
		f.Next = []string{seeQuadratic + "made the request.",
			"See with nvidia-smi whether other processes use the device.", needLess}
	case oom.Unsplit:
		f.Status, f.Confidence = finding.Limit, finding.Medium
		f.Say("OOM despite free reserved memory: a request for %v was refused although one free piece had %v.",
			r.Requested, r.LargestUsable)
		f.Because("max_split_size_mb keeps large pieces from smaller requests, and so does a pool that the trace " +
			"does not name: one of these was in the way.")
		f.Next = []string{"If max_split_size_mb is set, try without it.",
			"See in the segment map which segments contain the free memory."}
	case oom.Fragmentation:
		f.Status, f.Bytes = finding.Fragmentation, int64(r.Usable)
		f.Say(byFragments, r.Requested, r.Usable)
		pieces(f)
		if r.DeviceFree > r.Segment {
			f.Because("The device had room as well, but a memory fraction or the driver refused it.")
		}
	case oom.Joined:
		f.Status, f.Confidence, f.Bytes = finding.Fragmentation, finding.Medium, int64(r.Usable)
		f.Say(byJoin, r.Requested, r.Usable, r.DeviceFree)
		pieces(f)
	case oom.Fraction:
		f.Status = finding.Limit
		f.Say("OOM at the process limit: a request for %v was refused although the device had %v free.", r.Requested,
			r.DeviceFree)
		f.Because("per_process_memory_fraction is %g: the process may reserve that share of the device, and %v more "+
			"on top of the %v reserved would exceed it.", r.Fraction, r.Segment, r.Reserved)
		f.Next = []string{raiseLimit, needLess}
	case oom.Room:
		f.Status = finding.Limit
		f.Say(despiteRoom, r.Requested, r.DeviceFree)
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, which no snapshot records, and for a " +
			"container or MIG limit.",
			"Other processes that come and go on the device look the same: they may have freed the memory just then."}
	case oom.Pools:
		f.Status, f.Bytes = finding.Pools, int64(r.PrivatePools)
		f.Say(despitePools, r.Requested, r.PrivatePools)
		f.Because(poolsKeep)
		f.Next = []string{sharePools, "Delete graphs that are no longer replayed: that returns their pools."}
	case oom.OtherStream:
		unusable := r.OtherStreams + r.Pending
		f.Status, f.Bytes = finding.Limit, int64(unusable)
		f.Say("OOM despite memory of other streams: a request for %v failed although %v was free there or waited for "+
			"a stream.", r.Requested, unusable)
		f.Because("Free memory serves only its own stream; a block under record_stream stays taken until that stream " +
			"is done with it.")
		f.Next = []string{"Allocate on the stream that has the free memory, or use fewer streams.",
			"Call torch.cuda.synchronize() before large phases, so that waiting blocks are free by then; with " +
				"record_stream, free them earlier."}
	case oom.Others:
		besideOthers(f, r)
	case oom.Growth:
		byGrowth(f, r)
	case oom.Capacity:
		f.Status = finding.Capacity
		f.Say(genuine+"; no allocator setting would have helped.", r.Active, r.Requested)
		if s := f.Evidence.Setting; s != nil && s.Gives == "" {
			f.Because("Replayed under %d allocator settings, including expandable_segments: %s.", s.Tried, inVain(s))
		}
		if g := r.Largest; g != nil {
			f.Because("The largest share, %v in %s, came from %s.", g.Bytes, units.Plural(g.Blocks, "block"),
				attribution.Placed(g.Site))
		}
		f.Next = []string{needLess, "Look at the largest live stacks at the OOM below: each is a candidate for " +
			"savings."}
	}
}

func besideOthers(f *finding.Finding, r *finding.Request) {
	f.Status = finding.Others
	if r.Grown >= r.Segment-r.DeviceFree {
		f.Bytes = int64(r.Grown)
		f.Say("OOM on a shared device: a request for %v failed after memory outside PyTorch had grown by %v.",
			r.Requested, r.Grown)
		f.Because("Earlier in the trace this process had %v, reserved and free together; at the failure it had %v.",
			r.AtLeast, r.Reserved+r.DeviceFree)
	} else {
		f.Bytes, f.Confidence = int64(r.Elsewhere), finding.Medium
		f.Say("OOM on a shared device: a request for %v failed, and %v of the device's %v is neither free nor "+
			"PyTorch's.", r.Requested, r.Elsewhere, r.DeviceTotal)
	}
	f.Because("That memory belongs to other processes, or to this one outside PyTorch's allocator: the CUDA context, " +
		"NCCL, other libraries. A snapshot does not tell them apart.")
	f.Next = []string{seeOthers, "If nobody else does, look for libraries in this process with memory of their own."}
}

func byGrowth(f *finding.Finding, r *finding.Request) {
	g := f.Evidence.Growth
	if h := f.Evidence.Holder; h != nil { // whose container is not full
		f.Status, f.Bytes = finding.Capacity, int64(h.Bound.Full)
		f.Say("Genuine OOM: a request for %v failed while a buffer was still filling (%s); when full it takes %v.",
			r.Requested, entries(h.Bound), h.Bound.Full)
		f.Because("Seen in the process: %s holds %v. Without it the request would have been served.", h.Reference,
			h.Bytes)
		f.Next = []string{"Give it a smaller bound, or keep its entries off the GPU (.cpu()) until they are used.",
			needLess}
		return
	}
	f.Status, f.Bytes, f.Heuristic, f.Confidence = finding.Ghost, int64(r.GhostBytes), true, growthConfidence(g)
	if f.Confidence == finding.High {
		f.Confidence = finding.Medium
	}
	f.Say("OOM from a leak: a request for %v failed after a loop had accumulated %v.", r.Requested, r.GhostBytes)
	f.Because("%s (%s of the memory in use) accumulate over the iterations of %s; most come from %s.",
		units.Plural(r.Ghosts, "block"), units.Percent(int64(r.GhostBytes), int64(r.Active)), g.Loop,
		attribution.Placed(g.Site))
	f.Because("Without them the request would have been served.")
	f.Next = []string{"Find the list, dict, closure or hook that collects these tensors: the finding on growth below " +
		"has the evidence and says what to do.", needLess}
}
