package pickle

import (
	"math"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// fields are the values of the dict that was read last, by key.
type fields struct {
	has    uint64 // the keys that it has
	values [numKeys]value
}

// record recognizes a dict by its keys and turns it into a row. Dicts that are none of the
// format's give kDict; the caller keeps their pairs.
func (d *machine) record(pairs []value) (value, error) {
	d.has = 0
	strange := false
	for i := 0; i+1 < len(pairs); i += 2 {
		if k := pairs[i]; k.kind == kStr && k.u < numKeys && k.u != 0 {
			d.values[k.u] = pairs[i+1]
			d.has |= 1 << k.u
		} else {
			strange = true
		}
	}
	v, where, err := d.build()
	if strange && where != "" {
		d.noteStrange(where, pairs)
	}
	return v, err
}

// build makes the row.
func (d *machine) build() (value, string, error) {
	has := d.hasKey
	switch {
	case has(keyAction):
		d.event()
		return row(kEvent, d.events.Len(), "event")
	case has(keyFilename) || has(keyName) && has(keyLine):
		return value{u: uint64(d.frame()), kind: kFrame}, "frame", nil
	case d.isHost():
		d.hosts = append(d.hosts, d.host())
		return row(kHostSegment, len(d.hosts), "host segment")
	case has(keyBlocks) || has(keyTotalSize):
		d.segment()
		return row(kSegment, len(d.out.Segments), "segment")
	case has(keyState) && has(keySize):
		d.block()
		return row(kBlock, len(d.out.Blocks), "block")
	case has(keyRealSize):
		d.out.History = append(d.out.History, snapshot.HistoryEntry{
			Address: d.address(keyAddr), RealSize: d.int(keyRealSize), Stack: d.frames(),
		})
		return row(kHistory, len(d.out.History), "history")
	case has(keyStage):
		d.annots = append(d.annots, snapshot.Annotation{
			Time: d.int(keyTimeUS), Name: d.clipped(d.str(keyName), snapshot.MaxName, head), Device: int32(d.int(keyDevice)),
			End: d.str(keyStage) == wordEnd,
		})
		return row(kAnnotation, len(d.annots), "annotation")
	case has(keySegments) || has(keyDeviceTraces):
		d.snaps = append(d.snaps, d.fields)
		return value{u: uint64(len(d.snaps) - 1), kind: kSnapshot}, "snapshot", nil
	}
	return value{kind: kDict}, "", nil
}

// row is the last of the rows of a table.
func row(k kind, rows int, where string) (value, string, error) {
	if rows >= math.MaxInt32 {
		return value{}, where, &fault{snapshot.ErrLimit, "more than 2^31 records of one kind"}
	}
	return run(k, uint32(rows-1), 1), where, nil
}

// event adds an event.
func (d *machine) event() {
	var e snapshot.Event
	act := d.str(keyAction)
	e.Action, e.Addr, e.Stack = action(uint64(act)), d.address(keyAddr), d.frames()
	e.Stream = d.out.Streams.Intern(d.address(keyStream))
	if _, ok := d.number(keySize); ok {
		e.Size, e.Has = clampInt(d.values[keySize]), e.Has|snapshot.EventHasSize
	}
	if _, ok := d.number(keyTimeUS); ok {
		e.Time, e.Has = clampInt(d.values[keyTimeUS]), e.Has|snapshot.EventHasTime
	}
	const plain = 1<<keyAction | 1<<keyAddr | 1<<keySize | 1<<keyStream | 1<<keyTimeUS | 1<<keyFrames
	if d.has&^plain != 0 || e.Action == snapshot.ActionUnknown {
		d.eventExtras(&e, act)
	}
	d.events.Add(e)
}

// eventExtras reads the keys that few events have.
func (d *machine) eventExtras(e *snapshot.Event, act snapshot.StringID) {
	if e.Action == snapshot.OOM {
		// Old dumps store the device's free bytes as addr.
		if free, ok := d.number(keyDeviceFree); ok {
			e.Addr, e.Has = free, e.Has|snapshot.EventHasDeviceFree
		}
	}
	e.Has |= given(d.has, bit(keyUserMetadata), snapshot.EventHasMetadata)
	name := func(id snapshot.StringID) snapshot.StringID { return d.clipped(id, snapshot.MaxName, head) }
	l := snapshot.Label{
		CompileContext: name(d.str(keyCompileContext)), UserMetadata: name(d.text(keyUserMetadata)),
		InternalMetadata: name(d.str(keyInternalMetadata)), Category: name(d.str(keyCategory)),
		ForwardFrames: d.clipped(d.text(keyForwardFrames), maxJoined, tail),
		CppFrames:     d.clipped(d.str(keyCppFrames), maxJoined, head),
	}
	if e.Action == snapshot.ActionUnknown {
		l.Action = name(act)
	}
	l.Pool, l.HasPool = d.pool(d.val(keyPoolID))
	e.Label = d.out.Labels.Intern(l)
}

func (d *machine) frame() snapshot.FrameID {
	path, name := snapshot.MaxName, snapshot.MaxSymbol
	if d.frameText > d.read+maxFrameText {
		path, name = fewBytes, fewBytes
	}
	f := snapshot.Frame{File: d.clipped(d.str(keyFilename), path, tail), Name: d.clipped(d.str(keyName), name, head)}
	if line := d.int(keyLine); line > 0 && line <= math.MaxInt32 {
		f.Line = int32(line)
	}
	before := d.out.Frames.Len()
	var id snapshot.FrameID
	const fx = 1<<keyFXOp | 1<<keyFXName | 1<<keyFXTarget | 1<<keyFXTrace
	if d.has&fx == 0 {
		id = d.out.Frames.Intern(f)
	} else {
		id = d.out.Frames.InternFX(f, snapshot.FX{
			Op:            d.clipped(d.str(keyFXOp), snapshot.MaxName, head),
			Name:          d.clipped(d.str(keyFXName), snapshot.MaxName, head),
			Target:        d.clipped(d.str(keyFXTarget), snapshot.MaxName, head),
			OriginalTrace: d.clipped(d.str(keyFXTrace), maxJoined, tail),
		})
	}
	if d.out.Frames.Len() > before {
		d.frameText += int64(len(d.out.Strings.Get(f.File)) + len(d.out.Strings.Get(f.Name)))
	}
	return id
}

// side is the end of a text that is kept when it is cut: of a name the beginning, of a path or a traceback the end.
type side bool

const (
	head side = false
	tail side = true
)

const (
	ellipsis = "…"
	// The names and paths of all frames, each frame with its own, may be as long as the input and maxFrameText;
	// those of further frames are cut to fewBytes.
	maxFrameText = 4 << 20
	fewBytes     = 64
)

// clipped is a text of at most that many bytes, cut where it is longer: records share texts, so that a few bytes of
// input can mean a long one many times over.
func (d *machine) clipped(id snapshot.StringID, most int, keep side) snapshot.StringID {
	s := d.out.Strings.Get(id)
	if len(s) <= most {
		return id
	}
	key := clipKey{id, int32(most), keep}
	short, ok := d.short[key]
	if ok {
		return short
	}
	if n := most - len(ellipsis); keep == head {
		s = strings.ToValidUTF8(s[:n], "") + ellipsis
	} else {
		s = ellipsis + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	short = d.out.Strings.Intern([]byte(s))
	if d.short == nil {
		d.short = map[clipKey]snapshot.StringID{}
	}
	d.short[key] = short
	d.out.Clipped++
	return short
}

type clipKey struct {
	id   snapshot.StringID
	most int32
	keep side
}

func (d *machine) segment() {
	s := snapshot.Segment{
		Address: d.address(keyAddress), TotalSize: d.int(keyTotalSize),
		AllocatedSize: d.int(keyAllocatedSize), ActiveSize: d.int(keyActiveSize),
		RequestedSize: d.int(keyRequestedSize), Device: int32(clampDevice(d.int(keyDevice))),
		Stack: d.frames(), Blocks: d.rowsOf(d.val(keyBlocks), kBlock),
		Stream: d.out.Streams.Intern(d.address(keyStream)), Expandable: d.val(keyIsExpandable).u != 0,
		Has: given(d.has, bit(keyIsExpandable), snapshot.SegmentHasExpandable) |
			given(d.has, bit(keyRequestedSize), snapshot.SegmentHasRequested) |
			given(d.has, bit(keyAllocatedSize)|bit(keyActiveSize), snapshot.SegmentHasTotals),
	}
	if isInt(d.val(keyStream)) {
		s.Has |= snapshot.SegmentHasStream
	}
	switch d.str(keySegmentType) {
	case wordSmall:
		s.Kind = snapshot.KindSmall
	case wordLarge:
		s.Kind = snapshot.KindLarge
	}
	s.Pool, _ = d.pool(d.val(keySegmentPoolID))
	d.out.Segments = append(d.out.Segments, s)
}

// isHost recognizes a host segment. The names of its keys were never seen in a file: the C++
// fields are address, size, allocated, active and owner_private_pool_id (snapshot/SPEC.md 2.8, PR
// 182407), and the record that torch makes of a device's segment has other names for some of them
// (torch/csrc/cuda/memory_snapshot.cpp, segmentInfoToDict). Either is read; hostSegments reads those
// that look like a device's segments or blocks.
func (d *machine) isHost() bool {
	has := d.hasKey
	return (has(keyAddress) || has(keyAddr)) && !has(keyBlocks) &&
		(has(keyAllocated) || has(keyActive) || has(keyState) && (has(keyTotalSize) || has(keyAddr)))
}

func (d *machine) host() snapshot.HostSegment {
	h := snapshot.HostSegment{Address: d.address(keyAddress), Size: d.int(keySize), Stack: d.frames(),
		State: d.state()}
	if !d.hasKey(keyAddress) {
		h.Address = d.address(keyAddr)
	}
	if !d.hasKey(keySize) {
		h.Size = d.int(keyTotalSize)
	}
	for _, key := range []int{keySegmentPoolID, keyPoolID, keyOwnerPoolID} {
		if d.hasKey(key) {
			h.Pool, _ = d.pool(d.values[key])
		}
	}
	yes := func(key int) bool {
		v := d.val(key)
		return v.u != 0 && (v.kind == kBool || isInt(v))
	}
	switch {
	case h.State != snapshot.StateUnknown || d.has&(bit(keyAllocated)|bit(keyActive)) == 0:
	case yes(keyAllocated), !d.hasKey(keyAllocated) && yes(keyActive):
		h.State = snapshot.StateAllocated
	case yes(keyActive):
		h.State = snapshot.StatePendingFree // aten/src/ATen/core/CachingHostAllocator.h: event_count_ > 0
	default:
		h.State = snapshot.StateInactive
	}
	return h
}

func (d *machine) block() {
	d.out.Blocks = append(d.out.Blocks, snapshot.Block{
		Address: d.address(keyAddress), Size: d.int(keySize), Requested: d.int(keyRequestedSize),
		Stack: d.frames(), History: d.rowsOf(d.val(keyHistory), kHistory), State: d.state(),
		Has: given(d.has, bit(keyAddress), snapshot.BlockHasAddress) |
			given(d.has, bit(keyRequestedSize), snapshot.BlockHasRequested) |
			given(d.has, bit(keyHistory), snapshot.BlockHasHistory),
	})
}

// given is flag where has has all of the keys.
func given[F ~uint8](has, keys uint64, flag F) F {
	if has&keys != keys {
		return 0
	}
	return flag
}

func (d *machine) state() snapshot.BlockState {
	switch d.str(keyState) {
	case wordActiveAllocated, keyAllocated, keyActive: // the last two for host segments
		return snapshot.StateAllocated
	case wordActivePendingFree, wordActiveAwaitingFree:
		return snapshot.StatePendingFree
	case wordInactive:
		return snapshot.StateInactive
	}
	return snapshot.StateUnknown
}

func isInt(v value) bool { return v.kind == kInt || v.kind == kUint }

// clampInt reads a signed quantity. Values of 2^63 and more, which no quantity in bytes or
// microseconds can be, stay huge instead of wrapping.
func clampInt(v value) int64 {
	if v.kind == kUint {
		return math.MaxInt64
	}
	return int64(v.u)
}

func clampDevice(n int64) int64 { return min(max(n, -1), 1<<16) }

// hasKey reports whether the dict has a key.
func (f *fields) hasKey(key int) bool { return f.has&bit(key) != 0 }

// val is the value of a key, None where the dict lacks it.
func (f *fields) val(key int) value {
	if !f.hasKey(key) {
		return value{}
	}
	return f.values[key]
}

// number is the integer at a key, and whether there is one.
func (f *fields) number(key int) (u uint64, ok bool) {
	v := &f.values[key]
	return v.u, f.hasKey(key) && (v.kind == kInt || v.kind == kUint)
}

func (f *fields) int(key int) int64 {
	if _, ok := f.number(key); ok {
		return clampInt(f.values[key])
	}
	return 0
}

func (f *fields) address(key int) uint64 {
	if u, ok := f.number(key); ok {
		return u
	}
	return 0
}

func (f *fields) str(key int) snapshot.StringID {
	if v := f.val(key); v.kind == kStr {
		return snapshot.StringID(v.u)
	}
	return 0
}

// text reads a string, or joins a list of strings.
func (d *machine) text(key int) snapshot.StringID {
	v := d.val(key)
	if v.kind == kStr {
		return snapshot.StringID(v.u)
	}
	items := d.items(v)
	if len(items) == 0 {
		return 0
	}
	d.scratch = d.scratch[:0]
	for _, it := range items {
		if it.kind == kStr {
			d.scratch = append(d.scratch, snapshot.FrameID(it.u)) // of a string, for once
		}
	}
	list := int(d.lines.Intern(d.scratch))
	for len(d.texts) <= list {
		d.texts = append(d.texts, -1)
	}
	if d.texts[list] < 0 {
		d.texts[list] = d.joinLines(d.scratch)
	}
	return d.texts[list]
}

// joinLines is the text of lines, which are ids of strings. They may be shared, so that few bytes of input can mean many
// long texts: what is too much is left out.
func (d *machine) joinLines(lines []snapshot.FrameID) snapshot.StringID {
	if d.joined > d.read+baseMemory/4 {
		d.out.Clipped++
		return 0
	}
	var b []byte
	for _, id := range lines {
		s := d.out.Strings.Get(snapshot.StringID(id))
		if len(b)+len(s) > maxJoined {
			d.out.Clipped++
			break
		}
		b = append(b, s...)
	}
	d.joined += int64(len(b))
	return d.out.Strings.Intern(b)
}

// items gives the elements of a list or tuple of values, nil for anything else.
func (d *machine) items(v value) []value {
	if v.kind == kTuple {
		return d.span(v)
	}
	if !d.holds(v, kNone) {
		return nil
	}
	l := d.lists[v.u]
	return d.vals[l.start : l.start+l.n]
}

func (d *machine) frames() snapshot.StackID {
	switch v := d.val(keyFrames); v.kind {
	case kStack:
		return snapshot.StackID(v.u)
	case kEmptyList:
		return d.out.Stacks.Intern(nil)
	}
	return 0
}

func (d *machine) pool(v value) (snapshot.PoolID, bool) {
	if v.kind == kPair {
		return snapshot.PoolID{A: int64(int32(v.u)), B: int64(v.u) >> 32}, true
	}
	if it := d.items(v); len(it) == 2 && isInt(it[0]) && isInt(it[1]) {
		return snapshot.PoolID{A: clampInt(it[0]), B: clampInt(it[1])}, true
	}
	return snapshot.PoolID{}, false
}

const (
	maxUnknown = 1000
	maxJoined  = 64 << 10 // bytes of one joined text
)

func (d *machine) noteStrange(where string, pairs []value) {
	for i := 0; i+1 < len(pairs); i += 2 {
		k := pairs[i]
		if k.kind == kStr && k.u < numKeys && k.u != 0 {
			continue
		}
		key := unknownKey{where: where}
		if k.kind == kStr {
			key.key = snapshot.StringID(k.u)
		}
		if _, ok := d.unknown[key]; ok || len(d.unknown) < maxUnknown {
			d.unknown[key]++
		}
	}
}
