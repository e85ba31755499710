package pickle

import (
	"bytes"
	"encoding/binary"

	"github.com/snapana/snapana/snapshot"
)

// Nearly all bytes of a snapshot are trace events, and half of those are references to
// frames. The two paths of this file read an event, and a list of frames, in one go when they
// look as torch writes them. They change nothing before they know that they can finish;
// whatever they do not expect is left to the opcode loop, which gives the same result.

// fastEvent reads an event dict whose EMPTY_DICT ends at l.p. It reports false, with the
// machine as it was, when the dict is anything else.
func (l *loop) fastEvent() bool {
	buf, p := l.src.buf, l.p
	if p >= l.lim {
		return false
	}
	memo := len(l.memo)
	p, isPut := l.fastPut(buf, p, noEntry) // the row is not known yet
	if buf[p] != opMark {
		l.memo = l.memo[:memo]
		return false
	}
	row := l.events.Len()
	p, ok := l.fastPairs(buf, p+1)
	if !ok {
		l.memo = l.memo[:memo]
		return false
	}
	l.p = p
	if isPut {
		l.memo[memo] = memoEntry(kEvent)<<memoBits | memoEntry(row)
	}
	l.pushEvent(uint32(row))
	return true
}

// fastPairs reads the keys and values of an event up to its SETITEMS, and adds it.
func (l *loop) fastPairs(buf []byte, p int) (int, bool) {
	var has uint64
	d := l.machine
	for lim := l.lim; p < lim; {
		var ref uint64
		switch buf[p] {
		case opLongBinGet:
			ref = uint64(binary.LittleEndian.Uint32(buf[p+1:]))
			p += 5
		case opBinGet:
			ref = uint64(buf[p+1])
			p += 2
		case opSetItems:
			if has&bit(keyAction) == 0 {
				return p, false
			}
			d.has = has
			d.event()
			return p + 1, true
		default:
			return p, false
		}
		if ref = d.slot(ref); ref >= uint64(len(d.memo)) {
			return p, false
		}
		key := uint64(d.memo[ref]) ^ uint64(kStr)<<memoBits // the string's id, huge for anything else
		if key >= numKeys || key == 0 {
			return p, false
		}
		var ok bool
		if p, ok = l.fastValue(buf, p, &d.values[key]); !ok {
			return p, false
		}
		has |= 1 << (key & 63)
	}
	return p, false
}

// pushEvent pushes a row, or lengthens the run of rows before it.
func (l *loop) pushEvent(row uint32) {
	if n := len(l.stack); n > l.floor() {
		if top := &l.stack[n-1]; top.kind == kEvent && top.start()+top.count() == row {
			top.u += 1 << 32
			return
		}
	}
	l.stack = append(l.stack, run(kEvent, row, 1))
}

// fastPut reads a memo opcode that gives the next free index, as writers do, and stores e
// there. Without one it leaves p alone.
func (l *loop) fastPut(buf []byte, p int, e memoEntry) (int, bool) {
	switch buf[p] {
	case opMemoize:
		p++
	case opBinPut:
		if uint64(buf[p+1]) != l.slots() {
			return p, false
		}
		p += 2
	case opLongBinPut:
		if uint64(binary.LittleEndian.Uint32(buf[p+1:])) != l.slots() {
			return p, false
		}
		p += 5
	default:
		return p, false
	}
	l.memo = append(l.memo, e)
	return p, true
}

