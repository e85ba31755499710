package pickle

import (
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/snapana/snapana/snapshot"
)

// Decode reads one pickle from r. It never runs code: opcodes that would are refused with
// snapshot.ErrRefused. Every error about the data is a *snapshot.FormatError; an error of r
// itself is returned as it is. Bytes after the pickle's STOP are left alone.
func Decode(r io.Reader, opt Options) (*snapshot.Snapshot, Info, error) {
	d := newMachine(opt)
	info, err := d.decode(r)
	if err != nil && d.src.err != nil {
		return nil, info, err
	}
	d.drain()
	s, err := d.result(err)
	info.Lists = d.numbers
	return s, info, err
}

// decode runs one pickle, which leaves its value on the stack. A fault in the data becomes a
// *snapshot.FormatError.
func (d *machine) decode(r io.Reader) (Info, error) {
	d.src = newSource(r)
	defer d.src.close()
	l := loop{machine: d, src: d.src}
	err := l.run()
	if err == nil {
		return Info{Protocol: l.protocol, Bytes: l.src.base + int64(l.p)}, nil
	}
	info := Info{Protocol: l.protocol, Bytes: l.src.base + int64(l.opStart)}
	if l.src.err != nil {
		return info, l.src.err
	}
	fe := placed(err, info.Bytes, opName(l.op))
	if errors.Is(fe, snapshot.ErrTruncated) {
		fe.Op = ""
	}
	return info, fe
}

// loop is the opcode loop with its position in the current window.
type loop struct {
	*machine
	src      *source
	protocol int
	p        int // next byte
	lim      int // an opcode that starts below lim lies whole in the window, others are looked at
	opStart  int
	op       byte
}

var errTruncated = &fault{snapshot.ErrTruncated,
	"the file ends here, in the middle of the pickle: it was cut off or is still being written"}

// refill moves the window. It fails when the input has ended at or before the position.
func (l *loop) refill() error {
	for l.p >= l.lim && !l.src.eof { // more than once after a short read
		l.window(l.src.next(l.p))
		if l.opt.Progress != nil {
			l.opt.Progress(l.read)
		}
		if err := l.checkMemory(); err != nil {
			return err
		}
		l.drain()
	}
	if l.p >= l.lim {
		return l.whole()
	}
	return nil
}

// whole checks, near the end of the input, that the opcode at the position is not cut: what is
// kept of a damaged file must not depend on half an argument.
func (l *loop) whole() error {
	if l.p < l.src.end && l.p+1+argument(l.src.buf[l.p:]) <= l.src.end {
		return nil
	}
	return l.truncated()
}

// argument is the length of the argument of the opcode in b[0], without what take and line read.
func argument(b []byte) int {
	n := opcodes[b[0]].argument
	if b[0] == opLong1 || b[0] == opShortBinUnicode {
		n += int(b[1])
	}
	return n
}

// truncated reports the end of the input; the fault is where the input ends.
func (l *loop) truncated() error {
	l.opStart = l.src.end
	if l.src.err != nil {
		return l.src.err
	}
	return errTruncated
}

func (l *loop) run() error {
	for {
		if l.p >= l.lim {
			if err := l.refill(); err != nil {
				return err
			}
		}
		buf := l.src.buf
		p := l.p
		op := buf[p]
		l.opStart, l.op = p, op
		p++
		var err error
		switch op {
		case opLongBinGet:
			l.p = p + 4
			err = l.get(uint64(binary.LittleEndian.Uint32(buf[p:])))
		case opBinGet:
			l.p = p + 1
			err = l.get(uint64(buf[p]))
		case opLong1:
			n := int(buf[p])
			l.p = p + 1 + n
			err = l.push(longValue(buf[p+1 : p+1+n]))
		case opBinInt1:
			l.p = p + 1
			err = l.pushInt(int64(buf[p]))
		case opBinInt2:
			l.p = p + 2
			err = l.pushInt(int64(binary.LittleEndian.Uint16(buf[p:])))
		case opBinInt:
			l.p = p + 4
			err = l.pushInt(int64(int32(binary.LittleEndian.Uint32(buf[p:]))))
		case opMemoize:
			l.p = p
			err = l.put(l.slots())
		case opMark:
			l.p = p
			err = l.mark()
		case opEmptyDict:
			l.p = p
			if l.fastEvent() {
				continue
			}
			err = l.push(value{kind: kEmptyDict})
		case opEmptyList:
			l.p = p
			if l.fastStack() {
				continue
			}
			err = l.push(value{kind: kEmptyList})
		case opSetItems, opAppends:
			l.p = p
			var from int
			if from, err = l.popMark(); err == nil {
				if op == opSetItems {
					err = l.setItems(from, true)
				} else {
					err = l.appends(from)
				}
			}
		case opShortBinUnicode:
			n := int(buf[p])
			l.p = p + 1 + n
			err = l.push(value{u: uint64(l.intern(buf[p+1 : p+1+n])), kind: kStr})
		case opStop:
			l.p = p
			if len(l.stack) != 1 || len(l.marks) != 0 {
				return corrupt("leaves %d values instead of one", len(l.stack))
			}
			return nil
		default:
			err = l.rare(op, p)
		}
		if l.p > l.src.end && (err == nil || l.src.eof) {
			return l.truncated()
		}
		if err != nil {
			return err
		}
	}
}

