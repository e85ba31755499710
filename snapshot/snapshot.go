package snapshot

import "github.com/snapana/snapana/snapshot/columns"

// The model, re-exported so that users of this package need no other.
type (
	Event        = columns.Event
	Action       = columns.Action
	Trace        = columns.Trace
	Segment      = columns.Segment
	SegmentKind  = columns.SegmentKind
	Block        = columns.Block
	BlockState   = columns.BlockState
	Frame        = columns.Frame
	Label        = columns.Label
	PoolID       = columns.PoolID
	Annotation   = columns.Annotation
	Settings     = columns.Settings
	StringID     = columns.StringID
	FrameID      = columns.FrameID
	StackID      = columns.StackID
	StreamID     = columns.StreamID
	LabelID      = columns.LabelID
	UnknownKey   = columns.UnknownKey
	HistoryEntry = columns.HistoryEntry
	HostSegment  = columns.HostSegment
)

const (
	Alloc             = columns.Alloc
	FreeRequested     = columns.FreeRequested
	FreeCompleted     = columns.FreeCompleted
	SegmentAlloc      = columns.SegmentAlloc
	SegmentFree       = columns.SegmentFree
	SegmentMap        = columns.SegmentMap
	SegmentUnmap      = columns.SegmentUnmap
	SnapshotTaken     = columns.SnapshotTaken
	OOM               = columns.OOM
	Annotate          = columns.Annotate
	UserDefined       = columns.UserDefined
	WorkspaceSnapshot = columns.WorkspaceSnapshot

	StateUnknown     = columns.StateUnknown
	StateAllocated   = columns.StateAllocated
	StatePendingFree = columns.StatePendingFree
	StateInactive    = columns.StateInactive

	KindUnknown = columns.KindUnknown
	KindSmall   = columns.KindSmall
	KindLarge   = columns.KindLarge

	EmptyStack = columns.EmptyStack

	EventHasSize = columns.EventHasSize
)

// Snapshot is one decoded snapshot with what is known about the file it came from. It is
// immutable and may be read from many goroutines.
type Snapshot struct {
	columns.Snapshot

	// Name is the file's base name, or "stdin".
	Name string
	// Bytes is the size of the decoded pickle (or JSON), after decompression.
	Bytes int64
	// Container says how the data was wrapped, outermost first, for example
	// ["gzip", "pickle protocol 4"].
	Container []string
	// Writer is a guess of the torch release that wrote the file, from the keys it has
	// (specification section 2.10), for example "2.5 to 2.7".
	Writer string
	// Missing lists what the file lacks, in words for a reader, each with what that costs.
	Missing []string
	// HasTimes and HasStacks say whether any event has a time, and whether any event, block
	// or segment has a non-empty stack.
	HasTimes, HasStacks bool
	// Partial is set when decoding stopped at a fault and what came before it was kept. A
	// *FormatError in it has no file name.
	Partial error
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
