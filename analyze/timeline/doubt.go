package timeline

import (
	"github.com/snapana/snapana/analyze/allocator"
	"github.com/snapana/snapana/snapshot"
)

// doubts are signs that kinds of events were left out for a part of the recording: skip_actions can change.
type doubts struct {
	muted bool // a block that the trace handed out was freed without free_requested
	// younger says that a block was live where memory was reserved, so that no event handed it out.
	younger bool
	hushed  bool // so was one from before the trace, or it waited when the trace began
}

// doubt takes back what skip_actions that changed can have made wrong.
func (t *Timeline) doubt() {
	r, d := &t.Recording, &t.doubts
	if w := t.window; w != nil {
		d.muted, d.hushed = d.muted || w.Muted, d.hushed || w.Hushed
	}
	both := func(of func(b *Bounds)) {
		of(&r.Peak)
		of(&r.Start)
	}
	if !r.Unseen.Has(freeRequested | alloc) {
		switch {
		case d.muted:
			r.Skipped |= freeRequested
			both(func(b *Bounds) { b.Allocated = Unknown })
		case d.hushed:
			r.Partly |= freeRequested
			both(func(b *Bounds) { b.Allocated = b.Allocated.And(AtLeast) })
		}
	}
	if !r.Unseen.Has(alloc) && (t.doubts.younger || t.unborn()) {
		r.Skipped |= alloc
		both(func(b *Bounds) { b.all(Unknown) }) // blocks that seem to be older may lie in it, and over each other
	}
	if r.Unseen.Has(alloc) && len(t.Initially) > 0 { // the first use of a range is not known
		both(func(b *Bounds) { b.Reserved, b.InactiveSplit = b.Reserved.And(AtMost), Unknown })
	} else if made := t.young() &^ r.Unseen; made != 0 {
		r.Partly |= made
		both(func(b *Bounds) { b.Reserved, b.InactiveSplit = b.Reserved.And(AtMost), Unknown })
	}
	if (r.Unseen | r.Partly | r.Skipped).Has(segmentKinds | Failures) {
		r.Retries = AtLeast
	}
}

// blank reports whether the trace begins with no memory at all, and says how all of it came. What was there before, and
// is gone, must then have gone unseen and unused.
func (t *Timeline) blank() bool {
	if t.window != nil {
		return t.window.Blank && !t.Recording.Unseen.Has(segmentAlloc|segmentMap)
	}
	return len(t.Initially) == 0 && (len(t.Lives) == 0 || t.Lives[0].Born >= 0) &&
		!t.Recording.Unseen.Has(segmentAlloc|segmentMap)
}

// unborn reports whether memory was reserved without a request that got it: it is reserved for one, which gets the base
// of a segment, or reaches into what was mapped last. In between come at most other maps, and what a failure releases.
func (t *Timeline) unborn() bool {
	n := t.Trace.Len()
	k := 0 // the first event behind the maps of a request
	const kinds = uint32(segmentAlloc | segmentMap)
	for i := t.Trace.Next(kinds, 0); i < n; i = t.Trace.Next(kinds, i+1) {
		e := t.Trace.At(i)
		k = max(k, i+1)
		for k < n && e.Action == snapshot.SegmentMap && t.Trace.Action(k) == e.Action {
			k++
		}
		if k == n { // no dump comes in between, but the end of a window may
			return t.window == nil || t.window.AtEnd()
		}
		switch next := t.Trace.At(k); {
		case next.Action == snapshot.Alloc && next.Addr == e.Addr:
		case e.Action == snapshot.SegmentAlloc:
			return true
		case next.Action == snapshot.Alloc:
			if next.Addr >= e.Addr+uint64(e.Size) || next.Addr+uint64(next.Size) <= e.Addr {
				return true
			}
		case next.Action == snapshot.FreeRequested || next.Action == snapshot.SegmentAlloc ||
			next.Action == snapshot.Annotate:
			return true
		}
	}
	return false
}

// young says which kinds of events are missing if a range that no event made, or its end, is newer than the trace: what
// first used it is a request. A segment is made for one that gets its base. An expandable one grows at its end by whole
// granules.
func (t *Timeline) young() Kinds {
	if t.window != nil { // what was there before it is told by the events before it
		if t.window.Young {
			return segmentAlloc | segmentMap
		}
		return 0
	}
	rs := Ranges(t.Initially)
	old := make([]int64, len(rs)) // so far it was there before
	var missing Kinds
	for i := range t.Lives {
		l := &t.Lives[i]
		for k := rs.after(l.End()-1) - 1; k >= 0 && rs[k].End() > l.Addr; k-- {
			r, granule := &rs[k], int64(allocator.LargeBuffer)
			if r.Kind == snapshot.KindSmall {
				granule = allocator.SmallBuffer
			}
			end := min(int64(l.End()-r.Addr), r.Size)
			switch {
			case l.Born < 0 && r.Expandable:
				old[k] = max(old[k], (end+granule-1)/granule*granule)
			case l.Born < 0 || old[k] == 0 && !r.Expandable && l.Addr != r.Addr:
				old[k] = r.Size
			case end > old[k]:
				missing |= partner(r, segmentAlloc, segmentMap)
			}
		}
	}
	return missing
}
