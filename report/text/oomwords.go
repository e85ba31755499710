package text

import (
	"fmt"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/oomlog"
)

// explanation is a message's cause in words.
type explanation struct {
	status    finding.Status
	title     string
	why, next []string
}

const (
	nextRecord = "For the tensors behind these figures, call torch.cuda.memory._record_memory_history() at the start and _dump_snapshot(FILE) when it fails; then `snapana report FILE`, and here --snapshot FILE."
	nextLess   = "Need less at once: a smaller batch or sequence, gradient checkpointing, a lower precision, or sharding over devices."
)

func sized(s oomlog.Size) string {
	if !s.Known() {
		return "an unknown size"
	}
	return units.Bytes(s.Bytes)
}

// explain says why a request failed and what to do.
func explain(m *oom.Group) explanation {
	e := cause(m)
	e.why = append(e.why, caveats(m)...)
	if m.Backend != "cpu" && m.Backend != "mps" && e.status != finding.NoData {
		e.next = append(e.next, nextRecord)
	}
	return e
}

func cause(m *oom.Group) explanation {
	req, unallocated := sized(m.Tried), m.UnallocatedBytes()
	switch m.Cause {
	case oom.Absurd:
		what := req
		if m.Family == oomlog.Exabyte {
			what = "more than 1 EB"
		}
		return explanation{finding.Absurd, fmt.Sprintf("A request for %s: no device has that much, so that a size was computed wrongly.", what),
			[]string{"Such sizes come from a negative or overflowed dimension, or from a length read out of damaged data."},
			[]string{"Print the shapes that go into the call which the traceback names, and check them before it."}}
	case oom.TooLarge:
		return explanation{finding.Absurd, fmt.Sprintf("One request for %s, and the whole device has %s: no setting can serve it.", req, sized(m.Total)),
			[]string{"The request alone is larger than the device, whatever else is in memory."},
			[]string{"Look for a quadratic intermediate, such as an attention matrix that is not fused or a broadcast by mistake, in the line that the traceback names.", nextLess}}
	case oom.Limit:
		return limit(m, req)
	case oom.Fragmentation:
		return explanation{finding.Fragmentation, fmt.Sprintf("Out of memory by fragmentation: %s was asked for while %s of reserved memory lay free in pieces.", req, units.Bytes(unallocated.Bytes)),
			[]string{"Whole free segments were returned to the device before the message was written: what is unallocated lies between live blocks, and no piece was large enough."},
			[]string{"Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which the message recommends even where it is on. It does not always help: with a snapshot, `snapana whatif` tells.",
				"If it is on already, or not supported, find the small long-lived blocks that keep the segments and allocate them first."}}
	case oom.Pools:
		return explanation{finding.Pools, fmt.Sprintf("Out of memory beside private pools: %s was asked for, and %s lies free in pools that only CUDA graphs may use.", req, units.Bytes(m.PrivatePools.Bytes)),
			[]string{"Private pools never serve requests from outside them."},
			[]string{"Let graphs share a pool (torch.cuda.graph(..., pool=...)), capture fewer sizes, or capture the largest first."}}
	case oom.Room:
		return explanation{finding.Limit, fmt.Sprintf("Out of memory with room on the device: %s was refused although %s was free.", req, units.Bytes(m.Free.Bytes)),
			[]string{"The message states no limit of the process. Something else refused, or what was free had just been freed by another process."},
			[]string{"Look for torch.cuda.set_per_process_memory_fraction, a container, MIG or WSL limit, a limit on pinned or virtual memory (ulimit -v), and for processes that come and go on the device."}}
	case oom.Joined:
		return explanation{finding.Fragmentation, fmt.Sprintf("Out of memory by a split: %s would fit in the free pieces (%s) and the free device memory (%s) joined.", req, units.Bytes(unallocated.Bytes), units.Bytes(m.Free.Bytes)),
			[]string{"Neither is enough by itself: a segment must be one piece, unless segments can grow."},
			[]string{"Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: it can let free pieces and free device memory serve one request.", nextLess}}
	case oom.Others:
		if m.Family == oomlog.MPS {
			return explanation{finding.Others, fmt.Sprintf("Out of memory beside other allocations: %s was asked for, and memory outside of PyTorch's allocator takes %s.", req, units.Bytes(m.Other.Bytes)),
				[]string{"The watermark limits both together."}, []string{"Close other programs that use the GPU, or free what this one allocated outside PyTorch."}}
		}
		return explanation{finding.Others, fmt.Sprintf("Out of memory on a shared device: %s would fit if other memory on the device were free.", req),
			[]string{othersLine(m)},
			[]string{"See with nvidia-smi who else is on the device; end what is left over, or choose a free device with CUDA_VISIBLE_DEVICES."}}
	case oom.Capacity:
		why := fmt.Sprintf("Free pieces (%s) and free device memory (%s) together are less than the request: no allocator setting helps.", units.Bytes(unallocated.Bytes), units.Bytes(m.Free.Bytes))
		if !unallocated.Known() {
			why = fmt.Sprintf("The device had %s free.", units.Bytes(m.Free.Bytes))
		}
		reasons := []string{why}
		if m.Spilled() {
			reasons = nil // see caveats
		}
		return explanation{finding.Capacity, fmt.Sprintf("Out of memory for real: tensors held %s when %s more was asked for.", units.Bytes(m.Allocated.Bytes), req),
			reasons,
			[]string{nextLess}}
	case oom.Outside:
		return explanation{finding.Limit, "CUDA itself ran out of memory, outside of PyTorch's caching allocator; the message has no figures.",
			[]string{"It comes from the CUDA context, cuBLAS, cuDNN, NCCL or a library with its own memory, which get only what the allocator and other processes leave.",
				"A failed call may be reported late: the line that the traceback names need not be the cause."},
			[]string{"Leave memory for them: lower the allocator's share with torch.cuda.set_per_process_memory_fraction, or call torch.cuda.empty_cache() first.",
				"See with nvidia-smi whether another process fills the device."}}
	case oom.Host:
		return explanation{finding.Limit, fmt.Sprintf("The machine's own memory ran out, not a GPU's: %s was asked for.", req), nil,
			[]string{"Look at free memory of the machine or the limit of its container; use fewer loader workers or less pinned memory."}}
	}
	return explanation{finding.NoData, "Out of memory; the message has too few figures to say why.",
		[]string{"It was cut, or written by a form of the allocator that prints no more."},
		[]string{"Look for the whole message further up in the log, or in another rank's log.", nextRecord}}
}

