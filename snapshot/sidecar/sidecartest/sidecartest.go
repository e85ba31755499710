// Package sidecartest writes made-up .snapana files for tests.
package sidecartest

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Map is a MessagePack map: keys and values in turn, in the order of the file.
type Map []any

// EncodeMsgpack writes the map.
func (m Map) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeMapLen(len(m) / 2); err != nil {
		return err
	}
	for _, v := range m {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// Header begins a run of a recorder.
func Header(more ...any) Map {
	return append(Map{"type", "header", "time", 1, "format", "snapana", "version", 1, "producer", "recorder"}, more...)
}

// Stream encodes records one after the other.
func Stream(records ...Map) []byte {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			panic(fmt.Sprintf("record %v: %v", r, err))
		}
	}
	return buf.Bytes()
}

// Graph collects the objects of a holders record.
type Graph struct {
	strings                                    []string
	ids                                        map[string]int
	device, bytes, shape, dtype, flags, offset []int
	address                                    []uint64
	node, storage                              []int
	kind, class, name, file, line, root, cycle []int
	from, to, edge, label                      []int
	bounded, length, limit, hint               []int
}

// Node is an object; only Kind is needed.
type Node struct {
	Kind, Type, Name, File string
	Line                   int
	Root                   string
	Cycle                  int
}

func (g *Graph) id(s string) int {
	if g.ids == nil {
		g.ids, g.strings = map[string]int{"": 0}, []string{""}
	}
	n, ok := g.ids[s]
	if !ok {
		n = len(g.strings)
		g.ids[s] = n
		g.strings = append(g.strings, s)
	}
	return n
}

// Node adds an object and gives its index.
func (g *Graph) Node(n Node) int {
	g.kind, g.class, g.name = append(g.kind, g.id(n.Kind)), append(g.class, g.id(n.Type)), append(g.name, g.id(n.Name))
	g.file, g.line, g.root = append(g.file, g.id(n.File)), append(g.line, n.Line), append(g.root, g.id(n.Root))
	g.cycle = append(g.cycle, n.Cycle)
	return len(g.kind) - 1
}

// Edge makes one object refer to another.
func (g *Graph) Edge(from, to int, kind, label string) {
	g.from, g.to = append(g.from, from), append(g.to, to)
	g.edge, g.label = append(g.edge, g.id(kind)), append(g.label, g.id(label))
}

// Tensor adds a tensor with a storage of its own on device 0, and gives its node.
func (g *Graph) Tensor(address uint64, bytes, flags int) int {
	g.device, g.address, g.bytes = append(g.device, 0), append(g.address, address), append(g.bytes, bytes)
	return g.View(len(g.address)-1, flags)
}

// View adds another tensor on a storage, and gives its node.
func (g *Graph) View(storage, flags int) int {
	n := g.Node(Node{Kind: "tensor", Type: "torch.Tensor"})
	g.node, g.storage, g.flags = append(g.node, n), append(g.storage, storage), append(g.flags, flags)
	g.shape, g.dtype, g.offset = append(g.shape, g.id("1")), append(g.dtype, g.id("float32")), append(g.offset, 0)
	return n
}

// Bound says how many entries a container has, and has at most.
func (g *Graph) Bound(node, length, limit int, hint string) {
	g.bounded, g.length, g.limit, g.hint = append(g.bounded, node), append(g.length, length), append(g.limit, limit), append(g.hint, g.id(hint))
}

// Record gives the holders record. Keys in more come last.
func (g *Graph) Record(id int, more ...any) Map {
	g.id("")
	return append(Map{"type", "holders", "time", 2, "id", id, "reason", "dump",
		"strings", g.strings,
		"storages", Map{"device", list(g.device), "address", list(g.address), "bytes", list(g.bytes)},
		"tensors", Map{"node", list(g.node), "storage", list(g.storage), "shape", list(g.shape), "dtype", list(g.dtype), "flags", list(g.flags), "offset", list(g.offset)},
		"nodes", Map{"kind", list(g.kind), "type", list(g.class), "name", list(g.name), "file", list(g.file), "line", list(g.line), "root", list(g.root), "cycle", list(g.cycle)},
		"edges", Map{"from", list(g.from), "to", list(g.to), "kind", list(g.edge), "label", list(g.label)},
		"bounds", Map{"node", list(g.bounded), "length", list(g.length), "limit", list(g.limit), "hint", list(g.hint)},
	}, more...)
}

// list makes an empty list of nil, which would be encoded as nil.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}