// fastValue reads the value of one key into v. The window's margin makes wide loads safe.
func (l *loop) fastValue(buf []byte, p int, v *value) (int, bool) {
	switch buf[p] {
	case opLong1:
		n := int(buf[p+1])
		if n-1 >= 8 || n == 0 {
			return p, false
		}
		shift := uint(64-8*n) & 63
		*v = value{u: uint64(int64(binary.LittleEndian.Uint64(buf[p+2:])<<shift) >> shift), kind: kInt}
		return p + 2 + n, true
	case opBinInt:
		*v = value{u: uint64(int64(int32(binary.LittleEndian.Uint32(buf[p+1:])))), kind: kInt}
		return p + 5, true
	case opBinInt2:
		*v = value{u: uint64(binary.LittleEndian.Uint16(buf[p+1:])), kind: kInt}
		return p + 3, true
	case opBinInt1:
		*v = value{u: uint64(buf[p+1]), kind: kInt}
		p += 2
	case opBinGet:
		return p + 2, l.fastGet(uint32(buf[p+1]), v)
	case opLongBinGet:
		return p + 5, l.fastGet(binary.LittleEndian.Uint32(buf[p+1:]), v)
	case opEmptyList:
		s, p, _, ok := l.fastFrames(buf, p+1)
		*v = s
		return p, ok
	case opShortBinUnicode:
		n := int(buf[p+1])
		id := l.intern(buf[p+2 : p+2+n])
		*v = value{u: uint64(id), kind: kStr}
		p, _ = l.fastPut(buf, p+2+n, memoEntry(kStr)<<memoBits|memoEntry(id))
		return p, true
	default:
		return p, false
	}
	// A small number may begin a pair, the pool_id.
	if buf[p] == opBinInt1 && buf[p+2] == opTuple2 {
		*v = pair(*v, value{u: uint64(buf[p+1])})
		p, _ = l.fastPut(buf, p+3, memoEntry(kPair)<<memoBits|memoEntry(v.u))
	}
	return p, true
}

// fastGet reads a memo entry of a kind that events refer to.
func (l *loop) fastGet(i uint32, v *value) bool {
	at := l.slot(uint64(i))
	if at >= uint64(len(l.memo)) {
		return false
	}
	e := l.memo[at]
	*v = value{u: uint64(e) & (1<<memoBits - 1), kind: kind(e >> memoBits)}
	switch v.kind {
	case kUsedEmptyList:
		v.kind = kEmptyList
	case kEmptyList:
		l.memo[at] = memoEntry(kUsedEmptyList) << memoBits
	case kStr, kStack, kPair:
	default:
		return false
	}
	return true
}

// fastStack reads a list of frames whose EMPTY_LIST ends at l.p. It reports false, with the
// machine as it was, when the list is anything else.
func (l *loop) fastStack() bool {
	memo := len(l.memo)
	v, p, isPut, ok := l.fastFrames(l.src.buf, l.p)
	if !ok || len(l.stack) >= maxStack {
		l.memo = l.memo[:memo]
		return false
	}
	if isPut {
		v.memo = uint32(l.slots())
	}
	l.stack = append(l.stack, v)
	l.p = p
	return true
}

// fastFrames reads what follows the EMPTY_LIST of a list of frames. After a failure the
// memo may have grown.
func (l *loop) fastFrames(buf []byte, p int) (v value, next int, isPut, ok bool) {
	if p >= l.lim {
		return v, p, false, false
	}
	slot := len(l.memo)
	p, isPut = l.fastPut(buf, p, memoEntry(kEmptyList)<<memoBits)
	var s snapshot.StackID
	switch buf[p] {
	case opMark:
		if buf[p+1] == opAppends { // an empty list of anything
			return v, p, isPut, false
		}
		if s, p, ok = l.frameRun(buf, p+1); !ok {
			return v, p, isPut, false
		}
	case opBinGet, opLongBinGet: // a key, if the list is empty; a frame, if APPEND follows
		width := 2
		if buf[p] == opLongBinGet {
			width = 5
		}
		if buf[p+width] == opAppend {
			return v, p, isPut, false
		}
		return value{kind: kEmptyList}, p, isPut, true
	case opSetItems:
		return value{kind: kEmptyList}, p, isPut, true
	default:
		return v, p, isPut, false
	}
	e := memoEntry(kStack)<<memoBits | memoEntry(s)
	if isPut {
		l.memo[slot] = e
	} else {
		p, isPut = l.fastPut(buf, p, e) // torch's own pickler memoizes afterwards
	}
	return value{u: uint64(s), kind: kStack}, p, isPut, true
}

