package verdict

import (
	"slices"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot"
)

// Blind says why loops, and what they keep, cannot be found: no stack has a frame of Python. It is empty where one has.
func Blind(s *snapshot.Snapshot) string {
	for id := range s.Frames.Len() {
		if frames.Of(s, snapshot.FrameID(id+1)).Has(frames.Python) {
			return ""
		}
	}
	if s.HasStacks {
		return "the stacks are C++ only"
	}
	return "no stacks were recorded"
}

// Unseen says why a snapshot cannot show what loops keep, nil for none. Traced says that it has a trace of some device.
// It is empty where growth is seen if there is any.
func Unseen(s *snapshot.Snapshot, traced bool) string {
	switch {
	case s == nil || !traced:
		return "there is no event history and no recorder file"
	case s.Partial != nil:
		return "only a part of the file could be read"
	}
	return Blind(s)
}

// climbs reports whether memory in use goes up through the trace and does not come back: the lowest of each part is
// above that of the part before. The first of the parts is taken to be the warm-up.
func climbs(t *timeline.Timeline) bool {
	const parts = 5
	levels, n := t.ActiveLevels(), t.Trace.Len()+1 // with that before the trace
	if n < 4*parts {
		return false
	}
	var lows []int64
	for i := range parts {
		lows = append(lows, levels.Lowest(i*n/parts-1, (i+1)*n/parts-2))
	}
	lows = lows[1:]
	return slices.IsSorted(lows) && lows[len(lows)-1]-lows[0] > t.PeakActive.Bytes/50
}
