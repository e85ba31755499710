package sidecar

import (
	"errors"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Limits of one record. A holders record of a million objects is some tens of mebibytes, flat,
// and has a few dozen maps and lists; NVML readings have the most.
const (
	maxRecord = 1 << 30
	maxDepth  = 16
	maxLists  = 1 << 16 // maps and lists in a record
)

var (
	errShort    = errors.New("needs more bytes")
	errReserved = errors.New("a byte that begins no MessagePack value")
	errDeep     = errors.New("values are nested too deeply")
	errMany     = errors.New("too many maps and lists in one record")
)

// scan gives the length of the value at the start of b without interpreting it. errShort
// means that it goes on after b. It needs no memory that depends on b.
func scan(b []byte) (int, error) {
	var left [maxDepth]uint64 // values still to come, by depth
	depth, at, lists := 0, 0, 0
	left[0] = 1
	for {
		for left[depth] == 0 {
			if depth == 0 {
				return at, nil
			}
			depth--
		}
		left[depth]--
		if at == len(b) {
			return 0, errShort
		}
		head, body, children, err := measure(b[at:])
		if err != nil {
			return 0, err
		}
		if uint64(len(b)-at) < uint64(head)+body {
			return 0, errShort
		}
		at += head + int(body)
		if children == leaf {
			continue
		}
		if lists++; lists > maxLists {
			return 0, errMany
		}
		if depth++; depth == maxDepth {
			return 0, errDeep
		}
		left[depth] = children
	}
}

const leaf = ^uint64(0)

// measure gives the size of the head of the value at the start of b, and either the bytes of
// its body or the number of values inside it.
func measure(b []byte) (head int, body, children uint64, err error) {
	// number reads a length of n bytes after the code.
	number := func(n int) (v uint64) {
		if head = 1 + n; len(b) < head {
			err = errShort
			return 0
		}
		for _, c := range b[1:head] {
			v = v<<8 | uint64(c)
		}
		return v
	}
	head, children = 1, leaf
	switch c := b[0]; {
	case c <= msgpcode.PosFixedNumHigh, c >= msgpcode.NegFixedNumLow:
	case c == msgpcode.Nil, c == msgpcode.False, c == msgpcode.True:
	case msgpcode.IsFixedMap(c):
		children = 2 * uint64(c&msgpcode.FixedMapMask)
	case msgpcode.IsFixedArray(c):
		children = uint64(c & msgpcode.FixedArrayMask)
	case msgpcode.IsFixedString(c):
		body = uint64(c & msgpcode.FixedStrMask)
	// The codes of one kind follow each other by their sizes.
	case isInt(c):
		body = 1 << (c & 3)
	case c == msgpcode.Float, c == msgpcode.Double:
		body = 4 << (c - msgpcode.Float)
	case c >= msgpcode.Str8 && c <= msgpcode.Str32:
		body = number(1 << (c - msgpcode.Str8))
	case c >= msgpcode.Bin8 && c <= msgpcode.Bin32:
		body = number(1 << (c - msgpcode.Bin8))
	case c == msgpcode.Array16, c == msgpcode.Array32:
		children = number(2 << (c - msgpcode.Array16))
	case c == msgpcode.Map16, c == msgpcode.Map32:
		children = 2 * number(2<<(c-msgpcode.Map16))
	case c >= msgpcode.FixExt1 && c <= msgpcode.FixExt16:
		body = 1 + 1<<(c-msgpcode.FixExt1)
	case c >= msgpcode.Ext8 && c <= msgpcode.Ext32:
		body = 1 + number(1<<(c-msgpcode.Ext8))
	default:
		err = errReserved
	}
	return head, body, children, err
}