// rare executes the opcodes that files hold few of.
func (l *loop) rare(op byte, p int) error {
	buf := l.src.buf
	l.p = p + argument(buf[p-1:])
	switch op {
	case opProto:
		if buf[p] > 5 {
			return corrupt("protocol %d is newer than the newest known, 5", buf[p])
		}
		l.protocol = int(buf[p])
	case opFrame: // only a hint for readers
	case opNone:
		return l.push(value{kind: kNone})
	case opNewTrue, opNewFalse:
		return l.push(value{u: uint64(opNewFalse - op), kind: kBool})
	case opBinFloat:
		return l.push(value{u: binary.BigEndian.Uint64(buf[p:]), kind: kFloat})
	case opBinPut:
		return l.put(uint64(buf[p]))
	case opLongBinPut:
		return l.put(uint64(binary.LittleEndian.Uint32(buf[p:])))
	case opEmptyTuple:
		return l.push(run(kTuple, 0, 0))
	case opTuple1, opTuple2, opTuple3:
		n := int(op-opTuple1) + 1
		if err := l.need(n); err != nil {
			return err
		}
		return l.collect(len(l.stack)-n, l.newTuple)
	case opTuple, opList, opDict, opPopMark:
		from, err := l.popMark()
		if err != nil {
			return err
		}
		switch op {
		case opTuple:
			return l.collect(from, l.newTuple)
		case opList:
			return l.collect(from, l.newList)
		case opDict:
			return l.dict(from)
		}
		l.stack = l.stack[:from]
	case opAppend:
		if err := l.need(2); err != nil {
			return err
		}
		return l.appends(len(l.stack) - 1)
	case opSetItem:
		return l.setItem()
	case opPop:
		if len(l.stack) == l.floor() && len(l.marks) > 0 {
			l.marks = l.marks[:len(l.marks)-1]
			return nil
		}
		if err := l.need(1); err != nil {
			return err
		}
		l.stack = l.stack[:len(l.stack)-1]
	case opDup:
		if err := l.need(1); err != nil {
			return err
		}
		return l.push(l.stack[len(l.stack)-1])
	case opReduce:
		return l.reduce()
	case opStackGlobal:
		if err := l.need(2); err != nil {
			return err
		}
		n := len(l.stack)
		module, name := l.stack[n-2], l.stack[n-1]
		if module.kind != kStr || name.kind != kStr {
			return corrupt("needs two strings")
		}
		l.stack = l.stack[:n-2]
		return l.global(l.out.Strings.Get(snapshot.StringID(module.u)), l.out.Strings.Get(snapshot.StringID(name.u)))
	case opBinUnicode, opBinString, opBinBytes, opLong4:
		return l.long(op, int64(binary.LittleEndian.Uint32(buf[p:])))
	case opShortBinString, opShortBinBytes:
		return l.long(op, int64(buf[p]))
	case opBinUnicode8, opBinBytes8, opByteArray8:
		n := binary.LittleEndian.Uint64(buf[p:])
		if n > math.MaxInt64 {
			return corrupt("declares %d bytes", n)
		}
		return l.long(op, int64(n))
	case opInt, opLong, opFloat, opString, opUnicode, opGet, opPut, opGlobal:
		return l.textOp(op)
	default:
		if name, ok := refusedOps[op]; ok {
			return &fault{snapshot.ErrRefused, "refused " + name + ": snapshots contain only data. " +
				"Do not open this file with pickle.load unless you trust its author"}
		}
		return corrupt("is not a pickle opcode")
	}
	return nil
}

const maxString = 1 << 28

// long reads the argument of the opcodes with a length, which is at l.p.
func (l *loop) long(op byte, n int64) error {
	at := l.src.base + int64(l.p)
	if size := l.opt.Size; size > 0 && n > size-at {
		return &fault{snapshot.ErrTruncated, "declares more bytes than the file has left"}
	}
	switch op {
	case opBinBytes, opShortBinBytes, opBinBytes8, opByteArray8:
		_, p, ok := l.src.take(l.p, n, false)
		l.window(p)
		if !ok {
			return l.truncated()
		}
		return l.push(value{kind: kOpaque})
	}
	if n > maxString {
		return &fault{snapshot.ErrLimit, "declares a string longer than any snapshot needs"}
	}
	b, p, ok := l.src.take(l.p, n, true)
	l.window(p)
	if !ok {
		return l.truncated()
	}
	if op == opLong4 {
		return l.push(longValue(b))
	}
	return l.push(value{u: uint64(l.intern(b)), kind: kStr})
}

// window follows the source after it may have moved.
func (l *loop) window(p int) {
	l.p = p
	l.read = l.src.base + int64(l.src.end)
	l.lim = l.src.end - margin
	l.opStart = min(l.opStart, p)
}

// longValue reads a two's complement little-endian integer of any length.
func longValue(b []byte) value {
	switch n := len(b); {
	case n == 0:
		return value{kind: kInt}
	case n <= 8:
		var u uint64
		for i := n - 1; i >= 0; i-- {
			u = u<<8 | uint64(b[i])
		}
		shift := 64 - 8*n
		return value{u: uint64(int64(u<<shift) >> shift), kind: kInt}
	case n == 9 && b[8] == 0:
		return value{u: binary.LittleEndian.Uint64(b), kind: kUint}
	default:
		return value{kind: kBig}
	}
}

// intern gives the id of a string, through a small cache that spares the table for the few
// words that files repeat by value.
func (d *machine) intern(b []byte) snapshot.StringID {
	if len(b) == 0 {
		return 0
	}
	h := uint32(len(b))*31 + uint32(b[0])*7 + uint32(b[len(b)-1])*131 + uint32(b[len(b)/2])*1031
	slot := &d.strCache[h%uint32(len(d.strCache))]
	if *slot != 0 && d.out.Strings.Get(*slot) == string(b) {
		return *slot
	}
	before := d.out.Strings.Len()
	*slot = d.out.Strings.Intern(b)
	d.interned += int64(d.out.Strings.Len()-before) * int64(len(b))
	return *slot
}
