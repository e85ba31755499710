package verdict

import (
	"fmt"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ghost"
	"github.com/snapana/snapana/analyze/holder"
	"github.com/snapana/snapana/analyze/units"
)

// prove puts what the recorder saw in the process into a finding on a growth: who holds the
// memory and how to let it go, or that it is no ghost.
func prove(f *finding.Finding, s *holder.Share) {
	h, g := s.Holder, s.Growth
	switch {
	case h != nil:
		frees := "."
		if h.Frees > 0 {
			frees = fmt.Sprintf("; letting go of it frees %s.", units.Bytes(h.Frees))
		}
		why := []string{fmt.Sprintf("Seen in the process: %s keeps %s%s", h.Reference.String(), units.Bytes(h.Bytes), frees)}
		f.Confidence, f.Heuristic, f.Fix = finding.High, false, h.Fix()
		if b := h.Bound; b != nil && b.Length < b.Limit {
			why = append(why, fmt.Sprintf("It has %s; full it takes %s.", entries(b), units.Bytes(b.Full)))
		} else if b != nil && b.Hint == "" {
			why = append(why, fmt.Sprintf("It is full, with %s: it is what each of them keeps that grows.", entries(b)))
		}
		if h.Gone > 0 && g.LikeUse() {
			why = append(why, fmt.Sprintf("Of the %s keys that it had in the dump before, %s are gone: it gives memory back, too, as a cache or a table of requests does.",
				units.Count(h.Keys), units.Count(h.Gone)))
			f.Confidence = finding.Medium
		}
		if g.Early() {
			f.Confidence = finding.Medium
			if h.Ordered {
				why = append(why, "It is an OrderedDict, as caches with a bound mostly are.")
			}
			if h.Gone > 0 || h.Ordered {
				f.Severity, f.Confidence = finding.Info, finding.Low // then it is more likely one that is not full yet
			}
		}
		f.Why = append(why, f.Why...)
		switch g.Cause.Kind {
		case ghost.Graph, ghost.Retained, ghost.Loss:
		default:
			f.Next = nil // it need not be looked for
		}
		f.Next = append([]string{fmt.Sprintf("Clear or bound %s, or keep .item() or .detach().cpu() of the tensors there.", h.Reference.String())}, f.Next...)
	case s.Acquitted:
		f.Severity, f.Confidence = finding.Info, finding.Low
		f.Why = append([]string{"What was seen in the process acquits it: what holds this memory had as much some steps before, so it is a buffer that was filled."}, f.Why...)
	}
}

// entries counts those of a bounded container: "13 of 500 entries".
func entries(b *holder.Bound) string {
	return fmt.Sprintf("%s of %s entries", units.Count(b.Length), units.Count(b.Limit))
}

// filling reports a container with a bound that is not full: no ghost, but memory to plan for.
func (j *judge) filling(e *Evidence, s *holder.Share) {
	h, g, b := s.Holder, s.Growth, s.Holder.Bound
	f := finding.Finding{
		ID: "filling", Status: finding.Capacity, Severity: finding.Info, Confidence: finding.High, Device: e.Timeline.Device, Bytes: b.Full,
		Events: g.Events, Stack: attribution.Frames(j.s, g.Stacks[0]),
	}
	f.Title = fmt.Sprintf("Still filling, %s: %s. It has %s; full it takes %s.", entries(b), h.Reference.String(), units.Bytes(h.Bytes), units.Bytes(b.Full))
	f.Why = []string{fmt.Sprintf("It grows by %s with every iteration of %s, and will not beyond its bound; an entry takes %s now.",
		units.Bytes(g.PerLap), j.frame(g.Loop), units.Bytes(h.Bytes/b.Length))}
	f.Next = []string{"Plan for its full size, or give it a smaller bound, or keep its entries off the GPU (.cpu())."}
	if b.Hint != "" {
		f.Confidence, f.Heuristic = finding.Low, true
		f.Why = append(f.Why, fmt.Sprintf("The bound was read from the attribute %s of the object that has it. If that is not its bound, it grows without end.", b.Hint))
	}
	more := b.Full - h.Bytes
	if room, known := j.seen.Room(e.Timeline); known && more > room {
		f.Severity = finding.Warning
		f.Title = fmt.Sprintf("It will not fit: %s takes %s when it is full (%s now), and the device has room for %s more.",
			h.Reference.String(), units.Bytes(b.Full), entries(b), units.Bytes(room))
	}
	j.add(f)
}
