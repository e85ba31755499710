package holder

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// reachable lists what can be reached without going through a node.
func reachable(g *links, root, without int32) []bool {
	seen := make([]bool, g.nodes())
	if root == without {
		return seen
	}
	seen[root] = true
	for todo := []int32{root}; len(todo) > 0; {
		v := todo[0]
		todo = todo[1:]
		for _, w := range g.of(v) {
			if w != without && !seen[w] {
				seen[w] = true
				todo = append(todo, w)
			}
		}
	}
	return seen
}

// A node dominates what cannot be reached without it, by definition.
func TestDominatorsByDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for try := range 400 {
		n := 2 + rng.IntN(24)
		b := linker{}
		for range rng.IntN(3 * n) {
			b.add(int32(rng.IntN(n)), int32(rng.IntN(n)), 0)
		}
		g := b.links(n)
		tree := dominators(g, 0)
		weight := make([]int64, n)
		for i := range weight {
			weight[i] = int64(rng.IntN(100))
		}
		sums, all := tree.sums(weight), reachable(g, 0, -1)
		for a := range int32(n) {
			if all[a] != (tree.number[a] >= 0) {
				t.Fatalf("graph %d: node %d reachable: %v", try, a, all[a])
			}
			if !all[a] {
				continue
			}
			left, want := reachable(g, 0, a), int64(0)
			for v := range int32(n) {
				if !all[v] {
					continue
				}
				if gone := !left[v]; gone != tree.over(a, v) {
					t.Fatalf("graph %d: without %d node %d goes: %v", try, a, v, gone)
				} else if gone {
					want += weight[v]
				}
			}
			if sums[a] != want {
				t.Fatalf("graph %d: node %d frees %d, want %d", try, a, sums[a], want)
			}
		}
	}
}

func BenchmarkDominators(b *testing.B) {
	for _, shape := range []string{"random", "chain"} {
		b.Run(shape, func(b *testing.B) {
			const n = 100_000
			rng := rand.New(rand.NewPCG(1, 2))
			l := linker{}
			for v := 1; v < n; v++ {
				switch shape {
				case "random":
					l.add(int32(rng.IntN(v)), int32(v), 0)
					l.add(int32(rng.IntN(n)), int32(v), 0)
				default:
					l.add(int32(v-1), int32(v), 0)
					l.add(int32(v), int32(v/2), 0)
				}
			}
			g := l.links(n)
			b.ReportMetric(float64(len(g.to)), "edges")
			for b.Loop() {
				if tree := dominators(g, 0); len(tree.node) != n {
					b.Fatal(fmt.Sprint(len(tree.node), " nodes reached"))
				}
			}
		})
	}
}
