package pickle

import (
	"cmp"
	"fmt"
)

// The pickle opcodes (Lib/pickle.py of CPython).
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opFloat           = 'F'
	opInt             = 'I'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opLong            = 'L'
	opBinInt2         = 'M'
	opNone            = 'N'
	opString          = 'S'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opUnicode         = 'V'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opGlobal          = 'c'
	opDict            = 'd'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opGet             = 'g'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opList            = 'l'
	opEmptyList       = ']'
	opPut             = 'p'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opReduce          = 'R'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
)

// refusedOps are the opcodes that load, call or restore objects, or build what no snapshot
// has.
var refusedOps = map[byte]string{
	'P': "PERSID", 'Q': "BINPERSID", 'b': "BUILD", 'i': "INST", 'o': "OBJ",
	0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS",
	0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
}

// opcodes are the others: their names, and the bytes of their arguments, without those whose
// length the argument tells and without the lines of protocol 0.
var opcodes = [256]struct {
	name     string
	argument int
}{
	opMark: {name: "MARK"}, opStop: {name: "STOP"}, opPop: {name: "POP"}, opPopMark: {name: "POP_MARK"},
	opDup: {name: "DUP"}, opFloat: {name: "FLOAT"}, opInt: {name: "INT"}, opBinInt: {"BININT", 4},
	opBinInt1: {"BININT1", 1}, opLong: {name: "LONG"}, opBinInt2: {"BININT2", 2}, opNone: {name: "NONE"},
	opString: {name: "STRING"}, opBinString: {"BINSTRING", 4}, opShortBinString: {"SHORT_BINSTRING", 1},
	opUnicode: {name: "UNICODE"}, opBinUnicode: {"BINUNICODE", 4}, opAppend: {name: "APPEND"},
	opGlobal: {name: "GLOBAL"}, opDict: {name: "DICT"}, opEmptyDict: {name: "EMPTY_DICT"},
	opAppends: {name: "APPENDS"}, opGet: {name: "GET"}, opBinGet: {"BINGET", 1}, opLongBinGet: {"LONG_BINGET", 4},
	opList: {name: "LIST"}, opEmptyList: {name: "EMPTY_LIST"}, opPut: {name: "PUT"}, opBinPut: {"BINPUT", 1},
	opLongBinPut: {"LONG_BINPUT", 4}, opReduce: {name: "REDUCE"}, opSetItem: {name: "SETITEM"},
	opTuple: {name: "TUPLE"}, opEmptyTuple: {name: "EMPTY_TUPLE"}, opSetItems: {name: "SETITEMS"},
	opBinFloat: {"BINFLOAT", 8}, opProto: {"PROTO", 1}, opTuple1: {name: "TUPLE1"}, opTuple2: {name: "TUPLE2"},
	opTuple3: {name: "TUPLE3"}, opNewTrue: {name: "NEWTRUE"}, opNewFalse: {name: "NEWFALSE"}, opLong1: {"LONG1", 1},
	opLong4: {"LONG4", 4}, opBinBytes: {"BINBYTES", 4}, opShortBinBytes: {"SHORT_BINBYTES", 1},
	opShortBinUnicode: {"SHORT_BINUNICODE", 1}, opBinUnicode8: {"BINUNICODE8", 8}, opBinBytes8: {"BINBYTES8", 8},
	opStackGlobal: {name: "STACK_GLOBAL"}, opMemoize: {name: "MEMOIZE"}, opFrame: {"FRAME", 8},
	opByteArray8: {"BYTEARRAY8", 8},
}

func opName(op byte) string {
	return cmp.Or(opcodes[op].name, refusedOps[op], fmt.Sprintf("opcode 0x%02x", op))
}
