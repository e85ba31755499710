// Package oomlog reads what PyTorch says about its memory in words: the out-of-memory
// messages of training logs. snapshot/SPEC.md 7.2 lists the messages by family, A to M.
//
// A log may have any size and any content. It is read once, in constant memory; nothing in it
// is trusted, and a figure that a message does not give stays unknown instead of zero.
package oomlog

// Family is the form of a message, by the letter that it has in snapshot/SPEC.md 7.2.
type Family byte

const (
	Unknown  Family = 0   // cut before its form shows
	Cached   Family = 'A' // torch up to 1.3: "(GPU 0; ... cached)"
	Reserved Family = 'B' // 1.4 to 1.8: "... reserved in total by PyTorch)"
	Hinted   Family = 'C' // 1.9 to 2.0: B with a hint, or with "allowed"
	Capacty  Family = 'D' // 2.1: in sentences, with "capacty"
	Capacity Family = 'E' // 2.2 on
	Rejected Family = 'F' // 2.12 on: refused before cudaMalloc
	Exabyte  Family = 'G' // "more than 1EB memory"
	Async    Family = 'H' // the cudaMallocAsync backend
	XPU      Family = 'I' // Intel
	NPU      Family = 'J' // Ascend
	MPS      Family = 'K' // Apple
	HIP      Family = 'L' // ROCm: the text of C, D or E
	Outside  Family = 'M' // not from the caching allocator
)

func (f Family) String() string {
	if f == Unknown {
		return "?"
	}
	return string(rune(f))
}

// Writer says in words who writes messages of the family.
func (f Family) Writer() string {
	switch f {
	case Cached:
		return "torch up to 1.3"
	case Reserved:
		return "torch 1.4 to 1.8"
	case Hinted:
		return "torch 1.8 to 2.0"
	case Capacty:
		return "torch 2.1"
	case Capacity:
		return "torch 2.2 or newer"
	case Rejected:
		return "torch 2.12 or newer, with throw_on_cudamalloc_oom"
	case Async:
		return "torch with backend:cudaMallocAsync"
	case XPU:
		return "torch for XPU"
	case NPU:
		return "torch_npu"
	case MPS:
		return "torch for MPS"
	case HIP:
		return "torch for ROCm"
	case Outside:
		return "not PyTorch's caching allocator"
	}
	return "torch"
}

// Size is a printed number of bytes. The zero value is one that the message does not give.
type Size struct {
	Bytes int64 // as printed, math.MaxInt64 when it is more than that
	Step  int64 // what the last printed digit stands for, rounded up; 0 is unknown
}

// Known reports whether the message gives the size.
func (s Size) Known() bool { return s.Step > 0 }

// Process is what NVML said about one process on the device.
type Process struct {
	PID  int64 // 0 is the process that ran out of memory
	Used Size
	// Unavailable is set when NVML could not say: 17179869184.00 GiB is all bits set (snapshot/SPEC.md 7.2).
	Unavailable bool
}

// Message is one out-of-memory message.
type Message struct {
	Family  Family
	Backend string // cuda, hip, xpu, npu, mps or cpu
	Line    int64  // from 1 on, by line feeds
	Offset  int64  // of its first byte; the exception's class comes before it
	Class   string // exception class in front of it, "" unknown
	Rank    int    // of the process that wrote it, -1 unknown
	Device  int    // ordinal, -1 unknown

	// Tried is the segment size that CUDA was asked for, not the tensor's (snapshot/SPEC.md 7.1); in families
	// F, H, K and for the CPU it is the request itself.
	Tried        Size
	Total        Size
	Free         Size // on the device, as cudaMemGetInfo says
	Allowed      Size // what a memory fraction or watermark leaves to the process
	Allocated    Size // in live tensors, and free in private pools where PrivatePools is known
	Unallocated  Size // reserved but not allocated; "cached" in family A
	Reserved     Size // as printed, in families B, C and J; see ReservedBytes
	Active       Size // family J only
	PrivatePools Size // free blocks of private pools, a part of Allocated
	Other        Size // family K: memory of the process that is not the allocator's
	Processes    []Process

	Hint string // the setting that the message recommends, even where it is on already
	Cut  bool   // lacks its beginning, or its last figures
	Text string // cleaned: no colours, escapes or line breaks; at most 2 KiB
}

// ReservedBytes is what the caching allocator held.
func (m *Message) ReservedBytes() Size {
	if m.Reserved.Known() || !m.Allocated.Known() || !m.Unallocated.Known() {
		return m.Reserved
	}
	return Size{m.Allocated.Bytes + m.Unallocated.Bytes, m.Allocated.Step + m.Unallocated.Step}
}

// UnallocatedBytes is what the caching allocator held in free blocks.
func (m *Message) UnallocatedBytes() Size {
	if m.Unallocated.Known() || !m.Allocated.Known() || !m.Reserved.Known() {
		return m.Unallocated
	}
	return Size{m.Reserved.Bytes - m.Allocated.Bytes, m.Allocated.Step + m.Reserved.Step}
}
