package html

import (
	"cmp"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/timeline"
	"github.com/snapana/snapana/snapshot/sorting"
)

// depth bounds how much of a device the page shows.
type depth struct {
	points   int // of the timeline's curve
	stacks   int // rows of a table of stacks
	frames   int // of one stack
	segments int // rows of a segment map
	titled   int // blocks of a segment map that tell their site
	ribbon   int // pieces of the map of all segments, 0 for none
	pins     int
	moments  int // whose stacks and segments are shown, 0 for all
}

var (
	full    = depth{points: 700, stacks: 12, frames: 30, segments: 12, titled: 300, ribbon: 1500, pins: 10}
	medium  = depth{points: 300, stacks: 8, frames: 12, segments: 8, titled: 80, ribbon: 500, pins: 6}
	compact = depth{points: 80, stacks: 4, frames: 5, segments: 5, titled: 12, pins: 3}
	least   = depth{points: 80, stacks: 4, frames: 5, segments: 5, titled: 12, pins: 3, moments: 1}
)

// Bounds on what is not about one device. Texts are cut to runes.
const (
	maxDevices  = 64  // with a section of their own
	maxRows     = 256 // of the table of devices
	maxFindings = 40
	maxSteps    = 20 // sentences of a finding
	maxNotes    = 60
	maxMarks    = 100 // of one kind on a timeline
	maxOOMs     = 8   // rows of the table of OOMs
	longText    = 1000
	frameText   = 240
)

// depths says how deep to go into each of the devices; rank orders them, most telling first.
func depths(rank []int) []depth {
	out := make([]depth, len(rank))
	for place, i := range rank {
		switch {
		case len(rank) <= 2 || place == 0:
			out[i] = full
		case place < 8:
			out[i] = medium
		case place < 12:
			out[i] = compact
		default:
			out[i] = least
		}
	}
	return out
}

// ranking orders the rows of r.Devices: the one that the first finding is about, then those
// that ran out of memory, then by the highest active bytes.
func ranking(r *analyze.Result) []int {
	focus := -1
	if len(r.Verdict.Findings) > 0 {
		focus = r.Verdict.Findings[0].Device
	}
	order := make([]int, len(r.Devices))
	for i := range order {
		order[i] = i
	}
	score := func(t *timeline.Timeline) int {
		switch {
		case t.Device == focus:
			return 2
		case len(t.OOMs) > 0:
			return 1
		}
		return 0
	}
	sorting.Stable(order, func(a, b int) int {
		s, t := r.Devices[a].Timeline, r.Devices[b].Timeline
		return cmp.Or(cmp.Compare(score(t), score(s)), cmp.Compare(t.PeakActive.Bytes, s.PeakActive.Bytes))
	})
	return order
}
