package holder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Line is one device of the snapshot.
type Line struct {
	*timeline.Timeline
	Growth []ghost.Growth
	Use    func(row int32) string // what a life is for, see package category
}

// Input is what Find joins.
type Input struct {
	Snapshot *snapshot.Snapshot
	Lines    []Line
	Holders  *sidecar.Holders
	Before   *sidecar.Holders // an earlier dump to compare, or nil
	Steps    int64            // of the program between the two, 0 unknown
}

// mostExact is for how many holders, the largest, what many objects free together is exact.
const mostExact = 32

// Find joins holders and blocks.
func Find(in Input) *Result {
	blocks := blocksOf(in.Lines)
	mem, ofStore := join(in.Lines, blocks, in.Holders)
	f := newFinder(in, newGraph(in.Holders, mem, ofStore))
	groups := f.g.group()
	slices.SortStableFunc(groups, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range groups {
		f.measure(&groups[i], i < mostExact)
	}
	r := &Result{Notes: f.notes()}
	f.close(r, blocks)
	if in.Before != nil {
		f.compare(groups)
	}
	for i := range groups {
		f.judge(&groups[i])
	}
	slices.SortStableFunc(groups, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(first[a.Standing], first[b.Standing]), cmp.Compare(b.Grown, a.Grown),
			cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.key(), b.key()))
	})
	r.Holders = slices.DeleteFunc(groups, func(h Holder) bool { return h.Count == 0 })
	r.Unproven = f.unproven(r.Holders)
	for i := range in.Lines {
		for k := range in.Lines[i].Growth {
			if shares := r.Of(&in.Lines[i].Growth[k]); len(shares) > 1 {
				for _, s := range shares {
					s.Holder.PerLap, s.Holder.Laps = s.PerLap, s.Growth.Laps
				}
			}
		}
	}
	return r
}

// first are the standings that come before others.
var first = map[Standing]int{Ghost: -2, Other: -1}

// finder measures holders.
type finder struct {
	g      *graph
	in     Input
	tree   *tree
	sums   []int64                // bytes that go with each node
	lines  map[int]*Line          // by device
	growth map[site]*ghost.Growth // that a stack is part of
	names  map[snapshot.StackID]string
}

// site is a stack on a device.
type site struct {
	device int
	stack  snapshot.StackID
}

func newFinder(in Input, g *graph) *finder {
	f := &finder{g: g, in: in, tree: dominators(g.links, g.root), lines: map[int]*Line{},
		growth: map[site]*ghost.Growth{}, names: map[snapshot.StackID]string{}}
	weight := make([]int64, g.links.nodes())
	for i, m := range g.memory {
		weight[g.memoryNode(int32(i))] = m.bytes
	}
	f.sums = f.tree.sums(weight)
	for i := range in.Lines {
		l := &in.Lines[i]
		f.lines[l.Device] = l
		for k := range l.Growth {
			for _, stack := range l.Growth[k].Stacks {
				f.growth[site{l.Device, stack}] = &l.Growth[k]
			}
		}
	}
	return f
}

// close counts what is not joined.
func (f *finder) close(r *Result, blocks map[int][]int32) {
	held := map[Block]bool{}
	for i := range f.g.memory {
		switch m := &f.g.memory[i]; {
		case m.row >= 0:
			held[Block{m.device, m.row}] = true
		case m.device >= 0: // else it is host memory
			r.Stray.add(m.storage)
		}
	}
	for i := range f.in.Lines {
		l := &f.in.Lines[i]
		d := Device{Ordinal: l.Device}
		unheld := tally[snapshot.StackID]{}
		for _, row := range blocks[l.Device] {
			life := &l.Lives[row]
			d.Allocated.add(life.Rounded)
			if held[Block{l.Device, row}] {
				d.Held.add(life.Rounded)
				continue
			}
			d.Unheld.add(life.Rounded)
			unheld.add(life.Stack, life.Rounded)
		}
		d.UnheldSites = f.sitesOf(unheld)
		r.Devices = append(r.Devices, d)
	}
}

// notes says what the recorder could not see.
func (f *finder) notes() []string {
	out := slices.Clone(f.in.Holders.Notes)
	for what, n := range f.in.Holders.Dropped {
		if n > 0 {
			what = strings.ReplaceAll(what, "_", " ")
			out = append(out, fmt.Sprintf("the recorder left out %d %s beyond its limit", n, what))
		}
	}
	slices.Sort(out)
	return out
}

// Sum counts pieces of memory.
type Sum struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"` // rounded bytes of blocks; of storages without a block, their own
}

func (s *Sum) add(bytes int64) { s.Count++; s.Bytes += bytes }

// tally counts pieces of memory by a key.
type tally[K cmp.Ordered] map[K]Sum

func (t tally[K]) add(key K, bytes int64) {
	s := t[key]
	s.add(bytes)
	t[key] = s
}

// keys are those with most bytes first.
func (t tally[K]) keys() []K {
	return slices.SortedFunc(maps.Keys(t), func(a, b K) int {
		return cmp.Or(cmp.Compare(t[b].Bytes, t[a].Bytes), cmp.Compare(a, b))
	})
}

// blocksOf gives what is allocated on each device.
func blocksOf(lines []Line) map[int][]int32 {
	out := map[int][]int32{}
	for _, l := range lines {
		out[l.Device] = allocated(l.Timeline)
	}
	return out
}

// join lays storages over the blocks that are allocated at the end of the trace.
func join(lines []Line, blocks map[int][]int32, h *sidecar.Holders) (mem []memory, ofStore []int32) {
	byDevice := map[int]*timeline.Timeline{}
	for _, l := range lines {
		byDevice[l.Device] = l.Timeline
	}
	found := map[Block]int32{}
	ofStore = make([]int32, len(h.Storages.Address))
	for i, address := range h.Storages.Address {
		device, bytes := int(h.Storages.Device[i]), h.Storages.Bytes[i]
		row := int32(-1)
		if t := byDevice[device]; t != nil {
			row = blockAt(t, blocks[device], address, bytes)
		}
		k := Block{device, row}
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
	return mem, ofStore
}

// allocated lists the rows of the blocks that the program has not freed at the end, by address.
func allocated(t *timeline.Timeline) []int32 {
	st := t.StateAt(t.Trace.Len() - 1)
	var rows []int32
	for _, row := range st.Rows() {
		if !t.Lives[row].Waits(st.Event) {
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
