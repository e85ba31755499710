package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// Advice that several causes share.
const (
	needLess = "Reduce peak usage: a smaller batch or sequence, gradient checkpointing, lower precision, or sharding " +
		"across devices."
	raiseLimit = "Raise or remove the limit: torch.cuda.set_per_process_memory_fraction, or " +
		"per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF."
	tryExpandable = "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True. " + notAlways
	notAlways     = "It does not always help: a replay of a snapshot tells what each setting would do."
	findSmall     = "find the small long-lived blocks that keep the segments and allocate them first."
)

// sized is a size in words, which a message need not print.
func sized(n units.Size) string {
	if n == oom.Unknown {
		return "an unknown size"
	}
	return n.String()
}

// explain says why a request failed and what to do, from the evidence of a snapshot or of a message in a log.
func explain(f *finding.Finding) {
	r := f.Evidence.Request
	asked, where := sized(r.Requested), "the call from "+attribution.Placed(r.Site)
	if r.Family != "" {
		where = "the call that the traceback names"
	}
	says := func(status finding.Status, bytes units.Size, title string, args ...any) {
		f.Status, f.Bytes = status, int64(bytes)
		f.Say(title, args...)
	}
	switch oom.Cause(r.Cause) {
	case oom.Absurd:
		than := "no device has that much"
		if r.DeviceTotal != oom.Unknown {
			than = fmt.Sprintf("the whole device has %v", r.DeviceTotal)
		}
		if r.Requested == oom.Unknown {
			asked = "more than 1 EB"
		}
		says(finding.Absurd, r.Requested, "An impossible request: %s was requested at once, and %s.", asked, than)
		f.Because("Such sizes come from a negative or overflowed dimension, a broadcast by mistake, or a length read " +
			"from damaged data.")
		f.Because("Even an empty GPU could not serve it, so no setting and no smaller model helps.")
		f.Do("Print the shapes and the dtype that go into "+where+".",
			"If the size is intended, do the work in chunks or shard the tensor.")
	case oom.TooLarge:
		f.Do("Look for a quadratic intermediate, such as an unfused attention matrix or a broadcast by mistake, in " +
			where + ".")
		if r.AtLeast == oom.Unknown {
			says(finding.Absurd, r.Requested, "OOM: a single request for %s exceeds the %s of the whole device; no "+
				"setting can serve it.", asked, sized(r.DeviceTotal))
			f.Because("The request alone is larger than the device, whatever else is in memory.")
		} else {
			says(finding.Capacity, r.Requested, "OOM: a single request for %s exceeds the %v that this process could "+
				"have with every tensor freed.", asked, r.AtLeast)
			f.Because("That is the most that the trace shows, reserved and free together; a snapshot does not record " +
				"whether other processes use the rest of the device.")
			f.Do("See with nvidia-smi whether other processes use the device.")
		}
		f.Do(needLess)
	case oom.Limit, oom.Fraction:
		f.Status = finding.Limit
		limited(f, r, asked)
	case oom.Unsplit:
		f.Confidence = finding.Medium
		says(finding.Limit, r.Requested, "OOM despite free reserved memory: a request for %s was refused although one "+
			"free piece had %v.", asked, r.LargestUsable)
		f.Because("max_split_size_mb keeps large pieces from smaller requests, and so does a pool that the trace " +
			"does not name: one of these was in the way.")
		f.Do("If max_split_size_mb is set, try without it.",
			"See in the segment map which segments contain the free memory.")
	case oom.Fragmentation:
		says(finding.Fragmentation, r.Usable, "OOM from fragmentation: a request for %s failed although %v of "+
			"reserved memory was free, in pieces too small.", asked, r.Usable)
		if f.Evidence.Fragments != nil {
			pieces(f)
		} else {
			f.Because("Whole free segments were returned to the device before the message was written, so what is " +
				"unallocated lies between live blocks, and no piece was large enough.")
			on := ""
			if r.Hint == "expandable_segments" {
				on = " (the message recommends it even then)"
			}
			f.Do(tryExpandable, "If it is already on"+on+" or not supported, "+findSmall)
		}
		refused(f, r)
	case oom.Joined:
		f.Confidence = finding.Medium
		says(finding.Fragmentation, r.Usable, "OOM from fragmentation: a request for %s would fit if the free pieces "+
			"(%v) and the free device memory (%v) were contiguous.", asked, r.Usable, r.DeviceFree)
		if f.Evidence.Fragments != nil {
			pieces(f)
		} else {
			f.Because("Neither is enough alone: a segment must be one piece, unless expandable_segments lets free " +
				"pieces and free device memory serve one request.")
			f.Do(tryExpandable, needLess)
		}
	case oom.Room:
		says(finding.Limit, r.Requested, "OOM despite free device memory: a request for %s was refused although %v "+
			"was free.", asked, max(r.DeviceFree, 0))
		no := "No limit of the process is recorded"
		if r.Limit != oom.Unknown {
			no = fmt.Sprintf("The limit of the process (%v) would have allowed it", r.Limit)
		}
		f.Because("%s: something else refused the request, or another process had just freed that memory.", no)
		if r.Usable > r.Requested {
			f.Because("%v of reserved memory was free too, in pieces too small.", r.Usable)
		}
		f.Do("Look for torch.cuda.set_per_process_memory_fraction, which is not recorded, for a container, MIG or " +
			"WSL limit, for one on pinned or virtual memory (ulimit -v), and for processes that come and go on the " +
			"device.")
	case oom.Pools:
		says(finding.Pools, r.PrivatePools, "OOM despite free memory in private pools: a request for %s failed "+
			"although %v was free in pools that only CUDA graphs or their owners may use.", asked, r.PrivatePools)
		f.Because("A private pool keeps its segments, even free ones, while a graph or a MemPool object uses it, and " +
			"never serves requests from outside.")
		refused(f, r)
		f.Do("Let graphs share a pool (torch.cuda.graph(..., pool=...)), capture fewer sizes, or capture the largest "+
			"first.",
			"Delete graphs that are no longer replayed: that returns their pools.")
	case oom.OtherStream:
		unusable := r.OtherStreams + r.Pending
		says(finding.Limit, unusable, "OOM despite memory of other streams: a request for %s failed although %v was "+
			"free there or waited for a stream.", asked, unusable)
		f.Because("Free memory serves only its own stream; a block under record_stream stays taken until that stream " +
			"is done with it.")
		f.Do("Allocate on the stream that has the free memory, or use fewer streams.",
			"Call torch.cuda.synchronize() before large phases, so that waiting blocks are free by then; with "+
				"record_stream, free them earlier.")
	case oom.Others:
		f.Status = finding.Others
		besideOthers(f, r, asked)
	case oom.Growth:
		byGrowth(f, r)
	case oom.Capacity:
		says(finding.Capacity, r.Requested, "Genuine OOM: live tensors used %v when %s more was requested",
			max(r.Active, 0), asked)
		pieces, free, which := max(r.Usable, 0), max(r.DeviceFree, 0), "free device memory"
		if r.DeviceFree == oom.Unknown && r.DeviceTotal != oom.Unknown {
			free, which = max(r.DeviceTotal-r.Reserved, 0), "all that PyTorch had not reserved"
		}
		s := f.Evidence.Setting
		if r.Usable != oom.Unknown && pieces+free < r.Requested {
			f.Title += "; no allocator setting would have helped"
			f.Because("Free pieces (%v) and %s (%v) together are less than the request.", pieces, which, free)
		} else if r.Family != "" && r.Usable != oom.Unknown && r.Reserved <= max(r.DeviceTotal, r.Active) &&
			oom.Slight(int64(r.Usable), int64(r.Reserved)) {
			f.Because("Only %v of the %v reserved was unallocated (%s), as is usual: no setting can win back "+
				"more than that.", pieces, r.Reserved,
				units.Percent(int64(pieces), int64(r.Reserved)))
		} else if s != nil && s.Kind == "" && s.Failed == s.Tried {
			f.Title += "; no allocator setting would have helped"
			f.Because("Free pieces (%v) and free device memory (%v) together would do, but live blocks lie between the "+
				"pieces.", pieces, free)
		} else if s != nil && r.Usable != oom.Unknown && r.Reserved > 0 {
			f.Because("Free pieces (%v) and free device memory (%v) would do in one piece, but live tensors take %s of all "+
				"that this process could have: a setting alone gains little.", pieces, free,
				units.Percent(int64(max(r.Active, 0)), int64(r.Reserved+free)))
		} else if r.DeviceFree != oom.Unknown {
			f.Because("The device had %v free.", free)
		}
		f.Title += "."
		if s != nil && s.Kind != "" {
			f.Next = append(f.Next, settings(s)...)
		} else if s != nil {
			f.Because("Replayed under %d allocator settings, including expandable_segments: %s.", s.Tried, inVain(s))
		}
		switch c := f.Evidence.Rescue; {
		case c == nil || len(c.Fit) == 0:
			f.Do(needLess)
		case c.Early:
			f.Do(early(c.Fit), needLess)
		}
		if r.Largest != nil {
			f.Do("Look at the largest live stacks at the OOM below: each is a candidate for savings.")
		}
		if r.Family == "" && r.DeviceTotal == oom.Unknown && r.DeviceFree != oom.Unknown {
			f.Do(fmt.Sprintf("If the device has much more than %v, something else uses the rest: see nvidia-smi.",
				r.Reserved+free))
		}
		if f.Evidence.Rescue != nil {
			rescue(f)
		}
	case oom.Outside:
		says(finding.Limit, r.Requested, "CUDA itself ran out of memory, outside PyTorch's caching allocator; the "+
			"message has no figures.")
		f.Because("It comes from the CUDA context, cuBLAS, cuDNN, NCCL or a library with its own memory: they get " +
			"only what the allocator and other processes leave.")
		f.Because("CUDA may report a failed call late: the line that the traceback names need not be the cause.")
		f.Do("Leave memory for them: lower PyTorch's share with torch.cuda.set_per_process_memory_fraction, or call "+
			"torch.cuda.empty_cache() first.",
			"See with nvidia-smi whether another process fills the device.")
	case oom.Host:
		says(finding.Limit, r.Requested, "The machine's own memory ran out, not a GPU's: %s was requested.", asked)
		f.Do("Check the machine's free memory and the limit of its container; use fewer loader workers or less " +
			"pinned memory.")
	case oom.TooFew:
		if len(r.Lacks) > 0 {
			says(finding.NoData, r.Requested, "OOM: a request for %s failed, and why cannot be told: the recording left out "+
				"%s events (skip_actions).", asked, units.List(r.Lacks))
			f.Because("Without them it is unknown what was live and what was free at the failure.")
			f.Do("Record again without skip_actions.", needLess)
			return
		}
		fallthrough
	default:
		says(finding.NoData, r.Requested, "OOM: the message has too few figures to say why.")
		if r.Cut || r.DeviceTotal == oom.Unknown || r.Reserved == oom.Unknown || r.DeviceFree != oom.Unknown {
			f.Because("It was cut, or this kind of allocator prints no more.")
			f.Do("Look for the complete message further up in the log, or in another rank's log.")
			return
		}
		f.Because("This release does not print how much of the device was free: PyTorch had reserved %s of %s.",
			sized(r.Reserved), sized(r.DeviceTotal))
		f.Do("See with nvidia-smi how much is free before the program starts.")
	}
}

