package pickle

// kind is the type of a value on the stack or in the memo.
type kind uint8

const (
	kNone   kind = iota
	kBool        // u is 0 or 1
	kInt         // u holds an int64
	kUint        // u is at least 2^63
	kBig         // an integer that needs more than 64 bits: its value is not kept
	kFloat       // u holds the bits of a float64
	kStr         // u is a StringID
	kOpaque      // bytes and the like: not kept
	kPair        // a tuple (or JSON list) of two int32, the low half first
	kTuple       // run of vals
	kOrderedDict
	kTypeTag

	kEmptyList // a list with nothing in it yet
	kEmptyDict
	kUsedEmptyList // in the memo: an empty list that was fetched, so it must stay empty
	kUsedEmptyDict

	kFrame    // u is a FrameID
	kStack    // u is a StackID
	kList     // u is an index in lists
	kDict     // run of vals: keys and values in turn
	kSnapshot // u is an index in snaps

	// Runs of rows: a single record, or neighbors that the machine joined.
	kEvent
	kSegment
	kBlock
	kHistory
	kAnnotation
	kHostSegment

	kOpenFrames // run of vals, all frames: a stack that may still grow
	kOpenDict   // like kDict, not yet looked at: it came one item at a time
	kBoxed      // in the memo: u is an index in boxes, for values of more than 56 bits
)

// value is one slot of the machine's stack.
type value struct {
	u    uint64
	memo uint32 // 1 + the memo slot that must follow the changes of this container, 0 for none
	kind kind
}

func run(k kind, start, n uint32) value { return value{u: uint64(start) | uint64(n)<<32, kind: k} }

func (v value) start() uint32 { return uint32(v.u) }
func (v value) count() uint32 { return uint32(v.u >> 32) }

// isRow reports whether v is a run of table rows.
func (v value) isRow() bool { return v.kind >= kEvent && v.kind <= kHostSegment }

// isOpenDict reports whether v is a dict that may still grow.
func (v value) isOpenDict() bool { return v.kind == kEmptyDict || v.kind == kOpenDict }

// listRec is a list that is not a stack. Lists of rows are a range of the row's table;
// others (elem kNone) are a range of vals.
type listRec struct {
	elem     kind
	start, n uint32
}

// memoEntry packs a value into 8 bytes: its kind in the top byte, 56 bits of u below.
type memoEntry uint64

const memoBits = 56

// noEntry marks a memo slot that nothing was put into.
const noEntry = ^memoEntry(0)

func (d *machine) pack(v value) memoEntry {
	if v.isRow() {
		// Only the last row can be meant: neighbors were joined behind the file's back.
		v.u = uint64(v.start() + v.count() - 1)
	} else if v.u>>memoBits != 0 {
		d.boxes = append(d.boxes, v)
		v = value{u: uint64(len(d.boxes) - 1), kind: kBoxed}
	}
	return memoEntry(v.kind)<<memoBits | memoEntry(v.u)
}

func (d *machine) unpack(e memoEntry) value {
	v := value{u: uint64(e) & (1<<memoBits - 1), kind: kind(e >> memoBits)}
	if v.isRow() {
		v.u |= 1 << 32
	} else if v.kind == kBoxed {
		v = d.boxes[v.u]
		v.memo = 0
	}
	return v
}
