package holder

import (
	"cmp"
	"slices"

	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/snapshot"
)

// Share is a growth, or the part of one that a holder has.
type Share struct {
	*ghost.Growth
	// Holder is who keeps it: a ghost, or a container that is not full yet. It is nil where none
	// was seen.
	Holder *Holder
	// Acquitted says of a growth without a holder that all of its memory was seen, and what holds
	// it does not grow.
	Acquitted bool
}

// Of divides a growth among those that hold it: one share for each that has most of the memory
// of some of its stacks. A nil Result has seen nothing.
func (r *Result) Of(g *ghost.Growth) []Share {
	if r == nil {
		return []Share{{Growth: g}}
	}
	var keep []*Holder
	steady := false
	for i := range r.Holders {
		switch h := &r.Holders[i]; {
		case h.growth != g:
		case h.Standing == Ghost || h.Filling():
			keep = append(keep, h)
		case h.Steady:
			steady = true
		}
	}
	if len(keep) == 0 {
		for i := range r.Unproven {
			steady = steady && r.Unproven[i].Growth != g
		}
		return []Share{{Growth: g, Acquitted: steady}}
	}
	slices.SortStableFunc(keep, func(a, b *Holder) int { return cmp.Compare(b.Grown, a.Grown) })
	of := map[*Holder]map[snapshot.StackID]bool{}
	for _, stack := range g.Stacks {
		h := most(keep, stack)
		if of[h] == nil {
			of[h] = map[snapshot.StackID]bool{}
		}
		of[h][stack] = true
	}
	var out []Share
	for _, h := range keep {
		switch part := g.Part(of[h]); {
		case len(of[h]) == len(g.Stacks):
			return []Share{{Growth: g, Holder: h}}
		case part != nil:
			out = append(out, Share{Growth: part, Holder: h})
		}
	}
	return out
}

// most is the holder with most memory of a stack, the first where none has any.
func most(holders []*Holder, stack snapshot.StackID) *Holder {
	best, bytes := holders[0], int64(0)
	for _, h := range holders {
		for _, s := range h.Sites {
			if s.Stack == stack && s.Bytes > bytes {
				best, bytes = h, s.Bytes
			}
		}
	}
	return best
}
