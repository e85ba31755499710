package holder

import (
	"fmt"
	"slices"
	"strings"
)

// key tells holders apart. Where a name has no numbers in it, equal ones are one holder.
func (h *Holder) key() string {
	r := h.Reference
	switch r.Kind {
	case Traceback:
		r.Frame, r.Line = "", 0 // a traceback has many
	case Local, Generator:
		r.Line = 0 // where the function is now
	}
	return fmt.Sprintf("%s %v", h.Standing, r)
}

// group gathers the memory by the names of what holds it.
func (g *graph) group() []Holder {
	var out []Holder
	byKey := map[string]int{}
	type at struct{ holder, node int32 }
	objects, tensors := map[at]bool{}, map[at]bool{}
	for i := range g.memory {
		m := &g.memory[i]
		chain := g.chain(g.memoryNode(int32(i)))
		n := named{ref: Reference{Kind: Unreached}, standing: Other}
		if len(chain) > 0 {
			n = g.nameChain(chain)
		}
		h := Holder{Reference: n.ref, Standing: n.standing, back: n.back}
		key := h.key()
		k, ok := byKey[key]
		if !ok {
			k = len(out)
			byKey[key] = k
			h.Hops = g.words(chain)
			h.Chain = strings.Join(h.Hops, " > ")
			out = append(out, h)
		}
		have := &out[k]
		have.rows = append(have.rows, int32(i))
		have.Storage.add(m.storage)
		if m.row >= 0 {
			have.Count, have.Bytes = have.Count+1, have.Bytes+m.bytes
			have.Blocks = append(have.Blocks, Block{m.device, m.row})
			if !slices.Contains(have.Devices, m.device) {
				have.Devices = append(have.Devices, m.device)
			}
		}
		if len(chain) == 0 {
			continue
		}
		if v := g.bounded(chain, n.at); v >= 0 && m.row >= 0 {
			if have.bounded == nil {
				have.bounded = map[int32]int64{}
			}
			have.bounded[v] += m.bytes
		}
		if a := (at{int32(k), chain[n.at].to}); !objects[a] {
			objects[a] = true
			have.object = append(have.object, a.node)
			have.Objects++
		}
		// The tensor that is held: the one that the graph starts from, or the last.
		held := chain[len(chain)-1].from
		through := false
		for _, hop := range chain[n.at:] {
			switch g.edgeKind(hop.tag) {
			case "hook":
				have.hooked = true
			case "grad_fn", "next":
				if !through {
					held = hop.from
				}
				through = true
			}
		}
		for _, hop := range chain[:n.at] {
			have.hooked = have.hooked || g.edgeKind(hop.tag) == "hook"
		}
		if through && m.row >= 0 {
			have.Graph += m.bytes
		}
		if a := (at{int32(k), held}); !tensors[a] {
			tensors[a] = true
			have.Tensors++
		}
	}
	for i := range out {
		g.bound(&out[i])
		out[i].Ordered = len(out[i].object) == 1 && g.kind(out[i].object[0]) == "dict" && g.typeName(out[i].object[0]) == "collections.OrderedDict"
	}
	return out
}
