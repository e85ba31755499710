package whatif

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Load makes the program of a timeline and validates it. Where the file does not tell the
// release that wrote it well enough, the order of equal blocks that agrees best is taken.
func Load(s *snapshot.Snapshot, t *timeline.Timeline) (*Program, *Validation) {
	p := NewProgram(s, t)
	best := p.Validate(s)
	if best.First == nil || p.Recorded.Release != allocator.Newest && p.Recorded.Release < 212 {
		return p, best
	}
	first := p.Recorded.Tie
	for _, tie := range []allocator.Tie{allocator.TieAddress, allocator.TieCounter, allocator.TieCounterPrivate, allocator.TieSegment} {
		if tie == first {
			continue
		}
		other := *p
		other.Recorded.Tie = tie
		if v := other.Validate(s); v.SameAllocs > best.SameAllocs {
			p, best = &other, v
		}
	}
	return p, best
}
