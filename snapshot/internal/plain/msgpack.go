package plain

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/snapana/snapana/snapshot"
)

// Msgpack reads a sequence of MessagePack values, one right after the other.
type Msgpack struct {
	raw   countedReader
	in    *bufio.Reader
	dec   *msgpack.Decoder
	nodes int
}

type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// NewMsgpack reads from r.
func NewMsgpack(r io.Reader) *Msgpack {
	m := &Msgpack{raw: countedReader{r: r}}
	m.in = bufio.NewReaderSize(&m.raw, 64<<10)
	m.dec = msgpack.NewDecoder(m.in)
	return m
}

// Offset is the byte that comes next.
func (m *Msgpack) Offset() int64 { return m.raw.n - int64(m.in.Buffered()) }

// Next reads the next value. It returns io.EOF at the end, a *snapshot.FormatError for a fault in
// the data, and other errors of the reader as they are.
func (m *Msgpack) Next() (Value, error) {
	if _, err := m.in.Peek(1); err != nil {
		return Value{}, err
	}
	m.nodes = 0
	v, err := m.value(0)
	var fault *snapshot.FormatError
	switch {
	case err == nil, errors.As(err, &fault):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = m.fault(snapshot.ErrTruncated, "the file ends in the middle of a value: it was cut off or is still "+
			"being written")
	default:
		err = m.fault(snapshot.ErrCorrupt, "%v", err)
	}
	return v, err
}

func (m *Msgpack) fault(class error, format string, args ...any) error {
	return &snapshot.FormatError{Offset: m.Offset(), Op: "msgpack", Msg: fmt.Sprintf(format, args...), Err: class}
}

func (m *Msgpack) value(depth int) (v Value, err error) {
	if depth > maxDepth {
		return v, m.fault(snapshot.ErrLimit, "values are nested more than %d deep", maxDepth)
	}
	if m.nodes++; m.nodes > maxNodes {
		return v, m.fault(snapshot.ErrLimit, "one value contains more than %d others", maxNodes)
	}
	c, err := m.dec.PeekCode()
	if err != nil {
		return v, err
	}
	switch {
	case msgpcode.IsFixedMap(c), c == msgpcode.Map16, c == msgpcode.Map32:
		n, err := m.dec.DecodeMapLen()
		return m.items(Map, n, err, depth)
	case msgpcode.IsFixedArray(c), c == msgpcode.Array16, c == msgpcode.Array32:
		n, err := m.dec.DecodeArrayLen()
		return m.items(List, n, err, depth)
	case msgpcode.IsString(c), msgpcode.IsBin(c):
		v.Kind = String
		v.Str, err = m.text()
		return v, err
	case c == msgpcode.Nil:
		return v, m.dec.DecodeNil()
	case c == msgpcode.True, c == msgpcode.False:
		b, err := m.dec.DecodeBool()
		v.Kind = Bool
		if b {
			v.Int = 1
		}
		return v, err
	case c == msgpcode.Float, c == msgpcode.Double:
		v.Kind = Float
		v.Float, err = m.dec.DecodeFloat64()
		return v, err
	case c == msgpcode.Uint64:
		n, err := m.dec.DecodeUint64()
		if n > math.MaxInt64 {
			return Value{Kind: Float, Float: float64(n)}, err
		}
		return Value{Kind: Int, Int: int64(n)}, err
	case msgpcode.IsFixedNum(c), c >= msgpcode.Uint8 && c <= msgpcode.Int64:
		v.Kind = Int
		v.Int, err = m.dec.DecodeInt64()
		return v, err
	case msgpcode.IsExt(c): // times and the like: not kept
		_, n, err := m.dec.DecodeExtHeader()
		if err == nil {
			_, err = io.CopyN(io.Discard, m.in, int64(n))
		}
		return v, err
	}
	return v, m.fault(snapshot.ErrCorrupt, "unexpected byte 0x%02x", c)
}

// text reads a string or bytes. The length is checked before anything of it is kept.
func (m *Msgpack) text() (string, error) {
	n, err := m.dec.DecodeBytesLen()
	if err != nil {
		return "", err
	}
	if n > maxText {
		return "", m.fault(snapshot.ErrLimit, "a string of %d bytes", n)
	}
	b := make([]byte, max(n, 0))
	_, err = io.ReadFull(m.in, b)
	return string(b), err
}

// items reads the n items of a List or a Map.
func (m *Msgpack) items(kind Kind, n int, err error, depth int) (Value, error) {
	v := Value{Kind: kind}
	for ; err == nil && n > 0; n-- {
		var item Value
		if item, err = m.value(depth + 1); err == nil && kind == Map {
			name, ok := key(&item)
			if !ok {
				return v, m.fault(snapshot.ErrCorrupt, "the key of a dict is %s", item.Kind)
			}
			if item, err = m.value(depth + 1); err == nil {
				v.Keys = append(v.Keys, name)
			}
		}
		if err == nil {
			v.Items = append(v.Items, item)
		}
	}
	return v, err
}
