package holder

import (
	"cmp"
	"slices"
	"sort"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Sum counts pieces of memory.
type Sum struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"` // rounded bytes of blocks; of storages without a block, their own
}

func (s *Sum) add(bytes int64) { s.Count++; s.Bytes += bytes }

// join lays storages over the blocks that are allocated at the end of the trace.
func join(lines []*timeline.Timeline, h *sidecar.Holders) (mem []memory, ofStore []int32, blocks map[int][]int32) {
	blocks = map[int][]int32{}
	byDevice := map[int]*timeline.Timeline{}
	for _, t := range lines {
		byDevice[t.Device] = t
		blocks[t.Device] = allocated(t)
	}
	type key struct {
		device int
		row    int32
	}
	found := map[key]int32{}
	ofStore = make([]int32, h.Storages.Len())
	for i := range h.Storages.Len() {
		device, bytes := int(h.Storages.Device[i]), h.Storages.Bytes[i]
		row := int32(-1)
		if t := byDevice[device]; t != nil {
			row = blockAt(t, blocks[device], h.Storages.Address[i], bytes)
		}
		k := key{device, row}
		at, ok := found[k]
		if row < 0 || !ok {
			at = int32(len(mem))
			m := memory{device: device, row: row}
			if row >= 0 {
				m.bytes = byDevice[device].Lives[row].Rounded
				found[k] = at
			}
			mem = append(mem, m)
		}
		mem[at].storage = max(mem[at].storage, bytes)
		ofStore[i] = at
	}
	return mem, ofStore, blocks
}

// allocated lists the rows of the blocks that the program has not freed at the end, by address.
func allocated(t *timeline.Timeline) []int32 {
	st := t.StateAt(t.Trace.Len() - 1)
	var rows []int32
	for _, row := range st.Rows() {
		if l := &t.Lives[row]; l.FreeRequested == -1 || int(l.FreeRequested) > st.Event {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b int32) int { return cmp.Compare(t.Lives[a].Addr, t.Lives[b].Addr) })
	return rows
}

// blockAt finds the block that a storage lies in, -1 for none. It begins where its block does,
// unless memory of the allocator was handed out again in parts.
func blockAt(t *timeline.Timeline, rows []int32, address uint64, bytes int64) int32 {
	i := sort.Search(len(rows), func(i int) bool { return t.Lives[rows[i]].Addr > address }) - 1
	if i < 0 {
		return -1
	}
	l := &t.Lives[rows[i]]
	if into := address - l.Addr; into < uint64(l.Rounded) && uint64(bytes) <= uint64(l.Rounded)-into {
		return rows[i]
	}
	return -1
}
