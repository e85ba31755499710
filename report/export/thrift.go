package export

import "encoding/binary"

// The types of Thrift's compact protocol.
const (
	thriftFalse  = 2
	thriftByte   = 3
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

// thrift writes structs in Thrift's compact protocol, in which Parquet says where things are.
type thrift struct {
	b     []byte
	last  int // field of the struct that is written
	outer []int
}

// field begins a field, whose value follows.
func (t *thrift) field(id, kind int) {
	if d := id - t.last; d > 0 && d < 16 {
		t.b = append(t.b, byte(d<<4|kind))
	} else {
		t.b = binary.AppendVarint(append(t.b, byte(kind)), int64(id))
	}
	t.last = id
}

func (t *thrift) zigzag(v int64) { t.b = binary.AppendVarint(t.b, v) }

func (t *thrift) int(id, kind int, v int64) {
	t.field(id, kind)
	t.zigzag(v)
}

func (t *thrift) text(s string) {
	t.b = append(binary.AppendUvarint(t.b, uint64(len(s))), s...)
}

func (t *thrift) str(id int, s string) {
	t.field(id, thriftBinary)
	t.text(s)
}

// list begins a list of n elements, which follow.
func (t *thrift) list(id, kind, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n<<4|kind))
		return
	}
	t.b = binary.AppendUvarint(append(t.b, byte(0xf0|kind)), uint64(n))
}

// begin begins a struct that is a field, open one in a list; both are closed by end.
func (t *thrift) begin(id int) {
	t.field(id, thriftStruct)
	t.open()
}

func (t *thrift) open() {
	t.outer = append(t.outer, t.last)
	t.last = 0
}

func (t *thrift) end() {
	t.b = append(t.b, 0)
	t.last = t.outer[len(t.outer)-1]
	t.outer = t.outer[:len(t.outer)-1]
}
