package snapshot

// Event is one trace entry. It is kept at 40 bytes: traces hold tens of millions of them.
type Event struct {
	// Addr is the block or segment address. For an oom entry it holds the free bytes that
	// cudaMemGetInfo reported; use DeviceFree.
	Addr uint64
	// Size is by action: requested bytes for alloc and the frees, reserved bytes for the
	// segment actions, total active bytes for snapshot, the rounded request for oom.
	Size   int64
	Time   int64 // microseconds since the Unix epoch; 0 when Has lacks EventHasTime
	Stack  StackID
	Label  LabelID
	Stream StreamID
	Action Action
	Has    EventHas
}

// EventHas says which optional keys an event dict carried.
type EventHas uint8

const (
	EventHasTime EventHas = 1 << iota
	EventHasSize
	EventHasDeviceFree
	EventHasMetadata // user_metadata, if only an empty one
)

// DeviceFree is the free bytes of the device at an oom entry, false when not recorded.
func (e *Event) DeviceFree() (int64, bool) {
	return int64(e.Addr), e.Action == OOM && e.Has&EventHasDeviceFree != 0
}

// Action is what a trace entry records (torch's TraceEntry::Action).
type Action uint8

const (
	ActionUnknown     Action = iota // kept, ignored in arithmetic; its name is in the Label
	Alloc                           // a block was handed out
	FreeRequested                   // the program freed a block
	FreeCompleted                   // the block went back to the pool
	SegmentAlloc                    // cudaMalloc
	SegmentFree                     // cudaFree
	SegmentMap                      // an expandable segment grew
	SegmentUnmap                    // an expandable segment shrank
	SnapshotTaken                   // an earlier snapshot
	OOM                             // a request failed after all retries
	Annotate                        // _annotate_tensor (torch 2.14)
	UserDefined                     // an annotation inside the trace (builds of mid 2024)
	WorkspaceSnapshot               // Ascend
	NumActions
)

var actionNames = [NumActions]string{
	"unknown", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "snapshot", "oom", "annotate", "user_defined", "workspace_snapshot",
}

func (a Action) String() string { return actionNames[a] }

const (
	chunkBits = 14
	chunkLen  = 1 << chunkBits
)

// Events is a growing table of events in chunks, so that it never moves while it grows.
type Events struct {
	chunks []*[chunkLen]Event
	spare  []*[chunkLen]Event // of forgotten rows, to use again
	n      int
}

// Len is the number of events.
func (t *Events) Len() int { return t.n }

// At returns the event in row i, which must be below Len.
func (t *Events) At(i int) *Event { return &t.chunks[i>>chunkBits][i&(chunkLen-1)] }

// Next adds a zero event and returns it for the caller to fill.
func (t *Events) Next() *Event {
	if t.n&(chunkLen-1) == 0 && t.n>>chunkBits == len(t.chunks) {
		t.chunks = append(t.chunks, t.chunk())
	}
	e := t.At(t.n)
	t.n++
	return e
}

// chunk is room for more events, all zero.
func (t *Events) chunk() *[chunkLen]Event {
	n := len(t.spare)
	if n == 0 {
		return new([chunkLen]Event)
	}
	c := t.spare[n-1]
	t.spare = t.spare[:n-1]
	*c = [chunkLen]Event{}
	return c
}

// Forget gives up the room of rows below i, whose events nobody may ask for any more. Rows keep their numbers.
func (t *Events) Forget(i int) {
	for c := min(i, t.n)>>chunkBits - 1; c >= 0 && t.chunks[c] != nil; c-- {
		t.spare = append(t.spare, t.chunks[c])
		t.chunks[c] = nil
	}
}

// Drop takes the last event away again.
func (t *Events) Drop() {
	t.n--
	*t.At(t.n) = Event{}
}

// Trace is one device's events in the order in which the allocator made them.
type Trace struct {
	events     *Events
	start, len int
}

// NewTrace is the run of n events of t from row start on.
func NewTrace(t *Events, start, n int) Trace { return Trace{t, start, n} }

// Len is the number of events.
func (t Trace) Len() int { return t.len }

// At returns event i, 0 <= i < Len.
func (t Trace) At(i int) *Event { return t.events.At(t.start + i) }
