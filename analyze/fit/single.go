package fit

import (
	"math"

	"github.com/snapana/snapana/analyze/category"
)

// guess gives the requests of the only recording laws by what they are for: what a model is and what an optimizer keeps
// is constant, what flows through it goes with the value. Where memory could be either it is bounded by both; and where the
// value is no batch, by its square.
func (m *model) guess(all []term, batch bool) {
	const briefly = 8 // events that scratch memory of a kernel lives at most
	uses := m.categories()
	params := map[int64]int{}  // how many there are by size
	forward := map[int64]int{} // requests of forward passes by size
	for row := range m.Timeline.Lives {
		l := &m.Timeline.Lives[row]
		if use, _ := uses.Of(int32(row)); use == category.Parameter || row < m.bounds[0] && l.Freed < 0 {
			params[l.Requested]++
		}
		if m.phase(l.Stack) == "forward" && row >= m.bounds[0] {
			forward[l.Requested]++
		}
	}
	powers := m.powers()
	// Autocast makes copies of parameters, of half their size: one of each in a step.
	cast := func(n int64) bool {
		return len(m.steps.Steps) > 0 && params[2*n] > 0 && forward[n] <= params[2*n]*m.numSteps()
	}
	type class struct {
		size           int64
		grows, certain bool
		power          uint8 // of the value, at most
	}
	known := map[class]int32{}
	for row := range m.of {
		n := m.Timeline.Lives[row].Requested
		use, trust := uses.Of(int32(row))
		k := class{size: n}
		k.grows, k.certain = flows(use, trust, row < m.warm)
		if k.grows && n%m.At[0] != 0 {
			k.grows, k.certain = !batch, batch
		}
		// What is as large as a parameter, or its copy, may be its gradient.
		switch phase := m.phase(m.Timeline.Lives[row].Stack); {
		case !k.grows:
		case phase == "optimizer":
			k.grows = false
		case cast(n):
			k.grows, k.certain = false, false
		case params[n] > 0 && phase != "forward", params[2*n] > 0:
			k.certain = false
		}
		if l := &m.Timeline.Lives[row]; l.Freed >= 0 && l.Freed-l.Born <= briefly {
			k.certain = false
		}
		if k.power = powers[n]; !batch && k.grows {
			k.power = max(k.power, 2)
		}
		id, ok := known[k]
		if !ok {
			l := constant(n)
			if k.grows {
				l = along(all[1], n, m.At)
			}
			if l.kind = estimated; !k.certain {
				l.low, l.high = constant(n), along(all[1], n, m.At)
			}
			if k.power > 1 {
				l.low, l.high = constant(n), along(term{k.power}, n, m.At)
				if k.certain {
					l.low = along(all[1], n, m.At)
				}
			}
			id = int32(len(m.laws))
			known[k] = id
			m.laws, m.seen = append(m.laws, l), append(m.seen, 1)
		}
		m.of[row] = id
	}
}

// powers are the sizes of what may be made of all pairs or triples of a batch, as scores of its items by each other are, with
// the power of the value by which they may grow: of what the program's own code makes, and of matrices that are about as
// wide as the batch. Such a size may be so by chance: it is only bounded by that.
func (m *model) powers() map[int64]uint8 {
	const several, wide, widest = 16, 32, 8 // items, bytes of a pair, and of a triple
	at := m.At[0]
	out := map[int64]uint8{}
	for row := m.bounds[0]; row < len(m.Timeline.Lives); row++ {
		l := &m.Timeline.Lives[row]
		n, phase := l.Requested, m.phase(l.Stack)
		side := int64(math.Sqrt(float64(n / 4)))
		switch {
		case phase != "" && phase != "forward", at > math.MaxInt32:
		case phase == "" && at >= several && n%at == 0 && n/at%(at*at) == 0 && n/at/(at*at) <= widest:
			out[n] = 3
		case phase == "" && side*side*4 == n && side > at && side%at == 0,
			at >= several && n%(at*at) == 0 && n/(at*at) <= wide:
			out[n] = max(out[n], 2)
		}
	}
	return out
}

// flows reports whether memory for some purpose grows with a batch, and whether that is certain.
func flows(use category.Category, trust category.Confidence, old bool) (grows, certain bool) {
	switch use {
	case category.Parameter, category.OptimizerState, category.Workspace, category.Communication:
		return false, true
	case category.Gradient:
		return trust == category.Low, trust != category.Medium
	case category.AutogradSaved, category.Activation, category.Input, category.KVCache:
		return !old, true
	case category.Temporary:
		return !old, false // scratch memory of a kernel may be for one item of a batch
	}
	return false, true
}
