package sidecar

import "fmt"

// check holds the tables against each other, and fills the columns that may be left out. It says
// what is wrong.
func (h *Holders) check(*cursor) string {
	if len(h.Strings) > 0 && h.Strings[0] != "" {
		return fmt.Sprintf("strings[0] is %.40q, not empty", h.Strings[0])
	}
	s, t, n, e, b := &h.Storages, &h.Tensors, &h.Nodes, &h.Edges, &h.Bounds
	checks := []string{
		length("storages.device", len(s.Device), s.Len()),
		length("storages.bytes", len(s.Bytes), s.Len()),
		length("tensors.storage", len(t.Storage), t.Len()),
		length("edges.to", len(e.To), e.Len()),
		length("edges.kind", len(e.Kind), e.Len()),
		optional("tensors.flags", &t.Flags, t.Len()),
		optional("tensors.offset", &t.Offset, t.Len()),
		optional("nodes.line", &n.Line, n.Len()),
		optional("nodes.cycle", &n.Cycle, n.Len()),
		length("bounds.length", len(b.Length), b.Len()),
		length("bounds.limit", len(b.Limit), b.Len()),
		below("bounds.node", b.Node, n.Len()),
		below("tensors.node", t.Node, n.Len()),
		below("tensors.storage", t.Storage, s.Len()),
		below("edges.from", e.From, n.Len()),
		below("edges.to", e.To, n.Len()),
		below("nodes.kind", n.Kind, max(1, len(h.Strings))),
		below("edges.kind", e.Kind, max(1, len(h.Strings))),
	}
	for _, c := range []struct {
		name string
		col  *[]StringID
		rows int
	}{
		{"tensors.shape", &t.Shape, t.Len()}, {"tensors.dtype", &t.DType, t.Len()},
		{"nodes.type", &n.Type, n.Len()}, {"nodes.name", &n.Name, n.Len()},
		{"nodes.file", &n.File, n.Len()}, {"nodes.root", &n.Root, n.Len()},
		{"edges.label", &e.Label, e.Len()}, {"bounds.hint", &b.Hint, b.Len()},
	} {
		checks = append(checks, optional(c.name, c.col, c.rows), below(c.name, *c.col, max(1, len(h.Strings))))
	}
	for _, msg := range checks {
		if msg != "" {
			return msg
		}
	}
	return ""
}

func length(name string, have, want int) string {
	if have == want {
		return ""
	}
	return fmt.Sprintf("%s has %d entries, the table has %d", name, have, want)
}

// optional gives a column that was left out its zeros.
func optional[T any](name string, col *[]T, rows int) string {
	if *col == nil {
		*col = make([]T, rows)
	}
	return length(name, len(*col), rows)
}

func below[T ~uint32](name string, col []T, n int) string {
	for i, v := range col {
		if int64(v) >= int64(n) {
			return fmt.Sprintf("%s[%d] is %d, of %d", name, i, v, n)
		}
	}
	return ""
}
