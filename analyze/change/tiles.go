package change

import "strings"

// trl's trainers give the hidden states of a model to a function that multiplies them by the weight of its head itself,
// a tile of the vocabulary at once, and again in backward (trl/kernels/chunked_logprob.py: ChunkedLogProbFunction). Tiles
// have the type of torch.autocast, or else that of the hidden states, and so have copies of these and of the head. What is
// computed of a tile has 32 bits: where Triton does not do that, torch makes a copy of the tile first.

// tiled is a call of that function, forward or backward.
type tiled struct {
	rows     span
	back     bool
	tile     int32   // row
	copies   []int32 // of what products are given
	products []int32 // workspaces of those that fill the tile
	folded   []int32 // the first rows that are made of the tile, one for each time that it is filled; none where Triton does that
}

// castTiles has rows of that function in a pass have the types that it says, where what it is given, or torch.autocast,
// has 16 bits now. It gives those of 16, and notes those of 32; where it is given 32, it copies what it multiplies.
func (d *draft) castTiles(p *pass, wide map[int32]bool, copies bool) (narrow []int32) {
	const most, element = 4096, 4 // tokens of a tile (TOKEN_CHUNK_SIZE), and bytes
	calls := d.tiledCalls(p, false)
	var tokens, width int64
	// The first row of forward has a number for each token, that of backward is the gradient of the hidden states.
	for _, c := range calls {
		if n := d.sizes[c.rows.from] / element; !c.back {
			tokens = n
		} else if c.rows.from < c.tile && tokens > 0 {
			width = n / tokens
		}
	}
	rows := min(tokens, most)
	for _, c := range calls {
		for row := c.rows.from; row < c.rows.to; row++ {
			if row != c.tile {
				wide[row] = true
			}
		}
		narrow = append(narrow, c.tile)
		for _, row := range c.folded {
			d.add(row, d.t.Lives[row].Born, d.t.Lives[row].Born)
		}
		if !copies || width == 0 || rows == 0 {
			continue
		}
		over := d.end(c.tile)
		d.add(c.tile, d.t.Lives[c.products[0]].Born, over).bytes = element / 2 * width * rows
		for k, row := range c.products {
			like, gone := c.tile, d.end(row)
			if k < len(c.folded) {
				like = c.folded[k]
			}
			if c.back {
				gone = over // a variable has it
				if k+1 < len(c.products) {
					gone = d.t.Lives[c.products[k+1]].Born
				}
			}
			d.add(like, d.t.Lives[row].Born, gone).bytes = d.sizes[like] / rows * width / 2
		}
	}
	return narrow
}

// tiledCalls are the calls of that function in a pass, which copy what products are given, or not.
func (d *draft) tiledCalls(p *pass, copied bool) (out []tiled) {
	const both = 2 // hidden states, and the head
	c, own, last := tiled{}, []int32(nil), int32(-1)
	over := func() {
		if len(c.products) > 0 {
			out = append(out, c)
		}
		own = nil
	}
	for row := p.rows.from; row < p.rows.to; row++ {
		stack := d.stack(d.code(row))
		if len(stack) == 0 || !strings.HasPrefix(d.file(stack[0]), "trl/kernels/chunked_logprob") {
			continue
		}
		if back := d.phase(row) == inBackward; last < 0 || row > last+1 || back != c.back {
			over()
			c = tiled{back: back, rows: span{from: row}}
		}
		last, c.rows.to = row, row+1
		name, works := d.name(stack[0]), d.scratch(row) || d.worksIn(row)
		itself := name == "forward" || name == "backward"
		switch {
		case itself && !works:
			own = append(own, row)
		case itself && len(c.products) > 0:
			c.copies, c.products, own = append(c.copies, own...), append(c.products, row), nil
		case itself && !copied && len(own) > 0:
			c.tile, c.products, own = own[len(own)-1], []int32{row}, nil
		case itself && len(own) > both:
			at := len(own) - both
			c.tile, c.copies, c.products, own = own[at-1], own[at:], []int32{row}, nil
		case strings.HasSuffix(name, "_tile") || strings.HasSuffix(name, "_transform"):
			if len(c.folded) < len(c.products) && !works {
				c.folded = append(c.folded, row)
			}
		}
	}
	over()
	return out
}
