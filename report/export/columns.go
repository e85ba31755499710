package export

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"reflect"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A Parquet file of flat rows (parquet.apache.org/docs/file-format): groups of rows, of each the columns one after the
// other, a page each, and behind them what readers need to find them. Tried: parquet-go, which is 7 MB of program.

// The format's numbers for physical types, encodings, pages and the codec (parquet.thrift).
const (
	typeBool, typeInt32, typeInt64, typeDouble, typeBytes = 0, 1, 2, 5, 6

	encodingPlain, encodingRLE, encodingDelta, encodingDict = 0, 3, 5, 8

	pageData, pageDict = 0, 2
	codecZstd          = 6
	convertedUTF8      = 0
	convertedUint64    = 14
)

// tableWriter writes rows of a struct with tags `parquet:"NAME,optional,dict,delta"`.
type tableWriter struct {
	w       io.Writer
	pack    *zstd.Encoder
	columns []*columnBuffer
	rows    int64 // of the group
	total   int64
	offset  int64
	groups  []byte // thrift structs of the groups
	count   int
}

// columnBuffer has the values of one column of a group of rows.
type columnBuffer struct {
	name                  string
	field                 int
	optional, dict, delta bool
	kind                  reflect.Kind
	physical              int

	present []uint32 // of an optional column, 1 where there is a value
	plain   []byte   // values, one behind the other
	ints    []int64  // of a delta column
	bools   []uint32
	indexes []uint32          // of a dict column, into words
	words   map[string]uint32 // the dictionary
	wordsN  []byte            // the same in order
}

func newTableWriter(w io.Writer, row reflect.Type) (*tableWriter, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	t := &tableWriter{w: w, pack: pack}
	for i := range row.NumField() {
		name, options, _ := strings.Cut(row.Field(i).Tag.Get("parquet"), ",")
		has := func(word string) bool { return strings.Contains(","+options+",", ","+word+",") }
		c := &columnBuffer{name: name, field: i, optional: has("optional"), dict: has("dict"), delta: has("delta")}
		of := row.Field(i).Type
		if c.optional {
			of = of.Elem()
		}
		switch c.kind = of.Kind(); c.kind {
		case reflect.Bool:
			c.physical = typeBool
		case reflect.Int32:
			c.physical = typeInt32
		case reflect.Int64, reflect.Uint64:
			c.physical = typeInt64
		case reflect.Float64:
			c.physical = typeDouble
		case reflect.String:
			c.physical = typeBytes
		default:
			return nil, fmt.Errorf("the column %s has values of type %v", name, of)
		}
		t.columns = append(t.columns, c)
	}
	return t, t.write([]byte("PAR1"))
}

func (t *tableWriter) write(data []byte) error {
	n, err := t.w.Write(data)
	t.offset += int64(n)
	return err
}

// add adds a row.
func (t *tableWriter) add(row reflect.Value) error {
	for _, c := range t.columns {
		c.add(row.Field(c.field))
	}
	if t.rows++; t.rows == rowsGroup {
		return t.flush()
	}
	return nil
}

func (c *columnBuffer) add(v reflect.Value) {
	if c.optional {
		if v.IsNil() {
			c.present = append(c.present, 0)
			return
		}
		c.present = append(c.present, 1)
		v = v.Elem()
	}
	switch {
	case c.kind == reflect.Bool:
		n := uint32(0)
		if v.Bool() {
			n = 1
		}
		c.bools = append(c.bools, n)
	case c.kind == reflect.Float64:
		c.plain = binary.LittleEndian.AppendUint64(c.plain, math.Float64bits(v.Float()))
	case c.kind == reflect.String && c.dict:
		word := v.String()
		i, ok := c.words[word]
		if !ok {
			if c.words == nil {
				c.words = map[string]uint32{}
			}
			i = uint32(len(c.words))
			c.words[word] = i
			c.wordsN = append(binary.LittleEndian.AppendUint32(c.wordsN, uint32(len(word))), word...)
		}
		c.indexes = append(c.indexes, i)
	case c.kind == reflect.String:
		c.plain = append(binary.LittleEndian.AppendUint32(c.plain, uint32(v.Len())), v.String()...)
	case c.delta:
		c.ints = append(c.ints, v.Int())
	case c.kind == reflect.Int32:
		c.plain = binary.LittleEndian.AppendUint32(c.plain, uint32(v.Int()))
	case c.kind == reflect.Uint64:
		c.plain = binary.LittleEndian.AppendUint64(c.plain, v.Uint())
	default:
		c.plain = binary.LittleEndian.AppendUint64(c.plain, uint64(v.Int()))
	}
}

