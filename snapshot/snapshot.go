// Package snapshot is the model of a torch.cuda.memory snapshot: slices of small structs that refer
// to each other by integer ids, never by pointer. Package load reads files into it.
//
// A trace event is kept in 24 bytes whatever the length of its stack: frame lists are interned as
// they are read (equal stacks share one StackID), and so are strings, streams and the rare
// per-event labels. Id 0 always means "none", so zero values are safe. Readers (the pickle
// machine, the JSON reader, the fixtures) fill the tables through the Add and Intern methods;
// once a Snapshot is handed out nobody changes it, and it may be read from many goroutines.
//
// Field facts are from snapshot/SPEC.md 2.1 to 2.10 and analyze/timeline/SPEC.md 3.1, which cite
// torch/csrc/cuda/memory_snapshot.cpp and torch/csrc/profiler/combined_traceback.cpp.
package snapshot

import (
	"fmt"
	"iter"
)

// Snapshot is one decoded snapshot with what is known about the file it came from. Sizes are bytes,
// addresses are virtual addresses of the process that made the dump, times are microseconds since the
// Unix epoch. It is immutable and may be read from many goroutines.
type Snapshot struct {
	// Name is the file's base name, or "stdin".
	Name string
	// Bytes is the size of the decoded pickle (or JSON), after decompression.
	Bytes int64
	// Checksum is the CRC-32C of that data, up to the end of the mebibyte that its last byte is in. It tells one file
	// from another of the same name, whatever it is packed in.
	Checksum uint32
	// Container says how the data was wrapped, outermost first, for example
	// ["gzip", "pickle protocol 4"].
	Container []string
	// Page is the number, from 0 on, of this snapshot in an HTML page, and Pages how many that page
	// holds; 0 of 0 for a file that is no page.
	Page, Pages int
	Writer      Writer
	// Recorded says what the file has of the past, and Part is set where it has a part of the memory only.
	Recorded Recorded
	Part     *Part
	// Window is set where the traces are a part of the file's.
	Window *Window
	// Missing lists what the file lacks, in words for a reader, each with what that costs.
	Missing []string
	// HasTimes and HasStacks say whether any event has a time, and whether any event, block
	// or segment has a non-empty stack.
	HasTimes, HasStacks bool
	// Partial is set when decoding stopped at a fault and what came before it was kept. A
	// *FormatError in it has no file name.
	Partial error

	Shape Shape

	// Clipped counts the texts that were cut: paths and names to MaxName, names of functions
	// to MaxSymbol, tracebacks to 64 KiB; those of frames to less where they are longer in total than the file.
	Clipped int64

	Strings Strings
	Frames  Frames
	Stacks  Stacks
	Streams Streams
	Labels  Labels

	Segments []Segment
	Blocks   []Block // of all segments; a Segment names its range
	History  []HistoryEntry

	// Traces holds one trace per device ordinal. It is nil when the file has no
	// device_traces at all, and holds empty traces for devices that did nothing.
	Traces []Trace
	// Resized lists the devices whose ring was resized while it recorded, so that its events were put in order.
	Resized []Resize

	// HasAnnotations tells an empty list of annotations from none.
	Annotations    []Annotation
	HasAnnotations bool
	Settings       Settings

	// HostSegments is the pinned host memory at the end, HostTraces its history: as a rule one
	// trace, since all devices share it. HasHostSegments tells an empty list from none.
	HostSegments    []HostSegment
	HasHostSegments bool
	HostTraces      []Trace

	// Unknown counts the keys that no reader knows, by place; they are never an error.
	Unknown []UnknownKey
}

// How many bytes are kept of a name or a path, and of a function's name: torch 2.6 writes C++ symbols of 3.3 KB.
const (
	MaxName   = 1 << 10
	MaxSymbol = 4 << 10
)

// The kinds of devices whose snapshots have this format.
const (
	CUDA = "cuda"
	HIP  = "hip" // ROCm
	XPU  = "xpu"
	NPU  = "npu" // Ascend
)

// Writer is a guess of what wrote a file, from the keys that it has (SPEC.md 2.10).
type Writer struct {
	Text   string // the releases of torch that it can be, for example "2.5 to 2.7"; "" unknown
	Newest int    // the last of them, 207 for 2.7; 0 unknown, or any later one
	// Backend is the kind of device: CUDA, HIP, XPU or NPU. Nothing tells an AMD GPU's file
	// without C++ stacks from one of CUDA, so that this is CUDA where nothing says otherwise.
	Backend string
	// Skips is whether one of them can leave kinds of events out of a trace: skip_actions came in 2.11.
	Skips bool
}

