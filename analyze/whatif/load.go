package whatif

import (
	"context"

	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Load makes the program of a timeline and validates it. Where the file does not tell the
// release that wrote it well enough, the order of equal blocks that agrees best is taken.
// It fails only when ctx ends.
func Load(ctx context.Context, s *snapshot.Snapshot, t *timeline.Timeline) (*Program, *Validation, error) {
	p := NewProgram(s, t)
	best, err := p.Validate(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if best.First == nil || p.Recorded.Release != allocator.Newest && p.Recorded.Release < 212 {
		return p, best, nil
	}
	first := p.Recorded.Tie
	for _, tie := range []allocator.Tie{allocator.TieAddress, allocator.TieCounter, allocator.TieCounterPrivate, allocator.TieSegment} {
		if tie == first {
			continue
		}
		other := *p
		other.Recorded.Tie = tie
		v, err := other.Validate(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		if v.SameAllocs > best.SameAllocs {
			p, best = &other, v
		}
	}
	return p, best, nil
}
