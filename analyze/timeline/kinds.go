package timeline

import (
	"encoding/json"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Kinds is a set of kinds of events: bit n is snapshot.Action(n).
type Kinds uint32

const (
	alloc         = Kinds(1) << snapshot.Alloc
	freeRequested = Kinds(1) << snapshot.FreeRequested
	freeCompleted = Kinds(1) << snapshot.FreeCompleted
	segmentAlloc  = Kinds(1) << snapshot.SegmentAlloc
	segmentFree   = Kinds(1) << snapshot.SegmentFree
	segmentMap    = Kinds(1) << snapshot.SegmentMap
	segmentUnmap  = Kinds(1) << snapshot.SegmentUnmap

	// Frees are the two kinds of events that end an allocation.
	Frees = freeRequested | freeCompleted
	// Allocs begin one.
	Allocs = alloc
	// Failures are the requests that failed.
	Failures = Kinds(1) << snapshot.OOM

	frees        = Frees
	plain        = segmentAlloc | segmentFree
	mapped       = segmentMap | segmentUnmap
	segmentKinds = plain | mapped
)

// Has reports whether any of the kinds is in the set.
func (k Kinds) Has(any Kinds) bool { return k&any != 0 }

// All reports whether all of the kinds are in the set.
func (k Kinds) All(of Kinds) bool { return k&of == of }

// Names are the actions as torch spells them.
func (k Kinds) Names() []string {
	out := []string{}
	for a := range snapshot.NumActions {
		if k&(1<<a) != 0 {
			out = append(out, a.String())
		}
	}
	return out
}

// String lists the actions in a sentence.
func (k Kinds) String() string { return units.List(k.Names()) }

// MarshalJSON writes Names.
func (k Kinds) MarshalJSON() ([]byte, error) { return json.Marshal(k.Names()) }
