package holder

import (
	"maps"

	"github.com/snapana/snapana/snapshot/sidecar"
)

// compare says what the holders had in the earlier dump.
func (f *finder) compare(groups []Holder) {
	h := f.in.Before
	mem, ofStore, _ := join(nil, h)
	before := newGraph(h, mem, ofStore)
	earlier := before.group()
	byKey, byMemory := map[string]*Holder{}, make([]*Holder, len(mem))
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
	for i := range h.Storages.Len() {
		then[at(h, i)] = byMemory[ofStore[i]]
	}
	now := make([]storage, len(f.g.memory))
	for i, m := range f.g.ofStore {
		now[m] = at(f.in.Holders, i)
	}
	for i := range groups {
		g := &groups[i]
		if e := byKey[g.key()]; e != nil {
			g.Before = e.Storage
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
			g.Before, g.Formerly = most.Storage, &most.Reference
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
