package rewrite

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/snapshot"
)

// node is a value of MessagePack: bytes without a text in them, a text, a list or a map, whose keys and values take turns.
type node struct {
	raw    []byte
	text   string
	isText bool
	isMap  bool
	done   bool // the text is what it becomes
	list   []node
}

// packer rewrites MessagePack.
type packer struct {
	*from
	texts *Texts
	out   []byte
	left  int // bytes that a value may still take
	depth int
}

// mostValue bounds one value of the top level, which is in memory as a whole.
const mostValue = 1 << 30

// MessagePack rewrites values that follow each other: records of a .snapana file (snapshot/sidecar/FORMAT.md), whose
// texts are above the type of their record at least, or any others.
func MessagePack(w io.Writer, r io.Reader, texts *Texts) error {
	p := &packer{from: newFrom(r), texts: texts}
	for {
		p.left = mostValue
		p.settle()
		if _, err := p.r.Peek(1); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n, err := p.value()
		if errors.Is(err, io.ErrUnexpectedEOF) { // a torn record stays one, without what was in it
			_, err = w.Write([]byte{0x81})
			return err
		} else if err != nil {
			return err
		}
		p.out = p.out[:0]
		kind := n.get("type").text
		switch kind {
		case "holders":
			p.holders(&n)
		case "snapshot":
			p.resize(&n)
		}
		p.write(&n, Place{Key: kind})
		if _, err := w.Write(p.out); err != nil {
			return err
		}
	}
}

// resize gives the record of a snapshot the size that it has now; without one its name tells which it is.
func (p *packer) resize(record *node) {
	bytes := record.get("bytes")
	var was int64
	if p.texts.Size != nil && msgpack.Unmarshal(bytes.raw, &was) == nil {
		if now, ok := p.texts.Size(was); ok {
			bytes.raw = appendInt(nil, int(now))
			return
		}
	}
	record.drop("bytes")
}

// get is the value of a key of a map, nothing where it is not there.
func (n *node) get(key string) *node {
	if n.isMap {
		for i := 0; i+1 < len(n.list); i += 2 {
			if n.list[i].text == key {
				return &n.list[i+1]
			}
		}
	}
	return &node{}
}

// drop takes an entry out of a map.
func (n *node) drop(key string) {
	for i := 0; i+1 < len(n.list); i += 2 {
		if n.list[i].text == key {
			n.list = slices.Delete(n.list, i, i+2)
			return
		}
	}
}

// fixedSize is how many bytes follow the first of a value that is no text, list or map.
func fixedSize(c byte) (n uint64, ok bool) {
	switch {
	case c < 0x80, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return 0, true
	case c == 0xcc, c == 0xd0:
		return 1, true
	case c == 0xcd, c == 0xd1:
		return 2, true
	case c == 0xca, c == 0xce, c == 0xd2:
		return 4, true
	case c == 0xcb, c == 0xcf, c == 0xd3:
		return 8, true
	}
	return 0, false
}

// value reads one.
func (p *packer) value() (node, error) {
	c, err := p.byte()
	if err != nil {
		return node{}, p.cut(err)
	}
	if p.left -= 8; p.left < 0 {
		return node{}, p.fault(snapshot.ErrLimit, "has a value of more than %d bytes", mostValue)
	}
	if n, ok := fixedSize(c); ok {
		b, err := p.take(n)
		if err != nil {
			return node{}, err
		}
		return node{raw: append([]byte{c}, b...)}, nil
	}
	head := func(bytes uint64) (uint64, error) {
		b, err := p.take(bytes)
		if err != nil {
			return 0, err
		}
		var full [8]byte
		copy(full[8-len(b):], b)
		return binary.BigEndian.Uint64(full[:]), nil
	}
	var n uint64
	switch {
	case c&0xf0 == 0x80:
		return p.items(uint64(c&0xf)*2, true)
	case c&0xf0 == 0x90:
		return p.items(uint64(c&0xf), false)
	case c&0xe0 == 0xa0:
		n = uint64(c & 0x1f)
	case c == 0xd9, c == 0xc4:
		n, err = head(1)
	case c == 0xda, c == 0xc5, c == 0xdc, c == 0xde:
		n, err = head(2)
	case c == 0xdb, c == 0xc6, c == 0xdd, c == 0xdf:
		n, err = head(4)
	default:
		return node{}, p.fault(snapshot.ErrCorrupt, "has a value of the kind 0x%02x, which is not rewritten", c)
	}
	if err != nil {
		return node{}, err
	}
	switch c {
	case 0xdc, 0xdd:
		return p.items(n, false)
	case 0xde, 0xdf:
		return p.items(2*n, true)
	}
	b, err := p.take(n) // bytes become a text: nothing that is read here has any
	if err != nil {
		return node{}, err
	}
	p.left -= len(b)
	return node{text: string(b), isText: true}, nil
}

func (n *node) isNumber() bool {
	if len(n.raw) == 0 {
		return false
	}
	_, ok := fixedSize(n.raw[0])
	return ok
}

// items reads the items of a list or a map. Of numbers alone their bytes are kept.
func (p *packer) items(n uint64, isMap bool) (node, error) {
	if p.depth++; p.depth > 64 {
		return node{}, p.fault(snapshot.ErrLimit, "is nested too deep")
	}
	defer func() { p.depth-- }()
	all := node{isMap: isMap, list: []node{}}
	if !isMap {
		all.raw = listHead(nil, int(n))
	}
	numbers := !isMap
	for range n {
		v, err := p.value()
		if err != nil {
			return all, err
		}
		if numbers && !v.isNumber() {
			if all.list, err = unpacked(all.raw); err != nil {
				return all, p.fault(snapshot.ErrCorrupt, "has a broken list")
			}
			numbers = false
		}
		if numbers {
			all.raw = append(all.raw, v.raw...)
		} else {
			all.list = append(all.list, v)
		}
	}
	if numbers {
		return node{raw: all.raw}, nil
	}
	all.raw = nil
	return all, nil
}