func limit(m *oom.Group, req string) explanation {
	if m.Family == oomlog.MPS {
		return explanation{finding.Limit, fmt.Sprintf("Out of memory at the watermark: %s more would exceed the %s that PyTorch may take.", req, sized(m.Allowed)),
			[]string{fmt.Sprintf("PyTorch holds %s, other allocations %s.", sized(m.Allocated), sized(m.Other))},
			[]string{nextLess, "PYTORCH_MPS_HIGH_WATERMARK_RATIO moves the watermark; without one the whole machine may run out of memory."}}
	}
	e := explanation{status: finding.Limit, next: []string{"Raise or remove the limit: torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.", nextLess}}
	if m.Family == oomlog.Rejected {
		e.title = fmt.Sprintf("Out of memory by the process's limit: %s was refused before the device was asked.", req)
		e.why = []string{"throw_on_cudamalloc_oom is set, and the request would exceed per_process_memory_fraction. No retry was made, so that cached memory was not given back."}
		return e
	}
	e.title = fmt.Sprintf("Out of memory by the process's limit: %s more would exceed the %s that it may take.", req, sized(m.Allowed))
	e.why = []string{fmt.Sprintf("The device itself had %s free; a memory fraction keeps it from this process.", sized(m.Free))}
	return e
}

// expandable is the advice on expandable segments: what a replay of the snapshot says, or else what
// is said of the message alone.
func expandable(failure *oom.Report, otherwise string) string {
	if failure == nil {
		return otherwise
	}
	for _, a := range failure.Answers {
		if a.ID != "setting" || a.Conf != "expandable_segments:True" || a.Needs != "" {
			continue
		}
		if a.Fits == oom.Yes {
			return "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: in a replay of the snapshot the request is served with it."
		}
		return "Do not count on expandable_segments:True, whatever the message recommends: in a replay of the snapshot the request fails with it too."
	}
	return otherwise
}

func othersLine(m *oom.Group) string {
	l := m.Ledger
	if n, ok := l.Get(oom.RowOthers); ok {
		return fmt.Sprintf("Other processes hold %s of the device.", units.Bytes(n))
	}
	n, _ := l.Get(oom.RowForeign)
	return fmt.Sprintf("%s of the device is neither free nor PyTorch's: other processes, or this one's CUDA context and libraries; the message does not tell them apart.", units.Bytes(n))
}

// caveats are what misleads in a message.
func caveats(m *oom.Group) []string {
	var out []string
	if m.Tried.Known() && m.Cause != oom.Absurd {
		switch m.Family {
		case oomlog.Rejected, oomlog.Async, oomlog.MPS, oomlog.Outside:
		default:
			switch m.Tried.Bytes {
			case 2 << 20:
				out = append(out, "2.00 MiB is the segment that the device was asked for; the tensor has at most 1 MiB.")
			case 20 << 20:
				out = append(out, "20.0 MiB is the segment that the device was asked for; the tensor has between 1 and 20 MiB.")
			}
		}
	}
	if c := m.Cause; (c == oom.Fragmentation || c == oom.Pools) && m.Free.Bytes > m.Tried.Bytes {
		out = append(out, fmt.Sprintf("The device itself had %s free as well: a limit that the message does not name, or the driver, refused that too.", units.Bytes(m.Free.Bytes)))
	}
	for _, p := range m.Processes {
		if p.Unavailable {
			out = append(out, "17179869184.00 GiB is how \"not available\" prints: the driver does not tell processes apart (Windows, WSL, some containers).")
			break
		}
	}
	if m.Spilled() {
		out = append(out, fmt.Sprintf("PyTorch holds %s on a device of %s: the driver moved the rest to the machine's memory, which is slow.", sized(m.ReservedBytes()), sized(m.Total)))
	}
	if m.PrivatePools.Known() {
		out = append(out, fmt.Sprintf("%s of what counts as allocated is free in private pools of CUDA graphs.", sized(m.PrivatePools)))
	}
	if l := m.Ledger; l != nil && l.Guessed != 0 {
		out = append(out, fmt.Sprintf("Process %d is taken for this process, by its size: inside a container the numbers differ.", l.Guessed))
	}
	return out
}
