package holder

import (
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/units"
)

// smallestPinned is from how many bytes on a storage counts that tensors keep, and show little of.
const smallestPinned = 64 << 10

// elementBytes are the sizes of torch's types (c10/core/ScalarType.h). Those of others are unknown.
var elementBytes = map[string]int64{
	"bool": 1, "uint8": 1, "int8": 1, "qint8": 1, "quint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
	"float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
	"float4_e2m1fn_x2": 1,
	"float16":          2, "bfloat16": 2, "int16": 2, "uint16": 2,
	"float32": 4, "int32": 4, "uint32": 4, "qint32": 4, "complex32": 4,
	"float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16,
}

// tensorBytes is what the elements of a tensor take, as from "8x128" and "float32"; -1 where that is unknown.
func tensorBytes(shape, dtype string) int64 {
	n := elementBytes[dtype]
	if n == 0 {
		return -1
	}
	if shape == "" { // one number
		return n
	}
	for size := range strings.SplitSeq(shape, "x") {
		k, err := strconv.ParseInt(size, 10, 64)
		if err != nil || k < 0 || k > 0 && n > (1<<62)/k {
			return -1
		}
		n *= k
	}
	return n
}

// show adds up, for each piece of memory, what its tensors have elements in: at most all of it. Tensors that were only
// found as the base of another are not looked at, as nothing can use them but by that.
func (g *graph) show() {
	whole := make([]bool, len(g.memory))
	for i, v := range g.h.Tensors.Node {
		into := g.into.tag[g.into.first[v]:g.into.first[v+1]]
		if len(into) > 0 && !slices.ContainsFunc(into, func(tag int32) bool { return g.edgeKind(tag) != "base" }) {
			continue
		}
		storage := g.h.Tensors.Storage[i]
		m := &g.memory[g.ofStore[storage]]
		n := tensorBytes(g.h.String(g.h.Tensors.Shape[i]), g.h.String(g.h.Tensors.DType[i]))
		if n < 0 || n >= g.h.Storages.Bytes[storage] {
			whole[g.ofStore[storage]] = true
			continue
		}
		m.shown = min(m.shown+n*m.count, m.storage)
	}
	for i := range whole {
		if m := &g.memory[i]; whole[i] {
			m.shown = m.storage
		}
	}
}

// pinned adds a piece of memory of which its tensors show little to those of a holder.
func (h *Holder) pinned(m *memory) {
	if m.shown == 0 || 4*m.shown > m.storage || m.storage < smallestPinned*m.count {
		return
	}
	if h.Views == nil {
		h.Views = &finding.Views{}
	}
	h.Views.Storages += m.count
	h.Views.Bytes += units.Size(m.storage)
	h.Views.Shown += units.Size(m.shown)
}
