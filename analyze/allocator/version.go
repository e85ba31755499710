package allocator

import "fmt"

// Release is a release of torch: 206 for 2.6, 211 for 2.11. 0 is the newest one.
type Release int

// Newest is the release after all those in which something changed.
const Newest Release = 0

// oneParser is the release since which all devices share one parser of settings.
const oneParser Release = 209

func (r Release) before(o Release) bool { return r != Newest && r < o }

func (r Release) String() string {
	if r == Newest {
		return "newest"
	}
	return fmt.Sprintf("%d.%d", r/100, r%100)
}

// Tie says which of several free blocks of the same size is taken (SPEC.md 5.4).
type Tie uint8

const (
	TieAddress        Tie = iota // the lowest address: up to torch 2.11
	TieCounter                   // the first one made: torch 2.12
	TieCounterPrivate            // that in private pools, else the lowest address: shortly after
	TieSegment                   // of the segment made first, then the lowest address: torch 2.13 and later
)

// Tie gives the order of equal blocks in a release.
func (r Release) Tie() Tie {
	switch {
	case r.before(212):
		return TieAddress
	case r.before(213):
		return TieCounter
	}
	return TieSegment
}
