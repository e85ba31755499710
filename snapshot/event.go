package snapshot

import "math"

// Event is one trace entry. Events keeps it in 24 bytes: traces hold tens of millions of them.
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
	wide      = math.MaxUint8
)

// what has four bits for each.
const _ = uint8(NumActions-1)<<4 | uint8(EventHasMetadata)<<4

// columns are chunkLen events of 24 bytes, which have what nearly all events fit: sizes below 4 GiB, times within 35
// minutes of the first, few streams and labels. One that does not is kept whole: its stream is wide, and its address is
// its row there. What happened, and the stack, are in the columns in any case.
type columns struct {
	whole  []Event
	sum    Span  // of all events, once there are chunkLen
	time   int64 // of the first event
	addr   [chunkLen]uint64
	size   [chunkLen]uint32
	after  [chunkLen]int32 // microseconds since the first
	stack  [chunkLen]StackID
	label  [chunkLen]uint16
	stream [chunkLen]uint8
	what   [chunkLen]uint8 // the Action, and Has in the upper half
}

// Events is a growing table of events in chunks, so that it never moves while it grows.
type Events struct {
	chunks []*columns
	spare  []*columns // of forgotten rows, to use again
	next   chan *columns
	n      int
}

// Len is the number of events.
func (t *Events) Len() int { return t.n }

// At returns the event in row i, which must be below Len.
func (t *Events) At(i int) Event {
	return t.chunks[i>>chunkBits].at(i & (chunkLen - 1))
}

func (c *columns) at(k int) Event {
	if c.stream[k] == wide {
		return c.whole[c.addr[k]]
	}
	return Event{Addr: c.addr[k], Size: int64(c.size[k]), Time: c.time + int64(c.after[k]), Stack: c.stack[k],
		Label: LabelID(c.label[k]), Stream: StreamID(c.stream[k]), Action: Action(c.what[k] & 15),
		Has: EventHas(c.what[k] >> 4)}
}

// Action is that of At, which does all.
func (t *Events) Action(i int) Action {
	return Action(t.chunks[i>>chunkBits].what[i&(chunkLen-1)] & 15)
}

// Block gives Addr and Size of At.
func (t *Events) Block(i int) (addr uint64, size int64) {
	c, k := t.chunks[i>>chunkBits], i&(chunkLen-1)
	if c.stream[k] == wide {
		e := &c.whole[c.addr[k]]
		return e.Addr, e.Size
	}
	return c.addr[k], int64(c.size[k])
}

// Stack is that of At.
func (t *Events) Stack(i int) StackID { return t.chunks[i>>chunkBits].stack[i&(chunkLen-1)] }

// Label is that of At.
func (t *Events) Label(i int) LabelID {
	c, k := t.chunks[i>>chunkBits], i&(chunkLen-1)
	if c.stream[k] == wide {
		return c.whole[c.addr[k]].Label
	}
	return LabelID(c.label[k])
}

// Time is that of At.
func (t *Events) Time(i int) int64 {
	c, k := t.chunks[i>>chunkBits], i&(chunkLen-1)
	if c.stream[k] == wide {
		return c.whole[c.addr[k]].Time
	}
	return c.time + int64(c.after[k])
}

// Add adds an event.
func (t *Events) Add(e Event) {
	k := t.n & (chunkLen - 1)
	if k == 0 && t.n>>chunkBits == len(t.chunks) {
		t.chunks = append(t.chunks, t.chunk())
	}
	c := t.chunks[t.n>>chunkBits]
	if k == 0 {
		c.time = e.Time
	}
	t.n++
	after := e.Time - c.time
	c.stack[k], c.what[k] = e.Stack, uint8(e.Action)|uint8(e.Has)<<4
	if uint64(e.Size) > math.MaxUint32 || after != int64(int32(after)) || uint32(e.Label) > math.MaxUint16 ||
		uint32(e.Stream) >= wide {
		c.stream[k], c.addr[k] = wide, uint64(len(c.whole))
		c.whole = append(c.whole, e)
	} else {
		c.addr[k], c.size[k], c.after[k] = e.Addr, uint32(e.Size), int32(after)
		c.label[k], c.stream[k] = uint16(e.Label), uint8(e.Stream)
	}
	if k == chunkLen-1 {
		c.sum = c.span(0, chunkLen)
	}
}

// chunk is room for more events.
func (t *Events) chunk() *columns {
	if n := len(t.spare); n > 0 {
		c := t.spare[n-1]
		t.spare = t.spare[:n-1]
		c.whole, c.sum = c.whole[:0], Span{}
		return c
	}
	if len(t.chunks) < few {
		return new(columns)
	}
	select {
	case c := <-t.next:
		t.prepare()
		return c
	default:
	}
	if t.next == nil {
		t.prepare()
	}
	return new(columns)
}

// few is how many chunks small files need.
const few = 4

// prepare has another core make the next chunk, and get its pages from the system, which takes an eighth of the time that
// it takes to read the events that go there.
func (t *Events) prepare() {
	next := make(chan *columns, 1)
	t.next = next
	go func() {
		c := new(columns)
		*c = columns{}
		next <- c
	}()
}

// Forget gives up the room of rows below i, whose events nobody may ask for any more. Rows keep their numbers.
func (t *Events) Forget(i int) {
	for c := min(i, t.n)>>chunkBits - 1; c >= 0 && t.chunks[c] != nil; c-- {
		t.spare = append(t.spare, t.chunks[c])
		t.chunks[c] = nil
	}
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

// At returns event i, 0 <= i < Len. What only wants to know one thing of many events asks for that.
func (t Trace) At(i int) Event { return t.events.At(t.start + i) }

// Action is what event i records.
func (t Trace) Action(i int) Action { return t.events.Action(t.start + i) }

// Block is the address and the size of event i.
func (t Trace) Block(i int) (addr uint64, size int64) { return t.events.Block(t.start + i) }

// Stack is that of event i.
func (t Trace) Stack(i int) StackID { return t.events.Stack(t.start + i) }

// Label is that of event i.
func (t Trace) Label(i int) LabelID { return t.events.Label(t.start + i) }

// Time is that of event i.
func (t Trace) Time(i int) int64 { return t.events.Time(t.start + i) }