// unpacked are the numbers behind the head of a list.
func unpacked(raw []byte) ([]node, error) {
	b := raw[headSize(raw[0]):]
	out := []node{}
	for len(b) > 0 {
		n, ok := fixedSize(b[0])
		if !ok || int(n) >= len(b) {
			return nil, io.ErrUnexpectedEOF
		}
		out, b = append(out, node{raw: b[: n+1 : n+1]}), b[n+1:]
	}
	return out, nil
}

func headSize(c byte) int {
	switch c {
	case 0xdc:
		return 3
	case 0xdd:
		return 5
	}
	return 1
}

func listHead(b []byte, n int) []byte { return head(b, n, 0x90, 0xdc) }

// head is that of a list or of a map, by its short and its middle form.
func head(b []byte, n int, short, middle byte) []byte {
	switch {
	case n < 16:
		return append(b, short|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, middle), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, middle+1), uint32(n))
}

// write writes a value that stands at a place.
func (p *packer) write(n *node, at Place) {
	switch {
	case n.done:
		p.string(n.text)
	case n.isText && isName(at):
		p.string(p.texts.Name(n.text, ""))
	case n.isText:
		p.string(p.texts.Text(at, n.text))
	case n.isMap:
		p.out = head(p.out, len(n.list)/2, 0x80, 0xde)
		for i := 0; i+1 < len(n.list); i += 2 {
			k := &n.list[i]
			p.write(k, Place{Above: at.Key, IsKey: true})
			p.write(&n.list[i+1], Place{Key: k.text, Above: at.Key})
		}
	case n.list != nil:
		p.out = listHead(p.out, len(n.list))
		for i := range n.list {
			p.write(&n.list[i], at)
		}
	default:
		p.out = append(p.out, n.raw...)
	}
}

func (p *packer) string(s string) {
	switch n := len(s); {
	case n < 32:
		p.out = append(p.out, 0xa0|byte(n))
	case n < 256:
		p.out = append(p.out, 0xd9, byte(n))
	case n < 1<<16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xda), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xdb), uint32(n))
	}
	p.out = append(p.out, s...)
}

// tables are the columns of a graph of holders that have texts, by their numbers in strings.
var tables = map[string][]string{
	"storages": {"kind"}, "tensors": {"shape", "dtype"}, "nodes": {"kind", "type", "name", "file", "root"},
	"edges": {"kind", "label"}, "bounds": {"hint"}, "numbers": {"name"},
}

// order is that of tables.
var order = []string{"storages", "tensors", "nodes", "edges", "bounds", "numbers"}

// holders rewrites the texts of a graph, of which one may stand for several things: strings are made anew. A column that
// is not one is left out.
func (p *packer) holders(record *node) {
	all := record.get("strings")
	var old []string
	for i := range all.list {
		old = append(old, all.list[i].text)
	}
	now, ids := []node{{isText: true, done: true}}, map[string]int{"": 0}
	id := func(s string) int {
		i, ok := ids[s]
		if !ok {
			i = len(now)
			now, ids[s] = append(now, node{text: s, isText: true, done: true}), i
		}
		return i
	}
	for _, table := range order {
		columns := map[string][]int{}
		for _, column := range tables[table] {
			columns[column] = numbers(record.get(table).get(column), len(old))
		}
		for _, column := range tables[table] {
			list := columns[column]
			if list == nil {
				continue
			}
			into := listHead(nil, len(list))
			type cell struct {
				text   int
				beside string
			}
			done := map[cell]int{} // texts are few
			for i, n := range list {
				beside := ""
				switch {
				case column == "name" && table == "nodes" && i < len(columns["file"]):
					beside = old[columns["file"][i]]
				case column == "label" && i < len(columns["kind"]):
					beside = old[columns["kind"][i]]
				}
				as, ok := done[cell{n, beside}]
				if !ok {
					as = id(p.cell(table, column, old[n], beside))
					done[cell{n, beside}] = as
				}
				into = appendInt(into, as)
			}
			*record.get(table).get(column) = node{raw: into}
		}
	}
	*all = node{list: now}
}

// cell is what becomes of a text of a column: of a function with its file, of a label with the kind of its edge.
func (p *packer) cell(table, column, was, beside string) string {
	switch {
	case was == "":
		return ""
	case table == "nodes" && column == "name":
		return p.texts.Name(was, beside)
	case column == "label":
		return p.texts.Text(Place{Key: beside, Above: "edges"}, was)
	}
	return p.texts.Text(Place{Key: column, Above: table}, was)
}

func appendInt(b []byte, n int) []byte {
	switch {
	case n < 128:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), uint64(n))
}

// numbers are those of a column, nil where it has others than numbers below a limit.
func numbers(n *node, below int) []int {
	if n.raw == nil || n.raw[0] < 0x90 || n.raw[0] > 0x9f && n.raw[0] != 0xdc && n.raw[0] != 0xdd {
		return nil
	}
	cells, err := unpacked(n.raw)
	if err != nil {
		return nil
	}
	out := make([]int, 0, len(cells))
	for _, c := range cells {
		var v int
		if msgpack.Unmarshal(c.raw, &v) != nil || v < 0 || v >= below {
			return nil
		}
		out = append(out, v)
	}
	return out
}
