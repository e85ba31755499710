package digest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/snapshot"
)

// Version is that of the format. A reader of this version reads all before it.
const Version = 1

// MaxBytes bounds a digest.
const MaxBytes = 512 << 10

// magic begins a digest, and the SHA-256 of all before it ends one.
const magic = "snapana digest\n"

// head is what stands before the body.
const head = len(magic) + 2

// Findings are those of a verdict. Of a digest that was read they are decoded when they are asked for.
type Findings struct {
	list   []finding.Finding
	packed []byte
}

// Keep takes findings, the first ones that take up to 128 KiB.
func (f *Findings) Keep(list []finding.Finding) {
	f.list, f.packed = list[:min(len(list), maxFindings)], nil
	for len(f.list) > 0 {
		if data, err := marshal(f.list); err == nil && len(data) <= maxPacked {
			return
		}
		f.list = f.list[:len(f.list)-1]
	}
}

// EncodeMsgpack is for package msgpack.
func (f *Findings) EncodeMsgpack(e *msgpack.Encoder) error {
	if f.packed != nil {
		return e.EncodeBytes(f.packed)
	}
	data, err := marshal(f.list)
	if err != nil {
		return err
	}
	return e.EncodeBytes(data)
}

// DecodeMsgpack is for package msgpack.
func (f *Findings) DecodeMsgpack(d *msgpack.Decoder) (err error) {
	f.packed, err = d.DecodeBytes()
	return err
}

// List gives the findings, most important first. The error is a *snapshot.FormatError.
func (f *Findings) List() ([]finding.Finding, error) {
	if f.packed == nil {
		return f.list, nil
	}
	var list []finding.Finding
	if err := check(f.packed, 0); err != nil {
		return nil, err
	}
	if err := unmarshal(f.packed, &list); err != nil {
		return nil, corrupt(-1, "the findings: "+err.Error())
	}
	return list, nil
}

// DecodeMsgpack is for package msgpack. What a writer left out is unknown, not 0.
func (v *Device) DecodeMsgpack(d *msgpack.Decoder) error {
	type keys Device
	k := keys{Ordinal: -1, Total: -1, Reserved: -1, Active: -1, Alloc: -1, Asked: -1, Growth: -1, Pieces: -1}
	err := d.Decode(&k)
	*v = Device(k)
	return err
}

// marshal encodes by the tags that JSON is written by.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.SetCustomStructTag("json")
	e.UseCompactInts(true)
	e.SetSortMapKeys(true)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func unmarshal(data []byte, v any) error {
	d := msgpack.NewDecoder(bytes.NewReader(data))
	d.SetCustomStructTag("json")
	return d.Decode(v)
}

// Encode gives the file of a digest. Equal digests give equal bytes.
func (d *Digest) Encode() ([]byte, error) {
	body, err := marshal(d)
	if err != nil {
		return nil, fmt.Errorf("digest: %w", err)
	}
	out := binary.BigEndian.AppendUint16([]byte(magic), Version)
	out = append(out, body...)
	sum := sha256.Sum256(out)
	if out = append(out, sum[:]...); len(out) > MaxBytes {
		return nil, fmt.Errorf("the digest takes %d bytes, more than the %d that one may", len(out), MaxBytes)
	}
	return out, nil
}

// Recognize reports whether data begins as a digest does.
func Recognize(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// Decode reads a digest. Errors are *snapshot.FormatError without a name.
func Decode(data []byte) (*Digest, error) {
	switch {
	case !Recognize(data):
		return nil, &snapshot.FormatError{Offset: 0, Err: snapshot.ErrNotSnapshot,
			Msg: "is no digest; digests are written by snapana"}
	case len(data) > MaxBytes:
		return nil, &snapshot.FormatError{Offset: MaxBytes, Err: snapshot.ErrLimit,
			Msg: fmt.Sprintf("is longer than the %d bytes that a digest takes at most", MaxBytes)}
	case len(data) < head:
		return nil, cut(len(data))
	}
	if v := binary.BigEndian.Uint16(data[len(magic):]); v > Version || v == 0 {
		return nil, &snapshot.FormatError{Offset: int64(len(magic)), Err: snapshot.ErrCorrupt,
			Msg: fmt.Sprintf("has version %d of the format, and this snapana reads versions up to %d; use a newer snapana",
				v, Version)}
	}
	if len(data) < head+sha256.Size {
		return nil, cut(len(data))
	}
	end := len(data) - sha256.Size
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return nil, corrupt(int64(end), "the checksum does not fit: the digest was cut off or damaged")
	}
	if err := check(data[head:end], head); err != nil {
		return nil, err
	}
	d := &Digest{Source: Source{Size: -1}, Identity: Identity{Rank: -1, WorldSize: -1, LocalRank: -1}}
	if err := unmarshal(data[head:end], d); err != nil {
		return nil, corrupt(int64(head), err.Error())
	}
	if what := d.wrong(); what != "" {
		return nil, corrupt(int64(head), what)
	}
	return d, nil
}

func cut(at int) error {
	return &snapshot.FormatError{Offset: int64(at), Err: snapshot.ErrTruncated, Msg: "the digest is cut off"}
}

func corrupt(at int64, msg string) error {
	return &snapshot.FormatError{Offset: at, Err: snapshot.ErrCorrupt, Msg: msg}
}

// Bounds of what is decoded: with them the values take a small multiple of the bytes.
const (
	maxDepth  = 24
	maxNested = 512     // elements of a list that holds lists or maps
	maxNumber = 1 << 53 // of whatever is counted
)

