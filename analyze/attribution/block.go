package attribution

import (
	"fmt"

	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/analyze/units"
)

// Block is one allocation, as every listing identifies it.
type Block struct {
	Name       timeline.Name `json:"name"`       // as memory_viz names it: b7f064c00000_2
	Address    string        `json:"address"`    // hexadecimal
	Generation int32         `json:"generation"` // blocks of the file that lived at this address before
	Stream     string        `json:"stream"`     // "0", "1", in order of first appearance; empty when unknown
	Pool       string        `json:"pool"`       // empty when unknown
	Segment    string        `json:"segment"`    // address of its segment, hexadecimal; empty for none
	Rounded    int64         `json:"bytes"`      // taken in the segment
	Requested  int64         `json:"requested"`  // bytes asked for
	Born       int           `json:"born"`       // event, -1 before the trace
}

// Blocks identifies lives by row, with the ranges that they live in, which may have no size.
func Blocks(t *timeline.Timeline, rows []int32, homes []timeline.Range) []Block {
	out := make([]Block, len(rows))
	names := t.Names(rows)
	for i, row := range rows {
		l := &t.Lives[row]
		b := Block{Name: names[i], Address: Hex(l.Addr), Generation: names[i].Generation, Rounded: l.Rounded,
			Requested: l.Requested, Born: int(l.Born)}
		if r := &homes[i]; r.Size > 0 {
			at := HomeOf(r)
			b.Stream, b.Pool, b.Segment = at.Stream, at.Pool, at.Segment
		}
		out[i] = b
	}
	return out
}

// HomeOf is what a range gives to its blocks: stream, pool and segment.
func HomeOf(r *timeline.Range) Block {
	return Block{Stream: fmt.Sprint(int32(r.Stream)), Pool: r.Pool.String(), Segment: Hex(r.Addr)}
}

// Hex is an address for people and programs.
func Hex(addr uint64) string { return fmt.Sprintf("0x%x", addr) }

// Place says which block it is and where it lies.
func (b *Block) Place() string {
	if b.Segment == "" {
		return b.Name.String() + ", in no known segment"
	}
	return b.Name.String() + ", stream " + b.Stream + ", " + b.Pool
}

// Where is Place and since when it lives, where the file has a trace that can tell.
func (b *Block) Where(traced bool) string {
	switch {
	case !traced:
		return b.Place()
	case b.Born < 0:
		return b.Place() + ", from before the trace"
	}
	return b.Place() + ", since event " + units.Count(b.Born)
}
