package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
)

// outOfMemory puts the last request that failed into words.
func (j *judge) outOfMemory(e *Evidence) {
	t, r := e.Timeline, e.Failure
	last := t.OOMs[len(t.OOMs)-1]
	f := finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: t.Device, Bytes: r.Requested,
		Events: []int{r.Event}, Stack: attribution.Frames(j.s, last.Stack),
	}
	f.Why = j.around(e)
	if len(t.OOMs) > 1 {
		f.Why = append(f.Why, fmt.Sprintf("%d requests failed in the trace; this is the last.", len(t.OOMs)))
	}
	words[r.Cause](j, e, &f)
	j.add(f)
}

// around says what the memory was like when the request failed.
func (j *judge) around(e *Evidence) []string {
	t, r := e.Timeline, e.Failure
	last := t.OOMs[len(t.OOMs)-1]
	unused := r.After.Reserved - r.After.Active
	pieces := fmt.Sprintf("%s free but in pieces; the largest free piece was %s.", units.Bytes(unused), units.Bytes(e.OOM.Frag.LargestFree))
	if unused == 0 {
		pieces = "none of it free."
	}
	why := []string{
		fmt.Sprintf("The request for %s came from %s.", units.Bytes(r.Requested), attribution.Place(j.s, last.Stack)),
		fmt.Sprintf("At that moment %s was reserved: %s in live blocks, %s", units.Bytes(r.After.Reserved), units.Bytes(r.After.Active), pieces),
	}
	if r.Released.Segments > 0 {
		why = append(why, fmt.Sprintf("Before it gave up, the allocator returned %s (%s) to the device: %s had been reserved.",
			units.Plural(r.Released.Segments, "free segment"), units.Bytes(r.Released.Bytes), units.Bytes(r.Before.Reserved)))
	}
	if r.DeviceFree >= 0 {
		why = append(why, fmt.Sprintf("The device itself had %s free, so that the largest request that could still succeed was one for %s.",
			units.Bytes(r.DeviceFree), units.Bytes(r.Servable)))
	}
	c := &e.OOM.Frag.Classes
	if n := e.OOM.Frag.Private; n > r.Requested/4 {
		why = append(why, fmt.Sprintf("%s of the free memory is kept for private pools, and cannot serve this request.", units.Bytes(n)))
	}
	if n := c.Stream - e.OOM.Frag.Private; n > r.Requested/4 {
		why = append(why, fmt.Sprintf("%s of the free memory is another stream's, and cannot serve this request.", units.Bytes(n)))
	}
	if c.Pending > r.Requested/4 {
		why = append(why, fmt.Sprintf("%s was freed by the program but waits for another stream to be done with it (record_stream).", units.Bytes(c.Pending)))
	}
	return why
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
	seeFits = "See in the segment map which segments hold the free memory."
)

// words fills in a finding by the cause.
var words = map[oom.Cause]func(*judge, *Evidence, *finding.Finding){
	oom.Absurd:        (*judge).absurd,
	oom.TooLarge:      (*judge).tooLarge,
	oom.Unsplit:       (*judge).unsplit,
	oom.Fragmentation: (*judge).inPieces,
	oom.Fraction:      (*judge).fraction,
	oom.Room:          (*judge).room,
	oom.Pools:         (*judge).pools,
	oom.OtherStream:   (*judge).otherStream,
	oom.Others:        (*judge).others,
	oom.Growth:        (*judge).leak,
	oom.Joined:        (*judge).joined,
	oom.Capacity:      (*judge).capacity,
}

func (j *judge) absurd(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Absurd
	than := "no device has that much"
	if r.Total != oom.Unknown {
		than = fmt.Sprintf("the whole device has %s", units.Bytes(r.Total))
	}
	f.Title = fmt.Sprintf("An impossible request: %s was asked for at once, and %s.", units.Bytes(r.Requested), than)
	f.Why = append(f.Why, "Even an empty GPU would not serve it, so that no setting and no smaller model helps.")
	f.Next = []string{"Print the shapes and the dtype that go into the call at " + attribution.Place(j.s, e.Timeline.OOMs[len(e.Timeline.OOMs)-1].Stack) + ": a negative or overflowed dimension, or a broadcast by mistake, makes such sizes.",
		"If it is meant, do the work in chunks or shard the tensor."}
}

func (j *judge) tooLarge(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Capacity
	f.Title = fmt.Sprintf("Out of memory: one request for %s, more than the %s that this process could have with every tensor freed.", units.Bytes(r.Requested), units.Bytes(r.AtLeast))
	f.Why = append(f.Why, "The trace never shows more than that to be had, reserved and free together; whether others hold the rest of the device, a snapshot does not say.")
	f.Next = []string{seeQuadratic + "that asked.",
		"See with nvidia-smi whether other processes hold the device.", needLess}
}