// refused says that free memory of the device was refused too.
func refused(f *finding.Finding, r *finding.Request) {
	if r.DeviceFree > r.Segment {
		f.Because("The device had %v free as well, but a limit that is not recorded, or the driver, refused that too.",
			r.DeviceFree)
	}
}

func limited(f *finding.Finding, r *finding.Request, asked string) {
	switch oomlog.Family(r.Family) {
	case oomlog.MPS:
		f.Say("OOM at the watermark: %s more would exceed the %s that PyTorch may use.", asked, sized(r.Limit))
		f.Because("PyTorch uses %s, other allocations of this process %s.", sized(r.Active), sized(r.Elsewhere))
		if r.Elsewhere > r.Active {
			f.Do("Find what takes the larger part: allocations of this process outside PyTorch's allocator, such as " +
				"MPSGraph's and those of other libraries on Metal.")
		}
		f.Do(needLess,
			"PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the watermark; without one the whole machine may run out of "+
				"memory.")
		return
	case oomlog.Rejected:
		f.Say("OOM at the process limit: a request for %s was refused before the device was asked.", asked)
		f.Because("throw_on_cudamalloc_oom is set, and the request would exceed per_process_memory_fraction. PyTorch " +
			"did not retry, so it did not free its cache.")
	default:
		f.Say("OOM at the process limit: a request for %s was refused although the device had %s free.", asked,
			sized(r.DeviceFree))
		if r.Limit != oom.Unknown {
			f.Because("The process may use %v: a memory fraction keeps the rest of the device from it.", r.Limit)
		} else {
			f.Because("per_process_memory_fraction is %g: the process may reserve that share of the device, and %v "+
				"more on top of the %v reserved would exceed it.", r.Fraction, r.Segment, r.Reserved)
		}
	}
	f.Do(raiseLimit, needLess)
}

