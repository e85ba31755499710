package holder

// Bound is the container of a holder's memory, where it can have only so many entries.
type Bound struct {
	Length int64 `json:"length"` // entries in the dump
	Limit  int64 `json:"limit"`  // entries at most
	// Hint is the attribute that the limit was read from, "" for a limit that the container keeps
	// to itself. Whether the attribute bounds it is not known: it may.
	Hint string `json:"hint"`
	// Full is what it will take when it is full, in rounded bytes, at what an entry takes now.
	Full int64 `json:"full"`
}

// Filling reports whether memory behind a holder grows because a container is not full yet.
// Autograd graphs are not meant to be kept, whatever the container is.
func (h *Holder) Filling() bool {
	return h.Bound != nil && h.Bound.Length < h.Bound.Limit && !h.throughGraph()
}

// throughGraph reports whether most of the memory is reached through autograd graphs.
func (h *Holder) throughGraph() bool { return 2*h.Graph > h.Bytes }

// bounded finds the outermost container with a bound on a chain, from the reference on that
// names the holder; -1 for none.
func (g *graph) bounded(chain []hop, at int) int32 {
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
		b.Full = h.Bytes * b.Limit / b.Length
		h.Bound = &b
	}
}

// readBounds gives the bounds by node.
func (g *graph) readBounds() {
	g.bounds = map[int32]Bound{}
	b := &g.h.Bounds
	for i, v := range b.Node {
		g.bounds[int32(v)] = Bound{Length: b.Length[i], Limit: b.Limit[i], Hint: g.text(b.Hint[i])}
	}
}
