package holder

import (
	"cmp"
	"maps"
	"slices"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// judge calls a holder a ghost when its memory grows and nothing explains it. A variable of a
// running function has what the current lap made; only when it has most of all laps, as a sum of
// losses with their graphs does, it is one too. Two dumps can acquit: what is no more than some
// laps ago is a buffer that is full. So can the bound of a container: one that is not full is filled.
func (f *finder) judge(h *Holder) {
	// Blocks are counted: one workspace that was made at the same place may outweigh them.
	var all int64 // of the growth, whoever holds it
	if h.growth != nil {
		all = h.growth.Count
	}
	h.Steady = f.steps >= ghost.MinLaps && h.Before.Count >= h.Storage.Count && h.Before.Bytes >= h.Storage.Bytes
	h.blind = f.blind(h)
	h.Doubled = h.Before.Count > 0 && h.Storage.Count >= h.Before.Count+ghost.MinLaps &&
		h.Storage.Bytes >= 2*h.Before.Bytes && (f.steps == 0 || f.steps >= ghost.MinLaps)
	if h.Steady || h.Filling() {
		return
	}
	switch grown := h.GrownBlocks; {
	case h.Orphans >= ghost.MinLaps, h.pileUp(), h.Doubled && h.forgotten(),
		h.Optimizers > mostOptimizers && (h.growth != nil || h.Before.Count > 0): // else each task may have one of its own
		h.Standing = Ghost
	case h.GrownBlocks < 2 && !f.blind(h) && (h.GrownBlocks == 0 || h.growth.Cause.Kind != ghost.Rebuilt):
	case h.Standing == Running && 2*grown >= all && h.growth != nil,
		(h.Standing == Other || h.Standing == Buffer) && h.growth != nil && (2*h.Grown >= h.Bytes || 4*grown >= all),
		h.Standing == Other && f.blind(h) && h.Before.Count > 0 && h.Storage.Count >= h.Before.Count+2 &&
			h.Storage.Bytes > h.Before.Bytes:
		h.Standing = Ghost
	}
}

// pileUp reports whether a hook was registered again and again, and each one keeps memory: none of them is there to
// take the place of another.
func (h *Holder) pileUp() bool { return h.Standing == Other && h.Hooks >= ghost.MinLaps }

// forgotten reports whether nothing can use the memory again, whatever it does over time.
func (h *Holder) forgotten() bool {
	unread := h.Code != nil && h.Code.Whole && h.Code.Reads+h.Code.Drops == 0
	return h.Standing == Other && (unread || h.Kind == Cycle || h.Kind == Traceback || h.Logged)
}

// Growing reports whether a growth of the trace has part of the memory, so that what there is to say of it is said there.
func (h *Holder) Growing() bool { return h.growth != nil && h.Standing == Ghost }

// Traced reports whether there is a trace that could show the memory of a holder growing.
func (r *Result) Traced(h *Holder) bool { return !h.blind }

// blind reports whether there is no trace that could show the memory of a holder growing: then
// two dumps are all that there is.
func (f *finder) blind(h *Holder) bool {
	return !slices.ContainsFunc(h.Devices, func(device int) bool { return f.lines[device].Trace.Len() > 0 })
}

// unproven lists the growths that nothing explains: neither a ghost nor memory that is as it
// should be.
func (f *finder) unproven(holders []Holder) []Unproven {
	behind := map[*ghost.Growth]tally[int]{} // by holder
	proven := map[*ghost.Growth]int64{}      // blocks behind a ghost, or behind what is known not to be one
	for n := range holders {
		for _, i := range holders[n].rows {
			m := &f.g.memory[i]
			growth := f.growthOf(m)
			if growth == nil {
				continue
			}
			if behind[growth] == nil {
				behind[growth] = tally[int]{}
			}
			behind[growth].add(n, m.bytes)
			if h := &holders[n]; h.Standing == Ghost || h.Steady || h.Filling() || h.Standing == Optimizer ||
				h.Standing == Gradient {
				proven[growth]++
			}
		}
	}
	var out []Unproven
	for i := range f.devices {
		l := &f.devices[i]
		for k := range l.Growth {
			growth := &l.Growth[k]
			if 2*proven[growth] >= growth.Count {
				continue
			}
			out = append(out, Unproven{Device: l.Device, Growth: growth, Holders: behind[growth].keys()})
		}
	}
	return out
}

// Share is a growth, or the part of one that a holder has.
type Share struct {
	*ghost.Growth
	// Holder is who keeps it: a ghost, or a container that is not full yet. It is nil where none
	// was seen.
	Holder *Holder
	// Acquitted says of a growth without a holder that all of its memory was seen, and what holds
	// it does not grow.
	Acquitted bool
}

// Of divides a growth among those that hold it: one share for each that has most of the memory
// of some of its stacks. A nil Result has seen nothing.
func (r *Result) Of(g *ghost.Growth) []Share {
	if r == nil {
		return []Share{{Growth: g}}
	}
	var keep []*Holder
	var models *Holder // of models that a loop leaves behind, what has most
	steady := false
	for i := range r.Holders {
		switch h := &r.Holders[i]; {
		case h.growth != g:
		case h.Standing == Ghost || h.Filling():
			keep = append(keep, h)
		case h.Steady:
			steady = true
		}
		if h := &r.Holders[i]; h.growth == g && (models == nil || h.Grown > models.Grown) {
			models = h
		}
	}
	if len(keep) == 0 && g.Cause.Kind == ghost.Models && models != nil && models.Kind != Unreached {
		return []Share{{Growth: g, Holder: models}}
	}
	if len(keep) == 0 {
		if h := r.behind(g); h != nil {
			return []Share{{Growth: g, Holder: h}}
		}
		for i := range r.Unproven {
			steady = steady && r.Unproven[i].Growth != g
		}
		return []Share{{Growth: g, Acquitted: steady}}
	}
	sorting.Stable(keep, func(a, b *Holder) int { return cmp.Compare(b.Grown, a.Grown) })
	of := map[*Holder]map[snapshot.StackID]bool{}
	for _, stack := range g.Stacks {
		h := most(keep, stack)
		if of[h] == nil {
			of[h] = map[snapshot.StackID]bool{}
		}
		of[h][stack] = true
	}
	var out []Share
	for _, h := range keep {
		switch part := g.Part(of[h]); {
		case len(of[h]) == len(g.Stacks):
			return []Share{{Growth: g, Holder: h}}
		case part != nil:
			out = append(out, Share{Growth: part, Holder: h})
		}
	}
	return out
}

// behind is what grows, or fills, with another growth, and has most of the memory of this one as well, nil for none: the
// entries of a list come from several functions.
func (r *Result) behind(g *ghost.Growth) *Holder {
	for i := range r.Holders {
		h, bytes := &r.Holders[i], int64(0)
		if h.growth == nil || h.Standing != Ghost && !h.Filling() {
			continue
		}
		for _, s := range h.Sites {
			if slices.Contains(g.Stacks, s.Stack) {
				bytes += s.Bytes
			}
		}
		if 2*bytes >= g.Bytes {
			return h
		}
	}
	return nil
}

// most is the holder with most memory of a stack, the first where none has any.
func most(holders []*Holder, stack snapshot.StackID) *Holder {
	best, bytes := holders[0], int64(0)
	for _, h := range holders {
		for _, s := range h.Sites {
			if s.Stack == stack && s.Bytes > bytes {
				best, bytes = h, s.Bytes
			}
		}
	}
	return best
}

// compare says what the holders had in the earlier dump.
func (f *finder) compare(groups []Holder) {
	h := f.before
	before := newGraph(h, (&finder{}).join) // of no blocks: they are not those of then
	earlier := before.group()
	byKey, byMemory := map[string]*Holder{}, make([]*Holder, len(before.memory))
	for i := range earlier {
		byKey[earlier[i].key()] = &earlier[i]
		for _, m := range earlier[i].rows {
			byMemory[m] = &earlier[i]
		}
	}
	type storage struct {
		device  int32
		address uint64
		bytes   int64
	}
	at := func(h *sidecar.Holders, i int) storage {
		return storage{h.Storages.Device[i], h.Storages.Address[i], h.Storages.Bytes[i]}
	}
	then := map[storage]*Holder{}
	for i := range h.Storages.Address {
		then[at(h, i)] = byMemory[before.ofStore[i]]
	}
	now := make([]storage, len(f.g.memory))
	left := map[*Holder]int64{} // storages that are there no more
	for i, m := range f.g.ofStore {
		now[m] = at(f.now, i)
	}
	for i := range f.now.Storages.Address {
		delete(then, at(f.now, i))
	}
	for _, e := range then {
		left[e]++
	}
	for i := range h.Storages.Address {
		then[at(h, i)] = byMemory[before.ofStore[i]]
	}
	for i := range groups {
		g := &groups[i]
		if e := byKey[g.key()]; e != nil {
			g.Before, g.Lost, g.aside.tensorsBefore = e.Storage, left[e], e.Tensors
			if len(g.object) == 1 && len(e.object) == 1 {
				then, now := before.keys(e.object[0]), f.g.keys(g.object[0])
				g.Keys = int64(len(then))
				maps.DeleteFunc(then, func(key string, _ bool) bool { return now[key] })
				g.Gone = int64(len(then))
			}
			continue
		}
		bytes := map[*Holder]int64{}
		var most *Holder
		for _, m := range g.rows {
			if e := then[now[m]]; e != nil && e.Standing == Other && e.Kind != Unreached {
				bytes[e] += now[m].bytes
				if most == nil || bytes[e] > bytes[most] {
					most = e
				}
			}
		}
		if most != nil && g.Standing == Other && 2*bytes[most] >= most.Storage.Bytes {
			g.Before, g.Lost, g.Formerly = most.Storage, left[most], &most.Reference
			g.aside.tensorsBefore = most.Tensors
		}
	}
}

// keys are those of a dict under which it has tensors, as far as they can be told apart.
func (g *graph) keys(v int32) map[string]bool {
	out := map[string]bool{}
	for _, tag := range g.links.tags(v) {
		if g.edgeKind(tag) == "key" {
			out[g.label(tag)] = true
		}
	}
	return out
}
