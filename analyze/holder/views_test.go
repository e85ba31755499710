package holder_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	. "github.com/snapana/snapana/fixtures/sidecartest"
)

// What tensors show of storages: a quarter or less of all, and views are what keeps the rest.
func TestViews(t *testing.T) {
	const kib = 1 << 10
	for _, c := range []struct {
		name string
		make func(g *graphs, storage, list int)
		want *finding.Views
	}{
		{"all of it", func(g *graphs, storage, list int) {
			g.chain(list, "index", "0", g.View(storage, 0))
		}, nil},
		{"little of it", func(g *graphs, storage, list int) {
			g.chain(list, "index", "0", g.Part(storage, kib, 4))
		}, &finding.Views{Storages: 1, Bytes: mib, Shown: kib}},
		{"more than a quarter", func(g *graphs, storage, list int) {
			g.chain(list, "index", "0", g.Part(storage, 300*kib, 4))
		}, nil},
		{"parts that make up half", func(g *graphs, storage, list int) {
			for range 4 {
				g.chain(list, "index", "0", g.Part(storage, 128*kib, 4))
			}
		}, nil},
		{"little, and all by another tensor", func(g *graphs, storage, list int) {
			g.chain(list, "index", "0", g.Part(storage, kib, 4))
			g.chain(g.main(), "local", "all", g.View(storage, 0))
		}, nil},
		{"little, and all as the base of it only", func(g *graphs, storage, list int) {
			view := g.Part(storage, kib, 4)
			g.chain(list, "index", "0", view, "base", "", g.View(storage, 0))
		}, &finding.Views{Storages: 1, Bytes: mib, Shown: kib}},
		{"little, and all as a saved tensor", func(g *graphs, storage, list int) {
			node := g.Node(Node{Kind: "node", Type: "MulBackward0"})
			g.chain(list, "index", "0", g.Part(storage, kib, 4), "grad_fn", "", node, "saved", "_saved_self",
				g.View(storage, 16))
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, blocks := memory(t, 1)
			g := &graphs{blocks: blocks}
			list := g.Node(Node{Kind: "list"})
			g.chain(g.main(), "local", "kept", list)
			storage := g.Storage(blocks[0], mib)
			c.make(g, storage, list)
			r, _ := find(t, s, g.Record(0))
			var got *finding.Views
			for _, h := range r.Holders {
				if h.Views != nil {
					got = h.Views
				}
			}
			switch {
			case got == nil || c.want == nil:
				if got != c.want {
					t.Errorf("got %v, want %v", got, c.want)
				}
			case *got != *c.want:
				t.Errorf("got %v, want %v", *got, *c.want)
			}
		})
	}
}
