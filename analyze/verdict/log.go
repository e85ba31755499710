package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

const record = "For the tensors behind these figures, call torch.cuda.memory._record_memory_history() at the start " +
	"and _dump_snapshot(FILE) when it fails; then `snapana report FILE`, and here --snapshot FILE."

// Message says of one of a log's messages why the request failed and what to do. Of the main one it
// also says what the snapshot beside the log knows.
func Message(l *oom.Log, g *oom.Group) finding.Finding {
	f := finding.Finding{
		ID: "oom", Severity: finding.Error, Confidence: finding.High, Device: g.Device, Bytes: g.Tried.Bytes,
	}
	said(g, &f)
	f.Why = append(f.Why, caveats(g)...)
	if g.Backend != "cpu" && g.Backend != "mps" && f.Status != finding.NoData {
		f.Next = append(f.Next, record)
	}
	if g != &l.Groups[l.Main] {
		return f
	}
	if g.Cause == oom.Fragmentation || g.Cause == oom.Joined {
		f.Next[0] = expandable(l.Failure, f.Next[0])
	}
	if l.Match != nil && l.Match.Same {
		f.Next[len(f.Next)-1] = "For the tensors behind these figures run `snapana report` on " + l.Snapshot + "."
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
		say(finding.Absurd, "A request for %s: no device has that much, so that a size was computed wrongly.", asked)
		f.Why = []string{"Such sizes come from a negative or overflowed dimension, or from a length read out of " +
			"damaged data."}
		f.Next = []string{"Print the shapes that go into the call which the traceback names, and check them before it."}
	case oom.TooLarge:
		say(finding.Absurd, "One request for %s, and the whole device has %s: no setting can serve it.", asked,
			sized(g.Total))
		f.Why = []string{"The request alone is larger than the device, whatever else is in memory."}
		f.Next = []string{seeQuadratic + "that the traceback names.", needLess}
	case oom.Limit:
		limited(g, f)
	case oom.Fragmentation:
		say(finding.Fragmentation, "Out of memory by fragmentation: %s was asked for while %s of reserved memory lay "+
			"free in pieces.", asked, pieces)
		f.Why = []string{"Whole free segments were returned to the device before the message was written: what is " +
			"unallocated lies between live blocks, and no piece was large enough."}
		f.Next = []string{"Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which the message recommends even " +
			"where it is on. It does not always help: with a snapshot, `snapana whatif` tells.",
			"If it is on already, or not supported, find the small long-lived blocks that keep the segments and " +
				"allocate them first."}
	case oom.Pools:
		say(finding.Pools, "Out of memory beside private pools: %s was asked for, and %s lies free in pools that "+
			"only CUDA graphs may use.", asked, units.Bytes(g.PrivatePools.Bytes))
		f.Why = []string{"Private pools never serve requests from outside them."}
		f.Next = []string{sharePools}
	case oom.Room:
		say(finding.Limit, "Out of memory with room on the device: %s was refused although %s was free.", asked, free)
		f.Why = []string{"The message states no limit of the process. Something else refused, or what was free had " +
			"just been freed by another process."}
		f.Next = []string{"Look for torch.cuda.set_per_process_memory_fraction, a container, MIG or WSL limit, a " +
			"limit on pinned or virtual memory (ulimit -v), and for processes that come and go on the device."}
	case oom.Joined:
		say(finding.Fragmentation, "Out of memory by a split: %s would fit in the free pieces (%s) and the free "+
			"device memory (%s) joined.", asked, pieces, free)
		f.Why = []string{"Neither is enough by itself: a segment must be one piece, unless segments can grow."}
		f.Next = []string{"Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it can let free pieces and free " +
			"device memory serve one request.", needLess}
	case oom.Others:
		elsewhere(g, f)
	case oom.Capacity:
		say(finding.Capacity, "Out of memory for real: tensors held %s when %s more was asked for.",
			units.Bytes(g.Allocated.Bytes), asked)
		switch {
		case g.Spilled(): // see caveats
		case unallocated.Known():
			f.Why = []string{fmt.Sprintf("Free pieces (%s) and free device memory (%s) together are less than the "+
				"request: no allocator setting helps.", pieces, free)}
		default:
			f.Why = []string{fmt.Sprintf("The device had %s free.", free)}
		}
		f.Next = []string{needLess}
	case oom.Outside:
		say(finding.Limit, "CUDA itself ran out of memory, outside of PyTorch's caching allocator; the message has "+
			"no figures.")
		f.Why = []string{"It comes from the CUDA context, cuBLAS, cuDNN, NCCL or a library with its own memory, " +
			"which get only what the allocator and other processes leave.",
			"A failed call may be reported late: the line that the traceback names need not be the cause."}
		f.Next = []string{"Leave memory for them: lower the allocator's share with " +
			"torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() first.",
			"See with nvidia-smi whether another process fills the device."}
	case oom.Host:
		say(finding.Limit, "The machine's own memory ran out, not a GPU's: %s was asked for.", asked)
		f.Next = []string{"Look at free memory of the machine or the limit of its container; use fewer loader " +
			"workers or less pinned memory."}
	default:
		say(finding.NoData, "Out of memory; the message has too few figures to say why.")
		f.Why = []string{"It was cut, or written by a form of the allocator that prints no more."}
		f.Next = []string{"Look for the whole message further up in the log, or in another rank's log.", record}
	}
}