// page is the content of the data page, and how it is encoded.
func (c *columnBuffer) page() (data []byte, encoding int) {
	if c.optional {
		levels := hybrid(nil, c.present, 1)
		data = append(binary.LittleEndian.AppendUint32(data, uint32(len(levels))), levels...)
	}
	switch {
	case c.kind == reflect.Bool:
		return append(data, packed(c.bools, 1)...), encodingPlain
	case c.kind == reflect.String && c.dict:
		width := max(bits.Len(uint(max(len(c.words), 1)-1)), 1)
		return hybrid(append(data, byte(width)), c.indexes, width), encodingDict
	case c.delta:
		return deltas(data, c.ints), encodingDelta
	}
	return append(data, c.plain...), encodingPlain
}

// flush writes a group of rows.
func (t *tableWriter) flush() error {
	if t.rows == 0 {
		return nil
	}
	var group thrift
	group.list(1, thriftStruct, len(t.columns))
	size, begin := int64(0), t.offset
	for _, c := range t.columns {
		dictAt, raw, at := int64(-1), int64(0), t.offset
		if c.kind == reflect.String && c.dict {
			dictAt = t.offset
			n, err := t.putPage(c.wordsN, func(h *thrift) {
				h.begin(7)
				h.int(1, thriftI32, int64(len(c.words)))
				h.int(2, thriftI32, encodingPlain)
				h.end()
			}, pageDict)
			if err != nil {
				return err
			}
			raw += n
		}
		data, encoding := c.page()
		dataAt := t.offset
		n, err := t.putPage(data, func(h *thrift) {
			h.begin(5)
			h.int(1, thriftI32, t.rows)
			h.int(2, thriftI32, int64(encoding))
			h.int(3, thriftI32, encodingRLE)
			h.int(4, thriftI32, encodingRLE)
			h.end()
		}, pageData)
		if err != nil {
			return err
		}
		raw += n
		size += raw
		group.open()
		group.int(2, thriftI64, at)
		group.begin(3)
		group.int(1, thriftI32, int64(c.physical))
		encodings := []int{encoding, encodingRLE}
		if dictAt >= 0 {
			encodings = append(encodings, encodingPlain)
		}
		group.list(2, thriftI32, len(encodings))
		for _, e := range encodings {
			group.zigzag(int64(e))
		}
		group.list(3, thriftBinary, 1)
		group.text(c.name)
		group.int(4, thriftI32, codecZstd)
		group.int(5, thriftI64, t.rows)
		group.int(6, thriftI64, raw)
		group.int(7, thriftI64, t.offset-at)
		group.int(9, thriftI64, dataAt)
		if dictAt >= 0 {
			group.int(11, thriftI64, dictAt)
		}
		group.end()
		group.end()
		*c = columnBuffer{name: c.name, field: c.field, optional: c.optional, dict: c.dict, delta: c.delta, kind: c.kind,
			physical: c.physical, present: c.present[:0], plain: c.plain[:0], ints: c.ints[:0], bools: c.bools[:0],
			indexes: c.indexes[:0]}
	}
	group.int(2, thriftI64, size)
	group.int(3, thriftI64, t.rows)
	group.int(5, thriftI64, begin)
	group.int(6, thriftI64, t.offset-begin)
	t.groups = append(append(t.groups, group.b...), 0)
	t.count, t.total, t.rows = t.count+1, t.total+t.rows, 0
	return nil
}

// putPage writes a page behind its header, and gives the size of both without compression.
func (t *tableWriter) putPage(data []byte, header func(*thrift), kind int64) (int64, error) {
	small := t.pack.EncodeAll(data, nil)
	if len(data) > math.MaxInt32 || len(small) > math.MaxInt32 {
		return 0, fmt.Errorf("a column has more than %d bytes in %d rows", math.MaxInt32, t.rows)
	}
	var h thrift
	h.int(1, thriftI32, kind)
	h.int(2, thriftI32, int64(len(data)))
	h.int(3, thriftI32, int64(len(small)))
	header(&h)
	h.b = append(h.b, 0)
	if err := t.write(h.b); err != nil {
		return 0, err
	}
	return int64(len(h.b) + len(data)), t.write(small)
}

