package timeline

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/snapana/snapana/analyze/allocator"
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

// Bound says how a figure relates to what happened.
type Bound uint8

const (
	Exact Bound = iota
	AtLeast
	AtMost
	Unknown
)

func (b Bound) String() string { return [...]string{"exact", "at_least", "at_most", "unknown"}[b] }

// MarshalText is String.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// Of is a size in a sentence: "at least 2.00 GiB".
func (b Bound) Of(bytes int64) string { return b.size("at least ", "at most ", bytes) }

// Short is a size in a table: "≥ 2.00 GiB".
func (b Bound) Short(bytes int64) string { return b.size("≥ ", "≤ ", bytes) }

func (b Bound) size(least, most string, bytes int64) string {
	switch {
	case b == Exact:
		return units.Bytes(bytes)
	case b == AtMost:
		return most + units.Bytes(bytes)
	case b == AtLeast && bytes > 0:
		return least + units.Bytes(bytes)
	}
	return "unknown"
}

// And is what holds of the sum of two figures.
func (b Bound) And(other Bound) Bound {
	switch {
	case b == Exact || b == other:
		return other
	case other == Exact:
		return b
	}
	return Unknown
}

// Bounds are those of the series.
type Bounds struct {
	Reserved      Bound `json:"reserved"`
	Active        Bound `json:"active"`
	Allocated     Bound `json:"allocated"`
	Requested     Bound `json:"requested"`
	InactiveSplit Bound `json:"inactive_split"`
}

// all sets each to the same.
func (b *Bounds) all(to Bound) { *b = Bounds{to, to, to, to, to} }

// Exact reports whether every series is.
func (b *Bounds) Exact() bool { return *b == Bounds{} }

// Recording says what the trace lacks, and how far that leaves the figures certain. Since 2.11
// _record_memory_history takes skip_actions, which leaves kinds of events out of the trace, and nothing in the file
// tells (SPEC.md 3.3). Traces of older writers lack nothing but what a ring lost that was resized.
type Recording struct {
	// Unseen are the kinds that matter here and of which the trace has no event: none happened, or they were
	// left out. Partly are those that it has, and may lack for a part of the time. Skipped are kinds of either that
	// did happen and are not in the trace, as other events or the final state show.
	Unseen  Kinds `json:"unseen"`
	Partly  Kinds `json:"partly"`
	Skipped Kinds `json:"skipped"`
	// Peak bounds the highest values of the series, Start those before the first event. The final ones are the
	// dump's own, thus exact.
	Peak  Bounds `json:"peak"`
	Start Bounds `json:"start"`
	// Resized says that max_entries was changed while recording: events are missing, or may be.
	Resized bool `json:"resized"`
	// Inferred says that the trace begins with memory in use or cached. All of it is taken to be older than the
	// first event, and a block of it that is freed to have taken what its request rounds to: a trace whose ring was
	// resized, or whose skip_actions changed, may hide that some of it is younger (SPEC.md 4.4). What is exact is so
	// but for that.
	Inferred bool `json:"inferred"`
	// Failures bounds the number of requests that failed.
	Failures Bound `json:"failures"`
	// Retries bounds the number of requests that made the allocator give up its cache.
	Retries Bound `json:"retries"`

	torn bool // the file contradicts itself
}

// Told is what a text says of it. A bound is worth a word where events are missing for certain, or the file contradicts
// itself; where that is a mere possibility, figures stand as they are.
func (r *Recording) Told() Recording {
	if r.LeftOut() != 0 || r.torn {
		return *r
	}
	told := *r
	told.Peak, told.Start, told.Failures, told.Retries = Bounds{}, Bounds{}, Exact, Exact
	return told
}

// At are the bounds of the series right after an event; -1 is the start. The last event is no exception: what was left
// out may have come after it, so that the state of the dump is another one.
func (r *Recording) At(event int) Bounds {
	b := r.Start
	if event >= 0 {
		b.add(&r.Peak)
	}
	return b
}

// BlocksUnknown reports whether the lives of blocks are unknown for certain: births or ends were left out, and
// cannot be rebuilt from the rest.
func (r *Recording) BlocksUnknown() bool {
	return r.Peak.Active == Unknown && r.Skipped.Has(Allocs|Frees)
}

// LeftOut are the kinds that happened for certain, are not in the trace, and leave figures of memory uncertain.
func (r *Recording) LeftOut() Kinds {
	if r.Peak.Exact() {
		return 0
	}
	return r.Skipped
}

// Add takes in what is said of another device, so that both hold for all of them.
func (r *Recording) Add(o *Recording) {
	r.Unseen |= o.Unseen
	r.Partly |= o.Partly
	r.Skipped |= o.Skipped
	r.torn = r.torn || o.torn
	r.Resized = r.Resized || o.Resized
	r.Inferred = r.Inferred || o.Inferred
	r.Peak.add(&o.Peak)
	r.Start.add(&o.Start)
	r.Failures, r.Retries = r.Failures.And(o.Failures), r.Retries.And(o.Retries)
}

func (b *Bounds) add(o *Bounds) {
	b.Reserved, b.Active = b.Reserved.And(o.Reserved), b.Active.And(o.Active)
	b.Allocated, b.Requested = b.Allocated.And(o.Allocated), b.Requested.And(o.Requested)
	b.InactiveSplit = b.InactiveSplit.And(o.InactiveSplit)
}

// skips reports whether kinds of events can be missing. The state of a single pool lacks the segments of others.
func (t *Timeline) skips(s *snapshot.Snapshot) bool {
	return s.Writer.Skips && !t.cut && t.Trace.Len() > 0 && s.Part == nil
}

// unseen finds the kinds of events that the writer could have left out, that would matter, and that the trace has
// none of.
func unseen(s *snapshot.Snapshot, t *Timeline) Kinds {
	n := t.Trace.Len()
	if !t.skips(s) {
		return 0
	}
	var seen Kinds
	for i := range n {
		seen |= 1 << t.Trace.At(i).Action
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
	if slices.ContainsFunc(s.Resized, func(r snapshot.Resize) bool { return r.Device == t.Device }) {
		return true
	}
	newest := int64(math.MinInt64)
	for i := range t.Trace.Len() {
		e := t.Trace.At(i)
		if e.Has&snapshot.EventHasTime == 0 {
			continue
		}
		if e.Time < newest {
			return true
		}
		newest = e.Time
	}
	return false
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
	return len(t.Initially) == 0 && (len(t.Lives) == 0 || t.Lives[0].Born >= 0) &&
		!t.Recording.Unseen.Has(segmentAlloc|segmentMap)
}

// unborn reports whether memory was reserved without a request that got it: it is reserved for one, which gets the base
// of a segment, or reaches into what was mapped last. In between come at most other maps, and what a failure releases.
func (t *Timeline) unborn() bool {
	n := t.Trace.Len()
	k := 0 // the first event behind the maps of a request
	for i := range n {
		e := t.Trace.At(i)
		if e.Action != snapshot.SegmentAlloc && e.Action != snapshot.SegmentMap {
			continue
		}
		k = max(k, i+1)
		for k < n && e.Action == snapshot.SegmentMap && t.Trace.At(k).Action == e.Action {
			k++
		}
		if k == n { // no dump comes in between
			return true
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
