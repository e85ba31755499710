package holder

import "github.com/snapana/snapana/snapshot/sidecar"

// mostOptimizers is how many optimizers may have state for one parameter: that of a schedule's last phase beside that of
// this one, for instance.
const mostOptimizers = 2

// optimizers finds what optimizers keep that is of no use: parameters that nothing else refers to, as those of a head that
// was replaced while its parameter group stayed, and state for parameters of which newer optimizers have state, too. Of
// parameters in half precision it may have the only copies in full precision, which it trains in their place.
func (f *finder) optimizers(groups []Holder) {
	g := f.g
	of := map[int32]map[int32]bool{} // by parameter, the optimizers that have state for it
	for e, kind := range g.h.Edges.Kind {
		if g.h.String(kind) != "dictkey" {
			continue
		}
		state, parameter := int32(g.h.Edges.From[e]), int32(g.h.Edges.To[e])
		for i := g.into.first[state]; i < g.into.first[state+1]; i++ {
			if v := g.into.to[i]; g.label(g.into.tag[i]) == "state" && g.optimizer(v) {
				if of[parameter] == nil {
					of[parameter] = map[int32]bool{}
				}
				of[parameter][v] = true
			}
		}
	}
	again := map[int32]bool{}
	for _, optimizers := range of {
		if len(optimizers) > mostOptimizers {
			for v := range optimizers {
				again[v] = true
			}
		}
	}
	halves := map[sidecar.StringID]bool{} // shapes of parameters in half precision
	for i, shape := range g.h.Tensors.Shape {
		dtype := g.h.String(g.h.Tensors.DType[i])
		if g.h.Tensors.Flags[i]&sidecar.Parameter != 0 && (dtype == "float16" || dtype == "bfloat16") {
			halves[shape] = true
		}
	}
	ofMemory := make([]bool, len(g.memory)) // that a parameter has
	for i, v := range g.h.Tensors.Node {
		copied := g.h.String(g.h.Tensors.DType[i]) == "float32" && halves[g.h.Tensors.Shape[i]]
		if g.h.Tensors.Flags[i]&sidecar.Parameter != 0 && int(v) < g.objects && !copied {
			ofMemory[g.ofStore[g.h.Tensors.Storage[i]]] = true
		}
	}
	for i := range groups {
		h := &groups[i]
		if h.Standing != Optimizer {
			continue
		}
		seen := map[int32]bool{}
		for _, row := range h.rows {
			memory := g.memoryNode(row)
			for _, hop := range g.chain(memory) {
				if label := g.label(hop.tag); g.edgeKind(hop.tag) != "attr" || label != "param_groups" && label != "state" {
					continue
				}
				if again[hop.from] {
					seen[hop.from] = true
				}
				if ofMemory[row] && f.tree.over(hop.from, memory) {
					h.Orphans++
				}
			}
		}
		h.Optimizers = int64(len(seen))
	}
}