// runCache maps the bytes of a run of references, up to its APPENDS, to the stack that they
// give. Memo entries never change in files that writers make, so equal bytes mean equal
// stacks; the cache is emptied when a memo entry is overwritten.
type runCache struct {
	bytes []byte
	runs  []frameRun
	table []int32 // 1 + row in runs, by hash
	last  int32   // the run that was found before
}

type frameRun struct {
	start, end int32 // in bytes
	stack      snapshot.StackID
	next       int32 // the run that followed this one last time
	hash       uint64
	slot       uint64 // in the table
}

const (
	maxRuns     = 1 << 15
	maxRunBytes = 8 << 20
)

func (c *runCache) reset() {
	for i := range c.runs {
		c.table[c.runs[i].slot] = 0
	}
	c.bytes, c.runs, c.last = c.bytes[:0], c.runs[:0], 0
}

// frameRun reads references up to APPENDS, which all must be to frames.
func (l *loop) frameRun(buf []byte, p int) (snapshot.StackID, int, bool) {
	c := &l.runs
	// Programs repeat themselves: the run that followed the last one before follows again.
	if int(c.last) < len(c.runs) {
		r := &c.runs[c.runs[c.last].next]
		n := int(r.end - r.start)
		if p+n <= l.src.end && bytes.Equal(buf[p:p+n], c.bytes[r.start:r.end]) {
			c.last = c.runs[c.last].next
			return r.stack, p + n, true
		}
	}
	h, q := uint64(1), p
	for q < l.lim {
		var x uint64
		switch buf[q] {
		case opLongBinGet:
			x = uint64(binary.LittleEndian.Uint32(buf[q+1:]))
			q += 5
		case opBinGet:
			x = uint64(buf[q+1])
			q += 2
		case opAppends:
			return l.frameRunSlow(buf, p, q+1, h)
		default:
			return 0, p, false
		}
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return 0, p, false
}

// frameRunSlow looks the run buf[p:end] up by its hash, and reads it when it is new.
func (l *loop) frameRunSlow(buf []byte, p, end int, h uint64) (snapshot.StackID, int, bool) {
	c := &l.runs
	if c.table == nil {
		c.table = make([]int32, 2*maxRuns)
	}
	mask := uint64(len(c.table) - 1)
	slot := h & mask
	for ; c.table[slot] != 0; slot = (slot + 1) & mask {
		i := c.table[slot] - 1
		r := &c.runs[i]
		if r.hash == h && bytes.Equal(buf[p:end], c.bytes[r.start:r.end]) {
			c.runs[c.last].next = i
			c.last = i
			return r.stack, end, true
		}
	}
	l.scratch = l.scratch[:0]
	for q := p; q < end-1; {
		var i uint32
		if buf[q] == opLongBinGet {
			i = binary.LittleEndian.Uint32(buf[q+1:])
			q += 5
		} else {
			i = uint32(buf[q+1])
			q += 2
		}
		e, err := l.entry(uint64(i))
		if err != nil || e == noEntry || kind(e>>memoBits) != kFrame {
			return 0, p, false
		}
		l.scratch = append(l.scratch, snapshot.FrameID(e&(1<<memoBits-1)))
	}
	s := l.out.Stacks.Intern(l.scratch)
	if len(c.runs) >= maxRuns || len(c.bytes)+end-p > maxRunBytes {
		c.reset()
		slot = h & mask
	}
	c.runs = append(c.runs, frameRun{int32(len(c.bytes)), int32(len(c.bytes) + end - p), s, 0, h, slot})
	c.bytes = append(c.bytes, buf[p:end]...)
	i := int32(len(c.runs) - 1)
	c.table[slot] = i + 1
	c.runs[c.last].next = i
	c.last = i
	return s, end, true
}