func (j *judge) unsplit(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status, f.Confidence = finding.Limit, finding.Medium
	f.Title = fmt.Sprintf("Out of memory beside free memory: a request for %s was refused although one free piece had %s.", units.Bytes(r.Requested), units.Bytes(r.Largest))
	f.Why = append(f.Why, "max_split_size_mb keeps large pieces from smaller requests, and a pool that the trace does not name would, too: one of these stood in the way.")
	f.Next = []string{"If max_split_size_mb is set, try without it.", seeFits}
}

func (j *judge) inPieces(e *Evidence, f *finding.Finding) {
	r := e.Failure
	c := &e.OOM.Frag.Classes
	unused := c.Releasable + c.Hard + c.Soft
	f.Status, f.Bytes = finding.Fragmentation, unused
	f.Title = fmt.Sprintf("Out of memory by fragmentation: a request for %s failed while %s of reserved memory lay free in pieces.", units.Bytes(r.Requested), units.Bytes(unused))
	f.Why = append(f.Why, pinLine(j.s, e.Timeline, e.OOM))
	f.Why = append(append(f.Why, settledLine(j.s, e.Timeline, e.OOM)...), rankLine(j.s, e.Timeline, e.OOM)...)
	if r.DeviceFree > r.Segment {
		f.Why = append(f.Why, "The device had room as well: a memory fraction, or the driver, refused that.")
	}
	f.Next = append(j.defragment(e.OOM, e), j.plan(e)...)
}

func (j *judge) joined(e *Evidence, f *finding.Finding) {
	r := e.Failure
	c := &e.OOM.Frag.Classes
	unused := c.Releasable + c.Hard + c.Soft
	f.Status, f.Confidence, f.Bytes = finding.Fragmentation, finding.Medium, unused
	f.Title = fmt.Sprintf("Out of memory: a request for %s would have fit in the free pieces (%s) and the device's rest (%s) joined.", units.Bytes(r.Requested), units.Bytes(unused), units.Bytes(r.DeviceFree))
	f.Why = append(f.Why, pinLine(j.s, e.Timeline, e.OOM))
	f.Next = append(j.defragment(e.OOM, e), j.plan(e)...)
}

func (j *judge) fraction(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Limit
	f.Title = fmt.Sprintf("Out of memory by the process's limit: a request for %s was refused although the device had %s free.", units.Bytes(r.Requested), units.Bytes(r.DeviceFree))
	f.Why = append(f.Why, fmt.Sprintf("per_process_memory_fraction is %g: the process may reserve that share of the device, and %s more than the %s that it holds would exceed it.",
		r.Fraction, units.Bytes(r.Segment), units.Bytes(r.After.Reserved)))
	f.Next = []string{"Raise or remove per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF, or the call of torch.cuda.set_per_process_memory_fraction.", needLess}
}

func (j *judge) room(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Limit
	f.Title = fmt.Sprintf("Out of memory with room on the device: a request for %s was refused although %s was free.", units.Bytes(r.Requested), units.Bytes(r.DeviceFree))
	f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, which no snapshot records, and for a container or MIG limit.",
		"Other processes that come and go on the device look the same: it may have become free only then."}
}

func (j *judge) pools(e *Evidence, f *finding.Finding) {
	n := e.OOM.Frag.Private
	f.Status, f.Bytes = finding.Pools, n
	f.Title = fmt.Sprintf("Out of memory beside private pools: a request for %s failed while %s lay free in pools that only CUDA graphs or their owners may use.", units.Bytes(e.Failure.Requested), units.Bytes(n))
	f.Why = append(f.Why, "A private pool keeps its segments, the free ones too, as long as a graph or a MemPool object uses it, and never serves requests from outside.")
	f.Next = []string{sharePools,
		"Delete graphs that are not replayed any more: their pools are returned then."}
}

func (j *judge) otherStream(e *Evidence, f *finding.Finding) {
	c := &e.OOM.Frag.Classes
	n := c.Stream - e.OOM.Frag.Private
	f.Status, f.Bytes = finding.Limit, n+c.Pending
	f.Title = fmt.Sprintf("Out of memory beside another stream's memory: a request for %s failed while %s was free there or waited for a stream.", units.Bytes(e.Failure.Requested), units.Bytes(n+c.Pending))
	f.Why = append(f.Why, "Free memory serves only its own stream; a block under record_stream stays taken until that stream is done with it.")
	f.Next = []string{"Allocate on the stream that has the free memory, or use fewer streams.",
		"Call torch.cuda.synchronize() before large phases, so that blocks that wait are free; with record_stream, free them earlier."}
}

