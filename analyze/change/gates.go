package change

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
)

// gate is a unit that splits what a layer gives in two halves, and multiplies one by an activation function of the other, as GEGLU and
// SwiGLU do. Both are views that do not lie as a tensor of their own does, where they are of the last dimension.
type gate struct {
	halved    int32 // what the layer gives
	activated int32 // what the activation function makes of a half
	product   int32
}

// withProduct is what a backward pass lets go of first, with the product. The other goes with the activation function, which saved its
// result, or what it was given.
func (d *draft) withProduct(g gate) int32 {
	if d.end(g.halved) < d.end(g.activated) {
		return g.halved
	}
	return g.activated
}

// gateAt is the gated unit whose activation function makes a row: what is made last before is twice as large, and both are saved; what is
// made next has its size. An activation function that is seen to be torch's is known by its name; the program's frame is all that others
// leave, which then is that of the product, too.
func (d *draft) gateAt(p *pass, activated int32) (gate, bool) {
	const halves = 2
	g := gate{activated - 1, activated, d.lastingFrom(activated + 1)}
	for g.halved > max(p.rows.from, activated-longNode) && !d.outlasts(g.halved) {
		g.halved--
	}
	if g.halved < p.rows.from || g.product >= p.rows.to || d.sizes[g.halved] != halves*d.sizes[activated] ||
		d.sizes[g.product] != d.sizes[activated] || d.end(g.halved) <= d.t.Lives[g.product].Born {
		return g, false
	}
	own := d.stack(d.code(activated))
	if len(own) == 0 || !d.saved(p, g.halved) || !d.saved(p, activated) {
		return g, false
	}
	if frames.Of(d.s, own[0]).IsLibrary() {
		switch d.name(own[0]) {
		case "gelu", "silu", "mish", "relu", "sigmoid", "tanh":
			return g, true
		}
		return g, false
	}
	other := d.stack(d.code(g.product))
	return g, len(other) == len(own) && d.functions[own[0]] == d.functions[other[0]] && slices.Equal(own[1:], other[1:])
}
