package snapshot

import (
	"slices"
	"sync/atomic"
)

// The ids of interned things. 0 is none.
type (
	StringID int32
	FrameID  int32
	StackID  int32
	StreamID int32
	LabelID  int32
)

// EmptyStack is the id of a stack that was recorded and had no frames (typical of backward
// threads with stacks="python"); 0 means that no stack was recorded.
const EmptyStack StackID = 1

// distinct is a table of distinct values with ids from 1 on; id 0 is the zero value.
type distinct[T comparable, ID ~int32] struct {
	all   []T
	index map[T]ID
	last  ID // the one asked for before: often the next is the same
}

// Get returns the value with that id, which must have come from this table.
func (t *distinct[T, ID]) Get(id ID) (v T) {
	if id != 0 {
		v = t.all[id-1]
	}
	return v
}

// Len is the number of distinct values, that of id 0 left out.
func (t *distinct[T, ID]) Len() int { return len(t.all) }

// Intern gives the id of an equal value, adding it when it is new.
func (t *distinct[T, ID]) Intern(v T) ID {
	if v == *new(T) {
		return 0
	}
	return t.intern(v)
}

func (t *distinct[T, ID]) intern(v T) ID {
	if t.last != 0 && t.all[t.last-1] == v {
		return t.last
	}
	id, ok := t.index[v]
	if !ok {
		id = t.add(v)
	}
	t.last = id
	return id
}

// add gives an id to a value that the table lacks.
func (t *distinct[T, ID]) add(v T) ID {
	if t.index == nil {
		t.index = make(map[T]ID)
	}
	t.all = append(t.all, v)
	id := ID(len(t.all))
	t.index[v] = id
	return id
}

// Strings is a table of distinct strings; id 0 is "".
type Strings struct{ distinct[string, StringID] }

// Intern gives the id of b, copying it when it is new.
func (t *Strings) Intern(b []byte) StringID {
	if len(b) == 0 {
		return 0
	}
	if id, ok := t.index[string(b)]; ok {
		return id
	}
	return t.add(string(b))
}

// Frame is one entry of a stack. Name is the function's co_name (not its qualified name).
type Frame struct {
	File, Name StringID
	Line       int32 // 0 is unknown
	FX         int32 // id in Frames.FX, 0 for none
}

// FX is what torch.compile's augment_with_fx_traces adds to a frame.
type FX struct{ Op, Name, Target, OriginalTrace StringID }

// Frames is a table of distinct frames; id 0 is none.
type Frames struct {
	distinct[Frame, FrameID]
	FX    distinct[FX, int32] // by Frame.FX
	notes atomic.Pointer[[]atomic.Uint32]
	texts [3]atomic.Pointer[[]atomic.Pointer[string]]
}

// FrameText is one of the ways to write a frame.
type FrameText int

const (
	TextShort     FrameText = iota // "file:line function", the file without the folders above a package
	TextPeople                     // that, and of a C++ symbol its name
	TextOperation                  // what a C++ symbol runs
)

// Text is what of makes of a frame, kept for who asks next: stacks name the same frames many times.
func (t *Frames) Text(way FrameText, id FrameID, of func() string) string {
	room := t.texts[way].Load()
	if room == nil || len(*room) != len(t.all)+1 {
		fresh := make([]atomic.Pointer[string], len(t.all)+1)
		t.texts[way].CompareAndSwap(room, &fresh)
		room = t.texts[way].Load()
	}
	slot := &(*room)[id]
	if s := slot.Load(); s != nil {
		return *s
	}
	s := of()
	slot.Store(&s)
	return s
}

// Notes is room by frame id for what an analysis works out once for all who ask, 0 at first.
// It is emptied when frames are added.
func (t *Frames) Notes() []atomic.Uint32 {
	for {
		old := t.notes.Load()
		if old != nil && len(*old) == len(t.all)+1 {
			return *old
		}
		room := make([]atomic.Uint32, len(t.all)+1)
		if t.notes.CompareAndSwap(old, &room) {
			return room
		}
	}
}

