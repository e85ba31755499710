package verdict

import (
	"fmt"

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
	}
	said(g, &f)
	f.Why = append(f.Why, caveats(g)...)
	if g.Backend != "cpu" && g.Backend != "mps" || f.Status == finding.NoData {
		f.Wants = finding.WantSnapshot
	}
	if g == &l.Groups[l.Main] && (g.Cause == oom.Fragmentation || g.Cause == oom.Joined) {
		f.Next[0] = expandable(l.Failure, f.Next[0])
	}
	return f
}

// sized is a printed size in words.
func sized(s oomlog.Size) string {
	if !s.Known() {
		return "an unknown size"
	}
	return units.Bytes(s.Bytes)
}

// said fills in a finding by the message's cause.
func said(g *oom.Group, f *finding.Finding) {
	asked, free, unallocated := sized(g.Tried), units.Bytes(g.Free.Bytes), g.Unallocated
	pieces := units.Bytes(unallocated.Bytes)
	say := func(status finding.Status, title string, args ...any) {
		f.Status, f.Title = status, fmt.Sprintf(title, args...)
	}
	switch g.Cause {
	case oom.Absurd:
		if g.Family == oomlog.Exabyte {
			asked = "more than 1 EB"
		}
		say(finding.Absurd, impossible, asked, "no device has that much")
		f.Why = []string{absurdSize}
		f.Next = []string{"Print the shapes that go into the call that the traceback names, and check them before it."}
	case oom.TooLarge:
		say(finding.Absurd, "OOM: a single request for %s exceeds the %s of the whole device; no setting can serve it.",
			asked, sized(g.Total))
		f.Why = []string{"The request alone is larger than the device, whatever else is in memory."}
		f.Next = []string{seeQuadratic + "the traceback names.", needLess}
	case oom.Limit:
		limited(g, f)
	case oom.Fragmentation:
		say(finding.Fragmentation, byFragments, asked, pieces)
		f.Why = []string{"Whole free segments were returned to the device before the message was written, so what is " +
			"unallocated lies between live blocks, and no piece was large enough."}
		f.Next = []string{tryExpandable,
			"If it is already on (the message recommends it even then) or not supported, find the small long-lived " +
				"blocks that keep the segments and allocate them first."}
	case oom.Pools:
		say(finding.Pools, despitePools, asked, units.Bytes(g.PrivatePools.Bytes))
		f.Why = []string{poolsKeep}
		f.Next = []string{sharePools}
	case oom.Room:
		say(finding.Limit, despiteRoom, asked, free)
		f.Why = []string{"The message names no limit of the process. Something else refused the request, or another " +
			"process had just freed that memory."}
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, a container, MIG or WSL limit, a " +
			"limit on pinned or virtual memory (ulimit -v), and for processes that come and go on the device."}
	case oom.Joined:
		say(finding.Fragmentation, byJoin, asked, pieces, free)
		f.Why = []string{"Neither is enough alone: a segment must be one piece, unless expandable_segments lets free " +
			"pieces and free device memory serve one request."}
		f.Next = []string{tryExpandable, needLess}
	case oom.Others:
		elsewhere(g, f)
	case oom.Capacity:
		say(finding.Capacity, genuine+".", units.Bytes(g.Allocated.Bytes), asked)
		switch {
		case g.Spilled(): // see caveats
		case unallocated.Known():
			f.Why = []string{fmt.Sprintf("Free pieces (%s) and free device memory (%s) together are less than the "+
				"request: no allocator setting would have helped.", pieces, free)}
		default:
			f.Why = []string{fmt.Sprintf("The device had %s free.", free)}
		}
		f.Next = []string{needLess}
	case oom.Outside:
		say(finding.Limit, "CUDA itself ran out of memory, outside PyTorch's caching allocator; the message has no "+
			"figures.")
		f.Why = []string{"It comes from the CUDA context, cuBLAS, cuDNN, NCCL or a library with its own memory: they " +
			"get only what the allocator and other processes leave.",
			"CUDA may report a failed call late: the line that the traceback names need not be the cause."}
		f.Next = []string{"Leave memory for them: lower PyTorch's share with " +
			"torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() first.",
			"See with nvidia-smi whether another process fills the device."}
	case oom.Host:
		say(finding.Limit, "The machine's own memory ran out, not a GPU's: %s was requested.", asked)
		f.Next = []string{"Check the machine's free memory and the limit of its container; use fewer loader workers or " +
			"less pinned memory."}
	default:
		say(finding.NoData, "OOM: the message has too few figures to say why.")
		f.Why = []string{"It was cut, or this kind of allocator prints no more."}
		f.Next = []string{"Look for the complete message further up in the log, or in another rank's log."}
	}
}

