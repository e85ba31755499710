package verdict

import (
	"slices"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// Message says of one of a log's messages why the request failed and what to do. Of the main one it
// also says what the snapshot beside the log knows.
func Message(l *oom.Log, g *oom.Group) finding.Finding {
	f := finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: g.Device, Bytes: g.Tried.Bytes,
		Evidence: finding.Evidence{Request: printed(g)},
	}
	said(g, &f)
	caveats(g, &f)
	if g.Backend != "cpu" && g.Backend != "mps" || f.Status == finding.NoData {
		f.Wants = finding.WantSnapshot
	}
	if g == &l.Groups[l.Main] && (g.Cause == oom.Fragmentation || g.Cause == oom.Joined) {
		f.Next[0] = expandable(l.Failure, f.Next[0])
	}
	return f
}

// printed is what a message prints of its request.
func printed(g *oom.Group) *finding.Request {
	size := func(s oomlog.Size) units.Size {
		if !s.Known() {
			return oom.Unknown
		}
		return units.Size(s.Bytes)
	}
	v := &finding.Request{Cause: string(g.Cause), Requested: size(g.Tried), Segment: size(g.Tried),
		Failures: int(g.Count), Reserved: size(g.Reserved), Active: size(g.Allocated), LargestPiece: oom.Unknown,
		LargestUsable: oom.Unknown, Servable: oom.Unknown, Usable: size(g.Unallocated),
		PrivatePools: size(g.PrivatePools), OtherStreams: oom.Unknown, Pending: oom.Unknown,
		ReservedBefore: oom.Unknown, DeviceFree: size(g.Free), DeviceTotal: size(g.Total), AtLeast: oom.Unknown,
		Elsewhere: size(g.Other), Grown: oom.Unknown, Limit: size(g.Allowed), Fraction: 1}
	if g.Ledger != nil {
		for _, row := range []oom.Row{oom.RowForeign, oom.RowOthers} {
			if n, ok := g.Ledger.Get(row); ok {
				v.Elsewhere = units.Size(n)
			}
		}
	}
	return v
}

// sized is a printed size in words.
func sized(n units.Size) string {
	if n == oom.Unknown {
		return "an unknown size"
	}
	return n.String()
}

// said fills in a finding by the message's cause.
func said(g *oom.Group, f *finding.Finding) {
	v := f.Evidence.Request
	asked, free, pieces := sized(v.Requested), max(v.DeviceFree, 0), max(v.Usable, 0)
	say := func(status finding.Status, title string, args ...any) {
		f.Status = status
		f.Say(title, args...)
	}
	switch g.Cause {
	case oom.Absurd:
		if g.Family == oomlog.Exabyte {
			asked = "more than 1 EB"
		}
		say(finding.Absurd, impossible, asked, "no device has that much")
		f.Because(absurdSize)
		f.Do("Print the shapes that go into the call that the traceback names, and check them before it.")
	case oom.TooLarge:
		say(finding.Absurd, "OOM: a single request for %s exceeds the %s of the whole device; no setting can serve it.",
			asked, sized(v.DeviceTotal))
		f.Because("The request alone is larger than the device, whatever else is in memory.")
		f.Do(seeQuadratic+"the traceback names.", needLess)
	case oom.Limit:
		limited(g, f)
	case oom.Fragmentation:
		say(finding.Fragmentation, byFragments, asked, pieces)
		f.Because("Whole free segments were returned to the device before the message was written, so what is " +
			"unallocated lies between live blocks, and no piece was large enough.")
		f.Do(tryExpandable,
			"If it is already on (the message recommends it even then) or not supported, find the small long-lived "+
				"blocks that keep the segments and allocate them first.")
	case oom.Pools:
		say(finding.Pools, despitePools, asked, v.PrivatePools)
		f.Because(poolsKeep)
		f.Do(sharePools)
	case oom.Room:
		say(finding.Limit, despiteRoom, asked, free)
		f.Because("The message names no limit of the process. Something else refused the request, or another process " +
			"had just freed that memory.")
		f.Do("Look for torch.cuda.set_per_process_memory_fraction, a container, MIG or WSL limit, a limit on pinned " +
			"or virtual memory (ulimit -v), and for processes that come and go on the device.")
	case oom.Joined:
		say(finding.Fragmentation, byJoin, asked, pieces, free)
		f.Because("Neither is enough alone: a segment must be one piece, unless expandable_segments lets free pieces " +
			"and free device memory serve one request.")
		f.Do(tryExpandable, needLess)
	case oom.Others:
		elsewhere(g, f)
	case oom.Capacity:
		say(finding.Capacity, genuine+".", max(v.Active, 0), asked)
		switch {
		case g.Spilled(): // see caveats
		case v.Usable != oom.Unknown:
			f.Because("Free pieces (%v) and free device memory (%v) together are less than the request: no allocator "+
				"setting would have helped.", pieces, free)
		default:
			f.Because("The device had %v free.", free)
		}
		f.Do(needLess)
	case oom.Outside:
		say(finding.Limit, "CUDA itself ran out of memory, outside PyTorch's caching allocator; the message has no "+
			"figures.")
		f.Because("It comes from the CUDA context, cuBLAS, cuDNN, NCCL or a library with its own memory: they get " +
			"only what the allocator and other processes leave.")
		f.Because("CUDA may report a failed call late: the line that the traceback names need not be the cause.")
		f.Do("Leave memory for them: lower PyTorch's share with torch.cuda.set_per_process_memory_fraction, or call "+
			"torch.cuda.empty_cache() first.",
			"See with nvidia-smi whether another process fills the device.")
	case oom.Host:
		say(finding.Limit, "The machine's own memory ran out, not a GPU's: %s was requested.", asked)
		f.Do("Check the machine's free memory and the limit of its container; use fewer loader workers or less " +
			"pinned memory.")
	default:
		say(finding.NoData, "OOM: the message has too few figures to say why.")
		f.Because("It was cut, or this kind of allocator prints no more.")
		f.Do("Look for the complete message further up in the log, or in another rank's log.")
	}
}

