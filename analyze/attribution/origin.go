package attribution

import "github.com/snapana/snapana/snapshot"

// Origin is where the code of a frame comes from, in rising order of interest.
type Origin = origin

const (
	Plumbing = plumbing // interpreter, dispatcher, module call wrappers
	Core     = core     // C++ that every operator and every backward pass runs through
	Native   = native   // other C++
	Library  = library  // torch and the standard library
	Other    = other    // another installed package
	User     = user
)

// OriginOf says where the code of a frame comes from, as far as its path tells.
func OriginOf(s *snapshot.Snapshot, id snapshot.FrameID) Origin {
	return originOf(s, s.Frames.Get(id))
}
