package holder

import (
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/snapshot"
)

// growthOf finds the growth that a piece of memory is part of, nil for none.
func (f *finder) growthOf(m *memory) *ghost.Growth {
	if m.row < 0 {
		return nil
	}
	l := &f.lines[m.device].Lives[m.row]
	if l.Born < 0 {
		return nil
	}
	return f.growth[site{m.device, l.Stack}]
}

// measure finds what a holder frees and what it shares. What many objects of one name free
// together is exact if asked for, which takes a walk of the whole graph, or else at least the
// sum of what each of them frees.
func (f *finder) measure(h *Holder, exact bool) {
	g := f.g
	slices.Sort(h.Devices)
	if h.Count == 0 {
		return
	}
	f.sites(h)
	if h.Kind == Unreached {
		return
	}
	switch {
	case len(h.object) == 1:
		h.Frees = f.sums[h.object[0]]
	case exact && h.Standing == Other:
		h.Frees = g.without(h.object)
	default:
		for _, v := range h.object {
			h.Frees += f.sums[v]
		}
	}
	also, with := map[string]bool{}, map[string]bool{}
	for _, v := range h.object[:min(len(h.object), mostNamed)] {
		f.others(v, h, also)
	}
	h.Also = slices.Sorted(maps.Keys(also))
	if !slices.ContainsFunc(h.object, func(v int32) bool { return !f.sole(v) }) {
		h.Alone = h.Frees
	}
	behind := map[int32]bool{}
	for _, v := range h.object {
		behind[v] = true
	}
	looked := 0
	for _, i := range h.rows {
		m := &g.memory[i]
		if m.row < 0 || f.behind(g.memoryNode(i), h.object, behind) {
			continue
		}
		h.Shared += m.bytes
		if looked++; looked <= mostNamed {
			f.sharers(i, h, behind, with)
		}
	}
	h.SharedWith = slices.Sorted(maps.Keys(with))
}

// sole reports whether the reference on its chain is the only one to an object, but for those
// that lead back from the object itself.
func (f *finder) sole(v int32) bool {
	g := f.g
	for i := g.into.first[v]; i < g.into.first[v+1]; i++ {
		from, tag := g.into.to[i], g.into.tag[i]
		if (from != g.from[v] || tag != g.edge[v]) && f.tree.number[from] >= 0 && !f.tree.over(v, from) {
			return false
		}
	}
	return true
}

// behind reports whether one of these objects dominates v. known has them all, and remembers.
func (f *finder) behind(v int32, objects []int32, known map[int32]bool) bool {
	if len(objects) == 1 {
		return f.tree.over(objects[0], v)
	}
	var way []int32
	is, ok := known[v]
	for !ok && v != f.g.root {
		way = append(way, v)
		v = f.tree.above(v)
		is, ok = known[v]
	}
	for _, w := range way {
		known[w] = is
	}
	return is
}

// mostNamed bounds the objects of one holder whose other references are named, and of each how
// many references are looked at.
const mostNamed = 64

// sharers names what else keeps a piece of memory: the references that come in on its chain
// behind the holder's object.
func (f *finder) sharers(memory int32, h *Holder, behind map[int32]bool, with map[string]bool) {
	chain := f.g.chain(f.g.memoryNode(memory))
	i := slices.IndexFunc(chain, func(h hop) bool { return behind[h.to] })
	if i < 0 {
		return
	}
	object := chain[i].to
	for _, hop := range chain[i+1:] {
		if !f.tree.over(object, hop.to) {
			f.others(hop.to, h, with)
			return
		}
	}
}

// others names the references to an object beside the one of its chain, as far as they do not
// lead back from the object itself.
func (f *finder) others(v int32, h *Holder, out map[string]bool) {
	g := f.g
	for i := g.into.first[v]; i < min(g.into.first[v+1], g.into.first[v]+mostNamed); i++ {
		from, tag := g.into.to[i], g.into.tag[i]
		if from == g.from[v] && tag == g.edge[v] || int(from) >= g.objects || f.tree.number[from] < 0 ||
			f.tree.over(v, from) {
			continue
		}
		n := g.nameChain(append(g.chain(from), hop{from, v, tag}))
		if words := n.ref.String(); words != h.String() && n.ref.Kind != Hidden { // that would help nobody
			out[words] = true
		}
	}
}

func (f *finder) sites(h *Holder) {
	byStack, byUse, byGrowth := tally[snapshot.StackID]{}, tally[string]{}, map[*ghost.Growth]int64{}
	for _, i := range h.rows {
		m := &f.g.memory[i]
		if m.row < 0 {
			continue
		}
		line := f.lines[m.device]
		byStack.add(line.Lives[m.row].Stack, m.bytes)
		if line.Use != nil {
			byUse.add(line.Use(m.row), m.bytes)
		}
		if growth := f.growthOf(m); growth != nil {
			h.GrownBlocks, h.Grown = h.GrownBlocks+1, h.Grown+m.bytes
			byGrowth[growth] += m.bytes
		}
	}
	for _, l := range f.devices { // in a fixed order
		for k := range l.Growth {
			if g := &l.Growth[k]; byGrowth[g] > 0 && (h.growth == nil || byGrowth[g] > byGrowth[h.growth]) {
				h.growth = g
			}
		}
	}
	if h.growth != nil {
		h.Loop, h.Laps, h.PerLap = h.growth.Loop, h.growth.Laps, h.growth.PerLap
	}
	h.Sites = f.sitesOf(byStack)
	if i := h.aside.made; i >= 0 {
		m := &f.g.memory[i]
		life := &f.lines[m.device].Lives[m.row]
		h.aside.place = attribution.Line(f.snapshot, life.Stack, short(h.Function), h.File)
	}
	for _, name := range byUse.keys() {
		h.Uses = append(h.Uses, Use{name, byUse[name]})
	}
}

func (f *finder) sitesOf(byStack tally[snapshot.StackID]) (out []Site) {
	for _, stack := range byStack.keys() {
		name, ok := f.names[stack]
		if !ok {
			name = attribution.Site(f.snapshot, stack)
			f.names[stack] = name
		}
		out = append(out, Site{stack, name, byStack[stack]})
	}
	return out
}