// Intern gives the id of an equal frame, adding it when it is new.
func (t *Frames) Intern(f Frame) FrameID { return t.intern(f) }

// InternFX is Intern for a frame with torch.compile's extra keys. Equal extras share a row.
func (t *Frames) InternFX(f Frame, fx FX) FrameID {
	f.FX = t.FX.intern(fx)
	return t.intern(f)
}

// Stacks is a table of distinct stacks, each a run of frame ids, innermost first.
type Stacks struct {
	ids    []FrameID
	ends   []int32 // ends[i] is where stack i+1 ends in ids
	table  []StackID
	hashes []uint64
}

// Len is the number of distinct stacks, the empty one included once any was interned.
func (t *Stacks) Len() int { return len(t.ends) }

// Get returns the frames of a stack, innermost first. The caller must not change them.
func (t *Stacks) Get(id StackID) []FrameID {
	if id == 0 || int(id) > len(t.ends) {
		return nil
	}
	start := int32(0)
	if id > 1 {
		start = t.ends[id-2]
	}
	return t.ids[start:t.ends[id-1]:t.ends[id-1]]
}

// Intern gives the id of an equal stack, copying frames when it is new. An empty list gives
// EmptyStack.
func (t *Stacks) Intern(frames []FrameID) StackID {
	if t.ends == nil {
		t.ends = append(t.ends, 0) // EmptyStack
		t.hashes = append(t.hashes, 0)
		t.table = make([]StackID, 1<<10)
	}
	if len(frames) == 0 {
		return EmptyStack
	}
	h := hashFrames(frames)
	mask := uint64(len(t.table) - 1)
	slot := h & mask
	for ; t.table[slot] != 0; slot = (slot + 1) & mask {
		id := t.table[slot]
		if t.hashes[id-1] == h && slices.Equal(t.Get(id), frames) {
			return id
		}
	}
	t.ids = append(t.ids, frames...)
	t.ends = append(t.ends, int32(len(t.ids)))
	t.hashes = append(t.hashes, h)
	id := StackID(len(t.ends))
	t.table[slot] = id
	if 2*len(t.ends) > len(t.table) {
		t.grow()
	}
	return id
}

func (t *Stacks) grow() {
	t.table = make([]StackID, 2*len(t.table))
	mask := uint64(len(t.table) - 1)
	for i := 1; i < len(t.hashes); i++ {
		slot := t.hashes[i] & mask
		for t.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		t.table[slot] = StackID(i + 1)
	}
}

func hashFrames(frames []FrameID) uint64 {
	h := uint64(len(frames)) * 0x9e3779b97f4a7c15
	for _, f := range frames {
		h = (h ^ uint64(uint32(f))) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	return h
}

// Streams is a table of stream handles. Id 0 is the default stream, whose handle is 0, so
// ids in order of first appearance are the names that reports show.
type Streams struct{ distinct[uint64, StreamID] }

// Handle returns the raw stream handle.
func (t *Streams) Handle(id StreamID) uint64 { return t.Get(id) }

// Len counts the distinct streams, the default one included.
func (t *Streams) Len() int { return len(t.all) + 1 }

// Label holds the rare texts of an event.
type Label struct {
	CompileContext   StringID // torch 2.8: name of the compiled region, "N/A" when none
	UserMetadata     StringID // torch 2.10: _set_memory_metadata
	InternalMetadata StringID // after torch 2.14
	Category         StringID // snapshots made from a profiler
	ForwardFrames    StringID // torch 2.11: the forward traceback of a backward allocation, joined
	CppFrames        StringID // torch 2.0: raw backtrace text
	Action           StringID // the word, when the action is unknown
	Pool             PoolID   // torch 2.12
	HasPool          bool
}

// Labels is a table of distinct labels; id 0 is the empty one.
type Labels struct{ distinct[Label, LabelID] }