func (j *judge) others(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Others
	if r.Lost >= r.Segment-r.DeviceFree {
		f.Bytes = r.Lost
		f.Title = fmt.Sprintf("Out of memory on a shared device: %s was asked for, and memory outside PyTorch had grown by %s.", units.Bytes(r.Requested), units.Bytes(r.Lost))
		f.Why = append(f.Why, fmt.Sprintf("Earlier in the trace this process had %s, reserved and free together; at the failure it was %s.", units.Bytes(r.AtLeast), units.Bytes(r.After.Reserved+r.DeviceFree)))
	} else {
		f.Bytes, f.Confidence = r.Elsewhere, finding.Medium
		f.Title = fmt.Sprintf("Out of memory on a shared device: %s was asked for, and %s of its %s are neither free nor PyTorch's.", units.Bytes(r.Requested), units.Bytes(r.Elsewhere), units.Bytes(r.Total))
	}
	f.Why = append(f.Why, "It is other processes', or this one's own outside of PyTorch's allocator: the CUDA context, NCCL, other libraries. A snapshot does not tell them apart.")
	f.Next = []string{seeOthers,
		"If nobody else is, look for libraries with memory of their own in this process."}
}

func (j *judge) leak(e *Evidence, f *finding.Finding) {
	g := &e.Failure.Ghosts
	top := &e.Growth[g.Top]
	if s := j.seen.Of(top)[0]; s.Holder != nil && s.Holder.Filling() {
		b := s.Holder.Bound
		f.Status, f.Bytes = finding.Capacity, b.Full
		f.Title = fmt.Sprintf("Out of memory for real: %s was asked for while a buffer was still filling, with %s; full it takes %s.", units.Bytes(e.Failure.Requested), entries(b), units.Bytes(b.Full))
		f.Why = append(f.Why, fmt.Sprintf("Seen in the process: %s keeps %s. Without it the request would have been served.", s.Holder.Reference.String(), units.Bytes(s.Holder.Bytes)))
		f.Next = []string{"Give it a smaller bound, or keep its entries off the GPU (.cpu()) until they are used.", needLess}
		return
	}
	f.Status, f.Bytes, f.Heuristic, f.Confidence = finding.Ghost, g.Bytes, true, growthConfidence(top)
	if f.Confidence == finding.High {
		f.Confidence = finding.Medium
	}
	f.Title = fmt.Sprintf("Out of memory by growth: %s was asked for, and %s of the memory is what a loop leaves behind with every iteration.", units.Bytes(e.Failure.Requested), units.Bytes(g.Bytes))
	f.Why = append(f.Why, fmt.Sprintf("%s (%s of active memory) grow with the loop in %s; most comes from %s.", units.Plural(g.Blocks, "block"),
		units.Percent(g.Bytes, e.Failure.After.Active), j.frame(top.Loop), attribution.Place(j.s, top.Stacks[0])),
		"Without them the request would have been served.")
	f.Next = []string{"Find the list, dict, closure or hook that collects these tensors: the finding on growth below has the evidence and what to do.", needLess}
}

func (j *judge) capacity(e *Evidence, f *finding.Finding) {
	r := e.Failure
	f.Status = finding.Capacity
	f.Title = fmt.Sprintf("Out of memory for real: live tensors held %s when %s more was asked for; no allocator setting helps.", units.Bytes(r.After.Active), units.Bytes(r.Requested))
	if a := e.WhatIf; a != nil && a.Licence.Trusted && a.Best < 0 {
		f.Why = append(f.Why, "This is proven: "+noSetting(e))
	}
	if len(e.OOM.Live) > 0 {
		g := e.OOM.Live[0]
		f.Why = append(f.Why, fmt.Sprintf("The largest holder is %s with %s in %s.", attribution.Place(j.s, g.Stack), units.Bytes(g.Rounded), units.Plural(g.Count, "block")))
	}
	f.Next = []string{needLess, "Look at the largest live stacks at the OOM below: each is a place to save."}
}

// plan says which blocks to free so that the request could have been served.
func (j *judge) plan(e *Evidence) []string {
	p := &e.Failure.Plan
	if p.Blocks == 0 {
		return nil
	}
	from := attribution.Place(j.s, p.Sites[0].Stack)
	if more := len(p.Sites) - 1; more > 0 {
		from += " and " + units.Plural(more, "other stack")
	}
	gives := fmt.Sprintf("that would return %s in %s", units.Bytes(p.Returned), units.Plural(p.Segments, "segment"))
	if p.Hole > 0 {
		gives = fmt.Sprintf("that would leave one free piece of %s", units.Bytes(p.Hole))
	}
	enough := "enough for the request."
	if p.Fewest {
		enough = "enough for the request; fewer blocks are not."
	}
	return []string{fmt.Sprintf("Or free %s (%s, from %s): %s, %s", units.Plural(p.Blocks, "live block"), units.Bytes(p.Bytes), from, gives, enough)}
}
