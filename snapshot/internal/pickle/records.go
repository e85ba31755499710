package pickle

import (
	"math"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// snapshotRec is a dict with segments or device_traces.
type snapshotRec struct {
	segments, traces, settings, annotations value
	hostSegments, hostTraces                value
	has                                     uint64
}

// record recognizes a dict by its keys and turns it into a row. Dicts that are none of the
// format's give kDict; the caller keeps their pairs.
func (d *machine) record(pairs []value) (value, error) {
	var mask uint64
	strange := false
	for i := 0; i+1 < len(pairs); i += 2 {
		if k := pairs[i]; k.kind == kStr && k.u < numKeys && k.u != 0 {
			d.field[k.u] = pairs[i+1]
			mask |= 1 << k.u
		} else {
			strange = true
		}
	}
	v, where, err := d.build(mask)
	if strange && where != "" {
		d.noteStrange(where, pairs)
	}
	return v, err
}

// build makes the row from d.field.
func (d *machine) build(mask uint64) (value, string, error) {
	has := func(key int) bool { return mask&bit(key) != 0 }
	switch {
	case has(keyAction):
		d.event(mask)
		return row(kEvent, d.events.Len(), "event")
	case has(keyFilename) || has(keyName) && has(keyLine):
		return value{u: uint64(d.frame(mask)), kind: kFrame}, "frame", nil
	case d.isHost(mask):
		d.hosts = append(d.hosts, d.host(mask))
		return row(kHostSegment, len(d.hosts), "host segment")
	case has(keyBlocks) || has(keyTotalSize):
		d.segment(mask)
		return row(kSegment, len(d.out.Segments), "segment")
	case has(keyState) && has(keySize):
		d.block(mask)
		return row(kBlock, len(d.out.Blocks), "block")
	case has(keyRealSize):
		d.out.History = append(d.out.History, snapshot.HistoryEntry{
			Address: d.address(mask, keyAddr), RealSize: d.int(mask, keyRealSize), Stack: d.frames(mask),
		})
		return row(kHistory, len(d.out.History), "history")
	case has(keyStage):
		d.annots = append(d.annots, snapshot.Annotation{
			Time: d.int(mask, keyTimeUS), Name: d.str(mask, keyName), Device: int32(d.int(mask, keyDevice)),
			End: d.str(mask, keyStage) == wordEnd,
		})
		return row(kAnnotation, len(d.annots), "annotation")
	case has(keySegments) || has(keyDeviceTraces):
		r := snapshotRec{
			has: mask, segments: d.val(mask, keySegments), settings: d.val(mask, keyAllocatorSettings),
			annotations: d.val(mask, keyExternalAnnotations), hostSegments: d.val(mask, keyHostSegments),
			hostTraces: d.val(mask, keyHostTraces), traces: d.val(mask, keyTraces),
		}
		if has(keyDeviceTraces) {
			r.traces = d.field[keyDeviceTraces]
		}
		d.snaps = append(d.snaps, r)
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

func (d *machine) event(mask uint64) {
	e := d.events.Next()
	act := d.field[keyAction]
	if act.kind == kStr {
		e.Action = action(act.u)
	}
	e.Addr = d.address(mask, keyAddr)
	if v := d.val(mask, keySize); isInt(v) {
		e.Size = clampInt(v)
		e.Has |= snapshot.EventHasSize
	}
	e.Stream = d.out.Streams.Intern(d.address(mask, keyStream))
	if v := d.val(mask, keyTimeUS); isInt(v) {
		e.Time = clampInt(v)
		e.Has |= snapshot.EventHasTime
	}
	e.Stack = d.frames(mask)
	const plain = 1<<keyAction | 1<<keyAddr | 1<<keySize | 1<<keyStream | 1<<keyTimeUS | 1<<keyFrames
	if mask&^plain != 0 || e.Action == snapshot.ActionUnknown {
		d.eventExtras(e, mask, act)
	}
}

// eventExtras reads the keys that few events have.
func (d *machine) eventExtras(e *snapshot.Event, mask uint64, act value) {
	if e.Action == snapshot.OOM {
		// Old dumps store the device's free bytes as addr.
		if v := d.val(mask, keyDeviceFree); isInt(v) {
			e.Addr, e.Has = v.u, e.Has|snapshot.EventHasDeviceFree
		}
	}
	l := snapshot.Label{
		CompileContext: d.str(mask, keyCompileContext), UserMetadata: d.text(mask, keyUserMetadata),
		InternalMetadata: d.str(mask, keyInternalMetadata), Category: d.str(mask, keyCategory),
		ForwardFrames: d.text(mask, keyForwardFrames), CppFrames: d.str(mask, keyCppFrames),
	}
	if e.Action == snapshot.ActionUnknown && act.kind == kStr {
		l.Action = snapshot.StringID(act.u)
	}
	l.Pool, l.HasPool = d.pool(d.val(mask, keyPoolID))
	e.Label = d.out.Labels.Intern(l)
}

func (d *machine) frame(mask uint64) snapshot.FrameID {
	f := snapshot.Frame{File: d.str(mask, keyFilename), Name: d.str(mask, keyName)}
	if line := d.int(mask, keyLine); line > 0 && line <= math.MaxInt32 {
		f.Line = int32(line)
	}
	const fx = 1<<keyFXOp | 1<<keyFXName | 1<<keyFXTarget | 1<<keyFXTrace
	if mask&fx == 0 {
		return d.out.Frames.Intern(f)
	}
	return d.out.Frames.InternFX(f, snapshot.FX{
		Op: d.str(mask, keyFXOp), Name: d.str(mask, keyFXName), Target: d.str(mask, keyFXTarget),
		OriginalTrace: d.str(mask, keyFXTrace),
	})
}

func (d *machine) segment(mask uint64) {
	s := snapshot.Segment{
		Address: d.address(mask, keyAddress), TotalSize: d.int(mask, keyTotalSize),
		AllocatedSize: d.int(mask, keyAllocatedSize), ActiveSize: d.int(mask, keyActiveSize),
		RequestedSize: d.int(mask, keyRequestedSize), Device: int32(clampDevice(d.int(mask, keyDevice))),
		Stack: d.frames(mask), Blocks: d.rowsOf(d.val(mask, keyBlocks), kBlock),
		Stream: d.out.Streams.Intern(d.address(mask, keyStream)), Expandable: d.val(mask, keyIsExpandable).u != 0,
		Has: given(mask, bit(keyIsExpandable), snapshot.SegmentHasExpandable) |
			given(mask, bit(keyRequestedSize), snapshot.SegmentHasRequested) |
			given(mask, bit(keyAllocatedSize)|bit(keyActiveSize), snapshot.SegmentHasTotals),
	}
	if isInt(d.val(mask, keyStream)) {
		s.Has |= snapshot.SegmentHasStream
	}
	switch d.str(mask, keySegmentType) {
	case wordSmall:
		s.Kind = snapshot.KindSmall
	case wordLarge:
		s.Kind = snapshot.KindLarge
	}
	s.Pool, _ = d.pool(d.val(mask, keySegmentPoolID))
	d.out.Segments = append(d.out.Segments, s)
}

// isHost recognizes a host segment. The names of its keys were never seen in a file: the C++
// fields are address, size, allocated, active and owner_private_pool_id (snapshot/SPEC.md 2.8, PR
// 182407), and the record that torch makes of a device's segment has other names for some of them
// (torch/csrc/cuda/memory_snapshot.cpp, segmentInfoToDict). Either is read; hostSegments reads those
// that look like a device's segments or blocks.
func (d *machine) isHost(mask uint64) bool {
	has := func(key int) bool { return mask&bit(key) != 0 }
	return (has(keyAddress) || has(keyAddr)) && !has(keyBlocks) &&
		(has(keyAllocated) || has(keyActive) || has(keyState) && (has(keyTotalSize) || has(keyAddr)))
}

func (d *machine) host(mask uint64) snapshot.HostSegment {
	h := snapshot.HostSegment{Address: d.address(mask, keyAddress), Size: d.int(mask, keySize), Stack: d.frames(mask),
		State: d.state(mask)}
	if mask&bit(keyAddress) == 0 {
		h.Address = d.address(mask, keyAddr)
	}
	if mask&bit(keySize) == 0 {
		h.Size = d.int(mask, keyTotalSize)
	}
	for _, key := range []int{keySegmentPoolID, keyPoolID, keyOwnerPoolID} {
		if mask&bit(key) != 0 {
			h.Pool, _ = d.pool(d.field[key])
		}
	}
	yes := func(key int) bool {
		v := d.val(mask, key)
		return v.u != 0 && (v.kind == kBool || isInt(v))
	}
	switch {
	case h.State != snapshot.StateUnknown || mask&(bit(keyAllocated)|bit(keyActive)) == 0:
	case yes(keyAllocated), mask&bit(keyAllocated) == 0 && yes(keyActive):
		h.State = snapshot.StateAllocated
	case yes(keyActive):
		h.State = snapshot.StatePendingFree // aten/src/ATen/core/CachingHostAllocator.h: event_count_ > 0
	default:
		h.State = snapshot.StateInactive
	}
	return h
}

func (d *machine) block(mask uint64) {
	d.out.Blocks = append(d.out.Blocks, snapshot.Block{
		Address: d.address(mask, keyAddress), Size: d.int(mask, keySize), Requested: d.int(mask, keyRequestedSize),
		Stack: d.frames(mask), History: d.rowsOf(d.val(mask, keyHistory), kHistory), State: d.state(mask),
		Has: given(mask, bit(keyAddress), snapshot.BlockHasAddress) |
			given(mask, bit(keyRequestedSize), snapshot.BlockHasRequested) |
			given(mask, bit(keyHistory), snapshot.BlockHasHistory),
	})
}

// given is flag where mask has all of the keys.
func given[F ~uint8](mask, keys uint64, flag F) F {
	if mask&keys != keys {
		return 0
	}
	return flag
}

func (d *machine) state(mask uint64) snapshot.BlockState {
	switch d.str(mask, keyState) {
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

// val is the value of a key, None where mask lacks it.
func (d *machine) val(mask uint64, key int) value {
	if mask&bit(key) == 0 {
		return value{}
	}
	return d.field[key]
}

func (d *machine) int(mask uint64, key int) int64 {
	if v := d.val(mask, key); isInt(v) {
		return clampInt(v)
	}
	return 0
}

func (d *machine) address(mask uint64, key int) uint64 {
	if v := d.val(mask, key); isInt(v) {
		return v.u
	}
	return 0
}

func (d *machine) str(mask uint64, key int) snapshot.StringID {
	if v := d.val(mask, key); v.kind == kStr {
		return snapshot.StringID(v.u)
	}
	return 0
}

// text reads a string, or joins a list of strings.
func (d *machine) text(mask uint64, key int) snapshot.StringID {
	v := d.val(mask, key)
	if v.kind == kStr {
		return snapshot.StringID(v.u)
	}
	items := d.items(v)
	if len(items) == 0 {
		return 0
	}
	var b strings.Builder
	for _, it := range items {
		if it.kind != kStr {
			continue
		}
		s := d.out.Strings.Get(snapshot.StringID(it.u))
		if b.Len()+len(s) > maxJoined {
			break
		}
		b.WriteString(s)
	}
	// The parts may be shared: few bytes of input can mean many distinct texts.
	if d.joined > d.read+baseMemory/4 {
		return 0
	}
	before := d.out.Strings.Len()
	id := d.out.Strings.Intern([]byte(b.String()))
	d.joined += int64(d.out.Strings.Len()-before) * int64(b.Len())
	return id
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

func (d *machine) frames(mask uint64) snapshot.StackID {
	switch v := d.val(mask, keyFrames); v.kind {
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
