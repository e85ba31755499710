package timeline

import (
	"slices"

	"github.com/snapana/snapana/snapshot"
)

// skips reports whether kinds of events can be missing. The state of a single pool lacks the segments of others.
func (t *Timeline) skips(s *snapshot.Snapshot) bool {
	return s.Writer.Skips && !t.cut && t.Trace.Len() > 0 && s.Part == nil
}

// unseen finds the kinds of events that the writer could have left out, that would matter, and that the trace has
// none of.
func unseen(s *snapshot.Snapshot, t *Timeline) Kinds {
	if !t.skips(s) {
		return 0
	}
	all := t.Trace.Sum()
	seen := Kinds(all.Seen())
	if t.window != nil {
		seen |= Kinds(t.window.Seen)
	}
	matter := alloc | frees | Failures
	for seg := range s.SegmentsOf(t.Device) {
		if seg.Expandable {
			matter |= mapped
		} else {
			matter |= plain
		}
	}
	// Settings tell of what is no longer there. A kind of segment that neither they, nor the state, nor an event
	// know of is taken not to have existed.
	if t.Conf.Expandable || seen.Has(mapped) {
		matter |= mapped
	}
	if !t.Conf.Expandable || seen.Has(plain) {
		matter |= plain
	}
	if seen.Has(segmentAlloc) {
		t.Recording.Skipped = alloc &^ seen // a segment is made for a request, which then gets its block
	}
	return matter &^ seen
}

// resized reports whether the ring was resized while it recorded, as events in the wrong order show (SPEC.md 3.4).
func resized(s *snapshot.Snapshot, t *Timeline) bool {
	if t.window != nil && t.window.Resized {
		return true
	}
	if slices.ContainsFunc(s.Resized, func(r snapshot.Resize) bool { return r.Device == t.Device }) {
		return true
	}
	all := t.Trace.Sum()
	return all.Back > 0
}

// bound sets what the missing kinds make of the figures, from what reconstruct and the replay found.
func (t *Timeline) bound(s *snapshot.Snapshot, g *gaps) {
	r, c := &t.Recording, &t.Checks
	if t.skips(s) {
		defer t.doubt()
	}
	r.torn = c.Inconsistent() > 0 || c.Residual != 0
	if r.Resized {
		r.Peak.all(Unknown)
		r.Start.all(Unknown)
	}
	if r.Unseen == 0 || r.Resized {
		return
	}
	if r.Unseen.Has(alloc) && c.Overlaps+c.OutsideSegments > 0 {
		r.Skipped |= alloc // a block that no event handed out lies in a segment, or over a block, of the trace
	}
	if r.Unseen.Has(Failures) {
		r.Failures = AtLeast
	}
	blocks := r.blocks(t)
	peak, start := r.reserved(t, g)
	r.Peak, r.Start = blocks, blocks
	r.Peak.Reserved, r.Start.Reserved = peak, start
	for _, b := range []*Bounds{&r.Peak, &r.Start} {
		if g.large {
			b.Active, b.Allocated = b.Active.And(AtLeast), b.Allocated.And(AtLeast)
		}
		if b.Reserved != Exact || b.Active != Exact {
			b.InactiveSplit = Unknown
		}
	}
	explain := func(counts ...*int64) {
		for _, n := range counts {
			c.Explained += *n
			*n = 0
		}
	}
	if r.BlocksUnknown() {
		explain(&c.UnmatchedAllocs, &c.UnmatchedFrees, &c.Overlaps, &c.OutsideSegments, &c.LiveOverReserved)
		c.Residual = 0
	}
	if n := c.OutsideSegments + c.Overlaps; g.outside && n > 0 {
		explain(&c.OutsideSegments, &c.Overlaps)
		for _, b := range []*Bounds{&r.Peak, &r.Start} {
			b.Active, b.Allocated = b.Active.And(AtLeast), b.Allocated.And(AtLeast)
		}
	}
	if r.Peak.Active != Exact {
		explain(&c.MarkerMismatches)
	}
	if r.Peak.Reserved != Exact {
		explain(&c.LiveOverReserved)
	}
	if r.torn = c.Inconsistent() > 0 || c.Residual != 0; r.torn {
		r.Peak.all(Unknown)
		r.Start.all(Unknown)
	}
}

// blocks bounds the sums of blocks.
func (r *Recording) blocks(t *Timeline) (b Bounds) {
	switch missing := r.Unseen; {
	case missing.Has(alloc):
		b.all(Unknown) // what was freed may have been born at any time
	case missing.All(frees) && r.Skipped.Has(frees):
		b.all(Unknown)
	case missing.All(frees) && t.blank():
	case missing.All(frees):
		b.all(AtLeast) // what was allocated is all there at the end, but others may have been freed
	case missing.Has(freeCompleted):
		// Blocks that wait for streams are missing, those from before the trace with them. What lies next to them
		// decides how large others are, but only ever makes them larger.
		b.all(AtLeast)
		if t.Conf.MaxSplit > 0 {
			b.Active, b.Allocated = Unknown, Unknown
		}
	case missing.Has(freeRequested):
		b.Allocated = AtMost // a block that waits for streams seems allocated
	}
	return b
}

// reserved bounds the reserved bytes at the peak and at the start.
func (r *Recording) reserved(t *Timeline, g *gaps) (peak, start Bound) {
	missing := r.Unseen & segmentKinds
	if r.Skipped&missing == 0 && t.blank() {
		missing = 0
	}
	births, ends := missing.Has(segmentAlloc), missing.Has(segmentFree)
	blind := r.Unseen.Has(alloc) // first uses are not seen
	steady := len(t.Changes) == 0
	switch {
	case g.outside && blind:
		return Unknown, Unknown
	case births && ends && (blind || !g.firstUse):
		// Taken to be constant. At its end it is what the dump says.
		peak, start = AtLeast, Unknown
		if !steady {
			peak = Unknown
		}
		if !blind && !g.ambiguous {
			start = AtLeast
		}
	case ends:
		peak, start = AtLeast, AtLeast
	case births && blind:
		peak, start = AtMost, AtMost
	case births && g.ambiguous && g.firstUse:
		peak, start = AtLeast, AtLeast
	case births && g.ambiguous:
		peak, start = AtMost, AtMost
	}
	births, ends = missing.Has(segmentMap), missing.Has(segmentUnmap)
	also, from := Exact, Exact
	switch {
	case births && ends:
		also, from = AtLeast, Unknown
		if !steady || g.outside {
			also = Unknown
		}
	case births:
		also, from = AtMost, AtMost
	case ends:
		also, from = AtLeast, AtLeast
	}
	return peak.And(also), start.And(from)
}
