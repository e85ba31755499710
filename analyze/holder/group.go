package holder

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/units"
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
	outer := g.outer()
	for i := range g.memory {
		m := &g.memory[i]
		chain := g.chain(g.memoryNode(int32(i)))
		n := g.nameChain(chain)
		if _, in := g.inside(chain, &n); in > 0 && outer[chain[in].from] {
			n = g.nameChain(chain[:in+1])
		}
		h := Holder{Reference: n.ref, Standing: n.standing}
		key := h.key()
		k, ok := byKey[key]
		if !ok {
			k = len(out)
			byKey[key] = k
			h.Hops = g.words(chain)
			h.Chain = strings.Join(h.Hops, " > ")
			h.bounded, h.host, h.hooks = map[int32]int64{}, tally[string]{}, map[hooked]map[int32]bool{}
			out = append(out, h)
		}
		have := &out[k]
		have.rows = append(have.rows, int32(i))
		have.Storage.Count, have.Storage.Bytes = have.Storage.Count+m.count, have.Storage.Bytes+m.storage
		if m.device == Host && m.kind != "" {
			have.host.add(m.kind, m.storage)
		}
		have.pinned(m)
		if m.row >= 0 {
			have.Count, have.Bytes = have.Count+m.count, have.Bytes+m.bytes
			have.Blocks = append(have.Blocks, Block{m.device, m.row})
			if !slices.Contains(have.Devices, m.device) {
				have.Devices = append(have.Devices, m.device)
			}
		}
		if len(chain) == 0 {
			continue
		}
		if v := g.boundOn(chain, n.at); v >= 0 && m.row >= 0 {
			have.bounded[v] += m.bytes
		}
		if a := (at{int32(k), chain[n.at].to}); !objects[a] {
			objects[a] = true
			have.object = append(have.object, a.node)
			have.Objects++
		}
		// The tensor that is held: the one that the graph starts from, or the last.
		held, through := chain[len(chain)-1].from, false
		if m.row >= 0 && slices.ContainsFunc(chain, func(h hop) bool { return g.typeName(h.to) == logRecord }) {
			have.logged += m.bytes
		}
		for i, hop := range chain {
			switch kind := g.edgeKind(hop.tag); {
			case !through && i >= n.at && (kind == "grad_fn" || kind == "next"):
				held, through = hop.from, true
			}
		}
		if through && m.row >= 0 {
			have.Graph += m.bytes
		}
		if function, node := g.hookOn(chain[:n.at]); node >= 0 {
			if have.hooks[function] == nil {
				have.hooks[function] = map[int32]bool{}
			}
			have.hooks[function][node] = true
			have.Hooks = max(have.Hooks, int64(len(have.hooks[function])))
		}
		have.aside.look(g, chain, &n, int32(i), m.row >= 0 && !through)
		if a := (at{int32(k), held}); !tensors[a] {
			tensors[a] = true
			have.Tensors++
		}
	}
	for i := range out {
		for _, kind := range out[i].host.keys() {
			out[i].Host = append(out[i].Host, Use{kind, out[i].host[kind]})
		}
		g.bound(&out[i])
		out[i].Logged = 2*out[i].logged > out[i].Bytes
		out[i].aside.settle()
		out[i].Ordered = len(out[i].object) == 1 && g.kind(out[i].object[0]) == "dict" &&
			g.typeName(out[i].object[0]) == "collections.OrderedDict"
	}
	return out
}

// inside is the name of an attribute or of a generator's variable, and the hop by which the object that has it, or one
// that leads there, is an element of a container; 0 for none.
func (g *graph) inside(chain []hop, n *named) (name string, in int) {
	if n.ref.Kind != Attribute && n.ref.Kind != Generator || n.standing != Other {
		return "", 0
	}
	for in = n.at - 1; in > 0; in-- {
		switch {
		case g.element(chain, in):
			return g.label(chain[n.at].tag), in
		case g.edgeKind(chain[in].tag) != "attr" || g.kind(chain[in].from) != "object":
			return "", 0
		}
	}
	return "", 0
}

// outer are the containers that have many objects of one kind, each with memory of its own behind an attribute or a
// variable of that name: what there are more of is the container's entries.
func (g *graph) outer() map[int32]bool {
	type place struct {
		container int32
		name      string
	}
	type many struct {
		elements map[int32]bool
		memory   int
	}
	found := map[place]*many{}
	for i := range g.memory {
		chain := g.chain(g.memoryNode(int32(i)))
		n := g.nameChain(chain)
		name, in := g.inside(chain, &n)
		if in == 0 {
			continue
		}
		p := place{chain[in].from, name}
		if found[p] == nil {
			found[p] = &many{elements: map[int32]bool{}}
		}
		found[p].elements[chain[in].to] = true
		found[p].memory++
	}
	out := map[int32]bool{}
	for p, m := range found {
		if n := len(m.elements); n >= ghost.MinLaps && n >= m.memory/n {
			out[p.container] = true
		}
	}
	return out
}

// hooked is a function that is registered as a hook, in a registry.
type hooked struct {
	registry int32
	function string // with its place
}

// hookOn is the hook that a chain runs through: what is registered, and the node of this one; -1 for none.
func (g *graph) hookOn(chain []hop) (hooked, int32) {
	for i := 0; i+1 < len(chain); i++ {
		if hook := chain[i+1].to; g.edgeKind(chain[i].tag) == "hook" {
			return hooked{chain[i].to, placed(cmp.Or(g.name(hook), g.typeName(hook)), g.file(hook), g.line(hook))}, hook
		}
	}
	return hooked{}, -1
}

// logRecord is the class of what Python's logging hands to its handlers: it has the arguments of the call.
const logRecord = "logging.LogRecord"

// Filling reports whether memory behind a holder grows because a container is not full yet, or was not until a short
// time ago: full, by what the program's text says of it, and with entries that have not grown themselves.
// Autograd graphs are not meant to be kept, whatever the container is, nor are the arguments of log messages.
func (h *Holder) Filling() bool {
	b := h.Bound
	return b != nil && !h.throughGraph() && !h.Logged &&
		(b.Length < b.Limit || b.Length == b.Limit && b.Seen != "" && h.Count <= mostOfEntry*b.Length)
}

// mostOfEntry is how many blocks an entry of a full container has at most: one that keeps growing has more.
const mostOfEntry = 4

func (h *Holder) throughGraph() bool { return 2*h.Graph > h.Bytes }

// boundOn finds the outermost container with a bound on a chain, from the reference on that
// names the holder; -1 for none.
func (g *graph) boundOn(chain []hop, at int) int32 {
	for _, h := range chain[at:] {
		for _, v := range []int32{h.from, h.to} {
			if _, ok := g.bounds[v]; ok && (v == h.to || g.kind(v) == "lru_cache") {
				return v
			}
		}
	}
	return -1
}

// bound gives a holder the bound of the one container that has nearly all of its memory. Of many
// containers each may be bounded, and nothing says how many there will be.
func (g *graph) bound(h *Holder) {
	if len(h.bounded) != 1 {
		return
	}
	for v, bytes := range h.bounded {
		b := g.bounds[v]
		if 10*bytes < 9*h.Bytes || b.Length <= 0 || b.Limit < b.Length || h.Bytes > (1<<62)/b.Limit {
			return
		}
		b.Full = units.Size(h.Bytes * b.Limit / b.Length)
		h.Bound = &b
	}
}