// check walks the values of a body without decoding them: their lengths fit, lists are not nested deep, and numbers are
// of a size that sums of them cannot overflow. Offsets are from base on.
func check(data []byte, base int) error {
	w := walker{data: data}
	err := w.value(0)
	if err == nil && w.at < len(data) {
		err = errBehind
	}
	if err != nil {
		return corrupt(int64(base+w.at), err.Error())
	}
	return nil
}

type walker struct {
	data []byte
	at   int
}

var (
	errCut    = errors.New("a value is cut off")
	errDeep   = errors.New("values are nested deeper than those of a digest")
	errMany   = errors.New("a list is longer than those of a digest")
	errNumber = errors.New("a number is larger than those of a digest")
	errBehind = errors.New("there is something behind the digest")
	errKind   = errors.New("a value is of a kind that no digest has")
)

// uint takes a number of so many bytes.
func (w *walker) uint(bytes int) (n uint64, err error) {
	if len(w.data)-w.at < bytes {
		return 0, errCut
	}
	for _, b := range w.data[w.at : w.at+bytes] {
		n = n<<8 | uint64(b)
	}
	w.at += bytes
	return n, nil
}

// skip takes the bytes of a text.
func (w *walker) skip(n uint64, err error) error {
	if err != nil || n > uint64(len(w.data)-w.at) {
		return errCut
	}
	w.at += int(n)
	return nil
}

func (w *walker) number(n uint64, err error, bits int) error {
	if signed := int64(n) << (64 - bits) >> (64 - bits); err == nil && (signed > maxNumber || signed < -maxNumber) {
		err = errNumber
	}
	return err
}

func (w *walker) value(depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	code, err := w.uint(1)
	if err != nil {
		return err
	}
	switch c := byte(code); {
	case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // small numbers, nil, false, true
		return nil
	case c < 0x90:
		return w.list(uint64(c&0x0f), 2, depth)
	case c < 0xa0:
		return w.list(uint64(c&0x0f), 1, depth)
	case c < 0xc0:
		return w.skip(uint64(c&0x1f), nil)
	case c >= 0xc4 && c <= 0xc6: // bytes
		return w.skip(w.uint(1 << (c - 0xc4)))
	case c >= 0xd9 && c <= 0xdb: // texts
		return w.skip(w.uint(1 << (c - 0xd9)))
	case c == 0xca || c == 0xcb: // fractions
		return w.fraction(int(c-0xca)*4 + 4)
	case c >= 0xcc && c <= 0xcf:
		n, err := w.uint(1 << (c - 0xcc))
		return w.number(min(n, math.MaxInt64), err, 64)
	case c >= 0xd0 && c <= 0xd3:
		size := 1 << (c - 0xd0)
		n, err := w.uint(size)
		return w.number(n, err, 8*size)
	case c == 0xdc || c == 0xdd:
		n, err := w.uint(2 << (c - 0xdc))
		return cmp.Or(err, w.list(n, 1, depth))
	case c == 0xde || c == 0xdf:
		n, err := w.uint(2 << (c - 0xde))
		return cmp.Or(err, w.list(n, 2, depth))
	}
	return errKind
}

// fraction takes one that is a number.
func (w *walker) fraction(size int) error {
	n, err := w.uint(size)
	f := math.Float64frombits(n)
	if size == 4 {
		f = float64(math.Float32frombits(uint32(n)))
	}
	if err == nil && (math.IsNaN(f) || math.Abs(f) > maxNumber) {
		err = errNumber
	}
	return err
}

// list takes n elements, of a map twice so many values. Elements of a kind have a byte each at least.
func (w *walker) list(n uint64, each int, depth int) error {
	if n > uint64(len(w.data)-w.at) {
		return errCut
	}
	for i := range n {
		if w.at < len(w.data) && i >= maxNested && nested(w.data[w.at]) {
			return errMany
		}
		for range each {
			if err := w.value(depth + 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// nested reports whether a value takes more than itself when it is decoded: a list, a map, or nil in the place of one.
func nested(c byte) bool { return c >= 0x80 && c < 0xa0 || c >= 0xdc && c <= 0xdf || c == 0xc0 }

// wrong says what does not fit of a digest that was decoded, "" for nothing.
func (d *Digest) wrong() string {
	ok := true
	text := func(column []int64) {
		for _, n := range column {
			ok = ok && n >= 0 && n < int64(len(d.Texts))
		}
	}
	table := func(t *Table) {
		text(t.Names)
		ok = ok && len(t.Names) == len(t.Bytes)
	}
	for i := range d.Devices {
		v := &d.Devices[i]
		table(&v.Phases)
		for j := range v.Moments {
			m := &v.Moments[j]
			table(&m.Sites)
			table(&m.Categories)
			ok = ok && len(m.Stacks.Frames) == len(m.Stacks.Bytes)
			for _, f := range m.Stacks.Frames {
				text(f)
			}
		}
	}
	switch {
	case !ok:
		return "a column refers to a text that is not there, or is longer than its neighbor"
	case d.Source.Path == "":
		return "the path of the snapshot is missing"
	case len(d.Devices) > maxDevices:
		return "there are more devices than a digest has"
	case len(d.Source.SHA256) != sha256.Size && d.Fault == "":
		return "the checksum of the snapshot is missing"
	case d.Identity.Rank < -1 || d.Identity.Rank >= maxRank || d.Identity.WorldSize > maxRank:
		return "the rank is out of range"
	case d.Fault == "" && !slices.Contains(finding.Statuses(), d.Verdict.Status):
		return fmt.Sprintf("the verdict %.40q is not known to this snapana", d.Verdict.Status)
	}
	return ""
}