// close writes what readers need to find the rest.
func (t *tableWriter) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	var m thrift
	m.int(1, thriftI32, 1)
	m.list(2, thriftStruct, 1+len(t.columns))
	m.open()
	m.str(4, "rows")
	m.int(5, thriftI32, int64(len(t.columns)))
	m.end()
	for _, c := range t.columns {
		m.open()
		m.int(1, thriftI32, int64(c.physical))
		optional := int64(0)
		if c.optional {
			optional = 1
		}
		m.int(3, thriftI32, optional)
		m.str(4, c.name)
		switch c.kind {
		case reflect.String:
			m.int(6, thriftI32, convertedUTF8)
			m.begin(10)
			m.begin(1)
			m.end()
			m.end()
		case reflect.Uint64:
			m.int(6, thriftI32, convertedUint64)
			m.begin(10)
			m.begin(10)
			m.field(1, thriftByte)
			m.b = append(m.b, 64)
			m.field(2, thriftFalse) // not signed
			m.end()
			m.end()
		}
		m.end()
	}
	m.int(3, thriftI64, t.total)
	m.list(4, thriftStruct, t.count)
	m.b = append(m.b, t.groups...)
	m.str(6, "snapana")
	m.b = append(m.b, 0)
	m.b = append(binary.LittleEndian.AppendUint32(m.b, uint32(len(m.b))), "PAR1"...)
	return t.write(m.b)
}

// packed is values of so many bits each, the lowest first.
func packed(values []uint32, width int) []byte {
	out := make([]byte, (len(values)*width+7)/8)
	for i, v := range values {
		for b := range width {
			if v>>b&1 != 0 {
				at := i*width + b
				out[at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

// hybrid appends values of so many bits as the format's mixture of runs and groups of eight.
func hybrid(out []byte, values []uint32, width int) []byte {
	from := 0 // the first that is not written yet
	literals := func(to int) {
		if to == from {
			return
		}
		groups := (to - from + 7) / 8
		part := make([]uint32, groups*8)
		copy(part, values[from:to])
		out = append(binary.AppendUvarint(out, uint64(groups)<<1|1), packed(part, width)...)
		from = to
	}
	for i := 0; i < len(values); {
		end := i + 1
		for end < len(values) && values[end] == values[i] {
			end++
		}
		if (i-from)%8 != 0 { // groups are of eight
			i = min(end, from+(i-from+7)/8*8)
		}
		if end-i >= 8 && (i-from)%8 == 0 {
			literals(i)
			out = binary.AppendUvarint(out, uint64(end-i)<<1)
			for b := 0; b < width; b += 8 {
				out = append(out, byte(values[i]>>b))
			}
			from = end
		}
		i = max(end, i)
	}
	literals(len(values))
	return out
}

// deltas appends integers as differences, in blocks of four times 32.
func deltas(out []byte, values []int64) []byte {
	const block, minis = 128, 4
	out = binary.AppendUvarint(binary.AppendUvarint(out, block), minis)
	out = binary.AppendUvarint(out, uint64(len(values)))
	first := int64(0)
	if len(values) > 0 {
		first = values[0]
	}
	out = binary.AppendVarint(out, first)
	for at := 1; at < len(values); at += block {
		n := min(block, len(values)-at)
		least := int64(math.MaxInt64)
		for i := at; i < at+n; i++ {
			least = min(least, values[i]-values[i-1])
		}
		var over [block]uint64
		for i := range n {
			over[i] = uint64(values[at+i]-values[at+i-1]) - uint64(least)
		}
		out = binary.AppendVarint(out, least)
		var widths [minis]int
		for m := range minis {
			for _, v := range over[m*32 : m*32+32] {
				widths[m] = max(widths[m], bits.Len64(v))
			}
			out = append(out, byte(widths[m]))
		}
		for m, width := range widths {
			if m*32 >= n {
				break
			}
			data := make([]byte, 4*width)
			for i, v := range over[m*32 : m*32+32] {
				for b := range width {
					if v>>b&1 != 0 {
						data[(i*width+b)/8] |= 1 << ((i*width + b) % 8)
					}
				}
			}
			out = append(out, data...)
		}
	}
	return out
}