func limited(g *oom.Group, f *finding.Finding) {
	v := f.Evidence.Request
	f.Status = finding.Limit
	asked := sized(v.Requested)
	switch g.Family {
	case oomlog.MPS:
		f.Say("OOM at the watermark: %s more would exceed the %s that PyTorch may use.", asked, sized(v.Limit))
		f.Because("PyTorch uses %s, other allocations %s.", sized(v.Active), sized(v.Elsewhere))
		f.Do(needLess,
			"PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the watermark; without one the whole machine may run out of "+
				"memory.")
		return
	case oomlog.Rejected:
		f.Say("OOM at the process limit: a request for %s was refused before the device was asked.", asked)
		f.Because("throw_on_cudamalloc_oom is set, and the request would exceed per_process_memory_fraction. PyTorch " +
			"did not retry, so it did not free its cache.")
	default:
		f.Say("OOM at the process limit: %s more would exceed the %s that the process may use.", asked, sized(v.Limit))
		f.Because("The device had %s free; a memory fraction keeps it from this process.", sized(v.DeviceFree))
	}
	f.Do(raiseLimit, needLess)
}

func elsewhere(g *oom.Group, f *finding.Finding) {
	v := f.Evidence.Request
	f.Status = finding.Others
	if g.Family == oomlog.MPS {
		f.Say("OOM beside other allocations: a request for %s failed, and memory outside PyTorch's allocator takes %v.",
			sized(v.Requested), v.Elsewhere)
		f.Because("The watermark limits both together.")
		f.Do("Close other programs that use the GPU, or free what this one allocated outside PyTorch.")
		return
	}
	f.Say("OOM on a shared device: a request for %s would fit if other memory on the device were free.",
		sized(v.Requested))
	f.Do(seeOthers)
	if _, ok := g.Ledger.Get(oom.RowOthers); ok {
		f.Because("Other processes use %v of the device.", v.Elsewhere)
		return
	}
	f.Because("%v of the device is neither free nor PyTorch's: it belongs to other processes, or to this one's CUDA "+
		"context and libraries; the message does not tell them apart.", v.Elsewhere)
}

// expandable is the advice on expandable segments: what a replay of the snapshot says, or else what
// is said of the message alone.
func expandable(failure *oom.Report, otherwise string) string {
	if failure == nil {
		return otherwise
	}
	for _, a := range failure.Answers {
		switch {
		case a.ID != "setting" || a.Conf != "expandable_segments:True" || a.Needs != "":
		case a.Fits == oom.Yes:
			return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in a replay of the snapshot it serves the " +
				"request."
		default:
			return "expandable_segments:True does not help here, although the message recommends it: in a replay of " +
				"the snapshot the request fails with it too."
		}
	}
	return otherwise
}

// caveats adds what misleads in a message.
func caveats(g *oom.Group, f *finding.Finding) {
	v := f.Evidence.Request
	switch g.Family {
	case oomlog.Rejected, oomlog.Async, oomlog.MPS, oomlog.Outside: // they print the request itself
	default:
		switch v.Segment {
		case 2 << 20:
			f.Because("2.00 MiB is the segment that PyTorch asked the device for; the tensor has at most 1 MiB.")
		case 20 << 20:
			f.Because("20.0 MiB is the segment that PyTorch asked the device for; the tensor has between 1 and 20 MiB.")
		}
	}
	if (g.Cause == oom.Fragmentation || g.Cause == oom.Pools) && v.DeviceFree > v.Requested {
		f.Because("The device had %v free as well, but a limit that the message does not name, or the driver, "+
			"refused that too.", v.DeviceFree)
	}
	if slices.ContainsFunc(g.Processes, func(p oomlog.Process) bool { return p.Unavailable }) {
		f.Because("17179869184.00 GiB means \"not available\": the driver does not tell processes apart (Windows, " +
			"WSL, some containers).")
	}
	if g.Spilled() {
		f.Because("PyTorch uses %s on a device of %s: the driver moved the rest to the machine's memory, which is "+
			"slow.", sized(v.Reserved), sized(v.DeviceTotal))
	}
	if v.PrivatePools != oom.Unknown {
		f.Because("%v of what counts as allocated is free in private pools of CUDA graphs.", v.PrivatePools)
	}
	if g.Ledger != nil && g.Ledger.Guessed != 0 {
		f.Because("Process %d is assumed to be this one, by its size: inside a container process numbers differ.",
			g.Ledger.Guessed)
	}
}