func besideOthers(f *finding.Finding, r *finding.Request, asked string) {
	f.Bytes = int64(r.Elsewhere)
	switch {
	case r.Grown != oom.Unknown && r.Grown >= r.Segment-r.DeviceFree:
		f.Bytes = int64(r.Grown)
		f.Say("OOM on a shared device: a request for %s failed after memory outside PyTorch had grown by %v.", asked,
			r.Grown)
		f.Because("Earlier in the trace this process had %v, reserved and free together; at the failure it had %v.",
			r.AtLeast, r.Reserved+r.DeviceFree)
	default:
		f.Confidence = finding.Medium
		f.Say("OOM on a shared device: a request for %s failed, and %v of the device's %v is neither free nor "+
			"PyTorch's.", asked, r.Elsewhere, r.DeviceTotal)
		if r.DeviceFree+r.Elsewhere >= r.Segment {
			f.Because("Without that memory the request would fit.")
		}
	}
	f.Do("See with nvidia-smi who else uses the device; end leftover processes, or choose a free device with " +
		"CUDA_VISIBLE_DEVICES.")
	if r.Apart {
		f.Because("Other processes use it, as the message lists them.")
		return
	}
	f.Because("That memory belongs to other processes, or to this one outside PyTorch's allocator: the CUDA context, " +
		"NCCL, other libraries. The figures do not tell them apart.")
	f.Do("If nobody else does, look for libraries in this process with memory of their own.")
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
	if g.Like.Use {
		f.Say("OOM after a loop had accumulated %v: a request for %v failed. A leak, or a buffer or cache that grows on "+
			"purpose.", r.GhostBytes, r.Requested)
	} else {
		f.Say("OOM from a leak: a request for %v failed after a loop had accumulated %v.", r.Requested, r.GhostBytes)
	}
	f.Because("%s (%s of the memory in use) accumulate over the iterations of %s; most come from %s.",
		units.Plural(r.Ghosts, "block"), units.Percent(int64(r.GhostBytes), int64(r.Active)), g.Loop,
		attribution.Placed(g.Site))
	f.Because("Without them the request would have been served.")
	f.Next = []string{"Find the list, dict, closure or hook that collects these tensors: the finding on growth below " +
		"has the evidence and says what to do.", needLess}
}
