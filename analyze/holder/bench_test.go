package holder_test

import (
	"bytes"
	"testing"

	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	. "github.com/snapana/snapana/fixtures/sidecartest"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// A hundred thousand objects: a list of losses, each with a deep graph that keeps activations.
func BenchmarkFind(b *testing.B) {
	const losses, depth = 20, 2500
	var blocks []uint64
	s := buildtest.Read(b, build.Run(build.Options{}, func(d *build.Device) {
		for range losses * depth {
			blocks = append(blocks, d.Alloc(512).Addr())
		}
	}))
	var g Graph
	list := g.Node(Node{Kind: "list"})
	g.Edge(g.Node(Node{Kind: "frame", Name: "main", Root: "frame"}), list, "local", "losses")
	for i := range losses {
		from, kind := g.Tensor(1, 0, 1), "grad_fn"
		g.Edge(list, from, "index", "0")
		for k := range depth {
			node := g.Node(Node{Kind: "node", Type: "AddBackward0"})
			g.Edge(from, node, kind, "0")
			g.Edge(node, g.Tensor(blocks[i*depth+k], 512, 16), "saved", "_saved_self")
			from, kind = node, "next"
		}
	}
	data := Stream(Header(), g.Record(0))
	b.SetBytes(int64(len(data)))
	lines := []holder.Line{{Timeline: timeline.Build(s, 0)}}
	for b.Loop() {
		f, err := sidecar.Read(b.Context(), bytes.NewReader(data), "run.snapana", sidecar.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if r, _ := holder.Choose(s, lines, f, nil); r.Holders[0].Frees != losses*depth*512 {
			b.Fatal(r.Holders[0].Frees)
		}
	}
}