// Recorded is what a file has of the past (analyze/timeline/SPEC.md 3.3).
type Recorded uint8

const (
	RecordedTrace   Recorded = iota // events
	RecordedNothing                 // lists without events: recording was never on, or was stopped
	RecordedCleared                 // lists without events, and blocks with stacks: recording was stopped or cleared
	RecordedLeftOut                 // device_traces without lists: taken with include_traces=False (torch 2.11 and later)
	RecordedNoKey                   // no device_traces
	RecordedOne                     // one event a device, though recording was on for longer: the ring had room for one
	RecordedLast                    // one event a device: such a ring, or recording began right before the dump
	RecordedMarkers                 // earlier dumps only
)

var recordedNames = [...]string{"trace", "nothing", "cleared", "left-out", "no-key", "ring-of-one", "one-event",
	"markers"}

func (r Recorded) String() string { return recordedNames[r] }

// MarshalText is String.
func (r Recorded) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// RecordingCall is the function of torch.cuda.memory, with its arguments, that records events in the release that wrote
// the file: in 2.0 the ring has one entry unless told otherwise (torch/cuda/memory.py).
func (s *Snapshot) RecordingCall() string {
	if s.Writer.Newest == 200 {
		return "_record_memory_history(True, trace_alloc_max_entries=100000, trace_alloc_record_context=True)"
	}
	return "_record_memory_history(max_entries=100000)"
}

// Part says that the segments are those of one private pool alone.
type Part struct {
	Pool PoolID `json:"pool"`
	// Certain is false where the process may have had no other memory.
	Certain bool `json:"certain"`
}

// Resize is a trace whose ring got another size while it recorded (analyze/timeline/SPEC.md 3.4): the events that the
// file has are in another order than those of the trace.
type Resize struct {
	Device int `json:"device"`
	// Dropped events at the beginning are not in the trace, since an unknown number of events is missing after them.
	Dropped int `json:"dropped"`
}

// NumDevices is the number of device ordinals that occur in segments or traces: the highest
// ordinal plus one. Devices that have neither segments nor events are counted too.
func (s *Snapshot) NumDevices() int {
	n := len(s.Traces)
	for i := range s.Segments {
		n = max(n, int(s.Segments[i].Device)+1)
	}
	return n
}

// HostEvents is the number of events of pinned host memory.
func (s *Snapshot) HostEvents() int {
	n := 0
	for i := range s.HostTraces {
		n += s.HostTraces[i].Len()
	}
	return n
}

// SegmentsOf gives the segments of a device ordinal, in their order.
func (s *Snapshot) SegmentsOf(device int) iter.Seq[*Segment] {
	return func(yield func(*Segment) bool) {
		for i := range s.Segments {
			if seg := &s.Segments[i]; int(seg.Device) == device && !yield(seg) {
				return
			}
		}
	}
}

// UsedDevices lists the ordinals that have segments or events.
func (s *Snapshot) UsedDevices() []int {
	used := make([]bool, s.NumDevices())
	for i := range s.Traces {
		used[i] = s.Traces[i].Len() > 0
	}
	for i := range s.Segments {
		if d := s.Segments[i].Device; d >= 0 {
			used[d] = true
		}
	}
	var out []int
	for d, u := range used {
		if u {
			out = append(out, d)
		}
	}
	return out
}

// Shape is the form of the top-level object.
type Shape uint8

const (
	ShapeDict     Shape = iota // dict with "segments" (torch 2.0 and later)
	ShapeList                  // bare list of segments (torch 1.4 to 1.13, or torch.cuda.memory_snapshot())
	ShapeWrapped               // a snapshot inside a dict of the user's own
	ShapeNoTraces              // dict with segments only
)

// Segment is one cudaMalloc'ed range, or one contiguous mapped run of an expandable segment.
type Segment struct {
	Address       uint64
	TotalSize     int64 // reserved bytes
	AllocatedSize int64 // rounded bytes of active_allocated blocks
	ActiveSize    int64 // AllocatedSize plus blocks that wait for other streams
	RequestedSize int64 // requested bytes of active blocks; torch 2.0 and later
	Pool          PoolID
	Blocks        Range
	Stack         StackID
	Stream        StreamID
	Device        int32
	Kind          SegmentKind
	Expandable    bool
	Has           SegmentHas
}