func limited(g *oom.Group, f *finding.Finding) {
	f.Status = finding.Limit
	asked := sized(g.Tried)
	switch g.Family {
	case oomlog.MPS:
		f.Title = fmt.Sprintf("Out of memory at the watermark: %s more would exceed the %s that PyTorch may take.",
			asked, sized(g.Allowed))
		f.Why = []string{fmt.Sprintf("PyTorch holds %s, other allocations %s.", sized(g.Allocated), sized(g.Other))}
		f.Next = []string{needLess, "PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the watermark; without one the whole " +
			"machine may run out of memory."}
		return
	case oomlog.Rejected:
		f.Title = fmt.Sprintf("Out of memory by the process's limit: %s was refused before the device was asked.",
			asked)
		f.Why = []string{"throw_on_cudamalloc_oom is set, and the request would exceed per_process_memory_fraction. " +
			"No retry was made, so that cached memory was not given back."}
	default:
		f.Title = fmt.Sprintf("Out of memory by the process's limit: %s more would exceed the %s that it may take.",
			asked, sized(g.Allowed))
		f.Why = []string{fmt.Sprintf("The device itself had %s free; a memory fraction keeps it from this process.",
			sized(g.Free))}
	}
	f.Next = []string{"Raise or remove the limit: torch.cuda.set_per_process_memory_fraction, or " +
		"per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.", needLess}
}

func elsewhere(g *oom.Group, f *finding.Finding) {
	f.Status = finding.Others
	if g.Family == oomlog.MPS {
		f.Title = fmt.Sprintf("Out of memory beside other allocations: %s was asked for, and memory outside of "+
			"PyTorch's allocator takes %s.",
			sized(g.Tried), units.Bytes(g.Other.Bytes))
		f.Why = []string{"The watermark limits both together."}
		f.Next = []string{"Close other programs that use the GPU, or free what this one allocated outside PyTorch."}
		return
	}
	f.Title = fmt.Sprintf("Out of memory on a shared device: %s would fit if other memory on the device were free.",
		sized(g.Tried))
	f.Next = []string{seeOthers}
	if n, ok := g.Ledger.Get(oom.RowOthers); ok {
		f.Why = []string{fmt.Sprintf("Other processes hold %s of the device.", units.Bytes(n))}
		return
	}
	n, _ := g.Ledger.Get(oom.RowForeign)
	f.Why = []string{fmt.Sprintf("%s of the device is neither free nor PyTorch's: other processes, or this one's "+
		"CUDA context and libraries; "+
		"the message does not tell them apart.", units.Bytes(n))}
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
			return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in a replay of the snapshot the request is " +
				"served with it."
		default:
			return "Do not count on expandable_segments:True, whatever the message recommends: in a replay of the " +
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
			add("2.00 MiB is the segment that the device was asked for; the tensor has at most 1 MiB.")
		case 20 << 20:
			add("20.0 MiB is the segment that the device was asked for; the tensor has between 1 and 20 MiB.")
		}
	}
	if (g.Cause == oom.Fragmentation || g.Cause == oom.Pools) && g.Free.Bytes > g.Tried.Bytes {
		add("The device itself had %s free as well: a limit that the message does not name, or the driver, "+
			"refused that too.", units.Bytes(g.Free.Bytes))
	}
	for _, p := range g.Processes {
		if p.Unavailable {
			add("17179869184.00 GiB is how \"not available\" prints: the driver does not tell processes apart " +
				"(Windows, WSL, some containers).")
			break
		}
	}
	if g.Spilled() {
		add("PyTorch holds %s on a device of %s: the driver moved the rest to the machine's memory, which is slow.",
			sized(g.Reserved), sized(g.Total))
	}
	if g.PrivatePools.Known() {
		add("%s of what counts as allocated is free in private pools of CUDA graphs.", sized(g.PrivatePools))
	}
	if g.Ledger != nil && g.Ledger.Guessed != 0 {
		add("Process %d is taken for this process, by its size: inside a container the numbers differ.",
			g.Ledger.Guessed)
	}
	return out
}
