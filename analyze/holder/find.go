package holder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Line is one device of the snapshot.
type Line struct {
	*timeline.Timeline
	Growth []ghost.Growth
	Use    func(row int32) string // what a life is for, see package category
}

// mostExact is for how many holders, the largest, what many objects free together is exact.
const mostExact = 32

// find joins the holders of now with the blocks.
func (f *finder) find() *Result {
	g := newGraph(f.now, f.join)
	g.boundByText(f.text)
	f.g, f.tree = g, dominators(g.links, g.root)
	weight := make([]int64, g.links.nodes())
	for i, m := range g.memory {
		weight[g.memoryNode(int32(i))] = m.bytes
	}
	f.sums = f.tree.sums(weight)
	groups := g.group()
	sorting.Stable(groups, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for i := range groups {
		f.measure(&groups[i], i < mostExact)
	}
	r := &Result{Notes: f.notes()}
	f.close(r)
	r.Notes = append(r.Notes, f.rejoin(groups)...)
	if f.before != nil {
		f.compare(groups)
	}
	f.optimizers(groups)
	for i := range groups {
		groups[i].Code = f.code(&groups[i])
		f.judge(&groups[i])
	}
	sorting.Stable(groups, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(first[a.Standing], first[b.Standing]), cmp.Compare(b.Grown, a.Grown),
			cmp.Compare(b.Bytes, a.Bytes))
	})
	r.Holders = slices.DeleteFunc(groups, func(h Holder) bool { return h.Count == 0 })
	r.Unproven = f.unproven(r.Holders)
	for i := range f.devices {
		for k := range f.devices[i].Growth {
			if shares := r.Of(&f.devices[i].Growth[k]); len(shares) > 1 {
				for _, s := range shares {
					s.Holder.PerLap, s.Holder.Laps = s.PerLap, s.Growth.Laps
				}
			}
		}
	}
	return r
}

// rejoin puts what hangs on autograd graphs of which the recorder left out a part, so that they seem to be C++'s alone,
// to what has most of a graph that grows in the same loop. It says so.
func (f *finder) rejoin(groups []Holder) (notes []string) {
	if f.now.Dropped["graph_nodes"] == 0 {
		return nil
	}
	for i := range groups {
		cut := &groups[i]
		if cut.Kind != CPP || !cut.throughGraph() || cut.growth == nil {
			continue
		}
		var to *Holder
		for k := range groups {
			h := &groups[k]
			named := h.Kind != CPP && h.Kind != Hidden && h.Kind != Unreached && h.Kind != Cycle
			if named && h.growth == cut.growth && h.throughGraph() && (to == nil || h.Graph > to.Graph) {
				to = h
			}
		}
		if to == nil {
			continue
		}
		notes = append(notes, fmt.Sprintf("%s has the end of graphs that grow in %s; what of them seems to be C++'s alone, as "+
			"graph nodes were left out, is counted with it", to.Reference, frames.Function(f.snapshot, cut.growth.Loop)))
		to.rows, to.Blocks = append(to.rows, cut.rows...), append(to.Blocks, cut.Blocks...)
		to.Bytes, to.Count, to.Graph = to.Bytes+cut.Bytes, to.Count+cut.Count, to.Graph+cut.Graph
		to.Storage.Count, to.Storage.Bytes = to.Storage.Count+cut.Storage.Count, to.Storage.Bytes+cut.Storage.Bytes
		to.Frees += cut.Frees
		for _, d := range cut.Devices {
			if !slices.Contains(to.Devices, d) {
				to.Devices = append(to.Devices, d)
			}
		}
		slices.Sort(to.Devices)
		to.Grown, to.GrownBlocks, to.Sites, to.Uses = 0, 0, nil, nil
		f.sites(to)
		cut.rows, cut.Blocks, cut.Count, cut.Bytes, cut.growth, cut.GrownBlocks = nil, nil, 0, 0, nil, 0
	}
	return notes
}

// first are the standings that come before others.
var first = map[Standing]int{Ghost: -2, Other: -1}

// finder joins the holders of a dump with the blocks of a snapshot, and measures them.
type finder struct {
	snapshot *snapshot.Snapshot
	devices  []Line
	lines    map[int]*Line          // the same, by ordinal
	blocks   map[int][]int32        // what is allocated, by ordinal
	growth   map[site]*ghost.Growth // that a stack is part of
	names    map[snapshot.StackID]string

	now, before *sidecar.Holders // before is an earlier dump to compare, or nil
	steps       int64            // of the program between the two, 0 unknown

	text *text // of the program, nil unknown

	g    *graph // of now
	tree *tree
	sums []int64 // bytes that go with each node
}

// site is a stack on a device.
type site struct {
	device int
	stack  snapshot.StackID
}

func newFinder(s *snapshot.Snapshot, devices []Line) *finder {
	f := &finder{snapshot: s, devices: devices, lines: map[int]*Line{}, blocks: map[int][]int32{},
		growth: map[site]*ghost.Growth{}, names: map[snapshot.StackID]string{}}
	for i := range devices {
		l := &devices[i]
		f.lines[l.Device], f.blocks[l.Device] = l, allocated(l.Timeline)
		for k := range l.Growth {
			for _, stack := range l.Growth[k].Stacks {
				f.growth[site{l.Device, stack}] = &l.Growth[k]
			}
		}
	}
	return f
}

// close counts what is not joined.
func (f *finder) close(r *Result) {
	held := map[Block]bool{}
	for i := range f.g.memory {
		switch m := &f.g.memory[i]; {
		case m.row >= 0:
			held[Block{m.device, m.row}] = true
		case m.device >= 0: // else it is host memory
			r.Stray.add(m.storage)
		}
	}
	for i := range f.devices {
		l := &f.devices[i]
		d := Device{Ordinal: l.Device}
		unheld := tally[snapshot.StackID]{}
		for _, row := range f.blocks[l.Device] {
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
	out := slices.Clone(f.now.Notes)
	for what, n := range f.now.Dropped {
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
	return sorting.Of(maps.Keys(t), func(a, b K) int {
		return cmp.Or(cmp.Compare(t[b].Bytes, t[a].Bytes), cmp.Compare(a, b))
	})
}

// join lays storages over the blocks that are allocated at the end of the trace.
func (f *finder) join(h *sidecar.Holders) (mem []memory, ofStore []int32) {
	found := map[Block]int32{}
	ofStore = make([]int32, len(h.Storages.Address))
	for i, address := range h.Storages.Address {
		device, bytes := int(h.Storages.Device[i]), h.Storages.Bytes[i]
		row := int32(-1)
		if l := f.lines[device]; l != nil {
			row = blockAt(l.Timeline, f.blocks[device], address, bytes)
		}
		k := Block{device, row}
		at, ok := found[k]
		if row < 0 || !ok {
			at = int32(len(mem))
			m := memory{device: device, row: row, count: h.Every(i), kind: h.String(h.Storages.Kind[i])}
			if row >= 0 {
				m.bytes = f.lines[device].Lives[row].Rounded * m.count
				found[k] = at
			}
			mem = append(mem, m)
		}
		mem[at].storage = max(mem[at].storage, bytes*mem[at].count)
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
	sorting.Stable(rows, func(a, b int32) int { return cmp.Compare(t.Lives[a].Addr, t.Lives[b].Addr) })
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