// SegmentHas says which optional keys a segment dict carried.
type SegmentHas uint8

const (
	SegmentHasRequested SegmentHas = 1 << iota
	SegmentHasStream
	SegmentHasExpandable
	SegmentHasTotals // allocated_size and active_size
)

// SegmentKind is the BlockPool that a segment serves: requests of at most 1 MiB, or larger ones.
type SegmentKind uint8

const (
	KindUnknown SegmentKind = iota
	KindSmall
	KindLarge
)

func (k SegmentKind) String() string {
	return [...]string{"unknown", "small", "large"}[k]
}

// PoolID identifies a memory pool: (0,0) is the default pool, (n,0) a pool of a graph
// capture, (0,n) one from graph_pool_handle or torch.cuda.MemPool.
type PoolID struct{ A, B int64 }

// String tells the default pools from private ones.
func (p PoolID) String() string {
	if p == (PoolID{}) {
		return "default pool"
	}
	return fmt.Sprintf("private pool (%d, %d)", p.A, p.B)
}

// MarshalText is String.
func (p PoolID) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Block is a piece of a segment.
type Block struct {
	Address   uint64 // torch 2.1 and later; accumulated from the segment before that
	Size      int64  // rounded bytes
	Requested int64  // requested bytes; meaningless (stale) for inactive blocks
	History   Range
	Stack     StackID
	State     BlockState
	Has       BlockHas
}

// BlockHas says which optional keys a block dict carried.
type BlockHas uint8

const (
	BlockHasAddress BlockHas = 1 << iota
	BlockHasRequested
	BlockHasHistory
)

// BlockState is the state of a block at the moment of the dump.
type BlockState uint8

const (
	StateUnknown     BlockState = iota
	StateAllocated              // active_allocated
	StatePendingFree            // active_pending_free: freed by the program, still used by another stream
	StateInactive               // inactive: cached, free to be handed out
)

func (s BlockState) String() string {
	return [...]string{"unknown", "active_allocated", "active_pending_free", "inactive"}[s]
}

// Active reports whether the block's bytes count as active: allocated or pending free.
func (s BlockState) Active() bool { return s == StateAllocated || s == StatePendingFree }

// HistoryEntry is one element of a block's `history` list (torch 1.13 and 2.0 only); the
// first of a live block's entries is the allocation that lives there.
type HistoryEntry struct {
	Address  uint64
	RealSize int64 // requested bytes
	Stack    StackID
}

// Annotation is one edge of a record_function user scope (torch 2.5 and later).
type Annotation struct {
	Time   int64
	Name   StringID
	Device int32
	End    bool // false for START, true for END
}

// HostSegment is one block of pinned host memory (torch 2.14 and later), which is a segment of its
// own: the host allocator never splits (aten/src/ATen/core/CachingHostAllocator.h).
type HostSegment struct {
	Address uint64
	Size    int64 // rounded bytes
	Pool    PoolID
	Stack   StackID
	State   BlockState
}

// UnknownKey counts one key that the readers do not know, kept so that a report can name it.
type UnknownKey struct {
	Where string // "segment", "block", "event", "frame", "annotation", "snapshot"
	Key   string
	Count int64
}

// Range is a run of rows in another table.
type Range struct{ Start, Len int32 }

// End is the row after the last.
func (r Range) End() int32 { return r.Start + r.Len }

// Settings is the allocator_settings dict (torch 2.3 and later).
type Settings struct {
	Present bool `json:"present"`
	// Conf is the last settings string seen, PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF.
	Conf               string  `json:"conf"`
	MaxSplitSize       int64   `json:"max_split_size"` // bytes; -1 is unlimited
	GCThreshold        float64 `json:"gc_threshold"`
	ExpandableSegments bool    `json:"expandable_segments"`
	// Roundup holds roundup_power2_divisions by interval: slot i is for sizes with
	// floor(log2(size)) = 20+i, slot 0 also for all below; 0 is off.
	Roundup [16]int64 `json:"-"`
	// Values lists every setting in file order, nested keys joined by a dot.
	Values []Setting `json:"values"`
}

// Setting is one key of allocator_settings with its value as text.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}