func limited(g *oom.Group, f *finding.Finding) {
	f.Status = finding.Limit
	asked := sized(g.Tried)
	switch g.Family {
	case oomlog.MPS:
		f.Title = fmt.Sprintf("OOM at the watermark: %s more would exceed the %s that PyTorch may use.", asked,
			sized(g.Allowed))
		f.Why = []string{fmt.Sprintf("PyTorch uses %s, other allocations %s.", sized(g.Allocated), sized(g.Other))}
		f.Next = []string{needLess, "PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the watermark; without one the whole " +
			"machine may run out of memory."}
		return
	case oomlog.Rejected:
		f.Title = fmt.Sprintf("OOM at the process limit: a request for %s was refused before the device was asked.", asked)
		f.Why = []string{"throw_on_cudamalloc_oom is set, and the request would exceed per_process_memory_fraction. " +
			"PyTorch did not retry, so it did not free its cache."}
	default:
		f.Title = fmt.Sprintf("OOM at the process limit: %s more would exceed the %s that the process may use.", asked,
			sized(g.Allowed))
		f.Why = []string{fmt.Sprintf("The device had %s free; a memory fraction keeps it from this process.",
			sized(g.Free))}
	}
	f.Next = []string{raiseLimit, needLess}
}

func elsewhere(g *oom.Group, f *finding.Finding) {
	f.Status = finding.Others
	if g.Family == oomlog.MPS {
		f.Title = fmt.Sprintf("OOM beside other allocations: a request for %s failed, and memory outside PyTorch's "+
			"allocator takes %s.", sized(g.Tried), units.Bytes(g.Other.Bytes))
		f.Why = []string{"The watermark limits both together."}
		f.Next = []string{"Close other programs that use the GPU, or free what this one allocated outside PyTorch."}
		return
	}
	f.Title = fmt.Sprintf("OOM on a shared device: a request for %s would fit if other memory on the device were free.",
		sized(g.Tried))
	f.Next = []string{seeOthers}
	if n, ok := g.Ledger.Get(oom.RowOthers); ok {
		f.Why = []string{fmt.Sprintf("Other processes use %s of the device.", units.Bytes(n))}
		return
	}
	n, _ := g.Ledger.Get(oom.RowForeign)
	f.Why = []string{fmt.Sprintf("%s of the device is neither free nor PyTorch's: it belongs to other processes, or to "+
		"this one's CUDA context and libraries; the message does not tell them apart.", units.Bytes(n))}
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
			return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in a replay of the snapshot it serves the request."
		default:
			return "expandable_segments:True does not help here, although the message recommends it: in a replay of the " +
				"snapshot the request fails with it too."
		}
	}
	return otherwise
}

// caveats are what misleads in a message.
func caveats(g *oom.Group) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch g.Family {
	case oomlog.Rejected, oomlog.Async, oomlog.MPS, oomlog.Outside: // they print the request itself
	default:
		switch g.Tried.Bytes {
		case 2 << 20:
			add("2.00 MiB is the segment that PyTorch asked the device for; the tensor has at most 1 MiB.")
		case 20 << 20:
			add("20.0 MiB is the segment that PyTorch asked the device for; the tensor has between 1 and 20 MiB.")
		}
	}
	if (g.Cause == oom.Fragmentation || g.Cause == oom.Pools) && g.Free.Bytes > g.Tried.Bytes {
		add("The device had %s free as well, but a limit that the message does not name, or the driver, refused that too.",
			units.Bytes(g.Free.Bytes))
	}
	for _, p := range g.Processes {
		if p.Unavailable {
			add("17179869184.00 GiB means \"not available\": the driver does not tell processes apart (Windows, WSL, some " +
				"containers).")
			break
		}
	}
	if g.Spilled() {
		add("PyTorch uses %s on a device of %s: the driver moved the rest to the machine's memory, which is slow.",
			sized(g.Reserved), sized(g.Total))
	}
	if g.PrivatePools.Known() {
		add("%s of what counts as allocated is free in private pools of CUDA graphs.", sized(g.PrivatePools))
	}
	if g.Ledger != nil && g.Ledger.Guessed != 0 {
		add("Process %d is assumed to be this one, by its size: inside a container process numbers differ.",
			g.Ledger.Guessed)
	}
	return out
}
